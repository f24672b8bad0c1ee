"""PETSc and compiled solvers: SNES objects held for a whole run, assemblers, compiled local solves.

These modules take forms and Functions and know no system, stepper or time. Other subpackages import
from here and from `compiled`.

- `data`: values of Functions as arrays, saved and restored; `assembly`: forms assembled in place;
- `essential`: prescribed degrees of freedom; `pointwise`: nodal assignments;
- `held_snes`, `kept_snes`, `saddle`: SNES objects for any equations, for equations with a constant
  matrix, and for equations with multipliers;
- `compiled`: assignments at nodes; `elimination`, `links`: the order in which nodes of rod networks are
  eliminated, and the cells that link them;
- `numerics`: default solvers and convergence tests; `fallbacks`: compiled solves that
  PETSc SNES took over, with reasons;
- `derived`: dependent fields; `structure`: test of locality; `strides`: checkpoint schedule of long
  runs; `options`, `petsc_messages`: PETSc's options and error messages.
"""

from fdgeom.solvers.assembly import FunctionalAssembly, MatrixAssembly, VectorAssembly
from fdgeom.solvers.data import Field, Number, Snapshot, fields, key
from fdgeom.solvers.essential import (
    EssentialValues,
    GivenValues,
    dofs_of,
    prescribed,
    solve_operations,
)
from fdgeom.solvers.fallbacks import Fallbacks
from fdgeom.solvers.held_snes import COUPLED, EssentialRows, HeldSNES, defaults
from fdgeom.solvers.kept_snes import KeptSNES
from fdgeom.solvers.numerics import Numerics, plain, saddle
from fdgeom.solvers.pointwise import PointwiseUpdate
from fdgeom.solvers.saddle import SaddleSNES, banded, saddle_defaults
from fdgeom.solvers.structure import is_local
