"""Cells of an interval mesh as pieces of rods: end values, length, and the two quadratures."""

import numpy as np
import ufl
from firedrake import CellVolume, Function, TestFunction, dx
from ufl.algorithms import extract_arguments, extract_coefficients, replace
from ufl.classes import Expr, Form, Zero

from fdgeom.forms import shaped_space
from fdgeom.measures import check_interval, end_values, vertex


class Cells:
    """Pieces of rods: every cell of an interval mesh, or those of a network that are no joints."""

    # Coordinates must increase along each rod as its arc length does.
    def __init__(self, mesh, *, inside: Function | None = None) -> None:
        self.mesh = check_interval(mesh)
        #: Length of a piece at rest.
        self.length: Expr = CellVolume(mesh)
        #: 1 in the pieces of rods, 0 elsewhere.
        self.inside = inside
        self._scale = ufl.as_ufl(1.0) if inside is None else inside
        self._midpoint, self._vertex = dx(domain=mesh, degree=0), vertex(mesh)

    def in_rods(self) -> np.ndarray | bool:
        """Mask of the cells that are pieces of rods, in the order of the cell's node map."""
        if self.inside is None:
            return True
        cells = self.inside.function_space().cell_node_map().values[:, 0]
        return self.inside.dat.data_ro_with_halos[cells] > 0.5

    def ends(self, value: Expr) -> tuple[Expr, Expr]:
        """An expression of nodal fields at the two ends of each cell, for use in :meth:`sum`."""
        value = ufl.as_ufl(value)
        fields = (*extract_coefficients(value), *extract_arguments(value))
        varying = [f for f in fields if f.ufl_element().embedded_superdegree]
        pairs = {f: end_values(f, self.mesh) for f in varying}
        a, b = (replace(value, {f: ends[k] for f, ends in pairs.items()}) for k in range(2))
        if self.inside is None:
            return a, b
        return a, ufl.conditional(ufl.gt(self.inside, 0.5), b, a)

    def sum(self, density: Expr) -> Form:
        """∫ density ds by the midpoint rule: one point a cell."""
        return _integral(self._scale * density, self._midpoint)

    def values(self, value: Expr, test: Expr | None = None) -> Form:
        """The form whose vector holds the values in the cells: tested with 1 / their length."""
        if test is None:
            test = TestFunction(shaped_space(value.ufl_shape, self.mesh, "DG", 0))
        product = ufl.dot if len(value.ufl_shape) == 1 else ufl.inner
        return self.sum(product(value, test) / self.length)

    def at_nodes(self, density: Expr) -> Form:
        """∫ density ds by the trapezoidal rule: the ends of the cells, each with half the length."""
        return _integral(self._scale * density, self._vertex)


def _integral(density: Expr, measure: ufl.Measure) -> Form:
    """``density * measure``; an empty form, not a number, where the density is zero."""
    return Form([]) if isinstance(density, Zero) else density * measure
