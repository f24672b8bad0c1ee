"""Chains of which each is a lane of its own: their ends are solved for in the lanes, by row exchanges."""

import numpy as np
import pytest
from firedrake import (
    COMM_WORLD,
    Function,
    FunctionSpace,
    Mesh,
    TensorFunctionSpace,
    TestFunction,
    VectorFunctionSpace,
    assemble,
    derivative,
    dot,
    inner,
)
from firedrake.mesh import plex_from_cell_list

from fdgeom import measures
from fdgeom.solvers.chain.unit import ChainUnit
from fdgeom.solvers.chain.vectors import Vectors
from fdgeom.solvers.essential import EssentialValues
from fdgeom.solvers.links import mark_links

#: Cells of so many chains that it does not pay to cut them.
LENGTHS = (4, 4, 1, 4, 4, 4, 2, 4, 4, 4, 4, 3, 4) * 3


def of_chains(lengths, links=()):
    """A mesh of separate chains, and of links between nodes."""
    starts = np.cumsum([0, *(n + 1 for n in lengths)])
    cells = [(a + k, a + k + 1) for a, n in zip(starts, lengths, strict=False) for k in range(n)]
    cells = np.array([*cells, *links])
    coordinates = np.arange(starts[-1], dtype=float)[:, None]
    mesh = Mesh(plex_from_cell_list(1, cells, coordinates, COMM_WORLD), dim=1)
    inside = Function(FunctionSpace(mesh, "DG", 0))
    inside.interpolate(measures.cell_length(mesh))
    inside.dat.data_wo[...] = inside.dat.data_ro < 1.5
    mark_links(mesh, inside if links else None)
    return mesh


def coupled(mesh, size, rng, weight=1.0):
    """Equations with small numbers on the diagonals at the ends of the chains."""
    space = VectorFunctionSpace(mesh, "CG", 1, dim=size)
    u, w, h = Function(space), TestFunction(space), measures.cell_length(mesh)
    u.dat.data_wo[...] = rng.uniform(-1, 1, u.dat.data_ro.shape)
    own = Function(TensorFunctionSpace(mesh, "CG", 1, shape=(size, size)))
    cells = own.function_space().cell_node_map().values
    at_end = np.bincount(cells.ravel()) == 1
    values = rng.uniform(-1, 1, (len(at_end), size, size))
    # None at all, where that leaves regular matrices.
    values[at_end] *= 1.0 - (0.99 if size == 1 else 1.0) * np.eye(size)
    values[~at_end] += 9.0 * np.eye(size)
    own.dat.data_wo[...] = values.reshape(own.dat.data_ro.shape)
    right = Function(space)
    right.dat.data_wo[...] = rng.uniform(-1, 1, u.dat.data_ro.shape)
    form = weight * inner(dot(own, u) - right, w) * measures.vertex(mesh)
    between = inner(u, w) - h**2 / 4 * inner(u.dx(0), w.dx(0))
    return form + weight * between * measures.midpoint(mesh), u


def dense(form, u, given=()):
    """Matrix and residual by PETSc, with rows of the identity for what is given."""
    matrix = assemble(derivative(form, u), mat_type="aij").petscmat.convert("dense")
    matrix, residual = matrix.getDenseArray().copy(), assemble(form).dat.data_ro.reshape(-1).copy()
    for k, lacks in given:
        matrix[k], residual[k] = np.eye(len(matrix))[k], lacks
    return matrix, residual


def taken(unit):
    unit.begin()
    unit.hold()
    unit.take_unknown()
    assert unit.linearise()
    return unit


def ends_alone(unit):
    """The groups whose ends are solved for in the lanes."""
    return unit._data._alone


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("number", [32, 39], ids=["full lanes", "empty lanes"])
def test_against_dense_matrices(size, number, rng):
    form, u = coupled(of_chains(LENGTHS[:number]), size, rng)
    matrix, residual = dense(form, u)
    unit = taken(ChainUnit(form, u, factors=True))
    assert ends_alone(unit) == set(range(len(unit.layout.groups)))
    assert unit.residual_norm == pytest.approx(np.linalg.norm(residual), rel=1e-14)
    assert unit.evaluate() == pytest.approx(np.linalg.norm(residual), rel=1e-14)
    wanted = u.dat.data_ro.reshape(-1) - np.linalg.solve(matrix, residual)
    step, length = unit.update()
    change = np.linalg.norm(np.linalg.solve(matrix, residual))
    assert (step, length) == pytest.approx((change, np.linalg.norm(wanted)), rel=1e-12)
    unit.give_unknown()
    np.testing.assert_allclose(u.dat.data_ro.reshape(-1), wanted, atol=1e-12)


def test_given_numbers_are_what_they_are_to_the_last_digit(rng):
    mesh = of_chains(LENGTHS)
    form, u = coupled(mesh, 3, rng)
    # Of both ends of the first chain, of one end of the next; inside another one.
    dofs = np.array([0, 1, 2, 14, 15, 30, 31])
    given = u.copy(deepcopy=True)
    unit = taken(ChainUnit(form, u, essential=[EssentialValues(0, dofs, given)]))
    assert ends_alone(unit)
    matrix, residual = dense(form, u, [(k, 0.0) for k in dofs])
    assert unit.residual_norm == pytest.approx(np.linalg.norm(residual), rel=1e-14)
    wanted = u.dat.data_ro.reshape(-1) - np.linalg.solve(matrix, residual)
    unit.update()
    unit.give_unknown()
    found = u.dat.data_ro.reshape(-1)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    np.testing.assert_array_equal(found[dofs], given.dat.data_ro.reshape(-1)[dofs])


def test_other_right_hand_sides(rng):
    form, u = coupled(of_chains(LENGTHS), 3, rng)
    matrix, _ = dense(form, u)
    unit = taken(ChainUnit(form, u, factors=True))
    vectors, b = Vectors(unit), rng.uniform(-1, 1, len(matrix))
    vectors.put_right_hand_side(b)
    unit.apply()
    x = np.zeros_like(b)
    vectors.get_solution(x)
    np.testing.assert_allclose(x, np.linalg.solve(matrix, b), atol=1e-12)


def test_beside_chains_that_are_linked(rng):
    # Longest first: forty that are alone, then those with a link.
    lengths = (4,) * 40 + (1, 2, 1)
    starts = np.cumsum([0, *(n + 1 for n in lengths)])
    form, u = coupled(of_chains(lengths, [(starts[41] - 1, starts[42])]), 3, rng)
    matrix, residual = dense(form, u)
    unit = taken(ChainUnit(form, u))
    assert ends_alone(unit) == set(range(40 // unit.lanes))
    wanted = u.dat.data_ro.reshape(-1) - np.linalg.solve(matrix, residual)
    unit.update()
    unit.give_unknown()
    np.testing.assert_allclose(u.dat.data_ro.reshape(-1), wanted, atol=1e-12)


def test_a_singular_chain_is_noticed(rng):
    mesh = of_chains((1,) * 9)
    weight = Function(FunctionSpace(mesh, "DG", 0)).assign(1.0)
    unit = taken(ChainUnit(*coupled(mesh, 1, rng, weight)))
    weight.dat.data_wo[4] = 0.0
    unit.begin()
    assert not unit.linearise()
