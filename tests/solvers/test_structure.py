"""Which residuals couple the unknowns of one node only."""

import pytest
from firedrake import (
    Function,
    FunctionSpace,
    IntervalMesh,
    TestFunction,
    VectorFunctionSpace,
    dot,
    dx,
    inner,
)
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.small_systems import wave

import fdgeom as fg
from fdgeom.forms import is_affine
from fdgeom.measures import gauss, vertex
from fdgeom.solvers.structure import is_local


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
        solvers = [s.solver for s, _ in stepper.substeps()]
        assert {s.snes.ksp.pc.getType() for s in solvers} == types
    assert fg.ImplicitMidpoint(wave(), 0.1).substeps()[0][0].solver.snes.getType() == "ksponly"
