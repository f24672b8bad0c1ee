"""A stiff spring beside a soft one: what each scheme leaves of the stiff oscillation."""

from __future__ import annotations

import numpy as np
import pytest
from firedrake import (
    DirichletBC,
    Function,
    FunctionSpace,
    IntervalMesh,
    as_vector,
    dx,
    sin,
)
from verification.spring_systems import follow, matrices

import fdgeom as fg

STIFF, SOFT = 1e4, 1.0
STEPS = 200
SYSTEMS = {
    # Wall - stiff - mass - soft - mass, and with the springs exchanged.
    "stiff first": np.array([[STIFF + SOFT, -SOFT], [-SOFT, SOFT]]),
    "soft first": np.array([[STIFF + SOFT, -STIFF], [-STIFF, STIFF]]),
}
START = np.array([1.0, 10.0])
NEWMARK, HAMEL = fg.newmark(), fg.hamel_alpha
# Largest |v₁|; rms of q₁, v₁ and a₁ less the slow mode over the second half; slow energy left.
PUBLISHED = [
    ("stiff first", NEWMARK, 9.9902e1, (7.1313e-1, 6.9964e1, 7.1320e3), 1.0),
    ("stiff first", HAMEL(0.8), 9.8914e1, (2.8805e-4, 2.8972e-4, 2.5839e-3), 0.99732),
    ("stiff first", HAMEL(0.5), 2.0910e2, (3.9766e-4, 3.9386e-4, 3.9762e-4), 0.93348),
    ("stiff first", HAMEL(0.0), 7.8949e2, (8.7977e-4, 8.7047e-4, 8.7968e-4), 0.24858),
    ("soft first", NEWMARK, 6.3981e2, (3.5545, 4.4508e2, 6.4329e4), 1.0),
    ("soft first", HAMEL(0.8), 9.3469e2, (1.5843, 1.1177, 7.9216e-1), 0.99732),
]
# q₁, q₂, v₁, v₂ of the first system with ρ∞ = 0.8.
STATES = {
    1: (-9.3448517278e-1, 9.5189251850, -4.3580774031e1, -3.0601153623),
    2: (7.7677116084e-1, 8.1214156074, 7.2755692815e1, -5.8405815677),
    20: (-7.2214768696e-2, 9.9844193664, -1.0709777286e1, 5.3750991359e-1),
    100: (9.6521906004e-4, 9.6353718041, 3.6761476215e-4, 2.6512153666),
    200: (8.5805947462e-4, 8.5805948210, 5.1093147743e-4, 5.1093132317),
}


class Run:
    """200 steps, twenty to a period of the slow mode, and the modes of the exact solution."""

    def __init__(self, name, scheme):
        K = SYSTEMS[name]
        squares, self.modes = np.linalg.eigh(K)
        self.omega = np.sqrt(squares)
        self.h = 2 * np.pi / self.omega[0] / 20
        stepper = fg.GeneralizedAlpha(matrices(np.eye(2), K, START, [0, 0]), self.h, scheme)
        self.rows = follow(stepper, STEPS)

    def slow(self):
        """q, v, a of the slow part of the exact solution at all nodes."""
        w, mode, t = self.omega[0], self.modes[:, 0], self.h * np.arange(STEPS + 1)
        c = mode @ START
        parts = (np.cos(w * t), -w * np.sin(w * t), -(w**2) * np.cos(w * t))
        return np.stack([c * np.outer(p, mode) for p in parts], axis=1)

    def energy_left(self, k):
        q, v = (self.rows[:, i] @ self.modes[:, k] for i in (0, 1))
        energy = v**2 + self.omega[k] ** 2 * q**2
        return energy[-1] / energy[0]


