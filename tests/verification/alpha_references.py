"""Newmark, HHT, WBZ and Chung–Hulbert for linear systems in NumPy, each as its paper has it.

They solve M q̈ + C q̇ + K q = f(t), every one for its own unknown, start with a⁰ = M⁻¹(f - C v - K q)
and give the positions, velocities and true accelerations M⁻¹(f - C v - K q) of all nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Linear:
    """M q̈ + C q̇ + K q = f(t) with a start."""

    M: np.ndarray
    C: np.ndarray
    K: np.ndarray
    f: Callable[[float], np.ndarray]
    q: np.ndarray
    v: np.ndarray

    def acceleration(self, q, v, t):
        return np.linalg.solve(self.M, self.f(t) - self.C @ v - self.K @ q)


def four_masses() -> Linear:
    """A damped chain of four unequal masses under loads of several frequencies."""
    K = np.array(
        [[900, -300, 0, -20], [-300, 700, -400, 0], [0, -400, 650, -250], [-20, 0, -250, 270]]
    )
    M = np.diag([2.0, 1.0, 1.5, 0.5]) + 0.1
    C = 0.002 * K + 0.05 * M + np.diag([0.0, 0.3, 0.0, 0.1])
    amplitudes, frequencies = np.array([3.0, -2.0, 1.0, 4.0]), np.array([1.0, 2.3, 0.4, 5.0])
    return Linear(
        M,
        C,
        K.astype(float),
        lambda t: amplitudes * np.sin(frequencies * t + 0.3),
        np.array([0.1, -0.2, 0.05, 0.3]),
        np.array([1.0, 0.0, -2.0, 0.5]),
    )


def _run(system: Linear, h: float, steps: int, step: Callable) -> np.ndarray:
    """Nodes 1, 2, ... as an array of shape (steps, 3, n): q, v and the true acceleration."""
    q, v = system.q, system.v
    a = system.acceleration(q, v, 0.0)
    rows = []
    for n in range(steps):
        q, v, a = step(q, v, a, n * h, (n + 1) * h)
        rows.append((q, v, system.acceleration(q, v, (n + 1) * h)))
    return np.array(rows)


def newmark(s: Linear, h: float, steps: int, beta: float, gamma: float) -> np.ndarray:
    """Newmark (1959), solved for the new displacement."""
    S = s.K + gamma / (beta * h) * s.C + s.M / (beta * h**2)

    def step(q, v, a, t, t1):
        load = s.f(t1)
        load = load + s.M @ (q / (beta * h**2) + v / (beta * h) + (0.5 / beta - 1) * a)
        load = load + s.C @ (
            gamma / (beta * h) * q + (gamma / beta - 1) * v + h * (0.5 * gamma / beta - 1) * a
        )
        q1 = np.linalg.solve(S, load)
        a1 = (q1 - q - h * v) / (beta * h**2) - (0.5 / beta - 1) * a
        return q1, v + h * ((1 - gamma) * a + gamma * a1), a1

    return _run(s, h, steps, step)


def hht(s: Linear, h: float, steps: int, alpha: float) -> np.ndarray:
    """Hilber, Hughes & Taylor (1977): M a¹ + (1 + α) F(q¹, v¹) - α F(q, v), solved for a¹."""
    beta, gamma = (1 - alpha) ** 2 / 4, 0.5 - alpha
    S = s.M + (1 + alpha) * (gamma * h * s.C + beta * h**2 * s.K)

    def step(q, v, a, t, t1):
        ahead_q = q + h * v + h**2 * (0.5 - beta) * a
        ahead_v = v + h * (1 - gamma) * a
        old = s.C @ v + s.K @ q - s.f(t)
        new = s.C @ ahead_v + s.K @ ahead_q - s.f(t1)
        a1 = np.linalg.solve(S, alpha * old - (1 + alpha) * new)
        return ahead_q + beta * h**2 * a1, ahead_v + gamma * h * a1, a1

    return _run(s, h, steps, step)


def wbz(s: Linear, h: float, steps: int, alpha: float) -> np.ndarray:
    """Wood, Bossak & Zienkiewicz (1981): M ((1 - α) a¹ + α a) + C v¹ + K q¹ = f¹, solved for a¹."""
    beta, gamma = (1 - alpha) ** 2 / 4, 0.5 - alpha
    S = (1 - alpha) * s.M + gamma * h * s.C + beta * h**2 * s.K

    def step(q, v, a, t, t1):
        ahead_q = q + h * v + h**2 * (0.5 - beta) * a
        ahead_v = v + h * (1 - gamma) * a
        a1 = np.linalg.solve(S, s.f(t1) - alpha * s.M @ a - s.C @ ahead_v - s.K @ ahead_q)
        return ahead_q + beta * h**2 * a1, ahead_v + gamma * h * a1, a1

    return _run(s, h, steps, step)


def generalized_alpha(
    s: Linear, h: float, steps: int, m: float, f: float, beta: float, gamma: float
) -> np.ndarray:
    """Chung & Hulbert (1993): the balance at (1 - α_f) of the step with the mean of the nodes' loads.

    M ((1 - m) a¹ + m a) + C ((1 - f) v¹ + f v) + K ((1 - f) q¹ + f q) = (1 - f) load¹ + f load,
    solved for all three unknowns at once.
    """
    n, one = len(s.q), np.eye(len(s.q))
    S = np.block(
        [
            [(1 - f) * s.K, (1 - f) * s.C, (1 - m) * s.M],
            [one, 0 * one, -beta * h**2 * one],
            [0 * one, one, -gamma * h * one],
        ]
    )

    def step(q, v, a, t, t1):
        right = np.concatenate(
            [
                (1 - f) * s.f(t1) + f * s.f(t) - m * s.M @ a - f * (s.C @ v + s.K @ q),
                q + h * v + h**2 * (0.5 - beta) * a,
                v + h * (1 - gamma) * a,
            ]
        )
        solution = np.linalg.solve(S, right)
        return solution[:n], solution[n : 2 * n], solution[2 * n :]

    return _run(s, h, steps, step)


def chung_hulbert(s: Linear, h: float, steps: int, rho: float) -> np.ndarray:
    """Their optimal parameters for the spectral radius ρ at infinite frequency."""
    m, f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    return generalized_alpha(s, h, steps, m, f, (1 - m + f) ** 2 / 4, 0.5 - m + f)
