"""The steps of fdgeom's steppers as lists of operations: equal steps, and derivatives of whole runs."""

from __future__ import annotations

import numpy as np
import pytest
from firedrake import Constant, Function, FunctionSpace, TestFunction, as_vector, cos, dx, sin
from verification import hamiltonian_systems
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.constrained_systems import spherical_pendulum
from verification.rod_cases import SEPARATE, moving
from ways import PETScExecutor, StepsThroughPETSc

import fdgeom as fg
from fdgeom.beams.rod.turns import TurnCheck
from fdgeom.compile import CompiledExecutor as Compiled
from fdgeom.operations import Copy, compilable


def _state(stepper):
    """The Functions of the state that the steps themselves change, not what is set after them."""
    system = stepper.system
    if name := getattr(system, "configuration", None):
        return [*name, system.v]
    return list(system.functions().values())


def bracket_beam():
    return set_smooth(fg.Beam(uneven_mesh(8), SOFT))


CASES = {
    "PoissonIntegrator": (fg.PoissonIntegrator, bracket_beam, 0.01),
    "SymmetricPoissonIntegrator": (fg.SymmetricPoissonIntegrator, bracket_beam, 0.01),
    "StormerVerlet": (fg.StormerVerlet, hamiltonian_systems.pendulum, 0.1),
    "RungeKutta4": (fg.RungeKutta4, hamiltonian_systems.pendulum, 0.1),
    "RATTLE": (fg.RATTLE, spherical_pendulum, 0.05),
    "EnergyMomentum": (fg.EnergyMomentum, lambda: moving(SEPARATE), 0.01),
}


@pytest.mark.parametrize("name", CASES)
def test_lists_take_the_same_steps(name):
    """The same state after ten steps as the stepper, to the round-off of its solves."""
    method, build, dt = CASES[name]
    one, other = build(), build()
    stepper, twin = method(one, dt), method(other, dt)
    stepper.advance(10)
    twin.system.consistency.prepare()
    done, failure = PETScExecutor(twin.operations).advance(10, 0.0, dt)
    assert done == 10, failure
    for f, g in zip(_state(stepper), _state(twin), strict=True):
        ours, theirs = f.dat.data_ro, g.dat.data_ro
        assert np.abs(ours - theirs).max() < 1e-11 * max(1.0, np.abs(theirs).max()), f.name()


@pytest.mark.parametrize("name", [name for name in CASES if name != "SymmetricPoissonIntegrator"])
def test_lists_have_the_derivatives_of_runs(name):
    """A derivative along a random direction against central differences of whole runs."""
    method, build, dt = CASES[name]
    stepper = method(build(), dt)
    stepper.system.consistency.prepare()
    step, state = stepper.operations, _state(stepper)
    start, rng = [np.array(f.dat.data_ro) for f in state], np.random.default_rng(7)
    control, seen = state[0], state[-1]
    direction = rng.uniform(-1, 1, control.dat.data_ro.shape)
    weights = rng.uniform(-1, 1, seen.dat.data_ro.shape)

    def put(shift=0.0):
        for f, values in zip(state, start, strict=True):
            f.dat.data_wo[...] = values
        control.dat.data_wo[...] += shift * direction

    def value(shift):
        put(shift)
        PETScExecutor(step).advance(5, 0.0, dt)
        return np.sum(weights * seen.dat.data_ro)

    put()
    trajectory = StepsThroughPETSc(step, [seen], [control])
    trajectory.advance(5, 0.0, dt)
    trajectory.cotangents[seen].dat.data_wo[...] = weights
    trajectory.pull()
    slope = np.sum(trajectory.cotangents[control].dat.data_ro * direction)
    difference = (value(1e-5) - value(-1e-5)) / 2e-5
    assert abs(slope - difference) < 1e-6 * max(1.0, abs(difference))


def test_checks_of_rotations_as_expressions(rng):
    """The cosines that compiled code checks are those of the quaternions of neighbouring nodes."""
    beam = bracket_beam()
    orientation, old = beam.orientation, Function(beam.orientation.function_space())
    for f in (old, orientation):
        values = rng.uniform(-1, 1, f.dat.data_ro.shape)
        f.dat.data_wo[...] = values / np.linalg.norm(values, axis=1)[:, None]
    expected = beam.turns.changes(old.dat.data_ro)
    cells = Function(FunctionSpace(beam.mesh, "DG", 0))
    (cosine,) = beam.turns.cosines(old)
    found = cells.interpolate(cosine).dat.data_ro[cells.cell_node_map().values[:, 0]]
    assert np.abs(found - expected).max() < 1e-14


