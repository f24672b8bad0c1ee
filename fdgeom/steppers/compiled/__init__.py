"""Whole steps in compiled code, for methods whose solves can be compiled.

- `list_steps`: lists of operations by `fdgeom.compile`;
- `fused`: solves of nodes and of those of joints, one after another;
- `chain_steps`: one solve that couples neighbours on a line;
- `choose`: which of these takes the steps of a stepper;
- `solves_of`: flows as solves between assignments; `hints`: what compiled code needs to know of them.

The compilation of the solves is in :mod:`fdgeom.solvers`.
"""

from fdgeom.steppers.compiled.choose import compiled_steps
from fdgeom.steppers.compiled.compiled_steps import CompiledSteps
from fdgeom.steppers.compiled.solves_of import solves_of

__all__ = ["CompiledSteps", "compiled_steps", "solves_of"]
