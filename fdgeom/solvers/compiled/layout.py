"""Storage of values for compiled units: in place as Firedrake keeps them, or in the order of a chain."""

from collections.abc import Callable

import numpy as np
from firedrake import Function, SpatialCoordinate

from fdgeom.solvers.compiled.collocation import scalar_space
from fdgeom.solvers.compiled.structs import Copy, FieldPointer
from fdgeom.solvers.compiled.tables import Tables
from fdgeom.solvers.data import Field
from fdgeom.solvers.links import links_of

# Vector loads may reach so many nodes beyond the first and the last one.
PADDING = 16
# Numbers in a register of the widest vectors.
_LINE = 8


class DirectLayout:
    """Values where Firedrake keeps them, found through the maps from cells to nodes."""

    is_chain, flags, there = False, (), None

    def __init__(self, tables: Tables) -> None:
        self.cells = tables.mesh.cell_set.total_size
        self.fields = [Field(f) for f in tables.functions]
        self.maps = [
            np.ascontiguousarray(f.function_space().cell_node_map().values_with_halo)
            for f in tables.representatives
        ]
        sets = [f.function_space().node_set for f in tables.representatives]
        self.ranges = [(0, s.size, s.total_size) for s in sets]

    def pointer(self, k: int) -> tuple[int, int, int]:
        """Address, stride and number of nodes of function ``k``."""
        return self.fields[k].array.ctypes.data, 0, len(self.fields[k].array)

    def values(self, k: int) -> np.ndarray:
        """All stored values of function ``k``."""
        return self.fields[k].array

    def shape(self, k: int) -> tuple[int, int, int]:
        """Number of rows of function ``k``, numbers in a row, and numbers before the first node."""
        return 1, self.fields[k].array.size, 0

    def workspace(self, space: int, block: int) -> np.ndarray | None:
        """Memory for right-hand sides on a node set; None if the layout needs none."""
        return np.zeros((self.ranges[space][2], block))

    def number(self, space: int, nodes: np.ndarray) -> np.ndarray:
        """Numbers of nodes in this layout."""
        return nodes

    def original(self, space: int, index: int) -> int:
        """Firedrake's local number of a node."""
        return index

    def copies(self, which):
        """No copies: the values are used in place."""
        return (Copy * 0)()

    def extend_coordinates(self) -> None:
        """Do nothing: no memory lies beyond the ends."""


class ChainLayout:
    """One array per component, with nodes and cells in the order of the chain."""

    is_chain = True

    def __init__(
        self, tables: Tables, order: list[np.ndarray], there: np.ndarray | None = None
    ) -> None:
        self.flags: tuple[str, ...] = ("-DFDGEOM_CHAIN",)
        self.cells = tables.mesh.cell_set.total_size
        # Chains side by side: 1 for each cell, 0 for the gap between the last node of a chain and the
        # first node of the next one; links come after these.
        self.there = None
        if there is not None:
            self.flags += ("-DFDGEOM_GAPS",)
            self.cells = len(there)
            self.there = _rows(1, len(there))[0]
            self.there[PADDING:-PADDING] = there
        self.fields = [Field(f) for f in tables.functions]
        self.maps = [np.zeros(1, dtype=np.int32) for _ in tables.representatives]
        self._order = order
        self._space = [tables.space(f) for f in tables.functions]
        self._plain = [bool(np.array_equal(o, np.arange(len(o)))) for o in order]
        self._order32 = [o.astype(np.int32) for o in order]
        self._place = [np.argsort(o).astype(np.int32) for o in order]
        self.ranges = []
        for f, o in zip(tables.representatives, order, strict=True):
            owned = np.flatnonzero(o < f.function_space().node_set.size)
            self.ranges.append((int(owned[0]), int(owned[-1]) + 1, len(o)))
        self._arrays = [_rows(f.block, len(order[s])) for f, s in zip(
            self.fields, self._space, strict=True)]  # fmt: skip
        self._coordinates = self._arrays[tables.field(tables.coordinates)]

    def extend_coordinates(self) -> None:
        """Extrapolate the coordinates beyond the ends, so that vectors of cells there stay finite."""
        x, steps = self._coordinates, np.arange(1, PADDING + 1)
        n = x.shape[1] - 2 * PADDING
        inner = x[:, PADDING : PADDING + n]
        x[:, PADDING + n :] = inner[:, -1:] + (inner[:, -1] - inner[:, -2]) * steps
        x[:, :PADDING] = inner[:, :1] - (inner[:, 1] - inner[:, 0]) * steps[::-1]

    def pointer(self, k: int) -> tuple[int, int, int]:
        array = self._arrays[k]
        start = array.ctypes.data + PADDING * array.itemsize
        return start, array.strides[0] // array.itemsize, array.shape[1] - 2 * PADDING

    def values(self, k: int) -> np.ndarray:
        return self._arrays[k]

    def shape(self, k: int) -> tuple[int, int, int]:
        rows, stride = self._arrays[k].shape[0], self._arrays[k].strides[0]
        return rows, stride // self._arrays[k].itemsize, PADDING

    def workspace(self, space: int, block: int) -> None:
        return None

    def number(self, space: int, nodes: np.ndarray) -> np.ndarray:
        return self._place[space][nodes]

    def original(self, space: int, index: int) -> int:
        return int(self._order[space][index])

    def copies(self, which):
        """Copies of functions into the order of the chain and back, for the compiled unit."""
        made = (Copy * len(which))()
        for copy, k in zip(made, which, strict=True):
            s = self._space[k]
            copy.chain = FieldPointer(*self.pointer(k))
            copy.values, copy.size = self.fields[k].array.ctypes.data, self.fields[k].block
            copy.order = None if self._plain[s] else self._order32[s].ctypes.data
        return made


