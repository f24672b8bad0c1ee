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
