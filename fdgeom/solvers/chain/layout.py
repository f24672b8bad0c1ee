"""Storage of the values of chains: pieces side by side, one in each SIMD lane."""

from dataclasses import dataclass

import numpy as np
from firedrake import Function

from fdgeom.errors import CannotCompile
from fdgeom.forms import scalar_space
from fdgeom.line import coordinates_of
from fdgeom.solvers.chain.parts import is_linear
from fdgeom.solvers.chain.ranks import largest_of_all, numbers_everywhere
from fdgeom.solvers.chain.structs import Copy
from fdgeom.solvers.chain.topology import Topology
from fdgeom.solvers.compiled.tables import Tables, nodes_of
from fdgeom.solvers.data import Field
from fdgeom.solvers.links import links_of


@dataclass
class Group:
    """Pieces that lie side by side in the lanes."""

    #: Cells of the mesh, (longest piece, lanes); beyond its end a piece repeats its last cell.
    cells: np.ndarray
    #: Number of cells in each lane.
    count: np.ndarray
    #: Whether a lane has a piece of its own; else it repeats the first one.
    there: np.ndarray
    is_link: bool

    @property
    def m(self) -> int:
        """Number of cells of the longest piece."""
        return len(self.cells)

    @property
    def beyond(self) -> np.ndarray:
        """A mask (m, lanes) of places beyond the end of a piece."""
        return np.arange(self.m)[:, None] >= self.count[None, :]


def _group(pieces: list[np.ndarray], lanes: int, is_link: bool) -> Group:
    count = np.array([len(pieces[l] if l < len(pieces) else pieces[0]) for l in range(lanes)])
    there = np.arange(lanes) < len(pieces)
    cells = np.empty((count.max(), lanes), dtype=int)
    for lane in range(lanes):
        piece = pieces[lane if there[lane] else 0]
        cells[: len(piece), lane] = piece
        cells[len(piece) :, lane] = piece[-1]
    return Group(cells, count.astype(np.int64), there, is_link)


@dataclass
class Copies:
    """Copies of values between functions and the layout, as structs for compiled code."""

    made: object
    number: int
    kept: list