def _rows(block: int, nodes: int) -> np.ndarray:
    """Zeros in one row per component, padded at both ends; each row begins at a cache line."""
    width = nodes + 2 * PADDING
    stride = -(-width // _LINE) * _LINE
    memory = np.zeros(block * stride + _LINE)
    first = -(memory.ctypes.data // memory.itemsize) % _LINE
    return memory[first : first + block * stride].reshape(block, stride)[:, :width]


def chain_order(tables: Tables) -> list[np.ndarray] | None:
    """The nodes of each set in the order of the chain; None if the local mesh is not one chain."""
    mesh = tables.mesh
    if mesh.geometric_dimension != 1 or tables.arity(mesh.coordinates) != 2:
        return None
    spaces = [f.function_space() for f in tables.representatives]
    arities = [tables.arity(f) for f in tables.representatives]
    if any(n > 2 or (n == 2 and not _is_cg1(V)) for V, n in zip(spaces, arities, strict=True)):
        return None
    # Each set has one node a cell (DG0) or the two ends of each cell (CG1); in the order of the
    # coordinate cell j lies between nodes j and j + 1. Interpolation of coordinates is collective.
    places = [_node_coordinates(space) for space in spaces]
    orders = []
    for space, arity, x in zip(spaces, arities, places, strict=True):
        order = np.argsort(x)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        cells = np.sort(place[space.cell_node_map().values_with_halo], axis=1)
        cells = cells[np.argsort(cells[:, 0])]
        wanted = np.arange(len(cells))[:, None] + np.arange(arity)
        if len(order) != len(cells) + arity - 1 or not np.array_equal(cells, wanted):
            return None
        owned = np.flatnonzero(order < space.node_set.size)
        if not len(owned) or owned[-1] - owned[0] + 1 != len(owned):
            return None
        orders.append(order)
    return orders


def side_by_side(tables: Tables) -> tuple[list[np.ndarray], np.ndarray] | None:
    """The nodes of each set of several chains, one after another, and a mask of cells; None if impossible."""
    mesh = tables.mesh
    if mesh.comm.size > 1 or mesh.geometric_dimension != 1:
        return None
    spaces = [f.function_space() for f in tables.representatives]
    arities = [tables.arity(f) for f in tables.representatives]
    if any(n > 2 or (n == 2 and not _is_cg1(V)) for V, n in zip(spaces, arities, strict=True)):
        return None
    if tables.arity(mesh.coordinates) != 2:
        return None
    line = mesh.coordinates.function_space()
    nodes = np.argsort(_node_coordinates(line))
    place = np.argsort(nodes)
    ends = np.sort(place[line.cell_node_map().values], axis=1)
    links = links_of(mesh)
    rods = np.flatnonzero(~links)
    first = ends[rods, 0]
    if np.any(ends[rods, 1] != first + 1) or len(np.unique(first)) < len(first) or 0 not in first:
        return None
    # In a gap between two chains, where the mask is 0, the cell before it is repeated; links are last.
    cell = np.full(len(nodes) - 1, -1)
    cell[first] = rods
    there = cell >= 0
    known = np.maximum.accumulate(np.where(there, np.arange(len(cell)), 0))
    cells = np.concatenate([cell[known], np.flatnonzero(links)])
    orders = [
        np.argsort(_node_coordinates(V)) if n == 2 else V.cell_node_map().values[cells, 0]
        for V, n in zip(spaces, arities, strict=True)
    ]
    return orders, there.astype(float)


# Families of elements whose unknowns are values at points.
_POINTS = ("Lagrange", "Discontinuous Lagrange", "Q", "DQ")


_NAMES = "_fdgeom_names_of_places"


def name_places(mesh, words: Callable[[float], str]) -> None:
    """Set the function that names the nodes of an interval mesh in messages, by their coordinates."""
    setattr(mesh, _NAMES, words)


def describe(function: Function) -> Callable[[int], str]:
    """The function that describes the place of a node (or of a cell, for DG0) in messages; collective."""
    space = function.function_space()
    mesh, element = space.mesh(), space.ufl_element()
    if element.family() not in _POINTS:
        return lambda index: f"the local unknown {index}"
    places = [_node_coordinates(space, k) for k in range(mesh.geometric_dimension)]
    names = getattr(mesh, _NAMES, None)

    def words(index: int) -> str:
        if names is not None:
            return names(places[0][min(index, len(places[0]) - 1)])
        x = [f"{place[min(index, len(place) - 1)]:.6g}" for place in places]
        return f"the node at {x[0]}" if len(x) == 1 else f"the node at ({', '.join(x)})"

    return words


def _is_cg1(space) -> bool:
    dofs = space.finat_element.entity_dofs()
    return [len(v) for v in dofs[0].values()] == [1, 1]


def _node_coordinates(space, component: int = 0) -> np.ndarray:
    x = SpatialCoordinate(space.mesh())[component]
    return np.array(Function(scalar_space(space)).interpolate(x).dat.data_ro_with_halos)
