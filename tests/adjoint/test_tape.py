"""Steps on pyadjoint's tape: checkpoint schedules, controls made before, what was changed unseen."""

import gc
import warnings

import numpy as np
import pytest
from checkpoint_schedules import Revolve, SingleMemoryStorageSchedule
from derivable import Run, beam, holding, split_body
from firedrake import Function, FunctionSpace, IntervalMesh, as_vector, assemble, ds, dx, sqrt
from firedrake.adjoint import (
    Control,
    ReducedFunctional,
    continue_annotation,
    pause_annotation,
    stop_annotating,
)
from pyadjoint import Tape, get_working_tape, set_working_tape
from verification import hamiltonian_systems
from verification.hamiltonian_systems import canonical

import fdgeom as fg
from fdgeom.adjoint import steps as replayed


def pendulum():
    return Run(fg.StormerVerlet(hamiltonian_systems.pendulum(), 0.1), ("q", "p"))


def annotated(run, blocks, steps, schedule=None):
    """The reduced functional of the run from its first control."""
    run.again()
    set_working_tape(Tape())
    tape = get_working_tape()
    continue_annotation()
    if schedule is not None:
        tape.enable_checkpointing(schedule)
    control = holding(run.controls[0], run.controls[0].dat.data_ro)
    run.controls[0].assign(control)
    numbers = range(blocks) if schedule is None else tape.timestepper(iter(range(blocks)))
    for _ in numbers:
        run.stepper.advance(steps)
    value = assemble(run.objective)
    pause_annotation()
    return ReducedFunctional(value, Control(control)), control, value


@pytest.mark.parametrize("schedule", [SingleMemoryStorageSchedule, lambda: Revolve(6, 2)])
def test_schedules_change_nothing(schedule):
    run = pendulum()
    reduced, control, value = annotated(run, 6, 4)
    expected = reduced.derivative().dat.data_ro.copy()
    del reduced, control  # else pyadjoint goes on with what it knows of p
    reduced, control, again = annotated(run, 6, 4, schedule())
    assert again == value
    assert np.array_equal(reduced.derivative().dat.data_ro, expected)
    assert reduced(control) == pytest.approx(value, rel=1e-15)
    assert np.array_equal(reduced.derivative().dat.data_ro, expected)


def test_a_part_that_is_a_control_before_anything_is_recorded():
    """The part of a mixed state and the whole are one."""
    run = Run(fg.PoissonIntegrator(beam(), 0.01), ("momentum",))
    system = run.stepper.system
    control = Control(system.momentum)
    start = holding(system.momentum, system.momentum.dat.data_ro)
    continue_annotation()
    run.stepper.advance(2)
    value = assemble(run.objective)
    pause_annotation()
    found = ReducedFunctional(value, control).derivative()
    run.again()
    _, (expected,) = fg.gradient(run.stepper, 2, run.objective, [system.momentum])
    size = np.abs(expected.dat.data_ro).max()
    assert np.abs(found.dat.data_ro - expected.dat.data_ro).max() <= 1e-13 * size
    assert np.array_equal(start.dat.data_ro, system.momentum.dat.data_ro)


def test_a_control_between_blocks():
    """What steps have left: kept as it is, whatever comes after, and another one in its place."""
    run = pendulum()
    run.again()
    p = run.functions["p"]
    continue_annotation()
    run.stepper.advance(3)
    control, p_there = Control(p), p.dat.data_ro.copy()
    run.stepper.advance(2)
    value = assemble(run.objective)
    pause_annotation()
    assert np.array_equal(control.data().dat.data_ro, p_there)
    reduced = ReducedFunctional(value, control)
    derivative = reduced.derivative().dat.data_ro.copy()
    assert reduced(holding(p, p_there)) == value

    def at(change):
        run.again()
        run.stepper.advance(3)
        p.dat.data_wo[...] = p_there + change
        run.stepper.advance(2)
        return assemble(run.objective)

    h = 1e-3
    assert reduced(holding(p, p_there + h)) == pytest.approx(at(h), rel=1e-14)
    expected = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    assert derivative.sum() == pytest.approx(expected, rel=1e-7)


def test_what_was_changed_unseen_counts_as_given():
    run = pendulum()
    continue_annotation()
    control = holding(run.controls[0], run.controls[0].dat.data_ro)
    run.controls[0].assign(control)
    run.stepper.advance(2)
    with stop_annotating():
        run.controls[0].assign(0.3)
    with pytest.warns(UserWarning, match=r"^q was changed where pyadjoint did not record") as said:
        run.stepper.advance(2)
    assert said[0].filename == __file__
    value = assemble(run.controls[0] * dx)
    pause_annotation()
    found = ReducedFunctional(value, Control(control)).derivative().dat.data_ro

    def at(start):
        """q after the steps: the momentum alone knows of the start."""
        run.again()
        run.controls[0].dat.data_wo[...] = start
        run.stepper.advance(2)
        run.controls[0].dat.data_wo[...] = 0.3
        run.stepper.advance(2)
        return assemble(run.controls[0] * dx)

    start, h = control.dat.data_ro[0], 1e-3
    expected = (8 * (at(start + h) - at(start - h)) - (at(start + 2 * h) - at(start - 2 * h))) / (
        12 * h
    )
    assert found[0] == pytest.approx(expected, rel=1e-7)


