"""Which way solves have gone: in compiled code or through PETSc SNES."""

import numpy as np

import fdgeom as fg
from fdgeom.data import Snapshot
from fdgeom.errors import SolveFailed
from fdgeom.execution import Executor, Trajectory
from fdgeom.operations import AdjointStep, each_part


def take_steps(trajectory, steps, t, dt):
    """Take steps of a compiled trajectory; raises SolveFailed after the good ones."""
    trajectory.begin(steps)
    _, failure = trajectory.take(steps, t, dt)
    if failure is not None:
        raise failure


class PETScExecutor(Executor):
    """Steps through PETSc, with the interface of the compiled executor."""

    def advance(self, steps, t, dt):
        saved = Snapshot(list(dict.fromkeys(f for op in self.operations for f in op.writes)))
        for done in range(steps):
            try:
                with saved.kept():
                    self.step(t + done * dt, dt)
            except SolveFailed as failure:
                return done, failure
        return steps, None


class StepsThroughPETSc:
    """Steps of a list and their adjoint through PETSc, one step at a time, with all states kept."""

    def __init__(self, step, seeds, wanted):
        reached = AdjointStep(step, seeds, wanted).cotangents
        self._every = each_part(f for op in step for f in (*op.reads, *op.writes))
        active = [f for f in self._every if reached.is_active(f)]
        self._step, self._one = Executor(step), Trajectory(step, active, active)
        self.cotangents = self._one.cotangents
        self._before = []

    def advance(self, steps, t, dt):
        for k in range(steps):
            values = [np.array(f.dat.data_ro) for f in self._every]
            self._before.append((values, t + k * dt, dt))
            self._step.step(t + k * dt, dt)

    def pull(self):
        for values, t, dt in reversed(self._before):
            for f, x in zip(self._every, values, strict=True):
                f.dat.data_wo[...] = x
            self._one.advance(t, dt)
            self._one.pull()
        self._before.clear()


def check_way(solver, compiled=True):
    """All steps of a stepper, or equilibria, so far have gone the way that a test means.

    Else a test that compares the two ways would compare PETSc SNES with itself.
    """
    assert solver.is_compiled is compiled, solver.why_not_compiled
    stats = solver.solver_stats()
    assert stats["solves"] > 0
    steps = stats.get("steps", stats["solves"])
    assert stats["steps_through_petsc"] == (0 if compiled else steps), solver.fallbacks
    assert not solver.fallbacks


def solvers_of(stepper):
    """The SNES of the solves of a step."""
    found = {op.original: None for op in stepper.operations if isinstance(op, fg.Solve)}
    return [stepper._executor.make(op).snes for op in found]


def number_of_solves(stepper):
    """How many solves a step has."""
    return sum(isinstance(op, fg.Solve) for op in stepper.operations)
