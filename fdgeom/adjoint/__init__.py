"""Gradients of runs, on pyadjoint's tape and without a tape.

A step is a list of operations (`fdgeom.operations`), which give their derivatives, so methods need no
derivatives of their own. Steppers know nothing of this subpackage: `fdgeom.taping` calls it.
"""

from fdgeom.adjoint.block import put_on_tape, record_change, take_on_tape
from fdgeom.adjoint.coefficients import Coefficients
from fdgeom.adjoint.gradient import gradient
from fdgeom.adjoint.lists import OperationList
from fdgeom.adjoint.replay import Lists, Replay
from fdgeom.adjoint.steps import StepReplay
from fdgeom.adjoint.values import Kept, Vectors, keys, parts
from fdgeom.taping import recorded_by

recorded_by(changes=record_change, steps=take_on_tape)

__all__ = [
    "Coefficients",
    "Kept",
    "Lists",
    "OperationList",
    "Replay",
    "StepReplay",
    "Vectors",
    "gradient",
    "keys",
    "parts",
    "put_on_tape",
]
