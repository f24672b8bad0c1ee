"""Exact copies of degrees of freedom between two numberings of the same mesh."""

import finat.ufl
import numpy as np
from firedrake import Function, SpatialCoordinate, VectorFunctionSpace
from scipy.spatial import cKDTree

# Points closer than this part of the distance between neighbouring cells are the same.
SAME_POINT = 1e-6


class Transfer:
    """Map of cells and their degrees of freedom from one mesh to another copy of it.

    The copies may be numbered and distributed differently. Cells are found by their midpoints and
    the degrees of freedom in a cell by their points, so values are copied, not interpolated.

    Parameters
    ----------
    source, target : firedrake mesh
        Two meshes with the same cells.

    Raises
    ------
    ValueError
        When a cell of `target` is not in `source`, or is not told apart from others by its
        midpoint (which matters only when the numbering differs).
    """

    def __init__(self, source, target) -> None:
        self.comm = target.comm
        there = _midpoints(source)
        here = _midpoints(target)
        # The file restores numbering and distribution where it can: then nothing is gathered.
        self.same = not self._anywhere(not np.array_equal(there, here))
        distance, cell = cKDTree(there if self.same else self._gather(there)).query(here, k=2)
        # With a single cell there is no neighbour, and the distance is infinite.
        neighbour = np.where(np.isfinite(distance[:, 1]), distance[:, 1], 1.0)
        self.spacing = neighbour[:, None, None]
        self.cell = cell[:, 0]
        missing = distance[:, 0] > SAME_POINT * neighbour
        if not self.same and self._anywhere(missing.any()):
            raise ValueError("the meshes differ: cells have other midpoints, or several share one")

    def _gather(self, array: np.ndarray) -> np.ndarray:
        return np.concatenate(self.comm.allgather(array))

    def _anywhere(self, local: bool) -> bool:
        return any(self.comm.allgather(bool(local)))

    def values(self, function: Function, space) -> np.ndarray:
        """Values of `function` (on the source mesh) for the owned nodes of `space`.

        Parameters
        ----------
        function : firedrake.Function
        space : firedrake FunctionSpace on the target mesh, with the same element

        Returns
        -------
        numpy.ndarray, shape of `Function(space).dat.data_ro`

        Raises
        ------
        ValueError
            When the element's degrees of freedom are not told apart by their points.
        """
        owned = Function(space).dat.data_ro.copy()
        if space.ufl_element().family() == "Real":
            owned[...] = function.dat.data_ro
            return owned
        source = function.function_space()
        values = function.dat.data_ro_with_halos[source.cell_node_map().values]
        there = _dof_points(source)
        here = _dof_points(space)
        if not self.same:
            values = self._gather(values)[self.cell]
            there = self._gather(there)[self.cell]
        # distance[c, i, j]: from dof i of a target cell to dof j of the same source cell
        distance = np.linalg.norm(here[:, :, None, :] - there[:, None, :, :], axis=-1)
        order = distance.argmin(axis=2)
        far = (distance.min(axis=2, keepdims=True) > SAME_POINT * self.spacing).any()
        twice = (np.sort(order, axis=1) != np.arange(order.shape[1])).any()
        if self._anywhere(far or twice):
            raise ValueError(f"the nodes of {space.ufl_element()} are not those of the file")
        values = np.take_along_axis(
            values, order.reshape(order.shape + (1,) * (values.ndim - 2)), axis=1
        )
        nodes = space.cell_node_map().values
        mine = nodes < len(owned)
        owned[nodes[mine]] = values[mine]
        return owned


def _points(mesh, element) -> np.ndarray:
    """Coordinates of the nodes of a discontinuous element, shape (owned cells, nodes, gdim)."""
    space = VectorFunctionSpace(mesh, element, dim=mesh.geometric_dimension)
    points = Function(space).interpolate(SpatialCoordinate(mesh)).dat.data_ro_with_halos
    return points.reshape(len(points), -1)[space.cell_node_map().values]


def _midpoints(mesh) -> np.ndarray:
    return _points(mesh, finat.ufl.FiniteElement("DG", mesh.ufl_cell(), 0))[:, 0]


def _dof_points(space) -> np.ndarray:
    """Points of the nodes of `space`, cell by cell, in the order of its cell_node_map.

    Broken elements have one value on each side of a periodic mesh's seam, as its coordinate has.
    """
    element = space.ufl_element()
    while isinstance(element, finat.ufl.VectorElement | finat.ufl.TensorElement):
        element = element.sub_elements[0]
    return _points(space.mesh(), finat.ufl.BrokenElement(element))
