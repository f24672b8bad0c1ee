"""Motions of ends that are made of numbers of a Real space."""

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, IntervalMesh, as_vector, sin
from verification.beams import SOFT, along

import fdgeom as fg

RISE, H, STEPS = 0.05, 1e-2, 3


def raised(size, **options):
    """A beam whose left end goes up as size times sin t, the number being a Function or a float."""
    mesh = IntervalMesh(2, 1.0)
    number = size if isinstance(size, float) else Function(FunctionSpace(mesh, "R", 0)).assign(RISE)
    pose = fg.GivenPose(position=lambda t: as_vector([0, 0, number * sin(t)]))
    beam = fg.Beam(mesh, SOFT, left=pose, **options)
    beam.velocity.dat.data_wo[mesh.coordinates.dat.data_ro.argmin(), 5] = RISE
    return beam, number


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (fg.GeneralizedAlpha, {"compiled": False}),
        (fg.GeneralizedAlpha, {}),
        (fg.EnergyMomentum, {}),
    ],
    ids=["PETSc", "alpha", "energy"],
)
def test_same_as_a_float(method, options):
    found = []
    for size in (RISE, None):
        beam, _ = raised(size)
        stepper = method(beam, H, **options)
        stepper.advance(STEPS)
        found.append(along(beam.position))
    assert found[1][0, 2] == pytest.approx(RISE * np.sin(STEPS * H), rel=1e-12)
    # The same numbers in other storage: round-off of what Newton's iteration leaves.
    assert np.allclose(*found, rtol=0, atol=1e-12)


def test_followed():
    """It may change between steps, with the velocity at the held node set accordingly."""
    beam, number = raised(None)
    stepper = fg.GeneralizedAlpha(beam, H)
    stepper.advance(1)
    number.assign(0.04)
    stepper.advance(1)
    assert along(beam.position)[0, 2] == pytest.approx(0.04 * np.sin(2 * H), rel=1e-12)
