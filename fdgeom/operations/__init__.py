"""Operations: a time step is a list of them, and each gives its derivatives as operations again.

- `operation`: the base class, tangents and cotangents, and the adjoint of a list; `HostOperation` for
  operations that a Python method performs, and two kinds of these;
- `explicit`: `Map`, assignments at nodes, `Check`, conditions that fail a step, `Copy` of degrees of
  freedom, and `Assemble`, derivatives of functionals; `solve`: solves for an unknown, with prescribed
  degrees of freedom; `interpolate`: interpolants, inverse matrices, numbers of a Real space as fields,
  and data of users sampled at nodes;
- `dependent`: functions that are recomputed when the data that they are made from change;
- `convergence`: when Newton's method ends;
- `flow`: parts of a step that compositions scale and merge; `reverse_sweep`: the adjoint of a step,
  and the checkpoints of many.

These modules know forms and Functions; `execution` performs operations.
"""

from fdgeom.operations.convergence import EPSILON, LOCAL_TEST, WORDS, ConvergenceTest, Reason, Watch
from fdgeom.operations.explicit import Assemble, Check, Copy, Map
from fdgeom.operations.flow import (
    Assignments,
    Flow,
    check_state,
    completed,
    flattened,
    merged,
    with_assignments,
)
from fdgeom.operations.interpolate import Broadcast, Interpolate, Interpolation, Inverse
from fdgeom.operations.operation import (
    ArrayOperation,
    Cotangents,
    HostOperation,
    Operation,
    Performed,
    Tangents,
    compilable,
    differentiable,
    each_part,
    linearise,
    owned_values,
    parts,
    reverse,
    up_to_date,
)
from fdgeom.operations.reverse_sweep import AdjointStep, Strides
from fdgeom.operations.solve import PROBLEM, Attempt, Prescribed, Solve, dofs_of
