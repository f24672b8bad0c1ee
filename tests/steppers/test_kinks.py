"""Energies and forces with kinks and jumps of the state, whose slopes do not show that they depend on it."""

import pytest
from firedrake import (
    Function,
    FunctionSpace,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    conditional,
    dx,
    gt,
    sign,
    sin,
)
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


@pytest.mark.parametrize("compiled", [True, False])
def test_a_step_in_the_energy(functions, compiled):
    """h = p²/2 - H(q - 2): p = 1 before the step and √3 behind it."""
    q, p = functions
    p.assign(1.0)
    system = fg.HamiltonianSystem(q, p, (p**2 / 2 - conditional(gt(q, 2), 1.0, 0.0)) * dx)
    stepper = fg.DiscreteGradient(system, 0.3, compiled=compiled)
    stepper.advance(10)
    check_way(stepper, compiled)
    # Newton's tolerance.
    assert p.dat.data_ro == pytest.approx(3**0.5, rel=1e-12)
    assert q.dat.data_ro.min() > 3.0


@pytest.mark.parametrize(
    "energy",
    [
        lambda q, p: p**2 / 2 + q**2 / 2 + abs(q - p),
        lambda q, p: conditional(gt(q, 0), p**2 / 2, p**2 / 4),
    ],
)
def test_what_is_not_separable(functions, energy):
    """Both parts of the state in one kink: no T(p) + V(q)."""
    q, p = functions
    assert not fg.HamiltonianSystem(q, p, energy(q, p) * dx).is_separable
    assert fg.HamiltonianSystem(q, p, (p**2 / 2 + abs(q) + abs(p)) * dx).is_separable


def test_a_slope_outside_of_the_space():
    """δh/δu of |u| is no function of the space, though it is one on either side of the kink."""
    mesh = PeriodicIntervalMesh(16, 1.0)
    u, (x,) = Function(FunctionSpace(mesh, "CG", 1)), SpatialCoordinate(mesh)
    u.interpolate(sin(6.28 * x))

    def system(energy):
        return fg.PoissonSystem(
            u, energy * dx, lambda a, b: a * b.dx(0) * dx, lambda a, b: a * b * dx
        )

    assert system(u**2 / 2 + abs(u)).forms.density_gradient is None
    assert system(u**2 / 2).forms.density_gradient is not None


def test_a_force_that_depends_on_the_side_of_the_velocity(functions):
    """It has no slope by the velocity, but FourthOrderAlpha would take that of the beginning."""
    q, v = functions
    system = fg.SecondOrderSystem(
        lambda q, v, a, t, w: (a + q + 0.5 * sign(v)) * w * dx, q, v, energy=(v**2 + q**2) / 2 * dx
    )
    with pytest.raises(ValueError, match="depends on the velocity"):
        fg.FourthOrderAlpha(system, 0.1)
