"""Compiled operations one by one: against NumPy, and against the PETSc executor."""

from __future__ import annotations

import re

import mpmath
import numpy as np
import pytest
from firedrake import (
    CellVolume,
    Constant,
    Function,
    FunctionSpace,
    SpatialCoordinate,
    TensorFunctionSpace,
    TestFunction,
    UnitIntervalMesh,
    VectorFunctionSpace,
    as_matrix,
    as_vector,
    assemble,
    conditional,
    cos,
    derivative,
    dot,
    ds,
    dx,
    exp,
    gt,
    inner,
    ln,
    lt,
    sin,
    split,
)
from ufl import bessel_J
from verification.beams import uneven_mesh
from ways import PETScExecutor

from fdgeom.compile import CompiledExecutor
from fdgeom.errors import CannotCompile, SolveFailed
from fdgeom.operations import Assemble, Check, Copy, HostOperation, Map, Prescribed, Solve, Tangents

#: Two blocks of lanes and a part of one.
CELLS = 19
MESH = uneven_mesh(CELLS)
AT_NODES, IN_CELLS = FunctionSpace(MESH, "CG", 1), FunctionSpace(MESH, "DG", 0)
LUMPED = {"quadrature_rule": "KMV", "quadrature_degree": 1}


def field(space, seed, name="f", size=1.0):
    """A Function of random values."""
    f = Function(space, name=name)
    f.dat.data_wo[...] = np.random.default_rng(seed).uniform(-size, size, f.dat.data_ro.shape)
    return f


def vectors(family, size):
    return VectorFunctionSpace(MESH, family, int(family == "CG"), dim=size)


def run(operations, steps=1, t=0.0, dt=1.0):
    assert CompiledExecutor(operations).advance(steps, t, dt) == (steps, None)


def same_through_petsc(operations, steps=1, tolerance=1e-13):
    """What the operations write must be the same in compiled code and through PETSc."""
    written = list({id(f): f for op in operations for f in op.writes}.values())
    start = [np.array(f.dat.data_ro) for f in written]
    run(operations, steps)
    ours = [np.array(f.dat.data_ro) for f in written]
    for f, values in zip(written, start, strict=True):
        f.dat.data_wo[...] = values
    assert PETScExecutor(operations).advance(steps, 0.0, 1.0) == (steps, None)
    for f, found in zip(written, ours, strict=True):
        scale = max(1.0, np.abs(f.dat.data_ro).max())
        assert np.abs(found - f.dat.data_ro).max() < tolerance * scale, f.name()
    return ours


# --- maps, copies, checks ------------------------------------------------------------------------
@pytest.mark.parametrize("size", [1e-8, 0.5, 30.0, 1e6, 1e9])
def test_sine_and_cosine_to_a_unit_in_the_last_place(size):
    """Of random numbers and of those nearest to multiples of π/2, against mpmath with 50 digits."""
    mesh = UnitIntervalMesh(500)
    space = FunctionSpace(mesh, "DG", 0)
    x, s, c = Function(space), Function(space), Function(space)
    given = np.random.default_rng(5).uniform(-size, size, 500)
    given[::2] = np.round(given[::2] / (np.pi / 2)) * (np.pi / 2)
    x.dat.data_wo[:] = given
    run([Map(values={s: sin(x), c: cos(x)})])
    with mpmath.workdps(50):
        for found, exact in ((s, mpmath.sin), (c, mpmath.cos)):
            expected = [exact(mpmath.mpf(value)) for value in given]
            off = [
                float(mpmath.mpf(y) - e) for y, e in zip(found.dat.data_ro, expected, strict=True)
            ]
            assert (np.abs(off) <= np.spacing(np.abs(np.array(expected, dtype=float)))).all()


def test_all_values_are_read_before_any_is_written():
    f, g = field(AT_NODES, 1), field(AT_NODES, 2)
    a, b = np.array(f.dat.data_ro), np.array(g.dat.data_ro)
    run([Map(values={f: g, g: f})])
    assert np.array_equal(f.dat.data_ro, b)
    assert np.array_equal(g.dat.data_ro, a)


