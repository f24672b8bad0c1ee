"""Reverse sweep of compiled steps: cotangents before steps from those after them.

- `reversed_step`: the adjoint of one step, from the forms of the forward program;
- `adjoint_program`, `adjoint_source`: the phases of the adjoint and their C++ text;
- `slots`: storage of the forward values that the reverse sweep reads;
- `sweep`: many steps forward and back, with all states or with checkpoints.
"""

from fdgeom.solvers.reverse.slots import Memory
from fdgeom.solvers.reverse.sweep import Sweep, Trail

__all__ = ["Memory", "Sweep", "Trail"]
