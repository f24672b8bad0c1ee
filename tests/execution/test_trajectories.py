"""Values and derivatives of lists of operations against NumPy, differences and one another."""

from __future__ import annotations

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    MixedFunctionSpace,
    TestFunction,
    TestFunctions,
    cos,
    dx,
    sin,
    split,
)
from ways import PETScExecutor, StepsThroughPETSc

import fdgeom as fg
from fdgeom.compile import CompiledTrajectory
from fdgeom.execution import Trajectory
from fdgeom.operations import Check, Flow, Map, Prescribed, Solve, Tangents, flattened, linearise

STEPS, DT = 7, 0.05


def values(*functions):
    return [np.array(f.dat.data_ro) for f in functions]


def put(functions, numbers):
    for f, x in zip(functions, numbers, strict=True):
        f.dat.data_wo[...] = x


def run(operations, steps=STEPS, dt=DT, t=0.0):
    done, failure = PETScExecutor(operations).advance(steps, t, dt)
    assert done == steps, failure


def pendulum():
    """Symplectic Euler of the pendulum with a mass, on three copies."""
    space = FunctionSpace(fg.copies(3), "DG", 0)
    q, p, mass = (Function(space, name=name) for name in ("q", "p", "mass"))
    put((q, p, mass), ([0.3, 1.0, -2.0], [0.1, 0.0, 0.5], [1.0, 2.0, 0.5]))
    dt = Constant(0.0)
    step = [Map(values={p: p - dt * sin(q)}, dt=dt), Map(values={q: q + dt * p / mass}, dt=dt)]
    return (q, p, mass), step


def test_maps_are_the_scheme():
    """Values and derivatives of symplectic Euler against the product of Jacobians in NumPy."""
    (q, p, mass), step = pendulum()
    (x, y, m), jacobian = values(q, p, mass), np.tile(np.eye(3), (3, 1, 1))
    for _ in range(STEPS):
        # Rows and columns: q, p, mass.
        J = np.zeros((3, 3, 3))
        new = y - DT * np.sin(x)
        J[:, 1, 0], J[:, 1, 1], J[:, 2, 2] = -DT * np.cos(x), 1.0, 1.0
        J[:, 0, 0], J[:, 0, 1] = 1 - DT**2 * np.cos(x) / m, DT / m
        J[:, 0, 2] = -DT * new / m**2
        x, y, jacobian = x + DT * new / m, new, J @ jacobian
    trajectory = StepsThroughPETSc(step, [q], [q, p, mass])
    trajectory.advance(STEPS, 0.0, DT)
    assert np.abs(np.array(values(q, p)) - [x, y]).max() < 1e-14
    bars = trajectory.cotangents
    bars[q].assign(1.0)
    trajectory.pull()
    found = np.array(values(*(bars[f] for f in (q, p, mass)))).T
    assert np.abs(found - jacobian[:, 0]).max() < 1e-14


def wave(cells=6):
    """Implicit midpoint of a nonlinear wave with a moved end, a stiffness field and a number."""
    mesh = IntervalMesh(cells, 1.0)
    space, field = FunctionSpace(mesh, "CG", 1), FunctionSpace(mesh, "DG", 0)
    q, p, new, force, held = (Function(space, name=n) for n in ("q", "p", "new", "force", "held"))
    stiffness = Function(field, name="stiffness")
    number = Function(FunctionSpace(mesh, "R", 0), name="number").assign(0.7)
    rng = np.random.default_rng(3)
    put((q, p, held), rng.uniform(-0.5, 0.5, (3, cells + 1)))
    put((stiffness,), [rng.uniform(1, 2, cells)])
    dt, clock, w = Constant(0.0), Constant(0.0), TestFunction(space)
    middle, rate = (q + new) / 2, (new - q) / dt
    residual = (2 / dt) * (rate - p) * w * dx + stiffness * middle.dx(0) * w.dx(0) * dx
    residual += number * middle**3 * w * dx - force * w * dx
    dofs = space.boundary_nodes(1)
    timed = {"dt": dt, "clock": clock, "at": 0.5}
    step = [
        Map(values={force: q * sin(clock)}, **timed),
        Solve(
            work=residual,
            unknown=new,
            guess=q,
            prescribed=[Prescribed(dofs, held)],
            name="wave",
            **timed,
        ),
        Map(values={p: 2 * (new - q) / dt - p, q: new}, **timed),
    ]
    return (q, p, stiffness, number, held), step


