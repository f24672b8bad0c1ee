"""What every motion promises its steppers: derivatives along velocities, against differences."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    DirichletBC,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    UnitIntervalMesh,
    VectorFunctionSpace,
    as_vector,
    assemble,
    dot,
    dx,
    sin,
)

import fdgeom as fg
from fdgeom.systems.motion.accelerations import Accelerations
from fdgeom.systems.motion.nodal_unknown import NodalUnknown

R = fg.lie.quaternion.rotate


def string():
    """A chain of unit vectors, its left end moved."""
    mesh = UnitIntervalMesh(3)
    (s,) = SpatialCoordinate(mesh)
    V, L = VectorFunctionSpace(mesh, "CG", 1, dim=2), FunctionSpace(mesh, "CG", 1)
    q = Function(V).interpolate(as_vector([sin(s), 1 + s]))
    return fg.SecondOrderSystem(
        lambda q, v, a, t, w: (dot(a, w) + dot(q, q) * dot(q, w)) * dx,
        q,
        Function(V).interpolate(as_vector([s, 1 - s * s])),
        bcs=lambda t: [DirichletBC(V, as_vector([sin(t), 1 + t * t]), 1)],
        constraint=lambda mult: mult * (dot(q, q) - 1) * dx,
        multiplier=Function(L),
    )


def bodies():
    """Two bodies, each with a point that is held."""
    mesh = fg.copies(2)
    x, q, v, mult = (Function(VectorFunctionSpace(mesh, "DG", 0, dim=n)) for n in (3, 4, 6, 3))
    rng = np.random.default_rng(1)
    for f in (x, q, v):
        f.dat.data[...] = rng.normal(size=f.dat.data.shape)
    q.dat.data[...] /= np.linalg.norm(q.dat.data, axis=1)[:, None]
    return fg.RigidBodies(
        q,
        v,
        x,
        inertia=(1, 2, 3),
        mass=2.0,
        potential=x[2] * dot(x, x) * dx,
        constraint=lambda mult: dot(mult, x - R(q, Constant((0, 0.5, 1.0)))) * dx,
        multiplier=mult,
    )


def beams():
    """Two beams with a hinge that has a spring, on the ground."""
    mesh = IntervalMesh(2, 1.0)
    section = fg.Section(np.diag([1.0, 2, 3, 40, 50, 60]), np.diag([0.1, 0.2, 0.3, 1, 1, 1]))
    first, second = (fg.Beam(mesh, section) for _ in range(2))
    second.reconstruct(position=(1.0, 0, 0), orientation=(1.0, 0, 0, 0))
    joints = [
        fg.Spherical(fg.ground, first.left),
        fg.Revolute(first.right, second.left, axis=(0, 1, 0), stiffness=3.0),
    ]
    motion = fg.Assembly([first, second], joints)
    rng = np.random.default_rng(2)
    away = Function(motion.space)
    away.dat.data[...] = 0.2 * rng.normal(size=away.dat.data.shape)
    motion.displace(away)
    motion.v.dat.data[...] = rng.normal(size=away.dat.data.shape)
    return motion


@pytest.fixture(scope="module", params=[string, bodies, beams])
def motion(request):
    return request.param()


def differences(motion, f, step):
    """First and second difference of a number along the velocity."""
    before = [np.array(part.dat.data_ro) for part in motion.configuration]
    shift, found = Function(motion.space), []
    for sign in (-1, 0, 1):
        shift.dat.data[...] = sign * step * motion.v.dat.data_ro
        motion.displace(shift)
        found.append(f())
        for part, values in zip(motion.configuration, before, strict=True):
            part.dat.data[...] = values
    left, middle, right = found
    return (right - left) / (2 * step), (right - 2 * middle + left) / step**2


def test_rates_of_conditions(motion):
    """B v is the rate of Φ, and Ḃ v its second derivative where v stays."""
    condition = motion.constraint
    nu = Function(condition.space)
    nu.dat.data[...] = np.random.default_rng(3).normal(size=nu.dat.data.shape)
    value = condition.value(nu)
    # The error of a difference is the square of the step, or round-off over a power of it.
    rate, _ = differences(motion, lambda: assemble(value), 1e-5)
    _, turning = differences(motion, lambda: assemble(value), 1e-3)
    assert assemble(condition.slope(nu, motion.v)) == pytest.approx(rate, rel=1e-7)
    assert assemble(condition.turning(nu, motion.v)) == pytest.approx(turning, rel=1e-4)
    # The rate of the motion is the same derivative, of any form of the configuration.
    along = motion.rate(lambda g: condition.value(nu, g), motion.v)
    assert assemble(along) == pytest.approx(rate, rel=1e-7)


def test_accelerations_fulfil_the_equations(motion):
    """r(g, v, v̇, t) + Bᵀλ vanishes where nothing is held, and B v̇ + Ḃ v where a condition is."""
    if motion.held is not None:
        motion.held.put()
    Accelerations(motion).solve()
    unknown = NodalUnknown(motion)
    form = motion.balance(
        motion.configuration, motion.v, motion.acceleration, motion.time, unknown.test
    )
    form += motion.constraint.slope(motion.multiplier, unknown.test)
    form += motion.constraint.slope(unknown.nu, motion.acceleration)
    form += motion.constraint.turning(unknown.nu, motion.v)
    parts = [np.array(f.dat.data_ro).reshape(-1) for f in assemble(form).subfunctions]
    for given in unknown.prescribed:
        parts[given.part][given.dofs] = 0.0
    # Of numbers of size one to a hundred.
    assert max(np.abs(part).max() for part in parts) < 1e-11
    if motion.held is not None:
        (dofs,) = motion.held.dofs
        a = motion.acceleration.dat.data_ro.reshape(-1)
        assert np.array_equal(a[dofs], motion.held.a.dat.data_ro.reshape(-1)[dofs])


def test_a_motion_without_a_displacement_is_refused():
    space = VectorFunctionSpace(UnitIntervalMesh(2), "CG", 1, dim=2)
    rest = {"balance": None, "rate": None}
    Still = type("Still", (fg.Motion,), rest)
    with pytest.raises(TypeError, match=r"^Still must define moved\(\), or name its group"):
        Still({"q": Function(space)}, Function(space))
