"""Eigenpairs nearest to a shift, by SciPy's ARPACK."""

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigs, eigsh

#: x ↦ (K + shift)⁻¹ x.
Inverse = Callable[[np.ndarray], np.ndarray]
# Digits where an estimate of the size is wanted.
_ROUGH = 1e-2


def nearest(
    inverse: Inverse, size: int, number: int, shift: float, *, rough: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The ``number`` eigenpairs of a symmetric K nearest to -shift, all copies of a multiple one."""
    # Lanczos' method sees only one vector of an eigenspace (six rigid motions, two bending planes),
    # so the operator is deflated by the vectors found, until no nearer one comes up. `rough`: one
    # pass for the size of the eigenvalues.
    start = _start(size)
    values, vectors = np.empty(0), np.empty((size, 0))
    while True:
        known = vectors

        def deflated(x, known=known):
            z = inverse(x - known @ (known.T @ x))
            return z - known @ (known.T @ z)

        wanted = min(number, size - 1 - len(values))
        if wanted < 1:
            break
        new, more = eigsh(
            LinearOperator((size, size), matvec=deflated, dtype=float),
            k=wanted,
            v0=start - known @ (known.T @ start),
            tol=_ROUGH if rough else 0,
        )
        new = 1 / new - shift
        if rough:
            return new, more
        farthest = np.sort(np.abs(values + shift))[number - 1] if len(values) else np.inf
        nearer = np.abs(new + shift) < farthest * (1 - 1e-9)
        if not nearer.any():
            break
        values = np.append(values, new[nearer])
        vectors = np.hstack([vectors, more[:, nearer]])
    order = np.argsort(np.abs(values + shift))[:number]
    return values[order], vectors[:, order]


def nearest_complex(
    inverse: Inverse, size: int, number: int, shift: float, *, rough: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The ``number`` eigenpairs of an unsymmetric K nearest to -shift."""
    operator = LinearOperator((size, size), matvec=inverse, dtype=float)
    values, vectors = eigs(operator, k=number, v0=_start(size), tol=_ROUGH if rough else 0)
    return 1 / values - shift, vectors


def _start(size: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=size)
