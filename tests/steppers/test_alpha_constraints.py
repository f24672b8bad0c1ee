"""Generalized-α on a vector space with constraints that couple the nodes: a hanging chain."""

import numpy as np
import pytest
from firedrake import (
    DirichletBC,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    VectorFunctionSpace,
    as_vector,
    cos,
    dot,
    dx,
    sin,
)
from scipy.integrate import solve_ivp
from verification.constrained_systems import GRAVITY, chain

import fdgeom as fg


def hanging_chain(cells, angle=0.3):
    """The chain of `constrained_systems`, stated by its residual."""
    mesh = IntervalMesh(cells, 1.0)
    space = VectorFunctionSpace(mesh, "CG", 1, dim=2)
    (s,) = SpatialCoordinate(mesh)
    lumped = dx(scheme="KMV", degree=1)
    q, v = Function(space), Function(space)
    q.interpolate(as_vector([s * cos(angle), -s * sin(angle)]))
    return fg.SecondOrderSystem(
        lambda q, v, a, t, w: (dot(a, w) + GRAVITY * w[1]) * lumped,
        q=q,
        v=v,
        bcs=[DirichletBC(space, q.copy(deepcopy=True), 1)],
        constraint=lambda mult: 0.5 * mult * (dot(q.dx(0), q.dx(0)) - 1) * dx,
        multiplier=Function(FunctionSpace(mesh, "DG", 0)),
    )


@pytest.mark.parametrize("start", ["default", "consistent"])
def test_chain_against_rattle(start):
    """Of second order, though the step is halved on the way; every link keeps its length."""
    cells, until = 5, 0.2
    exact = chain(cells)
    # Second order too: its error is below 1e-8.
    fg.RATTLE(exact, 1e-4).advance(2000)
    errors = []
    for h in (4e-3, 2e-3, 1e-3):
        system = hanging_chain(cells)
        stepper = fg.GeneralizedAlpha(system, h, start=start)
        steps = round(until / h)
        stepper.advance(steps // 2)
        stepper.dt = h / 2
        for _ in range(steps):
            stepper.advance()
            assert system.constraint_defect() < 4e-15
        errors.append(np.abs(system.q.dat.data_ro - exact.q.dat.data_ro).max())
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx(2, abs=0.1)


def test_first_multiplier_below_a_support_that_moves():
    """A pendulum on the support (t³, 2t³), by SciPy: of second order from the first step on."""

    def pull(t, z):
        """The force without the rod, and that of the rod along it, per mass."""
        force = np.array([0.0, -GRAVITY]) - 6 * t * np.array([1.0, 2.0])
        return force, -(z[:2] @ force + z[2:] @ z[2:])

    def slope(t, z):
        force, rod = pull(t, z)
        return np.concatenate([z[2:], force + rod * z[:2]])

    def error(h):
        mesh = IntervalMesh(1, 1.0)
        space = VectorFunctionSpace(mesh, "CG", 1, dim=2)
        q, v, multiplier = Function(space), Function(space), Function(FunctionSpace(mesh, "DG", 0))
        q.interpolate(as_vector([SpatialCoordinate(mesh)[0], 0.0]))
        system = fg.SecondOrderSystem(
            lambda q, v, a, t, w: (dot(a, w) + GRAVITY * w[1]) * dx(scheme="KMV", degree=1), q, v,
            bcs=lambda t: DirichletBC(space, as_vector([t**3, 2 * t**3]), 1),
            constraint=lambda mult: 0.5 * mult * (dot(q.dx(0), q.dx(0)) - 1) * dx,
            multiplier=multiplier,
        )  # fmt: skip
        fg.GeneralizedAlpha(system, h, start="consistent").advance(1)
        z = solve_ivp(slope, (0, h), [1.0, 0, 0, 0], rtol=1e-12, atol=1e-14).y[:, -1]
        # Half of the mass is at the end.
        return abs(multiplier.dat.data_ro[0] + pull(h, z)[1] / 2)

    errors = np.array([error(h) for h in (0.02, 0.01, 0.005)])
    assert np.log2(errors[:-1] / errors[1:]) == pytest.approx(2, abs=0.25)
