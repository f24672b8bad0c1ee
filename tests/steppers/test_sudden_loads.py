"""Steps that tear the stiff directions of beams where Newton is begun carelessly; cut steps."""

import numpy as np
import pytest
from firedrake import IntervalMesh
from verification.joined import at_nodes
from verification.spring_systems import pendulum, state
from ways import solvers_of

import fdgeom as fg
from fdgeom.errors import SolveFailed

# A composite box (Yu, Hodges & Ho; the second example of BeamDyn), rotation first.
FORCE = 1e3 * np.diag([1368.17, 88.56, 38.78])
MOMENT = 1e3 * np.array([[16.96, 17.61, -0.351], [17.61, 59.12, -0.37], [-0.351, -0.37, 141.47]])
INERTIA = np.diag([1.4433e-2, 0.40972e-2, 1.0336e-2, 8.538e-2, 8.538e-2, 8.538e-2])
LENGTH = 10.0


def cantilever(cells, frame):
    stiffness = np.zeros((6, 6))
    stiffness[:3, :3], stiffness[3:, 3:] = MOMENT, FORCE
    load = fg.Load(force=(0, 0, 150.0), at="right", frame=frame)
    section = fg.Section(stiffness, INERTIA)
    return fg.Beam(IntervalMesh(cells, LENGTH), section, left="clamped", loads=load)


def tip(beam):
    return at_nodes(beam, beam.position)[-1]


@pytest.mark.parametrize(
    ("cells", "dt", "rho", "frame"),
    [
        (40, 0.005, 0.8, "space"),
        (40, 0.02, 0.0, "space"),
        (160, 0.005, 0.95, "space"),
        (160, 0.02, 0.5, "space"),
        (40, 0.01, 0.95, "body"),
        (160, 0.02, 0.8, "body"),
    ],
)
def test_sudden_load_on_a_composite_cantilever(cells, dt, rho, frame):
    """Where the energy-momentum method goes, and to where it goes."""
    ends, last = [], 0.16
    for method, options in (
        (fg.EnergyMomentum, {}),
        (fg.GeneralizedAlpha, {"scheme": fg.hamel_alpha(rho)}),
    ):
        beam = cantilever(cells, frame)
        method(beam, dt, **options).advance(round(last / dt))
        ends.append(tip(beam))
    assert ends[0][2] > 0.5
    # Two methods of second order; a period of the slowest bending is 0.9, the steps resolve no wave.
    assert ends[1] == pytest.approx(ends[0], abs=0.1 * ends[0][2])


def test_easy_steps_take_one_solve_of_whole_steps():
    """Nothing is evaluated but what Newton's iteration needs: a residual an update, and the first."""
    stepper = fg.GeneralizedAlpha(cantilever(40, "space"), 1e-3, compiled=False)
    for step in range(1, 11):
        stepper.advance()
        assert stepper.solver_stats()["solves"] == step
        snes = solvers_of(stepper)[0].snes
        assert snes.getFunctionEvaluations() == snes.getIterationNumber() + 1


def fails_above(stepper, longest):
    """Make the solves of a stepper fail for longer steps."""
    step = stepper._executor.step

    def take(t, dt):
        if dt > longest:
            raise SolveFailed("too long")
        step(t, dt)

    stepper._executor.step = take


def test_a_step_that_fails_is_cut_in_halves():
    """As if the halves had been asked for; where they fail too the state is left alone."""
    cut, halves, failing = (pendulum() for _ in range(3))
    stepper = fg.GeneralizedAlpha(cut, 0.4, halvings=2)
    assert not stepper.is_compiled
    stepper.advance()
    fails_above(stepper, 0.11)
    stepper.advance(2)
    assert (stepper.steps, stepper.t) == (3, pytest.approx(1.2))
    asked = fg.GeneralizedAlpha(halves, 0.4, compiled=False)
    asked.advance()
    asked.dt = 0.1
    asked.advance(8)
    assert np.array_equal(state(cut), state(halves))
    # The second quarter is too long for one halving.
    stepper = fg.GeneralizedAlpha(failing, 0.4, halvings=1)
    fails_above(stepper, 0.11)
    before = state(failing)
    with pytest.raises(fg.StepFailed, match="too long"):
        stepper.advance()
    assert np.array_equal(state(failing), before)
    with pytest.raises(ValueError, match="halvings"):
        fg.GeneralizedAlpha(pendulum(), 0.1, halvings=-1)
