"""Steps that are solved as a chain taken back in compiled code: the same as solve by solve."""

import numpy as np
import pytest
from derivable import CELLS
from firedrake import Function, TensorFunctionSpace, VectorFunctionSpace, assemble, dx, inner
from test_step_derivatives import product, random
from verification.beams import INERTIA, STIFFNESS, set_smooth, uneven_mesh
from ways import check_way

import fdgeom as fg
from fdgeom.adjoint import Vectors, parts
from fdgeom.adjoint import steps as replayed
from fdgeom.adjoint.block import replay_of
from fdgeom.adjoint.lists import Derivatives

STEPS, DT = 7, 0.01


class Case:
    """A clamped beam with a field of stiffness matrices and one of forces, from a smooth start."""

    def __init__(self):
        mesh = uneven_mesh(CELLS)
        self.stiffness = Function(TensorFunctionSpace(mesh, "DG", 0, shape=(6, 6)))
        self.stiffness.dat.data_wo[...] = STIFFNESS
        self.force = Function(VectorFunctionSpace(mesh, "CG", 1, dim=3))
        self.force.dat.data_wo[...] = np.random.default_rng(3).normal(size=(CELLS + 1, 3))
        section = fg.Section(self.stiffness, INERTIA, axis=0)
        loads = [fg.Load(force=self.force)]
        self.beam = beam = set_smooth(fg.Beam(mesh, section, left="clamped", loads=loads))
        beam.momentum.dat.data_wo[beam.velocity.function_space().boundary_nodes(1)] = 0.0
        beam.consistency.prepare()
        self.start = {f: f.dat.data_ro.copy() for f in beam.functions().values()}
        self.controls = [beam.momentum, self.stiffness, self.force]
        self.objective = inner(beam.position, beam.position) * dx(degree=2)
        self.objective += inner(beam.momentum, beam.strain) * dx(degree=2)

    def stepper(self, method=fg.EnergyMomentum, **options):
        """At the start."""
        for f, values in self.start.items():
            f.dat.data_wo[...] = values
        self.beam.consistency.settle()
        return method(self.beam, DT, **options)

    def gradient(self, stepper):
        value, found = fg.gradient(stepper, STEPS, self.objective, self.controls)
        return value, [g.dat.data_ro.copy() for g in found]


@pytest.fixture(scope="module")
def case():
    return Case()


@pytest.fixture(scope="module")
def swept(case):
    """Value and gradient in compiled code."""
    stepper = case.stepper()
    found = case.gradient(stepper)
    assert replay_of(stepper).why_not_compiled is None
    check_way(stepper)
    return found


@pytest.mark.parametrize("method", [fg.EnergyMomentum, fg.GeneralizedAlpha])
def test_the_same_as_solve_by_solve(case, method, rng):
    """That of generalized alpha prepares velocities and accelerations for its equations."""
    plain = case.stepper(method, compiled=False)
    expected, expected_slopes = case.gradient(plain)
    assert replay_of(plain).why_not_compiled == "compiled=False asks for PETSc SNES"
    stepper = case.stepper(method)
    value, found = case.gradient(stepper)
    assert replay_of(stepper).why_not_compiled is None
    check_way(stepper)
    assert value == pytest.approx(expected, rel=1e-12)
    # The two ways end some 2e-15 of the state apart, seven roundings. What that does to derivatives is
    # seen where the run begins 1e-10 away; 1e-14 leaves room for the roundings of other machines.
    stepper = case.stepper(method)
    for f, values in case.start.items():
        f.dat.data_wo[...] = values * (1 + 1e-10 * rng.uniform(-1, 1, values.shape))
    case.beam.consistency.settle()
    _, away = case.gradient(stepper)
    for one, other, moved in zip(expected_slopes, found, away, strict=True):
        assert np.abs(one - other).max() <= 1e-14 / 1e-10 * np.abs(moved - other).max()
        assert np.abs(one - other).max() <= 1e-11 * np.abs(one).max()


def test_few_states_kept(case, swept, monkeypatch):
    """The steps between are taken again to the last bit."""
    monkeypatch.setattr(replayed, "MEMORY", 0)
    value, found = case.gradient(case.stepper())
    assert value == swept[0]
    for one, other in zip(found, swept[1], strict=True):
        assert np.array_equal(one, other)


def test_differences_of_runs(case, swept, rng):
    moved = [rng.normal(size=f.dat.data_ro.shape) for f in case.controls]
    # A held node stays at rest, and stiffness matrices stay symmetric.
    moved[0][case.beam.velocity.function_space().boundary_nodes(1)] = 0.0
    moved[1] = 0.1 * (moved[1] + moved[1].transpose(0, 2, 1))
    fields = {f: f.dat.data_ro.copy() for f in (case.stiffness, case.force)}

    def at(h):
        for f, values in fields.items():
            f.dat.data_wo[...] = values + h * moved[case.controls.index(f)]
        stepper = case.stepper()
        case.beam.momentum.dat.data[...] += h * moved[0]
        stepper.advance(STEPS)
        return assemble(case.objective)

    h = 1e-3
    try:
        found = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    finally:
        for f, values in fields.items():
            f.dat.data_wo[...] = values
    expected = sum(np.vdot(g, d) for g, d in zip(swept[1], moved, strict=True))
    assert found == pytest.approx(expected, rel=1e-7)


def test_pairing_with_tangents(case, rng):
    """⟨tangent δ, μ⟩ = ⟨δ, adjoint μ⟩."""
    stepper = case.stepper()
    way, wanted = replay_of(stepper), case.controls[1:]
    state = [part for f in way.state for part in parts(f)]
    functions = [*state, *wanted]
    origin = way.origin(())
    start, bars = random(functions, rng), random(state, rng)
    tangents, found = Vectors(start), Vectors(bars)
    with way.at(origin, way.inputs):
        way.push(origin, STEPS, tangents, wanted)
    with way.at(origin, way.inputs):
        way.pull(origin, STEPS, Derivatives(found), wanted)
    assert way.why_not_compiled is None
    expected, size = product(state, bars, tangents)
    assert product(functions, found, start)[0] == pytest.approx(expected, abs=1e-12 * size)


def test_what_is_not_compiled_says_why(case):
    """The strain of a beam in configuration form is made from its position after the steps."""
    stepper = case.stepper()
    with replay_of(stepper).at(replay_of(stepper).origin(()), replay_of(stepper).inputs):
        running = inner(case.beam.strain, case.beam.strain) * dx(degree=2)
        assert replay_of(stepper).compiled_sweep(STEPS, set(), set(), running) is None
    assert "made after the steps" in replay_of(stepper).why_not_compiled


def test_running_functionals(case):
    """Of the position after each step: as operation by operation."""
    found = []
    for compiled in (None, False):
        stepper = case.stepper()
        running = inner(case.beam.position, case.beam.position) * dx(degree=2)
        if compiled is False:
            stepper._code.give_up("for this test")
        value, bars = fg.gradient(stepper, STEPS, case.objective, case.controls, running=running)
        assert (replay_of(stepper).why_not_compiled is None) == (compiled is None)
        found.append([value, *(bar.dat.data_ro.copy() for bar in bars)])
    for one, other in zip(*found, strict=True):
        # Newton's method ends at different values of round-off.
        assert np.abs(one - other).max() <= 1e-10 * np.abs(other).max()
