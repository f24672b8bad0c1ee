"""Compiled steps taken back: the cotangents before them from those after them.

- `reversed_step`: what is to be done, in which order, from the forms of the forward program;
- `adjoint_program`, `adjoint_source`: its phases and their C++ text;
- `slots`: where the values are kept that the way back reads;
- `sweep`: many steps there and back, all of them kept or some of them taken again.
"""

from fdgeom.solvers.reverse.slots import Memory
from fdgeom.solvers.reverse.sweep import Sweep, Trail

__all__ = ["Memory", "Sweep", "Trail"]
