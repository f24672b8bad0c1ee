"""The elimination between pieces that links join: its order, and what it does where pivots vanish."""

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, IntervalMesh, TestFunction, assemble, derivative

from fdgeom import measures
from fdgeom.solvers.chain.unit import ChainUnit
from fdgeom.solvers.elimination import eliminated
from fdgeom.solvers.links import mark_links


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
    found = eliminated(pairs, sizes, random.random(size) < 0.5)
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


@pytest.mark.parametrize(
    ("cells", "links", "own"), [(3, [1], 0.0), (13, [4, 7], 3.0)], ids=["no pivots", "pivots"]
)
def test_updates_where_pivots_of_nodes_vanish_and_where_not(cells, links, own):
    form, u = linked(cells, links, own)
    unit = ChainUnit(form, u)
    unit.begin()
    unit.take_unknown()
    matrix = assemble(derivative(form, u), mat_type="aij").petscmat.convert("dense").getDenseArray()
    wanted = u.dat.data_ro - np.linalg.solve(matrix, assemble(form).dat.data_ro)
    for _ in range(2):
        assert unit.linearise()
        unit.update()
    unit.give_unknown()
    # Linear equations: a second update changes round-off alone.
    np.testing.assert_allclose(u.dat.data_ro, wanted, atol=1e-13)


def test_a_singular_matrix_between_pieces_is_noticed():
    form, u = linked(2, [1], 0.0)
    unit = ChainUnit(form, u)
    unit.begin()
    unit.take_unknown()
    assert not unit.linearise()
