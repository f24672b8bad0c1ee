"""Pointwise updates against Firedrake's interpolation, and what they refuse."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    TensorFunctionSpace,
    TestFunction,
    UnitSquareMesh,
    VectorFunctionSpace,
    as_vector,
    conditional,
    cos,
    cross,
    dot,
    exp,
    gt,
    inv,
    split,
    sqrt,
)

from fdgeom.execution import PointwiseUpdate


@pytest.fixture(scope="module")
def mesh():
    return IntervalMesh(7, 2.0)


def fill(function, seed):
    values = function.dat.data_wo
    values[...] = np.random.default_rng(seed).uniform(-1, 1, values.shape)
    return function


@pytest.mark.parametrize(("family", "degree"), [("DG", 0), ("CG", 1), ("CG", 3), ("DG", 2)])
def test_against_interpolation(mesh, family, degree):
    scalar = FunctionSpace(mesh, family, degree)
    vector = VectorFunctionSpace(mesh, family, degree, dim=3)
    tensor = TensorFunctionSpace(mesh, family, degree, shape=(3, 3))
    spaces = (scalar, vector, vector, tensor)
    s, u, v, T = (fill(Function(space), k) for k, space in enumerate(spaces))
    c, d = Constant(0.7), Constant([0.1, 0.2, 0.3])
    expressions = {
        Function(vector): cross(u, v) * exp(c * s) + dot(inv(T), d),
        Function(scalar): conditional(gt(s, 0), sqrt(abs(s)), cos(c)) + dot(u, d),
        Function(tensor): T.T + s * T,
    }
    update = PointwiseUpdate(expressions)
    for seed, value in ((7, 0.7), (8, -1.3)):
        c.assign(value)
        fill(u, seed)
        update.apply()
        for target, expression in expressions.items():
            expected = Function(target.function_space()).interpolate(expression)
            # The same operations, perhaps in another order; the inverse costs some digits.
            assert target.dat.data_ro == pytest.approx(expected.dat.data_ro, rel=1e-11, abs=1e-12)


def test_old_values_are_meant(mesh):
    """All right-hand sides see the values before the update: a swap needs no third function."""
    V = VectorFunctionSpace(mesh, "CG", 1, dim=2)
    u, v = fill(Function(V), 1), fill(Function(V), 2)
    a, b = np.array(u.dat.data_ro), np.array(v.dat.data_ro)
    PointwiseUpdate({u: v, v: u + 2 * v}).apply()
    assert np.array_equal(u.dat.data_ro, b)
    assert np.array_equal(v.dat.data_ro, a + 2 * b)


def test_zeros_are_assigned(mesh):
    """A function assigned a literal zero, alone and beside another that is not zero."""
    V = VectorFunctionSpace(mesh, "CG", 1, dim=2)
    for several in (False, True):
        u, v = fill(Function(V), 1), fill(Function(V), 2)
        a = np.array(u.dat.data_ro)
        PointwiseUpdate({u: 0 * v} | ({v: 2 * u} if several else {})).apply()
        assert not np.any(u.dat.data_ro)
        if several:
            assert np.array_equal(v.dat.data_ro, 2 * a)


def test_firedrake_sees_the_new_values(mesh):
    """Values that Firedrake has cached do not survive the update."""
    from firedrake import assemble, dx

    V = FunctionSpace(mesh, "CG", 1)
    u, v = Function(V).assign(1.0), Function(V).assign(3.0)
    assert assemble(u * dx) == pytest.approx(2.0)
    version = u.dat.dat_version
    PointwiseUpdate({u: v + u}).apply()
    assert u.dat.dat_version > version
    assert assemble(u * dx) == pytest.approx(8.0)


def test_what_is_refused(mesh):
    V, W = FunctionSpace(mesh, "CG", 1), FunctionSpace(mesh, "DG", 0)
    u, w, z = Function(V, name="u"), Function(W, name="w"), Function(V * W, name="z")
    for assignments, message in (
        ({}, "values is empty"),
        ({u: as_vector([u, u])}, r"the expression for 'u' has the shape \(2,\)"),
        ({u: 2 * TestFunction(V)}, "the expression for u holds a test"),
        ({u: u + w}, "w has other nodes than u"),
        ({u: u, w: w}, "w has other nodes than u"),
        ({u: split(z)[0]}, "z is a mixed Function"),
        ({u: Function(FunctionSpace(IntervalMesh(7, 2.0), "CG", 1), name="x")}, "x has other"),
    ):
        with pytest.raises(ValueError, match=message):
            PointwiseUpdate(assignments)


def test_what_is_not_compiled_says_why(mesh):
    """Degrees of freedom that are no values at nodes go through Firedrake, and the reason is kept."""
    edges = FunctionSpace(UnitSquareMesh(1, 1), "N1curl", 1)
    one, other = fill(Function(edges), 1), Function(edges)
    update = PointwiseUpdate({other: 2 * one})
    assert update.why_not_compiled
    update.apply()
    np.testing.assert_array_equal(other.dat.data_ro, 2 * one.dat.data_ro)
    nodes = FunctionSpace(mesh, "CG", 1)
    assert PointwiseUpdate({Function(nodes): Constant(1.0)}).why_not_compiled is None


def test_one_after_another(mesh):
    """Assignments on different spaces; later ones read what earlier ones have set."""
    V, W = FunctionSpace(mesh, "CG", 1), FunctionSpace(mesh, "DG", 0)
    u, v, w = fill(Function(V), 1), fill(Function(V), 2), fill(Function(W), 3)
    a, b, c = (np.array(f.dat.data_ro) for f in (u, v, w))
    PointwiseUpdate({u: v, v: u}, {w: 2 * w}, {u: u * v}).apply()
    np.testing.assert_array_equal(u.dat.data_ro, a * b)
    np.testing.assert_array_equal(v.dat.data_ro, a)
    np.testing.assert_array_equal(w.dat.data_ro, 2 * c)
