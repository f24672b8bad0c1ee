"""Whole steps in compiled code: `list_steps`, and `list_sweep` for their derivatives.

The compilation of lists of operations is in :mod:`fdgeom.compile`.
"""

from fdgeom.steppers.compiled.list_steps import ListSteps

__all__ = ["ListSteps"]
