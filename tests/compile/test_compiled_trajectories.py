"""Compiled trajectories: adjoints of lists against differences, NumPy and the PETSc executor."""

from __future__ import annotations

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    TestFunction,
    UnitIntervalMesh,
    VectorFunctionSpace,
    cos,
    dx,
    inner,
    sin,
)
from step_lists import LOCAL, lists
from verification.beams import uneven_mesh
from ways import StepsThroughPETSc, take_steps

import fdgeom as fg
from fdgeom import execution
from fdgeom.compile import CompiledExecutor, CompiledTrajectory
from fdgeom.errors import SolveFailed
from fdgeom.operations import Copy, Map, Prescribed, Solve, Tangents, linearise

LUMPED = {"quadrature_rule": "KMV", "quadrature_degree": 1}


def spread(functions, seed):
    """Random values for some Functions."""
    rng = np.random.default_rng(seed)
    for f in functions:
        f.dat.data_wo[...] = rng.uniform(-1, 1, f.dat.data_ro.shape)


def adjoint(kind, step, seeds, wanted, start, pieces=(7,), dt=0.01, memory=None):
    """The cotangents of the wanted Functions after some steps, taken in pieces."""
    for f, values in start.items():
        f.dat.data_wo[...] = values
    trajectory = kind(step, seeds, wanted)
    t = 0.3
    if kind is CompiledTrajectory:
        trajectory.begin(sum(pieces), memory)
    for steps in pieces:
        if kind is CompiledTrajectory:
            assert trajectory.take(steps, t, dt) == (steps, None)
        else:
            trajectory.advance(steps, t, dt)
        t += steps * dt
    spread([trajectory.cotangents[f] for f in seeds], 11)
    for f in wanted:
        if f not in seeds:
            trajectory.cotangents[f].assign(0.0)
    trajectory.pull()
    return [np.array(trajectory.cotangents[f].dat.data_ro) for f in wanted]


def same(ours, theirs, tolerance=1e-11):
    for a, b in zip(ours, theirs, strict=True):
        assert np.abs(a - b).max() < tolerance * max(1.0, np.abs(b).max())


@pytest.mark.parametrize("pieces", [(7,), (3, 1, 3)])
@pytest.mark.parametrize("name", LOCAL)
def test_adjoints_of_steps_equal_those_through_petsc(name, pieces):
    (system, step, dt), _ = lists(name)
    state = list(
        {
            f: None
            for f in system.functions().values()
            if any(f is g for op in step for g in op.writes)
        }
    )
    start = {f: np.array(f.dat.data_ro) for f in state}
    found = [
        adjoint(kind, step, [state[-1]], state, start, pieces, dt)
        for kind in (CompiledTrajectory, StepsThroughPETSc)
    ]
    same(*found)
    assert any(np.abs(values).max() > 1e-3 for values in found[0])


def oscillators(cells=19):
    """Implicit midpoint of nonlinear oscillators at nodes with springs between, one held; a stiffness."""
    mesh = uneven_mesh(cells)
    V, E = FunctionSpace(mesh, "CG", 1), FunctionSpace(mesh, "DG", 0)
    q, p, u, given, force = (Function(V, name=n) for n in ("q", "p", "u", "given", "force"))
    k, dt, time, w = Function(E, name="stiffness"), Constant(0.0), Constant(0.0), TestFunction(V)
    spread((q, p, given), 5)
    k.dat.data_wo[...] = np.random.default_rng(6).uniform(1, 2, cells)
    mean = (q + u) / 2
    work = (u - q - dt * p + dt**2 / 2 * (sin(mean) - force)) * w * dx(metadata=LUMPED)
    work += dt**2 / 2 * k * inner(q.dx(0), w.dx(0)) * dx
    timed = {"dt": dt, "clock": time, "at": 0.5}
    step = [
        Map(values={force: cos(3 * time) * p}, **timed),
        Solve(
            work=work, unknown=u, guess=q, prescribed=[Prescribed(np.array([4, 11]), given)],
            name="u", **timed,
        ),
        Map(values={p: 2 * (u - q) / dt - p}, **timed),
        Copy(source=u, target=q),
    ]  # fmt: skip
    return (q, p, k, given), step


def test_adjoints_of_prescribed_values_and_coefficients():
    """Against central differences of whole runs."""
    functions, step = oscillators()
    start = {f: np.array(f.dat.data_ro) for f in functions}
    q, p, *_ = functions
    found = adjoint(CompiledTrajectory, step, [q, p], functions, start)
    weights = [Function(f.function_space()) for f in (q, p)]
    spread(weights, 11)
    rng = np.random.default_rng(8)
    executor = CompiledExecutor(step)
    for k, f in enumerate(functions):
        direction = rng.uniform(-1, 1, f.dat.data_ro.shape)

        def value(shift, f=f, direction=direction):
            for g, values in start.items():
                g.dat.data_wo[...] = values
            f.dat.data_wo[...] += shift * direction
            assert executor.advance(7, 0.3, 0.01) == (7, None)
            return sum(
                np.sum(w.dat.data_ro * g.dat.data_ro) for w, g in zip(weights, (q, p), strict=True)
            )

        difference = (value(1e-5) - value(-1e-5)) / 2e-5
        assert abs(np.sum(found[k] * direction) - difference) < 1e-8 * max(1.0, abs(difference)), (
            f.name()
        )


