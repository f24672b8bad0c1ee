"""One clock: it begins where one says, does not drift, and the system's time is its time."""

import numpy as np
import pytest
from firedrake import as_vector, dx, sin
from verification.hamiltonian_systems import pendulum
from verification.rod_cases import SEPARATE, moving
from verification.spring_systems import matrices

import fdgeom as fg
from fdgeom.clock import Clock

T0 = 2.0


def forced(q, v):
    """q̈ + 9q = sin 2t."""
    return matrices(np.eye(1), 9 * np.eye(1), (q,), (v,), force=lambda t: as_vector([sin(2 * t)]))


def exact(t):
    """q and q̇ of the motion that begins at t = T0 with q = 1, q̇ = 0."""
    particular, rate = np.sin(2 * t) / 5, 2 * np.cos(2 * t) / 5
    q, v = 1 - np.sin(2 * T0) / 5, -2 * np.cos(2 * T0) / 5
    c, s = np.cos(3 * (t - T0)), np.sin(3 * (t - T0))
    return q * c + v / 3 * s + particular, v * c - 3 * q * s + rate


def errors(make, by_hand=False):
    found = []
    for steps in (20, 40, 80):
        system = forced(*exact(T0))
        if by_hand:
            stepper = make(system, 1 / steps)
            stepper.t = T0
        else:
            stepper = make(system, 1 / steps, t0=T0)
        stepper.advance(steps)
        found.append(abs(system.q.dat.data_ro[0] - exact(T0 + 1)[0]).item())
    return np.array(found)


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize(
    ("make", "order", "largest"),
    [
        (fg.GeneralizedAlpha, 2, 1e-3),
        (lambda *a, **o: fg.GeneralizedAlpha(*a, start="consistent", **o), 2, 1e-3),
        (fg.HermiteSimpson, 4, 1e-7),
    ],
)
def test_a_motion_that_begins_at_another_time(make, order, largest, by_hand):
    """The accelerations at the start are those of that time: else the order is one."""
    found = errors(make, by_hand)
    assert np.log2(found[:-1] / found[1:]) == pytest.approx([order] * 2, abs=0.15)
    assert found[-1] < largest


def test_another_time_of_the_system_does_not_count():
    """An equilibrium may leave one: the accelerations are solved for at the time of the stepper."""
    found = []
    for left in (0.0, 5.0):
        system = forced(*exact(T0))
        stepper = fg.GeneralizedAlpha(system, 0.1, t0=T0)
        stepper.advance(2)
        system.v.dat.data_wo[...] += 0.1
        system.time.assign(float(system.time.dat.data_ro[0]) + left)
        stepper.advance(2)
        found.append(system.q.dat.data_ro.copy())
    assert np.array_equal(*found)


FREE_FALL = {
    fg.GeneralizedAlpha: "simo-reissner",
    fg.EnergyMomentum: "directors",
    fg.VariationalIntegrator: "simo-reissner",
}


@pytest.mark.parametrize("method", FREE_FALL)
def test_a_beam_that_is_pushed_as_a_whole(method):
    """ẍ = g sin t of every point, from t = T0 at rest; each method by its own quadrature in time."""
    gravity = fg.Gravity(lambda t: as_vector([0, sin(t), 0]))
    found = []
    for steps in (5, 10, 20):
        beam = moving(SEPARATE, loads=gravity, strain_measure=FREE_FALL[method])
        for f, value in ((beam.strain, 0), (beam.momentum, 0)):
            f.assign(value)
        beam.reconstruct()
        y = beam.position.dat.data_ro[:, 1].copy()
        stepper = method(beam, 0.1 / steps, t0=T0)
        stepper.advance(steps)
        moved = beam.position.dat.data_ro[:, 1] - y
        assert np.ptp(moved) < 1e-12  # round-off
        t = T0 + 0.1
        # Twice the integral of sin.
        found.append(abs(moved[0] - (np.sin(T0) - np.sin(t) + 0.1 * np.cos(T0))))
    # Of second order, and in the fourth digit of 0.0045 already with five steps.
    assert found[0] < 1e-5
    assert np.log2(np.array(found[:-1]) / found[1:]) == pytest.approx([2, 2], abs=0.2)


def test_the_clock_does_not_drift():
    stepper = fg.StormerVerlet(pendulum(), 1e-3, t0=0.5)
    stepper.advance(10**6)
    # A sum of as many dt would be off by 2e-8.
    assert stepper.t == 0.5 + 10**6 * 1e-3
    until = stepper.t + 10 * stepper.dt
    stepper.run(until=until)
    assert stepper.steps == 10**6 + 10
    assert stepper.t == until


def test_a_late_clock_reaches_its_end_in_as_many_steps():
    """After 1e12 steps a time is known to a ten-thousandth of a step."""
    stepper = fg.StormerVerlet(pendulum(), 1e-3, t0=1e9)
    stepper.run(until=1e9 + 10 * 1e-3)
    assert stepper.steps == 10


def test_the_clock_when_dt_changes():
    clock = Clock(begin=0.25, dt=0.1, last_dt=0.1)
    clock = clock.after(3)
    changed = clock.with_dt(0.05)
    assert changed.t == clock.t == 0.25 + 3 * 0.1
    assert changed.after(7).t == clock.t + 7 * 0.05
    assert clock.with_dt(0.1) is clock


def loaded():
    return moving(SEPARATE, loads=fg.Load(force=lambda t: as_vector([0, sin(t), 0]), at="right"))


def test_the_system_has_the_time_of_the_stepper(tmp_path):
    """When made, after steps, a failed step, and when resumed."""
    beam = loaded()
    stepper = fg.GeneralizedAlpha(beam, 0.02, t0=T0)
    assert float(beam.time) == stepper.t == T0
    stepper.advance(3)
    assert float(beam.time) == stepper.t == T0 + 3 * 0.02
    fg.save(stepper, tmp_path / "a.h5")
    stepper.dt = 1e6
    with pytest.raises(fg.StepFailed):
        stepper.advance()
    assert float(beam.time) == stepper.t == T0 + 3 * 0.02
    other = loaded()
    fresh = fg.GeneralizedAlpha(other, 0.02)
    assert float(other.time) == 0
    fg.resume(fresh, tmp_path / "a.h5")
    assert float(other.time) == fresh.t == stepper.t
    drive = sin(other.time) * dx(domain=other.mesh)
    history = fresh.run(steps=2, monitors=[("drive", drive)])
    # The length is 1.5.
    assert history["drive"] == pytest.approx(
        1.5 * np.sin(T0 + 0.02 * np.array([3, 4, 5])), rel=1e-14
    )


@pytest.mark.parametrize(
    ("t0", "error", "message"),
    [
        ("late", TypeError, "t0 must be a number"),
        (np.nan, ValueError, "t0 must be a finite number"),
        (np.inf, ValueError, "t0 must be a finite number"),
    ],
)
def test_a_time_that_is_none(t0, error, message):
    with pytest.raises(error, match=message):
        fg.StormerVerlet(pendulum(), 0.1, t0=t0)
    stepper = fg.StormerVerlet(pendulum(), 0.1)
    with pytest.raises(error, match=message.replace("t0", "t")):
        stepper.t = t0
    assert stepper.t == 0
