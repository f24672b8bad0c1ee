"""A rod in a plane in NumPy, moved by generalized-α: nodes (x, y, θ).

Two-node cells with the curvature (θ_B - θ_A)/h and the tangent seen from the mean angle, lumped
masses (Simo and Vu-Quoc 1986). Written apart from fdgeom's forms; Jacobians by complex steps.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import solve_banded

_TINY = 1e-30
#: A node's three unknowns depend on those of its neighbours: diagonals on each side.
_BAND = 5


class PlaneRod:
    """Straight at rest from ``start`` on; ``load(t)`` is (force, moment) on the first node."""

    def __init__(self, cells, length, start, angle, *, EA, GA, EI, mass, inertia, load):
        self.h, self.load = length / cells, load
        s = np.linspace(0, length, cells + 1)
        x, y = start[0] + s * np.cos(angle), start[1] + s * np.sin(angle)
        self.q = np.stack([x, y, np.full(cells + 1, angle)], axis=1)
        weights = np.full(cells + 1, self.h)
        weights[[0, -1]] /= 2
        self.M = weights[:, None] * np.array([mass, mass, inertia])
        self.EA, self.GA, self.EI = EA, GA, EI

    def force(self, q, t):
        """Elastic forces and the load, (nodes, 3)."""
        gap, middle = np.diff(q[:, :2], axis=0) / self.h, (q[1:, 2] + q[:-1, 2]) / 2
        c, s = np.cos(middle), np.sin(middle)
        along, across = c * gap[:, 0] + s * gap[:, 1], c * gap[:, 1] - s * gap[:, 0]
        N, Q = self.EA * (along - 1), self.GA * across
        moment = self.EI * np.diff(q[:, 2]) / self.h
        # Over a cell of length h: the variation of N, Q and the moment by both ends.
        n = np.stack([c * N - s * Q, s * N + c * Q], axis=1)
        turn = self.h / 2 * (N * across - Q * along)
        out = np.zeros_like(q)
        out[:-1, :2] += n
        out[1:, :2] -= n
        out[:-1, 2] += moment - turn
        out[1:, 2] -= moment + turn
        out[0] += self.load(t)
        return out

    def steps(self, h: float, rho: float) -> Iterator[np.ndarray]:
        """Generalized-α (Chung and Hulbert 1993), the balance at nodes of time; yields q of each step.

        (1 - α_m) a¹ + α_m a⁰ = (1 - α_f) q̈¹ + α_f q̈⁰ with Newmark's formulas for a; a⁰ = q̈⁰. An
        increment D of the angle turns by 2 arctan(D/2), as the Cayley map of a rotation does.
        """
        m, f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
        beta, gamma = (1 - m + f) ** 2 / 4, 0.5 - m + f
        q, v, t = self.q, np.zeros_like(self.q), 0.0
        a = true = self.force(q, 0.0) / self.M
        while True:
            t += h

            def moved(a1, q=q, v=v, a=a):
                D = h * v + h**2 * ((0.5 - beta) * a + beta * a1)
                return q + np.concatenate([D[:, :2], 2 * np.arctan(D[:, 2:] / 2)], axis=1)

            def residual(a1, moved=moved, a=a, true=true, t=t):
                rate = ((1 - m) * a1 + m * a - f * true) / (1 - f)
                return self.M * rate - self.force(moved(a1), t)

            a1 = a
            for _ in range(30):
                change = solve_banded(
                    (_BAND, _BAND), self._band(residual, a1), residual(a1).ravel()
                )
                a1 = a1 - change.reshape(a1.shape)
                if beta * h**2 * np.abs(change).max() < 1e-12:
                    break
            else:
                raise RuntimeError("Newton's iteration does not converge")
            q, v = moved(a1), v + h * ((1 - gamma) * a + gamma * a1)
            true, a = ((1 - m) * a1 + m * a - f * true) / (1 - f), a1
            yield q

    @staticmethod
    def _band(residual, a):
        """The Jacobian's diagonals: every third node at once, since the others do not see it."""
        size = a.size
        band = np.zeros((2 * _BAND + 1, size))
        for first in range(3):
            for k in range(3):
                shifted = a.astype(complex)
                shifted[first::3, k] += _TINY * 1j
                slope = residual(shifted).imag.ravel() / _TINY
                for column in range(3 * first + k, size, 9):
                    node = column // 3
                    rows = np.arange(max(0, 3 * node - 3), min(size, 3 * node + 6))
                    band[_BAND + rows - column, column] = slope[rows]
        return band
