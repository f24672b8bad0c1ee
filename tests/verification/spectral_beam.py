"""The beam by one polynomial of high degree, in plain NumPy: a reference for any mesh.

Weak form of the strain on Gauss points and the momentum on Gauss–Lobatto points of one element,
integrated in time by DOP853. Free ends. Spectrally accurate for smooth solutions.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import BarycentricInterpolator
from verification.numpy_beam import ad, apply, dual, hat


class SpectralBeam:
    """One element of degree ``degree`` on [0, length]; axis 0 along the beam."""

    def __init__(self, degree, length, stiffness, inertia):
        legendre = np.polynomial.legendre.Legendre.basis(degree)
        x = np.concatenate([[-1.0], np.sort(legendre.deriv().roots().real), [1.0]])
        z, w = np.polynomial.legendre.leggauss(degree)
        self.nodes, self.points = length * (1 + x) / 2, length * (1 + z) / 2
        self.node_weights = length / (degree * (degree + 1) * legendre(x) ** 2)
        self.point_weights = length * w / 2
        basis = BarycentricInterpolator(x, np.eye(degree + 1))
        self.value = basis(z)
        # Derivative of the interpolant: barycentric differentiation matrix, then values.
        c = BarycentricInterpolator(x).wi
        gap = x[:, None] - x[None, :] + np.eye(degree + 1)
        D = c[None, :] / c[:, None] / gap
        np.fill_diagonal(D, 0.0)
        np.fill_diagonal(D, -D.sum(axis=1))
        self.slope = self.value @ D * 2 / length
        self.stiffness, self.inverse = stiffness, np.linalg.inv(inertia)
        self.e = np.eye(6)[3]

    def rates(self, strain, momentum):
        velocity = momentum @ self.inverse
        frame = ad(strain + self.e)
        strain_rate = self.slope @ velocity + apply(frame, self.value @ velocity)
        b = self.point_weights[:, None] * (strain @ self.stiffness)
        weak = -self.slope.T @ b - self.value.T @ apply(np.swapaxes(frame, 1, 2), b)
        return strain_rate, weak / self.node_weights[:, None] + dual(velocity, momentum)

    def solve(self, strain, momentum, end):
        """Strain and momentum at time ``end`` and the motion of the left end (4×4 pose)."""
        start = (strain, momentum, np.eye(4))
        cuts = np.cumsum([a.size for a in start])[:-1]

        def slope(t, y):
            strain, momentum, pose = (
                a.reshape(b.shape) for a, b in zip(np.split(y, cuts), start, strict=True)
            )
            motion = pose @ hat(self.inverse @ momentum[0])
            return np.concatenate([a.ravel() for a in (*self.rates(strain, momentum), motion)])

        y = np.concatenate([a.ravel() for a in start])
        y = solve_ivp(slope, (0, end), y, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
        return tuple(a.reshape(b.shape) for a, b in zip(np.split(y, cuts), start, strict=True))

    def momentum_at(self, momentum, s):
        return BarycentricInterpolator(self.nodes, momentum)(s)

    def strain_at(self, strain, s):
        return BarycentricInterpolator(self.points, strain)(s)
