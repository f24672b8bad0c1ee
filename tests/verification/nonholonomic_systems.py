"""Nonholonomic systems for the tests, and their equations of motion in plain NumPy."""

from __future__ import annotations

import numpy as np
from firedrake import Function, FunctionSpace, VectorFunctionSpace, cos, dot, dx, sin
from scipy.integrate import solve_ivp

import fdgeom as fg

PARTICLE_START = (0.3, 0.5, -0.2, 0.7, -0.4, 0.35)


def fields(number, dim, constraints, starts):
    """q, velocity and multiplier in DG0 on copies, and the start put in."""
    mesh = fg.copies(number)
    space = VectorFunctionSpace(mesh, "DG", 0, dim=dim)
    kind = FunctionSpace if constraints == 1 else VectorFunctionSpace
    options = {} if constraints == 1 else {"dim": constraints}
    q, v = Function(space, name="q"), Function(space, name="velocity")
    starts = np.broadcast_to(starts, (number, 2 * dim))
    q.dat.data_wo[...], v.dat.data_wo[...] = starts[:, :dim], starts[:, dim:]
    return q, v, Function(kind(mesh, "DG", 0, **options), name="multiplier")


def particle(number=1, starts=PARTICLE_START):
    """The particle with ż = yẋ, in a skew harmonic potential."""
    q, v, mult = fields(number, 3, 1, starts)
    potential = 0.5 * (q[0] ** 2 + 2 * q[1] ** 2 + q[2] ** 2 + q[0] * q[1])
    return fg.NonholonomicSystem(
        q,
        v,
        (0.5 * dot(v, v) - potential) * dx,
        lambda mult, v: mult * (v[2] - q[1] * v[0]) * dx,
        mult,
    )


def particle_rates(state):
    """(q̇, v̇) of the particle, and its multiplier, from A v̇ = -Ȧ v."""
    (x, y, z), v = state[:3], state[3:]
    force = -np.array([x + 0.5 * y, 2 * y + 0.5 * x, z])
    A = np.array([-y, 0.0, 1.0])
    multiplier = (v[0] * v[1] - A @ force) / (A @ A)
    return np.concatenate([v, force + multiplier * A]), multiplier


def particle_reference(end):
    """The state at a time, by DOP853."""
    found = solve_ivp(
        lambda t, y: particle_rates(y)[0],
        (0, end),
        PARTICLE_START,
        "DOP853",
        rtol=1e-13,
        atol=1e-14,
    )
    return found.y[:, -1]


BALL_MOMENTA = (1.0, 5.0, 0.0)
#: Velocity of the centre, exact and constant (the spatial angular velocity is).
BALL_VELOCITY = (0.412393049, -3.571428571)


def ball_rates(angles, momenta):
    """ψ̇, θ̇, φ̇ of the ball from the momenta of equation (18) of Liu et al."""
    _, theta, _ = angles
    a, b, c = momenta
    s, k = np.sin(theta), np.cos(theta)
    return np.array([(a - c * k) / s**2, b, (c - a * k) / s**2]) * 5 / 7


def rolling_ball():
    """A homogeneous ball (m = r = 1) rolling on a plane, in (ψ, θ, φ, x, y)."""
    angles = np.array([0.0, np.pi / 3, 0.0])
    a, b, c = ball_rates(angles, BALL_MOMENTA)
    s = np.sin(angles[1])
    start = np.concatenate([angles, [0, 0], [a, b, c], [-c * s, -b]])
    q, v, mult = fields(1, 5, 2, start)
    turning = v[0] ** 2 + v[1] ** 2 + v[2] ** 2 + 2 * v[0] * v[2] * cos(q[1])

    def constraint(mult, v):
        x = v[3] + v[2] * sin(q[1]) * cos(q[0]) - v[1] * sin(q[0])
        y = v[4] + v[2] * sin(q[1]) * sin(q[0]) + v[1] * cos(q[0])
        return (mult[0] * x + mult[1] * y) * dx

    lagrangian = (0.5 * (v[3] ** 2 + v[4] ** 2) + turning / 5) * dx
    return fg.NonholonomicSystem(q, v, lagrangian, constraint, mult)
