"""Compiled reverse sweeps through steps of a list of operations."""

from collections.abc import Sequence, Set

from firedrake import Form, Function, FunctionSpace

from fdgeom.execution import Executor
from fdgeom.operations import Assemble, Operation, parts
from fdgeom.solvers import key
from fdgeom.solvers.compiled import CannotCompile
from fdgeom.solvers.derived import all_constants


class ListSweep:
    """Steps of a stepper that are stored, and their compiled adjoint; CannotCompile if there is none."""

    # spare: memory that sweeps share. seeded: keys of functions that have a cotangent after the steps;
    # wanted: keys of the coefficients whose cotangents are wanted; running: a functional that is
    # evaluated after each step.
    def __init__(
        self, stepper, spare: list, seeded: Set[int], wanted: Set[int], running: Form | None
    ) -> None:
        # Inside of a function: methods can be read without the compiler.
        from fdgeom import compile as compiler

        operations, live = list(stepper.operations), list(stepper._moving())
        #: Σ over the steps of what each cell gives to the running functional.
        self._sums: Function | None = None
        if running is not None:
            added = _running_operation(running, stepper.system.clocks)
            (self._sums,) = added.writes
            operations.append(added)
            live.append(self._sums)
        every = _parts([f for op in operations for f in (*op.reads, *op.writes)])
        active = seeded | wanted | {key(part) for part in _parts(live)}
        seeds = [f for f in every if key(f) in seeded or f is self._sums]
        try:
            self.trajectory = compiler.Trajectory(
                operations, seeds, [f for f in every if key(f) in active], live=live, spare=spare
            )
        except compiler.CannotCompile as error:
            raise CannotCompile(str(error)) from error
        #: The same operations through PETSc, for a step that compiled code cannot take.
        self.petsc = Executor(operations, stepper._executor.runs)
        bars = self.trajectory.cotangents
        #: Functions and their cotangents: all those to be set after the steps, and the results.
        self.given = [(f, bars[f]) for f in every if bars.is_active(f) and f is not self._sums]
        self.found = [(f, bar) for f, bar in self.given if f in bars]

    def trail(self, steps: int, memory: int) -> "ListSweep":
        """The store of the next steps, with so many bytes for their values, or more if that is too little."""
        if self._sums is not None:
            self._sums.assign(0.0)
        self.trajectory.begin(steps, memory)
        return self

    def pull(self) -> float:
        """Compute the cotangents before the steps; returns the sum of the running functional."""
        if self._sums is None:
            self.trajectory.pull()
            return 0.0
        total = float(self._sums.dat.data_ro.sum())
        self.trajectory.cotangents[self._sums].assign(1.0)
        self.trajectory.pull()
        return total


def _running_operation(running: Form, clocks: Sequence) -> Operation:
    """Adds what each cell gives to a functional at the end of a step."""
    space = FunctionSpace(running.ufl_domain(), "DG", 0)
    one, sums = Function(space, name="one").assign(1.0), Function(space, name="sums")
    work = Form([i.reconstruct(integrand=one * i.integrand()) for i in running.integrals()])
    read = {id(c) for c in all_constants(running)}
    times = [clock for clock in clocks if id(clock) in read]
    if len(times) > 1:
        raise CannotCompile("a running functional of several times")
    return Assemble(
        work=work, by={one: sums}, adds=[sums], clock=times[0] if times else None, at=1.0
    )


def _parts(functions: Sequence[Function]) -> list[Function]:
    return list({key(part): part for f in functions for part in parts(f)}.values())
