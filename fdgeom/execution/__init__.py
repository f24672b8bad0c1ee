"""Execution: performs operations by Firedrake and PETSc, and stores what their adjoints read.

- `petsc`: lists of operations on any mesh, with assignments at nodes, and steps whose values are stored,
  with their adjoint steps;
- `assembly`: forms assembled in place;
- `snes`: solves by SNES objects that are held for a whole run; `defaults`: their options and convergence
  tests for each kind of equations;
- `options`: the user's PETSc options, which of compiled code and PETSc performs steps, solves that PETSc
  takes over, and PETSc's messages.
"""

from fdgeom.execution.assembly import FunctionalAssembly, MatrixAssembly, VectorAssembly
from fdgeom.execution.defaults import (
    COUPLED,
    Numerics,
    banded,
    defaults,
    is_local,
    plain,
    saddle,
    saddle_defaults,
)
from fdgeom.execution.petsc import (
    Executor,
    PointwiseUpdate,
    Run,
    Trajectory,
    own_values,
    perform,
)
from fdgeom.execution.snes import EssentialRows, HeldSNES
