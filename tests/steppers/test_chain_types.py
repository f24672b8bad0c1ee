"""Methods whose solves couple neighbours on a line, compiled, as a type of SNES, and through newtonls."""

import numpy as np
import pytest
from firedrake import (
    DirichletBC,
    Function,
    IntervalMesh,
    SpatialCoordinate,
    VectorFunctionSpace,
    as_vector,
    dx,
    inner,
    sin,
    sqrt,
)
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.constrained_systems import chain
from ways import check_way

import fdgeom as fg
from fdgeom import measures
from fdgeom.adjoint.block import replay_of

NEWTON = {"snes_type": "python", "snes_python_type": "fdgeom.ChainNewton"}


def string(degree=1):
    """A string of finite stretch in a medium that drags; one end moves with a wave on it."""
    mesh = IntervalMesh(20 // degree, 1.0)
    space = VectorFunctionSpace(mesh, "CG", degree, dim=3)
    (s,) = SpatialCoordinate(mesh)
    q, v = Function(space), Function(space)
    q.interpolate(as_vector([1.1 * s, 0.1 * sin(3 * s), 0.05 * s**2]))
    v.interpolate(as_vector([0, sin(4 * s), 0.3 * s]))

    def residual(q, v, a, t, test):
        slope = q.dx(0)
        stretch = sqrt(inner(slope, slope))
        force = 40.0 * (stretch - 1) / stretch * slope
        nodal = inner(a + 0.1 * sqrt(1 + inner(v, v)) * v - sin(5 * t) * as_vector([0, 0, 1]), test)
        if degree == 1:
            return inner(force, test.dx(0)) * measures.midpoint(mesh) + nodal * measures.vertex(
                mesh
            )
        return (inner(force, test.dx(0)) + nodal) * measures.gauss(mesh, degree + 1)

    held = DirichletBC(space, q.copy(deepcopy=True), 1) if degree > 1 else ()
    return fg.SecondOrderSystem(residual, q, v, bcs=held)


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
    "string of degree 2, generalized-alpha": (lambda: string(2), fg.GeneralizedAlpha, 5e-3),
    "string of degree 3, generalized-alpha": (lambda: string(3), fg.GeneralizedAlpha, 5e-3),
    "beam's bracket, implicit midpoint": (beam, fg.ImplicitMidpoint, 5e-3),
    "beam's bracket, discrete gradient": (beam, fg.DiscreteGradient, 5e-3),
    "inextensible chain, RATTLE": (lambda: chain(20), fg.RATTLE, 5e-3),
}


#: Whose steps are made of accelerations at two times.
NOT_WHOLE = ("string, Hermite-Simpson",)


@pytest.mark.parametrize("name", CASES)
def test_same_steps(name):
    """Through the type of SNES, in whole compiled steps and through newtonls."""
    make, method, dt = CASES[name]
    found, iterations = [], []
    for parameters, compiled in ((NEWTON, False), ({}, None), ({}, False)):
        system = make()
        stepper = method(system, dt, solver_parameters=parameters, compiled=compiled)
        stepper.advance(20)
        check_way(stepper, compiled is None and name not in NOT_WHOLE)
        types = {solver.snes.getType() for solver in stepper._executor.solvers}
        assert ("python" in types) is bool(parameters)
        found.append({n: np.array(f.dat.data_ro) for n, f in system.functions().items()})
        iterations.append(stepper.solver_stats()["newton_iterations"])
    *others, expected = found
    for key, values in expected.items():
        # All solve to round-off, of accelerations over the square of the step.
        size = np.abs(values).max() + 1
        for other in others:
            np.testing.assert_allclose(other[key], values, atol=1e-10 * size, err_msg=key)
    assert abs(iterations[0] - iterations[-1]) <= 0.1 * iterations[-1] + 2


def test_the_way_back_of_a_string():
    """Compiled, and the same as solve by solve."""
    found = []
    for compiled in (None, False):
        system = string()
        q, v = system.functions()["q"], system.functions()["velocity"]
        stepper = fg.GeneralizedAlpha(system, 5e-3, compiled=compiled)
        value, slopes = fg.gradient(stepper, 6, (inner(q, q) + inner(v, v)) * dx(degree=2), [q, v])
        assert (replay_of(stepper).why_not_compiled is None) is (compiled is None)
        found.append((value, [g.dat.data_ro.copy() for g in slopes]))
    (value, slopes), (expected, expected_slopes) = found
    assert value == pytest.approx(expected, rel=1e-12)
    for one, other in zip(slopes, expected_slopes, strict=True):
        # Newton's iterations end 1e-13 from each other.
        assert np.abs(one - other).max() <= 1e-11 * np.abs(other).max()
