"""Methods whose solves couple neighbours on a line, through fdgeom.ChainNewton and through newtonls."""

import numpy as np
import pytest
from firedrake import (
    Function,
    IntervalMesh,
    SpatialCoordinate,
    VectorFunctionSpace,
    as_vector,
    inner,
    sin,
    sqrt,
)
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.constrained_systems import chain

import fdgeom as fg
from fdgeom import measures

NEWTON = {"snes_type": "python", "snes_python_type": "fdgeom.ChainNewton"}


def string():
    """A string of finite stretch in a medium that drags; one end moves with a wave on it."""
    mesh = IntervalMesh(20, 1.0)
    space = VectorFunctionSpace(mesh, "CG", 1, dim=3)
    (s,) = SpatialCoordinate(mesh)
    q, v = Function(space), Function(space)
    q.interpolate(as_vector([1.1 * s, 0.1 * sin(3 * s), 0.05 * s**2]))
    v.interpolate(as_vector([0, sin(4 * s), 0.3 * s]))

    def residual(q, v, a, t, test):
        slope = q.dx(0)
        stretch = sqrt(inner(slope, slope))
        force = 40.0 * (stretch - 1) / stretch * slope
        nodal = inner(a + 0.1 * sqrt(1 + inner(v, v)) * v - sin(5 * t) * as_vector([0, 0, 1]), test)
        return inner(force, test.dx(0)) * measures.midpoint(mesh) + nodal * measures.vertex(mesh)

    return fg.SecondOrderSystem(residual, q, v)


def beam():
    made = fg.Beam(uneven_mesh(7), SOFT, left="clamped")
    set_smooth(made)
    nodes = made.velocity.function_space().boundary_nodes(1)
    made.velocity.dat.data_wo[nodes] = 0.0
    made.momentum.dat.data_wo[nodes] = 0.0
    return made


CASES = {
    "string, generalized-alpha": (string, fg.GeneralizedAlpha, 5e-3),
    "string, Hermite-Simpson": (string, fg.HermiteSimpson, 5e-3),
    "beam's bracket, implicit midpoint": (beam, fg.ImplicitMidpoint, 5e-3),
    "beam's bracket, discrete gradient": (beam, fg.DiscreteGradient, 5e-3),
    "inextensible chain, RATTLE": (lambda: chain(20), fg.RATTLE, 5e-3),
}


@pytest.mark.parametrize("name", CASES)
def test_same_steps(name):
    make, method, dt = CASES[name]
    found, iterations = [], []
    for parameters in (NEWTON, {}):
        system = make()
        stepper = method(system, dt, solver_parameters=parameters, compiled=False)
        stepper.advance(20)
        types = {solver.snes.getType() for solver in stepper._solvers()}
        assert ("python" in types) is bool(parameters)
        found.append({n: np.array(f.dat.data_ro) for n, f in system.functions().items()})
        iterations.append(stepper.solver_stats()["newton_iterations"])
    for key, values in found[0].items():
        # Both solve to round-off, of accelerations over the square of the step.
        size = np.abs(found[1][key]).max() + 1
        np.testing.assert_allclose(values, found[1][key], atol=1e-10 * size, err_msg=key)
    assert abs(iterations[0] - iterations[1]) <= 0.1 * iterations[1] + 2
