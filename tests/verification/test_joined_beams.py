"""Beams with joints: the flexible double pendulum, its rigid limit, a closed loop, several ranks."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from verification import rigid_links
from verification.beams_on_se3 import AssemblyOnSE3
from verification.moving_beams import (
    FOUR_BAR,
    end,
    flexible_double_pendulum,
    four_bar,
    stiff_double_pendulum,
)
from verification.numpy_cells import Cells, frames

import fdgeom as fg

SCHEME = fg.hamel_alpha(0.8)


@pytest.fixture(scope="module")
def pendulum():
    """Elbow and tip of the flexible double pendulum at some times, on SE(3), from ``numpy_cells``.

    The same cells with the same section and joints, in the same steps of 5e-4 s.
    """
    b, rho, E = 5e-4, 2700.0, 2.1e10
    area, moment, shear = b**2, b**4 / 12, E / 2.6
    stiffness = [0.1406 * b**4 * shear, *[E * moment] * 2, E * area, *[5 / 6 * shear * area] * 2]
    inertia = rho * np.diag([2 * moment, moment, moment, area, area, area])
    # Three cells along x, five along y, whose first axis is turned from x to y.
    x = np.array([(0.1 * k, 0, 0) for k in range(4)] + [(0.3, 0.1 * k, 0) for k in range(6)])
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    cells = Cells(
        frames(x, np.array([np.eye(3)] * 4 + [turn] * 6)),
        [(k, k + 1) for k in (*range(3), *range(4, 9))],
        [0.1] * 8,
        np.diag(stiffness),
        "se3",
        inertia=inertia,
        ball=[(-1, 0), (3, 4)],
        gravity=(0, 0, -9.81),
    )
    steps, number, found = cells.alpha_steps(5e-4, 0.8), 0, {}
    for t in (0.2, 0.5, 1.0):
        count = round(t / 5e-4) - number
        poses = next(itertools.islice(steps, count - 1, None))
        number += count
        found[t] = poses[3, :3, 3], poses[9, :3, 3]
    return found


def test_flexible_double_pendulum(pendulum):
    system = flexible_double_pendulum()
    upper, lower = system.beams
    stepper = fg.GeneralizedAlpha(system, 5e-4, SCHEME)
    start, worst = system.energy(), 0.0
    for t, (elbow, tip) in pendulum.items():
        while stepper.t < t - 1e-9:
            stepper.advance(20)
            worst = max(worst, abs(system.energy() - start))
            assert system.gap() < 1e-12
        # The NumPy program moves on SE(3): another error of the step; see the next test.
        assert end(upper) == pytest.approx(elbow, abs=1e-5)
        assert end(lower) == pytest.approx(tip, abs=1e-5)
    # The energy of the swing is 3.3e-3 J.
    assert worst < 1e-7
    assert stepper.solver_stats()["newton_iterations"] <= 3 * stepper.steps


def test_flexible_double_pendulum_on_se3(pendulum):
    """On the group and with the retraction of the NumPy program: the same motion."""
    system = AssemblyOnSE3(flexible_double_pendulum())
    stepper = fg.GeneralizedAlpha(system, 5e-4, SCHEME)
    for t, (elbow, tip) in pendulum.items():
        stepper.advance(round((t - stepper.t) / 5e-4))
        # Both solve each step to 1e-12 or so, and the thin arms are a hundred times as stiff in length.
        assert end(system.beams[0]) == pytest.approx(elbow, abs=1e-8)
        assert end(system.beams[1]) == pytest.approx(tip, abs=1e-8)


def test_order_of_the_double_pendulum(pendulum, recorded):
    """Energy error and tip: second order in the step."""
    errors, tips = [], []
    for dt in (5e-4, 2.5e-4, 1.25e-4):
        system = flexible_double_pendulum()
        stepper = fg.GeneralizedAlpha(system, dt, SCHEME)
        start = system.energy()
        worst = 0.0
        for _ in range(50):
            stepper.advance(round(0.01 / dt))
            worst = max(worst, abs(system.energy() - start))
        errors.append(worst)
        tips.append(end(system.beams[1]))
    ratios = [a / b for a, b in itertools.pairwise(errors)]
    assert np.allclose(ratios, 4, atol=0.5), errors
    change = [np.abs(b - a).max() for a, b in itertools.pairwise(tips)]
    recorded.values(
        "Flexible double pendulum, thin arms on ball joints",
        "x of the tip at t = 0.5 s [m]",
        reference=pendulum[0.5][1][0],
        source="NumPy program of the cells' energy on SE(3), in steps of 5e-4 s",
        meshes=(1000, 2000, 4000),
        values=[x[0] for x in tips],
        by="steps a half second",
    )
    assert change[0] / change[1] == pytest.approx(4, abs=0.3)
    # The NumPy program's motion is within its own error of the step.
    limit = tips[2] + (tips[2] - tips[1]) / 3
    assert limit == pytest.approx(pendulum[0.5][1], abs=1e-5)


def test_stiff_arms_are_rigid(recorded):
    b, rho = 5e-4, 2700.0
    lengths = (0.3, 0.5)
    masses = [rho * b**2 * length for length in lengths]
    elbow, tip = rigid_links.double_pendulum(lengths, masses, (3, 5), rho * b**4 / 12, 0.5)
    errors, heights = [], []
    for dt in (0.01, 0.005, 0.0025):
        system = stiff_double_pendulum()
        fg.GeneralizedAlpha(system, dt, SCHEME).advance(round(0.5 / dt))
        found = [end(beam)[[0, 2]] for beam in system.beams]
        errors.append(max(np.abs(found[0] - elbow).max(), np.abs(found[1] - tip).max()))
        heights.append(found[1][1])
        assert system.gap() < 1e-12
    assert errors[2] < 1e-4
    recorded.values(
        "Double pendulum of stiff arms",
        "z of the tip at t = 0.5 s [m]",
        reference=tip[1],
        source="rigid links with the inertia of the nodes, by an independent program",
        meshes=(50, 100, 200),
        values=heights,
        by="steps",
    )
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.allclose(orders, 2, atol=0.15), errors


def test_four_bar():
    """A closed loop of stiff bars: the crank of the rigid linkage, and no drift."""
    radius, cells = 0.02, 4
    area = np.pi * radius**2
    mass, spin = 7800 * area, 7800 * area * radius**2 / 4
    times = np.linspace(0, 2, 21)
    exact = rigid_links.four_bar(FOUR_BAR, cells, mass, spin, times)
    assert np.ptp(exact) > 1.0
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        # A hundred times as stiff as steel, which gives by 1e-3 where the crank is fastest.
        system = four_bar(cells, radius, modulus=2e13)
        stepper = fg.GeneralizedAlpha(system, dt, SCHEME)
        start, found = system.energy(), []
        for t in times:
            stepper.advance(round((t - stepper.t) / dt))
            found.append(np.arctan2(*end(system.beams[0])[1::-1]))
            assert system.gap() < 1e-12
        errors.append(np.abs(np.unwrap(found) - exact).max())
        assert abs(system.energy() - start) < 1e-5 * abs(start)
    assert errors[0] < 2e-3
    # The last is near the bars' own vibrations.
    assert np.allclose(np.log2(np.array(errors[:-1]) / errors[1:]), 2, atol=0.2), errors


@pytest.mark.parallel
def test_several_ranks(on_ranks, several):
    """The same run on one rank and on several."""
    script = Path(__file__).with_name("parallel_joined.py")
    found = [on_ranks(script, ranks) for ranks in (1, several)]
    for name in found[0]:
        # Another factorisation, whose rounding the swing of half a second magnifies.
        allowed = 1e-10 * max(1.0, np.abs(found[0][name]).max())
        assert found[1][name] == pytest.approx(found[0][name], abs=allowed), name
