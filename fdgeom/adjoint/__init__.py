"""Gradients: steps as functions of what they read, on pyadjoint's tape and without one.

A step is a list of solves between assignments (`fdgeom.steppers`): the derivative of each is one linear
solve with the matrix of the solve, transposed for gradients, and no method states anything for it.
"""

from fdgeom.adjoint.block import take_on_tape
from fdgeom.adjoint.gradient import gradient
from fdgeom.adjoint.passage import Passage

__all__ = ["Passage", "gradient", "take_on_tape"]
