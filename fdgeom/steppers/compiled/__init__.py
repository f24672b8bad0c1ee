"""Whole steps in compiled code, for methods whose solves can be compiled.

- `fused`: solves that are local, one after another;
- `chain_steps`: one solve that couples neighbours on a line.

The compilation of the solves is in :mod:`fdgeom.solvers`.
"""

from fdgeom.steppers.compiled.chain_steps import ChainSteps
from fdgeom.steppers.compiled.fused import CompiledSteps, FusedSteps, tolerances_of

__all__ = ["ChainSteps", "CompiledSteps", "FusedSteps", "tolerances_of"]
