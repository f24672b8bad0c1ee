"""Gradients of runs, on pyadjoint's tape and without a tape.

A step is a list of solves between assignments (`fdgeom.steppers`). The derivative of each solve is one
linear solve with its matrix, transposed for gradients, so methods need no derivatives of their own.
"""

from fdgeom.adjoint.block import put_on_tape, record_deeds, take_on_tape
from fdgeom.adjoint.coefficients import Coefficients
from fdgeom.adjoint.gradient import gradient
from fdgeom.adjoint.implicit import Solved
from fdgeom.adjoint.inputs import Inputs
from fdgeom.adjoint.linear import Linear
from fdgeom.adjoint.passage import Passage
from fdgeom.adjoint.pointwise import Assigned
from fdgeom.adjoint.values import Kept, Vectors, keys, parts
from fdgeom.taping import recorded_by

recorded_by(record_deeds)

__all__ = [
    "Assigned",
    "Coefficients",
    "Inputs",
    "Kept",
    "Linear",
    "Passage",
    "Solved",
    "Vectors",
    "gradient",
    "keys",
    "parts",
    "put_on_tape",
    "take_on_tape",
]