@pytest.mark.parametrize(("name", "scheme", "speed", "rms", "slow"), PUBLISHED)
def test_published_runs(name, scheme, speed, rms, slow):
    run = Run(name, scheme)
    # Half of the fifth printed digit.
    assert np.abs(run.rows[:, 1, 0]).max() == pytest.approx(speed, rel=5e-5)
    gap = (run.rows - run.slow())[STEPS // 2 :, :, 0]
    assert np.sqrt((gap**2).mean(axis=0)) == pytest.approx(rms, rel=5e-5)
    assert run.energy_left(0) == pytest.approx(slow, abs=6e-6)


@pytest.mark.parametrize("name", SYSTEMS)
def test_newmark_rings_and_hamel_does_not(name):
    assert Run(name, NEWMARK).energy_left(1) == pytest.approx(1.0, abs=1e-9)  # rounding at Ω = 31
    assert Run(name, HAMEL(0.8)).energy_left(1) < 1e-23


def test_published_states():
    run = Run("stiff first", HAMEL(0.8))
    for n, expected in STATES.items():
        # Eleven digits are printed, of a motion of size 10; v₁ reaches 100.
        assert run.rows[n, :2].reshape(-1) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("scheme", "rms"),
    [
        (NEWMARK, (8.4772e-3, 8.6342e-1, 8.4781e1)),
        (HAMEL(0.8), (4.0765e-4, 2.8820e-2, 4.0786)),
        (HAMEL(0.5), (1.3276e-5, 9.6425e-3, 2.4964e-2)),
    ],
    ids=["newmark", "0.8", "0.5"],
)
def test_driven_through_a_stiff_spring(scheme, rms):
    """Bathe & Noh (2012): the foot of the stiff spring moves as sin 1.2 t; forty steps from rest."""
    h, steps, rate = 0.2618, 40, 1.2
    K = SYSTEMS["stiff first"]
    system = matrices(
        np.eye(2), K, [0, 0], [0, 0], force=lambda t: as_vector([STIFF * sin(rate * t), 0])
    )
    rows = follow(fg.GeneralizedAlpha(system, h, scheme), steps)
    squares, modes = np.linalg.eigh(K)
    w, t = np.sqrt(squares), h * np.arange(steps + 1)
    exact = np.zeros((steps + 1, 3))
    for k in range(2):
        amplitude = modes[0, k] ** 2 * STIFF / (squares[k] - rate**2)
        # Of the stiff mode only the forced part.
        free = rate / w[k] if k == 0 else 0.0
        exact += amplitude * np.stack(
            [
                np.sin(rate * t) - free * np.sin(w[k] * t),
                rate * np.cos(rate * t) - free * w[k] * np.cos(w[k] * t),
                -(rate**2) * np.sin(rate * t) + free * w[k] ** 2 * np.sin(w[k] * t),
            ],
            axis=1,
        )
    gap = (rows[:, :, 0] - exact)[steps // 2 :]
    assert np.sqrt((gap**2).mean(axis=0)) == pytest.approx(rms, rel=5e-5)  # five printed digits


@pytest.mark.parametrize(
    ("method", "dt", "compiled"),
    [
        (fg.GeneralizedAlpha, 0.05, True),
        (fg.GeneralizedAlpha, 0.05, False),
        (fg.HermiteSimpson, 0.01, False),
    ],
)
def test_a_nonlinear_bar_comes_to_rest(method, dt, compiled):
    """Increments and accelerations near rest are as small as round-off of the positions."""
    n = 5
    V = FunctionSpace(IntervalMesh(n, 1.0), "CG", 1)
    u, v = Function(V), Function(V)

    def residual(u, v, a, t, w):
        e = u.dx(0)
        return (a * w + 10 * v * w + 100 * (e + e**3) * w.dx(0) - 50 * w) * dx

    system = fg.SecondOrderSystem(residual, u, v, bcs=[DirichletBC(V, 0, 1)])
    stepper = method(system, dt, compiled=compiled)
    stepper.advance(500)
    assert not stepper.fallbacks
    # The stress in the middle of a cell carries half of the load of 50 that is right of it.
    strains = [np.roots([1, 0, 1, -(1 - (k + 0.5) / n) / 2])[2].real for k in range(n)]
    assert u.dat.data_ro.max() == pytest.approx(sum(strains) / n, rel=1e-9)
