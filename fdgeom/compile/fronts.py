"""Elimination of the nodes where chains meet: its order, and its memory; see fronts.hpp."""

import heapq
from dataclasses import dataclass

import numpy as np

from fdgeom.compile.build import Front, Fronts, address, array_of
from fdgeom.compile.layout import WIDTH, aligned


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
