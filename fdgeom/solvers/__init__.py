"""PETSc plumbing: a SNES held for the whole run, assemblers built once, pointwise updates.

Forms in, values out, with options and failures told in words. Nothing here knows a system, a step or
a time. Other rooms come in by this door, and by those of `compiled` and `chain`.

- `data`: values of Functions as arrays, kept and put back; `assembly`: forms assembled in place;
- `essential`: given degrees of freedom; `pointwise`: assignments node by node; `deed`: what is done
  beside steps, in equations;
- `held_snes`, `kept_snes`, `saddle`: SNES that live as long as the stepper, for any equations, for
  those whose matrix stays, and for those with multipliers;
- `local_newton`, `compiled`: equations of single nodes; `chain`: equations of neighbours;
- `numerics`, `settled`: how a problem wants to be solved, and when Newton's iteration is done;
  `fallbacks`: what compiled code leaves to PETSc SNES, and why;
- `derived`: fields that follow others; `structure`: what couples what; `strides`: which states of
  long runs are kept; `options`, `petsc_words`.
"""

from fdgeom.solvers.assembly import FunctionalAssembly, MatrixAssembly, VectorAssembly
from fdgeom.solvers.chain import ChainLU, ChainNewton
from fdgeom.solvers.compiled import pieces
from fdgeom.solvers.data import Field, Number, Snapshot, fields, key
from fdgeom.solvers.deed import Deed
from fdgeom.solvers.essential import EssentialValues, GivenValues, dofs_of
from fdgeom.solvers.fallbacks import Fallbacks
from fdgeom.solvers.held_snes import COUPLED, HeldSNES, SolveFailed, defaults
from fdgeom.solvers.kept_snes import KeptSNES
from fdgeom.solvers.local_newton import LocalNewton
from fdgeom.solvers.numerics import Numerics, plain, saddle
from fdgeom.solvers.pointwise import PointwiseUpdate
from fdgeom.solvers.saddle import SaddleSNES, banded, deficiency, saddle_defaults
from fdgeom.solvers.settled import Settled
from fdgeom.solvers.strides import Strides
from fdgeom.solvers.structure import is_local
