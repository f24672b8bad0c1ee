"""One step as a map: what the tangent of two vectors and the cotangent of one must keep."""

import numpy as np
import pytest
from derivable import CASES, Run

from fdgeom.adjoint.steps import StepDerivative
from fdgeom.adjoint.values import Vectors

STEPS = 6


def linearised(name):
    """The run, all that its steps change, its derivative and what was recorded of some steps."""
    dt, make, _ = CASES[name]
    run = Run(make(dt))
    moving = list(run.stepper._moving())
    run.again()
    step, records = StepDerivative(run.stepper, moving, set()), []
    for _ in range(STEPS):
        records.append(step.record())
        run.stepper.t += dt
    return moving, step, records


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
    moving, step, records = linearised(name)
    tangents = [random(moving, rng)]
    for record in records:
        tangents.append(copy(moving, tangents[-1]))
        step.push(record, tangents[-1])
    bars = random(moving, rng)
    expected, size = product(moving, bars, tangents[-1])
    for record, tangent in zip(reversed(records), tangents[-2::-1], strict=True):
        step.pull(record, bars)
        found, _ = product(moving, bars, tangent)
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
    (q, p, *_), step, records = linearised(name)
    one, other = random([q, p], rng), random([q, p], rng)

    def area():
        return np.sum(one.of(q) * other.of(p) - one.of(p) * other.of(q))

    expected = area()
    for record in records:
        step.push(record, one)
        step.push(record, other)
        assert area() == pytest.approx(expected, rel=1e-12)