def test_cells_that_need_no_cosine(rng):
    """Nodes that turn by less than 45 degrees turn a cell by less than 90; no wider bound would do."""
    beam = bracket_beam()
    new, old = beam.orientation, Function(beam.orientation.function_space())
    (check,) = TurnCheck(turns=beam.turns, before=old).compiled_as
    nodes, cells = (Function(FunctionSpace(beam.mesh, *kind)) for kind in (("CG", 1), ("DG", 0)))
    along = np.argsort(np.argsort(beam.mesh.coordinates.dat.data_ro))
    for degrees in (*rng.uniform(0.0, 45.0, 20), 44.9, 45.1):
        # Neighbours turn about one axis of space, in opposite senses.
        half = np.radians(degrees) / 2 * np.where(along % 2, 1.0, -1.0)[:, None]
        start = _unit(rng.normal(size=(len(along), 4)))
        (w, v), axis = np.split(start, [1], axis=1), _unit(rng.normal(size=(1, 3)))
        real = np.cos(half) * w - np.sin(half) * (v @ axis.T)
        vector = np.cos(half) * v + np.sin(half) * (w * axis + np.cross(axis, v))
        old.dat.data_wo[...], new.dat.data_wo[...] = start, np.hstack([real, vector])
        enough = nodes.interpolate(check.sufficient).dat.data_ro.max() < 0.0
        assert enough == (degrees < 45.0)
        too_far = cells.interpolate(check.value).dat.data_ro.max() > check.limit
        assert too_far != enough


def _unit(rows):
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def test_given_motion_as_expressions():
    """Compiled code gets the given pose of an end by assignments: the same steps."""
    lift = fg.GivenPose(
        position=lambda t: as_vector([0 * t, 0.1 * sin(t) ** 2, 0]),
        orientation=lambda t: as_vector([cos(0.2 * t**2), 0, 0, sin(0.2 * t**2)]),
    )
    one, other = moving(SEPARATE, left=lift), moving(SEPARATE, left=lift)
    stepper, twin = fg.EnergyMomentum(one, 0.02), fg.EnergyMomentum(other, 0.02)
    stepper.advance(7)
    twin.system.consistency.prepare()
    done, failure = Compiled(compilable(twin.operations)).advance(7, 0.0, 0.02)
    assert done == 7, failure
    for f, g in zip(_state(stepper), _state(twin), strict=True):
        ours, theirs = f.dat.data_ro, g.dat.data_ro
        assert np.abs(ours - theirs).max() < 1e-11 * max(1.0, np.abs(theirs).max()), f.name()


class _Kicked(fg.Stepper):
    """p¹ = p⁰ - Δt q⁰, q¹ = q⁰ + Δt p¹, in operations that compiled code knows, or others."""

    moves = fg.HamiltonianSystem
    order = 1

    def flows(self):
        (q, p), dt = self.system.parts, Constant(0.0)
        kick = {name: Function(p.function_space(), name=name) for name in ("new", "slope", "old")}
        new, w = kick["new"], TestFunction(p.function_space())
        slope = [fg.Assemble(work=q**2 / 2 * dx, by={q: kick["slope"]})]
        copied = [Copy(source=p, target=kick["old"])]
        before, force, start = {
            "known": ([], q, p),
            "assembled": (slope, kick["slope"], p),
            "copied": (copied, q, kick["old"]),
        }[self.kind]
        solve = fg.Solve(work=(new - start + dt * force) * w * dx, unknown=new, dt=dt, name="kick")
        after = [fg.Map(values={p: new}), fg.Map(values={q: q + dt * new}, dt=dt)]
        return [fg.Flow([*before, solve, *after])]


@pytest.mark.parametrize("kind", ["known", "assembled", "copied"])
def test_operations_of_an_author(kind):
    """Compiled or not, no operation is lost: the steps of a harmonic oscillator by its matrix."""
    space, dt, steps = FunctionSpace(fg.copies(1), "DG", 0), 0.1, 9
    q, p = Function(space).assign(1.0), Function(space).assign(0.3)
    method = type(kind, (_Kicked,), {"kind": kind})
    stepper = method(fg.HamiltonianSystem(q, p, (p**2 + q**2) / 2 * dx), dt)
    stepper.advance(steps)
    assert stepper.is_compiled, stepper.why_not_compiled
    expected = np.linalg.matrix_power([[1 - dt**2, dt], [-dt, 1.0]], steps) @ [1.0, 0.3]
    found = [f.dat.data_ro[0] for f in (q, p)]
    assert np.abs(found - expected).max() < 1e-14
    _, (by_p,) = fg.gradient(method(stepper.system, dt), steps, q * dx, [p])
    assert by_p.dat.data_ro[0] == pytest.approx(
        np.linalg.matrix_power([[1 - dt**2, dt], [-dt, 1.0]], steps)[0, 1], abs=1e-14
    )
