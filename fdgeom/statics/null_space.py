"""The null space of conditions on many small blocks of unknowns, by block elimination."""

import heapq
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sparse

Condition = tuple[tuple[int, ...], np.ndarray]


def null_space(matrix: sparse.spmatrix, size: int, tolerance: float) -> sparse.csr_matrix:
    """Columns of length 1 that span all x with C x = 0, unknowns × columns, for rows of C of about
    length 1 and of few blocks of ``size`` unknowns.
    """
    # Singular values below the tolerance count as zero. Each block is expressed by its neighbours,
    # and the null space of its own conditions gives columns: block elimination with a singular
    # value decomposition instead of pivots, the block with the fewest neighbours first. So the cost
    # of a tree grows linearly with its blocks.
    count = matrix.shape[1] // size
    of_block: list[dict[int, Condition]] = [{} for _ in range(count)]
    number = 0

    def add(blocks: tuple[int, ...], rows: np.ndarray) -> None:
        nonlocal number
        for b in blocks:
            of_block[b][number] = blocks, rows
        number += 1

    for blocks, rows in _by_blocks(sparse.csr_matrix(matrix), size):
        add(blocks, rows)

    def neighbours(b: int) -> set[int]:
        return {other for blocks, _ in of_block[b].values() for other in blocks} - {b}

    heap = [(len(neighbours(b)), b) for b in range(count)]
    heapq.heapify(heap)
    done = np.zeros(count, dtype=bool)
    order: list[tuple[int, tuple[int, ...], np.ndarray, np.ndarray]] = []
    while heap:
        degree, b = heapq.heappop(heap)
        if done[b]:
            continue
        others = tuple(sorted(neighbours(b)))
        if len(others) > degree:
            heapq.heappush(heap, (len(others), b))
            continue
        done[b] = True
        mine = of_block[b]
        whole = _stacked((b, *others), list(mine.values()), size)
        left, values, right = np.linalg.svd(whole[:, :size])
        rank = int(np.sum(values > tolerance))
        # u_b = by_others u_others + free z.
        by_others = -(right[:rank].T / values[:rank]) @ (left[:, :rank].T @ whole[:, size:])
        order.append((b, others, by_others, right[rank:].T))
        for key, (blocks, _) in list(mine.items()):
            for other in blocks:
                del of_block[other][key]
        rest = left[:, rank:].T @ whole[:, size:]
        if rest.size:
            _, values, right = np.linalg.svd(rest, full_matrices=False)
            kept = values > tolerance
            if kept.any():
                add(others, values[kept, None] * right[kept])
        for other in others:
            heapq.heappush(heap, (len(neighbours(other)), other))
    return _columns(order, count, size)


def _by_blocks(matrix: sparse.csr_matrix, size: int) -> list[Condition]:
    """The rows of a matrix, those of the same blocks together."""
    rows: dict[tuple[int, ...], list[np.ndarray]] = {}
    for k in range(matrix.shape[0]):
        part = slice(matrix.indptr[k], matrix.indptr[k + 1])
        columns, values = matrix.indices[part], matrix.data[part]
        columns, values = columns[values != 0], values[values != 0]
        if not len(columns):
            continue
        blocks = np.unique(columns // size)
        row = np.zeros(len(blocks) * size)
        row[np.searchsorted(blocks, columns // size) * size + columns % size] = values
        rows.setdefault(tuple(blocks.tolist()), []).append(row)
    return [(blocks, np.array(found)) for blocks, found in rows.items()]


def _stacked(blocks: Sequence[int], conditions: Sequence[Condition], size: int) -> np.ndarray:
    """Conditions as rows of one matrix of these blocks."""
    at = {b: k for k, b in enumerate(blocks)}
    whole = np.zeros((sum(len(rows) for _, rows in conditions), len(blocks) * size))
    first = 0
    for own, rows in conditions:
        for k, b in enumerate(own):
            place = slice(at[b] * size, (at[b] + 1) * size)
            whole[first : first + len(rows), place] = rows[:, k * size : (k + 1) * size]
        first += len(rows)
    return whole


def _columns(order, count: int, size: int) -> sparse.csr_matrix:
    """The blocks, each in terms of those that were eliminated after it."""
    width = sum(free.shape[1] for *_, free in order)
    found: list[sparse.csr_matrix] = [sparse.csr_matrix((size, width))] * count
    end = width
    for b, others, by_others, free in reversed(order):
        start = end - free.shape[1]
        own = sparse.csr_matrix(free)
        pad = [sparse.csr_matrix((size, start)), own, sparse.csr_matrix((size, width - end))]
        total = sparse.hstack(pad, format="csr")
        if others:
            total = total + sparse.csr_matrix(by_others) @ sparse.vstack([found[o] for o in others])
        found[b], end = total.tocsr(), start
    basis = sparse.vstack(found, format="csr")
    length = np.sqrt(np.asarray(basis.multiply(basis).sum(axis=0)).ravel())
    return (basis @ sparse.diags(1 / length)).tocsr()
