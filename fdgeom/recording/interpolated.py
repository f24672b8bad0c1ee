"""Lagrange Functions that interpolate UFL expressions again and again."""

from collections.abc import Callable

import finat.ufl
import ufl
from firedrake import Function
from ufl.algorithms import extract_coefficients

from fdgeom.forms import shaped_space
from fdgeom.operations import Interpolation
from fdgeom.operations.dependent import refresh


def following(expression, scalar_element, mesh) -> tuple[Function, Callable[[], None]]:
    """A Function of a Lagrange element, and a function that interpolates the expression to it."""
    found = Interpolation(expression, shaped_space(expression.ufl_shape, mesh, scalar_element))

    def update() -> None:
        refresh(expression)
        found.apply()

    return found.values, update


def common_element(mesh, expressions: list) -> finat.ufl.FiniteElement:
    """A scalar Lagrange element of the highest degree among the coordinates and the expressions."""
    coefficients = [
        c
        for e in expressions
        for c in extract_coefficients(ufl.as_ufl(e))
        if c.ufl_element().family() != "Real"
    ]
    elements = [mesh.coordinates.ufl_element(), *(c.ufl_element() for c in coefficients)]
    family = "CG" if all(e in ufl.H1 for e in elements) else "DG"
    degree = max(e.embedded_superdegree for e in elements)
    return finat.ufl.FiniteElement(family, mesh.ufl_cell(), degree, variant="equispaced")
