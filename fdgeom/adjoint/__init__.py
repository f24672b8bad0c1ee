"""Gradients of runs, on pyadjoint's tape and without a tape.

A step is a list of operations (`fdgeom.operations`), which give their derivatives, so methods need no
derivatives of their own. Steppers know nothing of this subpackage: `fdgeom.taping` calls it.
"""

from fdgeom.adjoint.block import put_on_tape, record_deeds, take_on_tape
from fdgeom.adjoint.coefficients import Coefficients
from fdgeom.adjoint.deeds import solve_operations
from fdgeom.adjoint.gradient import gradient
from fdgeom.adjoint.inputs import Inputs
from fdgeom.adjoint.list_derivative import ListDerivative
from fdgeom.adjoint.passage import Passage
from fdgeom.adjoint.values import Kept, Vectors, keys, parts
from fdgeom.taping import recorded_by

recorded_by(changes=record_deeds, steps=take_on_tape)

__all__ = [
    "Coefficients",
    "Inputs",
    "Kept",
    "ListDerivative",
    "Passage",
    "Vectors",
    "gradient",
    "keys",
    "parts",
    "put_on_tape",
    "solve_operations",
]
