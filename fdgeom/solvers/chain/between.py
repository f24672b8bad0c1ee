"""Order and numbering of the unknowns between the pieces of chains."""

from collections.abc import Collection, Sequence

import numpy as np
from firedrake import Function

from fdgeom.solvers.chain.cells import Component
from fdgeom.solvers.chain.layout import PieceLayout, address, aligned
from fdgeom.solvers.chain.ranks import largest_of_all, of_all
from fdgeom.solvers.chain.structs import Reduced
from fdgeom.solvers.chain.topology import narrow_order
from fdgeom.solvers.data import key

Unknowns = Sequence[Component]
Given = dict[int, np.ndarray]


class Between:
    """The unknowns at the ends of pieces and in links, numbered on all ranks."""

    # unknowns: those of a cell of the chains, and those of a link. given: prescribed scalar degrees of
    # freedom, by the key of the part of the unknown. nodes: any function of the nodes. alone: groups
    # whose ends belong to no other piece; they are solved by themselves.
    def __init__(
        self,
        layout: PieceLayout,
        unknowns: tuple[Unknowns, Unknowns],
        given: Given,
        nodes: Function,
        alone: Collection[int] = (),
    ) -> None:
        self._layout, self._given = layout, given
        self._shared = [(g, group) for g, group in enumerate(layout.groups) if g not in alone]
        self._comm = nodes.function_space().comm
        rank, known = self._rank(nodes), layout.everywhere(nodes)
        found, where = [np.zeros((4, 0), dtype=int)], []
        for g, group in self._shared:
            ends = layout.ends(nodes, g)
            for i, c in enumerate(unknowns[group.is_link]):
                numbers = layout.ends(c.function, g)
                for side in range(2):
                    # A value of a cell goes with the node on its left.
                    everywhere = layout.everywhere(c.function)[numbers[side]]
                    keys = c.number * (layout.largest + 1) + everywhere
                    keys = np.where(self._there(c, numbers[side], unknowns[0]), keys, -1)
                    where.append((g, side, i, keys))
                    used = group.there & (keys >= 0)
                    held = self._held(c, numbers[side])
                    carried = np.full(len(keys), c not in unknowns[0])
                    place = rank[known[ends[side]]]
                    found.append(np.array([keys, place, held, carried])[:, used])
        table = of_all(self._comm, np.hstack(found))
        keys, first = np.unique(table[0], return_index=True)
        order = np.lexsort((keys // (layout.largest + 1), table[1, first]))
        number = np.empty(len(keys), dtype=np.int32)
        number[order] = np.arange(len(keys))
        #: Number of unknowns on all ranks.
        self.size = len(keys)
        #: For each unknown: the place of its node in the order, whether it is prescribed, and whether
        #: it belongs to links alone (a multiplier).
        self.node = table[1, first][order]
        self.held = np.ascontiguousarray(table[2, first][order].astype(np.uint8))
        self.carried = table[3, first][order].astype(bool)
        sides = [
            [
                np.full((len(unknowns[g.is_link]), layout.lanes), -1, dtype=np.int32)
                for g in layout.groups
            ]
            for _ in range(2)
        ]
        for g, side, i, wanted in where:
            there = wanted >= 0
            sides[side][g][i, there] = number[np.searchsorted(keys, wanted[there])]
        #: For each group the numbers of the unknowns at the two ends, (unknowns, lanes); -1 for none.
        self.left, self.right = sides
        reach = max(map(self._reach, self.left, self.right))
        self.band = int(largest_of_all(self._comm, reach))

    def _rank(self, nodes: Function) -> np.ndarray:
        """The place of each node, by its number on all ranks, in a narrow order."""
        layout, everywhere = self._layout, self._layout.everywhere(nodes)
        pairs = [
            everywhere[np.array(layout.ends(nodes, g))[:, group.there]] for g, group in self._shared
        ]
        pairs = np.hstack([np.zeros((2, 0), dtype=int), *pairs])
        known, pairs = np.unique(of_all(self._comm, pairs), return_inverse=True)
        rank = np.zeros(layout.largest + 1, dtype=int)
        order = narrow_order(pairs.reshape(2, -1).T)
        rank[known[order]] = np.arange(len(order))
        return rank

    def _held(self, c: Component, numbers: np.ndarray) -> np.ndarray:
        return np.isin(numbers * c.block + c.component, self._given.get(key(c.function), []))

    def _there(self, c: Component, numbers: np.ndarray, of_chains: Unknowns) -> np.ndarray:
        """A mask of existing unknowns: a multiplier without a condition is none."""
        there = numbers >= 0
        return there if c in of_chains else there & ~self._held(c, numbers)

    @staticmethod
    def _reach(left: np.ndarray, right: np.ndarray) -> int:
        both = np.vstack([left, right])
        largest = both.max(axis=0)
        least = np.where(both >= 0, both, largest).min(axis=0)
        return int((largest - least).max())

    def _row_ends(self) -> np.ndarray:
        """The last nonzero column of each row of the matrix."""
        found = np.arange(self.size, dtype=np.int32)
        for left, right in zip(self.left, self.right, strict=True):
            both = np.vstack([left, right])
            last = np.broadcast_to(both.max(axis=0), both.shape)
            np.maximum.at(found, both[both >= 0], last[both >= 0])
        return np.ascontiguousarray(largest_of_all(self._comm, found))

    def struct(self, lanes: int) -> tuple[Reduced, list[np.ndarray]]:
        """The struct of the reduced system, and the memory that it points to."""
        window, below = -(-2 * self.band // lanes), -(-self.band // lanes)
        length = -(-(self.band + 2 * lanes + 2) // lanes) * lanes + (window + 1) * lanes
        n = self.size
        memory = [
            aligned((n * length + 2 * (window + 2) * lanes,)),
            aligned((n * below * lanes + lanes,)),
            aligned((n + (window + 3) * lanes,)),
            aligned((n,)),
            aligned((n,)),
            np.zeros(n, dtype=np.int32),
            self.held,
            self._row_ends(),
            np.zeros(n, dtype=np.int32),
        ]
        return Reduced(n, self.band, length, *map(address, memory)), memory
