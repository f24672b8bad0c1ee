"""Canonical systems with known motions: one a cell, as fdgeom's systems and as NumPy's equations."""

from __future__ import annotations

import numpy as np
from firedrake import (
    Function,
    FunctionSpace,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    VectorFunctionSpace,
    cos,
    dot,
    dx,
    sin,
    sqrt,
)

import fdgeom as fg

KEPLER = (0.4, 0.0, 0.0, 2.0)  # eccentricity 0.6, at the pericentre; the period is 2π
HENON_HEILES = (0.2, 0.2, 0.3, 0.3)
HENON_HEILES_AT_10 = (-0.2735991307, -0.0669399844)
MIXED = (0.4, -0.3, 0.2, 0.5)
LENGTHS, MASSES, GRAVITY = (2.0, 3.0), (1.0, 2.0), 9.80665
DOUBLE_PENDULUM_AT_10 = (0.87467888, 0.55850350)


def canonical(values, energy, **options):
    """The system of ``energy(q, p)`` whose copies start at the rows (q, p) of ``values``."""
    values = np.atleast_2d(np.asarray(values, dtype=float))
    half = values.shape[1] // 2
    mesh = fg.copies(len(values))
    space = (
        FunctionSpace(mesh, "DG", 0) if half == 1 else VectorFunctionSpace(mesh, "DG", 0, dim=half)
    )
    q, p = Function(space, name="q"), Function(space, name="p")
    system = fg.HamiltonianSystem(q, p, energy(q, p) * dx, **options)
    put(system, values)
    return system


def put(system, values):
    """Set the state from rows (q, p)."""
    values = np.atleast_2d(values)
    half = values.shape[1] // 2
    for part, block in ((system.q, values[:, :half]), (system.p, values[:, half:])):
        part.dat.data_wo[...] = block.reshape(part.dat.data_ro.shape)


def rows(system):
    """The state as rows (q, p)."""
    n = len(system.q.dat.data_ro)
    return np.concatenate([f.dat.data_ro.reshape(n, -1) for f in (system.q, system.p)], axis=1)


def kepler(values=KEPLER):
    return canonical(values, lambda q, p: 0.5 * dot(p, p) - 1 / sqrt(dot(q, q)))


def kepler_energy(z):
    return 0.5 * (z[:, 2:] ** 2).sum(axis=1) - 1 / np.hypot(z[:, 0], z[:, 1])


def pendulum(values=(2.0, 0.0)):
    return canonical(values, lambda q, p: 0.5 * p**2 - cos(q))


def henon_heiles(values=HENON_HEILES):
    return canonical(
        values,
        lambda q, p: 0.5 * dot(p, p) + 0.5 * dot(q, q) + q[0] ** 2 * q[1] - q[1] ** 3 / 3,
    )


def henon_heiles_field(t, z):
    x, y, u, v = z
    return [u, v, -x - 2 * x * y, -y - x * x + y * y]


def mixed(values=MIXED):
    """An energy that is not separable."""
    return canonical(
        values,
        lambda q, p: (
            0.5 * (1 + q[0] ** 2) * dot(p, p)
            + 0.5 * dot(q, q)
            + 0.25 * q[1] ** 4
            + q[0] * p[1] ** 3
        ),
    )


def mixed_field(t, z):
    a, b, c, d = z
    a_dot, b_dot = (1 + a * a) * c, (1 + a * a) * d + 3 * a * d * d
    return [a_dot, b_dot, -(a * (c * c + d * d) + a + d**3), -(b + b**3)]


def double_pendulum():
    """Angles from the vertical, from θ = (π/4, π/2), ω = (0, π/8)."""
    (l1, l2), (m1, m2) = LENGTHS, MASSES
    a, d = (m1 + m2) * l1**2, m2 * l2**2
    coupling = m2 * l1 * l2

    def energy(q, p):
        b = coupling * cos(q[0] - q[1])
        kinetic = (d * p[0] ** 2 - 2 * b * p[0] * p[1] + a * p[1] ** 2) / (2 * (a * d - b * b))
        return kinetic - GRAVITY * ((m1 + m2) * l1 * cos(q[0]) + m2 * l2 * cos(q[1]))

    angles, rates = np.array([np.pi / 4, np.pi / 2]), np.array([0.0, np.pi / 8])
    b = coupling * np.cos(angles[0] - angles[1])
    momenta = np.array([[a, b], [b, d]]) @ rates
    return canonical(np.concatenate([angles, momenta]), energy)


def ring_wave(cells=8, stiffening=1.0, **options):
    """u_tt = u_xx - u³ on a circle, CG1: h = ∫ ½p² + ½u_x² + ¼u⁴; ``stiffening`` 0 is linear."""
    mesh = PeriodicIntervalMesh(cells, 2 * np.pi)
    space = FunctionSpace(mesh, "CG", 1)
    (x,) = SpatialCoordinate(mesh)
    u, p = Function(space, name="u"), Function(space, name="p")
    u.interpolate(sin(x))
    p.interpolate(cos(2 * x))
    measure = options.get("measure", dx)
    energy = 0.5 * u.dx(0) ** 2 * dx + (0.5 * p**2 + 0.25 * stiffening * u**4) * measure
    return fg.HamiltonianSystem(u, p, energy, names=("u", "p"), **options)