class PieceLayout:
    """Values of functions as [node or cell of the piece][component][lane], group by group."""

    def __init__(self, tables: Tables, lanes: int) -> None:
        self._tables, self.lanes = tables, lanes
        self.topology = topology = topology_of(tables)
        links = topology.links
        #: Groups of chains, then groups of links.
        self.groups = [_group(pieces, lanes, False) for pieces in topology.groups(lanes)]
        self.groups += [
            _group([links[[k]] for k in range(start, min(start + lanes, len(links)))], lanes, True)
            for start in range(0, len(links), lanes)
        ]
        #: Values of the functions in Firedrake's order, and, by group, in this layout.
        self.fields = [Field(f) for f in tables.functions]
        self.arrays = [
            [aligned((self._rows(group, f.function), f.block, lanes)) for f in self.fields]
            for group in self.groups
        ]
        self._maps = [_oriented(f) for f in tables.representatives]
        self._everywhere = [numbers_everywhere(f) for f in tables.representatives]
        self._owned = [f.function_space().node_set.size for f in tables.representatives]
        seen: dict[int, set] = {}
        #: The largest number of a node or cell, on all ranks.
        self.largest = largest_of_all(
            tables.mesh.comm, max(int(numbers.max()) for numbers in self._everywhere)
        )
        again: dict[int, set] = {}
        self._places, self._own, self._own_of_links = [], [], []
        for group in self.groups:
            places = [self._numbers(group, nodes) for nodes in self._maps]
            self._places.append(places)
            for own, known in ((self._own, seen), (self._own_of_links, again)):
                if known is again and not group.is_link:
                    own.append(None)
                    continue
                own.append([
                    self._first_time(group, numbers, known.setdefault(k, set()))
                    & (numbers < self._owned[k])
                    for k, numbers in enumerate(places)
                ])  # fmt: skip

    def _rows(self, group: Group, function: Function) -> int:
        return group.m + (self._tables.arity(function) == 2)

    @staticmethod
    def _numbers(group: Group, nodes: np.ndarray) -> np.ndarray:
        first = nodes[group.cells, 0]
        if nodes.shape[1] == 1:
            return np.ascontiguousarray(first, dtype=np.int32)
        last = nodes[group.cells, 1]
        made = np.vstack([np.where(group.beyond, last, first), last[-1:]])
        return np.ascontiguousarray(made, dtype=np.int32)

    @staticmethod
    def _first_time(group: Group, numbers: np.ndarray, seen: set) -> np.ndarray:
        """A mask of the first occurrence of each node or cell, without repetitions."""
        flat = numbers.ravel()
        there = np.broadcast_to(group.there, numbers.shape)
        if len(numbers) == group.m:
            there = there & ~group.beyond
        _, index = np.unique(np.where(there.ravel(), flat, -1), return_index=True)
        own = np.zeros(flat.shape, dtype=bool)
        own[index] = True
        own &= there.ravel() & ~np.isin(flat, np.fromiter(seen, dtype=flat.dtype, count=len(seen)))
        seen.update(flat[own].tolist())
        return own.reshape(numbers.shape)

    def copies(self, functions, out: bool = False) -> Copies:
        """Copies of functions into this layout, or (``out``) back; repeated values come from the links."""
        made = (Copy * max(len(functions) * len(self.groups), 1))()
        kept, number = [], 0
        for g, group in enumerate(self.groups):
            for function in functions:
                place, k = self.places(function, g), self._tables.field(function)
                if out:
                    there = np.broadcast_to(group.there, place.shape)
                    there = there & ~group.beyond if len(place) == group.m else there
                    place = np.where(there, place, -1).astype(np.int32)
                copy = made[number]
                copy.here = self.arrays[g][k].ctypes.data
                copy.there = self.fields[k].array.ctypes.data
                copy.place, copy.count = place.ctypes.data, len(place)
                copy.size = self.fields[k].block
                kept.append(place)
                number += 1
        return Copies(made, number, kept)

    def array(self, function: Function, group: int = 0) -> np.ndarray:
        """The values of a function in this layout."""
        return self.arrays[group][self._tables.field(function)]

    def places(self, function: Function, group: int = 0) -> np.ndarray:
        """Firedrake's numbers of the nodes or cells of a function, (rows, lanes)."""
        return self._places[group][self._tables.space(function)]

    def everywhere(self, function: Function) -> np.ndarray:
        """The numbers of a function's nodes or cells on all ranks."""
        return self._everywhere[self._tables.space(function)]

    def own(self, function: Function, group: int = 0, *, of_links: bool = False) -> np.ndarray:
        """A mask with each owned node or cell once (``of_links``: once among the links)."""
        found = self._own_of_links if of_links else self._own
        return found[group][self._tables.space(function)]

    def ends(self, function: Function, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Firedrake's numbers of the two ends of each lane."""
        # The value of an end in a DG0 function is that of the cell to its right, or -1.
        numbers = self.places(function, group)
        if len(numbers) == self.groups[group].m:
            return numbers[0], np.full(self.lanes, -1)
        return numbers[0], numbers[-1]

    def alone(self, nodes: Function) -> set[int]:
        """The groups whose pieces share no end nodes with others; ``nodes`` is any function of the nodes."""
        ends = [np.array(self.ends(nodes, g))[:, x.there] for g, x in enumerate(self.groups)]
        numbers, times = np.unique(np.hstack(ends), return_counts=True)
        own = numbers[times == 1]
        whole = [np.isin(found, own).all() for found in ends]
        return {g for g, x in enumerate(self.groups) if whole[g] and not x.is_link}


def topology_of(tables: Tables) -> Topology:
    """The chains and links of the mesh."""
    nodes = _oriented(tables.coordinates)
    x = tables.coordinates.dat.data_ro_with_halos.reshape(-1)
    if len(x) <= nodes.max() or not is_linear(tables.coordinates):
        raise CannotCompile("the mesh is periodic, or its coordinates are not of degree 1")
    return Topology(nodes, x, links_of(tables.mesh))


def _oriented(function: Function) -> np.ndarray:
    """The nodes of each cell that a function has values at, the one of the smaller coordinate first."""
    space, seen = function.function_space(), nodes_of(function)
    nodes = space.cell_node_map().values
    if nodes.shape[1] == 1:
        return nodes
    order = np.argsort(coordinates_of(scalar_space(space))[nodes], axis=1)
    nodes = np.take_along_axis(nodes, order, axis=1)
    return nodes if seen is None else nodes[:, seen]


def aligned(shape: tuple[int, ...]) -> np.ndarray:
    """Zeros that begin at a cache line."""
    size = int(np.prod(shape, dtype=int))
    memory = np.zeros(size + 8)
    first = -(memory.ctypes.data // 8) % 8
    return memory[first : first + size].reshape(shape)


def address(array: np.ndarray | None) -> int | None:
    """The address of an array; None for None."""
    return None if array is None else array.ctypes.data
