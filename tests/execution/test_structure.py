"""Which residuals couple the unknowns of one node only."""

import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    TestFunction,
    UnitSquareMesh,
    VectorFunctionSpace,
    avg,
    cell_avg,
    conditional,
    dot,
    dS,
    dx,
    grad,
    gt,
    inner,
    lt,
    max_value,
    sqrt,
)
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.small_systems import wave
from ways import solvers_of

import fdgeom as fg
from fdgeom.execution import is_local
from fdgeom.forms import is_affine
from fdgeom.measures import gauss, vertex


@pytest.fixture(scope="module")
def mesh():
    return IntervalMesh(4, 1.0)


@pytest.mark.parametrize(
    ("family", "degree", "measure", "derivative", "local"),
    [
        ("DG", 0, dx, False, True),
        ("CG", 1, vertex, False, True),
        ("CG", 1, lambda m: gauss(m, 2), False, False),
        ("CG", 1, vertex, True, False),
    ],
)
def test_is_local(mesh, family, degree, measure, derivative, local):
    V = VectorFunctionSpace(mesh, family, degree, dim=2)
    u, v = Function(V), TestFunction(V)
    m = measure(mesh) if callable(measure) and measure is not dx else dx(domain=mesh)
    residual = inner(u * dot(u, u), v) * m
    if derivative:
        residual += inner(u.dx(0), v.dx(0)) * m
    u.assign(3.0)
    assert is_local(residual, u) is local
    # The unknown is left alone.
    assert (u.dat.data_ro == 3.0).all()
    assert not is_affine(residual, u)


@pytest.mark.parametrize("kind", ["periodic", "triangles", "quadrilaterals"])
def test_is_local_on_other_meshes(kind):
    mesh = {
        "periodic": lambda: PeriodicIntervalMesh(5, 1.0),
        "triangles": lambda: UnitSquareMesh(2, 2),
        "quadrilaterals": lambda: UnitSquareMesh(2, 2, quadrilateral=True),
    }[kind]()
    V = FunctionSpace(mesh, "CG", 1)
    u, v = Function(V), TestFunction(V)
    lumped = dx(domain=mesh, degree=1, scheme="KMV") if kind == "triangles" else None
    assert not is_local(inner(grad(u), grad(v)) * dx, u)
    assert not is_local(u * v * dx, u)
    if lumped:
        assert is_local(u**3 * v * lumped, u)


@pytest.mark.parametrize("zero", ["function", "constant"])
def test_a_coupling_that_is_zero_now_is_one(mesh, zero):
    """The values may change in the course of a run."""
    V = FunctionSpace(mesh, "CG", 1)
    u, v = Function(V), TestFunction(V)
    k = Function(FunctionSpace(mesh, "DG", 0)) if zero == "function" else Constant(0.0)
    assert not is_local(u * v * vertex(mesh) + k * inner(grad(u), grad(v)) * dx, u)


@pytest.mark.parametrize(
    "factor",
    [
        lambda x, k: conditional(gt(x, 2.0), 1.0, 0.0),
        lambda x, k: conditional(gt(k, 1.6), 1.0, 0.0),
        lambda x, k: max_value(k - 2.0, 0.0),
        lambda x, k: k + abs(k - 2.0) - 2.0,
    ],
)
def test_a_coupling_behind_a_condition_is_one(mesh, factor):
    """No value that is tried need be on that side of the condition."""
    V = FunctionSpace(mesh, "CG", 1)
    u, v = Function(V), TestFunction(V)
    x, k = SpatialCoordinate(mesh)[0], Function(FunctionSpace(mesh, "DG", 0))
    form = u * v * vertex(mesh) + factor(x, k) * inner(grad(u), grad(v)) * dx
    assert not is_local(form, u)
    assert is_local(factor(x, k) * u**3 * v * vertex(mesh), u)
    # A root that is guarded has no value beyond its guard.
    guarded = conditional(lt(k, 2.0), sqrt(2.0 - k), 0.0)
    assert is_local(guarded * u**3 * v * vertex(mesh), u)


def test_nodes_that_are_not_local():
    """Points that were nodes by the degree of the integrand, and values of both sides of a facet."""
    mesh = UnitSquareMesh(2, 2, quadrilateral=True)
    V = FunctionSpace(mesh, "DQ", 1)
    u, v = Function(V), TestFunction(V)
    assert is_local(u * v * dx(degree=2), u)
    assert not is_local(u * v * dx, u)  # of degree 4 there
    assert not is_local(u * v * dx(degree=2) + avg(u) * avg(v) * dS, u)
    assert not is_local(cell_avg(u) * v * dx(degree=2), u)


def test_affine(mesh):
    V = FunctionSpace(mesh, "CG", 1)
    u, w, v = Function(V), Function(V), TestFunction(V)
    assert is_affine((u * w + w**2) * v * dx, u)
    assert not is_affine((u * w + w**2) * v * dx, w)


def test_solves_of_a_beam():
    """The Poisson integrator's solves are local, those of the midpoint rule are not."""
    beam = set_smooth(fg.Beam(uneven_mesh(8), SOFT))
    for cls, types in (
        (fg.PoissonIntegrator, {"pbjacobi"}),
        (fg.ImplicitMidpoint, {"lu"}),
    ):
        stepper = cls(beam, 0.01, compiled=False)
        solvers = solvers_of(stepper)
        assert {s.snes.ksp.pc.getType() for s in solvers} == types
    assert solvers_of(fg.ImplicitMidpoint(wave(), 0.1))[0].snes.getType() == "ksponly"
