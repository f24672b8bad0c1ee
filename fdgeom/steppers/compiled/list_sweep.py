"""Compiled reverse sweeps through steps of a list of operations."""

from collections.abc import Sequence, Set

from firedrake import Form, Function, FunctionSpace

from fdgeom.errors import CannotCompile
from fdgeom.execution import Executor
from fdgeom.operations import Assemble, Operation, Tangents, each_part, linearise, parts
from fdgeom.solvers import key
from fdgeom.solvers.derived import all_constants


class ListSweep:
    """Steps of a stepper that are stored, and their compiled adjoint; CannotCompile if there is none."""

    # layout: that of the steps. spare: memory that sweeps share. seeded: keys of functions that have a
    # cotangent after the steps; wanted: keys of the coefficients whose cotangents are wanted; running: a
    # functional that is evaluated after each step; tangents: whether the steps propagate tangents, too.
    def __init__(
        self,
        stepper,
        layout,
        spare: list,
        seeded: Set[int],
        wanted: Set[int],
        running: Form | None = None,
        *,
        tangents: bool = False,
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
        every = each_part([f for op in operations for f in (*op.reads, *op.writes)])
        active = seeded | wanted | {key(part) for part in each_part(live)}
        seeds = [f for f in every if key(f) in seeded or f is self._sums]
        wanted_of = [f for f in every if key(f) in active]
        dots = None
        if tangents:
            written = {key(part) for part in each_part([f for op in operations for f in op.writes])}
            dots = _tangents_of(operations, active | written)
            operations = linearise(operations, dots)
            live += [dots[f] for f in live if f in dots]
            seeds += [dots[f] for f in seeds if f in dots]
            wanted_of += [dots[f] for f in wanted_of if f in dots]
        self.trajectory = compiler.CompiledTrajectory(
            operations, seeds, wanted_of, live=live, spare=spare, layout=type(layout)(layout.mesh)
        )
        #: The same operations through PETSc, for a step that compiled code cannot take.
        self.petsc = Executor(operations, stepper._executor.runs)
        bars = self.trajectory.cotangents
        known = [f for f in every if bars.is_active(f) and f is not self._sums]
        #: Functions and their tangents.
        self.tangents = [] if dots is None else [(f, dots[f]) for f in every if f in dots]
        #: Functions and their cotangents: all those to be set after the steps, and the results.
        self.given = [(f, bars[f]) for f in known]
        self.found = [(f, bar) for f, bar in self.given if f in bars]
        #: The same for their tangents.
        both = [(f, dot) for f, dot in self.tangents if bars.is_active(dot)]
        self.given_of_tangents = [(f, bars[dot]) for f, dot in both]
        self.found_of_tangents = [(f, bars[dot]) for f, dot in both if dot in bars]

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
        total = self._sums.comm.allreduce(float(self._sums.dat.data_ro.sum()))
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


def _tangents_of(operations: Sequence[Operation], active: Set[int]) -> Tangents:
    """Tangents of functions with these keys; those of mixed functions serve their parts."""
    every = [f for op in operations for f in (*op.reads, *op.writes)]
    return Tangents([f for f in every if any(key(part) in active for part in parts(f))])
