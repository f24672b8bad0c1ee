"""One step as a map: what the tangent of two vectors and the cotangent of one must keep."""

import numpy as np
import pytest
from derivable import CASES, Run

from fdgeom.adjoint import Kept, OperationList, Vectors, keys
from fdgeom.adjoint.lists import Derivatives

STEPS = 6


class Recorded:
    """Some steps of a run, with the states before them, and their derivatives."""

    def __init__(self, stepper, number=STEPS):
        self.moving = list(stepper.state_functions)
        self._step = OperationList(stepper.operations, keys(self.moving), {})
        places, self.states = [*self.moving, *self._step.targets], []
        for _ in range(number):
            self.states.append((Kept(places), stepper.t))
            stepper._step(stepper.t, stepper.dt)
            stepper.t += stepper.dt
        self.dt = stepper.dt

    def _restore(self, number):
        state, t = self.states[number]
        state.restore()
        return t, self.dt

    def push(self, number, tangents):
        self._step.places.put(tangents)
        self._step.linearised.step(*self._restore(number))
        self._step.places.get(tangents)

    def pull(self, number, bars):
        trajectory, places = self._step.trajectory(bars.keys())
        trajectory.advance(*self._restore(number))
        Derivatives(bars).put(places)
        trajectory.pull()
        Derivatives(bars).get(places)


def linearised(name):
    """All functions that the steps of a run change, and the steps."""
    dt, make, _ = CASES[name]
    run = Run(make(dt))
    run.again()
    steps = Recorded(run.stepper)
    return steps.moving, steps


def random(functions, rng):
    made = Vectors()
    for f in functions:
        made.add(f, rng.uniform(-1, 1, f.dat.data_ro.shape))
    return made


def product(functions, one, other):
    """Σ ⟨a, b⟩, and the sum of the sizes of its terms."""
    terms = [
        (one.of(f) * other.of(f)).sum()
        for f in functions
        if one.of(f) is not None and other.of(f) is not None
    ]
    return sum(terms), sum(map(abs, terms))


def copy(functions, vectors):
    made = Vectors()
    for f in functions:
        made.put(f, vectors.of(f))
    return made


@pytest.mark.parametrize("name", CASES)
def test_cotangent_times_tangent_is_constant(name, rng):
    """λₙ·δzₙ along the run, and so ⟨tangent δ, μ⟩ = ⟨δ, adjoint μ⟩."""
    moving, steps = linearised(name)
    tangents = [random(moving, rng)]
    for number in range(STEPS):
        tangents.append(copy(moving, tangents[-1]))
        steps.push(number, tangents[-1])
    bars = random(moving, rng)
    expected, size = product(moving, bars, tangents[-1])
    for number in reversed(range(STEPS)):
        steps.pull(number, bars)
        found, _ = product(moving, bars, tangents[number])
        assert found == pytest.approx(expected, abs=1e-12 * size)


@pytest.mark.parametrize(
    "name",
    [
        "GaussLegendre",
        "GeneratingFunction4",
        "ImplicitMidpoint",
        "StormerVerlet",
        "StormerVerlet, composed",
        "SymplecticEuler",
    ],
)
def test_symplectic(name, rng):
    """δz₁·Jδz₂ of two tangents."""
    # A first guess may be carried beside them.
    (q, p, *_), steps = linearised(name)
    one, other = random([q, p], rng), random([q, p], rng)

    def area():
        return np.sum(one.of(q) * other.of(p) - one.of(p) * other.of(q))

    expected = area()
    for number in range(STEPS):
        steps.push(number, one)
        steps.push(number, other)
        assert area() == pytest.approx(expected, rel=1e-12)
