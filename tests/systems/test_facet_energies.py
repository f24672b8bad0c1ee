"""Energies with integrals over interior facets."""

import numpy as np
import pytest
from firedrake import (
    Function,
    FunctionSpace,
    SpatialCoordinate,
    UnitIntervalMesh,
    dS,
    dx,
    inner,
    jump,
    sqrt,
)

import fdgeom as fg


def test_a_continuous_part_of_a_mixed_state():
    """q⁴ at the inner nodes, with q continuous and written as it is, without a side.

    A mixed Function with a discontinuous part is discontinuous for UFL, so the side has to be set
    before q is written as a part of it.
    """
    mesh = UnitIntervalMesh(4)
    z = Function(FunctionSpace(mesh, "CG", 1) * FunctionSpace(mesh, "DG", 0))
    q, p = z.subfunctions
    q.interpolate(SpatialCoordinate(mesh)[0])
    system = fg.PoissonSystem(
        z,
        0.5 * p**2 * dx + q**4 * dS,
        lambda a, b: (a[0] * b[1] - a[1] * b[0]) * dx,
        lambda a, b: inner(a, b) * dx,
    )
    # The inner nodes are at 1/4, 1/2 and 3/4; the sum is exact in binary numbers.
    assert system.energy() == pytest.approx((1 + 16 + 81) / 256, rel=1e-14)


def test_springs_between_cells():
    """Cells joined by springs, as in NumPy: M q̈ = -K q with the implicit midpoint rule."""
    cells, dt, steps = 4, 0.05, 6
    mesh = UnitIntervalMesh(cells)
    space = FunctionSpace(mesh, "DG", 0)
    q, p = Function(space), Function(space)
    q.interpolate(SpatialCoordinate(mesh)[0] ** 2)
    start = q.dat.data_ro.copy()
    system = fg.HamiltonianSystem(q, p, 0.5 * p**2 * dx + 0.5 * jump(q) ** 2 * dS)
    fg.ImplicitMidpoint(system, dt).advance(steps)
    difference = np.diff(np.eye(cells), axis=0)
    matrix = np.block(
        [
            [np.zeros((cells, cells)), np.eye(cells)],
            [-cells * difference.T @ difference, np.zeros((cells, cells))],
        ]
    )
    one = np.eye(2 * cells)
    step = np.linalg.solve(one - dt / 2 * matrix, one + dt / 2 * matrix)
    expected = np.linalg.matrix_power(step, steps) @ [*start, *np.zeros(cells)]
    # Cells of a line are numbered along it; the solves leave 1e-13.
    assert np.abs(q.dat.data_ro - expected[:cells]).max() < 1e-11


def test_springs_that_are_not_polynomials():
    """``DiscreteGradient`` keeps an energy of jumps to round-off, with q and p given as two Functions."""
    mesh = UnitIntervalMesh(4)
    space = FunctionSpace(mesh, "DG", 1)
    q, p = Function(space), Function(space)
    q.dat.data[...] = np.sin(np.arange(8.0))
    energy = 0.5 * p**2 * dx + sqrt(1 + jump(q) ** 2) * dS
    system = fg.HamiltonianSystem(q, p, energy)
    start, before = system.energy(), p.dat.data_ro.copy()
    fg.DiscreteGradient(system, 0.05).advance(3)
    assert np.abs(p.dat.data_ro - before).max() > 1e-3
    assert system.energy() == pytest.approx(start, rel=1e-14)
