"""Quadratures on interval meshes: vertex, Gauss–Lobatto, midpoint and Gauss.

Firedrake ignores an unknown quadrature scheme on intervals silently; here an impossible number
of points is an error.
"""

from math import factorial

import ufl
from firedrake import CellVolume, ds, dx
from firedrake.mesh import MeshGeometry

from fdgeom.validation import instance, whole


def check_interval(mesh, argument: str = "mesh"):
    """Return ``mesh`` if it consists of intervals on a line; raise otherwise."""
    instance(argument, mesh, MeshGeometry, "a Firedrake mesh")
    cell, dim = mesh.ufl_cell().cellname, mesh.geometric_dimension
    if cell != "interval" or dim != 1:
        raise ValueError(
            f"{argument} must be an interval mesh in one dimension, such as IntervalMesh(n, length); "
            f"this one has {cell} cells in {dim} dimensions"
        )
    return mesh


def vertex(mesh) -> ufl.Measure:
    """Trapezoidal rule: the end points of each cell, each with half its length."""
    return gauss_lobatto(mesh, 2)


def midpoint(mesh) -> ufl.Measure:
    """Midpoint rule: the centre of each cell with its length."""
    return gauss(mesh, 1)


def gauss(mesh, points: int) -> ufl.Measure:
    """Gauss–Legendre rule of ``points`` points a cell, exact to degree ``2 points - 1``."""
    n = whole("points", points, least=1)
    check_interval(mesh)
    return dx(domain=mesh, degree=0 if n == 1 else 2 * n - 1)


def gauss_lobatto(mesh, points: int) -> ufl.Measure:
    """Gauss–Lobatto rule of ``points`` points a cell: the nodes of CG of degree ``points - 1``."""
    n = whole("points", points, least=2)
    check_interval(mesh)
    return dx(domain=mesh, scheme="KMV", degree=n - 1)


def ends(mesh) -> ufl.Measure:
    """Measure of weight one at each of the two end points of the mesh."""
    return ds(domain=check_interval(mesh))


def cell_length(mesh) -> ufl.core.expr.Expr:
    """Length of the cell (at an end point: of the cell it belongs to)."""
    return CellVolume(check_interval(mesh))


def end_values(f, mesh) -> tuple[ufl.core.expr.Expr, ufl.core.expr.Expr]:
    """Values of a continuous Function at the two ends of each cell, to be used with :func:`midpoint`.

    At the midpoint ``f ∓ (h/2) f'`` is exact if ``f`` is linear in the cell; a field of higher degree
    has more terms of its Taylor series. The first value is that at the smaller coordinate.
    """
    half, slope = cell_length(mesh) / 2, f.dx(0)
    left, right = f - half * slope, f + half * slope
    degree = f.function_space().ufl_element().embedded_superdegree
    for k in range(2, degree + 1):
        slope = slope.dx(0)
        term = half**k / factorial(k) * slope
        left, right = left + (-1) ** k * term, right + term
    return left, right
