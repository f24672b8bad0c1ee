"""Whole steps in compiled code, for methods whose solves can be compiled.

- `list_steps`: lists of operations by `fdgeom.compile`;
- `fused`: solves that are local, one after another;
- `chain_steps`: one solve that couples neighbours on a line;
- `solves_of`: flows as solves between assignments, and what compiled code needs to know of them.

The compilation of the solves is in :mod:`fdgeom.solvers`.
"""

from fdgeom.steppers.compiled.chain_steps import ChainSteps
from fdgeom.steppers.compiled.fused import CompiledSteps, FusedSteps, tolerances_of
from fdgeom.steppers.compiled.list_steps import ListSteps
from fdgeom.steppers.compiled.solves_of import AtLinks, Following, SolveOf, hint, solves_of

__all__ = [
    "AtLinks",
    "ChainSteps",
    "CompiledSteps",
    "Following",
    "FusedSteps",
    "ListSteps",
    "SolveOf",
    "hint",
    "solves_of",
    "tolerances_of",
]