def test_rows_past_the_caches_and_several_steps_at_a_time():
    """A long chain: the same numbers as through PETSc, where rows have many megabytes."""
    functions, step = oscillators(40_000)
    start = {f: np.array(f.dat.data_ro) for f in functions}
    q = functions[0]
    found = [
        adjoint(kind, step, [q], functions, start, (5, 4), 1e-6)
        for kind in (CompiledTrajectory, StepsThroughPETSc)
    ]
    same(*found, tolerance=1e-9)


def test_second_derivatives():
    """The adjoint of steps with their tangents: Hessian times vector against differences of gradients."""
    functions, step = oscillators(12)
    start = {f: np.array(f.dat.data_ro) for f in functions}
    q = functions[0]
    written = [f for op in step for f in op.writes]
    tangents = Tangents([*functions, *written])
    both = linearise(step, tangents)
    dots = {f: tangents[f] for f in (*functions, *written)}
    direction = np.random.default_rng(9).uniform(-1, 1, q.dat.data_ro.shape)
    weights = np.random.default_rng(10).uniform(-1, 1, q.dat.data_ro.shape)

    def put(shift=0.0):
        for f, values in start.items():
            f.dat.data_wo[...] = values
        q.dat.data_wo[...] += shift * direction
        for dot in dots.values():
            dot.assign(0.0)
        dots[q].dat.data_wo[...] = direction

    def gradient(shift):
        put(shift)
        trajectory = CompiledTrajectory(step, [q], [q])
        take_steps(trajectory, 7, 0.3, 0.05)
        # The functional Σ weight q³.
        trajectory.cotangents[q].dat.data_wo[...] = 3 * weights * q.dat.data_ro**2
        trajectory.pull()
        return np.array(trajectory.cotangents[q].dat.data_ro)

    put()
    trajectory = CompiledTrajectory(both, [q, dots[q]], [q, dots[q]])
    take_steps(trajectory, 7, 0.3, 0.05)
    bars = trajectory.cotangents
    bars[q].dat.data_wo[...] = 6 * weights * q.dat.data_ro * dots[q].dat.data_ro
    bars[dots[q]].dat.data_wo[...] = 3 * weights * q.dat.data_ro**2
    trajectory.pull()
    difference = (gradient(1e-5) - gradient(-1e-5)) / 2e-5
    assert np.abs(bars[q].dat.data_ro - difference).max() < 1e-7 * np.abs(difference).max()
    put()
    assert (
        np.abs(bars[dots[q]].dat.data_ro - gradient(0.0)).max() < 1e-12 * np.abs(difference).max()
    )


def test_strides_give_the_same():
    """If the memory is small, most steps are repeated, with times that round-off changes."""
    functions, step = oscillators(20)
    spread(functions, 5)
    start = {f: np.array(f.dat.data_ro) for f in functions}
    wanted = functions[:2]
    found = [
        adjoint(CompiledTrajectory, step, wanted, functions, start, (9, 30, 1, 11), memory=memory)
        for memory in (None, 1)
    ]
    same(*found, tolerance=1e-11)


def test_derivatives_by_numbers():
    """By numbers of Real spaces, in terms of nodes and of cells and in assignments: against differences."""
    mesh = uneven_mesh(13)
    V, T = FunctionSpace(mesh, "CG", 1), VectorFunctionSpace(mesh, "R", 0, dim=2)
    q, p, u = (Function(V, name=n) for n in "qpu")
    k, dt, w = Function(T, name="k"), Constant(0.0), TestFunction(V)
    work = (u - q - dt * p + dt**2 / 2 * k[0] * sin(u)) * w * dx(metadata=LUMPED)
    work += dt**2 / 2 * k[1] * inner(q.dx(0), w.dx(0)) * dx
    step = [
        Solve(work=work, unknown=u, guess=q, dt=dt, name="u"),
        Map(values={p: 2 * (u - q) / dt - p * (1 + k[0] * k[1] / 50)}, dt=dt),
        Copy(source=u, target=q),
    ]

    def run(by=(0.0, 0.0)):
        spread((q, p), 5)
        k.dat.data_wo[...] = np.add((0.7, 0.3), by)
        trajectory = CompiledTrajectory(step, [q], [k])
        take_steps(trajectory, 9, 0.0, 0.1)
        return trajectory, np.array(q.dat.data_ro)

    trajectory, _ = run()
    spread([trajectory.cotangents[q]], 7)
    weights = np.array(trajectory.cotangents[q].dat.data_ro)
    trajectory.cotangents[k].assign(0.0)
    trajectory.pull()
    found = trajectory.cotangents[k].dat.data_ro.ravel()
    for j, by in enumerate(np.eye(2) * 1e-5):
        difference = weights @ (run(by)[1] - run(-by)[1]) / 2e-5
        assert abs(found[j] - difference) < 1e-8 * np.abs(found).max()  # h² and round-off over h


