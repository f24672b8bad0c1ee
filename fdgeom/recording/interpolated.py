"""Functions that follow UFL expressions."""

from collections.abc import Callable

import finat.ufl
import ufl
from firedrake import Function, FunctionSpace, interpolate
from firedrake.assemble import get_assembler
from ufl.algorithms import extract_coefficients

from fdgeom.solvers.derived import refresh


def following(expression, scalar_element, mesh) -> tuple[Function, Callable[[], None]]:
    """A Function of a Lagrange element, and what interpolates the expression to it."""
    shape = expression.ufl_shape
    element = finat.ufl.TensorElement(scalar_element, shape=shape) if shape else scalar_element
    if len(shape) == 1:
        element = finat.ufl.VectorElement(scalar_element, dim=shape[0])
    target = Function(FunctionSpace(mesh, element))
    assembler = get_assembler(interpolate(expression, target.function_space()))

    def update() -> None:
        refresh(expression)
        assembler.assemble(tensor=target)

    return target, update


def common_element(mesh, expressions: list) -> finat.ufl.FiniteElement:
    """Scalar Lagrange element for the coordinates and all that the expressions consist of."""
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
