"""Chains that meet: the segments that are eliminated, and the small system of the nodes between them."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from firedrake import Function

from fdgeom.compile.build import WIDTH, Front, Fronts, Segment, Tree, address, array_of
from fdgeom.compile.chain import ChainProgram, Unknown
from fdgeom.compile.layout import Layout, aligned, parts_of
from fdgeom.errors import CannotCompile
from fdgeom.forms import scalar_space

#: A chain between two links of at least so many blocks of cells is eliminated in two halves.
_LONG = 32 // WIDTH
#: More unknowns of a small system are not eliminated as one dense matrix.
_DENSE = 1000


@dataclass
class Segments:
    """Segments of chains, as arrays; the members are those of `Segment` in chain_lu.hpp."""

    first: np.ndarray
    last: np.ndarray
    target: np.ndarray
    start: np.ndarray
    begin: np.ndarray
    count: np.ndarray
    back: np.ndarray
    #: Whether it belongs to a chain without links, and the length of that.
    alone: np.ndarray
    whole: np.ndarray

    @property
    def bordered(self) -> np.ndarray:
        """Whether a segment begins at a node that others share."""
        return self.start >= 0

    @property
    def closes(self) -> np.ndarray:
        """Whether it is the last segment of a chain without links."""
        return self.alone & self.back

    @property
    def other(self) -> np.ndarray:
        """The number of the first segment of a chain that one closes; -1 for none."""
        found = np.full(len(self.first), -1)
        first = np.flatnonzero(self.alone & ~self.back)
        order = first[np.argsort(self.target[first])]
        last = np.flatnonzero(self.closes & np.isin(self.target, self.target[first]))
        found[last] = order[np.searchsorted(self.target[order], self.target[last])]
        return found

    def sorted(self) -> "Segments":
        """Those of chains without links first, then others without a border, of equal lengths together."""
        # Of two chains of about the same length the first segments come first.
        chains, of = np.unique(np.stack([-self.whole, self.target]), axis=1, return_inverse=True)
        pair = np.where(self.alone, of.reshape(-1) // 2, chains.shape[1])
        order = np.lexsort((self.first, -self.count, self.back, pair, self.bordered, ~self.alone))
        return Segments(*(array[order] for array in vars(self).values()))


def runs_of(layout: Layout) -> tuple[np.ndarray, ...]:
    """The places of the first and last nodes of runs of successive cells of this rank, and whether
    other runs or links share these nodes.
    """
    own = layout.cell_places[: len(layout.cells) - len(layout.links)]
    own = np.sort(own[layout.own_cells[own] > 0.5])
    breaks = np.flatnonzero(np.diff(own) != 1) + 1
    first = own[np.append(0, breaks)[: len(own)]]
    last = own[np.append(breaks, len(own))[: len(first)] - 1] + 1
    shared = np.concatenate([np.array([], dtype=int), *layout.shared])
    # Beside a cell of this rank without a ghost a chain ends.
    ends = layout.starts + layout.lengths
    shares_first = np.isin(first, shared) | ~np.isin(first, layout.starts)
    return first, last, shares_first, np.isin(last, shared) | ~np.isin(last, ends)


def segments_of(layout: Layout, *, from_right: bool) -> Segments:
    """The segments of the chains of this rank; a free chain is one (``from_right``) or two halves."""
    s, e, left, right = runs_of(layout)
    length, block = e - s, s // WIDTH
    blocks = (e - 1) // WIDTH + 1 - block
    half = blocks // 2
    middle = (block + half) * WIDTH
    cut = (~left & ~right & (half > 0) & (not from_right)) | (left & right & (blocks >= _LONG))
    forwards = cut | right
    backwards = cut | ~right
    found = []
    for which, back in ((forwards, False), (backwards, True)):
        own, far = (e, s) if back else (s, e)
        target = np.where(cut, middle, far)
        border = right if back else left
        border = border & (cut | (left & right))
        begin = own + border * (-1 if back else 1)
        found.append(
            [
                np.where(cut & back, block + half, block),
                np.where(cut & (not back), block + half, block + blocks),
                target, np.where(border, own, -1), begin, np.abs(target - begin),
                np.full(len(s), back), ~left & ~right, length,
            ]
        )  # fmt: skip
        found[-1] = [array[which] for array in found[-1]]
    return Segments(*map(np.concatenate, zip(*found, strict=True))).sorted()


def single_nodes(layout: Layout) -> Segments:
    """The ends of the runs of this rank that other runs or links share, each as a segment."""
    first, last, shares_first, shares_last = runs_of(layout)
    places = np.unique(np.concatenate([first[shares_first], last[shares_last]]))
    zero, none, off = np.zeros_like(places), np.full_like(places, -1), np.zeros(len(places), bool)
    block = places // WIDTH
    return Segments(block, block + 1, places, none, places, zero, off, off, zero)


def numbers_everywhere(function: Function) -> np.ndarray:
    """For each local node of a function, ghosts included, its number on all ranks."""
    space = function.function_space()
    if space.comm.size == 1:
        return np.arange(space.node_set.total_size)
    return np.asarray(scalar_space(space).dof_dset.lgmap.indices, dtype=int)


class TreeOfChains:
    """The segments and the small system of a solve, in ``struct`` for the compiled code."""

    # The small system is the same on all ranks; each adds what its segments and links give. whole: its
    # pivots are chosen among all unknowns.
    def __init__(self, layout: Layout, chain: ChainProgram, *, whole: bool = False) -> None:
        self._layout, self._chain = layout, chain
        unknowns, n = chain.unknowns, chain.in_chains
        self._m, self._n = len(unknowns), n
        if chain.local:
            segments = single_nodes(layout)
        else:
            segments = segments_of(layout, from_right=chain.from_right)
        self._segments = segments
        linked = layout.cell_places[len(layout.cells) - len(layout.links) :]
        #: The first places of links, and whether they belong to this rank.
        self._linked, self._own_links = linked, layout.own_cells[linked] > 0.5
        self._number_nodes(segments)
        self._number_unknowns(unknowns)
        of_links = self._links()
        own = linked[self._own_links]
        pairs = np.stack([segments.target, segments.start])[:, segments.bordered]
        pairs = self._node[np.hstack([pairs, np.stack([own, own + WIDTH])])].T
        pairs = np.concatenate(layout.comm.allgather(pairs))
        system = SmallSystem(self._of, self._given, self._component >= n, pairs, whole=whole)
        entries = np.array(sorted(chain.link_tangent), dtype=int).reshape(-1, 2)
        source, rows, columns = self._matrix_entries(of_links, entries)
        there = (rows >= 0) & (columns >= 0)
        there[there] = ~self._given[rows[there]] & ~self._given[columns[there]]
        to = system.address(rows[there], columns[there]).astype(np.int32)
        source = source[there].astype(np.int32)
        # Numbers of unknowns, each with one of its places: in blocks of all unknowns, in the chains'
        # blocks of their unknowns, and in blocks of all unknowns of links.
        places = np.flatnonzero(self._node >= 0)
        at = _addresses(self._number[self._node[places]], places)
        places = places[places < layout.chain_blocks * WIDTH]
        chains = _addresses(self._number[self._node[places], :n], places)
        links = _addresses(of_links, np.arange(len(of_links)))
        where = self._own_places(unknowns)
        component = self._component.astype(np.int32)
        free = np.where(self._given, 0.0, 1.0)
        made, ids = self._structs()
        self._kept = [system, chains, links, source, to, at, where, component, free, made, ids]
        self.struct = Tree(
            segments=address(made), count=len(segments.first),
            alone=int(segments.alone.sum()), bordered=int((~segments.bordered).sum()),
            inner=self._inner.ctypes.data,
            fronts=address(system.struct), size=len(where), where=where.ctypes.data,
            small=system.memory[system.memory.size - 2 * len(where) - 2 :].ctypes.data,
            free=free.ctypes.data,
            component=component.ctypes.data, at=at.ctypes.data, of_chains=chains.ctypes.data,
            of_links=links.ctypes.data, places=len(at), chain_places=len(chains),
            link_places=len(links), to=to.ctypes.data, entries=len(to),
            **{"from": source.ctypes.data},
        )  # fmt: skip

    @cached_property
    def whole(self) -> "TreeOfChains | None":
        """The same with pivots among all unknowns of the small system; None if there are too many or none."""
        if not 0 < len(self._of) <= _DENSE:
            return None
        return TreeOfChains(self._layout, self._chain, whole=True)

    def _number_nodes(self, segments: Segments) -> None:
        """Number the nodes of the small system on all ranks: ends of segments, and those of links."""
        layout = self._layout
        (part,) = parts_of(layout.mesh.coordinates)
        places, dofs = layout.all_places(part)
        #: The number of the node at each place on all ranks.
        everywhere = np.full((layout.blocks + 1) * WIDTH, -1)
        everywhere[places] = numbers_everywhere(part.function)[dofs]
        alone, own = segments.target[segments.alone], self._linked[self._own_links]
        ends = [segments.target[~segments.alone], segments.start[segments.bordered]]
        ends = everywhere[np.concatenate([*ends, own, own + WIDTH])]
        #: Of each node its number on all ranks.
        self._nodes = np.unique(np.concatenate(layout.comm.allgather(ends)))
        known = np.searchsorted(self._nodes, everywhere)
        known[known == len(self._nodes)] = -1
        #: The number of the node in the small system at each place; -1 for none.
        self._node = np.where(np.append(self._nodes, -2)[known] == everywhere, known, -1)
        self._inner = aligned(layout.size(1))
        of_chains = layout.cell_places[: len(layout.cells) - len(layout.links)]
        of_chains = of_chains[layout.own_cells[of_chains] > 0.5]
        for places in (of_chains, of_chains + 1):
            self._inner[places] = self._node[places] < 0
        self._inner[alone] = 0.0

    def _number_unknowns(self, unknowns: Sequence[Unknown]) -> None:
        """Number the unknowns of the small system: a multiplier that is prescribed is none."""
        layout = self._layout
        held = np.zeros((layout.size(1), self._m), dtype=bool)
        for i, u in enumerate(unknowns):
            if u.held is not None:
                values = u.held.function.dat.data_ro_with_halos.reshape(-1, u.held.size)
                places, dofs = layout.all_places(u.held)
                held[places, i] = values[dofs, u.component] > 0.5
        wrong = bool(np.any(~held[self._inner > 0.5, self._n :]))
        if any(layout.comm.allgather(wrong)):
            raise CannotCompile("a multiplier has no equation")
        of_nodes = np.zeros((len(self._nodes), self._m), dtype=int)
        here = np.flatnonzero(self._node >= 0)
        of_nodes[self._node[here]] = held[here]
        of_nodes = layout.comm.allreduce(of_nodes) > 0
        there = ~of_nodes | (np.arange(self._m) < self._n)
        #: The number of each unknown of each node; -1 for none.
        self._number = np.full((len(self._nodes) + 1, self._m), -1)
        self._number[:-1][there] = np.arange(there.sum())
        self._of, self._component = np.nonzero(there)
        self._given = of_nodes[there]

    def _own_places(self, unknowns: Sequence[Unknown]) -> np.ndarray:
        """The place of each unknown; -1 for those of other ranks."""
        layout, found = self._layout, np.full((2, len(self._nodes)), -1)
        for k, own in enumerate((layout.own_cells, layout.own_nodes)):
            here = np.flatnonzero((self._node[: len(own)] >= 0) & (own > 0.5))
            found[k, self._node[here]] = here
        nodal = np.array([u.part.nodal for u in unknowns], dtype=int)
        return found[nodal[self._component], self._of].astype(np.int32)

    def _links(self) -> np.ndarray:
        """The numbers of the unknowns of each link; -1 for those of other ranks."""
        nodes = np.stack([self._node[self._linked], self._node[self._linked + WIDTH]])
        nodes[:, ~self._own_links] = -1
        return np.hstack([self._number[nodes[0]], self._number[nodes[1]]])

    def _matrix_entries(self, of_links: np.ndarray, entries: np.ndarray) -> list[np.ndarray]:
        """Indices of matrix entries of segments and links, and the numbers of their unknowns."""
        n, s = self._n, self._segments
        ends = self._number[self._node[np.stack([s.target, s.start])], :n]
        ends[1, s.start < 0] = -1
        found = []
        for k, (a, b) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))):
            index = 4 * np.arange(len(s.first))[:, None, None] + k
            index = index * n * n + np.arange(n * n).reshape(n, n)
            found.append(np.broadcast_arrays(index, ends[a][:, :, None], ends[b][:, None, :]))
        links, count = np.arange(len(of_links)), len(entries)
        first = -(-4 * n * n * len(s.first) // WIDTH) * WIDTH
        index = links // WIDTH * count * WIDTH + links % WIDTH
        index = first + index[:, None] + WIDTH * np.arange(count)
        found.append([index, of_links[:, entries[:, 0]], of_links[:, entries[:, 1]]])
        return [np.concatenate([a.ravel() for a in same]) for same in zip(*found, strict=True)]

    def _structs(self):
        """The structs of the segments, and the numbers of the unknowns at their two ends."""
        s = self._segments
        ids = self._number[self._node[np.stack([s.target, s.start], 1)], : self._n]
        ids[s.start < 0, 1] = -1
        ids[ids >= 0] = np.where(self._given[ids[ids >= 0]], -1, ids[ids >= 0])
        ids = np.ascontiguousarray(ids, dtype=np.int32)
        names = ("first", "last", "target", "begin", "start", "count", "other", "back", "bordered",
                 "closes")  # fmt: skip
        rows = zip(*(getattr(s, name).tolist() for name in names), strict=True)
        step = ids[0].nbytes if len(ids) else 0
        made = [
            Segment(**dict(zip(names, row, strict=True)), ids=ids.ctypes.data + k * step)
            for k, row in enumerate(rows)
        ]
        return array_of(Segment, made), ids


def _addresses(numbers: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Pairs of the numbers of unknowns and their addresses in [block][unknown][lane]."""
    count = numbers.shape[1]
    address = (places // WIDTH)[:, None] * count + np.arange(count)
    address = address * WIDTH + (places % WIDTH)[:, None]
    there = numbers >= 0
    return np.ascontiguousarray(np.stack([numbers[there], address[there]], 1), dtype=np.int32)


@dataclass
class Elimination:
    """Nodes that are eliminated together (``own``), and the nodes coupled with them then (``others``)."""

    own: list[int]
    others: set[int]


def elimination_order(pairs: np.ndarray, sizes: np.ndarray, ready: np.ndarray) -> list[Elimination]:
    """The fronts of an elimination with least fill, each before the ones that its others belong to."""
    # Nodes whose elimination adds no entries come first, so trees are eliminated from their leaves
    # (Tinney & Walker, Direct solutions of sparse network equations by optimally ordered triangular
    # factorization, Proc. IEEE 55, 1967).
    weights = sizes.tolist()
    coupled: list[set[int]] = [set() for _ in weights]
    for a, b in pairs.tolist():
        if a != b:
            coupled[a].add(b)
            coupled[b].add(a)

    def price(node: int) -> tuple:
        others = coupled[node]
        fill = sum(weights[a] * weights[b] for a in others for b in others - coupled[a] if a < b)
        return fill, sum(weights[a] for a in others), not ready[node], node

    heap, left, found = [price(node) for node in range(len(weights))], set(range(len(weights))), []
    heapq.heapify(heap)
    while heap:
        cost = heapq.heappop(heap)
        node = cost[-1]
        if node not in left or cost != price(node):
            continue
        left.discard(node)
        others = coupled[node]
        found.append(Elimination([node], set(others)))
        for other in others:
            coupled[other] |= others
            coupled[other] -= {node, other}
        for changed in others.union(*(coupled[other] for other in others)):
            heapq.heappush(heap, price(changed))
    return _joined(found)


def _joined(found: list[Elimination]) -> list[Elimination]:
    """The fronts, with a front merged into its parent if both have the same nodes."""
    at = {front.own[0]: k for k, front in enumerate(found)}
    gone: set[int] = set()
    for k, front in enumerate(found):
        if not front.others:
            continue
        parent = found[min(at[node] for node in front.others)]
        if front.others == parent.others.union(parent.own):
            parent.own = [*front.own, *parent.own]
            gone.add(k)
            for node in front.own:
                at[node] = at[parent.own[-1]]
    return [front for k, front in enumerate(found) if k not in gone]


class SmallSystem:
    """Dense matrices of the nodes that are eliminated together, in ``struct`` for the compiled code."""

    # node: of each unknown; held: whether it is prescribed; carried: whether it belongs to links alone;
    # pairs: nodes that segments or links couple; whole: all are eliminated together, so that pivots are
    # chosen among all unknowns.
    def __init__(
        self, node: np.ndarray, held: np.ndarray, carried: np.ndarray, pairs: np.ndarray,
        *, whole: bool = False,
    ) -> None:  # fmt: skip
        self._size, self._held, self._carried = len(node), held, carried
        carries = np.bincount(node, carried) > 0
        found = elimination_order(pairs, np.bincount(node), carries) if len(node) else []
        if whole and found:
            found = [Elimination([*range(len(carries))], set())]
        of_node = np.empty(len(carries), dtype=int)
        for k, front in enumerate(found):
            of_node[front.own] = k
        self._front = of_node[node]
        parents = [min(of_node[[*f.others]], default=-1) for f in found]
        ids = self._numbers(node, [f.others for f in found], parents)
        # The place of each unknown in each front.
        none = np.array([], dtype=int)
        keys = np.concatenate([none, *(k * self._size + own for k, own in enumerate(ids))])
        places = np.concatenate([none, *(np.arange(len(own)) for own in ids)])
        order = np.argsort(keys)
        self._keys, self._places = keys[order], places[order]
        sizes = np.array([len(own) for own in ids], dtype=int)
        self._row = -(-sizes // WIDTH) * WIDTH
        ends = np.cumsum(sizes * self._row)
        self._start = ends - sizes * self._row
        #: All matrices, and after them right-hand sides of the unknowns and two more numbers.
        self.memory = aligned(int(ends.max(initial=0)) + 2 * self._size + 2)
        matrices = self.memory[: ends.max(initial=0)]
        work = aligned(2 * int(self._row.max(initial=0)) + WIDTH)
        given = np.flatnonzero(held)
        ones = self.address(given, given).astype(np.int32)
        self._kept = [matrices, work, ones]
        made = array_of(
            Front, [self._struct(k, ids[k], parents[k], matrices) for k in range(len(ids))]
        )
        self._kept.append(made)
        self.struct = Fronts(
            address(made), len(made), matrices.ctypes.data, matrices.size, ones.ctypes.data, len(ones),
            work.ctypes.data,
        )  # fmt: skip

    def _numbers(self, node: np.ndarray, others: list[set], parents: list[int]) -> list[np.ndarray]:
        """The unknowns of each front: prescribed, multipliers, the rest of its own, then its parent's."""
        own = np.lexsort((~self._carried, ~self._held, self._front))
        found = np.split(own, np.cumsum(np.bincount(self._front))[:-1])[: len(others)]
        for k in range(len(found) - 1, -1, -1):
            if others[k]:
                behind = found[parents[k]]  # these keep the parent's order
                found[k] = np.append(found[k], behind[np.isin(node[behind], [*others[k]])])
        return found

    def _place(self, front: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        return self._places[np.searchsorted(self._keys, front * self._size + numbers)]

    def address(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Positions of matrix entries: in the front that eliminates one of the two unknowns first."""
        front = np.minimum(self._front[rows], self._front[columns])
        row, column = self._place(front, rows), self._place(front, columns)
        return self._start[front] + row * self._row[front] + column

    def _struct(self, k: int, ids: np.ndarray, parent: int, matrices: np.ndarray) -> Front:
        row, size = self._row[k], len(ids)
        own = int((self._front[ids] == k).sum())
        to = self._place(np.full(size - own, parent), ids[own:]).astype(np.int32)
        first = np.flatnonzero(np.append(True, np.diff(to) != 1))[: size - own]
        lengths = np.diff(np.append(first, size - own))
        memory = {
            "L": aligned(own * row),
            "U": aligned(own * -(-own // WIDTH) * WIDTH),
            "inverse": aligned(own),
            "column": np.zeros(own, dtype=np.int32),
            "ids": np.ascontiguousarray(ids, dtype=np.int32),
            "to": to,
            "runs": np.ascontiguousarray(np.stack([first, to[first], lengths], 1), dtype=np.int32),
        }
        self._kept.append(memory)
        return Front(
            own=own, size=size, width=row // WIDTH, parent=parent,
            A=matrices[self._start[k] :].ctypes.data, n_runs=len(first),
            **{name: array.ctypes.data for name, array in memory.items()},
        )  # fmt: skip
