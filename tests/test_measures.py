"""Do the measures integrate what their names promise, and is everything else refused?"""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    UnitSquareMesh,
    VectorFunctionSpace,
    as_vector,
    assemble,
)
from firedrake.assemble import get_assembler

from fdgeom import measures

# Rule, its arguments, highest degree that is integrated exactly.
RULES = [
    ("vertex", (), 1),
    ("midpoint", (), 1),
    *[("gauss", (n,), 2 * n - 1) for n in (1, 2, 3, 4)],
    *[("gauss_lobatto", (n,), 2 * n - 3) for n in (2, 3, 4, 5)],
]


@pytest.fixture(scope="module")
def mesh():
    """Three cells of different lengths on [0, 1.3]."""
    mesh = IntervalMesh(3, 1.3)
    x = mesh.coordinates.dat.data_wo
    x[...] = x + 0.1 * x * (1.3 - x)
    return mesh


@pytest.mark.parametrize(("name", "points", "degree"), RULES)
def test_exactness(mesh, name, points, degree):
    chosen = Constant(np.zeros(9))
    (s,) = SpatialCoordinate(mesh)
    rule = getattr(measures, name)(mesh, *points)
    integral = get_assembler(sum(chosen[k] * s**k for k in range(9)) * rule)
    errors = []
    for k in range(degree + 2):
        chosen.assign(np.eye(9)[k])
        exact = 1.3 ** (k + 1) / (k + 1)
        errors.append(abs(integral.assemble() / exact - 1))
    # Round-off below the degree; just above it, on three cells, an error that cannot be missed.
    assert max(errors[:-1]) < 1e-14
    assert errors[-1] > 1e-9


def test_points_are_where_they_should_be(mesh):
    """Weights and points of the two rules of the paper: vertex and midpoint."""
    nodes = np.sort(mesh.coordinates.dat.data_ro.ravel())
    f = Function(FunctionSpace(mesh, "CG", 1))
    f.dat.data_wo[...] = np.random.default_rng(1).uniform(-1, 1, 4)
    h, values = np.diff(nodes), f.dat.data_ro[np.argsort(mesh.coordinates.dat.data_ro.ravel())]
    squares = values**2
    vertex = h @ (squares[1:] + squares[:-1]) / 2
    midpoint = h @ (0.5 * (values[1:] + values[:-1])) ** 2
    assert assemble(f**2 * measures.vertex(mesh)) == pytest.approx(vertex, rel=1e-14)
    assert assemble(f**2 * measures.midpoint(mesh)) == pytest.approx(midpoint, rel=1e-14)
    assert assemble(f * measures.ends(mesh)) == pytest.approx(values[0] + values[-1], rel=1e-14)


def test_end_values_and_cell_length(mesh):
    """The two end values of a CG1 field in each cell, exact at the midpoint."""
    f = Function(FunctionSpace(mesh, "CG", 1))
    f.dat.data_wo[...] = np.random.default_rng(2).uniform(-1, 1, 4)
    line = np.argsort(mesh.coordinates.dat.data_ro.ravel())
    nodes, values = mesh.coordinates.dat.data_ro.ravel()[line], f.dat.data_ro[line]
    first, last = measures.end_values(f, mesh)
    cells = VectorFunctionSpace(mesh, "DG", 0, dim=4)
    got = Function(cells).interpolate(
        as_vector([first, last, measures.cell_length(mesh), *SpatialCoordinate(mesh)])
    )
    got = got.dat.data_ro[np.argsort(got.dat.data_ro[:, 3])]
    expected = np.stack([values[:-1], values[1:], np.diff(nodes), (nodes[1:] + nodes[:-1]) / 2])
    assert got == pytest.approx(expected.T, abs=1e-15)


@pytest.mark.parametrize(
    ("rule", "points", "message"),
    [
        (measures.gauss, None, "points must be a positive whole number"),
        (measures.gauss, 0, "points must be a positive whole number"),
        (measures.gauss, 2.0, "points must be a positive whole number"),
        (measures.gauss, True, "points must be a positive whole number"),
        (measures.gauss_lobatto, 1, "points must be a whole number of at least 2"),
    ],
)
def test_bad_points(mesh, rule, points, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        rule(mesh, points)
    assert str(caught.value).startswith(message)


USES = {
    "vertex": measures.vertex,
    "midpoint": measures.midpoint,
    "gauss": lambda m: measures.gauss(m, 2),
    "gauss_lobatto": lambda m: measures.gauss_lobatto(m, 3),
    "ends": measures.ends,
    "cell_length": measures.cell_length,
}


@pytest.mark.parametrize("use", USES)
def test_bad_mesh(use):
    with pytest.raises(ValueError, match=r"^mesh must be an interval mesh.*triangle cells in 2"):
        USES[use](UnitSquareMesh(1, 1))
    with pytest.raises(TypeError, match=r"^mesh must be a Firedrake mesh, not 'mesh'"):
        USES[use]("mesh")


def test_curve_in_space_is_refused():
    from firedrake import Mesh

    line = IntervalMesh(2, 1.0)
    (s,) = SpatialCoordinate(line)
    curve = Function(VectorFunctionSpace(line, "CG", 1, dim=2)).interpolate(as_vector([s, s]))
    with pytest.raises(ValueError, match=r"^mesh must be an interval mesh in one dimension"):
        measures.vertex(Mesh(curve))
