"""Stability of an equilibrium: sign and nearest eigenvalues of its tangent stiffness."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy.sparse as sparse
from petsc4py import PETSc
from scipy.sparse.linalg import SuperLU, splu

from fdgeom.errors import SolveFailed
from fdgeom.statics.linear_algebra import (
    Conditions,
    gathered,
    is_symmetric,
    nearest,
    nearest_complex,
    to_scipy,
)
from fdgeom.statics.problem import EquilibriumProblem


class Tangent:
    """The tangent stiffness K of the free degrees of freedom, whole on every process, with K φ = μ
    W φ for the weights W of the norm and all φ that joints allow.
    """

    def __init__(self, problem: EquilibriumProblem, matrix: PETSc.Mat) -> None:
        self._comm = problem.comm
        whole, free = to_scipy(matrix), problem.free
        self._size = np.sqrt(gathered(problem.comm, problem.weights)[free])
        root = sparse.diags(1 / self._size)
        joints = Conditions(whole[problem.conditions][:, free] @ root)
        #: Takes coordinates in which W is 1 to displacements of the free degrees of freedom.
        self._root = (root @ joints.basis).tocsr()
        scaled = self._scaled(whole, free)
        of_loads = problem.load_tangent()
        self.symmetric = of_loads is None or is_symmetric(
            scaled, self._scaled(to_scipy(of_loads), free)
        )
        self._matrix = (scaled + scaled.T) / 2 if self.symmetric else scaled

    def _scaled(self, whole: sparse.csr_matrix, free: np.ndarray) -> sparse.csr_matrix:
        return (self._root.T @ whole[free][:, free] @ self._root).tocsr()

    @cached_property
    def _factors(self) -> SuperLU:
        try:
            # Without exchanges: L D Lᵀ where K is symmetric, whose D has the inertia of K.
            return splu(
                self._matrix.tocsc(),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError as error:
            raise SolveFailed(f"the tangent stiffness is singular: {error}") from error

    @cached_property
    def negative(self) -> int:
        """Number of negative pivots of K = L D U, for symmetric K of negative eigenvalues."""
        # By Sylvester's law of inertia. Where K is unsymmetric, it has the parity of the number of
        # negative real eigenvalues, by the determinant's sign; it may change by two where none is
        # zero.
        factors = self._factors
        found = int((factors.U.diagonal() < 0).sum())
        if not np.array_equal(factors.perm_r, factors.perm_c):
            # A pivot was zero to the last bit, and rows have been exchanged.
            whole = self._matrix.toarray()
            if self.symmetric:
                found = int((np.linalg.eigvalsh(whole) < 0).sum())
            else:
                found = int(np.linalg.slogdet(whole).sign < 0)
        # Round-off may differ between processes.
        return self._comm.bcast(found)

    def nearest(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The real eigenvalues nearest to zero, and their vectors φ (all free), φ·W φ = 1."""
        size = self._root.shape[1]
        if self.symmetric:
            values, vectors = nearest(self._factors.solve, size, number, 0.0)
        else:
            values, vectors = nearest_complex(self._factors.solve, size, number + 3, 0.0)
            real = np.flatnonzero(np.abs(values.imag) <= 1e-9 * np.abs(values))
            if not len(real):
                raise SolveFailed("no real eigenvalue of the tangent stiffness near zero")
            real = real[np.argsort(np.abs(values[real]))][:number]
            values, vectors = values[real].real, vectors[:, real].real
            vectors /= np.linalg.norm(vectors, axis=0)
        return self._comm.bcast((values, _oriented(self._root @ vectors, self._size)))


class CompiledStability:
    """The stability of a symmetric stiffness, as `Tangent`, by the factors of its compiled elimination.

    The signs of the eigenvalues of all eliminated blocks are those of the whole (Sylvester,
    Haynsworth).
    """

    # `solve(b)` gives K⁻¹b, or None if it is not finite.
    def __init__(
        self,
        problem: EquilibriumProblem,
        solve: Callable[[np.ndarray], np.ndarray | None],
        negative: int,
    ) -> None:
        self._problem, self._solve, self.negative = problem, solve, negative

    def nearest(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The eigenvalues nearest to zero, and their vectors φ (all free), φ·W φ = 1."""
        free, weights = self._problem.free, self._problem.weights
        root = np.sqrt(weights[free])

        def inverse(x: np.ndarray) -> np.ndarray:
            b = np.zeros(len(weights))
            b[free] = root * x
            found = self._solve(b)
            if found is None:
                raise SolveFailed("the tangent stiffness is singular")
            return root * found[free]

        values, vectors = nearest(inverse, len(root), number, 0.0)
        return values, _oriented(vectors / root[:, None], root)


def _oriented(modes: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Modes with the sign that makes their largest displacement, times its size, positive."""
    largest = np.abs(size[:, None] * modes).argmax(axis=0)
    return modes * np.sign(modes[largest, range(modes.shape[1])])
