"""What the steppers refuse at construction, and whether the message names the argument."""

import copy
import pickle

import numpy as np
import pytest
from firedrake import IntervalMesh, dx
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.small_systems import (
    canonical,
    lotka_volterra,
    pairing,
    rigid_body,
    states,
    wave,
)

import fdgeom as fg
from fdgeom.steppers import Stepper

P, M = fg.PoissonIntegrator, fg.ImplicitMidpoint


@pytest.fixture(scope="module")
def body():
    return rigid_body()


@pytest.fixture(scope="module")
def beam():
    return set_smooth(fg.Beam(uneven_mesh(8), SOFT))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda s, _: M(s, 0.0), ValueError, "dt must be a positive number"),
        (lambda s, _: M(s, -0.1), ValueError, "dt must be a positive number"),
        (lambda s, _: M(s, np.nan), ValueError, "dt must be a positive number"),
        (lambda s, _: M(s, np.inf), ValueError, "dt must be a positive number"),
        (lambda s, _: M(s, "fast"), TypeError, "dt must be a number"),
        (lambda s, _: M(s, None), TypeError, "dt must be a number"),
        (lambda s, _: M(s.state, 0.1), TypeError, "system: ImplicitMidpoint needs a PoissonSystem"),
        (lambda s, _: P(3.0, 0.1), TypeError, "system: PoissonIntegrator needs a PoissonSystem"),
        (lambda s, _: P(s, 0.1, configuration="late"), ValueError, "configuration must be one of"),
        (lambda s, _: M(s, 0.1, solver_parameters=[1]), TypeError, "solver_parameters must be a d"),
        (lambda s, _: M(s, 0.1, options_prefix=3), TypeError, "options_prefix must be a string"),
        (lambda s, _: fg.DiscreteGradient(s, 0.1, points=0), ValueError, "points must be a whole"),
        (lambda s, _: fg.DiscreteGradient(s, 0.1, points=2.0), ValueError, "points must be a who"),
        (lambda s, p: fg.Splitting(s, 0.1, energies=p[:1]), ValueError, "energies must be two"),
        (lambda s, p: fg.Splitting(s, 0.1, energies=p[:2]), ValueError, "energies must sum to"),
        (lambda s, p: fg.Splitting(s, 0.1, energies=(1.0, 2.0)), TypeError, "energy must be a UFL"),
        (lambda s, p: fg.Splitting(s, 0.1, energies=3.0), TypeError, "energies must be"),
        (lambda s, _: M(s, 0.1, compiled=1), TypeError, "compiled must be True, False or None"),
        (lambda s, p: fg.Splitting(3, 0.1, energies=p), TypeError, "system: Splitting needs"),
        (lambda s, _: fg.Composition(M, order=5), ValueError, "order must be one of 4, 6, 8"),
        (lambda s, _: fg.Composition(P), ValueError, "stepper_class must be symmetric"),
        (lambda s, _: fg.Composition(M(s, 0.1)), TypeError, "stepper_class must be a stepper cl"),
        (
            lambda s, _: fg.Composition(fg.Composition(M)),
            ValueError,
            "stepper_class must be symmetric and of order 2",
        ),
        (lambda s, _: fg.Composition(M, 4)(s, -1.0), ValueError, "dt must be a positive number"),
        (lambda s, _: M(s, 0.1).advance(-1), ValueError, "steps must be a whole number"),
        (lambda s, _: M(s, 0.1).advance(1.5), ValueError, "steps must be a whole number"),
        (lambda s, _: M(s, 0.1).advance(True), ValueError, "steps must be a whole number"),
        (lambda s, _: setattr(M(s, 0.1), "dt", 0), ValueError, "dt must be a positive number"),
    ],
)
def test_bad_argument(body, make, error, message):
    with pytest.raises(error) as caught:
        make(*body)
    assert str(caught.value).startswith(message)


def test_a_stepper_is_abstract():
    with pytest.raises(TypeError):
        Stepper(lotka_volterra(), 0.1)


def test_trapezoidal_rule_needs_a_pointwise_gradient():
    with pytest.raises(ValueError, match=r"^system: the trapezoidal rule needs"):
        fg.HamelFieldIntegrator(wave(), 0.1)


def test_splitting_of_a_beam_is_refused(beam):
    half = 0.5 * beam.energy_form()
    with pytest.raises(ValueError, match=r"^system: the energy of a Beam cannot"):
        fg.Splitting(beam, 0.1, energies=(half, half))


def test_start_that_is_not_finite(beam):
    set_smooth(beam)
    beam.momentum.dat.data_wo[2, 4] = np.nan
    with pytest.raises(ValueError, match=r"^momentum holds values that are not finite"):
        P(beam, 0.01)
    set_smooth(beam)
    z = states((0.3, 0.4))
    system = fg.PoissonSystem(z, z[0] ** 2 * dx, canonical, pairing)
    z.dat.data_wo[0, 0] = np.inf
    with pytest.raises(ValueError, match=r"^state holds values that are not finite"):
        M(system, 0.1)


@pytest.mark.parametrize("compiled", [True, False])
def test_repr_and_stats(body, compiled):
    system, _ = body
    stepper = M(system, 0.1, compiled=compiled)
    assert stepper.is_compiled is compiled
    assert repr(stepper) == "ImplicitMidpoint(PoissonSystem, order 2, t = 0, dt = 0.1)"
    stepper.advance(0)
    assert stepper.solver_stats()["steps"] == 0
    stepper.advance(3)
    assert stepper.t == pytest.approx(0.3, abs=1e-15)
    stats = stepper.solver_stats()
    assert stats["steps"] == stats["solves"] == 3
    # Newton: at least two sweeps from the old state, and no more than a handful.
    assert 6 <= stats["newton_iterations"] <= 15
    assert stats["krylov_iterations"] == (0 if compiled else stats["newton_iterations"])


def test_what_cannot_be_compiled():
    """Solves that couple all nodes, but on a line, go through SNES; asked for, it is an error."""
    assert not M(wave(), 0.01).is_compiled
    with pytest.raises(ValueError, match=r"^compiled: this stepper cannot be compiled: .*periodic"):
        M(wave(), 0.01, compiled=True)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_no_copies(body, duplicate):
    """A copy would move the state of the original, whose clock would not know."""
    beam = fg.Beam(IntervalMesh(2, 1.0), fg.Section(np.eye(6), np.eye(6)), left="clamped")
    for thing in (
        fg.ImplicitMidpoint(body[0], 0.1),
        body[0],
        beam,
        fg.Assembly([beam]),
        fg.StaticEquilibrium(beam),
    ):
        name = type(thing).__name__
        with pytest.raises(TypeError, match=f"^{name} cannot be copied or pickled, since its copy"):
            duplicate(thing)
    # What holds no state may be copied.
    assert np.array_equal(copy.deepcopy(beam.section).stiffness, np.eye(6))
