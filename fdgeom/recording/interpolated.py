"""Fields for drawing: Lagrange Functions that interpolate UFL expressions repeatedly."""

from collections.abc import Iterable

import finat.ufl
import ufl
from firedrake import Function
from ufl.algorithms import extract_coefficients

from fdgeom.forms import jumps, shaped_space
from fdgeom.operations import Interpolation
from fdgeom.operations.dependent import refresh


class Interpolated(Interpolation):
    """An expression, with present values of its dependent fields, in a space of a Lagrange element."""

    def __init__(self, expression, scalar_element, mesh) -> None:
        super().__init__(expression, shaped_space(expression.ufl_shape, mesh, scalar_element))
        self._expression = expression

    def apply(self) -> Function:
        """Interpolate the present values."""
        refresh(self._expression)
        return super().apply()


def chosen(names: Iterable[str] | None, known: dict) -> dict:
    """The fields of some names, all by default; ``ValueError`` if one is unknown."""
    names = known if names is None else names
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"fields: unknown '{unknown[0]}'; known are {', '.join(known)}")
    return {name: known[name] for name in names}


def common_element(mesh, expressions: list) -> finat.ufl.FiniteElement:
    """A scalar Lagrange element of the highest degree among the coordinates and the expressions."""
    coefficients = [
        c
        for e in expressions
        for c in extract_coefficients(ufl.as_ufl(e))
        if c.ufl_element().family() != "Real"
    ]
    elements = [mesh.coordinates.ufl_element(), *(c.ufl_element() for c in coefficients)]
    family = "DG" if any(jumps(ufl.as_ufl(e)) for e in expressions) else "CG"
    degree = max(e.embedded_superdegree for e in elements)
    return finat.ufl.FiniteElement(family, mesh.ufl_cell(), degree, variant="equispaced")
