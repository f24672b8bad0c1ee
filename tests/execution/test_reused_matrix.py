"""A SNES that keeps its matrix: as long as nothing in it changes, and no longer."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    DirichletBC,
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
from fdgeom.execution import HeldSNES, Numerics, defaults
from fdgeom.operations import ConvergenceTest

mesh = UnitIntervalMesh(6)
(x,) = SpatialCoordinate(mesh)
V = FunctionSpace(mesh, "CG", 1)


def test_matrix_follows_constants_and_coefficients():
    """A linear problem, k u - ε u'' = f: factorised anew where k, ε or the mesh is set, not where f is.

    In whatever way: ε by a PETSc Vec or a NumPy view that somebody has kept, too.
    """
    u, w, k = Function(V), TestFunction(V), Constant(1.0)
    eps, f = Function(V).assign(1.0), Function(V).interpolate(sin(x))
    residual = (k * inner(u, w) + eps * inner(grad(u), grad(w)) - f * w) * dx
    solver = HeldSNES(
        residual, u, Numerics(defaults(residual, u, False), ConvergenceTest(), reuse_matrix=True)
    )
    count = 0
    assemble_matrix = solver._jacobian.assemble

    def counted():
        nonlocal count
        count += 1
        return assemble_matrix()

    solver._jacobian.assemble = counted
    view = eps.dat.data
    with eps.dat.vec as vec:
        pass
    changes = [
        (1, lambda: None),
        (1, lambda: f.interpolate(1 + x)),
        (2, lambda: k.assign(3.0)),
        (3, lambda: eps.assign(0.1)),
        (3, lambda: None),
        (4, lambda: vec.set(0.7)),
        (5, lambda: view.fill(0.3)),
        (5, lambda: eps.assign(0.3)),
        (6, lambda: mesh.coordinates.assign(2 * mesh.coordinates)),
        (7, lambda: mesh.coordinates.assign(mesh.coordinates / 2)),
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


def test_given_values_that_are_set_between_steps():
    """A bar at rest follows the Constant and the Function that its ends are held at."""
    left, right = Constant(0.0), Function(V)
    q, v = Function(V), Function(V)
    bar = fg.SecondOrderSystem(
        lambda q, v, a, t, w: (inner(100 * v + a, w) + inner(grad(q), grad(w)) * 1e6) * dx,
        q=q, v=v, bcs=[DirichletBC(V, left, 1), DirichletBC(V, right, 2)],
    )  # fmt: skip
    stepper = fg.GeneralizedAlpha(bar, 1.0, fg.hamel_alpha(0.0))
    for a, b in ((0.0, 0.0), (0.3, 0.0), (0.3, 0.8)):
        left.assign(a)
        right.assign(b)
        stepper.advance()
        ends = q.dat.data_ro[[V.boundary_nodes(k)[0] for k in (1, 2)]]
        assert ends == pytest.approx([a, b], abs=1e-14)


def test_a_number_is_no_unknown():
    """u³ = 8: PETSc's residual of a number had no values, and its zeros converged at once."""
    u = Function(FunctionSpace(mesh, "R", 0), name="u").assign(1.0)
    residual = (u**3 - 8) * TestFunction(u.function_space()) * dx
    with pytest.raises(ValueError, match="unknown must not be a number, as 'u' of a Real space is"):
        HeldSNES(residual, u, Numerics(defaults(residual, u, False), ConvergenceTest()))
