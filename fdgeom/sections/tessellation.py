"""Triangulation of a section for pictures, with separate corners for each cell."""

from functools import cached_property

import numpy as np
import scipy
from firedrake import Function, FunctionSpace, SpatialCoordinate, VectorFunctionSpace

from .elasticity import broken_element
from .outline import occur_once


class Tessellation:
    """Nodes of a scalar discontinuous element, cell by cell, and triangles between them."""

    def __init__(self, mesh, element) -> None:
        self.mesh = mesh
        self.space, self._element = FunctionSpace(mesh, element), element
        # Cells of this rank.
        self.cells = self.space.cell_node_list[: mesh.cell_set.size]
        place = Function(VectorFunctionSpace(mesh, element)).interpolate(SpatialCoordinate(mesh))
        #: Coordinates of the nodes, (cells, nodes, 2).
        self.places = place.dat.data_ro_with_halos[self.cells]
        _, points = self.space.finat_element.dual_basis
        self._reference = reference = np.asarray(points.points, dtype=float)
        # A cell is cut along the lattice of its nodes, so curved sides are followed.
        pattern = scipy.spatial.Delaunay(reference).simplices
        n = reference.shape[0]
        starts = n * np.arange(len(self.cells))
        #: Triangles (triangles, 3) of nodes, counted cell by cell.
        self.triangles = (starts[:, None, None] + pattern).reshape(-1, 3)
        #: Nodes on the rim of each cell, going round, (cells, rim).
        self.rim = starts[:, None] + _rim(reference)

    def values(self, field) -> np.ndarray:
        """Values at the nodes, (cells, nodes, ...), of a function of this element or a scalar."""
        if isinstance(field, Function):
            element = field.function_space().ufl_element()
            if element == self._element or self._element in element.sub_elements:
                return field.dat.data_ro_with_halos[self.cells]
        if field.ufl_shape:
            raise ValueError(
                f"field must be scalar or a field of this section, not of shape {field.ufl_shape}"
            )
        return Function(self.space).interpolate(field).dat.data_ro_with_halos[self.cells]

    def corners(self) -> np.ndarray:
        """The nodes that are corners of the reference cell, in the order of the linear element."""
        linear = FunctionSpace(self.mesh, broken_element(self.mesh, 1)).finat_element
        points = np.asarray(linear.dual_basis[1].points, dtype=float)
        return np.array([np.abs(self._reference - x).sum(axis=1).argmin() for x in points])

    @cached_property
    def outline(self) -> np.ndarray:
        """Edges (edges, 2) that belong to one cell of this rank only: the outline of the section,
        on several ranks with the borders between them.
        """
        edges = np.stack([self.rim, np.roll(self.rim, -1, axis=1)], axis=-1)
        return occur_once(self.places.reshape(-1, 2), edges.reshape(-1, 2))


def _rim(reference: np.ndarray) -> np.ndarray:
    """Nodes on the boundary of the reference cell, the unit triangle or square, going round."""
    x, y = reference.T
    is_square = np.isclose(x + y, 2).any()
    product = x * (1 - x) * y * (1 - y) if is_square else x * y * (1 - x - y)
    nodes = np.flatnonzero(np.isclose(product, 0))
    outwards = reference[nodes] - reference[nodes].mean(axis=0)
    return nodes[np.argsort(np.arctan2(outwards[:, 1], outwards[:, 0]))]
