"""Numbers, Functions of a Real space, are read by compiled steps as by those through PETSc SNES."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    VectorFunctionSpace,
    as_vector,
    dot,
    dx,
    grad,
    sin,
)
from verification.beams import SOFT
from ways import check_way

import fdgeom as fg


def number(mesh, value, name="number"):
    space = FunctionSpace(mesh, "R", 0)
    if np.ndim(value):
        space = VectorFunctionSpace(mesh, "R", 0, dim=len(value))
    return Function(space, name=name).assign(Constant(value))


def beam(more=lambda torque: ()):
    """A force of three numbers at the tip."""
    mesh = IntervalMesh(3, 1.0)
    force, torque = number(mesh, (0.1, 0.2, 0.3), "force"), number(mesh, 0.4, "torque")
    loads = [fg.Load(force=force, at="right"), *more(torque)]
    made = fg.Beam(mesh, SOFT, left="clamped", loads=loads)
    return made, (force, torque), (made.position, made.velocity)


def driven():
    """The same, and a torque that follows time."""
    return beam(lambda torque: [fg.Load(moment=lambda t: as_vector([0, 0, torque * sin(3 * t)]))])


def string():
    """A stiffness in the cells, one at the nodes."""
    mesh = IntervalMesh(4, 1.0)
    tension, spring = number(mesh, 2.0, "tension"), number(mesh, 0.5, "spring")
    V = FunctionSpace(mesh, "CG", 1)
    u, p = Function(V, name="u").assign(0.1), Function(V, name="p").assign(0.2)
    at_nodes = dx(scheme="KMV", degree=1)
    energy = tension / 2 * dot(grad(u), grad(u)) * dx + (p**2 / 2 + spring * u**4) * at_nodes
    system = fg.HamiltonianSystem(u, p, energy, measure=at_nodes)
    return system, (tension, spring), (u, p)


CASES = [
    (driven, fg.EnergyMomentum),
    (driven, fg.GeneralizedAlpha),
    (beam, fg.PoissonIntegrator),
    (string, fg.StormerVerlet),
    (string, fg.ImplicitMidpoint),
]


@pytest.mark.parametrize(("make", "method"), CASES, ids=lambda value: value.__name__)
def test_same_as_through_petsc(make, method):
    """Also after they have been changed between two steps."""
    found = []
    for compiled in (True, False):
        system, numbers, fields = make()
        stepper = method(system, 1e-2, compiled=compiled)
        stepper.advance(5)
        for value in numbers:
            value.assign(2 * value)
        stepper.advance(5)
        check_way(stepper, compiled)
        found.append([np.array(f.dat.data_ro) for f in fields])
    for ours, expected in zip(*found, strict=True):
        # Both solve to round-off; velocities are differences by a step.
        np.testing.assert_allclose(ours, expected, atol=1e-12 * np.abs(expected).max())
