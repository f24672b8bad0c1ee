"""Rods of two-node cells in NumPy, by their energy alone: at rest, and in time with ball joints on SE(3).

Written apart from fdgeom's forms: poses are 4×4 matrices, logarithms come from the trace, forces are
complex-step derivatives of the cells' energy (exact to round-off), Jacobians of Newton's iteration
differences of these forces. Vectors of six have rotation first and are in the body frame.
"""

from __future__ import annotations

import numpy as np

_TINY = 1e-30


def hat(w):
    z = np.zeros_like(w[..., 0])
    rows = [[z, -w[..., 2], w[..., 1]], [w[..., 2], z, -w[..., 0]], [-w[..., 1], w[..., 0], z]]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def hat4(d):
    X = np.zeros((*d.shape[:-1], 4, 4), dtype=d.dtype)
    X[..., :3, :3], X[..., :3, 3] = hat(d[..., :3]), d[..., 3:]
    return X


def frames(x, R):
    """Poses (n, 4, 4) of positions (n, 3) and rotation matrices."""
    g = np.zeros((len(x), 4, 4))
    g[:, :3, :3], g[:, :3, 3], g[:, 3, 3] = R, x, 1
    return g


def exponential(d):
    """exp on SE(3), real, by Rodrigues' formula."""
    size = np.linalg.norm(d[..., :3], axis=-1)[..., None, None]
    small = size < 1e-2
    safe = np.where(small, 1.0, size)
    square = size**2
    # Three terms of the series: 1e-2 to the sixth over 5040 is left.
    sine = np.where(small, 1 - square / 6 + square**2 / 120, np.sin(safe) / safe)
    cosine = np.where(small, 1 / 2 - square / 24 + square**2 / 720, (1 - np.cos(safe)) / safe**2)
    third = np.where(
        small, 1 / 6 - square / 120 + square**2 / 5040, (safe - np.sin(safe)) / safe**3
    )
    W = hat(d[..., :3])
    g = np.zeros((*d.shape[:-1], 4, 4))
    g[..., :3, :3] = np.eye(3) + sine * W + cosine * W @ W
    g[..., :3, 3] = ((np.eye(3) + cosine * W + third * W @ W) @ d[..., 3:, None])[..., 0]
    g[..., 3, 3] = 1
    return g


def rotation_vector(R):
    """log of rotation matrices by less than half a turn; complex with an infinitesimal imaginary part."""
    turn = np.stack([R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0],
                     R[..., 1, 0] - R[..., 0, 1]], axis=-1) / 2  # fmt: skip
    cosine = (np.trace(R, axis1=-2, axis2=-1) - 1) / 2
    # arcsin(s)/s = 1 + s²/6 + 3s⁴/40 + 5s⁶/112 where s is small; else dθ = c ds - s dc.
    square = np.sum(turn * turn, axis=-1)
    small = np.abs(square) < 1e-6
    sine = np.sqrt(np.where(small, 1.0, square))
    angle = np.arctan2(sine.real, cosine.real)
    angle = angle + 1j * (cosine.real * sine.imag - sine.real * cosine.imag)
    series = 1 + square / 6 + 3 * square**2 / 40 + 5 * square**3 / 112
    return np.where(small, series, angle / sine)[..., None] * turn


def strain(measure, a, b, length):
    """Curvature and tangent of cells between poses a and b, by each of the three measures."""
    R, Q, gap = a[..., :3, :3], b[..., :3, :3], (b - a)[..., :3, 3]
    relative = np.swapaxes(R, -1, -2) @ Q

    def seen(rotation):
        return (np.swapaxes(rotation, -1, -2) @ gap[..., None])[..., 0]

    if measure == "directors":
        skew = relative - np.swapaxes(relative, -1, -2)
        curvature = np.stack([skew[..., 2, 1], skew[..., 0, 2], skew[..., 1, 0]], axis=-1) / 2
        tangent = (seen(R) + seen(Q)) / 2
    else:
        curvature = rotation_vector(relative)
        square = np.sum(curvature * curvature, axis=-1)[..., None]
        if measure == "simo-reissner":
            # The rotation half-way: R exp(κ/2), by Rodrigues.
            half = curvature / 2
            tangent = _turned(-half, seen(R))
        else:
            # T⁻¹ = 1 - ŵ/2 + (1 - θ/2 cot θ/2) ŵ²/θ², for the translation of the logarithm on SE(3).
            small = np.abs(square) < 1e-4
            safe = np.sqrt(np.where(small, 1.0, square))
            factor = np.where(
                small,
                1 / 12 + square / 720 + square**2 / 30240,
                (1 - safe / 2 / np.tan(safe / 2)) / safe**2,
            )
            offset = seen(R)
            across = np.cross(curvature, offset)
            tangent = offset - across / 2 + factor * np.cross(curvature, across)
    return np.concatenate([curvature, tangent], axis=-1) / length[..., None]


