"""Cotangents taken back through a solve on chains and links: against dense matrices."""

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, IntervalMesh, TestFunction, assemble, derivative, dx

from fdgeom.solvers.chain import ChainBack
from fdgeom.solvers.chain.structs import Reads
from fdgeom.solvers.links import mark_links


@pytest.mark.parametrize("links", [[], [4, 9]])
def test_against_dense_matrices(links, rng):
    """c̄ of F(u; c, d) = 0, v = u² + c u: with c at the nodes and d in the cells."""
    mesh = IntervalMesh(14, 1.0)
    space, cells = FunctionSpace(mesh, "CG", 1), FunctionSpace(mesh, "DG", 0)
    inside = Function(cells).assign(1.0)
    inside.dat.data_wo[links] = 0.0
    mark_links(mesh, inside if links else None)
    u, c, v, d = Function(space), Function(space), Function(space), Function(cells)
    for f in (u, c, v, d):
        f.dat.data_wo[...] = rng.uniform(1, 2, f.dat.data_ro.shape)
    w = TestFunction(space)
    # Not symmetric, so that a matrix in the place of its transpose is noticed.
    residual = (u**2 * w + d * u.dx(0) * (w.dx(0) + c * w) + d * c**2 * w) * dx(degree=3)
    wanted = {id(c.dat), id(d.dat)}
    back = ChainBack(residual, u, [], {v: u**2 + c * u}, wanted, {})
    incoming = rng.uniform(-1, 1, v.dat.data_ro.shape)
    back.bars[v].dat.data_wo[...] = incoming
    back.begin()
    assert back.steps(Reads(n=0), 1)
    back.end()
    matrix, by_c, by_d = (
        assemble(derivative(residual, f), mat_type="aij").petscmat[:, :] for f in (u, c, d)
    )
    u_bar = (2 * u.dat.data_ro + c.dat.data_ro) * incoming
    multiplier = np.linalg.solve(matrix.T, u_bar)
    # Round-off of a matrix whose condition is some 1e3.
    for f, slope, direct in ((c, by_c, u.dat.data_ro * incoming), (d, by_d, 0.0)):
        expected = direct - slope.T @ multiplier
        found = back.bars[f].dat.data_ro
        assert found == pytest.approx(expected, rel=0, abs=1e-11 * abs(expected).max())
    assert np.all(back.bars[v].dat.data_ro == 0.0)