def test_symbols_of_length_and_time():
    """x' = t, y' = 1 in parts of steps: sums of the times and lengths that each operation sees."""
    x, y, dt, time = field(IN_CELLS, 1), field(IN_CELLS, 2), Constant(9.0), Constant(9.0)
    before = np.array(x.dat.data_ro), np.array(y.dat.data_ro)
    ops = [
        Map(values={x: x + dt * time}, dt=dt, fraction=0.25, clock=time, at=0.5),
        Map(values={y: y + dt}, dt=dt, fraction=0.75),
    ]
    run(ops, steps=3, t=2.0, dt=0.1)
    times = 2.0 + 0.1 * (np.arange(3) + 0.5)
    assert np.allclose(x.dat.data_ro, before[0] + 0.025 * times.sum(), rtol=1e-14)
    assert np.allclose(y.dat.data_ro, before[1] + 3 * 0.075, rtol=1e-14)


def test_constants_and_numbers_are_read_when_steps_begin():
    number, constant = Function(FunctionSpace(MESH, "R", 0)), Constant(2.0)
    f, g = field(AT_NODES, 1), Function(AT_NODES)
    executor = CompiledExecutor([Map(values={g: number * f + constant})])
    for a, b in ((3.0, 5.0), (-1.0, 0.5)):
        number.assign(a)
        constant.assign(b)
        executor.advance(1, 0.0, 1.0)
        assert np.array_equal(g.dat.data_ro, a * f.dat.data_ro + b)


@pytest.mark.parametrize("adds", [True, False])
def test_copies_of_rows(adds):
    source, target = field(vectors("CG", 3), 1), field(vectors("CG", 3), 2)
    rows = np.array([0, 7, 8, 31, 59])
    same_through_petsc([Copy(source=source, target=target, rows=rows, adds=adds)])


def test_copies_of_zeros():
    target = field(vectors("DG", 2), 2)
    run([Copy(source=None, target=target)])
    assert not target.dat.data_ro.any()


def test_a_check_fails_the_step_and_keeps_the_state_before_it():
    f, dt = Function(AT_NODES, name="f"), Constant(0.0)
    f.dat.data_wo[...] = np.linspace(0, 1, CELLS + 1)
    grow = Map(values={f: f + dt}, dt=dt)
    ops = [grow, Check(value=f, limit=4.5, message="it has become too large")]
    for make in (CompiledExecutor, PETScExecutor):
        f.dat.data_wo[...] = np.linspace(0, 1, CELLS + 1)
        done, failure = make(ops).advance(9, 0.0, 1.0)
        assert done == 3
        assert str(failure) == "it has become too large"
        assert np.allclose(f.dat.data_ro, np.linspace(3, 4, CELLS + 1))


def test_checks_in_cells():
    """The slope of a cell, which grows by one a step; the last cell is alone in its block."""
    for cells in (16, 17):
        mesh = uneven_mesh(cells)
        f, g = (Function(FunctionSpace(mesh, "CG", 1)) for _ in range(2))
        g.interpolate(conditional(SpatialCoordinate(mesh)[0] > 1.499, 1.0, 0.0))
        length = Function(FunctionSpace(mesh, "DG", 0)).interpolate(CellVolume(mesh))
        ops = [
            Map(values={f: f + g}),
            Check(value=CellVolume(mesh) * f.dx(0), limit=2.5, message="steep"),
        ]
        for make in (CompiledExecutor, PETScExecutor):
            f.assign(0.0)
            done, failure = make(ops).advance(5, 0.0, 1.0)
            assert (done, str(failure)) == (2, "steep")
            assert np.isclose(np.ptp(f.dat.data_ro), 2.0)
        ops = [Map(values={f: f + g}), Check(value=f.dx(0) * length, limit=2.5, message="steep")]
        f.assign(0.0)
        assert CompiledExecutor(ops).advance(2, 0.0, 1.0) == (2, None)


# --- assemblies ----------------------------------------------------------------------------------
def test_derivatives_of_functionals():
    """By functions of nodes and of cells, at nodes and inside of cells, set and added."""
    q, e, a = field(vectors("CG", 2), 1), field(vectors("DG", 2), 2), field(AT_NODES, 3)
    x = SpatialCoordinate(MESH)[0]
    work = (
        a**2 * dot(q, q) * dx(metadata=LUMPED)
        + exp(a) * inner(q.dx(0), e) * dx(degree=3)
        + x * sin(a) * dot(e, e) * dx(degree=2)
        + 3 * q[0] * a**3 * ds(1)
    )
    by = {f: field(f.function_space(), 4 + k) for k, f in enumerate((q, e, a))}
    same_through_petsc([Assemble(work=work, by=by, adds={by[e], by[a]})])