def _turned(w, v):
    """exp(w) v, by Rodrigues' formula; complex too."""
    square = np.sum(w * w, axis=-1)[..., None]
    small = np.abs(square) < 1e-4
    safe = np.sqrt(np.where(small, 1.0, square))
    sine = np.where(small, 1 - square / 6 + square**2 / 120, np.sin(safe) / safe)
    cosine = np.where(small, 1 / 2 - square / 24 + square**2 / 720, (1 - np.cos(safe)) / safe**2)
    across = np.cross(w, v)
    return v + sine * across + cosine * np.cross(w, across)


class Cells:
    """Rods end to end or apart, in one list of nodes.

    ``poses`` (n, 4, 4) are those at rest; ``pairs`` (cells, 2) the nodes of each cell, ``lengths``
    the arc lengths. ``held`` nodes do not move, ``ball`` pairs of nodes share their position (a node
    -1 is the ground at the other's start), ``forces`` (n, 3) are dead forces on the nodes.
    """

    def __init__(self, poses, pairs, lengths, stiffness, measure, *, inertia=None, held=(),
                 ball=(), gravity=None, forces=None):  # fmt: skip
        self.poses, self.pairs, self.lengths = poses, np.array(pairs), np.array(lengths)
        self.K, self.measure, self.n = stiffness, measure, len(poses)
        self.rest = self._strain(poses).real
        self.free = np.setdiff1d(np.arange(self.n), np.array(held, dtype=int))
        # Which node is at which side of a cell.
        self._at = [np.eye(self.n)[self.pairs[:, side]] for side in (0, 1)]
        weights = np.zeros(self.n)
        np.add.at(weights, self.pairs, np.repeat(self.lengths[:, None] / 2, 2, axis=1))
        self.M = None if inertia is None else weights[:, None, None] * inertia
        self.forces = np.zeros((self.n, 3)) if forces is None else np.array(forces, dtype=float)
        if gravity is not None:
            self.forces = self.forces + self.M[:, 3, 3, None] * np.array(gravity)
        self.ball = ball
        self.ground = {node: poses[node, :3, 3] for pair in ball for node in pair if node >= 0}

    def _strain(self, g):
        a, b = g[..., self.pairs[:, 0], :, :], g[..., self.pairs[:, 1], :, :]
        return strain(self.measure, a, b, self.lengths)

    def load(self, g):
        """Elastic and dead forces on the nodes (…, n, 6), in the body frame: -dV along g exp(ξ)."""
        force = np.zeros((*g.shape[:-2], 6))
        stress = (self._strain(g).real - self.rest) @ self.K * self.lengths[:, None]
        ends = [g[..., None, self.pairs[:, k], :, :] for k in (0, 1)]
        # Along the six directions of a node, all at once.
        along = np.eye(4) + _TINY * 1j * hat4(np.eye(6))[:, None]
        for side in (0, 1):
            moved = list(ends)
            moved[side] = ends[side] @ along
            slope = strain(self.measure, *moved, self.lengths).imag / _TINY
            part = -np.einsum("...kci,...ci->...kc", slope, stress)
            force += np.swapaxes(part @ self._at[side], -1, -2)
        force[..., 3:] += np.einsum("...nji,nj->...ni", g[..., :3, :3], self.forces)
        return force

    # --- at rest -------------------------------------------------------------------------------------
    def solve(self, steps=10):
        """Poses at rest under the dead forces, which grow in some steps."""
        g, full = self.poses.copy(), self.forces
        size = 6 * len(self.free)

        def moved(d):
            out = np.broadcast_to(g, (*d.shape[:-1], *g.shape)).copy()
            turned = exponential(d.reshape(*d.shape[:-1], -1, 6))
            out[..., self.free, :, :] = g[self.free] @ turned
            return out

        def residual(d):
            return self.load(moved(d))[..., self.free, :].reshape(*d.shape[:-1], size)

        for k in range(1, steps + 1):
            self.forces = full * k / steps
            for _ in range(30):
                J = _differences(residual, np.zeros(size))
                change = -np.linalg.solve(J, residual(np.zeros(size)))
                g = moved(change)
                if np.abs(change).max() < 1e-11:
                    break
            else:
                raise RuntimeError("Newton's iteration does not converge")
        return g

    # --- in time ----------------------------------------------------------------------------------------
    def _gaps(self, g):
        """What the ball joints miss, (…, 3 joints)."""
        gaps = []
        for a, b in self.ball:
            start = self.ground[b] if a < 0 else g[..., a, :3, 3]
            gaps.append(g[..., b, :3, 3] - start)
        return np.concatenate(gaps, axis=-1)

    def _joint_load(self, g, multiplier):
        """Bᵀλ on the nodes, in the body frame."""
        out = np.zeros((*g.shape[:-2], 6))
        for k, (a, b) in enumerate(self.ball):
            part = multiplier[..., 3 * k : 3 * k + 3]
            for node, sign in ((a, -1), (b, 1)):
                if node >= 0:
                    turned = np.einsum("...ji,...j->...i", g[..., node, :3, :3], part)
                    out[..., node, 3:] += sign * turned
        return out

    def _unbalance(self, g, v, rate, multiplier):
        """M v̇ - ad*_v M v - load + Bᵀλ (…, n, 6)."""
        p = np.einsum("nij,...nj->...ni", self.M, v)
        spin, drift, turn, push = v[..., :3], v[..., 3:], p[..., :3], p[..., 3:]
        gyroscopic = np.concatenate(
            [np.cross(turn, spin) + np.cross(push, drift), np.cross(push, spin)], axis=-1
        )
        inertia = np.einsum("nij,...nj->...ni", self.M, rate)
        return inertia - gyroscopic - self.load(g) + self._joint_load(g, multiplier)

    def alpha_steps(self, h, rho):
        """Generalized-α on SE(3) (Brüls and Cardona 2010, Chung and Hulbert's ρ∞), from rest; yields poses.

        (1 - α_m) a¹ + α_m a⁰ = (1 - α_f) v̇¹ + α_f v̇⁰, g¹ = g⁰ exp(h v⁰ + h² ((½ - β) a⁰ + β a¹)),
        v¹ = v⁰ + h ((1 - γ) a⁰ + γ a¹), a⁰ = v̇⁰ at the start.
        """
        m, f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
        beta, gamma = (1 - m + f) ** 2 / 4, 0.5 - m + f
        joints, size = 3 * len(self.ball), 6 * self.n
        g, v = self.poses.copy(), np.zeros((self.n, 6))

        def at_rest(z):
            rate, multiplier = z[..., :size].reshape(*z.shape[:-1], self.n, 6), z[..., size:]
            here = np.broadcast_to(g, (*z.shape[:-1], *g.shape))
            spatial = np.einsum("nij,...nj->...ni", g[:, :3, :3], rate[..., 3:])
            sign = [
                spatial[..., b, :] - (spatial[..., a, :] if a >= 0 else 0) for a, b in self.ball
            ]
            balance = self._unbalance(here, np.broadcast_to(v, rate.shape), rate, multiplier)
            return np.concatenate([balance.reshape(*z.shape[:-1], size), *sign], axis=-1)

        # Linear, so one solve: the second derivative of x is R u̇ while nothing moves.
        zero = np.zeros(size + joints)
        z = -np.linalg.solve(_differences(at_rest, zero, 1.0), at_rest(zero))
        true = z[:size].reshape(self.n, 6)
        a, multiplier, J = true, z[size:], None
        while True:

            def ahead(z, g=g, v=v, a=a, true=true):
                a1 = z[..., :size].reshape(*z.shape[:-1], self.n, 6)
                true1 = ((1 - m) * a1 + m * a - f * true) / (1 - f)
                g1 = g @ exponential(h * v + h**2 * ((0.5 - beta) * a + beta * a1))
                return g1, v + h * ((1 - gamma) * a + gamma * a1), true1, a1

            def residual(z, ahead=ahead):
                g1, v1, true1, _ = ahead(z)
                balance = self._unbalance(g1, v1, true1, z[..., size:])
                # Of the size of forces, so that one number measures both.
                gaps = self._gaps(g1) / (beta * h**2)
                return np.concatenate([balance.reshape(*z.shape[:-1], size), gaps], axis=-1)

            z = np.concatenate([a.ravel(), multiplier])
            J = _differences(residual, z) if J is None else J
            for iteration in range(60):
                change = -np.linalg.solve(J, residual(z))
                z = z + change
                # Of the poses: what is below has no effect on twelve digits.
                if beta * h**2 * np.abs(change[:size]).max() < 1e-13:
                    break
                if iteration % 6 == 5:
                    J = _differences(residual, z)
            else:
                raise RuntimeError("Newton's iteration does not converge")
            g, v, true, a = ahead(z)
            multiplier = z[size:]
            yield g


def _differences(f, z, step=None):
    """A Jacobian by central differences, all columns at once."""
    h = 1e-6 * max(1.0, np.abs(z).max()) if step is None else step
    shifts = h * np.eye(z.size)
    return ((f(z + shifts) - f(z - shifts)) / (2 * h)).T
