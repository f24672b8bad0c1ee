"""What GeneralizedAlpha and SecondOrderSystem refuse, and what a step that fails leaves."""

from __future__ import annotations

import numpy as np
import pytest
from firedrake import (
    DirichletBC,
    Function,
    FunctionSpace,
    UnitIntervalMesh,
    VectorFunctionSpace,
    as_vector,
    dot,
    dx,
    sqrt,
)
from verification.spring_systems import matrices, oscillator, pendulum, state

import fdgeom as fg


class Pieces:
    """Spaces and functions to make systems of."""

    def __init__(self):
        mesh = fg.copies(1)
        self.space = VectorFunctionSpace(mesh, "DG", 0, dim=2)
        self.q, self.v = Function(self.space), Function(self.space)
        self.multiplier = Function(FunctionSpace(mesh, "DG", 0))
        self.other = Function(FunctionSpace(mesh, "DG", 0))
        self.line = FunctionSpace(UnitIntervalMesh(3), "CG", 1)

    def system(self, residual=None, **options):
        residual = residual or (lambda q, v, a, t, w: dot(a + q, w) * dx)
        return fg.SecondOrderSystem(residual, **({"q": self.q, "v": self.v} | options))

    def particle(self, **options):
        """On the unit circle."""
        return self.system(
            lambda q, v, a, t, w: dot(a, w) * dx,
            constraint=lambda mult: mult * (dot(self.q, self.q) - 1) * dx,
            multiplier=self.multiplier,
            **options,
        )

    def at(self, q, v):
        self.q.dat.data_wo[...] = q
        self.v.dat.data_wo[...] = v
        return self.particle()


G = fg.GeneralizedAlpha


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p: G(oscillator(), 0.1, fg.hamel_alpha(1.5)), ValueError, "rho_inf must lie in"),
        (lambda p: G(oscillator(), 0.1, 0.8), TypeError, "scheme must be an AlphaScheme such as"),
        (lambda p: G(oscillator(), 0.1, start="exact"), ValueError, "start must be one of"),
        (lambda p: G(oscillator(), 0.0), ValueError, "dt must be a positive number"),
        (lambda p: G(oscillator(), np.nan), ValueError, "dt must be a positive number"),
        (lambda p: G(oscillator().q, 0.1), TypeError, "GeneralizedAlpha needs a second-order mot"),
        (
            lambda p: G(oscillator(), 0.1, solver_parameters={"snes_rtoll": 1e-9}),
            ValueError,
            "snes_rtoll",
        ),
        (lambda p: p.system(3), TypeError, "residual must be a callable"),
        (lambda p: p.system(lambda q, v, a, t, w: 3.0), TypeError, "residual must give a UFL form"),
        (lambda p: p.system(lambda q, v, a, t, w: dot(a, q) * dx), ValueError, "linear in test"),
        (
            lambda p: p.system(lambda q, v, a, t, w: dot(v + q, w) * dx),
            ValueError,
            "residual does not depend on the acceleration a",
        ),
        (lambda p: p.system(q=3), TypeError, "q must be a firedrake Function"),
        (lambda p: p.system(v=p.q), ValueError, "v must be a function of its own"),
        (lambda p: p.system(v=p.other), ValueError, "v must be a function of the space of q"),
        (lambda p: p.system(bcs=[3]), TypeError, "bcs must be DirichletBC"),
        (
            lambda p: p.system(bcs=[DirichletBC(p.line, 0, 1)]),
            ValueError,
            "must be on the space of q",
        ),
        (lambda p: p.system(energy=3), TypeError, "energy must be a UFL functional"),
        (lambda p: p.system(multiplier=p.multiplier), ValueError, "constraint and multiplier tog"),
        (
            lambda p: G(p.system(lambda q, v, a, t, w: (a[0] * w[0] + dot(q, w)) * dx), 0.1),
            ValueError,
            "no acceleration belongs to this start",
        ),
        (
            lambda p: G(matrices(np.diag([1.0, 0.0]), np.eye(2), [1, 1], [0, 0]), 0.1),
            ValueError,
            "mass",
        ),
        (lambda p: G(oscillator(q=np.nan), 0.1), ValueError, "not finite"),
        (lambda p: G(oscillator(v=np.inf), 0.1), ValueError, "not finite"),
        (lambda p: G(p.at([1, 0], [0, 1]), 0.1, fg.hamel_alpha(1.0)), ValueError, "grows without"),
        (lambda p: G(p.at([1, 0], [0, 1]), 0.1, fg.newmark()), ValueError, "does not damp"),
        (lambda p: G(p.at([1.1, 0], [0, 1]), 0.1), ValueError, "does not fulfil g(q) = 0"),
        (lambda p: G(p.at([1, 0], [1, 1]), 0.1), ValueError, "does not fulfil Dg(q)"),
    ],
)
def test_refusals(make, error, message):
    with pytest.raises(error) as caught:
        make(Pieces())
    assert message in str(caught.value)


