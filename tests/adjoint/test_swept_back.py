"""Steps taken back in compiled code: the same as solve by solve, whatever is kept on the way."""

import numpy as np
import pytest
from derivable import CASES, CELLS, Run, beam, clamped
from firedrake import (
    Function,
    FunctionSpace,
    TensorFunctionSpace,
    UnitSquareMesh,
    VectorFunctionSpace,
    assemble,
    cos,
    ds,
    dx,
    grad,
    inner,
    sin,
    split,
)
from test_step_derivatives import Recorded, product, random
from verification.beams import INERTIA, STIFFNESS, set_smooth, uneven_mesh

import fdgeom as fg
from fdgeom.adjoint import Vectors
from fdgeom.adjoint import steps as replayed
from fdgeom.adjoint.block import replay_of
from fdgeom.adjoint.lists import Derivatives
from fdgeom.compile import trajectory

#: Local solves of nodes and of cells, given values, fractions of steps, several parts, a multiplier.
NAMES = (
    "PoissonIntegrator, clamped",
    "Composition, beam",
    "Splitting",
    "GaussLegendre",
    "StormerVerlet, composed",
    "RATTLE",
    "NonholonomicMidpoint",
)
STEPS = 7


def copied(functions, vectors):
    made = Vectors()
    for f in functions:
        made.put(f, vectors.of(f))
    return made


def swept(run, bars, functions):
    """The cotangents before the steps, in compiled code."""
    run.again()
    found, way = copied(functions, bars), replay_of(run.stepper)
    origin = way.origin(())
    with way.at(origin, way.inputs):
        way.pull(origin, STEPS, Derivatives(found), ())
    assert way.why_not_compiled is None
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_same_as_solve_by_solve(name, rng, monkeypatch):
    """And ⟨tangent δ, μ⟩ = ⟨δ, adjoint μ⟩; to the last bit the same with few states kept, and where
    what is kept goes past the caches.
    """
    dt, make, _ = CASES[name]
    run = Run(make(dt))
    moving = list(run.functions.values())
    run.stepper.advance(1)
    run.again()
    bars, tangents = random(moving, rng), random(moving, rng)
    start = copied(moving, tangents)
    steps = Recorded(run.stepper, STEPS)
    for number in range(STEPS):
        steps.push(number, tangents)
    found = swept(run, bars, moving)
    expected, size = product(moving, bars, tangents)
    assert product(moving, found, start)[0] == pytest.approx(expected, abs=1e-12 * size)
    one_by_one = copied(moving, bars)
    for number in reversed(range(STEPS)):
        steps.pull(number, one_by_one)
    for f in moving:
        value, other = found.of(f), one_by_one.of(f)
        value = 0.0 if value is None else value
        other = 0.0 if other is None else other
        # Round-off of some steps.
        assert np.abs(value - other).max() <= 1e-13 * max(1.0, np.abs(other).max()), f.name()
    for what, name, value in ((replayed, "MEMORY", 0), (trajectory, "_PAST", 0)):
        with monkeypatch.context() as changed:
            changed.setattr(what, name, value)
            again = swept(run, bars, moving)
        for f in moving:
            assert np.array_equal(again.of(f), found.of(f))


def test_what_is_done_after_the_last_step():
    """Configuration and velocity become strain and momentum: that is taken back before the steps."""

    def gradient(**options):
        one = clamped()
        stepper = fg.VariationalIntegrator(one, 0.01, **options)
        last = (inner(one.strain, one.strain) + inner(one.momentum, one.momentum)) * dx(degree=2)
        found = fg.gradient(stepper, STEPS, last, [one.position, one.momentum])
        return *found, stepper.replay.why_not_compiled

    value, found, why = gradient()
    assert why is None
    number, expected, _ = gradient(compiled=False)
    assert number == pytest.approx(value, rel=1e-13)
    for one, other in zip(found, expected, strict=True):
        # Round-off of some steps.
        size = np.abs(other.dat.data_ro).max()
        assert np.abs(one.dat.data_ro - other.dat.data_ro).max() <= 1e-12 * size


