"""Steps of joined beams taken back in compiled code: as solve by solve, and as untaped runs say."""

import numpy as np
import pytest
from derivable import Run, directions
from firedrake import dx, inner
from verification.joined import double_pendulum, four_bar, sprung_chain
from ways import check_way

import fdgeom as fg
from fdgeom.adjoint import steps as replayed
from fdgeom.adjoint.block import replay_of
from fdgeom.compile.unit import Unit
from fdgeom.line import without_links
from fdgeom.operations import Reason

STEPS, DT = 6, 0.01


def swinging(method, compiled=None):
    return method(double_pendulum(strain_measure="directors"), DT, compiled=compiled)


def closed(method):
    """Springs and dampers too, where a method takes them."""
    springs = {} if method is fg.EnergyMomentum else {"stiffness": 5.0, "damping": 0.4}
    return method(four_bar(**springs), DT)


def run_of(stepper):
    """By all velocities at the start, of fields of the network."""
    system = stepper.system
    run = Run(stepper, [f"velocity of beam {k}" for k in range(len(system.beams))])
    fields = system.position, system.orientation, system.v
    form = sum(inner(f, f) * dx(degree=2) for f in fields)
    run.objective = without_links("objective", form)
    return run


def gradient(run, *, is_compiled=True, may_fall_back=False):
    run.again()
    value, found = fg.gradient(run.stepper, STEPS, run.objective, run.controls)
    why = replay_of(run.stepper).why_not_compiled
    assert why is None if is_compiled else why == "compiled=False asks for PETSc SNES"
    if not may_fall_back:
        check_way(run.stepper, is_compiled)
    return value, [g.dat.data_ro.copy() for g in found]


@pytest.fixture(scope="module", params=[fg.EnergyMomentum, fg.GeneralizedAlpha])
def method(request):
    return request.param


def test_the_same_as_solve_by_solve(method, monkeypatch):
    """With few states kept to the last bit the same."""
    expected, expected_slopes = gradient(run_of(swinging(method, False)), is_compiled=False)
    run = run_of(swinging(method))
    value, found = gradient(run)
    assert value == pytest.approx(expected, rel=1e-12)
    for one, other in zip(found, expected_slopes, strict=True):
        # The two runs end some roundings apart; velocities of stiff directions keep those of steps.
        assert np.abs(one - other).max() <= 1e-11 * np.abs(other).max()
    monkeypatch.setattr(replayed, "MEMORY", 0)
    again, same = gradient(run)
    assert again == value
    for one, other in zip(found, same, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("memory", [0, replayed.MEMORY])
def test_steps_that_compiled_code_gave_up(memory, monkeypatch):
    """Those are taken through PETSc SNES, and taken back as all others are."""
    run = run_of(swinging(fg.EnergyMomentum))
    _, expected = gradient(run)
    monkeypatch.setattr(replayed, "MEMORY", memory)
    advance, lost = Unit.advance, (1, 3)

    def failing(unit, steps, t, dt, *, elapsed=0, back=False, **more):
        bad = [k - elapsed for k in lost if elapsed <= k < elapsed + steps]
        if back or not bad:
            return advance(unit, steps, t, dt, elapsed=elapsed, back=back, **more)
        if bad[0]:
            advance(unit, bad[0], t, dt, elapsed=elapsed, **more)
        solve = next(k for k, code in enumerate(unit.codes) if code.test is not None)
        return Reason.TOO_MANY, bad[0], solve

    monkeypatch.setattr(Unit, "advance", failing)
    with pytest.warns(UserWarning, match="went through PETSc SNES.*too many iterations"):
        _, found = gradient(run, may_fall_back=True)
    assert run.stepper.fallbacks == {"too many iterations": len(lost)}
    assert run.stepper.solver_stats()["steps_through_petsc"] == len(lost)
    for one, other in zip(found, expected, strict=True):
        # As above.
        assert np.abs(one - other).max() <= 1e-11 * np.abs(other).max()


def test_a_closed_loop(method, rng):
    """With a weld and a body, and where the method takes them springs."""
    check_by_differences(run_of(closed(method)), rng)


def test_a_given_pose(rng):
    """Of an end of a chain whose joints have springs and dampers; it moves as it is told."""
    check_by_differences(run_of(fg.GeneralizedAlpha(sprung_chain(), DT)), rng)


def check_by_differences(run, rng):
    """Of untaped runs."""
    value, found = gradient(run)
    moved = directions(run.controls, rng)
    expected = run.difference(moved, (STEPS,), 1e-3)
    terms = [g * d for g, d in zip(found, moved, strict=True)]
    scale = sum(abs(t).sum() for t in terms)
    assert sum(t.sum() for t in terms) == pytest.approx(expected, abs=1e-7 * scale)
    assert value == run.value([np.array(f.dat.data_ro) for f in run.controls], (STEPS,))
