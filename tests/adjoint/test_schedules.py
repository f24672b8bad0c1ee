"""Schedules of checkpoints, in memory and on disk, and the memory that many evaluations take."""

import gc
import resource
import sys
import warnings

import numpy as np
import pytest
from checkpoint_schedules import (
    HRevolve,
    MixedCheckpointSchedule,
    MultistageCheckpointSchedule,
    Revolve,
    SingleDiskStorageSchedule,
    SingleMemoryStorageSchedule,
    StorageType,
)
from derivable import CASES, Run, holding
from firedrake import (
    Function,
    FunctionSpace,
    IntervalMesh,
    RectangleMesh,
    assemble,
    cos,
    dx,
    inner,
)
from firedrake.adjoint import (
    Control,
    ReducedFunctional,
    checkpointable_mesh,
    continue_annotation,
    enable_disk_checkpointing,
    pause_annotation,
    stop_annotating,
)
from pyadjoint import Tape, get_working_tape, set_working_tape
from verification.beams import SOFT, set_smooth

import fdgeom as fg

#: Blocks on the tape.
BLOCKS = 7


def pendulums(mesh):
    space = FunctionSpace(mesh, "DG", 0)
    q, p = Function(space).assign(1.0), Function(space).assign(0.3)
    stepper = fg.StormerVerlet(fg.HamiltonianSystem(q, p, (p**2 / 2 - cos(q)) * dx), 0.1)
    return stepper, p, (q**2 + p) * dx


def beam(mesh):
    made = set_smooth(fg.Beam(mesh, SOFT), 3.0)
    distance = inner(made.position, made.position) + inner(made.strain, made.strain)
    return fg.PoissonIntegrator(made, 0.01), made.momentum, distance * dx(degree=2)


def evaluated(make, schedule=None, folder=None):
    """Values and gradients: as recorded, taken again, and elsewhere."""
    tape = get_working_tape()
    mesh = IntervalMesh(3, 3.0)
    if folder is not None:
        continue_annotation()
        enable_disk_checkpointing(str(folder))
        mesh = checkpointable_mesh(mesh)
        pause_annotation()
    stepper, start, objective = make(mesh)
    control = holding(start, start.dat.data_ro)
    continue_annotation()
    if schedule is not None:
        tape.enable_checkpointing(schedule)
    start.assign(control)
    numbers = iter(range(BLOCKS))
    for _ in numbers if schedule is None else tape.timestepper(numbers):
        stepper.advance(3)
    value = assemble(objective)
    pause_annotation()
    reduced = ReducedFunctional(value, Control(control))
    found = [float(value), np.array(reduced.derivative().dat.data_ro)]
    for values in (control.dat.data_ro, 1.1 * control.dat.data_ro):
        found += [reduced(holding(start, values)), np.array(reduced.derivative().dat.data_ro)]
    return found


#: With room for two states: on disk where there is "disk" in its name.
SCHEDULES = {
    "all kept": SingleMemoryStorageSchedule,
    "Revolve": lambda: Revolve(BLOCKS, 2),
    "mixed": lambda: MixedCheckpointSchedule(BLOCKS, 2, storage=StorageType.RAM),
    "multistage": lambda: MultistageCheckpointSchedule(BLOCKS, 2, 0),
    "all on disk": SingleDiskStorageSchedule,
    "mixed, disk": lambda: MixedCheckpointSchedule(BLOCKS, 2, storage=StorageType.DISK),
    "multistage, memory and disk": lambda: MultistageCheckpointSchedule(BLOCKS, 1, 1),
    "H-Revolve, memory and disk": lambda: HRevolve(BLOCKS, 1, 1),
}


@pytest.mark.parametrize("make", [pendulums, beam])
@pytest.mark.filterwarnings("ignore:Numba not available")
def test_schedules_change_nothing(make, tmp_path):
    """Not a bit: what is taken again is what was, and derivatives are of the same steps."""
    expected = evaluated(make)
    # The compiled steps of a beam are the same, so some schedules are enough.
    chosen = SCHEDULES if make is pendulums else ("Revolve", "mixed, disk")
    for name in chosen:
        set_working_tape(Tape())
        folder = tmp_path / name.replace(" ", "_") if "disk" in name else None
        if folder is not None:
            folder.mkdir()
        found = evaluated(make, SCHEDULES[name](), folder)
        assert folder is None or list(folder.rglob("*.h5"))
        for k, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert np.array_equal(one, other), (name, k)


