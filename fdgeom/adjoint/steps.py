"""Replay of steps of a stepper, with derivatives by compiled code or operation by operation."""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from firedrake import Constant, Form
from mpi4py import MPI

from fdgeom.adjoint.coefficients import Coefficients
from fdgeom.adjoint.compiled import CompiledSweep
from fdgeom.adjoint.lists import Derivatives, Kept, Objective, OperationList, Vectors, keys
from fdgeom.adjoint.replay import Origin, Replay
from fdgeom.clock import Clock
from fdgeom.data import Snapshot, key
from fdgeom.errors import CannotCompile
from fdgeom.execution.options import REVERSE_SWEEP, falling_back
from fdgeom.interrupt import shielded
from fdgeom.operations import Operation, Solve, Strides, each_part
from fdgeom.operations.dependent import dependent_of, snapshot_of

#: Up to so many bytes of states are saved; beyond that steps are repeated from checkpoints.
MEMORY = 2**29
# So many compiled sweeps are kept.
_MANY = 8
# Tolerances relative to the size of a field, and to the largest field: see `_changes_more`.
_SAME, _STILL = 1e-6, 1e-12


@dataclass(kw_only=True)
class StepOrigin(Origin):
    """The start of some steps."""

    clock: Clock
    #: Values of the snapshots by which system and method detect values set by hand.
    remembered: list[list]
    #: For each snapshot the keys of functions that count as set, whatever their values.
    touched: list[Set[int]]
    #: Operations of system and method before the first step, by `touched`.
    start: list[Operation]


