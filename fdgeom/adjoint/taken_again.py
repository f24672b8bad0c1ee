"""Replays of steps of a stepper from given values of their inputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext
from types import MappingProxyType

import numpy as np
from firedrake import Function

from fdgeom.adjoint.coefficients import Coefficients
from fdgeom.adjoint.deeds import forms_of, written_by
from fdgeom.adjoint.inputs import Inputs
from fdgeom.adjoint.origin import Origin
from fdgeom.adjoint.values import Kept, keys
from fdgeom.adjoint.way_back import WayBack
from fdgeom.clock import Clock
from fdgeom.interrupt import shielded
from fdgeom.operations import Solve
from fdgeom.solvers import Strides

#: Up to so many bytes of states are saved; beyond that steps are repeated from checkpoints.
MEMORY = 2**29


class TakenAgain(Inputs):
    """Steps of one stepper as a function of their inputs; ``NotImplementedError`` if underivable."""

    def __init__(self, stepper) -> None:
        why = stepper.underivable() or stepper.system.underivable()
        if why:
            raise NotImplementedError(
                f"gradients through {type(stepper).__name__}.advance() of a "
                f"{type(stepper.system).__name__} are not there: {why}. Call it inside 'with "
                "firedrake.adjoint.stop_annotating():' (its result then counts as given data), and "
                "take the gradient of what it does by finite differences of whole runs"
            )
        self._stepper, system = stepper, stepper.system
        operations = list({op.original: None for op in stepper.operations})
        unknowns = keys(op.unknown for op in operations if isinstance(op, Solve))
        moving = (*stepper._moving(), *system.followers().values())
        self._carried = [f for f in moving if keys([f]) <= unknowns]
        written = keys(f for op in operations for f in op.writes)
        #: Operations after the last step.
        self._closings = [*stepper.closings(), *system.closings()]
        made = [form for deed in self._closings for form in forms_of(deed)]
        own = keys(moving) | written | keys(system.given_in_time())
        super().__init__(
            [f for f in moving if not keys([f]) <= unknowns],
            Coefficients(operations, own, system.clocks, made),
        )
        #: All functions that the steps change and read again.
        self._moving = [*self.state, *self._carried]

    # --- where they begin ------------------------------------------------------------------------
    def snapshots(self) -> tuple:
        """The snapshots by which system and stepper detect values set by hand."""
        return (*self._stepper.system.remembered(), *self._stepper.remembered())

    def origin(self, touched: Sequence[Set[int]] = ()) -> Origin:
        """The present start of steps; ``touched`` are for each snapshot the keys that count as set."""
        # Values alone decide which operations run first, with or without a tape: functions whose values
        # differ from the snapshot are set. Other touched ones count for derivatives.
        stepper, system = self._stepper, self._stepper.system
        snapshots, own = self.snapshots(), len(system.remembered())
        on_tape = keys([*self.views, *self.inputs])
        touched = touched or [set()] * len(snapshots)
        changed = [snapshot.changed_keys() for snapshot in snapshots]
        given = [set(s.keys()) & more for s, more in zip(snapshots, touched, strict=True)]
        found = [now | more for now, more in zip(changed, given, strict=True)]
        opened = system.openings(self._with_keys(set().union(*found[:own])))
        written = keys(f for deed in opened for f in written_by(deed))
        entrance = stepper.entrance(written.union(*found[own:]))
        return Origin(
            stepper.clock,
            self.constants(),
            Kept(self._carried),
            [snapshot.values() for snapshot in snapshots],
            # Functions that are on no tape keep their saved values.
            [f | (set(s.keys()) - on_tape) for f, s in zip(found, snapshots, strict=True)],
            stepper.mark,
            [*opened, *stepper.openings(entrance)],
            set().union(*(g - c for g, c in zip(given, changed, strict=True))) & keys(self.views),
        )

    @property
    def samples(self) -> bool:
        return self._stepper.samples_coefficients

    def _with_keys(self, wanted: set[int]) -> list[Function]:
        return [view for view in self.views if keys([view]) & wanted]

    @contextmanager
    def at(
        self,
        origin: Origin,
        inputs: Sequence[Function],
        left: Mapping[tuple[int, int], np.ndarray] = MappingProxyType({}),
    ) -> Iterator[None]:
        """Context in which the stepper is at the start with these inputs; restores it afterwards."""
        # left: other values of snapshots, by their number and the key of the part.
        stepper, snapshots = self._stepper, self.snapshots()
        clock, remembered = stepper.clock, [s.values() for s in snapshots]
        mark = stepper.mark
        try:
            with self.holding(inputs, self._carried):
                origin.carried.restore()
                self.set_constants(origin.constants)
                self._set_clock(origin.clock)
                self.renew(inputs)
                # All values count as left by steps, except those that are set.
                self._agree()
                for n, snapshot in enumerate(snapshots):
                    names, was = snapshot.keys(), origin.remembered[n]
                    values = [left.get((n, name), v) for name, v in zip(names, was, strict=True)]
                    snapshot.remember(values, of=origin.touched[n])
                stepper.mark = origin.mark
                yield
        finally:
            with shielded():
                self._set_clock(clock)
                for snapshot, values in zip(snapshots, remembered, strict=True):
                    snapshot.remember(values)
                stepper.mark = mark

    def _agree(self) -> None:
        """Declare that all present values are those that steps have left."""
        self._stepper.system.agree()
        for snapshot in self._stepper.remembered():
            snapshot.take()
        self._stepper.mark = self._stepper.t, self._stepper.mark[1]

    def _set_clock(self, clock: Clock) -> None:
        self._stepper._clock = clock
        self._stepper.system.set_time(clock.t)

    # --- taken again -----------------------------------------------------------------------------
    def run(self, steps: int, way: WayBack | None = None) -> None:
        """Run steps from the present state, recorded by ``way`` if given."""
        with nullcontext() if way is None else way.taken:
            self._stepper._advance(steps)
        self._coefficients.refresh()

    def run_each(self, steps: int, each: Callable[[], float]) -> float:
        """Run steps; returns the sum of ``each()`` after each step."""
        total = 0.0
        for _ in range(steps):
            self._stepper._advance(1)
            total += each()
        return total

    def _open(self) -> None:
        """Run the operations before the first step."""
        stepper = self._stepper
        stepper.system.prepare()
        stepper._enter()
        clock = stepper.clock
        if clock.dt != clock.last_dt:
            stepper._change_dt(clock.dt / clock.last_dt)
            stepper._clock = clock.begun()
        self._agree()

    def _backwards(self, steps: int) -> Iterator[Clock]:
        """Restore the state before each step, the last step first, and yield its clock."""
        # States between checkpoints come from repeated steps, bit by bit.
        moving = self._moving
        comm = self._stepper.system.mesh.comm
        strides = Strides.fitting(steps, Kept(moving).nbytes, self._memory, comm)
        kept = []
        for number in range(strides.last + 1):
            kept.append((Kept(moving), self._stepper.clock))
            if number < strides.last:
                self._stepper._advance(strides.stride)
        for number, _, some in strides.backwards():
            values, self._stepper._clock = kept[number]
            values.restore()
            self._agree()
            inner = []
            for k in range(some):
                inner.append((Kept(moving), self._stepper.clock))
                if k + 1 < some:
                    self._stepper._advance(1)
            for values, clock in reversed(inner):
                values.restore()
                yield clock

    @property
    def _memory(self) -> int:
        return MEMORY

    @property
    def name(self) -> str:
        """The name of the stepper's class."""
        return type(self._stepper).__name__

    def title(self, steps: int) -> str:
        """The name of the block in messages."""
        return f"{steps} steps of {self.name}"
