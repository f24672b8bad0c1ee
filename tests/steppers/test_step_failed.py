"""A step that cannot be taken: what is raised, and what is left."""

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, dx
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.small_systems import blow_up

import fdgeom as fg


@pytest.fixture(scope="module")
def beam():
    return fg.Beam(uneven_mesh(8), SOFT)


def values(system):
    """The state and the configuration; a beam's velocity follows from them."""
    return [np.array(f.dat.data_ro) for n, f in system.functions().items() if n != "velocity"]


def equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


CASES = [
    (fg.PoissonIntegrator, True),
    (fg.PoissonIntegrator, False),
    (fg.Composition(fg.SymmetricPoissonIntegrator), True),
    (fg.Composition(fg.SymmetricPoissonIntegrator), False),
]


@pytest.mark.parametrize(("cls", "compiled"), CASES)
def test_step_too_large(beam, cls, compiled):
    set_smooth(beam)
    stepper = cls(beam, 0.01, compiled=compiled)
    stepper.advance(2)
    before = values(beam)
    stepper.dt = 50.0
    with pytest.raises(fg.StepFailed) as caught:
        stepper.advance()
    failure = caught.value
    assert failure.step == stepper.steps == 2
    assert failure.t == stepper.t == pytest.approx(0.02)
    assert "momentum" in failure.reason
    assert str(failure).startswith("step 3 from t = 0.02 failed: ")
    # To the last bit.
    assert equal(values(beam), before)
    # And it can go on from there with a smaller step.
    stepper.dt = 0.01
    stepper.advance()
    gone_on = values(beam)
    set_smooth(beam)
    stepper = cls(beam, 0.01, compiled=compiled)
    stepper.advance(2)
    stepper.advance()
    assert equal(values(beam), gone_on)


@pytest.mark.parametrize("compiled", [True, False])
def test_failure_after_some_steps(beam, compiled):
    """Unstable: the state left is that after the last step that went well."""
    dt = 0.045  # above the bound of the step for the fastest wave
    set_smooth(beam)
    stepper = fg.PoissonIntegrator(beam, dt, compiled=compiled)
    with pytest.raises(fg.StepFailed) as caught:
        stepper.advance(1000)
    done = caught.value.step
    assert 5 < done < 1000
    assert stepper.steps == done
    assert stepper.t == caught.value.t == pytest.approx(dt * done)
    left = values(beam)
    set_smooth(beam)
    again = fg.PoissonIntegrator(beam, dt, compiled=compiled)
    again.advance(done)
    # The instability amplifies the round-off of another grouping of the steps.
    for a, b in zip(values(beam), left, strict=True):
        assert a == pytest.approx(b, abs=1e-6 * np.abs(b).max())


@pytest.mark.parametrize("compiled", [True, False])
def test_equation_without_a_solution(compiled):
    """q' = q² from 1: the exact solution leaves at t = 1, the midpoint step ends before."""
    system = blow_up()
    stepper = fg.ImplicitMidpoint(system, 0.1, compiled=compiled)
    with pytest.raises(fg.StepFailed) as caught:
        stepper.advance(100)
    # The same map in Python: q_m = q + dt/2 q_m², so q_m = (1 - √(1 - 2 dt q))/dt.
    q, steps = 1.0, 0
    while 1 - 0.2 * q >= 0:
        q += 2 * ((1 - np.sqrt(1 - 0.2 * q)) / 0.1 - q)
        steps += 1
    assert caught.value.step == steps
    assert system.state.dat.data_ro[0, 0] == pytest.approx(q, rel=1e-10)


@pytest.mark.parametrize("compiled", [True, False])
def test_one_copy_of_many_fails(compiled):
    """The others stay where they are, too."""
    start = np.tile([1.0, 1.0], (100, 1))
    start[63, 0] = 20.0
    system = blow_up(start)
    stepper = fg.ImplicitMidpoint(system, 0.1, compiled=compiled)
    with pytest.raises(fg.StepFailed) as caught:
        stepper.advance(3)
    assert np.array_equal(system.state.dat.data_ro, start)
    if compiled:
        assert "at the node at 63.5" in caught.value.reason


@pytest.mark.parametrize(
    ("compiled", "reason"), [(True, "too many iterations"), (False, "DIVERGED_MAX_IT after 1 it")]
)
def test_limit_on_iterations(compiled, reason):
    system = blow_up()
    stepper = fg.ImplicitMidpoint(
        system, 0.1, solver_parameters={"snes_max_it": 1}, compiled=compiled
    )
    with pytest.raises(fg.StepFailed, match=reason):
        stepper.advance()
    assert np.array_equal(system.state.dat.data_ro, [[1.0, 1.0]])
    assert stepper.steps == 0


@pytest.mark.parametrize("compiled", [True, False])
def test_values_that_stop_being_finite(compiled):
    """A state made infinite by hand between two steps: never a silent NaN."""
    system = blow_up()
    stepper = fg.ImplicitMidpoint(system, 0.1, compiled=compiled)
    stepper.advance()
    system.state.dat.data_wo[0, 0] = np.nan
    with pytest.raises(fg.StepFailed):
        stepper.advance()


def _advance(stepper, pieces):
    for piece in pieces:
        stepper.advance(piece)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_state_that_is_not_finite_is_no_step(compiled):
    """Störmer–Verlet in NumPy says which step overflows; the state is that before it.

    Among many steps at once as in single ones, and with a dt that is too long for one step.
    """

    def made(dt):
        space = FunctionSpace(fg.copies(1), "DG", 0)
        q, p = Function(space), Function(space)
        q.dat.data[:], p.dat.data[:] = 1.0, 0.5
        system = fg.HamiltonianSystem(q, p, (0.5 * p**2 + 0.5 * q**2) * dx)
        return fg.StormerVerlet(system, dt, compiled=compiled), q, p

    dt, states = 1e4, [(1.0, 0.5)]
    with np.errstate(over="ignore", invalid="ignore"):
        while np.all(np.isfinite(states[-1])):
            x, y = map(np.float64, states[-1])
            half = y - 0.5 * dt * x
            x = x + dt * half
            states.append((x, half - 0.5 * dt * x))
    good = len(states) - 2
    assert 10 < good < 50
    for pieces in ((100,), (1,) * 100):
        stepper, q, p = made(dt)
        with pytest.raises(fg.StepFailed, match="not finite"):
            _advance(stepper, pieces)
        # PETSc's norms are sums of squares, which overflow before the values do.
        assert stepper.steps == good if compiled else 10 < stepper.steps <= good
        # Round-off of so many products.
        found = float(q.dat.data_ro[0]), float(p.dat.data_ro[0])
        assert found == pytest.approx(states[stepper.steps], rel=1e-12)
    stepper, q, p = made(1e308)
    with pytest.raises(fg.StepFailed, match="not finite"):
        stepper.advance()
    assert (q.dat.data_ro[0], p.dat.data_ro[0], stepper.t, stepper.steps) == (1.0, 0.5, 0.0, 0)


def test_coupled_solve_that_does_not_converge(beam):
    set_smooth(beam)
    before = values(beam)
    stepper = fg.ImplicitMidpoint(beam, 2.0, solver_parameters={"snes_max_it": 2})
    with pytest.raises(fg.StepFailed, match="the SNES for strain and momentum stopped with DIV"):
        stepper.advance()
    assert equal(values(beam), before)
