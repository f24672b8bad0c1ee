"""Whole steps and their reverse sweeps in compiled code, by the executor of lists of operations."""

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager

from firedrake import Form, Function, FunctionSpace

from fdgeom.data import Number, key
from fdgeom.errors import CannotCompile, SolveFailed
from fdgeom.execution import Executor
from fdgeom.execution.options import Fallbacks
from fdgeom.operations import Assemble, Operation, Tangents, each_part, linearise, parts
from fdgeom.operations.dependent import all_constants
from fdgeom.steppers.host_operations import PrescribeMotion

# So many steps at the most go by before Ctrl-C is heard.
_CHUNK = 256
# So many reverse sweeps are kept.
_MANY = 8


class ListSteps:
    """The operations of a step in compiled code; CannotCompile with the reason if there are none."""

    # A step along a chain whose Newton iteration fails is repeated through PETSc SNES, which decides
    # whether the step fails, and why; the stepper's `fallbacks` counts such steps.
    def __init__(
        self, stepper, through_petsc: Callable[[float, float], None], fallbacks: Fallbacks
    ) -> None:
        #: Reverse sweeps, or why there are none, by their arguments.
        self._sweeps: dict[tuple, tuple] = {}
        # Inside of a function: methods can be read without the compiler.
        from fdgeom import compile as compiler

        self._stepper, live = stepper, stepper.state_functions
        self._through_petsc, self._fallbacks = through_petsc, fallbacks
        self._executor = compiler.CompiledExecutor(stepper.operations, live=live, singly=True)
        #: The compiled unit.
        self.unit = self._executor.unit
        self._given = [
            op for op in stepper.operations if isinstance(op, PrescribeMotion) and op.is_set
        ]
        self._times = [Number(c) for c in {c for op in stepper.operations for c in op.clocks}]
        self._sweep: ListSweep | None = None
        self._spare: list = []

    def make_ready(self) -> None:
        """Compile the code."""
        self.unit.make_ready()

    def advance(self, steps: int, dt: float) -> tuple[int, SolveFailed | None]:
        """Take up to ``steps`` steps, few enough for Ctrl-C.

        Returns how many were taken, and the failure after the last good one, if any.
        """
        clock, steps = self._stepper.clock, min(steps, _CHUNK)
        for op in self._given:
            op.run()
            # Values that a user has set are reached in one step.
            steps = 1 if op.moves else steps
        if self.unit.at is not None:
            # Coefficients that are functions of the time are evaluated anew for each step.
            steps = 1
            for time in self._times:
                time.set(clock.t + self.unit.at * dt)
        take = self._executor.advance if self._sweep is None else self._sweep.trajectory.take
        done, failure = take(steps, clock.begin, dt, clock.steps - clock.first)
        if failure is None or failure.words is None:
            return done, failure
        if not done:
            with self._fallbacks.through_petsc(failure.words, failure.remedy or ""):
                self._step_through_petsc(clock.t, dt)
        return max(done, 1), None

    def _step_through_petsc(self, t: float, dt: float) -> None:
        if self._sweep is None:
            self._through_petsc(t, dt)
        else:
            self._sweep.trajectory.take_through(self._sweep.petsc, t, dt)

    def sweep(
        self,
        seeded: Set[int],
        wanted: Set[int],
        running: Form | None = None,
        *,
        tangents: bool = False,
    ) -> "ListSweep":
        """The compiled reverse sweep through these steps; raises `CannotCompile` with the reason."""
        # seeded: keys of the functions that have a cotangent after steps; wanted: keys of the coefficients
        # whose cotangents are wanted; running: a functional that is evaluated after each step; tangents:
        # whether the steps propagate tangents, too.
        kept, name = self._sweeps, (frozenset(seeded), frozenset(wanted), id(running), tangents)
        if name not in kept:
            while len(kept) >= _MANY:
                del kept[next(iter(kept))]
            layout = self.unit.layout
            found: ListSweep | CannotCompile
            try:
                found = ListSweep(
                    self._stepper, layout, self._spare, seeded, wanted, running, tangents=tangents
                )
            except CannotCompile as why:
                found = why
            # With the functional, so that no other one gets its number.
            kept[name] = running, found
        _, found = kept[name]
        if isinstance(found, CannotCompile):
            raise found
        return found

    @contextmanager
    def leaving(self, trail: "ListSweep") -> Iterator[None]:
        """Context in which steps are stored, which a :meth:`sweep` follows back."""
        self._sweep = trail
        try:
            yield
        finally:
            self._sweep = None

    def stats(self) -> dict[str, int]:
        """Solves and Newton iterations (of the node that took most) so far."""
        swept = [sweep for _, sweep in self._sweeps.values() if isinstance(sweep, ListSweep)]
        every = [self._executor.stats(), *(sweep.trajectory.forward.stats() for sweep in swept)]
        return {name: sum(found[name] for found in every) for name in every[0]}


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

        operations, live = list(stepper.operations), list(stepper.state_functions)
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
        self.petsc = Executor(operations, stepper.runs)
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
