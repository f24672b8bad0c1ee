"""The ways of a compiled local solve, each by itself, against NumPy: by elimination that is written out, by
the inverse at zero (the chord method), by elimination in the order of the rows, by the same with rows of
prescribed components, and by elimination that exchanges rows.
"""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    IntervalMesh,
    TestFunction,
    VectorFunctionSpace,
    as_vector,
    cos,
    inner,
    sin,
)

from fdgeom import measures
from fdgeom.compile import CompiledExecutor, unit
from fdgeom.compile.layout import Layout
from fdgeom.compile.map_layout import MapLayout
from fdgeom.operations import Map, Prescribed, Solve

#: No multiple of any number of lanes.
CELLS, SIZE, STEP = 36, 3, 0.3
#: The chord method is for steps that change little: its updates shrink at the rate of Δt.
SHORT = 2e-3
#: How each way is called for a block of places.
CALLS = {
    "written out": "all_le(square<Op::n>(R), 1e-22 * before) ? 1 : -1",
    "chord": "newton<Op, chord>(X, F, G, k, call, w, b, nullptr, u)",
    "plain": "newton<Op, plain>(X, F, G, k, call, w, b, nullptr, u)",
    "prescribed": "prescribed<Op>(X, F, G, k, call, right)",
    "pivoting": "robust<Op>(X, F, G, k, call, right, report)",
}
COUPLED = np.array([[0.4, -1.0, 0.2], [0.7, 0.3, -0.5], [-0.6, 0.1, 0.9]])
FRACTIONS = (1.0, 0.5, -0.7, 0.01)


def only(monkeypatch, *ways):
    """Let all other ways fail."""
    header = unit.header
    text = header("local.hpp")
    for way, call in CALLS.items():
        assert text.count(call) == 1
        text = text if way in ways else text.replace(call, "Reason::too_many")
    monkeypatch.setattr(unit, "header", lambda name: text if name == "local.hpp" else header(name))


class Nodal:
    """u - f - dt g(u) = 0 at each node; then f becomes u. ``rows`` says in which order."""

    def __init__(self, kind, rows=(0, 1, 2)):
        self.kind, self.rows = kind, list(rows)
        self.mesh = IntervalMesh(CELLS, 1.7)
        self.space = space = VectorFunctionSpace(self.mesh, "CG", 1, dim=SIZE)
        self.u, self.f, self.k = Function(space), Function(space), Function(space)
        rng = np.random.default_rng(5)
        for function, size in ((self.u, 0.3), (self.f, 0.3), (self.k, 2.0)):
            function.dat.data_wo[...] = rng.uniform(-size, size, (CELLS + 1, SIZE))
        self.dt = Constant(0.0)
        residual = self.u - self.f - self.dt * self.slope()
        residual = as_vector([residual[k] for k in self.rows])
        self.residual = inner(residual, TestFunction(space)) * measures.vertex(self.mesh)

    def slope(self):
        """g: of first degree, of the unknown alone, or with a coefficient that differs at nodes."""
        u, k = self.u, self.k
        if self.kind == "linear":
            return Constant(COUPLED) * u
        if self.kind == "shared":
            return as_vector([u[1] * u[2], sin(u[0]) - u[2] ** 2, u[0] * u[1] + 0.5 * u[2]])
        return as_vector([k[0] * u[1] * u[2], sin(u[0]) - k[1] * u[2], u[0] ** 3 + k[2] * u[1]])

    def at(self, u, k):
        """g and its Jacobian, of numbers."""
        x, y, z = u
        if self.kind == "linear":
            return COUPLED @ u, COUPLED
        if self.kind == "shared":
            value = [y * z, np.sin(x) - z**2, x * y + 0.5 * z]
            slope = [[0, z, y], [np.cos(x), 0, -2 * z], [y, x, 0.5]]
        else:
            value = [k[0] * y * z, np.sin(x) - k[1] * z, x**3 + k[2] * y]
            slope = [[0, k[0] * z, k[0] * y], [np.cos(x), 0, -k[1]], [3 * x**2, k[2], 0]]
        return np.array(value), np.array(slope)

    def solved(self, f, dt, free=None, start=None):
        """By Newton's method in NumPy, node by node; components that are not free stay."""
        found = f.copy() if start is None else start.copy()
        free = np.ones_like(f, dtype=bool) if free is None else free
        for u, known, k, own in zip(found, f, self.k.dat.data_ro, free, strict=True):
            for _ in range(20):
                value, slope = self.at(u, k)
                gap, matrix = u - known - dt * value, np.eye(SIZE) - dt * slope
                u[own] -= np.linalg.solve(matrix[np.ix_(own, own)], gap[own])
        return found


