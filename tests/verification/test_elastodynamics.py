"""Second-order systems on meshes: orders in time, given motion, several ranks."""

import numpy as np
import pytest
from firedrake import Function
from verification import parallel_elastodynamics
from verification.elastic_bodies import Swaying

import fdgeom as fg


def orders(make, steps, until=0.8):
    errors = []
    for n in steps:
        body = Swaying()
        system = body.system()
        make(system, until / n).advance(n)
        errors.append(body.errors(system, until))
    return np.log2(np.array(errors[:-1]) / np.array(errors[1:]))[-1], errors[-1]


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_generalized_alpha_is_of_order_two(rho):
    """A nonlinear, damped body with two sides moving in time and tractions on the others."""
    found, errors = orders(
        lambda s, h: fg.GeneralizedAlpha(s, h, fg.hamel_alpha(rho)), (16, 32, 64)
    )
    # Displacement, velocity and true acceleration.
    assert found == pytest.approx([2, 2, 2], abs=0.1)
    assert max(errors) < 2e-3


def test_consistent_start_with_given_motion():
    found, _ = orders(lambda s, h: fg.GeneralizedAlpha(s, h, start="consistent"), (16, 32, 64))
    assert found == pytest.approx([2, 2, 2], abs=0.1)


def test_hermite_simpson_is_of_order_four():
    found, errors = orders(fg.HermiteSimpson, (8, 16, 32))
    assert found == pytest.approx([4, 4, 4], abs=0.1)
    assert max(errors) < 2e-7


def test_given_values_are_met():
    """Where the motion is given, displacement, velocity and acceleration are the given ones."""
    for make in (fg.GeneralizedAlpha, fg.HermiteSimpson):
        body = Swaying()
        system = body.system()
        stepper = make(system, 0.05)
        stepper.advance(7)
        (dofs,) = system.held.dofs
        for f, exact in (
            (system.q, body.exact),
            (system.v, body.exact_velocity),
            (system.acceleration, body.exact_acceleration),
        ):
            expected = Function(body.space).interpolate(exact(0.35))
            gap = (f.dat.data_ro - expected.dat.data_ro).reshape(-1)[dofs]
            # The velocity is a difference of displacements over h: some roundings over h².
            assert np.abs(gap).max() < 1e-12


@pytest.fixture(scope="module")
def serial():
    return parallel_elastodynamics.everything()


@pytest.mark.parallel
def test_same_on_several_ranks(serial, on_ranks):
    results = on_ranks(parallel_elastodynamics)
    assert set(results.files) == set(serial)
    for name, expected in serial.items():
        # Another order of sums and pivots, over ten steps.
        assert results[name] == pytest.approx(expected, rel=1e-10, abs=1e-10), name
    assert list(serial["failure"][:2]) == [0, 0]