def test_steps_of_another_executor_are_stored():
    """Steps through PETSc between compiled ones, with the adjoint of all."""
    functions, step = oscillators(20)
    spread(functions, 6)
    start = {f: np.array(f.dat.data_ro) for f in functions}
    expected = adjoint(CompiledTrajectory, step, functions[:2], functions, start, (8,))
    other = execution.Executor(step)
    for memory in (None, 1):
        for f, values in start.items():
            f.dat.data_wo[...] = values
        trajectory = CompiledTrajectory(step, functions[:2], functions)
        trajectory.begin(8, memory)
        trajectory.take(3, 0.3, 0.01)
        trajectory.take_through(other, 0.33, 0.01)
        trajectory.take(4, 0.34, 0.01)
        spread([trajectory.cotangents[f] for f in functions[:2]], 11)
        for f in functions[2:]:
            trajectory.cotangents[f].assign(0.0)
        trajectory.pull()
        same([trajectory.cotangents[f].dat.data_ro for f in functions], expected, 1e-12)


def test_a_failed_step_stores_nothing():
    functions, step = oscillators()
    q, p, *_ = functions
    trajectory = CompiledTrajectory(step, [q], [q])
    before = np.array(q.dat.data_ro)
    p.dat.data_wo[3] = np.nan
    with pytest.raises(SolveFailed, match="not finite at the node at"):
        take_steps(trajectory, 5, 0.0, 0.01)
    assert np.array_equal(q.dat.data_ro, before)


def test_products_of_jacobians():
    """Symplectic Euler of a pendulum, against NumPy."""
    space = FunctionSpace(fg.copies(11), "DG", 0)
    q, p, dt = Function(space), Function(space), Constant(0.0)
    spread((q, p), 2)
    step = [Map(values={p: p - dt * sin(q)}, dt=dt), Map(values={q: q + dt * p}, dt=dt)]
    x, y, jacobian = (
        np.array(q.dat.data_ro),
        np.array(p.dat.data_ro),
        np.tile(np.eye(2), (11, 1, 1)),
    )
    for _ in range(30):
        J = np.zeros((11, 2, 2))
        J[:, 1, 0], J[:, 1, 1] = -0.1 * np.cos(x), 1.0
        J[:, 0, 0], J[:, 0, 1] = 1 - 0.01 * np.cos(x), 0.1
        y = y - 0.1 * np.sin(x)
        x, jacobian = x + 0.1 * y, J @ jacobian
    trajectory = CompiledTrajectory(step, [q], [q, p])
    take_steps(trajectory, 30, 0.0, 0.1)
    assert np.abs(q.dat.data_ro - x).max() < 1e-13
    trajectory.cotangents[q].assign(1.0)
    trajectory.pull()
    found = np.array([trajectory.cotangents[f].dat.data_ro for f in (q, p)]).T
    assert np.abs(found - jacobian[:, 0]).max() < 1e-13


def test_copied_values_that_an_adjoint_reads():
    """q⁰ is copied before q changes, and p¹ reads the copy: the cotangent is that of differences."""
    V = FunctionSpace(UnitIntervalMesh(12), "CG", 1)
    q, p, old = (Function(V, name=name) for name in ("q", "p", "old"))
    dt, start = 0.1, np.linspace(0.5, 1.5, 13)
    step = [
        Copy(source=q, target=old),
        fg.Map(values={q: q + dt * p * q}),
        fg.Map(values={p: p - dt * old**2}),
    ]

    def run(values):
        q.dat.data_wo[...], p.dat.data_wo[...] = values, 0.3
        trajectory = CompiledTrajectory(step, [p], [q])
        take_steps(trajectory, 5, 0.0, dt)
        return trajectory, p.dat.data_ro.copy()

    trajectory, _ = run(start)
    trajectory.cotangents[p].assign(1.0)
    trajectory.pull()
    difference = (run(start + 1e-5)[1] - run(start - 1e-5)[1]) / 2e-5
    # Every node by itself; central differences of quadratic terms.
    assert trajectory.cotangents[q].dat.data_ro == pytest.approx(difference, rel=1e-8)
    a, b = start.copy(), np.full(13, 0.3)
    for _ in range(5):
        a, b = a + dt * b * a, b - dt * a**2
    assert run(start)[1] == pytest.approx(b, rel=1e-14)