def drawn(schedule=None):
    """Values and gradients by the modulus of a drawn section: recorded, taken again, and elsewhere."""
    section = RectangleMesh(2, 2, 0.6, 0.5)
    modulus = Function(FunctionSpace(section, "CG", 1)).assign(20.0)
    control = holding(modulus, 20.0 + np.arange(modulus.dat.data_ro.size))
    tape = get_working_tape()
    continue_annotation()
    if schedule is not None:
        tape.enable_checkpointing(schedule)
    modulus.assign(control)
    matrices = fg.Section.from_mesh(section, fg.Isotropic(modulus, 0.3, 1.0), origin="tension")
    with stop_annotating():
        made = set_smooth(fg.Beam(IntervalMesh(3, 3.0), matrices), 3.0)
    stepper, numbers = fg.PoissonIntegrator(made, 0.01), iter(range(BLOCKS))
    for _ in numbers if schedule is None else tape.timestepper(numbers):
        stepper.advance(3)
    value = assemble(inner(made.position, made.position) * dx(degree=2))
    pause_annotation()
    reduced = ReducedFunctional(value, Control(control))
    found = [float(value), np.array(reduced.derivative().dat.data_ro)]
    for factor in (1.0, 1.1):
        found.append(float(reduced(holding(control, factor * control.dat.data_ro))))
        found.append(np.array(reduced.derivative().dat.data_ro))
    return found


def test_a_drawn_section():
    expected = drawn()
    assert np.abs(expected[1]).max() > 0
    set_working_tape(Tape())
    # The cotangents of the matrices are summed in another order, and go through solves to 1e-12.
    for k, (one, other) in enumerate(zip(drawn(Revolve(BLOCKS, 2)), expected, strict=True)):
        assert one == pytest.approx(other, abs=1e-12 * np.abs(other).max()), k


@pytest.mark.parametrize("name", CASES)
def test_every_stepper(name):
    """One step a block, all states kept and two of five."""
    dt, make, names = CASES[name]
    found = []
    for schedule in (None, Revolve(5, 2)):
        run = Run(make(dt), names)
        starts = [np.array(f.dat.data_ro) for f in run.controls]
        run.again()
        tape = Tape()
        set_working_tape(tape)
        given = [holding(f, x) for f, x in zip(run.controls, starts, strict=True)]
        continue_annotation()
        if schedule is not None:
            tape.enable_checkpointing(schedule)
        for f, x in zip(run.controls, given, strict=True):
            f.assign(x)
        for _ in range(5) if schedule is None else tape.timestepper(iter(range(5))):
            run.stepper.advance()
        value = assemble(run.objective)
        pause_annotation()
        reduced = ReducedFunctional(value, [Control(x) for x in given])
        found.append([float(value), *(g.dat.data_ro.copy() for g in reduced.derivative())])
        elsewhere = [holding(x, 1.01 * x.dat.data_ro) for x in given]
        found[-1] += [reduced(elsewhere), *(g.dat.data_ro.copy() for g in reduced.derivative())]
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("schedule", [lambda: None, lambda: Revolve(5, 2)], ids=["none", "Revolve"])
def test_put_back_for_another_tape(schedule):
    """One part of the mixed state by hand, one on the tape: derivatives are those of a stepper made anew."""
    found = []
    for earlier in (False, True):
        stepper, momentum, objective = beam(IntervalMesh(3, 3.0))
        fields = stepper.system.functions().values()
        start, clock = [np.array(f.dat.data_ro) for f in fields], stepper.clock
        control = holding(momentum, momentum.dat.data_ro)
        set_working_tape(Tape())
        if earlier:
            continue_annotation()
            momentum.assign(control)
            stepper.advance(3)
            value = assemble(objective)
            pause_annotation()
            ReducedFunctional(value, Control(control)).derivative()
            for f, values in zip(fields, start, strict=True):
                f.dat.data_wo[...] = values
            stepper.take_up(clock)
        tape = Tape()
        set_working_tape(tape)
        continue_annotation()
        if (chosen := schedule()) is not None:
            tape.enable_checkpointing(chosen)
        momentum.assign(control)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in tape.timestepper(iter(range(5))) if chosen else range(5):
                stepper.advance()
        assert any("state was changed" in str(w.message) for w in said) is earlier
        value = assemble(objective)
        pause_annotation()
        reduced = ReducedFunctional(value, Control(control))
        found.append([float(value), reduced.derivative().dat.data_ro.copy()])
        found[-1] += [reduced(holding(momentum, 1.1 * control.dat.data_ro))]
        found[-1] += [reduced.derivative().dat.data_ro.copy()]
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)


def test_memory_of_many_evaluations():
    """A hundred, on a tape and without one, leave less than one state each."""
    space = FunctionSpace(fg.copies(4000), "DG", 0)
    q, p = Function(space).assign(1.0), Function(space)
    stepper = fg.StormerVerlet(fg.HamiltonianSystem(q, p, (p**2 / 2 - cos(q)) * dx), 0.1)
    objective = (q**2 + p) * dx
    control = Function(space).assign(0.3)
    continue_annotation()
    p.assign(control)
    for _ in range(2):
        stepper.advance(1)
    value = assemble(objective)
    pause_annotation()
    reduced = ReducedFunctional(value, Control(control))

    def peak(rounds):
        """What the process ever held, PETSc's part too, in bytes."""
        for _ in range(rounds):
            for _ in range(10):
                reduced(control)
                reduced.derivative()
                fg.gradient(stepper, 2, objective, [p])
            gc.collect()
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return used * (1 if sys.platform == "darwin" else 1024)

    before = peak(3)
    # One state, or a part of a matrix, left by each of them would be more.
    assert peak(10) - before < 100 * p.dat.nbytes
