"""Memory for the elimination between the pieces in a fixed order; see fronts.hpp."""

import ctypes

import numpy as np

from fdgeom.solvers.chain import structs
from fdgeom.solvers.chain.between import Between
from fdgeom.solvers.chain.layout import PieceLayout, address, aligned
from fdgeom.solvers.elimination import eliminated


class Fronts:
    """Dense matrices of the nodes that are eliminated together, in ``struct`` for the compiled code."""

    def __init__(self, between: Between, layout: PieceLayout) -> None:
        self._between, self._layout = between, layout
        _, node = np.unique(between.node, return_inverse=True)
        carries = np.bincount(node, between.carried) > 0
        found = eliminated(self._pairs(node), np.bincount(node), carries)
        of_node = np.empty(len(carries), dtype=int)
        for k, front in enumerate(found):
            of_node[front.own] = k
        self._front = of_node[node]
        parents = [min(of_node[[*f.others]], default=-1) for f in found]
        ids = self._numbers(node, [f.others for f in found], parents)
        # The place of each unknown in each front.
        keys = np.concatenate([k * between.size + numbers for k, numbers in enumerate(ids)])
        places = np.concatenate([np.arange(len(numbers)) for numbers in ids])
        order = np.argsort(keys)
        self._keys, self._places = keys[order], places[order]
        lanes = layout.lanes
        self._row = np.array([-(-len(numbers) // lanes) * lanes for numbers in ids])
        ends = np.cumsum([len(numbers) * row for numbers, row in zip(ids, self._row, strict=True)])
        self._start = np.append(0, ends[:-1])
        matrices, work = aligned((ends[-1],)), aligned((2 * self._row.max() + lanes,))
        held = np.flatnonzero(between.held)
        ones = self._address(held, held).astype(np.int32)
        self._kept = [matrices, work, ones]
        made = [self._struct(k, ids[k], parents[k], matrices) for k in range(len(ids))]
        made = (structs.Front * len(made))(*made)
        self._kept.append(made)
        self.struct = structs.Fronts(
            ctypes.cast(made, ctypes.c_void_p), len(made), address(matrices), matrices.size,
            address(ones), len(ones), address(work),
        )  # fmt: skip

    def _pairs(self, node: np.ndarray) -> np.ndarray:
        """The nodes at the two ends of each piece and of each link."""
        sides = zip(self._between.left, self._between.right, strict=True)
        met = [(a.max(axis=0), b.max(axis=0)) for a, b in sides if a.max() >= 0]
        return np.vstack([node[[a, b]].T for a, b in met])

    def _numbers(self, node: np.ndarray, others: list[set], parents: list[int]) -> list[np.ndarray]:
        """The unknowns of each front: prescribed, multipliers, the rest of its own, then its parent's."""
        own = np.lexsort((~self._between.carried, self._between.held == 0, self._front))
        found = np.split(own, np.cumsum(np.bincount(self._front))[:-1])
        for k in range(len(found) - 1, -1, -1):
            if others[k]:
                behind = found[parents[k]]  # these keep the parent's order
                found[k] = np.append(found[k], behind[np.isin(node[behind], [*others[k]])])
        return found

    def _place(self, front: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        return self._places[np.searchsorted(self._keys, front * self._between.size + numbers)]

    def _address(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Positions of matrix entries: in the front that eliminates one of the two unknowns first."""
        front = np.minimum(self._front[rows], self._front[columns])
        row, column = self._place(front, rows), self._place(front, columns)
        return self._start[front] + row * self._row[front] + column

    def _struct(self, k: int, ids: np.ndarray, parent: int, matrices: np.ndarray) -> structs.Front:
        lanes, row, size = self._layout.lanes, self._row[k], len(ids)
        own = int((self._front[ids] == k).sum())
        to = self._place(np.full(size - own, parent), ids[own:]).astype(np.int32)
        first = (
            np.flatnonzero(np.append(True, np.diff(to) != 1)) if size > own else np.array([], int)
        )
        lengths = np.diff(np.append(first, size - own))
        memory = {
            "L": aligned((own, row)),
            "U": aligned((own, -(-own // lanes) * lanes)),
            "inverse": aligned((own,)),
            "column": np.zeros(own, dtype=np.int32),
            "ids": np.ascontiguousarray(ids, dtype=np.int32),
            "to": to,
            "runs": np.ascontiguousarray(np.stack([first, to[first], lengths], 1), dtype=np.int32),
        }
        self._kept.append(memory)
        return structs.Front(
            own=own, size=size, width=row // lanes, parent=parent,
            A=matrices[self._start[k] :].ctypes.data, n_runs=len(first),
            **{name: address(array) for name, array in memory.items()},
        )  # fmt: skip

    def entries(self, g: int, coupled: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Indices of entries in the four blocks of a group, and their places in the memory of the fronts."""
        between, group = self._between, self._layout.groups[g]
        sides = between.left[g], between.right[g]
        n, lanes = sides[0].shape
        if coupled is None:
            coupled = np.arange(4 * n * n)
        block, i, j = np.unravel_index(coupled, (4, n, n))
        both = np.stack(sides)
        rows, columns = both[block // 2, i], both[block % 2, j]
        there = group.there & (rows >= 0) & (columns >= 0)
        there &= between.held[np.maximum(rows, 0)] == 0
        which, lane = np.nonzero(there)
        into = self._address(rows[which, lane], columns[which, lane])
        return (coupled[which] * lanes + lane).astype(np.int32), into.astype(np.int32)