def mixed_wave():
    """The same wave, linear, by one mixed unknown."""
    mesh = IntervalMesh(5, 1.0)
    space, field = FunctionSpace(mesh, "CG", 1), FunctionSpace(mesh, "DG", 0)
    q, p, stiffness = Function(space, name="q"), Function(space, name="p"), Function(field)
    rng = np.random.default_rng(4)
    put((q, p), rng.uniform(-0.5, 0.5, (2, 6)))
    put((stiffness,), [rng.uniform(1, 2, 5)])
    unknown = Function(MixedFunctionSpace([space, space]), name="middle")
    (x, y), (v, w), dt = split(unknown), TestFunctions(unknown.function_space()), Constant(0.0)
    residual = ((x - q) * v - dt / 2 * y * v + (y - p) * w) * dx
    residual += dt / 2 * (stiffness * x.dx(0) * w.dx(0) + x**3 * w) * dx
    first, second = unknown.subfunctions
    step = [
        Solve(work=residual, unknown=unknown, name="middle", dt=dt),
        Map(values={q: 2 * first - q, p: 2 * second - p}, dt=dt),
    ]
    return (q, p, stiffness), step


def objective(q, p):
    """A functional of the end and its derivatives, in values."""
    (x, y), (a, b) = values(q, p), (np.arange(1.0, q.dat.data_ro.size + 1), 0.3)
    return a @ x**2 + b * np.sum(y**3), (2 * a * x, 3 * b * y**2)


@pytest.mark.parametrize("build", [wave, mixed_wave])
def test_cotangents_are_the_slopes_of_differences(build):
    """By all entries of the start, of a field, of a number and of prescribed values.

    Central differences with 1e-5: the error of the third derivative is below 1e-8 here.
    """
    controls, step = build()
    q, p = controls[:2]
    start = values(*controls)

    def value(shifted, index, shift):
        put(controls, start)
        shifted.dat.data_wo.reshape(-1)[index] += shift
        run(step)
        return objective(q, p)[0]

    trajectory = StepsThroughPETSc(step, [q, p], controls)
    trajectory.advance(STEPS, 0.0, DT)
    for f, slope in zip((q, p), objective(q, p)[1], strict=True):
        trajectory.cotangents[f].dat.data_wo[...] = slope
    trajectory.pull()
    size = max(np.abs(trajectory.cotangents[f].dat.data_ro).max() for f in controls)
    for f in controls:
        bar = trajectory.cotangents[f].dat.data_ro.reshape(-1)
        for k in range(bar.size):
            difference = (value(f, k, 1e-5) - value(f, k, -1e-5)) / 2e-5
            assert abs(bar[k] - difference) < 1e-7 * size, (f.name(), k)
    put(controls, start)


@pytest.mark.parametrize("build", [pendulum, wave, mixed_wave])
def test_tangents_and_cotangents_agree(build):
    """⟨bar, J dot⟩ = ⟨Jᵀ bar, dot⟩ for random vectors, to round-off of the solves."""
    controls, step = build()
    q, p = controls[:2]
    start, rng = values(*controls), np.random.default_rng(5)
    moving = [f for op in step for f in op.writes]
    tangents = Tangents([*controls, *moving])
    directions = [rng.uniform(-1, 1, f.dat.data_ro.shape) for f in controls]
    put([tangents[f] for f in controls], directions)
    run(linearise(step, tangents))
    forward = values(tangents[q], tangents[p])
    put(controls, start)
    trajectory = StepsThroughPETSc(step, [q, p], controls)
    trajectory.advance(STEPS, 0.0, DT)
    seeds = [rng.uniform(-1, 1, x.shape) for x in forward]
    put([trajectory.cotangents[f] for f in (q, p)], seeds)
    trajectory.pull()
    left = sum(np.sum(a * b) for a, b in zip(seeds, forward, strict=True))
    bars = values(*(trajectory.cotangents[f] for f in controls))
    right = sum(np.sum(a * b) for a, b in zip(bars, directions, strict=True))
    assert abs(left - right) < 1e-12 * max(abs(left), 1.0)