def test_derivatives_of_sums_over_nodes():
    q, a = field(vectors("CG", 3), 1), field(AT_NODES, 2)
    work = sin(a) * dot(q, q)
    target, other = Function(q.function_space()), field(AT_NODES, 3)
    before = np.array(other.dat.data_ro)
    run([Assemble(work=work, by={q: target, a: other}, adds={other})])
    Q, A = q.dat.data_ro, a.dat.data_ro
    assert np.allclose(target.dat.data_ro, 2 * np.sin(A)[:, None] * Q, rtol=1e-14)
    assert np.allclose(other.dat.data_ro, before + np.cos(A) * (Q * Q).sum(axis=1), rtol=1e-14)


def test_forms_with_a_test_function():
    """Their values are those of Firedrake's assembly, their derivatives those of a Function's."""
    e, q = TestFunction(vectors("DG", 2)), field(vectors("CG", 2), 1)
    form = dot(exp(q[0]) * q.dx(0), e) * dx(degree=3)
    target = field(vectors("DG", 2), 2)
    made = Assemble(work=form, by={e: target})
    same_through_petsc([made])
    run([made])
    assert np.allclose(target.dat.data_ro, assemble(form).dat.data_ro, rtol=1e-13, atol=1e-15)
    rates = Tangents([q, target])
    rates[q].assign(2 * q)
    run(made.jvp(rates))
    exact = assemble(derivative(form, q, rates[q])).dat.data_ro
    assert np.allclose(rates[target].dat.data_ro, exact, rtol=1e-13, atol=1e-14)


def test_weights_follow_a_moved_mesh():
    mesh = uneven_mesh(CELLS)
    f = Function(FunctionSpace(mesh, "CG", 1)).assign(1.0)
    g, h = Function(f.function_space()), Function(f.function_space())
    ops = [
        Assemble(work=f**2 / 2 * dx(domain=mesh, metadata=LUMPED), by={f: g}),
        Assemble(work=f.dx(0) ** 2 / 2 * dx, by={f: h}),
    ]
    executor = CompiledExecutor(ops)
    f.interpolate(SpatialCoordinate(mesh)[0])
    for scale in (1.0, 3.0):
        executor.advance(1, 0.0, 1.0)
        assert np.isclose(g.dat.data_ro.sum(), scale * 1.5**2 / 2 * 1.0, rtol=2e-3)
        assert np.isclose(np.abs(h.dat.data_ro).sum(), 2 / scale, rtol=1e-13)
        mesh.coordinates.dat.data_wo[...] *= 3.0


# --- solves --------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", ["CG", "DG"])
@pytest.mark.parametrize("size", [2, 3, 9])
def test_linear_systems_with_zero_pivots(family, size):
    """Against NumPy; only row exchanges solve these."""
    rng = np.random.default_rng(size)
    A = field(TensorFunctionSpace(MESH, family, int(family == "CG"), shape=(size, size)), 1)
    matrices = rng.uniform(-1, 1, A.dat.data_ro.shape)
    matrices[:, range(size), range(size)] = 0.0
    A.dat.data_wo[...] = matrices
    b, u = field(vectors(family, size), 2), Function(vectors(family, size), name="u")
    w = TestFunction(u.function_space())
    measure = dx(metadata=LUMPED) if family == "CG" else dx(degree=0)
    run([Solve(work=dot(dot(A, u) - b, w) * measure, unknown=u, name="u")])
    expected = np.linalg.solve(matrices, b.dat.data_ro[:, :, None])[:, :, 0]
    assert np.abs(u.dat.data_ro - expected).max() < 1e-11 * np.abs(expected).max()


