"""Linear conditions C x = 0 on displacements: their null space and their forces."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sparse

# Of the largest singular value of a group of conditions of length 1: those below say nothing new.
_NEW = 1e-9


class Conditions:
    """The null space of conditions, and their forces, by groups that share displacements."""

    # A stiffness K with multipliers, [[K, Cᵀ], [C, 0]], has the inertia of NᵀKN and one positive
    # and one negative eigenvalue more for each condition: NᵀKN alone decides stability, and has no
    # modes that belong to multipliers.
    def __init__(self, matrix: sparse.spmatrix) -> None:
        matrix = sparse.csr_matrix(matrix)
        self._count, self._size = matrix.shape
        self._groups = []
        basis, untouched = [], np.ones(self._size, dtype=bool)
        for rows, columns in _groups(matrix):
            block = matrix[rows][:, columns].toarray()
            length = np.linalg.norm(block, axis=1, keepdims=True)
            # Rows that act on held displacements alone are no conditions.
            block = block / np.where(length > 0, length, 1.0)
            left, values, right = np.linalg.svd(block)
            rank = int(np.sum(values > _NEW * values.max(initial=0.0)))
            inverse = (left[:, :rank] / values[:rank]) @ right[:rank]
            self._groups.append((rows, columns, inverse / np.where(length > 0, length, 1.0)))
            basis.append((columns, right[rank:].T))
            untouched[columns] = False
        #: N with C N = 0, orthonormal: sparse, displacements × what is left free.
        self.basis = _joined(basis, np.flatnonzero(untouched), self._size)

    def forces(self, residual: np.ndarray) -> np.ndarray:
        """The smallest λ that makes residual + Cᵀλ least."""
        found = np.zeros(self._count)
        for rows, columns, inverse in self._groups:
            found[rows] = -inverse @ residual[columns]
        return found


def _groups(matrix: sparse.csr_matrix) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows that share columns, directly or by others, and these columns."""
    if not matrix.shape[0]:
        return
    pattern = matrix.astype(bool).astype(int)
    count, label = sparse.csgraph.connected_components(pattern @ pattern.T, directed=False)
    for group in range(count):
        rows = np.flatnonzero(label == group)
        yield rows, np.unique(matrix[rows].indices)


def _joined(blocks, untouched: np.ndarray, size: int) -> sparse.csr_matrix:
    """A matrix of dense blocks (rows, values), and of a 1 for each row of none."""
    rows, columns, values, at = [untouched], [np.arange(len(untouched))], [], len(untouched)
    values.append(np.ones(len(untouched)))
    for where, block in blocks:
        i, j = np.broadcast_arrays(where[:, None], at + np.arange(block.shape[1])[None, :])
        rows, columns, values = [*rows, i.ravel()], [*columns, j.ravel()], [*values, block.ravel()]
        at += block.shape[1]
    rows, columns, values = map(np.concatenate, (rows, columns, values))
    return sparse.csr_matrix((values, (rows, columns)), shape=(size, at))
