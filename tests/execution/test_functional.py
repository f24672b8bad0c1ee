"""Functionals held for many evaluations against Firedrake's own assembly."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    UnitSquareMesh,
    assemble,
    ds,
    dx,
    grad,
    inner,
)
from ufl import Form

from fdgeom.execution import FunctionalAssembly


@pytest.mark.parametrize("mesh", [lambda: IntervalMesh(7, 2.0), lambda: UnitSquareMesh(3, 4)])
def test_follows_functions_and_constants(mesh, rng):
    """Cell and boundary integrals, whose coefficients change between two evaluations."""
    mesh = mesh()
    u, c = Function(FunctionSpace(mesh, "CG", 2)), Constant(2.0)
    form = c * inner(grad(u), grad(u)) * dx + u**3 * dx(degree=4) + c**2 * u * ds(1) + u**2 * ds
    held = FunctionalAssembly(form)
    for value in (1.0, -3.0):
        u.dat.data_wo[...] = rng.uniform(-1, 1, u.dat.data_ro.shape)
        c.assign(value)
        # The same kernels; the integrals are added in another order.
        assert held.assemble() == pytest.approx(assemble(form), rel=1e-14)
        assert held.assemble() == held.assemble()


def test_no_integral():
    assert FunctionalAssembly(Form([])).assemble() == 0.0


def test_value_is_a_float():
    u = Function(FunctionSpace(IntervalMesh(3, 1.0), "DG", 0))
    u.dat.data_wo[...] = np.nan
    assert np.isnan(FunctionalAssembly(u * dx).assemble())
