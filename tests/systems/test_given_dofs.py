"""Boundary conditions of second-order motions hold all degrees of freedom that they are on."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    DirichletBC,
    Function,
    FunctionSpace,
    UnitIntervalMesh,
    UnitSquareMesh,
    VectorFunctionSpace,
    as_vector,
    conditional,
    dx,
    inner,
    lt,
)

import fdgeom as fg

H = 0.01


@pytest.mark.parametrize(
    ("family", "degree"), [("N1curl", 2), ("N2curl", 1), ("RT", 2), ("BDM", 2), ("CG", 2)]
)
def test_all_are_held(family, degree):
    """Also moments against polynomials of mean zero, which a constant value does not see."""
    mesh = UnitSquareMesh(2, 2)
    make = VectorFunctionSpace if family == "CG" else FunctionSpace
    space = make(mesh, family, degree)
    q, v = Function(space), Function(space)
    q.dat.data_wo[...] = 1.0
    bc = DirichletBC(space, 0, "on_boundary")
    system = fg.SecondOrderSystem(lambda q, v, a, t, w: inner(a + q, w) * dx, q, v, bcs=[bc])
    fg.GeneralizedAlpha(system, H).advance(1)
    given = q.dat.data_ro[bc.nodes]
    # Zero was put there; what a solve leaves is far smaller than the step's change of 5e-5.
    assert np.abs(given).max() < 1e-12
    others = np.delete(q.dat.data_ro, bc.nodes, axis=0)
    assert np.abs(others).max() > 0.5


def test_parts_and_components():
    """Of a mixed space, a part of one component and one that is given as a whole."""
    mesh = UnitSquareMesh(2, 2)
    space = VectorFunctionSpace(mesh, "CG", 1) * FunctionSpace(mesh, "RT", 1)
    q, v = Function(space), Function(space)
    for part in q.subfunctions:
        part.dat.data_wo[...] = 1.0
    bcs = [
        DirichletBC(space.sub(0).sub(1), 0.0, 1),
        DirichletBC(space.sub(1), as_vector([0.0, 0.0]), 2),
    ]
    system = fg.SecondOrderSystem(lambda q, v, a, t, w: inner(a + q, w) * dx, q, v, bcs=bcs)
    fg.GeneralizedAlpha(system, H).advance(1)
    vectors, fluxes = (part.dat.data_ro for part in q.subfunctions)
    assert np.abs(vectors[bcs[0].nodes, 1]).max() < 1e-12
    assert np.abs(vectors[:, 0]).min() > 0.5
    assert np.abs(fluxes[bcs[1].nodes]).max() < 1e-12


@pytest.mark.parametrize("method", [fg.HermiteSimpson, fg.GeneralizedAlpha])
def test_a_value_that_jumps_in_time(method):
    """From 0 to 0.1 at t = 0.05, though its rate is zero wherever there is one."""
    space = FunctionSpace(UnitIntervalMesh(4), "CG", 1)
    q, v = Function(space), Function(space)
    system = fg.SecondOrderSystem(
        lambda q, v, a, t, w: (a * w + q.dx(0) * w.dx(0)) * dx, q, v,
        bcs=lambda t: DirichletBC(space, conditional(lt(t, 0.05), 0.0, 0.1), 1),
    )  # fmt: skip
    stepper = method(system, 0.01)
    (node,) = space.boundary_nodes(1)
    for steps, expected in ((4, 0.0), (4, 0.1)):
        stepper.advance(steps)
        assert q.dat.data_ro[node] == expected
        assert v.dat.data_ro[node] == 0.0


def test_a_list_of_expressions():
    """It moves with the time, as the vector of them does."""
    mesh = UnitIntervalMesh(4)
    space = VectorFunctionSpace(mesh, "CG", 1, dim=2)
    q, v = Function(space), Function(space)
    system = fg.SecondOrderSystem(
        lambda q, v, a, t, w: (inner(a, w) + inner(q.dx(0), w.dx(0))) * dx, q, v,
        bcs=lambda t: DirichletBC(space, [0, t**2], 1),
    )  # fmt: skip
    stepper = fg.GeneralizedAlpha(system, 0.5)
    stepper.advance(2)
    (node,) = space.boundary_nodes(1)
    assert q.dat.data_ro[node] == pytest.approx([0, 1.0], abs=1e-12)
    assert v.dat.data_ro[node] == pytest.approx([0, 2.0], abs=1e-12)


@pytest.mark.parametrize("replace", [lambda bc: bc.set_value(0.5), lambda bc: bc.homogenize()])
@pytest.mark.parametrize("given", [lambda space: 0.1, lambda space: Function(space).assign(0.1)])
def test_a_value_that_is_replaced(given, replace):
    """The condition then has another object, which no step reads."""
    space = FunctionSpace(UnitIntervalMesh(8), "CG", 1)
    q, v = Function(space).assign(0.1), Function(space)
    bc = DirichletBC(space, given(space), 1)

    def stepper():
        system = fg.SecondOrderSystem(
            lambda q, v, a, t, w: (a * w + q.dx(0) * w.dx(0)) * dx, q, v, bcs=[bc]
        )
        return fg.GeneralizedAlpha(system, 0.01)

    before = stepper()
    before.advance(1)
    replace(bc)
    with pytest.raises(ValueError, match="the value of a DirichletBC was replaced"):
        before.advance(1)
    bc.homogenize()
    q.assign(0.0)
    v.assign(0.0)
    stepper().advance(1)
    assert np.abs(q.dat.data_ro).max() < 1e-14


@pytest.mark.parametrize("method", [fg.HermiteSimpson, fg.GeneralizedAlpha])
@pytest.mark.parametrize("moving", [False, True])
def test_a_value_that_is_assigned_before_each_step(method, moving):
    """One change is a jump to another position at rest; two are a motion whose velocity is unknown."""
    space = FunctionSpace(UnitIntervalMesh(4), "CG", 1)
    q, v, value = Function(space), Function(space), Constant(0.0)
    system = fg.SecondOrderSystem(
        lambda q, v, a, t, w: (a * w + q.dx(0) * w.dx(0)) * dx, q, v,
        bcs=lambda t: [DirichletBC(space, value, 1), *([DirichletBC(space, t, 2)] if moving else [])],
    )  # fmt: skip
    stepper = method(system, 0.01)
    stepper.advance(2)
    for k in (1, 2):
        value.assign(0.1 * k)
        stepper.advance(2)
        assert q.dat.data_ro[space.boundary_nodes(1)] == 0.1 * k
    value.assign(0.3)
    stepper.advance(1)
    value.assign(0.4)
    with pytest.raises(ValueError, match=r"bcs: .* changed before two steps in a row, .*lambda t"):
        stepper.advance(1)
