"""A SNES that keeps its matrix: as long as nothing in it changes, and no longer."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    SpatialCoordinate,
    TestFunction,
    UnitIntervalMesh,
    assemble,
    dx,
    grad,
    inner,
    sin,
)

import fdgeom as fg
from fdgeom.solvers.held import defaults
from fdgeom.solvers.kept import KeptSNES

mesh = UnitIntervalMesh(6)
(x,) = SpatialCoordinate(mesh)
V = FunctionSpace(mesh, "CG", 1)


def test_matrix_follows_constants_and_coefficients():
    """A linear problem, k u - ε u'' = f: factorised anew where k or ε is set, not where f is."""
    u, w, k = Function(V), TestFunction(V), Constant(1.0)
    eps, f = Function(V).assign(1.0), Function(V).interpolate(sin(x))
    residual = (k * inner(u, w) + eps * inner(grad(u), grad(w)) - f * w) * dx
    solver = KeptSNES(residual, u, options=defaults(residual, u, False))
    count = 0
    assemble_matrix = solver._jacobian.assemble

    def counted():
        nonlocal count
        count += 1
        return assemble_matrix()

    solver._jacobian.assemble = counted
    changes = [
        (1, lambda: None),
        (1, lambda: f.interpolate(1 + x)),
        (2, lambda: k.assign(3.0)),
        (3, lambda: eps.assign(0.1)),
        (3, lambda: None),
    ]
    for expected, change in changes:
        change()
        solver.solve()
        # One linear solve is exact only if the matrix is the present one.
        assert np.abs(assemble(residual).dat.data_ro).max() < 1e-14
        assert count == expected


def test_step_size_of_a_linear_system_may_change():
    """Newmark on a bar: the step after a change of dt is that of a stepper that began with it."""
    ends = []
    for first in (0.1, 0.2):
        q, v = Function(V).interpolate(x), Function(V)
        bar = fg.SecondOrderSystem(
            lambda q, v, a, t, w: (inner(a, w) + inner(grad(q), grad(w))) * dx, q=q, v=v
        )
        stepper = fg.GeneralizedAlpha(bar, first, fg.newmark(0.25, 0.5))
        stepper.advance()
        # Without a control force a step depends on q and v alone.
        q.interpolate(x)
        v.assign(0.0)
        stepper.dt = 0.2
        stepper.advance()
        ends.append(np.array(q.dat.data_ro))
    assert ends[0] == pytest.approx(ends[1], abs=1e-14)