def test_nonlinear_equations():
    """u³ + u = a + b, with a closed form; b comes from the cells."""
    a, e = field(AT_NODES, 1, size=3.0), field(IN_CELLS, 2)
    u, w = Function(AT_NODES, name="u"), TestFunction(AT_NODES)
    work = (u**3 + u - a) * w * dx(metadata=LUMPED) - e * w * dx
    run([Solve(work=work, unknown=u, guess=a, name="u")])
    x = np.sort(MESH.coordinates.dat.data_ro)
    order = np.argsort(MESH.coordinates.dat.data_ro)
    half = np.diff(x) / 2
    cells = IN_CELLS.cell_node_map().values[:, 0]
    centres = Function(IN_CELLS).interpolate(SpatialCoordinate(MESH)[0]).dat.data_ro
    load = (e.dat.data_ro[np.argsort(centres)]) * half
    assert len(cells) == CELLS
    weight, total = np.zeros(CELLS + 1), np.zeros(CELLS + 1)
    weight[:-1] += half
    weight[1:] += half
    total[:-1] += load
    total[1:] += load
    c = a.dat.data_ro[order] + total / weight
    root = np.sqrt(c**2 / 4 + 1 / 27)
    expected = np.cbrt(c / 2 + root) + np.cbrt(c / 2 - root)
    assert np.abs(u.dat.data_ro[order] - expected).max() < 1e-12 * np.abs(expected).max()


def rotation_step(u, p, dt):
    """The equation of a body that turns, implicit in its momentum."""
    w = TestFunction(u.function_space())
    turned = as_vector([2 * u[1] * u[2], -u[2] * u[0], -u[0] * u[1]])
    return inner(u - p - dt * turned, w) * dx(metadata=LUMPED)


@pytest.mark.parametrize("steps", [1, 30])
def test_prescribed_degrees_of_freedom(steps):
    """At several nodes of one block and alone in another; with values and without."""
    V, dt = vectors("CG", 3), Constant(0.0)
    u, p, given = Function(V, name="u"), field(V, 1), field(V, 2, size=0.2)
    prescribed = [
        Prescribed(np.array([0, 1, 10, 59]), given),
        Prescribed(np.array([4, 30])),
    ]
    ops = [
        Solve(
            work=rotation_step(u, p, dt), unknown=u, guess=p, prescribed=prescribed, dt=dt, name="u"
        ),
        Map(values={p: u}),
    ]
    found, _ = same_through_petsc([op.scaled(0.02) for op in ops], steps, tolerance=1e-12)
    assert np.array_equal(
        found.reshape(-1)[[0, 1, 10, 59]], given.dat.data_ro.reshape(-1)[[0, 1, 10, 59]]
    )
    assert not found.reshape(-1)[[4, 30]].any()


def test_prescribed_parts_of_a_mixed_unknown():
    W = vectors("DG", 2) * IN_CELLS
    u, w = Function(W, name="u"), TestFunction(W)
    a = field(vectors("DG", 2), 1)
    a.dat.data_wo[...] = np.abs(a.dat.data_ro)
    (p, r), (v, s) = split(u), split(w)
    work = (inner(p - a, v) + r * v[0] + (p[0] + p[1] - r**2) * s) * dx(degree=0)
    run([Solve(work=work, unknown=u, prescribed=[Prescribed(np.array([3, 12]), part=1)], name="u")])
    P, R = (part.dat.data_ro for part in u.subfunctions)
    root = (np.sqrt(1 + 4 * a.dat.data_ro.sum(axis=1)) - 1) / 2
    root[[3, 12]] = 0.0
    assert np.abs(R - root).max() < 1e-12
    assert np.abs(P[:, 0] - a.dat.data_ro[:, 0] + R).max() < 1e-14


def test_transposed_solves():
    """The adjoint of a solve, and of its data, against those through PETSc."""
    V, dt = vectors("CG", 3), Constant(0.02)
    u, p, source, target, other = (field(V, k) for k in range(5))
    forward = Solve(work=rotation_step(u, p, dt), unknown=u, name="u")
    zero = [Prescribed(np.array([5, 17]))]
    ops = [
        Solve(
            work=forward.work, unknown=forward.test, test=u, source=source, prescribed=zero,
            name="the adjoint",
        ),
        Assemble(work=-forward.work, by={p: target, u: other}, adds={other}),
    ]  # fmt: skip
    same_through_petsc(ops)