def run(case, fractions, layout=Layout, step=STEP, **options):
    """Solves by fractions of the step, each followed by f := u; the failure, and the statistics."""
    solve = Solve(work=case.residual, unknown=case.u, dt=case.dt, name="u", **options)
    each = [(solve.scaled(fraction), Map(values={case.f: case.u})) for fraction in fractions]
    executor = CompiledExecutor([op for pair in each for op in pair], layout=layout(case.mesh))
    _, failure = executor.advance(1, 0.0, step)
    return failure, executor.stats()


LAYOUTS = pytest.mark.parametrize("layout", [Layout, MapLayout])


@LAYOUTS
@pytest.mark.parametrize(
    ("way", "kind"),
    [
        ("written out", "linear"),
        ("chord", "shared"),
        ("plain", "shared"),
        ("plain", "nodal"),
        ("pivoting", "linear"),
        ("pivoting", "shared"),
        ("pivoting", "nodal"),
    ],
)
def test_each_way_by_itself(way, kind, layout, monkeypatch):
    """Solves by several fractions of one step, one after another."""
    only(monkeypatch, way)
    case, step = Nodal(kind), SHORT if way == "chord" else STEP
    expected = case.f.dat.data_ro.copy()
    for fraction in FRACTIONS:
        expected = case.solved(expected, fraction * step)
    failure, stats = run(case, FRACTIONS, layout, step)
    assert failure is None
    assert stats["solves"] == len(FRACTIONS)
    # Newton's method takes four or five updates of numbers of size one; the chord method some more.
    assert stats["newton_iterations"] <= 10 * len(FRACTIONS)
    # Round-off of four solves whose matrices have condition numbers of at most three.
    np.testing.assert_allclose(case.u.dat.data_ro, expected, atol=5e-15)


def test_no_way_is_a_failure(monkeypatch):
    """So the ways that are left out above are left out."""
    only(monkeypatch)
    failure, _ = run(Nodal("shared"), (0.5,))
    assert "too many iterations" in str(failure)


@pytest.mark.parametrize("way", ["plain", "pivoting"])
def test_the_chord_is_for_jacobians_that_nodes_share(way, monkeypatch):
    """With a coefficient in the Jacobian it is not tried."""
    only(monkeypatch, "chord")
    assert run(Nodal("nodal"), (0.5,))[0] is not None
    monkeypatch.undo()
    only(monkeypatch, "chord", way)
    assert run(Nodal("nodal"), (0.5,))[0] is None


def test_zero_pivots_need_rows_exchanged(monkeypatch):
    """For dt = 0 the matrix is a permutation; without exchanges its first pivot is zero."""
    rows = (1, 2, 0)
    case = Nodal("nodal", rows)
    expected = case.solved(case.f.dat.data_ro, 0.0)
    only(monkeypatch, "plain")
    assert run(case, (0.0,))[0] is not None
    monkeypatch.undo()
    for ways in (("pivoting",), tuple(CALLS)):
        case = Nodal("nodal", rows)
        only(monkeypatch, *ways)
        assert run(case, (0.0,))[0] is None
        np.testing.assert_allclose(case.u.dat.data_ro, expected, atol=1e-15)
        monkeypatch.undo()


