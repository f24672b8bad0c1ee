"""Generalized-α on Lie groups after Brüls, Cardona & Arnold, in NumPy, for the heavy top.

A second implementation, by itself: rotation matrices, translation first in R^6, the parameters
(α_m, α_f, β, γ), the acceleration as unknown, Jacobians by hand, and series for exp and T.
Translation first: the velocities are (u, Ω).
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

MASS = 15.0
INERTIA = np.diag([0.234375, 0.46875, 0.234375])
ARM = np.array([0.0, 1.0, 0.0])
GRAVITY = np.array([0.0, 0.0, -9.81])
SPIN = np.array([0.0, 150.0, -4.61538])
FREE = np.diag([1.0, 2.0, 3.0])


def hat(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def series(matrix, first):
    """Σ matrix^k first! / (k + first)! ; the exponential for first = 0."""
    total = term = np.eye(len(matrix), dtype=matrix.dtype)
    for k in range(1, 25):  # |matrix| < 2: 2^25/25! = 2e-18
        term = term @ matrix / (k + first)
        total = total + term
    return total


class FreeBody:
    """Rotation without forces."""

    size, constraints = 3, 0

    def __init__(self, inertia=FREE, spin=(1.0, 1.0, 1.0)):
        self.J = self.M = inertia
        self.start = (np.zeros(3), np.eye(3)), np.array(spin, dtype=float)

    def ad(self, d):
        return hat(d)

    def moved(self, g, d):
        return g[0], g[1] @ series(hat(d), 0)

    def force(self, g, v):
        """ad*_v(Mv) + f."""
        return np.cross(self.J @ v, v)

    def by_velocity(self, v):
        """Minus the derivative of the force by v."""
        return hat(v) @ self.J - hat(self.J @ v)

    def by_motion(self, g, v, lam):
        """Derivative of -force + Bᵀλ along a motion g exp(d)."""
        return np.zeros((3, 3))

    def B(self, g):
        return np.zeros((0, 3))

    def rate_of_B(self, g, v):
        """Ḃ v."""
        return np.zeros(0)

    def defect(self, g):
        return np.zeros(0)

    def acceleration(self, g, v):
        """v̇ and λ."""
        B, n = self.B(g), self.constraints
        matrix = np.block([[self.M, B.T], [B, np.zeros((n, n))]])
        solved = np.linalg.solve(matrix, np.concatenate([self.force(g, v), -self.rate_of_B(g, v)]))
        return solved[: self.size], solved[self.size :]

    def jerk(self, g, v):
        """v̈, by a complex step."""
        e, rate = 1e-30j, self.acceleration(g, v)[0]
        return self.acceleration(self.moved(g, e * v), v + e * rate)[0].imag / e.imag


class TopSO3(FreeBody):
    """The heavy top about its fixed point."""

    def __init__(self):
        super().__init__(INERTIA + MASS * (ARM @ ARM * np.eye(3) - np.outer(ARM, ARM)), SPIN)

    def force(self, g, v):
        return super().force(g, v) + np.cross(ARM, MASS * g[1].T @ GRAVITY)

    def by_motion(self, g, v, lam):
        return -hat(ARM) @ hat(MASS * g[1].T @ GRAVITY)


class TopR3xSO3(FreeBody):
    """The heavy top with its centre of mass in space, Φ = -x + RX."""

    size, constraints = 6, 3

    def __init__(self, mass=MASS, inertia=INERTIA, spin=SPIN):
        super().__init__(inertia, spin)
        self.mass, spin = mass, self.start[1]
        self.M = np.block([[mass * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), inertia]])
        self.start = (ARM, np.eye(3)), np.concatenate([np.cross(spin, ARM), spin])

    def ad(self, d):
        w = hat(d[3:])
        return np.block([[np.zeros((3, 3)), np.zeros((3, 3))], [np.zeros((3, 3)), w]])

    def moved(self, g, d):
        return g[0] + d[:3], g[1] @ series(hat(d[3:]), 0)

    def force(self, g, v):
        return np.concatenate([self.mass * GRAVITY, super().force(g, v[3:])])

    def by_velocity(self, v):
        matrix = np.zeros((6, 6))
        matrix[3:, 3:] = super().by_velocity(v[3:])
        return matrix

    def by_motion(self, g, v, lam):
        matrix = np.zeros((6, 6))
        matrix[3:, 3:] = hat(ARM) @ hat(g[1].T @ lam)
        return matrix

    def B(self, g):
        return np.hstack([-np.eye(3), -g[1] @ hat(ARM)])

    def rate_of_B(self, g, v):
        return -g[1] @ hat(v[3:]) @ hat(ARM) @ v[3:]

    def defect(self, g):
        return -g[0] + g[1] @ ARM


class TopSE3(TopR3xSO3):
    """The heavy top with body velocities, Φ = x - RX."""

    def ad(self, d):
        u, w = hat(d[:3]), hat(d[3:])
        return np.block([[w, u], [np.zeros((3, 3)), w]])

    def moved(self, g, d):
        motion = np.zeros((4, 4), dtype=np.asarray(d).dtype)
        motion[:3, :3], motion[:3, 3] = hat(d[3:]), d[:3]
        motion = series(motion, 0)
        return g[0] + g[1] @ motion[:3, 3], g[1] @ motion[:3, :3]

    def force(self, g, v):
        u, spin = v[:3], v[3:]
        weight = self.mass * g[1].T @ GRAVITY
        turn = np.cross(self.J @ spin, spin)
        return np.concatenate([weight - np.cross(spin, self.mass * u), turn])

    def by_velocity(self, v):
        u, spin = v[:3], v[3:]
        matrix = np.zeros((6, 6))
        matrix[:3, :3], matrix[:3, 3:] = self.mass * hat(spin), -self.mass * hat(u)
        matrix[3:, 3:] = FreeBody.by_velocity(self, spin)
        return matrix

    def by_motion(self, g, v, lam):
        turned = hat(g[1].T @ lam)
        matrix = np.zeros((6, 6))
        matrix[:3, 3:] = turned - self.mass * hat(g[1].T @ GRAVITY)
        matrix[3:, 3:] = -hat(ARM) @ turned
        return matrix

    def B(self, g):
        return np.hstack([g[1], g[1] @ hat(ARM)])

    def rate_of_B(self, g, v):
        return g[1] @ hat(v[3:]) @ (v[:3] + hat(ARM) @ v[3:])

    def defect(self, g):
        return g[0] - g[1] @ ARM


def chung_hulbert(rho):
    """(α_m, α_f, β, γ)."""
    am, af = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    return am, af, (1 - am + af) ** 2 / 4, 0.5 - am + af


def integrate(model, h, steps, alphas, start="default"):
    """States (g, v, v̇, λ) after each step, the initial one first.

    ``start``: "default" (a = v̇), "acceleration" (a shifted), "consistent" (and v perturbed).
    """
    am, af, beta, gamma = alphas
    g, v = model.start
    vd, lam = model.acceleration(g, v)
    a, shift = vd, am - af
    if start != "default":
        jerk = model.jerk(g, v)
        a = vd + shift * h * jerk
    if start == "consistent":
        l = h * h * ((1 / 6 - beta - shift / 2) * jerk + model.ad(v) @ vd / 12)
        B, Bt = model.B(g), np.linalg.solve(model.M, model.B(g).T)
        v = v + Bt @ np.linalg.solve(B @ Bt, B @ l)
    states = [(g, v, vd, lam)]
    n, m = model.size, model.constraints
    per_a = (1 - af) / (1 - am)  # da¹/dv̇¹
    vd1, lam1 = vd, lam
    for _ in range(steps):
        for iteration in range(20):
            a1 = ((1 - af) * vd1 + af * vd - am * a) / (1 - am)
            v1 = v + h * ((1 - gamma) * a + gamma * a1)
            d = h * v + h * h * ((0.5 - beta) * a + beta * a1)
            g1 = model.moved(g, d)
            B = model.B(g1)
            r = model.M @ vd1 - model.force(g1, v1) + B.T @ lam1
            phi = model.defect(g1) / h**2
            T = series(-model.ad(d), 1)
            K = model.by_motion(g1, v1, lam1) @ T
            S = model.M + per_a * (h * gamma * model.by_velocity(v1) + h * h * beta * K)
            matrix = np.block([[S, B.T], [per_a * beta * B @ T, np.zeros((m, m))]])
            change = np.linalg.solve(matrix, -np.concatenate([r, phi]))
            vd1, lam1 = vd1 + change[:n], lam1 + change[n:]
            if np.linalg.norm(change) <= 1e-12 * (1 + np.linalg.norm(vd1)) or iteration == 8:
                break
        a1 = ((1 - af) * vd1 + af * vd - am * a) / (1 - am)
        v1 = v + h * ((1 - gamma) * a + gamma * a1)
        g = model.moved(g, h * v + h * h * ((0.5 - beta) * a + beta * a1))
        v, vd, a, lam = v1, vd1, a1, lam1
        states.append((g, v, vd, lam))
    return states


def exact_top(times):
    """R, Ω, x and λ of the constraint -x + RX = 0 at some times, by DOP853 on SO(3)."""
    model = TopSO3()

    def slope(t, y):
        R = y[:9].reshape(3, 3)
        rate = model.acceleration((None, R), y[9:])[0]
        return np.concatenate([(R @ hat(y[9:])).ravel(), rate])

    first = np.concatenate([np.eye(3).ravel(), SPIN])
    times = np.asarray(times, dtype=float)
    found = solve_ivp(slope, (0, times[-1]), first, "DOP853", times, rtol=3e-14, atol=1e-13).y.T
    R, spin = found[:, :9].reshape(-1, 3, 3), found[:, 9:]
    rate = [model.acceleration((None, r), w)[0] for r, w in zip(R, spin, strict=True)]
    bent = [hat(w) @ hat(w) @ ARM + np.cross(d, ARM) for w, d in zip(spin, rate, strict=True)]
    force = MASS * (np.einsum("nij,nj->ni", R, bent) - GRAVITY)
    return R, spin, R @ ARM, force