# --- failures ------------------------------------------------------------------------------------
@pytest.mark.parametrize("cells", [CELLS, 5000])
def test_a_failed_solve_leaves_the_state_of_the_last_good_step(cells):
    """u² = c, where c falls below zero at one node after 300 steps."""
    mesh = uneven_mesh(cells)
    V, dt = FunctionSpace(mesh, "CG", 1), Constant(0.0)
    c, u, w = Function(V, name="c"), Function(V, name="u").assign(1.0), TestFunction(V)
    at = cells // 3
    ops = [
        Map(values={c: c - dt}, dt=dt),
        Solve(work=(u**2 - c) * w * dx(metadata=LUMPED), unknown=u, name="the root"),
    ]
    good = 300
    c.assign(2000.0)
    c.dat.data_wo[at] = good + 0.5
    done, failure = CompiledExecutor(ops).advance(1000, 0.0, 1.0)
    assert done == good
    assert isinstance(failure, SolveFailed)
    x = mesh.coordinates.dat.data_ro[at]
    assert str(failure).startswith("the local solve for the root stopped with ")
    assert f"at the node at {x:.6g}, where a residual of" in str(failure)
    assert np.isclose(c.dat.data_ro[at], 0.5)
    assert np.allclose(np.delete(c.dat.data_ro, at), 2000.0 - good)
    assert np.isclose(u.dat.data_ro[at], np.sqrt(0.5), rtol=1e-13)


def test_singular_and_infinite_solves():
    u, a, w = Function(AT_NODES, name="u"), field(AT_NODES, 1), TestFunction(AT_NODES)
    measure = dx(metadata=LUMPED)
    for coefficient, words in ((0.0, "a singular Jacobian"), (np.nan, "not finite")):
        b = Function(AT_NODES).assign(1.0)
        b.dat.data_wo[4] = coefficient
        work = (b * u - a) * w * measure
        done, failure = CompiledExecutor([Solve(work=work, unknown=u, name="u")]).advance(
            2, 0.0, 1.0
        )
        assert done == 0
        assert words in str(failure)
        assert not u.dat.data_ro.any()


def test_iterations_are_counted():
    """One for linear equations; Newton's method of square roots takes as many as in Python."""
    u, a, w = Function(AT_NODES, name="u"), Function(AT_NODES).assign(2.0), TestFunction(AT_NODES)
    ops = [Solve(work=(u**2 - a) * w * dx(metadata=LUMPED), unknown=u, guess=a, name="u")]
    executor = CompiledExecutor(ops)
    executor.advance(4, 0.0, 1.0)
    x, iterations = 2.0, 0
    while abs(x - np.sqrt(2.0)) > 1e-8:  # quadratic: the next update is the last one
        x, iterations = (x + 2.0 / x) / 2, iterations + 1
    assert executor.stats() == {"solves": 4, "newton_iterations": 4 * (iterations + 1)}


def test_a_condition_of_a_coefficient_in_a_solve():
    """Numbers that do not depend on the unknown are computed once, but for conditions."""
    u, f, w = Function(AT_NODES, name="u"), field(AT_NODES, 4), TestFunction(AT_NODES)
    given = np.array(f.dat.data_ro)
    assert (given > 0).any()
    assert (given < 0).any()
    work = (u + conditional(f > 0, u**3, 2 * u) - f) * w * dx(metadata=LUMPED)
    CompiledExecutor([Solve(work=work, unknown=u, guess=f, name="u")]).advance(1, 0.0, 1.0)
    x = u.dat.data_ro
    assert np.abs(x + np.where(given > 0, x**3, 2 * x) - given).max() < 1e-14


# --- refusals ------------------------------------------------------------------------------------
class OnHost(HostOperation):
    reads, writes = (), (Function(AT_NODES),)

    def run(self):
        pass


