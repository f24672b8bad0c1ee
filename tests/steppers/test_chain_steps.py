"""Implicit steps of a beam in compiled code are those through PETSc SNES."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    IntervalMesh,
    SpatialCoordinate,
    as_vector,
    bessel_J,
    cos,
    dot,
    sin,
)
from verification.beams import STIFFNESS, along, papers_beam, uneven_mesh
from verification.rod_cases import FORCE, GRAVITY, INERTIAS, moving
from ways import check_way

import fdgeom as fg
from fdgeom.compile import executor
from fdgeom.compile.unit import Unit
from fdgeom.errors import CannotCompile
from fdgeom.operations import Reason
from fdgeom.systems.motion.accelerations import LinearSolve


class Stiffening(fg.SectionLaw):
    """½ ε·Kε + c (ε·ε)²/4."""

    hard = Constant(2.0)

    def energy(self, strain, stiffness):
        return 0.5 * dot(strain, stiffness * strain) + 0.25 * self.hard * dot(strain, strain) ** 2


def driven(kind):
    """A beam one of whose ends is moved, with damping, a section that varies and a law of its own."""
    mesh = uneven_mesh(9)
    (s,) = SpatialCoordinate(mesh)
    pose = fg.GivenPose(
        position=lambda t: as_vector([0.02 * (1 - cos(5 * t)), 0.1 * sin(t) ** 2, 0.0]),
        orientation=lambda t: as_vector([cos(0.3 * t**2), 0.0, 0.0, sin(0.3 * t**2)]),
    )
    end = mesh.coordinates.dat.data_ro.max()
    place = fg.GivenPose(position=lambda t: as_vector([end, 0.2 * t**2, 0.0]))
    loads = [
        fg.Load(force=lambda s, t: as_vector([0, s * sin(t), 0.1]), frame="body"),
        fg.Load(moment=(0.1, 0.0, 0.2), at="right"),
    ]
    return fg.Beam(
        mesh,
        fg.Section((1 + 0.5 * s) * Constant(STIFFNESS), INERTIAS[kind]),
        left=pose,
        right=place if kind == "separate" else "free",
        law=Stiffening() if kind == "separate" else None,
        damping=0.02,
        loads=loads,
    )


def actuated():
    """A beam whose natural strain changes in time, from Functions and by itself."""
    mesh = uneven_mesh(5)
    (s,) = SpatialCoordinate(mesh)
    return fg.Beam(
        mesh,
        fg.Section(STIFFNESS, INERTIAS["separate"]),
        left="clamped",
        loads=fg.Gravity(lambda t: as_vector([0, 0, -cos(t)])),
        reference_strain=lambda t: as_vector([0, 0.2 * s * sin(3 * t), 0, 0.1 * sin(t), 0, 0]),
    )


METHODS = {"energy-momentum": fg.EnergyMomentum, "generalized-alpha": fg.GeneralizedAlpha}
BEAMS = {
    "free": lambda: moving(INERTIAS["separate"], 37),
    "clamped": lambda: moving(
        INERTIAS["coupled"], 20, left="clamped", loads=[fg.Load(force=FORCE, at="right")]
    ),
    "pinned, few cells": lambda: moving(
        INERTIAS["separate"], 5, left="pinned",
        loads=[fg.Load(force=FORCE, at="right"), fg.Gravity(GRAVITY)],
    ),
    "driven at both ends": lambda: driven("separate"),
    "driven, eccentric": lambda: driven("eccentric"),
    "actuated": actuated,
    "a load that changes in time": lambda: moving(
        INERTIAS["separate"], 5, left="pinned",
        loads=fg.Load(force=lambda t: as_vector([0, sin(5 * t), 0.1]), at="right"),
    ),
}  # fmt: skip
DT = 0.01


def fields(beam):
    return {name: along(getattr(beam, name)) for name in ("position", "orientation", "velocity")}


@pytest.mark.parametrize("kind", BEAMS)
@pytest.mark.parametrize("name", METHODS)
def test_same_steps(name, kind):
    found = []
    for compiled in (True, False):
        beam = BEAMS[kind]()
        stepper = METHODS[name](beam, DT, compiled=compiled)
        assert stepper.is_compiled is compiled
        for steps in (1, 30, 19):
            stepper.advance(steps)
        check_way(stepper, compiled)
        assert stepper.system.time.dat.data_ro[0] == pytest.approx(50 * DT)
        found.append((fields(beam), stepper.solver_stats()["newton_iterations"]))
    (one, many), (other, plain) = found
    size = np.abs(other["position"]).max()
    # Both solve to round-off; velocities are differences of positions by a step.
    np.testing.assert_allclose(one["position"], other["position"], atol=1e-13 * max(size, 1))
    np.testing.assert_allclose(one["orientation"], other["orientation"], atol=1e-13)
    speed = np.abs(other["velocity"]).max()
    np.testing.assert_allclose(one["velocity"], other["velocity"], atol=1e-10 * speed)
    # An update by old factors takes less time than a new tangent; there are at most two more in a step.
    assert 0.9 * plain <= many <= plain + 2 * 50


def test_energy_and_momenta_over_many_steps():
    beam = papers_beam(100, end_weight=0.5)
    stepper = fg.EnergyMomentum(beam, 2.1e-2, compiled=True)
    motion = stepper.system
    start = motion.energy(), motion.linear_momentum(), motion.angular_momentum()
    energies = [start[0]]
    for _ in range(20):
        stepper.advance(100)
        energies.append(motion.energy())
    check_way(stepper)
    # A step rounds by 2e-14 of the energy, as it does through PETSc, one way or the other: hundred of
    # them walk 2e-13, two thousand 1e-12, and hardly ever four or five times as far.
    change = np.array(energies) / start[0] - 1
    assert np.abs(np.diff(change)).max() < 1e-12
    assert abs(change[-1]) < 4e-12
    for now, before in zip(
        (motion.linear_momentum(), motion.angular_momentum()), start[1:], strict=True
    ):
        assert np.abs(now - before).max() < 1e-12 * np.linalg.norm(before)


def test_changes_between_calls_are_seen():
    """Another step, a state set by hand, a load that is a Constant."""
    ends = []
    for compiled in (True, False):
        force = Constant((0.0, 0.1, 0.0))
        beam = moving(INERTIAS["separate"], 5, loads=fg.Load(force=force, at="right"))
        stepper = fg.EnergyMomentum(beam, DT, compiled=compiled)
        stepper.advance(3)
        stepper.dt = 0.5 * DT
        stepper.advance(3)
        force.assign((0.3, 0.0, -0.2))
        beam.position.dat.data_wo[...] += 0.25
        beam.velocity.dat.data_wo[...] *= 1.1
        stepper.advance(5)
        check_way(stepper, compiled)
        ends.append(fields(beam))
    for name, values in ends[0].items():
        np.testing.assert_allclose(values, ends[1][name], atol=1e-11, err_msg=name)


def test_failures_are_noticed_where_they_happen():
    """A load that becomes no number: the state is that after the last good step."""
    force = Constant((0.0, 0.1, 0.0))
    beam = moving(INERTIAS["separate"], 5, loads=fg.Load(force=force, at="right"))
    stepper = fg.EnergyMomentum(beam, DT, compiled=True)
    stepper.advance(4)
    before = fields(beam)
    force.assign((0.0, np.nan, 0.0))
    with pytest.raises(fg.StepFailed, match="values that are not finite.*, and compiled=True"):
        stepper.advance(10)
    assert stepper.steps == 4
    for name, values in fields(beam).items():
        np.testing.assert_array_equal(values, before[name])
    force.assign((0.0, 0.1, 0.0))
    stepper.advance(2)
    assert stepper.steps == 6
    check_way(stepper)


_ADVANCE = Unit.advance


def unfinished(unit, steps, t, dt, **options):
    """Compiled code that does nothing, and says so; assignments around the steps are done."""
    if all(isinstance(op, fg.Map) for op in unit.operations):
        return _ADVANCE(unit, steps, t, dt, **options)
    return Reason.SINGULAR, 0, next(k for k, code in enumerate(unit.codes) if code.solves)


@pytest.mark.parametrize("method", [*METHODS.values(), fg.PoissonIntegrator])
def test_steps_that_fall_back_are_counted_and_said(method, monkeypatch):
    beam, same = (moving(INERTIAS["separate"], 5, left="clamped") for _ in range(2))
    stepper, expected = method(beam, DT), method(same, DT, compiled=False)
    expected.advance(6)
    stepper.advance(1)
    check_way(stepper)
    monkeypatch.setattr(Unit, "advance", unfinished)
    with pytest.warns(UserWarning, match="went through PETSc SNES") as said:  # noqa: PT031
        stepper.advance(3)
        stepper.advance(2)
    (warning,) = said
    assert f"a step of {method.__name__}" in str(warning.message)
    assert "a singular Jacobian" in str(warning.message)
    # The stepper is that of compiled steps still.
    assert stepper.is_compiled
    assert stepper.why_not_compiled is None
    assert stepper.fallbacks == {"a singular Jacobian": 5}
    assert stepper.solver_stats()["steps_through_petsc"] == 5
    assert expected.solver_stats()["steps_through_petsc"] == 6
    assert not expected.fallbacks
    for name, values in fields(beam).items():
        np.testing.assert_allclose(values, fields(same)[name], atol=1e-11, err_msg=name)


def test_steps_that_must_be_compiled_do_not_fall_back(monkeypatch):
    beam = moving(INERTIAS["separate"], 5, left="clamped")
    stepper = fg.EnergyMomentum(beam, DT, compiled=True)
    stepper.advance(2)
    before = fields(beam)
    with monkeypatch.context() as changed:
        changed.setattr(Unit, "advance", unfinished)
        with pytest.raises(
            fg.StepFailed, match="stopped with a singular Jacobian.*, and compiled=True"
        ):
            stepper.advance(3)
    assert stepper.steps == 2
    assert stepper.t == pytest.approx(2 * DT)
    for name, values in fields(beam).items():
        np.testing.assert_array_equal(values, before[name])
    stepper.advance(1)
    check_way(stepper)


def test_an_acceleration_that_falls_back_is_counted(monkeypatch):
    """The first one, before the first step."""
    monkeypatch.setattr(LinearSolve, "solve", lambda self: False)
    beam, same = (moving(INERTIAS["separate"], 5, left="clamped") for _ in range(2))
    with pytest.warns(UserWarning, match="an acceleration went through PETSc SNES"):
        stepper = fg.GeneralizedAlpha(beam, DT)
    ((why, times),) = stepper.fallbacks.items()
    assert "the acceleration" in why
    assert times == 1
    assert stepper.solver_stats()["steps_through_petsc"] == 0
    plain = fg.GeneralizedAlpha(same, DT, compiled=False)
    np.testing.assert_array_equal(
        along(stepper.system.acceleration), along(plain.system.acceleration)
    )


def test_what_goes_through_petsc_says_why():
    wavy = fg.Load(force=lambda s, t: as_vector([0, 0, bessel_J(0, s)]))
    stepper = fg.EnergyMomentum(moving(INERTIAS["separate"], 5, loads=wavy), DT)
    stepper.advance()
    assert not stepper.is_compiled
    assert "chain" in stepper.why_not_compiled


@pytest.mark.parametrize("method", METHODS.values())
@pytest.mark.filterwarnings("ignore:the option")
def test_a_run_that_goes_well_shows_no_divergence(method, capfd):
    """The first step from rest is begun from another guess where the first does not contract."""
    section = fg.Section.rectangle(
        0.02, 0.01, density=1000.0, youngs_modulus=1e7, poisson_ratio=0.3
    )
    gravity = fg.Gravity((0, 0, -9.81))
    beam = fg.Beam(IntervalMesh(4, 1.0), section, left="clamped", loads=gravity)
    method(beam, 4e-3, solver_parameters={"snes_converged_reason": None}).advance(3)
    shown = capfd.readouterr().out
    assert shown.count("CONVERGED_SNORM_RELATIVE") == 3
    assert "DIVERGED" not in shown


@pytest.mark.filterwarnings("error:.*went through PETSc SNES")
def test_an_acceleration_that_is_not_compiled_says_why(monkeypatch):
    """That is no step, and nothing has failed: the steps are compiled, and none falls back."""

    def refused(*arguments, **options):
        raise CannotCompile("an equation of another kind")

    monkeypatch.setattr(executor, "newton_of", refused)
    stepper = fg.GeneralizedAlpha(moving(INERTIAS["separate"], 5, left="clamped"), DT)
    assert stepper._accelerations.why_not_compiled == "an equation of another kind"
    stepper.advance(2)
    check_way(stepper)
