"""Orders of convergence in time, against references that the package has no part in."""

import numpy as np
import pytest
from claims import CLAIMS, SMALL, make
from verification.beams import INERTIA, SOFT, STIFFNESS, along, arc, set_smooth, uneven_mesh
from verification.numpy_beam import NumpyBeam, rotation

import fdgeom as fg

CELLS, END = 8, 1.0


def rates(errors, steps):
    return np.log(errors[:-1] / errors[1:]) / np.log(np.array(steps[1:]) / steps[:-1])


@pytest.fixture(scope="module")
def beam():
    return fg.Beam(uneven_mesh(CELLS), SOFT)


@pytest.fixture(scope="module")
def reference(beam):
    """Strain, momentum, position and rotation at the end: DOP853 on the semi-discrete beam."""
    set_smooth(beam)
    plain = NumpyBeam(arc(beam.momentum), STIFFNESS, INERTIA)
    plain.strain, plain.momentum = along(beam.strain), along(beam.momentum)
    plain.reconstruct()
    return plain.solution(END)


@pytest.mark.parametrize("name", [n for n, claim in CLAIMS.items() if claim.steps])
def test_beam(beam, reference, name, recorded):
    """State and configuration of a beam that moves in all directions."""
    claim = CLAIMS[name]
    stepper = claim.stepper(beam, 1.0)
    errors = []
    for steps in claim.steps:
        set_smooth(beam)
        stepper.dt = END / steps
        stepper.advance(steps)
        fields = (
            along(beam.strain),
            along(beam.momentum),
            along(beam.position),
            rotation(along(beam.orientation)),
        )
        errors.append([np.abs(a - b).max() for a, b in zip(fields, reference, strict=True)])
    for k, field in enumerate(("strain", "momentum", "position", "orientation")):
        seen = rates(np.array(errors)[:, k], claim.steps)
        # The last of the rates is settled to a tenth.
        assert seen[-1] == pytest.approx(claim.order, abs=0.12), (field, seen)
        recorded.order(
            name, f"free beam, {field}", claimed=claim.order, measured=seen[-1],
            steps=claim.steps, errors=np.array(errors)[:, k],
        )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "system", "end", "expected"),
    [
        ("Splitting", "rigid_body", 10, (0.40706613659, 0.28300742681, 0.86844916766)),
        ("ImplicitMidpoint", "rigid_body", 10, (0.40706613659, 0.28300742681, 0.86844916766)),
        ("ImplicitMidpoint", "lotka_volterra", 10, (0.620627496, 5.561492615)),
        ("DiscreteGradient", "lotka_volterra", 10, (0.620627496, 5.561492615)),
        ("DiscreteGradient", "henon_heiles", 10, (-0.2735991307, -0.0669399844)),
        ("Composition 4 of gradient", "henon_heiles", 10, (-0.2735991307, -0.0669399844)),
    ],
)
def test_small_system(name, system, end, expected):
    """Computed values at t = 10 (see the references of the verification problems)."""
    claim = CLAIMS[name]
    steps = (100, 200, 400, 800) if claim.order == 2 else (20, 30, 40, 60)
    errors = []
    built = SMALL[system]()
    start = np.array(built[0].state.dat.data_ro)
    stepper = make(claim, built, 1.0)
    for n in steps:
        built[0].state.dat.data_wo[...] = start
        stepper.dt = end / n
        stepper.advance(n)
        value = built[0].state.dat.data_ro[0][: len(expected)]
        errors.append(np.abs(value - expected).max())
    assert rates(np.array(errors), steps)[-1] == pytest.approx(claim.order, abs=0.12)
