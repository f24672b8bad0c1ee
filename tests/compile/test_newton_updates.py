"""Updates of Newton's method on chains and links, against dense matrices."""

import numpy as np
import pytest
from firedrake import (
    COMM_WORLD,
    Function,
    FunctionSpace,
    IntervalMesh,
    Mesh,
    SpatialCoordinate,
    TensorFunctionSpace,
    TestFunction,
    VectorFunctionSpace,
    assemble,
    derivative,
    dot,
    dx,
    exp,
    inner,
)
from firedrake.mesh import plex_from_cell_list

from fdgeom import measures
from fdgeom.compile.executor import newton_of
from fdgeom.compile.tree import elimination_order
from fdgeom.line import mark_links
from fdgeom.operations import Prescribed

#: Cells of some chains.
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


def coupled(mesh, size, rng, weight=1.0, symmetric=False):
    """Equations with small numbers on the diagonals at the ends of the chains."""
    space = VectorFunctionSpace(mesh, "CG", 1, dim=size)
    u, w, h = Function(space), TestFunction(space), measures.cell_length(mesh)
    u.dat.data_wo[...] = rng.uniform(-1, 1, u.dat.data_ro.shape)
    own = Function(TensorFunctionSpace(mesh, "CG", 1, shape=(size, size)))
    cells = own.function_space().cell_node_map().values
    at_end = np.bincount(cells.ravel()) == 1
    values = rng.uniform(-1, 1, (len(at_end), size, size))
    if symmetric:
        values += 3.0 * rng.uniform(-1, 1, len(at_end))[:, None, None] * np.eye(size)
        values += values.transpose(0, 2, 1)
    else:
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
    rows = np.array(given, dtype=int)
    matrix[rows], residual[rows] = np.eye(len(matrix))[rows], 0.0
    return matrix, residual


def begun(form, u, essential=()):
    """The iteration after its first run."""
    iteration = newton_of(form, u, essential)
    iteration.begin()
    assert iteration.run(inertia=True) == 0
    return iteration


@pytest.mark.parametrize("size", [1, 3])
def test_separate_chains(size, rng):
    form, u = coupled(of_chains(LENGTHS), size, rng)
    matrix, residual = dense(form, u)
    iteration = begun(form, u)
    wanted = -np.linalg.solve(matrix, residual)
    assert iteration.report.norm == pytest.approx(np.linalg.norm(residual), rel=1e-14)
    assert iteration.report.step == pytest.approx(np.linalg.norm(wanted), rel=1e-12)
    np.testing.assert_allclose(iteration.update(), wanted, atol=1e-12)
    expected = u.dat.data_ro.reshape(-1) + wanted
    iteration.run()
    assert iteration.norm(u) == pytest.approx(np.linalg.norm(expected), rel=1e-12)
    iteration.end()
    np.testing.assert_allclose(u.dat.data_ro.reshape(-1), expected, atol=1e-12)


def test_given_numbers_stay_to_the_last_digit(rng):
    form, u = coupled(of_chains(LENGTHS), 3, rng)
    # Of both ends of the first chain, of one end of the next; inside another one.
    dofs = np.array([0, 1, 2, 14, 15, 30, 31])
    given = u.copy(deepcopy=True).dat.data_ro.reshape(-1)
    matrix, residual = dense(form, u, dofs)
    iteration = begun(form, u, [Prescribed(dofs)])
    assert iteration.report.norm == pytest.approx(np.linalg.norm(residual), rel=1e-14)
    wanted = given - np.linalg.solve(matrix, residual)
    iteration.run()
    iteration.end()
    found = u.dat.data_ro.reshape(-1)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    np.testing.assert_array_equal(found[dofs], given[dofs])


def test_beside_chains_that_are_linked(rng):
    lengths = (4,) * 40 + (1, 2, 1)
    starts = np.cumsum([0, *(n + 1 for n in lengths)])
    form, u = coupled(of_chains(lengths, [(starts[41] - 1, starts[42])]), 3, rng)
    matrix, residual = dense(form, u)
    iteration = begun(form, u)
    np.testing.assert_allclose(iteration.update(), -np.linalg.solve(matrix, residual), atol=1e-12)


LINKED = {
    "one chain": ((30,), ()),
    "separate chains": (LENGTHS, ()),
    "a tree": ((9, 20, 4), ((9, 10), (12, 31))),
    "a loop": ((9, 20, 4), ((9, 10), (30, 31), (0, 35))),
}