def hard_landing():
    """q̈ = -√q, which has no value below zero."""
    space = FunctionSpace(fg.copies(1), "DG", 0)
    q, v = Function(space).assign(0.5), Function(space).assign(-3.0)
    return fg.SecondOrderSystem(lambda q, v, a, t, w: (a + sqrt(q)) * w * dx, q, v)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_failed_step_keeps_the_state(compiled):
    system = hard_landing()
    stepper = G(system, 0.02, compiled=compiled)
    with pytest.raises(fg.StepFailed, match="the motion") as caught:
        stepper.advance(50)
    assert 4 < caught.value.step == stepper.steps < 10
    assert caught.value.t == pytest.approx(0.02 * stepper.steps)
    before = state(system)
    assert 0 < before[0, 0] < 0.1
    with pytest.raises(fg.StepFailed):
        stepper.advance()
    assert np.array_equal(state(system), before)
    # A smaller step goes on from there.
    stepper.dt = 1e-4
    stepper.advance(10)
    assert 0 < state(system)[0, 0] < before[0, 0]


def test_newton_that_does_not_converge_names_its_residual():
    system = pendulum(q=2.0, v=40.0)
    stepper = G(
        system, 1.0, solver_parameters={"snes_max_it": 1, "snes_rtol": 1e-15}, compiled=False
    )
    before = state(system)
    with pytest.raises(
        fg.StepFailed, match=r"the SNES for the motion stopped with DIVERGED_MAX_IT"
    ):
        stepper.advance()
    assert np.array_equal(state(system), before)
    assert stepper.steps == 0


def test_a_changed_step_that_fails_rescales_nothing():
    """The control force is that of the last step that was taken."""
    system = hard_landing()
    stepper = G(system, 0.02, fg.hamel_alpha(0.2), compiled=False)
    stepper.advance(4)
    carried = system.algorithmic.dat.data_ro.copy()
    stepper.dt = 0.5
    with pytest.raises(fg.StepFailed):
        stepper.advance()
    assert np.array_equal(system.algorithmic.dat.data_ro, carried)
    other = hard_landing()
    twin = G(other, 0.02, fg.hamel_alpha(0.2), compiled=False)
    twin.advance(4)
    for s in (stepper, twin):
        s.dt = 0.01
        s.advance(3)
    assert np.array_equal(state(system), state(other))


def whole(space, t):
    return [DirichletBC(space, as_vector([t**2, 1 + t]), "on_boundary")]


def by_component(space, t):
    values = (t**2, 1 + t)
    return [DirichletBC(space.sub(k), values[k], "on_boundary") for k in range(2)]


@pytest.mark.parametrize(
    ("kind", "bcs"), [("vector", whole), ("vector", by_component), ("mixed", by_component)]
)
def test_a_motion_that_is_given_everywhere(kind, bcs):
    """Nothing is left to solve for; velocity and acceleration follow from the given values."""
    mesh = UnitIntervalMesh(1)
    line = FunctionSpace(mesh, "CG", 1)
    space = VectorFunctionSpace(mesh, "CG", 1, dim=2) if kind == "vector" else line * line
    system = fg.SecondOrderSystem(
        lambda q, v, a, t, w: dot(a + q, w) * dx,
        Function(space),
        Function(space),
        bcs=lambda t: bcs(space, t),
    )
    stepper = G(system, 0.25)
    stepper.advance(4)
    for f, expected in (
        (system.q, (1, 2)),
        (system.v, (2, 1)),
        (system.acceleration, (2, 0)),
    ):
        got = np.column_stack([f.sub(k).dat.data_ro for k in range(2)])
        assert got == pytest.approx(np.array([expected, expected]), abs=1e-14)  # rounding
