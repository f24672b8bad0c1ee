"""Whole steps in compiled code, where the solves of a method are of a kind that can be compiled.

- `fused`: solves that are local, one after another;
- `chain_steps`: one solve that couples neighbours on a line.

How solves are compiled does not belong here (:mod:`fdgeom.solvers`).
"""

from fdgeom.steppers.compiled.chain_steps import ChainSteps
from fdgeom.steppers.compiled.fused import CompiledSteps, FusedSteps, tolerances_of

__all__ = ["ChainSteps", "CompiledSteps", "FusedSteps", "tolerances_of"]
