"""Derivatives of interpolants, inverse matrices and numbers as fields, by NumPy."""

import numpy as np
import pytest
import ufl
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    TensorFunctionSpace,
    UnitIntervalMesh,
    as_vector,
    dot,
    dx,
)
from firedrake.adjoint import continue_annotation, pause_annotation

import fdgeom as fg
from fdgeom.adjoint import OperationList, keys
from fdgeom.adjoint.lists import Derivatives
from fdgeom.operations import Broadcast, Interpolate, Inverse

RNG = np.random.default_rng(7)
MESH = UnitIntervalMesh(3)


def random(space, name="f"):
    f = Function(space, name=name)
    f.dat.data_wo[...] = RNG.uniform(0.5, 1.5, f.dat.data_ro.shape)
    return f


def derivatives(operations, source, target, dot, bar):
    """The tangent, the cotangent, and the cotangent's rate along the tangent."""
    made = OperationList(operations, keys([source]), {})
    vectors = Derivatives()
    made.executor.step(0.0, 0.0)
    vectors.tangents = type(vectors.cotangents)()
    vectors.tangents.put(source, dot.reshape(source.dat.data_ro.shape))
    vectors.cotangents.put(target, bar.reshape(target.dat.data_ro.shape))
    made.places.put(vectors.tangents)
    trajectory, places = made.trajectory(keys([target]), second=True)
    trajectory.advance(0.0, 0.0)
    made.places.get(vectors.tangents)
    vectors.put(places)
    trajectory.pull()
    vectors.get(places)
    found = vectors.tangents.of(target), vectors.cotangents.of(source), vectors.rates.of(source)
    return [np.array(v) for v in found]


def test_interpolant():
    """f = a u³ in CG1, of u in the same space, at some nodes: f' = 3 a u², f'' = 6 a u."""
    space = FunctionSpace(MESH, "CG", 1)
    u, f, a = random(space), Function(space), Constant(1.7)
    rows = np.array([True, False, True, True])
    dot, bar = (RNG.uniform(-1, 1, 4) for _ in range(2))
    u0 = np.array(u.dat.data_ro)
    operation = Interpolate(expression=a * u**3, target=f, rows=rows)
    tangent, cotangent, rate = derivatives([operation], u, f, dot, bar)
    assert f.dat.data_ro == pytest.approx(rows * 1.7 * u0**3, rel=1e-14)
    assert tangent == pytest.approx(rows * 5.1 * u0**2 * dot, rel=1e-14)
    assert cotangent == pytest.approx(rows * 5.1 * u0**2 * bar, rel=1e-14)
    assert rate == pytest.approx(rows * 10.2 * u0 * dot * bar, rel=1e-14)


def test_inverse():
    """X = A⁻¹ of A = B(u) with u by which it is not linear: dX = -X dA X, twice."""
    scalar = FunctionSpace(MESH, "DG", 0)
    space = TensorFunctionSpace(MESH, "DG", 0, shape=(2, 2))
    u, a, x = random(scalar), Function(space), Function(space)
    values = u.dat.data_ro.copy()
    expression = ufl.as_matrix([[2 + u**2, u], [0.3 * u, 3]])
    operations = [Interpolate(expression=expression, target=a), Inverse(a, x)]
    dot, bar = RNG.uniform(-1, 1, 3), RNG.uniform(-1, 1, (3, 2, 2))
    tangent, cotangent, rate = derivatives(operations, u, x, dot, bar)
    for k, v in enumerate(values):
        inverse = np.linalg.inv([[2 + v**2, v], [0.3 * v, 3]])
        first, second = np.array([[2 * v, 1], [0.3, 0]]), np.array([[2, 0], [0, 0]])
        slope = -inverse @ first @ inverse
        curvature = -inverse @ second @ inverse - 2 * slope @ first @ inverse
        # X'' = -(X A' X)' = -X A'' X - X' A' X - X A' X', and X' A' X = X A' X' = -X A' X A' X.
        assert tangent.reshape(3, 2, 2)[k] == pytest.approx(slope * dot[k], rel=1e-13)
        assert cotangent[k] == pytest.approx(np.sum(slope * bar[k]), rel=1e-13)
        assert rate[k] == pytest.approx(np.sum(curvature * bar[k]) * dot[k], rel=1e-12)


def test_sum_of_what_is_there_and_of_the_interpolant():
    """With ``adds``, the cotangent of the target stays beside that of the sources."""
    space = FunctionSpace(MESH, "CG", 1)
    u, f = random(space), random(space)
    made = OperationList([Interpolate(expression=2 * u, target=f, adds=True)], keys([u, f]), {})
    bar, vectors = RNG.uniform(-1, 1, 4), Derivatives()
    vectors.cotangents.put(f, bar.copy())
    trajectory, places = made.trajectory(keys([f]))
    trajectory.advance(0.0, 0.0)
    vectors.put(places)
    trajectory.pull()
    vectors.get(places)
    assert vectors.cotangents.of(f) == pytest.approx(bar, rel=1e-15)
    assert vectors.cotangents.of(u) == pytest.approx(2 * bar, rel=1e-15)


@pytest.mark.parametrize("family", ["CG", "R"])
def test_number_as_field(family):
    """A number's cotangent is the sum of those of the field, or that of another mesh's number."""
    number = random(TensorFunctionSpace(UnitIntervalMesh(2), "R", 0, shape=(2, 2)))
    degree = 1 if family == "CG" else 0
    field = Function(TensorFunctionSpace(MESH, family, degree, shape=(2, 2)))
    dot, bar = RNG.uniform(-1, 1, (1, 2, 2)), RNG.uniform(-1, 1, field.dat.data_ro.shape)
    tangent, cotangent, rate = derivatives([Broadcast(number, field)], number, field, dot, bar)
    own = np.broadcast_to(number.dat.data_ro.reshape(1, 2, 2), bar.reshape(-1, 2, 2).shape)
    assert np.array_equal(field.dat.data_ro.reshape(own.shape), own)
    assert np.array_equal(tangent.reshape(own.shape), np.broadcast_to(dot, own.shape))
    total = bar.reshape(-1, 2, 2).sum(axis=0)
    assert cotangent.reshape(2, 2) == pytest.approx(total, rel=1e-15)
    assert not np.any(rate)


def test_a_field_that_was_set_by_hand_is_refused():
    """Replays would compute it anew, so their numbers would not be those of the run."""
    curvature = random(FunctionSpace(MESH, "R", 0))
    unit = fg.Section(np.eye(6), np.eye(6))
    shape = as_vector([0, curvature, 0, 0, 0, 0])
    beam = fg.Beam(MESH, unit, left="clamped", reference_strain=shape)
    stepper = fg.PoissonIntegrator(beam, 0.01)
    beam.reference_strain.dat.data[:, 1] = 2.0
    objective = dot(beam.momentum, beam.momentum) * dx
    refused = pytest.raises(NotImplementedError, match="^reference_strain .* was set by hand")
    with refused:
        fg.gradient(stepper, 2, objective, [curvature])
    continue_annotation()
    try:
        with refused:
            stepper.advance(2)
    finally:
        pause_annotation()
    curvature.assign(1.0)  # from here on it follows again
    assert fg.gradient(stepper, 2, objective, [curvature])[0] > 0
