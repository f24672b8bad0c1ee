"""Sparse linear algebra of statics: whole matrices, null spaces of conditions, eigenpairs."""

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sparse
from firedrake import Function
from petsc4py import PETSc
from scipy.sparse.linalg import LinearOperator, eigs, eigsh

#: x ↦ (K + shift)⁻¹ x.
Inverse = Callable[[np.ndarray], np.ndarray]
# Of the largest singular value of a group of conditions of length 1: those below say nothing new.
_NEW = 1e-9
# Digits where an estimate of the size is wanted.
_ROUGH = 1e-2


# --- whole matrices and vectors on every process ----------------------------------------------------
def gathered(comm, values: np.ndarray) -> np.ndarray:
    """The values of all processes, one after the other."""
    return np.concatenate(comm.allgather(np.array(values)))


def scattered(everything: np.ndarray, function: Function) -> Function:
    """Set a function to the gathered values of all processes."""
    own = function.dat.data_ro
    first = function.function_space().comm.scan(own.size) - own.size
    function.dat.data_wo[...] = everything[first : first + own.size].reshape(own.shape)
    return function


def modes_of(vectors: np.ndarray, free: np.ndarray, space) -> list[Function]:
    """The displacements of all nodes for each column of values of the free ones."""
    found = []
    for k, vector in enumerate(vectors.T):
        everything = np.zeros(len(free))
        everything[free] = vector
        found.append(scattered(everything, Function(space, name=f"mode{k + 1}")))
    return found


def to_scipy(matrix: PETSc.Mat) -> sparse.csr_matrix:
    """The whole matrix on every process."""
    rows, columns, values = matrix.getValuesCSR()
    blocks = matrix.getComm().tompi4py().allgather((rows, columns, values))
    size = matrix.getSize()
    parts = [sparse.csr_matrix((v, c, r), shape=(len(r) - 1, size[1])) for r, c, v in blocks]
    return sparse.vstack(parts, format="csr")


def is_symmetric(stiffness: sparse.csr_matrix, of_loads: sparse.csr_matrix) -> bool:
    """Whether a stiffness with the part ``of_loads`` is symmetric to round-off."""
    # Then the loads are conservative. Newton's method leaves 1e-12 of the forces, and for wires the
    # round-off of the axial force; without loads nothing else is unsymmetric. Row by row, since a
    # stiff bed elsewhere says nothing of a small follower force.
    skew, loads = (
        abs(matrix).max(axis=1).toarray() for matrix in (stiffness - stiffness.T, of_loads)
    )
    return not np.any((skew > 1e-6 * loads + 1e-9 * loads.max(initial=0.0)) & (loads > 0))


# --- linear conditions C x = 0 on displacements ------------------------------------------------------
class Conditions:
    """The null space of conditions, and their forces, by groups that share displacements."""

    # A stiffness K with multipliers, [[K, Cᵀ], [C, 0]], has the inertia of NᵀKN and one positive
    # and one negative eigenvalue more for each condition: NᵀKN alone decides stability, and has no
    # modes that belong to multipliers.
    def __init__(self, matrix: sparse.spmatrix) -> None:
        matrix = sparse.csr_matrix(matrix)
        self._count, size = matrix.shape
        self._groups, blocks, touched = [], [], []
        for rows, columns in _groups(matrix):
            block = matrix[rows][:, columns].toarray()
            length = np.linalg.norm(block, axis=1, keepdims=True)
            # Rows that act on held displacements alone are no conditions.
            block = block / np.where(length > 0, length, 1.0)
            left, values, right = np.linalg.svd(block)
            rank = int(np.sum(values > _NEW * values.max(initial=0.0)))
            inverse = (left[:, :rank] / values[:rank]) @ right[:rank]
            self._groups.append((rows, columns, inverse / np.where(length > 0, length, 1.0)))
            blocks.append(right[rank:].T)
            touched.extend(columns)
        untouched = np.setdiff1d(np.arange(size), touched)
        basis = sparse.block_diag([sparse.eye(len(untouched)), *blocks], format="csr")
        #: N with C N = 0, orthonormal: sparse, displacements × what is left free.
        self.basis = basis[np.argsort([*untouched, *touched])]

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


# --- eigenpairs nearest to a shift, by SciPy's ARPACK -------------------------------------------------
def nearest(
    inverse: Inverse,
    size: int,
    number: int,
    shift: float,
    *,
    symmetric: bool = True,
    rough: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """The ``number`` eigenpairs of a matrix K nearest to -shift, all copies of a multiple one."""
    # Krylov methods see only one vector of an eigenspace (six rigid motions, two bending planes), so
    # the operator is deflated by what is found, until no nearer one comes up. `rough`: one pass for
    # the size of the eigenvalues.
    method, spare = (eigsh, 1) if symmetric else (eigs, 2)
    start = np.random.default_rng(0).normal(size=size)
    values, vectors = np.empty(0), np.empty((size, 0))
    basis = vectors
    while (wanted := min(number, size - spare - basis.shape[1])) > 0:

        def out(x, basis=basis):
            return x - basis @ (basis.T @ x)

        def deflated(x, out=out):
            return out(inverse(out(x)))

        new, more = method(
            LinearOperator((size, size), matvec=deflated, dtype=float),
            k=wanted,
            v0=out(start),
            tol=_ROUGH if rough else 0,
        )
        if rough:
            return 1 / new - shift, more
        farthest = np.sort(np.abs(values))[-number] if len(values) >= number else 0.0
        nearer = np.abs(new) > farthest * (1 + 1e-9)
        if not nearer.any():
            break
        new, more = new[nearer], more[:, nearer]
        if symmetric:
            values, vectors = np.append(values, new), np.hstack([vectors, more])
            basis = vectors
            continue
        # An invariant subspace with an orthonormal real basis: in its complement the operator has
        # the other eigenvalues, and its own are those of a small matrix. Vectors of a pair about to
        # become complex are nearly parallel: fewer may be new.
        left, sizes, _ = np.linalg.svd(
            np.hstack([basis, more.real, more.imag]), full_matrices=False
        )
        basis = left[:, sizes > _NEW * sizes[0]]
        applied = np.stack([inverse(x) for x in basis.T], axis=1)
        values, small = np.linalg.eig(basis.T @ applied)
        vectors = basis @ small
    order = np.argsort(-np.abs(values))[:number]
    return 1 / values[order] - shift, vectors[:, order]
