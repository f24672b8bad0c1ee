"""Newton's method ends at the round-off of residuals, in compiled solves and in PETSc's."""

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, IntervalMesh, SpatialCoordinate, cos, dx, exp

import fdgeom as fg


@pytest.mark.parametrize("compiled", [True, False])
def test_long_meshes(compiled):
    """The implicit midpoint rule for a wave equation of a thousand cells, where the residual's terms have
    a round-off above 1e-13 times the first residual; q' = p holds node by node."""
    mesh = IntervalMesh(1000, 20.0)
    (x,), V = SpatialCoordinate(mesh), FunctionSpace(mesh, "CG", 1)
    q = Function(V, name="q").interpolate(3 * exp(-((x - 8) ** 2)))
    p = Function(V, name="p").interpolate(exp(-((x - 12) ** 2)))
    system = fg.HamiltonianSystem(q, p, (p**2 / 2 + q.dx(0) ** 2 / 2 + 1 - cos(q)) * dx)
    dt = 0.02
    stepper = fg.GaussLegendre(1)(system, dt, compiled=compiled)
    start = [np.array(f.dat.data_ro) for f in (q, p)]
    stepper.advance(1)
    rate = (q.dat.data_ro - start[0]) / dt
    assert np.abs(rate - (start[1] + p.dat.data_ro) / 2).max() < 1e-12
    stepper.advance(9)
    assert stepper.solver_stats()["newton_iterations"] <= 40