@pytest.mark.parametrize("build", [pendulum, mixed_wave])
def test_second_derivatives(build):
    """The adjoint of a step with its tangents: the Hessian is symmetric, and the slope of gradients."""
    controls, step = build()
    q = controls[0]
    start, rng = values(*controls), np.random.default_rng(6)
    first, second = ([rng.uniform(-1, 1, x.shape) for x in start] for _ in range(2))
    moving = [f for op in step for f in op.writes]
    tangents = Tangents([*controls, *moving])
    both = linearise(step, tangents)
    dots = [tangents[f] for f in controls]

    def gradient(shift):
        put(controls, [x + shift * d for x, d in zip(start, first, strict=True)])
        trajectory = StepsThroughPETSc(step, [q], controls)
        trajectory.advance(STEPS, 0.0, DT)
        trajectory.cotangents[q].dat.data_wo[...] = 2 * q.dat.data_ro
        trajectory.pull()
        return values(*(trajectory.cotangents[f] for f in controls))

    def product(direction):
        put(controls, start)
        put(dots, direction)
        trajectory = StepsThroughPETSc(both, [q, tangents[q]], [*controls, *dots])
        trajectory.advance(STEPS, 0.0, DT)
        # d/dz (2 q·q̇), for the functional q·q.
        trajectory.cotangents[q].dat.data_wo[...] = 2 * tangents[q].dat.data_ro
        trajectory.cotangents[tangents[q]].dat.data_wo[...] = 2 * q.dat.data_ro
        trajectory.pull()
        return values(*(trajectory.cotangents[f] for f in controls))

    found, other = product(first), product(second)
    left = sum(np.sum(a * b) for a, b in zip(found, second, strict=True))
    right = sum(np.sum(a * b) for a, b in zip(other, first, strict=True))
    assert abs(left - right) < 1e-12 * abs(left)
    ahead, back = gradient(1e-5), gradient(-1e-5)
    size = max(np.abs(x).max() for x in found)
    for a, b, x in zip(ahead, back, found, strict=True):
        assert np.abs((a - b) / 2e-5 - x).max() < 1e-7 * size


def test_the_clock_of_an_operation():
    """Steps of x' = cos t by the midpoint: its sum of cosines, and flows scaled as in a composition."""
    x = Function(FunctionSpace(fg.copies(1), "DG", 0))
    dt, clock = Constant(0.0), Constant(0.0)
    move = Map(values={x: x + dt * cos(clock)}, dt=dt, clock=clock, at=0.5)
    weights = (0.7, -0.4, 0.7)
    begins = (0.0, 0.7, 0.3)
    flows = [Flow((move,)).scaled(*part) for part in zip(weights, begins, strict=True)]
    run(flattened(flows), t=0.2)
    expected = 0.0
    for t in 0.2 + DT * np.arange(STEPS):
        for begin, w in zip(begins, weights, strict=True):
            expected += w * DT * np.cos(t + DT * (begin + w / 2))
    assert abs(x.dat.data_ro[0] - expected) < 1e-15 * STEPS


def test_a_failed_step_leaves_the_state():
    """A condition fails in the third step: the state is that after two."""
    space = FunctionSpace(fg.copies(2), "DG", 0)
    x, y = Function(space), Function(space)
    put((x,), ([1.0, 2.0],))
    step = [
        Map(values={x: 2 * x, y: x}),
        Check(value=x, limit=10.0, message="x grows out of bounds"),
    ]
    done, failure = PETScExecutor(step).advance(5, 0.0, DT)
    assert done == 2
    assert "x grows" in str(failure)
    assert np.array_equal(values(x, y), [[4.0, 8.0], [2.0, 4.0]])


@pytest.mark.parametrize("kind", ["PETSc", "compiled"])
def test_a_mixed_function_that_is_written_twice(kind):
    """A part of it that is read after the second time alone has no cotangent after the first.

    By hand q' + p' = ¾ (q + p).
    """
    space = FunctionSpace(IntervalMesh(1, 1.0), "DG", 0)
    z, force = Function(space * space), Function(space * space)
    (a, b), (q, p), (f, g) = split(z), z.subfunctions, force.subfunctions

    def kick():
        return fg.Assemble(work=(a + b) ** 2 / 2 * dx, by={z: force})

    operations = [
        kick(), Map(values={p: p - f / 2}), kick(), Map(values={q: q + g}), Map(values={p: p - f / 2})
    ]  # fmt: skip
    if kind == "PETSc":
        made = Trajectory(operations, [q, p], [z])
        made.advance(0.0, 1.0)
    else:
        made = CompiledTrajectory(operations, [q, p], [q, p])
        made.begin(1)
        made.take(1, 0.0, 1.0)
    for x in (q, p):
        made.cotangents[x].assign(1.0)
    made.pull()
    for x in (q, p):
        assert made.cotangents[x].dat.data_ro == pytest.approx(0.75, rel=1e-14)
