"""Copies of degrees of freedom, cell by cell, to a mesh with another numbering or distribution."""

import finat.ufl
import numpy as np
import scipy
from firedrake import Function, SpatialCoordinate, VectorFunctionSpace

# Points closer than this part of the distance between neighbouring cells are the same.
SAME_POINT = 1e-6


def places_of(mesh) -> np.ndarray:
    """Midpoints and extents of the cells that this rank owns, shape (cells, 2 gdim)."""
    # A joint of two beams is a cell, whose midpoint may be that of a cell of a third beam.
    middle = _points(mesh, finat.ufl.FiniteElement("DG", mesh.ufl_cell(), 0))[:, 0]
    extent = np.ptp(cellwise(mesh.coordinates), axis=1)
    return np.concatenate([middle, extent.reshape(middle.shape)], axis=1)


def points_of(space) -> np.ndarray:
    """Points of the nodes of `space` in the order of its cell_node_map, shape (owned cells, nodes, gdim)."""
    element = scalar_element(space)
    # Nodes of edge elements are no points: corners of the cells.
    if element.mapping() != "identity":
        return cellwise(space.mesh().coordinates)
    # Broken elements have one value on each side of a periodic mesh's seam, as its coordinate has.
    return _points(space.mesh(), finat.ufl.BrokenElement(element))


def cellwise(function: Function) -> np.ndarray:
    """Values of a function at the nodes of each owned cell, shape (cells, nodes, ...)."""
    nodes = function.function_space().cell_node_map().values
    return np.asarray(function.dat.data_ro_with_halos[nodes], dtype=float)


def rows_of(mesh) -> tuple[slice, int]:
    """The rows of this rank's cells in a table of all cells, and the number of all rows."""
    counts = mesh.comm.allgather(mesh.cell_set.size)
    first = sum(counts[: mesh.comm.rank])
    return slice(first, first + counts[mesh.comm.rank]), sum(counts)


def scalar_element(space):
    """The element of one component of a space."""
    element = space.ufl_element()
    while isinstance(element, finat.ufl.VectorElement | finat.ufl.TensorElement):
        element = element.sub_elements[0]
    return element


def _points(mesh, element) -> np.ndarray:
    """Coordinates of the nodes of a discontinuous element."""
    space = VectorFunctionSpace(mesh, element, dim=mesh.geometric_dimension)
    found = cellwise(Function(space).interpolate(SpatialCoordinate(mesh)))
    # A rank may have no cell.
    return found.reshape(*found.shape[:2], mesh.geometric_dimension)


class Transfer:
    """Copies values from the cells of a file to those of a mesh; ValueError if one is not in the file."""

    # Cells are found by their places and the degrees of freedom in a cell by their points, so values
    # are copied, not interpolated. Places must differ only where the numbering does.

    def __init__(self, places, mesh) -> None:
        self.comm, here = mesh.comm, places_of(mesh)
        own, self._total = rows_of(mesh)
        if places.shape != (self._total, here.shape[1]):
            raise ValueError("the meshes differ in the number of cells")
        # The same program on as many ranks has the same numbering.
        self.same = not self._anywhere(not np.array_equal(places[own], here))
        self._rows = own if self.same else slice(None)
        distance, cell = scipy.spatial.cKDTree(places[self._rows]).query(here, k=2)
        # With a single cell there is no neighbour, and the distance is infinite.
        neighbour = np.where(np.isfinite(distance[:, 1]), distance[:, 1], 1.0)
        self.spacing = neighbour[:, None, None]
        self.cell = np.arange(len(here)) if self.same else cell[:, 0]
        # Of cells at one place nobody knows which is which; their distance is zero.
        missing = ~(distance[:, 0] < SAME_POINT * neighbour)
        if not self.same and self._anywhere(missing.any()):
            raise ValueError(
                "the meshes differ in the midpoints of cells, or several share a place"
            )

    def _anywhere(self, local: bool) -> bool:
        return any(self.comm.allgather(bool(local)))

    def values(self, name: str, values, points, space) -> np.ndarray:
        """Values for the owned nodes of `space` from those of `cellwise` and `points_of` in the file."""
        owned, here = Function(space).dat.data_ro.copy(), points_of(space)
        nodes = space.cell_node_map().values
        shapes = (*here.shape[1:],), (*nodes.shape[1:], *owned.shape[1:])
        if [points.shape, values.shape] != [(self._total, *shape) for shape in shapes]:
            raise ValueError(f"the values of '{name}' have another shape")
        there, values = points[self._rows][self.cell], values[self._rows][self.cell]
        if self._anywhere(not np.array_equal(there, here)):
            order = self._order(there, here, space)
            values = np.take_along_axis(
                values, order.reshape(*nodes.shape, *(values.ndim - 2) * [1]), 1
            )
        mine = nodes < len(owned)
        owned[nodes[mine]] = values[mine]
        if self._anywhere(not np.array_equal(owned[nodes[mine]], values[mine])):
            raise ValueError(f"the values of '{name}' differ between the cells at a node")
        return owned

    def _order(self, there: np.ndarray, here: np.ndarray, space) -> np.ndarray:
        """The number of each node among the nodes of its cell in the file."""
        # distance[c, i, j]: from node i of a cell to node j of the same cell in the file
        distance = np.linalg.norm(here[:, :, None, :] - there[:, None, :, :], axis=-1)
        order = distance.argmin(axis=2)
        far = not np.all(distance.min(axis=2, keepdims=True) <= SAME_POINT * self.spacing)
        twice = (np.sort(order, axis=1) != np.arange(order.shape[1])).any()
        if self._anywhere(far or twice or scalar_element(space).mapping() != "identity"):
            raise ValueError(f"the nodes of {space.ufl_element()} are not those of the file")
        return order