@pytest.mark.parametrize("size", [2, 6])
@pytest.mark.parametrize("kind", LINKED)
def test_the_number_of_negative_eigenvalues(kind, size, rng):
    """Of symmetric matrices with eigenvalues of both signs; also where components are given."""
    form, u = coupled(of_chains(*LINKED[kind]), size, rng, symmetric=True)
    dofs = np.array([0, 1, 3 * size + 1, 12 * size])
    for given in ((), dofs):
        matrix, _ = dense(form, u)
        free = np.setdiff1d(np.arange(len(matrix)), given)
        values = np.linalg.eigvalsh(matrix[np.ix_(free, free)])
        assert np.abs(values).min() > 1e-6
        essential = [Prescribed(given)] if len(given) else []
        iteration = begun(form, u, essential)
        assert iteration.report.negative == np.sum(values < 0)
        assert 0 < iteration.report.negative < len(free)


def test_a_singular_chain_is_noticed(rng):
    mesh = of_chains((1,) * 9)
    weight = Function(FunctionSpace(mesh, "DG", 0)).assign(1.0)
    iteration = begun(*coupled(mesh, 1, rng, weight))
    weight.dat.data_wo[4] = 0.0
    iteration.begin()
    assert iteration.run() != 0


def pattern(size, pairs, order):
    """What each node is coupled with when it is eliminated, by a dense matrix of what is not zero."""
    coupled = np.eye(size, dtype=bool)
    coupled[tuple(pairs.T)] = coupled[tuple(pairs.T[::-1])] = True
    left, found = set(range(size)), {}
    for node in order:
        left.discard(node)
        found[node] = {other for other in left if coupled[node, other]}
        for other in found[node]:
            coupled[other] |= coupled[node]
    return found


@pytest.mark.parametrize("loops", [0, 1, 8])
def test_fronts_hold_what_is_coupled(loops):
    random, size = np.random.default_rng(loops), 40
    tree = [(random.integers(k), k) for k in range(1, size)]
    more = [random.choice(size, 2, replace=False) for _ in range(loops)]
    pairs = np.array([*tree, *more], dtype=int)
    sizes = random.integers(1, 12, size)
    found = elimination_order(pairs, sizes, random.random(size) < 0.5)
    order = [node for front in found for node in front.own]
    assert sorted(order) == list(range(size))
    wanted = pattern(size, pairs, order)
    for front in found:
        for k, node in enumerate(front.own):
            assert wanted[node] == {*front.own[k + 1 :], *front.others}
    # Trees without fill, loops with little.
    fill = sum(map(len, wanted.values())) - len(np.unique(np.sort(pairs), axis=0))
    assert fill <= {0: 0, 1: size / 10, 8: 2 * size}[loops]


def linked(cells, links, own):
    """Numbers at nodes, coupled by products of neighbours, and by themselves as ``own`` says."""
    mesh = IntervalMesh(cells, 1.0)
    inside = Function(FunctionSpace(mesh, "DG", 0)).assign(1.0)
    inside.dat.data_wo[links] = 0.0
    mark_links(mesh, inside)
    space = FunctionSpace(mesh, "CG", 1)
    u, w, h = Function(space), TestFunction(space), measures.cell_length(mesh)
    u.dat.data_wo[...] = np.sin(np.arange(cells + 1))
    middle = measures.midpoint(mesh)
    # The first is u_A u_B, without squares.
    form = (u * w - h**2 / 4 * u.dx(0) * w.dx(0)) * middle + (own * u - 1) * w * measures.vertex(
        mesh
    )
    return form, u


def test_links_inside_a_chain():
    form, u = linked(13, [4, 7], 3.0)
    matrix, residual = dense(form, u)
    wanted = u.dat.data_ro - np.linalg.solve(matrix, residual)
    iteration = begun(form, u)
    # Linear equations: a second update changes round-off alone.
    for _ in range(2):
        assert iteration.run() == 0
    iteration.end()
    np.testing.assert_allclose(u.dat.data_ro, wanted, atol=1e-13)


def test_a_node_without_a_pivot_is_noticed():
    form, u = linked(2, [1], 0.0)
    iteration = newton_of(form, u, [])
    iteration.begin()
    assert iteration.run() != 0


def test_factors_of_equal_programs():
    """Two solves of one program with other coefficients: each has its own factors."""
    made = []
    for k in (1.0, 50.0):
        mesh = IntervalMesh(20, 1.0)
        u = Function(VectorFunctionSpace(mesh, "CG", 1, dim=6))
        v, (x,) = TestFunction(u.function_space()), SpatialCoordinate(mesh)
        c = Function(FunctionSpace(mesh, "DG", 0)).assign(k)
        form = (c * inner(u.dx(0), v.dx(0)) + inner(u, v) - exp(3 * x) * v[0]) * dx
        made.append(newton_of(form, u, ()))
    one, other = made
    for iteration in made:
        iteration.begin()
        assert iteration.run() == 0
    expected = one.update()
    assert other.run(alone=True) == 0
    one.begin()
    assert one.run(old=True) == 0
    # The same solve again; the factors of the other one would give a tenth of the slopes.
    np.testing.assert_allclose(one.update(), expected, rtol=1e-12)