def refused():
    f, g, e = field(AT_NODES, 1), field(AT_NODES, 2), field(IN_CELLS, 3)
    real = FunctionSpace(MESH, "R", 0)
    other = Function(FunctionSpace(uneven_mesh(3), "CG", 1), name="far")
    n, m = Function(real), Function(real, name="m")
    dt, foreign = Constant(1.0), Constant(1.0)
    own = Map(values={f: g})
    return {
        "has other nodes than": [Map(values={f: g * e})],
        "a number of a Real space, is computed": [own, Map(values={n: 2 * n})],
        "m, a number of a Real space, is computed": [own, Assemble(work=n * f * dx, by={n: m})],
        "lives on another mesh": [own, Map(values={other: 2 * other})],
        "operation of Python": [OnHost()],
        "the length or the time of another one": [
            Map(values={f: foreign * g}, dt=dt),
            Map(values={g: foreign * f}, dt=foreign),
        ],
        "derivatives in space": [Map(values={e: f.dx(0)})],
        "BesselJ": [Map(values={f: bessel_J(1, g)})],
    }


@pytest.mark.parametrize("words", list(refused()))
def test_lists_that_are_not_compiled(words):
    with pytest.raises(CannotCompile, match=re.escape(words)):
        CompiledExecutor(refused()[words])


def test_values_at_neighbouring_nodes_are_read_and_written():
    """Chains cannot do this block by block: all cells give to their nodes before any is written."""
    f = field(AT_NODES, 1)
    work = f.dx(0) ** 2 * dx
    expected = assemble(derivative(work, f)).dat.data_ro.copy()
    CompiledExecutor([Assemble(work=work, by={f: f})]).advance(1, 0.0, 1.0)
    # Round-off of differences over cells of a length of about a tenth.
    np.testing.assert_allclose(f.dat.data_ro, expected, atol=1e-12)


def test_nodes_and_cells_in_one_assignment():
    f, g, d, e = (
        field(space, k) for k, space in enumerate((AT_NODES, AT_NODES, IN_CELLS, IN_CELLS))
    )
    values = [np.array(h.dat.data_ro) for h in (f, g, d, e)]
    run([Map(values={f: 2 * f + g, e: e * d})])
    assert np.array_equal(f.dat.data_ro, 2 * values[0] + values[1])
    assert np.array_equal(e.dat.data_ro, values[3] * values[2])


def test_supported_lists_are_compiled():
    f, g = field(AT_NODES, 1), field(AT_NODES, 2)
    value = conditional(f > 0, cos(f), as_matrix([[1.0]])[0, 0])
    CompiledExecutor([Map(values={g: value})])


@pytest.mark.parametrize(
    ("value", "work", "slope"),
    [
        (0.3, lambda q: conditional(lt(q, 0), (-q) ** 2.5, 0.5 * q**2), 0.3),
        (-0.5, lambda q: conditional(gt(q, 0), q * ln(q), 0), 0.0),
        (0.0, abs, 0.0),
        (-2.0, abs, -1.0),
    ],
    ids=["root beside", "logarithm beside", "abs at its kink", "abs"],
)
def test_slopes_beside_what_is_not_defined(value, work, slope):
    """The case that does not hold has no slope, though its own is no number; that of abs at 0 is 0."""
    q, force = Function(IN_CELLS).assign(value), Function(IN_CELLS)
    run([Assemble(work=work(q) * dx, by={q: force})])
    lengths = assemble(TestFunction(IN_CELLS) * dx).dat.data_ro
    assert force.dat.data_ro == pytest.approx(slope * lengths, rel=1e-14, abs=0)


def test_spaces_whose_values_are_no_degrees_of_freedom():
    u, force = (Function(FunctionSpace(MESH, "DG L2", 0)) for _ in range(2))
    with pytest.raises(CannotCompile, match="DG L2|are compiled for functions of values"):
        run([Assemble(work=0.5 * u**2 * dx, by={u: force})])


def test_a_mesh_that_is_turned_over_is_refused():
    mesh = UnitIntervalMesh(4)
    u, w, force = (Function(FunctionSpace(mesh, "CG", 1)) for _ in range(3))
    u.interpolate(SpatialCoordinate(mesh)[0])
    executor = CompiledExecutor([Assemble(work=u.dx(0) * w * dx, by={w: force})])
    executor.advance(1, 0.0, 1.0)
    assert force.dat.data_ro.sum() == pytest.approx(1.0, rel=1e-14)
    mesh.coordinates.dat.data[:] *= -1
    for _ in range(2):
        with pytest.raises(ValueError, match="turned over"):
            executor.advance(1, 0.0, 1.0)
