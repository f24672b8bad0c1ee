"""Sections for pictures: outlines, closed curves along the two transverse axes, and triangles."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy
from firedrake import Function, FunctionSpace, SpatialCoordinate, VectorFunctionSpace
from ufl.core.expr import Expr

from .elasticity import broken_element
from .matrices import MatrixAlong

#: Of the section's size: how far a drawn outline may lie from its simplified polygon.
_TOLERANCE = 0.004
#: Corners of a circle.
_ROUND = 16


def rectangle(width: float, height: float) -> np.ndarray:
    """Outline of a rectangle: corners and number of the curve, (4, 3)."""
    return np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)]) * (width / 2, height / 2, 1)


def ellipse(first: float, second: float, curve: int = 0) -> np.ndarray:
    """Outline of an ellipse with these half-axes, (n, 3)."""
    angle = np.arange(_ROUND) * (2 * np.pi / _ROUND)
    return np.stack(
        [first * np.cos(angle), second * np.sin(angle), np.full(_ROUND, float(curve))], axis=1
    )


def ring(outer: float, inner: float) -> np.ndarray:
    """Outline of a circular tube: two curves, (2n, 3)."""
    return np.concatenate([ellipse(outer, outer), ellipse(inner, inner, 1)])


def of_numbers(shape: Callable[..., np.ndarray], *lengths) -> np.ndarray | None:
    """An outline by its lengths; None if one of them is an expression, which has no single value."""
    return None if any(isinstance(x, Expr) for x in lengths) else shape(*map(float, lengths))


def coinciding(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first of the points at each place, and the index of each point's place."""
    gap = 1e-9 * np.ptp(points, axis=0).max()
    columns = np.stack([_clusters(values, gap) for values in points.T], axis=1)
    _, first, same = np.unique(columns, axis=0, return_index=True, return_inverse=True)
    return first, same.reshape(-1)


def _clusters(values: np.ndarray, gap: float) -> np.ndarray:
    """Numbers that are equal but for round-off get the same index."""
    order = np.argsort(values)
    index = np.empty(len(values), dtype=int)
    index[order] = np.concatenate([[0], np.cumsum(np.diff(values[order]) > gap)])
    return index


def occur_once(points: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The edges (n, 2) between places that no other edge connects; each cell has its own corners."""
    if not len(edges):  # a rank without cells
        return edges
    pairs = np.sort(coinciding(points)[1][edges], axis=1)
    _, same, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    return edges[counts[same.reshape(-1)] == 1]


def of_edges(points: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Closed curves (n, 3) of the edges (m, 2) between points (p, 2) that occur once."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components, depth_first_order

    size = np.ptp(points, axis=0).max()
    first, same = coinciding(points)
    a, b = np.unique(np.sort(same[occur_once(points, edges)], axis=1), axis=0).T
    graph = coo_array((np.ones(len(a)), (a, b)), shape=(len(first),) * 2).tocsr()
    _, label = connected_components(graph, directed=False)
    curves = []
    for start in np.unique(a)[np.unique(label[np.unique(a)], return_index=True)[1]]:
        # Each point has two neighbours, so going deep first goes round.
        order = depth_first_order(graph, start, directed=False, return_predecessors=False)
        corners = _simplified(points[first[order]], _TOLERANCE * size)
        if len(corners) > 2:
            curves.append(np.column_stack([corners, np.full(len(corners), float(len(curves)))]))
    return np.concatenate(curves)


def _simplified(curve: np.ndarray, tolerance: float) -> np.ndarray:
    """The corners of a closed curve that a polygon within a tolerance needs (Douglas and Peucker)."""
    far = int(np.linalg.norm(curve - curve[0], axis=1).argmax())
    closed = np.concatenate([curve, curve[:1]])
    kept, pieces = {0, far}, [(0, far), (far, len(curve))]
    while pieces:
        a, b = pieces.pop()
        if b - a < 2:
            continue
        chord = closed[b] - closed[a]
        offset = closed[a + 1 : b] - closed[a]
        distance = np.abs(chord[0] * offset[:, 1] - chord[1] * offset[:, 0]) / np.linalg.norm(chord)
        worst = int(distance.argmax())
        if distance[worst] > tolerance:
            middle = a + 1 + worst
            kept.add(middle)
            pieces += [(a, middle), (middle, b)]
    return curve[sorted(kept)]


def of_section(section) -> np.ndarray:
    """The outline of a section, else of the rectangle that bends as it does; empty if it varies."""
    if section.outline is not None:
        return section.outline
    if not section.is_constant:
        if not isinstance(section.stiffness, MatrixAlong):
            return np.zeros((0, 3))
        section = section.at(float(np.mean(section.stiffness.stations)))
    stiffness, axis = section.stiffness, section.axis
    across = [k for k in range(3) if k != axis]
    stretch = stiffness[3 + axis, 3 + axis]
    # A rectangle of width b bends by E A b²/12: about the second axis by its extent along the first.
    return rectangle(*(np.sqrt(12.0 * stiffness[k, k] / stretch) for k in reversed(across)))


def edges_of(outline: np.ndarray) -> np.ndarray:
    """Pairs (n, 2) of neighbouring corners on each curve of an outline."""
    index = np.arange(len(outline))
    _, first, counts = np.unique(outline[:, 2], return_index=True, return_counts=True)
    following = index + 1
    following[first + counts - 1] = first
    return np.column_stack([index, following])


def triangles_of(outline: np.ndarray) -> np.ndarray:
    """Triangles (m, 3) of corners that fill an outline."""
    points = outline[:, :2]
    triangles = scipy.spatial.Delaunay(points).simplices
    middles = points[triangles].mean(axis=1)
    a, b = points[edges_of(outline).T]
    # A point is inside if a ray from it crosses the outline an odd number of times.
    x, y = middles[:, None, 0], middles[:, None, 1]
    spans = (a[:, 1] > y) != (b[:, 1] > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = a[:, 0] + (y - a[:, 1]) / (b[:, 1] - a[:, 1]) * (b[:, 0] - a[:, 0])
    return triangles[(spans & (x < crossing)).sum(axis=1) % 2 == 1]


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
        x, y = reference.T
        is_square = np.isclose(x + y, 2).any()
        product = x * (1 - x) * y * (1 - y) if is_square else x * y * (1 - x - y)
        rim = np.flatnonzero(np.isclose(product, 0))
        outwards = reference[rim] - reference[rim].mean(axis=0)
        self.rim = starts[:, None] + rim[np.argsort(np.arctan2(outwards[:, 1], outwards[:, 0]))]

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
        """Edges (edges, 2) of one cell of this rank only: the outline, and the borders between ranks."""
        edges = np.stack([self.rim, np.roll(self.rim, -1, axis=1)], axis=-1)
        return occur_once(self.places.reshape(-1, 2), edges.reshape(-1, 2))
