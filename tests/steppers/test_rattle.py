"""RATTLE and SHAKE on the spherical pendulum and on two coupled constraints."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from verification.constrained_systems import (
    DOUBLE,
    GRAVITY,
    LENGTHS,
    MASSES,
    PAPER,
    ROTATING,
    double_pendulum,
    spherical_pendulum,
)
from ways import check_way, number_of_solves

import fdgeom as fg

R, S = fg.RATTLE, fg.SHAKE


def state(system):
    return np.concatenate([np.array(f.dat.data_ro) for f in (system.q, system.p)], axis=1)


def test_traits():
    for cls, symmetric in ((R, True), (S, False)):
        assert (cls.order, cls.symmetric, cls.symplectic) == (2, symmetric, True)
    assert set(S.conserves) < set(R.conserves)


# --- the paper's run -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("dt", "lowest", "band"),
    [(0.1, -8.521386, 3.43e-2), (0.01, -8.487392, 3.432e-4), (0.001, -8.4870524, 3.432e-6)],
)
def test_energy_of_the_papers_pendulum(dt, lowest, band):
    """Energies, constraints and angle after every step, for t up to 10."""
    system = spherical_pendulum()
    first = system.energy()
    assert first == pytest.approx(-8.487048957087499, abs=1e-14)
    stepper = R(system, dt)
    low = high = first
    for _ in range(round(10 / dt)):
        stepper.advance()
        (q,), (p,) = system.q.dat.data_ro, system.p.dat.data_ro
        energy = 0.5 * p @ p - 9.8 * q[2]
        low, high = min(low, energy), max(high, energy)
        assert abs(q @ q - 1) <= 1e-14
        assert abs(2 * q @ p) <= 1e-14
        # φ stays what it was, up to a half turn at the lowest point.
        assert q[0] == pytest.approx(q[1], abs=1e-12)
    assert low == pytest.approx(lowest, rel=1e-7)
    # Three digits are asked for; the last given one may be rounded.
    assert first - low == pytest.approx(band, rel=2e-3)
    # It only dips.
    assert high - first < 1e-12


def test_energy_does_not_drift():
    """The same band from t = 90 to 100 as up to 10."""
    system = spherical_pendulum()
    first = system.energy()
    stepper = R(system, 0.01)
    lowest = []
    for start in (0, 90):
        stepper.advance(round(100 * start) - stepper.steps)
        low = 0.0
        for _ in range(1000):
            stepper.advance()
            low = min(low, system.energy() - first)
        lowest.append(low)
    assert lowest[0] == pytest.approx(-3.432e-4, rel=1e-3)
    assert lowest[1] == pytest.approx(lowest[0], rel=1e-3)
    assert system.constraint_defect() <= 1e-14
    assert system.velocity_defect() <= 1e-14
    (q,) = system.q.dat.data_ro
    assert np.arctan2(q[1], q[0]) == pytest.approx(np.pi / 4, abs=1e-12)


# --- the rotating pendulum -----------------------------------------------------------------------
def slope_on_sphere(t, z, gravity=1.0):
    """q̈ = force + multiplier q, with the multiplier from q·q̈ + |q̇|² = 0."""
    q, v = z[:3], z[3:]
    force = np.array([0, 0, -gravity])
    return np.concatenate([v, force - (q @ force + v @ v) * q])


@pytest.fixture(scope="module")
def reference():
    start = np.concatenate(ROTATING)
    end = solve_ivp(slope_on_sphere, (0, 10), start, "DOP853", rtol=3e-14, atol=1e-15).y[:, -1]
    assert end[:3] == pytest.approx([0.792797374, -0.276479285, -0.543168049], abs=1e-9)
    return end


@pytest.mark.parametrize("cls", [R, S])
def test_published_errors_and_order(cls, reference, recorded):
    errors = []
    for dt, published in ((0.1, 1.49e-2), (0.05, 3.73e-3), (0.025, 9.31e-4), (0.0125, 2.33e-4)):
        system = spherical_pendulum(ROTATING, gravity=1.0)
        assert system.energy() == pytest.approx(-0.2203023058681, abs=1e-13)
        stepper = cls(system, dt)
        stepper.advance(round(10 / dt))
        (q,), (p,) = system.q.dat.data_ro, system.p.dat.data_ro
        errors.append(np.linalg.norm(state(system)[0] - reference))
        if cls is R:
            assert errors[-1] == pytest.approx(published, rel=3e-3)
        assert q[0] * p[1] - q[1] * p[0] == pytest.approx(0.6731767878463, abs=2e-12)
        assert system.constraint_defect() <= 1e-14
        # SHAKE's momentum is off by a multiple of dt².
        assert system.velocity_defect() <= (1e-14 if cls is R else 0.5 * dt**2)
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert slopes == pytest.approx(2, abs=0.05)
    recorded.order(
        cls.__name__, "rotating pendulum", claimed=2, measured=slopes[-1],
        steps=(100, 200, 400, 800), errors=errors,
    )  # fmt: skip
    recorded.defect(
        cls.__name__, "constraint", "rotating pendulum, to t = 10", claimed=True,
        measured=system.constraint_defect(), bound=1e-14,
    )  # fmt: skip
    recorded.defect(
        cls.__name__, "velocity constraint", "rotating pendulum, to t = 10", claimed=cls is R,
        measured=system.velocity_defect(), bound=1e-14,
    )  # fmt: skip


def test_order_of_a_composition(reference):
    """Fourth order from RATTLE, as it is symmetric; both constraints still hold."""
    errors = []
    for dt in (0.1, 0.05, 0.025):
        system = spherical_pendulum(ROTATING, gravity=1.0)
        fg.Composition(R, order=4)(system, dt).advance(round(10 / dt))
        errors.append(np.linalg.norm(state(system)[0] - reference))
        assert max(system.constraint_defect(), system.velocity_defect()) <= 1e-14
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert slopes == pytest.approx(4, abs=0.2)


def test_shake_has_rattles_positions():
    results = []
    for cls in (R, S):
        system = spherical_pendulum(ROTATING, gravity=1.0)
        cls(system, 0.05).advance(100)
        results.append(state(system)[0])
    # A hundred steps of round-off.
    assert results[1][:3] == pytest.approx(results[0][:3], abs=1e-13)
    apart = results[1][3:] - results[0][3:]
    # The momenta differ along Dg, by O(dt²).
    assert 1e-8 < np.linalg.norm(apart) < 0.05**2
    assert np.linalg.norm(np.cross(apart, results[0][:3])) < 1e-13


# --- structure -----------------------------------------------------------------------------------
def tangent_frame(q, v):
    """Tangent vectors (δq, δv) of the manifold |q| = 1, q·v = 0, as rows."""
    a = np.cross(q, [0.3, -0.5, 0.8])
    a /= np.linalg.norm(a)
    b = np.cross(q, a)
    # δq·v + q·δv = 0 is met by turning q and v together.
    turns = [np.concatenate([np.cross(axis, q), np.cross(axis, v)]) for axis in (a, b)]
    return np.array([*turns, [*np.zeros(3), *a], [*np.zeros(3), *b]])


def on_manifold(q, v, direction, size):
    """A point on the manifold in a tangent direction, second order accurate."""
    q, v = q + size * direction[:3], v + size * direction[3:]
    q = q / np.linalg.norm(q)
    return np.concatenate([q, v - (q @ v) * q])


def runge_kutta(z, dt):
    def slope(z):
        return slope_on_sphere(0, z)

    a = slope(z)
    b = slope(z + dt / 2 * a)
    c = slope(z + dt / 2 * b)
    return z + dt / 6 * (a + 2 * b + 2 * c + slope(z + dt * c))


@pytest.mark.parametrize("cls", [R, S])
def test_symplectic_on_the_manifold(cls):
    """ω = dq∧dp of two tangent vectors is kept: differences between copies, stepped at once.

    By SHAKE too, whose momenta differ from RATTLE's along Dg, which no δq of the manifold sees.
    """
    q, v = (np.array(x) for x in ROTATING)
    frame, dt, size = tangent_frame(q, v), 0.3, 1e-3
    points = np.array([on_manifold(q, v, d, size * e) for d in frame for e in (1, -1, 2, -2)])
    system = spherical_pendulum((points[:, :3], points[:, 3:]), gravity=1.0)
    cls(system, dt).advance(3)
    other = points
    for _ in range(3):
        other = np.array([runge_kutta(z, dt) for z in other])

    def forms(values):
        one, two, three, four = np.moveaxis(values.reshape(4, 4, 6), 1, 0)
        # Fourth order, so good to size⁴ and to round-off/size.
        d = (8 * (one - two) - (three - four)) / (12 * size)
        return d[:, :3] @ d[:, 3:].T - d[:, 3:] @ d[:, :3].T

    before = forms(points)
    assert np.abs(before).max() > 0.5
    assert np.abs(forms(state(system)) - before).max() < 1e-9
    assert np.abs(forms(other) - before).max() > 1e-5


@pytest.mark.parametrize("compiled", [True, False])
def test_reversible(compiled):
    """Forth, momentum turned round, back, and round again: the start, to round-off."""
    system = double_pendulum()
    stepper = R(system, 0.02, compiled=compiled)
    before = state(system)
    for _ in range(2):
        stepper.advance(20)
        system.p.dat.data_wo[...] *= -1
    # Forty steps of a system that amplifies round-off.
    assert state(system) == pytest.approx(before, abs=1e-11)


# --- coupled constraints -------------------------------------------------------------------------
def double_pendulum_slope(t, z):
    """Index-reduced equations of the two masses: an independent program."""
    q, v = z[:6], z[6:]
    mass = np.repeat(MASSES, 3)
    force = np.zeros(6)
    force[[2, 5]] = -GRAVITY * np.array(MASSES)
    d, e = q[3:] - q[:3], v[3:] - v[:3]
    gradient = np.array([[*2 * q[:3], 0, 0, 0], [*-2 * d, *2 * d]])
    second = np.array([2 * v[:3] @ v[:3], 2 * e @ e])
    lhs = gradient / mass @ gradient.T
    mult = np.linalg.solve(lhs, -second - gradient @ (force / mass))
    return np.concatenate([v, (force + gradient.T @ mult) / mass])


def test_two_coupled_constraints():
    start = np.concatenate(DOUBLE)
    r1, r2 = start[:3], start[3:6]
    assert np.linalg.norm(r1) == pytest.approx(LENGTHS[0], abs=1e-15)
    assert np.linalg.norm(r2 - r1) == pytest.approx(LENGTHS[1], abs=1e-15)
    reference = solve_ivp(double_pendulum_slope, (0, 1), start, "DOP853", rtol=1e-12, atol=1e-13)
    end = reference.y[:6, -1]
    errors = []
    for steps in (50, 100, 200, 400):
        system = double_pendulum()
        first = system.energy()
        stepper = R(system, 1 / steps)
        assert stepper.is_compiled
        stepper.advance(steps)
        errors.append(np.linalg.norm(system.q.dat.data_ro[0] - end))
        assert max(system.constraint_defect(), system.velocity_defect()) < 1e-14
        # About the vertical, gravity does no work.
        q, p = system.q.dat.data_ro[0].reshape(2, 3), system.p.dat.data_ro[0].reshape(2, 3)
        turn = np.cross(q, p)[:, 2].sum()
        q, p = start[:6].reshape(2, 3), start[6:].reshape(2, 3) * np.array(MASSES)[:, None]
        assert turn == pytest.approx(np.cross(q, p)[:, 2].sum(), abs=1e-13)
        assert abs(system.energy() - first) < 30 / steps**2
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert slopes == pytest.approx(2, abs=0.2)


def test_multiplier_is_that_of_the_motion():
    system = double_pendulum()
    system.solve_multiplier()
    z = np.concatenate(DOUBLE)
    force = double_pendulum_slope(0, z)[6:] * np.repeat(MASSES, 3)
    force[[2, 5]] += GRAVITY * np.array(MASSES)
    d = z[3:6] - z[:3]
    gradient = np.array([[*2 * z[:3], 0, 0, 0], [*-2 * d, *2 * d]])
    assert system.multiplier.dat.data_ro[0] @ gradient == pytest.approx(force, abs=1e-12)


@pytest.mark.parametrize(("before", "dt"), [(0.01, 1e-3), (0.01, 1e-5), (1e-5, 0.01)])
def test_multiplier_after_a_step_of_another_length(before, dt):
    """From |q|² = 1 follows 2 λ = q·∇V - |v|²; λ is of order one in the step."""
    system = spherical_pendulum(PAPER)
    stepper = S(system, 0.01)
    stepper.advance(20)
    stepper.dt = before
    stepper.advance(1)
    stepper.dt = dt
    stepper.advance(1)
    q, v = state(system)[0].reshape(2, 3)
    assert system.multiplier.dat.data_ro[0] == pytest.approx((-9.8 * q[2] - v @ v) / 2, rel=0.05)


# --- two paths -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("cls", "build", "start"),
    [(R, double_pendulum, DOUBLE), (R, spherical_pendulum, PAPER), (S, spherical_pendulum, PAPER)],
)
def test_compiled_and_snes_agree(cls, build, start):
    """Nineteen copies: more than a vector register holds, and no multiple of that."""
    scale = np.random.default_rng(1).uniform(0.5, 1.5, (19, 1))
    q, v = (np.tile(x, (19, 1)) for x in start)
    results = []
    for compiled in (True, False):
        system = build((q, scale * v))
        stepper = cls(system, 0.01, compiled=compiled)
        for steps in (3, 20):  # two memory layouts
            stepper.advance(steps)
        check_way(stepper, compiled)
        results.append(state(system))
    assert results[1] == pytest.approx(results[0], abs=1e-12)


@pytest.mark.parametrize("dt", [1 / 80, 1 / 1280, 1e-4])
@pytest.mark.parametrize(
    "cls", [R, S, fg.Composition(R, order=4)], ids=["RATTLE", "SHAKE", "RATTLE of order 4"]
)
def test_round_off_of_small_steps_ends_the_iteration(cls, dt):
    """The condition g(q¹)/dt rounds by |q|² ε/dt: that is left however often Newton's method goes on."""
    ends = []
    for compiled in (True, False):
        system = double_pendulum()
        stepper = cls(system, dt, compiled=compiled)
        stepper.advance(50)
        check_way(stepper, compiled)
        assert system.constraint_defect() < 2e-15
        # The compiled iteration goes no further either.
        assert stepper.solver_stats()["newton_iterations"] <= 4 * stepper.solver_stats()["solves"]
        ends.append([np.array(f.dat.data_ro) for f in (system.q, system.p)])
    (q, p), (x, y) = ends
    # A rounding of q in each step, and of p one of q over the step.
    size, roundings = np.abs(x).max(), 50 * number_of_solves(stepper) * 2.3e-16
    np.testing.assert_allclose(q, x, atol=roundings * size)
    np.testing.assert_allclose(p, y, atol=roundings * size / dt)


@pytest.mark.parametrize("compiled", [True, False])
def test_step_too_large(compiled):
    """There is no next position: the state is left as it was, and a smaller step goes on."""
    system = spherical_pendulum(ROTATING, gravity=1.0)
    stepper = R(system, 0.1, compiled=compiled)
    stepper.advance(2)
    before = state(system)
    stepper.dt = 50.0
    with pytest.raises(fg.StepFailed, match="position"):
        stepper.advance()
    assert np.array_equal(state(system), before)
    stepper.dt = 0.1
    stepper.advance()


def test_run_records_the_defects():
    system = spherical_pendulum()
    monitors = [fg.Energy(), fg.ConstraintDefect()]
    history = R(system, 0.01).run(until=0.2, monitors=monitors, every=5, progress=False)
    assert history["constraint"].max() <= 1e-14
    assert history["velocity constraint"].max() <= 1e-14
    assert history["energy"] == pytest.approx(
        history["kinetic_energy"] + history["potential_energy"], abs=1e-14
    )
