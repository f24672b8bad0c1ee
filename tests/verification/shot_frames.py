"""Frames of two legs by shooting: the rod equations along the axis, integrated by Runge and Kutta."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, root


def integrated(slope, state, length, steps):
    """The classical method in equal steps; a state may hold many columns, and be complex."""
    h = length / steps
    for _ in range(steps):
        a = slope(state)
        b = slope(state + h / 2 * a)
        c = slope(state + h / 2 * b)
        d = slope(state + h * c)
        state = state + h / 6 * (a + 2 * b + 2 * c + d)
    return state


class LeesFrame:
    """Extensible elastica without shear over a column and a beam at right angles, both feet hinged.

    In the plane (x, z), θ from the axis x: x' = (1 + N/EA) cos θ, z' = (1 + N/EA) sin θ, EI θ' = M
    with N = H cos θ + V sin θ, M' = H z' - V x' and a constant force (H, V) between the loads. The
    unknowns are θ and (H, V) at the first foot and the load; the other foot is where it is, without
    a moment.
    """

    EI, EA, LEG, AT = 1440.0, 4320.0, 120.0, 24.0

    def __init__(self, steps=100):
        self._steps = steps

    def _leg(self, state, length):
        H, V = state[4], state[5]

        def slope(state):
            _, _, angle, moment, _, _ = state
            cosine, sine = np.cos(angle), np.sin(angle)
            stretch = 1 + (H * cosine + V * sine) / self.EA
            x, z = stretch * cosine, stretch * sine
            return np.array([x, z, moment / self.EI, H * z - V * x, 0 * H, 0 * V])

        return integrated(slope, state, length, self._steps)

    def misses(self, unknown):
        """Where the second foot is not: (x, z, moment over EI), of columns of unknowns."""
        angle, H, V, load = unknown
        zero = 0 * angle
        state = self._leg(np.array([zero, zero, angle, zero, H, V]), self.LEG)
        state[2] = state[2] - np.pi / 2
        state = self._leg(state, self.AT)
        # The load is (0, -P): the section force grows by P.
        state[5] = state[5] + load
        x, z, _, moment, _, _ = self._leg(state, self.LEG - self.AT)
        return np.array([x - self.LEG, z - self.LEG, moment / self.EI * self.LEG])

    def slopes(self, unknown):
        """Derivatives of :meth:`misses` (3, 4), to round-off: by a complex step."""
        step = 1e-30
        return self.misses(unknown[:, None] + 1j * step * np.eye(4)).imag / step

    def limit(self, guess):
        """The unknowns where the load is largest or least on the path: no other changes with it."""

        def equations(unknown):
            slopes = self.slopes(unknown)[:, :3]
            return [*self.misses(unknown[:, None])[:, 0], np.linalg.det(slopes) / self.LEG**2]

        found = root(equations, guess, tol=1e-12)
        assert np.abs(equations(found.x)).max() < 1e-8
        return found.x


class BentCantilever:
    """Two legs at a right angle in a plane, clamped at one end, a dead force in the plane at the other.

    x' = R (e₁ + C⁻¹Rᵀf), R' = R hat(D⁻¹Rᵀm), m' = f × x' for the constant force f. The unknown is
    the moment at the clamp; at the other end there is none. It leaves the plane (x, y) where a
    change of the two moments out of it leaves that end without a moment to first order.
    """

    def __init__(self, length, stiffness, steps=20):
        self._length, self._steps = length, steps
        self._bending, self._shear = 1 / stiffness[:3], 1 / stiffness[3:]

    def end(self, moments, force):
        """The moments at the free end, of moments (n, 3) at the clamp."""
        bend, shear = self._bending, self._shear

        def slope(state):
            turn, m = state[:, :3], state[:, 3]
            back = turn.transpose(0, 2, 1)
            curvature = bend * np.einsum("nij,nj->ni", back, m)
            strain = shear * (back @ force) + [1.0, 0, 0]
            rate = np.cross(curvature[:, None], turn, axisb=2, axisc=2)
            tangent = np.einsum("nij,nj->ni", turn, strain)
            return np.concatenate([-rate, np.cross(force, tangent)[:, None]], axis=1)

        axes = np.tile(np.eye(3), (len(moments), 1, 1))
        state = np.concatenate([axes, moments[:, None]], axis=1)
        state = integrated(slope, state, self._length, self._steps)
        corner = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
        state[:, :3] = state[:, :3] @ corner
        return integrated(slope, state, self._length, self._steps)[:, 3]

    def in_plane(self, force):
        """The moment at the clamp of the frame that stays in its plane."""
        guess = self._length * (force[1] - force[0])

        def miss(value):
            return self.end(np.array([[0, 0, value[0]]]), force)[0, 2]

        return np.array([0, 0, root(miss, [guess], tol=1e-12).x[0]])

    def out_of_plane(self, force):
        """The determinant that is zero where the frame may leave its plane."""
        moment, step = self.in_plane(force), 1e-4 * self._length * np.abs(force).max()
        changes = step * np.eye(3)[:2]
        ends = self.end(np.concatenate([moment + changes, moment - changes]), force)
        return np.linalg.det((ends[:2] - ends[2:])[:, :2] / (2 * step))

    def critical(self, direction, low, high):
        """Between two loads, where the determinant changes its sign."""
        return brentq(lambda load: self.out_of_plane(load * direction), low, high, xtol=1e-10)
