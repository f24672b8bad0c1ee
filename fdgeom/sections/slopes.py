"""Derivatives of stiffness and inertia of a drawn section by C and ρ at its points."""

from collections.abc import Callable

import numpy as np

from .aside import Aside
from .elasticity import STEP
from .gradient import density_gradient, elasticity_gradient
from .saint_venant import SaintVenant

#: Weights of differences of eighth order.
_EIGHTH = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
#: How far their steps reach, of where a matrix becomes singular.
_REACH = 0.005

Pair = tuple[np.ndarray, np.ndarray]


class MatrixSlopes:
    """Stiffness and inertia as functions of C and ρ, with first and second derivatives."""

    # `about(S, M)` gives those of a beam from compliance and inertia about the centroid.
    def __init__(
        self,
        solutions: SaintVenant,
        inertia: np.ndarray,
        about: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, ...]],
    ) -> None:
        self._solutions, self._op, self._about = solutions, solutions.op, about
        self._there = np.array([solutions.compliance, inertia])

    def push(self, elasticity: np.ndarray, density: np.ndarray) -> Pair:
        """Changes of stiffness and inertia along those of C and ρ, values on this rank."""
        moves = self._solutions.derivative(elasticity), self._op.moments(density)
        return self._change(self._there, np.array(moves))

    def pull(self, stiffness: np.ndarray, inertia: np.ndarray) -> Pair:
        """The derivatives by C and ρ on this rank of a function with these by stiffness and inertia."""
        of_compliance, of_moments = self._pulled(self._there, (stiffness, inertia))
        return (
            elasticity_gradient(self._solutions, of_compliance),
            density_gradient(self._op, of_moments),
        )

    def pull_rates(
        self, bars: Pair, rates: Pair, elasticity: np.ndarray, density: np.ndarray
    ) -> tuple[Pair, Pair]:
        """:meth:`pull` of cotangents, and how that changes with changes of C and ρ, values on this rank,
        while the cotangents change by ``rates``."""
        off = SaintVenant(Aside(self._op, elasticity), 0.0)
        moves = np.array([off.compliance.imag / STEP, self._op.moments(density)])
        pulled = self._pulled(self._there, bars)
        changed = self._pulled(self._there, rates) + self._pulled_rates(bars, moves)
        by_elasticity = elasticity_gradient(off, pulled[0] + 1j * STEP * changed[0])
        return (
            (by_elasticity.real, density_gradient(self._op, pulled[1])),
            (by_elasticity.imag / STEP, density_gradient(self._op, changed[1])),
        )

    # --- between the centroid and the origin -------------------------------------------------------
    def _change(self, there: np.ndarray, moves: np.ndarray) -> Pair:
        """Changes of stiffness and inertia with those of both matrices about the centroid."""
        stiffness, inertia = self._about(*(there + 1j * STEP * moves))
        return stiffness.imag / STEP, inertia.imag / STEP

    def _pulled(self, there: np.ndarray, bars: Pair) -> np.ndarray:
        """Derivatives (2, 6, 6) by both about the centroid, from those by stiffness and inertia."""
        found = np.zeros((2, 6, 6))
        for entry in np.ndindex(found.shape):
            move = np.zeros(found.shape)
            move[entry] = 1.0
            found[entry] = sum(map(np.vdot, bars, self._change(there, move)))
        return found

    def _pulled_rates(self, bars: Pair, moves: np.ndarray) -> np.ndarray:
        """Derivative of the cotangents along changes of both matrices, by eighth-order differences."""
        # The cotangents are rational functions of the matrices: far from their poles the
        # differences are exact to round-off.
        relative = np.linalg.eigvals(np.linalg.solve(self._there, moves))
        speed = np.abs(relative).max()
        step = _REACH / speed if speed > 0 else 1.0

        def at(size: float) -> np.ndarray:
            return self._pulled(self._there + size * moves, bars)

        differences = (at(k * step) - at(-k * step) for k in range(1, len(_EIGHTH) + 1))
        return sum(w * d for w, d in zip(_EIGHTH, differences, strict=True)) / step
