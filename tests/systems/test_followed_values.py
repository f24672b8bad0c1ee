"""What the user gives may change: boundary values of auxiliary functions, values held at rest."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    DirichletBC,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    TestFunction,
    dx,
)

import fdgeom as fg

MESH = IntervalMesh(4, 1.0)
V = FunctionSpace(MESH, "CG", 2)


def constant():
    value = Constant(0.0)
    return value, value.assign


def expression():
    value = Constant(0.0)
    (x,) = SpatialCoordinate(MESH)
    return value * x**2, value.assign


def function():
    value = Function(V)
    return value, value.assign


def array():
    value = Function(V)
    view = value.dat.data

    def change(number):
        view[...] = number

    return value, change


GIVEN = pytest.mark.parametrize("given", [constant, expression, function, array])


def potential_of(given):
    """-ψ'' = ω, ψ(0) = 0, ψ(1) given; energy ∫ ψω/2."""
    omega, psi, phi = Function(V, name="omega"), Function(V, name="psi"), TestFunction(V)
    (x,) = SpatialCoordinate(MESH)
    omega.interpolate(1 + x * (1 - x))
    form = (psi.dx(0) * phi.dx(0) - omega * phi) * dx
    return fg.PoissonSystem(
        omega,
        0.5 * omega * psi * dx,
        lambda a, b: (a.dx(0) * b - a * b.dx(0)) * dx,
        lambda a, b: a * b * dx,
        auxiliary={psi: (form, [DirichletBC(V, 0, 1), DirichletBC(V, given, 2)])},
    )


@GIVEN
def test_energy_follows_a_boundary_value(given):
    value, change = given()
    system = potential_of(value)
    system.state.assign(1.0)
    # ψ = c x + x(1 - x)/2, so ∫ ψ/2 = c/4 + 1/24; quadratic elements hold it exactly.
    for c in (0.0, 2.0, -3.0):
        change(c)
        assert abs(system.energy() - (c / 4 + 1 / 24)) < 1e-13


@GIVEN
def test_steps_follow_a_boundary_value(given):
    value, change = given()
    stepper = fg.ImplicitMidpoint(potential_of(value), 0.01)
    stepper.advance(2)
    middle = stepper.system.state.dat.data_ro.copy()
    change(1.5)
    stepper.advance(3)
    fresh = potential_of(1.5)
    fresh.state.dat.data[:] = middle
    other = fg.ImplicitMidpoint(fresh, 0.01)
    other.advance(3)
    gap = np.abs(stepper.system.state.dat.data_ro - fresh.state.dat.data_ro).max()
    # Solves of a few units, the first of them from another guess of ψ.
    assert gap < 1e-12
    still = potential_of(0)
    still.state.dat.data[:] = middle
    fg.ImplicitMidpoint(still, 0.01).advance(3)
    assert np.abs(still.state.dat.data_ro - fresh.state.dat.data_ro).max() > 1e-3


@pytest.mark.parametrize("method", [fg.GeneralizedAlpha, fg.HermiteSimpson, fg.FourthOrderAlpha])
def test_motions_follow_a_value_held_at_rest(method):
    """It has moved at once and is at rest there, as for a new stepper."""
    states = []
    for late in (False, True):
        q, v, (value, change) = Function(V), Function(V), array()
        system = fg.SecondOrderSystem(
            lambda q, v, a, t, w: (a * w + q.dx(0) * w.dx(0)) * dx,
            q, v, bcs=[DirichletBC(V, value, 2)],
        )  # fmt: skip
        if not late:
            change(0.5)
        stepper = method(system, 0.05)
        if late:
            stepper.advance(2)
            change(0.5)
        stepper.advance(3)
        states.append([np.array(f.dat.data_ro) for f in (q, v)])
    (q, v), late = states
    held = DirichletBC(V, 0, 2).nodes
    assert (q[held], v[held]) == (pytest.approx(0.5), pytest.approx(0, abs=1e-14))
    assert np.abs(v).max() > 0.1
    for now, expected in zip(late, (q, v), strict=True):
        np.testing.assert_allclose(now, expected, atol=1e-11)


@GIVEN
def test_a_value_held_at_rest_must_stay_zero(given):
    """bcs of a constrained system hold a velocity of zero: another value later has a sentence."""
    value, change = given()
    q, v = Function(V), Function(V)
    q.interpolate(SpatialCoordinate(MESH)[0])
    system = fg.LagrangianSystem(
        q, v, (v**2 - q.dx(0) ** 2) / 2 * dx, bcs=[DirichletBC(V, value, 1)]
    )
    stepper = fg.DiscreteLagrangian(system, 0.01)
    stepper.advance(1)
    change(0.5)
    before = q.dat.data_ro.copy()
    with pytest.raises(ValueError, match="^bcs must be zero"):
        stepper.advance(1)
    assert np.array_equal(q.dat.data_ro, before)
    change(0.0)
    stepper.advance(1)
