"""Chains that meet: the segments that are eliminated, and the small system of the nodes between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fdgeom.compile.build import Segment, Tree, address, array_of
from fdgeom.compile.chain import Unknown
from fdgeom.compile.fronts import SmallSystem
from fdgeom.compile.layout import WIDTH, Layout, aligned
from fdgeom.errors import CannotCompile

#: A chain between two links of at least so many blocks of cells is eliminated in two halves.
_LONG = 4
#: More unknowns of a small system are not eliminated as one dense matrix.
_DENSE = 1000


@dataclass
class Segments:
    """Segments of chains, as arrays; the members are those of `Segment` in tree.hpp."""

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


def segments_of(layout: Layout) -> Segments:
    """The segments of the chains of a layout; a free chain consists of two halves."""
    shared = np.zeros(layout.blocks * WIDTH, dtype=bool)
    for places in layout.shared:
        shared[places] = True
    s, length = layout.starts, layout.lengths
    e = s + length
    left, right = shared[s], shared[e]
    block, blocks = s // WIDTH, -(-length // WIDTH)
    half = blocks // 2
    middle = s + half * WIDTH
    cut = (~left & ~right & (half > 0)) | (left & right & (blocks >= _LONG))
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
    """The places of chains that other chains or links share, each as a segment."""
    shared = np.concatenate([np.array([], dtype=int), *layout.shared])
    places = np.sort(shared[shared < layout.chain_blocks * WIDTH])
    zero, none, off = np.zeros_like(places), np.full_like(places, -1), np.zeros(len(places), bool)
    block = places // WIDTH
    return Segments(block, block + 1, places, none, places, zero, off, off, zero)


class TreeOfChains:
    """The segments and the small system of a solve, in ``struct`` for the compiled code."""

    # unknowns: those of a node, first the n of the chains' cells; entries: row and column of each entry
    # of a link's matrix that is not zero; local: whether the chains' cells couple no nodes.
    def __init__(
        self, layout: Layout, unknowns: Sequence[Unknown], n: int,
        entries: Sequence[tuple[int, int]], *, local: bool = False, whole: bool = False,
    ) -> None:  # fmt: skip
        self._made_of = layout, unknowns, n, entries
        self._layout, self._m, self._n = layout, len(unknowns), n
        segments = single_nodes(layout) if local else segments_of(layout)
        self._segments = segments
        self._number_nodes(segments)
        self._number_unknowns(self._held(unknowns))
        of_links = self._links()
        linked = self._node[np.stack([self._linked, self._linked + WIDTH])]
        pairs = np.stack([segments.target, segments.start])[:, segments.bordered]
        pairs = np.hstack([self._node[pairs], linked]).T
        system = SmallSystem(self._of, self._given, self._component >= n, pairs, whole=whole)
        source, rows, columns = self._matrix_entries(
            of_links, np.array(entries, dtype=int).reshape(-1, 2)
        )
        there = (rows >= 0) & (columns >= 0)
        there[there] = ~self._given[rows[there]] & ~self._given[columns[there]]
        to = system.address(rows[there], columns[there]).astype(np.int32)
        source = source[there].astype(np.int32)
        at, chains, links = self._places(), self._in_chains(), self._in_links(of_links)
        where = self._home[self._of].astype(np.int32)
        component = self._component.astype(np.int32)
        made, ids = self._structs()
        self._kept = [system, chains, links, source, to, at, where, component, made, ids]
        self.struct = Tree(
            segments=address(made), count=len(segments.first),
            alone=int(segments.alone.sum()), bordered=int((~segments.bordered).sum()),
            inner=self._inner.ctypes.data,
            fronts=address(system.struct), size=len(where), where=where.ctypes.data,
            component=component.ctypes.data, at=at.ctypes.data, of_chains=chains.ctypes.data,
            of_links=links.ctypes.data, places=len(at), chain_places=len(chains),
            link_places=len(links), to=to.ctypes.data, entries=len(to),
            **{"from": source.ctypes.data},
        )  # fmt: skip

    @cached_property
    def whole(self) -> "TreeOfChains | None":
        """The same with pivots among all unknowns of the small system; None if there are too many."""
        if len(self._of) > _DENSE:
            return None
        return TreeOfChains(*self._made_of, whole=True)

    def _number_nodes(self, segments: Segments) -> None:
        """Number the nodes of the small system: those with several places, of links, and middle ones."""
        layout = self._layout
        self._linked = layout.cell_places[len(layout.cells) - len(layout.links) :]
        self._node = np.full((layout.blocks + 1) * WIDTH, -1)
        for k, places in enumerate(layout.shared):
            self._node[places] = k
        alone = segments.target[segments.alone]
        targets = segments.target[~segments.alone]
        targets = np.unique(np.concatenate([targets, self._linked, self._linked + WIDTH]))
        middle = targets[self._node[targets] < 0]
        self._node[middle] = len(layout.shared) + np.arange(len(middle))
        #: The places of each node.
        self._at = [*layout.shared, *middle[:, None]]
        self._home = np.array([places[0] for places in self._at], dtype=int)
        self._inner = aligned(layout.size(1))
        self._inner[: layout.chain_blocks * WIDTH] = layout.mask[: layout.chain_blocks * WIDTH]
        self._inner[self._node[: len(self._inner)] >= 0] = 0.0
        self._inner[alone] = 0.0

    def _held(self, unknowns: Sequence[Unknown]) -> np.ndarray:
        """Whether each unknown is prescribed at each place; CannotCompile if others have no equation."""
        layout = self._layout
        held = np.zeros((layout.size(1), self._m), dtype=bool)
        for i, u in enumerate(unknowns):
            if u.held is not None:
                values = u.held.function.dat.data_ro.reshape(-1, u.held.size)
                held[:, i] = values[layout.dofs(u.held), u.component] > 0.5
        if np.any(~held[self._inner > 0.5, self._n :]):
            raise CannotCompile("a multiplier has no equation")
        return held

    def _number_unknowns(self, held: np.ndarray) -> None:
        """Number the unknowns of the small system: a multiplier that is prescribed is none."""
        nodes, components = np.arange(len(self._at)), np.arange(self._m)
        there = ~held[self._home] | (components < self._n)
        #: The number of each unknown of each node; -1 for none.
        self._number = np.full((len(nodes) + 1, self._m), -1)
        self._number[:-1][there] = np.arange(there.sum())
        self._of, self._component = np.nonzero(there)
        self._given = held[self._home][there]

    def _links(self) -> np.ndarray:
        """The numbers of the unknowns of each link."""
        nodes = np.stack([self._node[self._linked], self._node[self._linked + WIDTH]])
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

    def _places(self) -> np.ndarray:
        """Numbers of unknowns, each with one of its places in blocks of all unknowns."""
        nodes = np.repeat(np.arange(len(self._at)), [len(places) for places in self._at])
        places = np.concatenate([np.array([], dtype=int), *self._at])
        return self._addresses(self._number[nodes], places)

    def _in_chains(self) -> np.ndarray:
        """Numbers of unknowns, each with one of its places in the chains' blocks of their unknowns."""
        places = np.flatnonzero(self._node[: self._layout.chain_blocks * WIDTH] >= 0)
        return self._addresses(self._number[self._node[places], : self._n], places)

    def _in_links(self, of_links: np.ndarray) -> np.ndarray:
        """Numbers of unknowns, each with its place in blocks of all unknowns of links."""
        return self._addresses(of_links, np.arange(len(of_links)))

    @staticmethod
    def _addresses(numbers: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Pairs of the numbers of unknowns and their addresses in [block][unknown][lane]."""
        count = numbers.shape[1]
        address = (places // WIDTH)[:, None] * count + np.arange(count)
        address = address * WIDTH + (places % WIDTH)[:, None]
        there = numbers >= 0
        return np.ascontiguousarray(np.stack([numbers[there], address[there]], 1), dtype=np.int32)

    def _structs(self):
        """The structs of the segments, and the numbers of the unknowns at their two ends."""
        s = self._segments
        ids = self._number[self._node[np.stack([s.target, s.start], 1)], : self._n]
        ids[s.start < 0, 1] = -1
        ids[ids >= 0] = np.where(self._given[ids[ids >= 0]], -1, ids[ids >= 0])
        ids = np.ascontiguousarray(ids, dtype=np.int32)
        names = (
            "first",
            "last",
            "target",
            "begin",
            "start",
            "count",
            "other",
            "back",
            "bordered",
            "closes",
        )
        rows = zip(*(getattr(s, name).tolist() for name in names), strict=True)
        step = ids[0].nbytes if len(ids) else 0
        made = [Segment(*row, ids=ids.ctypes.data + k * step) for k, row in enumerate(rows)]
        return array_of(Segment, made), ids
