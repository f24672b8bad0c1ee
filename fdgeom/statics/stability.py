"""Stability of an equilibrium: sign and nearest eigenvalues of its tangent stiffness."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sparse
from petsc4py import PETSc
from scipy.sparse.linalg import splu

from fdgeom.errors import SolveFailed
from fdgeom.statics.linear_algebra import Conditions, is_symmetric, nearest, to_scipy
from fdgeom.statics.problem import EquilibriumProblem


class Stability:
    """The eigenvalues of K φ = μ W φ for a tangent stiffness K, the weights W of the norm, and all φ of
    the free degrees of freedom that joints allow.
    """

    # In coordinates y with φ = R y, where W is 1: `solve(x)` gives (RᵀKR)⁻¹x. `negative` is the number of
    # negative pivots, for symmetric K of negative eigenvalues.
    def __init__(
        self,
        problem: EquilibriumProblem,
        root: sparse.spmatrix,
        solve: Callable[[np.ndarray], np.ndarray],
        negative: int,
        *,
        symmetric: bool = True,
    ) -> None:
        self._comm, self._size = problem.comm, problem.norms
        self._root, self._solve, self._symmetric = root, solve, symmetric
        self.negative = negative

    def nearest(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The real eigenvalues nearest to zero, and their vectors φ, φ·W φ = 1."""
        # Those nearest may be complex.
        wanted = number if self._symmetric else number + 3
        values, vectors = nearest(
            self._solve, self._root.shape[1], wanted, 0.0, symmetric=self._symmetric
        )
        real = np.flatnonzero(np.abs(values.imag) <= 1e-9 * np.abs(values))[:number]
        if not len(real):
            raise SolveFailed("no real eigenvalue of the tangent stiffness near zero")
        values, vectors = values[real].real, vectors[:, real].real
        vectors /= np.linalg.norm(vectors, axis=0)
        return self._comm.bcast((values, self._oriented(self._root @ vectors)))

    def _oriented(self, modes: np.ndarray) -> np.ndarray:
        """Modes with the sign that makes their largest displacement in the norm positive."""
        largest = np.abs(self._size[:, None] * modes).argmax(axis=0)
        return modes * np.sign(modes[largest, range(modes.shape[1])])


def stability_of(problem: EquilibriumProblem, matrix: PETSc.Mat) -> Stability:
    """The stability by the factors of the whole tangent stiffness on every process."""
    whole, free = to_scipy(matrix), problem.free
    root = sparse.diags(1 / problem.norms)
    joints = Conditions(whole[problem.conditions][:, free] @ root)
    root = (root @ joints.basis).tocsr()

    def scaled(whole: sparse.csr_matrix) -> sparse.csr_matrix:
        return (root.T @ whole[free][:, free] @ root).tocsr()

    matrix, of_loads = scaled(whole), problem.load_tangent()
    symmetric = of_loads is None or is_symmetric(matrix, scaled(to_scipy(of_loads)))
    matrix = (matrix + matrix.T) / 2 if symmetric else matrix
    try:
        # Without exchanges: L D Lᵀ where K is symmetric, whose D has the inertia of K.
        factors = splu(
            matrix.tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError as error:
        raise SolveFailed(f"the tangent stiffness is singular: {error}") from error
    # By Sylvester's law of inertia. Where K is unsymmetric, it has the parity of the number of
    # negative real eigenvalues, by the determinant's sign; it may change by two where none is
    # zero.
    negative = int((factors.U.diagonal() < 0).sum())
    if not np.array_equal(factors.perm_r, factors.perm_c):
        # A pivot was zero to the last bit, and rows have been exchanged.
        dense = matrix.toarray()
        if symmetric:
            negative = int((np.linalg.eigvalsh(dense) < 0).sum())
        else:
            negative = int(np.linalg.slogdet(dense).sign < 0)
    # Round-off may differ between processes.
    negative = problem.comm.bcast(negative)
    return Stability(problem, root, factors.solve, negative, symmetric=symmetric)