@LAYOUTS
@pytest.mark.parametrize("way", ["prescribed", "pivoting"])
@pytest.mark.parametrize("kind", ["linear", "nodal"])
def test_given_components(kind, way, layout, monkeypatch):
    """The others are solved for with them."""
    only(monkeypatch, "written out", "plain", way)
    case = Nodal(kind)
    given = Function(case.space)
    given.dat.data_wo[...] = np.random.default_rng(8).uniform(-0.3, 0.3, (CELLS + 1, SIZE))
    nodes, components = np.array([0, 7, 7, 36]), np.array([1, 0, 2, 1])
    free = np.ones((CELLS + 1, SIZE), dtype=bool)
    free[nodes, components] = False
    start = np.where(free, case.f.dat.data_ro, given.dat.data_ro)
    expected = case.solved(case.f.dat.data_ro.copy(), 0.5 * STEP, free, start)
    prescribed = [Prescribed(SIZE * nodes + components, given)]
    failure, _ = run(case, (0.5,), layout, prescribed=prescribed)
    assert failure is None
    np.testing.assert_array_equal(case.u.dat.data_ro[~free], start[~free])
    np.testing.assert_allclose(case.u.dat.data_ro, expected, atol=5e-15)


@pytest.mark.parametrize("size", [1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("way", ["plain", "pivoting"])
def test_round_off_ends_the_iteration(way, size, monkeypatch):
    """(1 + dt u)² = (1 + dt f)², over dt: rounding leaves ε/dt of u, and no update makes it less."""
    only(monkeypatch, way)
    case = Nodal("nodal")
    f, squares = case.f.dat.data_ro.copy(), Function(case.space)
    squares.dat.data_wo[...] = (1 + size * f) ** 2
    u, w, dt = case.u, TestFunction(case.space), case.dt
    rows = [((1 + dt * u[k]) ** 2 - squares[k]) / (2 * dt) for k in range(SIZE)]
    case.residual = inner(as_vector(rows), w) * measures.vertex(case.mesh)
    failure, stats = run(case, (size / STEP,))
    assert failure is None
    # A handful of roundings of numbers of size one.
    np.testing.assert_allclose(case.u.dat.data_ro, f, atol=4 * 2.3e-16 / size)
    # Linear but for dt u: two updates, and some until the residual of no lane is halved.
    assert stats["newton_iterations"] <= 12


#: Equations of each component, and where Newton's method begins.
ASTRAY = {
    # Without a solution: the first update, of size 10¹⁰, leads to smaller residuals, or to larger ones.
    "from a maximum": (lambda u: cos(u) + 1.5, 1e-10),
    "from a minimum": (lambda u: cos(u) + 1.5, np.pi + 1e-10),
    "from a pole": (lambda u: 1 / u - 1, 0.0),
    "without a slope": (lambda u: u**2 - 1, 0.0),
}


@pytest.mark.parametrize("ways", [("plain",), ("prescribed",), ("pivoting",), tuple(CALLS)])
@pytest.mark.parametrize("name", ASTRAY)
def test_a_small_update_is_no_solution(name, ways, monkeypatch):
    """Beside an unknown that has diverged; nor is one that is infinite, or a residual that is."""
    case, (row, start) = Nodal("nodal"), ASTRAY[name]
    rows = as_vector([row(case.u[k]) for k in range(SIZE)])
    case.residual = inner(rows, TestFunction(case.space)) * measures.vertex(case.mesh)
    case.f.assign(start)
    before = case.u.dat.data_ro.copy()
    only(monkeypatch, *ways)
    # The second component of each node.
    given = [Prescribed(SIZE * np.arange(CELLS + 1) + 1)] if ways == ("prescribed",) else []
    failure, _ = run(case, (1.0,), guess=case.f, prescribed=given)
    assert failure is not None
    np.testing.assert_array_equal(case.u.dat.data_ro, before)