def test_a_failed_step_leaves_no_block():
    """A fall to the centre, in steps that Newton's iteration does not follow."""
    system = canonical([[1e-3, 0.0]], lambda q, p: p**4 / 4 + abs(q) ** -3, )  # fmt: skip
    stepper = fg.ImplicitMidpoint(system, 50.0, solver_parameters={"snes_max_it": 1})
    continue_annotation()
    with pytest.raises(fg.StepFailed):
        stepper.advance(3)
    assert not get_working_tape().get_blocks()


def test_the_completed_steps_of_a_run_that_fails():
    """An end that moves in a way that is defined for three steps: they are a block on the tape."""
    held = fg.GivenPose(position=lambda t: as_vector([0, 0, t**2 * sqrt(0.015 - t)]))

    def system():
        return fg.Beam(IntervalMesh(2, 1.0), fg.Section(np.eye(6), np.eye(6)), left=held)

    def functional(beam):
        return assemble(beam.position[2] * ds(1)) + assemble(beam.velocity[5] * ds(2))

    beam = system()
    stepper = fg.GeneralizedAlpha(beam, 1 / 256)
    control = holding(beam.velocity, beam.velocity.dat.data_ro)
    continue_annotation()
    beam.velocity.assign(control)
    with pytest.raises(fg.StepFailed):
        stepper.advance(10)
    there = functional(beam)
    stepper.dt = 1 / 1024
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stepper.advance(2)
    value = there + functional(beam)
    pause_annotation()
    start = control.dat.data_ro.copy()
    start[1:, 5] = 0.1
    # Without the failure.
    plain = system()
    plain.velocity.dat.data_wo[...] = start
    stepper = fg.GeneralizedAlpha(plain, 1 / 256)
    stepper.advance(3)
    expected = functional(plain)
    stepper.dt = 1 / 1024
    stepper.advance(2)
    expected += functional(plain)
    reduced = ReducedFunctional(value, Control(control))
    assert reduced(holding(control, start)) == pytest.approx(expected, rel=1e-12)


def test_a_failed_first_step_leaves_what_follows_fields_set_on_the_tape():
    """The momentum of a velocity that was assigned, which no block computes."""
    never = fg.Load(force=lambda t: as_vector([0, 0, sqrt(-t)]), at="right")
    beam = fg.Beam(IntervalMesh(2, 1.0), fg.Section(np.eye(6), np.eye(6)), loads=never)
    stepper = fg.GeneralizedAlpha(beam, 1 / 256)
    velocity = holding(beam.velocity, 0.1)
    continue_annotation()
    beam.velocity.assign(velocity)
    with pytest.raises(fg.StepFailed):
        stepper.advance(1)
    value = assemble(beam.momentum[5] * dx)
    pause_annotation()
    assert value == ReducedFunctional(value, Control(velocity))(velocity)


def test_one_block_for_all_steps_and_nothing_when_paused():
    stepper = split_body(0.1)
    continue_annotation()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stepper.advance(4)
        stepper.advance(0)
        stepper.advance(3)
    pause_annotation()
    stepper.advance(1)
    assert [str(b) for b in get_working_tape().get_blocks()] == [
        "4 steps of Splitting",
        "3 steps of Splitting",
    ]


def test_states_that_are_not_kept_are_made_again(monkeypatch):
    """To the last bit."""
    run = pendulum()
    run.again()
    expected = fg.gradient(run.stepper, 11, run.objective, run.controls)
    monkeypatch.setattr(replayed, "MEMORY", 0)
    found = fg.gradient(run.stepper, 11, run.objective, run.controls)
    assert found[0] == expected[0]
    for one, other in zip(found[1], expected[1], strict=True):
        assert np.array_equal(one.dat.data_ro, other.dat.data_ro)


def test_memory_does_not_grow():
    """Functions that are left after evaluations and gradients; those of other tests may go meanwhile."""

    def functions():
        return [x for x in gc.get_objects() if isinstance(x, Function)]

    before = functions()  # held, so that no new Function takes an old one's address
    known = {id(x) for x in before}
    run = pendulum()
    reduced, control, _ = annotated(run, 3, 2)

    def left():
        for _ in range(5):
            reduced(control)
            reduced.derivative()
        gc.collect()
        return sum(id(x) not in known for x in functions())

    left()
    assert left() == left()


def test_a_load_on_the_tape():
    """A number that the energy reads, and one that is no number any more."""
    mesh = fg.copies(2)
    space, numbers = FunctionSpace(mesh, "DG", 0), FunctionSpace(mesh, "R", 0)
    q, p = Function(space).assign(0.4), Function(space).assign(0.1)
    stiffness = Function(numbers, name="stiffness").assign(1.5)
    system = fg.HamiltonianSystem(q, p, (p**2 / 2 + stiffness * q**2 / 2) * dx)
    stepper = fg.StormerVerlet(system, 0.1)
    given = Function(numbers).assign(1.5)
    continue_annotation()
    stiffness.assign(given)
    stepper.advance(3)
    stepper.advance(2)
    assert stepper.is_compiled
    value = assemble(q * p * dx)
    pause_annotation()
    reduced = ReducedFunctional(value, Control(given))

    def verlet(k):
        x, y, h = 0.4, 0.1, 0.1
        for _ in range(5):
            y -= h / 2 * k * x
            x += h * y
            y -= h / 2 * k * x
        return 2 * x * y

    assert value == pytest.approx(verlet(1.5), rel=1e-14)
    assert reduced(Function(numbers).assign(1.7)) == pytest.approx(verlet(1.7), rel=1e-13)
    reduced(given)
    expected = (verlet(1.5 + 1e-20j)).imag / 1e-20
    assert reduced.derivative().dat.data_ro[0] == pytest.approx(expected, rel=1e-13)