def test_a_running_functional_of_what_is_made_after_the_steps():
    """The objective at the end does not read it: the derivatives are those of differences."""
    one = clamped()
    stepper = fg.VariationalIntegrator(one, 0.01)
    running = inner(one.strain, one.strain) * dx(degree=2)
    last = inner(one.position, one.position) * dx(degree=2)
    start = one.momentum.copy(deepcopy=True)
    along = Function(start).assign(0.0)
    along.dat.data_wo[...] = np.sin(np.arange(along.dat.data_ro.size)).reshape(
        along.dat.data_ro.shape
    )
    along.dat.data_wo[0] = 0.0

    def gradient(h):
        one.momentum.assign(start + h * along)
        return fg.gradient(stepper, 3, last, [one.momentum], running=running)

    _, (found,) = gradient(0.0)
    h = 1e-4
    difference = (gradient(h)[0] - gradient(-h)[0]) / (2 * h)
    expected = np.vdot(found.dat.data_ro, along.dat.data_ro)
    assert difference == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("compiled", [None, False])
def test_functionals_of_the_time(compiled):
    """They have the times after steps, also where the operations of a step have times of their own."""
    made = set_smooth(fg.Beam(uneven_mesh(CELLS), fg.Section(STIFFNESS, INERTIA, axis=0)))
    stepper = fg.SymmetricPoissonIntegrator(made, 0.01, t0=0.3, compiled=compiled)
    square = inner(made.position, made.position) * dx(degree=2)
    last, running = cos(200 * made.time) * square, sin(300 * made.time) * square
    value, _ = fg.gradient(stepper, STEPS, last, [made.momentum], running=running)
    _, (found,) = fg.gradient(stepper, STEPS, last, [made.momentum])
    _, (of_square,) = fg.gradient(stepper, STEPS, square, [made.momentum])
    expected = 0.0
    for _ in range(STEPS):
        stepper.advance(1)
        expected += 0.01 * np.sin(300 * stepper.t) * assemble(square)
    expected += np.cos(200 * stepper.t) * assemble(square)
    assert value == pytest.approx(expected, rel=1e-12)
    slope = np.cos(200 * stepper.t) * of_square.dat.data_ro
    assert np.abs(found.dat.data_ro - slope).max() <= 1e-12 * np.abs(slope).max()


def test_by_all_entries_of_a_stiffness_with_a_running_objective(monkeypatch):
    """Compiled, and solve by solve."""
    mesh = uneven_mesh(CELLS)
    stiffness = Function(TensorFunctionSpace(mesh, "DG", 0, shape=(6, 6)), name="stiffness")
    stiffness.dat.data_wo[...] = STIFFNESS
    made = set_smooth(fg.Beam(mesh, fg.Section(stiffness, INERTIA, axis=0)))
    running = inner(made.momentum, made.momentum) * dx(degree=2)
    running += inner(stiffness * made.strain, made.strain) * dx(degree=2)
    running += made.position[2] ** 2 * ds(2)
    last = inner(made.position, made.position) * dx(degree=2)
    controls = [made.strain, stiffness]

    def gradient(**options):
        stepper = fg.PoissonIntegrator(made, 0.01, **options)
        value, found = fg.gradient(stepper, STEPS, last, controls, running=running)
        return value, [g.dat.data_ro.copy() for g in found], stepper.replay.why_not_compiled

    value, found, why = gradient()
    assert why is None
    monkeypatch.setattr(replayed, "MEMORY", 0)
    again, kept_less, _ = gradient()
    assert again == value
    for one, other in zip(found, kept_less, strict=True):
        assert np.array_equal(one, other)
    number, expected, why = gradient(compiled=False)
    assert why == "compiled=False asks for PETSc SNES"
    assert number == pytest.approx(value, rel=1e-13)
    for one, other in zip(found, expected, strict=True):
        assert np.abs(one - other).max() <= 1e-13 * np.abs(other).max()


