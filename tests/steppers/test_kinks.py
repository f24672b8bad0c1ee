"""Energies and forces with kinks and jumps of the state, whose slopes do not show that they depend on it."""

import pytest
from firedrake import Function, FunctionSpace, dx, sign
from ways import check_way

import fdgeom as fg


@pytest.fixture
def functions():
    space = FunctionSpace(fg.copies(3), "DG", 0)
    return Function(space), Function(space)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_constant_force_towards_zero(functions, compiled):
    """h = p²/2 + |q|: q = 1 - t²/2 and p = -t until the kink, for which the midpoint rule is exact."""
    q, p = functions
    q.assign(1.0)
    system = fg.HamiltonianSystem(q, p, (p**2 / 2 + abs(q)) * dx)
    stepper = fg.ImplicitMidpoint(system, 0.01, compiled=compiled)
    stepper.advance(50)
    check_way(stepper, compiled)
    # Round-off of fifty steps.
    assert q.dat.data_ro == pytest.approx(0.875, abs=1e-13)
    assert p.dat.data_ro == pytest.approx(-0.5, abs=1e-13)


@pytest.mark.parametrize("compiled", [True, False])
def test_dry_friction(functions, compiled):
    """v̇ = -sign(v)/2 from v = 1: v = 1 - t/2 while it slides, exactly."""
    x, v = functions
    v.assign(1.0)
    system = fg.SecondOrderSystem(lambda q, v, a, t, w: (a + 0.5 * sign(v)) * w * dx, x, v)
    stepper = fg.GeneralizedAlpha(system, 0.01, compiled=compiled)
    stepper.advance(50)
    check_way(stepper, compiled)
    assert v.dat.data_ro == pytest.approx(0.75, abs=1e-12)
    assert x.dat.data_ro == pytest.approx(0.5 - 0.0625, abs=1e-12)