class StepReplay(Replay):
    """Steps of one stepper as a function of their inputs; ``NotImplementedError`` if underivable."""

    def __init__(self, stepper) -> None:
        why = stepper.underivable() or stepper.system.model.underivable()
        if why:
            raise NotImplementedError(
                f"gradients through {type(stepper).__name__}.advance() of a "
                f"{type(stepper.system).__name__} are not available: {why}. Call it inside 'with "
                "firedrake.adjoint.stop_annotating():' (its result then counts as given data), and "
                "take its gradient by finite differences of whole runs"
            )
        self._stepper, system = stepper, stepper.system
        #: The name of the stepper's class.
        self.name = type(stepper).__name__
        operations = list({op.original: None for op in stepper.operations})
        unknowns = keys(op.unknown for op in operations if isinstance(op, Solve))
        moving = (*stepper.state_functions, *system.consistency.followers().values())
        guesses = [f for f in moving if keys([f]) <= unknowns]
        #: Operations after the last step.
        self._finish = [*stepper.finish(), *system.consistency.after_steps]
        written = keys(f for op in (*operations, *self._finish) for f in op.writes)
        own = keys(moving) | written | keys(system.model.given_in_time())
        # Users take derivatives of the energies of beams, which have fields of their own.
        energies = [form for m in getattr(system, "members", ()) for form in m.energies().values()]
        more = [
            f for e in energies for f in e.coefficients() if dependent_of(f) and key(f) not in own
        ]
        super().__init__(
            [f for f in moving if not keys([f]) <= unknowns],
            Coefficients([*operations, *self._finish], own, system.model.clocks, more),
            guesses,
        )
        #: All functions that the steps change and read again.
        self._moving = each_part([*self.state, *guesses])
        #: Why derivatives are taken operation by operation; None if compiled code computes them.
        self.why_not_compiled: str | None = None
        #: The memory that compiled sweeps share.
        self._spare: list = []

    def title(self, steps: int) -> str:
        return f"{steps} steps of {self.name}"

    # --- where they begin ------------------------------------------------------------------------
    def snapshots(self) -> tuple:
        """The snapshots by which system and stepper detect values set by hand."""
        return (*self._stepper.system.consistency.snapshots, *self._stepper.remembered())

    def origin(self, touched: Sequence[Set[int]] = ()) -> StepOrigin:
        # Values alone decide which operations run first, with or without a tape: functions whose values
        # differ from the snapshot are set. Other touched ones count for derivatives.
        stepper, consistency = self._stepper, self._stepper.system.consistency
        stepper.system.model.set_time(stepper.t)
        snapshots, own = self.snapshots(), len(consistency.snapshots)
        consistency.stepped = consistency.stepped and consistency.holds()
        touched = touched or [set()] * len(snapshots)
        changed = [snapshot.changed_keys() for snapshot in snapshots]
        given = [set(s.keys()) & more for s, more in zip(snapshots, touched, strict=True)]
        found = [now | more for now, more in zip(changed, given, strict=True)]
        of_system = consistency.synchronise(found[:own])
        written = keys(f for op in of_system for f in op.writes)
        start = stepper.start(written.union(*found[own:]))
        clock = stepper.clock
        if clock.dt != clock.last_dt and not stepper.begins(start):
            start = [*start, *stepper.rescale(Constant(clock.dt / clock.last_dt))]
        first = [*of_system, *start]
        # Steps whose start changes nothing begin as if nothing were set.
        begins = any(changed) or keys(f for op in first for f in op.writes) & self._seeds
        on_tape = keys([*self.views, *self.inputs])
        # One copy, for a first step that fails: not one for each block of the tape.
        self._before = Kept([f for op in (*first, *self._finish) for f in op.writes])
        return StepOrigin(
            Kept(self._begins_with),
            set().union(*given) & on_tape if begins else set(),
            clock=clock,
            remembered=[snapshot.values() for snapshot in snapshots],
            # Functions that are on no tape keep their saved values.
            touched=[f | (set(s.keys()) - on_tape) for f, s in zip(found, snapshots, strict=True)],
            start=first,
        )

    @property
    def samples(self) -> bool:
        return self._stepper.samples_coefficients

    @contextmanager
    def at(self, origin, inputs, *left) -> Iterator[None]:
        clock, consistency = self._stepper.clock, self._stepper.system.consistency
        stepped = consistency.stepped
        try:
            with super().at(origin, inputs, *left):
                yield
        finally:
            with shielded():
                self._set_clock(clock)
                consistency.stepped = stepped

    def _stand(self, origin: StepOrigin) -> None:
        self._set_clock(origin.clock)

    def _set_snapshots(self, origin: StepOrigin, left) -> None:
        # All values count as left by steps, except those that are set.
        self._agree()
        for n, snapshot in enumerate(self.snapshots()):
            names, was = snapshot.keys(), origin.remembered[n]
            values = [left.get((n, name), v) for name, v in zip(names, was, strict=True)]
            snapshot.remember(values, of=origin.touched[n])

    def _agree(self) -> None:
        """Declare that all present values are those that steps have left."""
        self._stepper.system.consistency.agree()
        for snapshot in self._stepper.remembered():
            snapshot.take()

    def _set_clock(self, clock: Clock) -> None:
        self._stepper.clock = clock
        self._stepper.system.model.set_time(clock.t)

    # --- steps -----------------------------------------------------------------------------------
    def run(self, steps: int, sweep: CompiledSweep | None = None) -> None:
        """Run steps from the present state, recorded by ``sweep`` if given."""
        try:
            with nullcontext() if sweep is None else sweep.recording():
                self._stepper.take_steps(steps)
        finally:
            self._coefficients.dependents.refresh()

    def completed(self, origin):
        steps = self._stepper.steps - origin.clock.steps
        if not steps:
            # No block would record these updates of dependent fields, so they are undone.
            self._before.restore()
            self._set_clock(origin.clock)
            for snapshot, values in zip(self.snapshots(), origin.remembered, strict=True):
                snapshot.remember(values)
        return steps

    def _open(self) -> None:
        """Run the operations before the first step as the run itself does."""
        self._stepper.begin_steps()
        self._agree()

    def _begin(self, clock: Clock) -> tuple[float, float]:
        """Set the clock for a step; returns its time and length."""
        self._stepper.clock = clock
        self._stepper.system.model.set_time(clock.after(1).t)
        return clock.t, clock.dt

    def push(self, origin, steps, tangents, wanted):
        reached = self.reached_by(wanted)
        start, step, end, before = self._lists(origin, reached)
        self._tangents(start, tangents)
        before.restore()
        sweep = self.compiled_sweep(steps, self._seeds, reached, tangents=True, memory=0)
        if sweep is None:
            self._open()
            step.places.put(tangents)
            self._forwards(steps, step)
            step.places.get(tangents)
        else:
            self._run_with(sweep, steps, tangents)
        self._tangents(end, tangents)

    def pull(self, origin, steps, d, wanted, objective: Objective | None = None):
        """As for every replay; ``objective`` adds its derivatives to the cotangents."""
        objective = objective or Objective()
        reached = self.reached_by(wanted)
        given = None if d.tangents is None else Vectors(d.tangents)
        start, step, end, before = self._lists(origin, reached)
        if d.tangents is not None:
            self._tangents(start, d.tangents)
            before.restore()
        seeded = d.keys() | objective.by
        sweep = self.compiled_sweep(
            steps,
            seeded if d.tangents is None else self._seeds,
            reached,
            objective.running,
            tangents=d.tangents is not None,
        )
        if sweep is None:
            self._open()
            self._reverse_steps(steps, step, end, d, objective, seeded)
        else:
            # A run begins by itself.
            self._run_with(sweep, steps, d.tangents)
            objective.add(d.cotangents, last=True, running=False)
            with REVERSE_SWEEP:
                self._reverse_list(end, d)
                sweep.reverse(d)
            objective.value += sweep.total
        before.restore()
        self._set_clock(origin.clock)
        d.tangents = given
        self._reverse_list(start, d)

    @REVERSE_SWEEP
    def _reverse_steps(
        self, steps: int, step: OperationList, end: OperationList, d: Derivatives,
        objective: Objective, seeded: set[int],
    ) -> None:  # fmt: skip
        """Replace the cotangents after the last list by those before the steps."""
        if d.tangents is not None:
            step.places.put(d.tangents)
        last, system = True, self._stepper.system

        def after() -> None:
            if d.tangents is not None:
                step.places.get(d.tangents)
            # Operations have left their own times.
            system.model.set_time(self._stepper.clock.after(1).t)
            here = Kept(end.targets)
            add = partial(objective.add, d.cotangents, last=last)
            self._reverse_list(end, d, after=add, seeds=d.keys() | seeded)
            here.restore()

        for at in self._backwards(steps, None if d.tangents is None else step):
            seen = after if last or objective.running is not None else None
            self._reverse_list(step, d, at, seen, self._seeds, placed=True)
            last = False

    def _forwards(self, steps: int, step: OperationList) -> None:
        """Take steps with their tangents, operation by operation."""
        for _ in range(steps):
            step.linearised.step(*self._begin(self._stepper.clock))
            self._stepper.clock = self._stepper.clock.after(1)
        self._stepper.system.model.set_time(self._stepper.t)

    def _backwards(self, steps: int, step: OperationList | None) -> Iterator[tuple[float, float]]:
        """Restore the state before each step, the last step first, and yield its time and length."""
        # step: the list of a step whose tangents are to be restored too. States between checkpoints
        # come from repeated steps, bit by bit. The last step is taken too: it may fail.
        moving, advance = self._moving, self._stepper.take_steps
        if step is not None:
            moving, advance = [*moving, *step.places.functions], partial(self._forwards, step=step)
        comm = self._stepper.system.mesh.comm
        strides = Strides.fitting(steps, Kept(moving).nbytes, MEMORY, comm)
        kept = []
        for number in range(strides.last + 1):
            kept.append((Kept(moving), self._stepper.clock))
            if number < strides.last:
                advance(strides.stride)
        for number, _, some in strides.backwards():
            values, clock = kept[number]
            values.restore()
            self._set_clock(clock)
            self._agree()
            inner = []
            for k in range(some):
                inner.append((Kept(moving), self._stepper.clock))
                if k + 1 < some or number == strides.last:
                    advance(1)
            for values, clock in reversed(inner):
                values.restore()
                yield self._begin(clock)

    # --- lists -----------------------------------------------------------------------------------
    @cached_property
    def _seeds(self) -> set[int]:
        return keys(self._moving)

    def _lists(
        self, origin: StepOrigin, reached: set[int]
    ) -> tuple[OperationList, OperationList, OperationList, Snapshot]:
        """The operations before the steps, of a step, and after the steps; the values that they change."""
        stepper, coefficients = self._stepper, self._coefficients

        def make() -> tuple[OperationList, OperationList]:
            steps = coefficients.with_updates(stepper.operations, reached)
            # Functionals may read the fields in time after the steps.
            end = [*coefficients.updates_in_time(reached), *self._finish]
            return (
                OperationList(steps, reached | self._seeds, stepper.runs),
                OperationList(end, reached | keys(self.state), self._runs),
            )

        step, end = self.once("steps", frozenset(reached), make)
        start = self._list(origin.start, reached)
        moving = self._moving
        before = self.once(
            "values",
            (start, step),
            lambda: snapshot_of(each_part([*moving, *start.targets, *step.targets])),
        )
        before.take()
        self._refuse_jump(origin, start, before)
        return start, step, end, before

    def _refuse_jump(self, origin: StepOrigin, start: OperationList, before: Snapshot) -> None:
        """Raise ``NotImplementedError`` if the result jumps at functions set to their former values."""
        # Inside `at`. A value that equals the former one goes unnoticed, any other does not, and the
        # method may begin differently then.
        snapshots = self.snapshots()
        unseen = origin.counts_as_set.difference(*(s.changed_keys() for s in snapshots))
        if not unseen:
            return
        stepper = self._stepper
        clock, remembered = stepper.clock, [snapshot.values() for snapshot in snapshots]
        self._open()
        unset = self.once("unset", (), lambda: snapshot_of(self._moving))
        unset.take()
        before.restore()
        stepper.clock = clock
        start.executor.step(0.0, 0.0)
        jumps = _changes_more(unset, stepper.dt)
        before.restore()
        for snapshot, values in zip(snapshots, remembered, strict=True):
            snapshot.remember(values)
        if jumps:
            data = [f for f in self.data(self.inputs) if keys([f]) & unseen]
            names = ", ".join(f.name() for f in (*self.views_of(unseen), *data))
            raise NotImplementedError(
                f"gradients by {names} are not available: its values are those after the last step. "
                f"{self.name} continues from these, but begins anew from any others; so the result "
                "jumps there. Set other values, or set it once, or make a new stepper before it is set"
            )

    # --- in compiled code ------------------------------------------------------------------------
    def compiled_sweep(
        self,
        steps: int,
        seeded: set[int],
        reached: set[int],
        running: Form | None = None,
        *,
        tangents: bool = False,
        memory: int | None = None,
    ) -> CompiledSweep | None:
        """The compiled reverse sweep through steps from here; if None, :attr:`why_not_compiled` says why."""
        # seeded: keys of functions with cotangents after the steps. running: a functional that is
        # evaluated after each step.
        stepper = self._stepper
        compiled = stepper.ready_steps()
        self.why_not_compiled = stepper.why_not_compiled
        if compiled is None:
            return None
        if reached & keys(self._coefficients.in_time):
            self.why_not_compiled = "derivatives by data of a field that follows the time"
            return None
        after = [f for op in self._finish for f in op.writes]
        if running is not None and keys(running.coefficients()) & keys(after):
            self.why_not_compiled = (
                "the running functional reads fields that are made after the steps"
            )
            return None
        if self._finish:
            # Final operations pass cotangents of their results on to functions of the state.
            seeded = self._seeds
        found = None
        with falling_back(
            self._say_why_not,
            stepper.system.mesh.comm,
            required=False,
            what="the way back",
            instead="derivatives are taken operation by operation",
        ):
            sweep = self._sweep(seeded, reached, running, tangents)
            sweep.begin(steps, MEMORY if memory is None else memory)
            found = sweep
        return found

    def _sweep(
        self, seeded: Set[int], reached: Set[int], running: Form | None, tangents: bool
    ) -> CompiledSweep:
        """The compiled sweep for these arguments, cached; raises CannotCompile with the reason."""

        def make() -> CompiledSweep | CannotCompile:
            try:
                return CompiledSweep(
                    self._stepper, self._spare, seeded, reached, running, tangents=tangents
                )
            except CannotCompile as why:
                return why

        name = frozenset(seeded), frozenset(reached), id(running), tangents
        found = self.once("sweeps", name, make, alive=running, most=_MANY)
        if isinstance(found, CannotCompile):
            raise found
        return found

    def _say_why_not(self, why: str) -> None:
        self.why_not_compiled = why

    def _run_with(self, sweep: CompiledSweep, steps: int, tangents: Vectors | None) -> None:
        """Run compiled steps, with tangents if given."""
        if tangents is not None:
            sweep.tangents.put(tangents)
        self.run(steps, sweep)
        if tangents is not None:
            sweep.tangents.get(tangents)


def _changes_more(before: Snapshot, dt: float) -> bool:
    """Whether values have changed by more than round-off may cause."""
    # Round-off is that of the solves, or, for accelerations at rest, what moves nothing in a step.
    before.update_ghosts()
    found = [
        (np.abs(now - was).max(initial=0.0), np.abs(now).max(initial=0.0))
        for was, now in before.pairs
    ]
    changes, sizes = np.array(found, dtype=float).reshape(-1, 2).T.copy()
    for values in (changes, sizes):
        before.comm.Allreduce(MPI.IN_PLACE, values, op=MPI.MAX)
    return bool((changes > np.maximum(_SAME * sizes, _STILL / dt**2 * sizes.max())).any())