def waves(**options):
    """Nonlinear waves on triangles: u at the nodes, its flux in the cells, with a field of stiffness."""
    mesh = UnitSquareMesh(2, 2)
    state = Function(FunctionSpace(mesh, "CG", 1) * VectorFunctionSpace(mesh, "DG", 0))
    stiffness = Function(FunctionSpace(mesh, "DG", 0), name="stiffness").assign(1.5)
    for k, part in enumerate(state.subfunctions):
        part.dat.data_wo[...] = np.sin(1 + k + np.arange(part.dat.data_ro.size)).reshape(
            part.dat.data_ro.shape
        )
    u, flux = split(state)
    nodes = dx(scheme="KMV", degree=1)

    def bracket(a, b):
        (a1, a2), (b1, b2) = split(a), split(b)
        return (inner(grad(a1), b2) - inner(grad(b1), a2)) * dx

    def pairing(a, b):
        (a1, a2), (b1, b2) = split(a), split(b)
        return a1 * b1 * nodes + inner(a2, b2) * dx

    square = inner(flux, flux)
    system = fg.PoissonSystem(
        state,
        0.5 * u**2 * nodes + (0.5 * stiffness * square + square**2 / 4) * dx,
        bracket,
        pairing,
        names=("u", "flux"),
        gradient=lambda z: (z[0], stiffness * z[1] + inner(z[1], z[1]) * z[1]),
    )
    return fg.PoissonIntegrator(system, 0.01, **options), state, stiffness


def test_on_triangles():
    """Where nodes and cells are found by maps; the state is a mixed Function."""
    found = []
    for options in ({}, {"compiled": False}):
        stepper, state, stiffness = waves(**options)
        u, _ = state.subfunctions
        running = stiffness * u**2 * dx
        value, bars = fg.gradient(
            stepper, STEPS, inner(state, state) * dx, [state, stiffness], running=running
        )
        found.append([value, *(part.dat.data_ro for bar in bars for part in bar.subfunctions)])
        assert (stepper.replay.why_not_compiled is None) == (not options)
    for one, other in zip(*found, strict=True):
        assert np.abs(one - other).max() <= 1e-13 * np.abs(other).max()


def test_blocks_change_nothing():
    """Long chains are taken in blocks of nodes, there and back; what comes out is the same."""
    made = set_smooth(fg.Beam(uneven_mesh(4200), fg.Section(STIFFNESS, INERTIA, axis=0)))
    stepper = fg.PoissonIntegrator(made, 1e-5)
    objective = inner(made.momentum, made.momentum) * dx(degree=2)
    start = [np.array(f.dat.data_ro) for f in made.functions().values()]

    def gradient():
        for f, values in zip(made.functions().values(), start, strict=True):
            f.dat.data_wo[...] = values
        made.consistency.settle()
        value, (found,) = fg.gradient(stepper, STEPS, objective, [made.momentum])
        return value, found.dat.data_ro.copy()

    value, found = gradient()
    ((sweep, _),) = replay_of(stepper)._made["sweeps"].values()
    trajectory = sweep.trajectory
    assert trajectory.forward.blocks
    assert trajectory.reverse.blocks
    trajectory.forward.blocks = trajectory.reverse.blocks = False
    again, one_by_one = gradient()
    assert again == value
    assert np.array_equal(found, one_by_one)


def test_unknowns_at_nodes_and_in_cells():
    """The midpoint rule of a beam couples them; its adjoint is compiled too."""
    found = []
    for options in ({}, {"compiled": False}):
        made = beam()
        stepper = fg.ImplicitMidpoint(made, 0.01, **options)
        objective = inner(made.strain, made.strain) * dx
        _, bars = fg.gradient(stepper, STEPS, objective, [made.strain, made.momentum])
        found.append([bar.dat.data_ro.copy() for bar in bars])
        assert (stepper.replay.why_not_compiled is None) == (not options)
    for one, other in zip(*found, strict=True):
        # Newton's method ends at different values of round-off.
        assert np.abs(one - other).max() <= 1e-11 * np.abs(other).max()


def test_a_running_objective_of_cells_and_nodes():
    """Strain of the last cell times position of the last node."""
    found = []
    for options in ({}, {"compiled": False}):
        made = beam()
        stepper = fg.PoissonIntegrator(made, 0.01, **options)
        running = made.position[2] * made.strain[0] * ds
        value, (bar,) = fg.gradient(
            stepper, STEPS, made.position[2] * ds, [made.momentum], running=running
        )
        found.append((value, bar.dat.data_ro.copy()))
        assert (stepper.replay.why_not_compiled is None) == (not options)
    (value, one), (expected, other) = found
    assert value == pytest.approx(expected, rel=1e-13)
    assert np.abs(one - other).max() <= 1e-13 * np.abs(other).max()
