"""Some steps of a stepper, from given values of all that they read: taken again, and derivatives."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np
from firedrake import Form, Function

from fdgeom.adjoint.coefficients import Coefficients
from fdgeom.adjoint.deeds import derived, forms_of, passed, pull_rates_of, written_by
from fdgeom.adjoint.inputs import Inputs
from fdgeom.adjoint.steps import StepDerivative, each_part
from fdgeom.adjoint.values import Kept, Vectors, keys
from fdgeom.adjoint.way_back import WayBack
from fdgeom.clock import Clock
from fdgeom.interrupt import shielded
from fdgeom.solvers.compiled import CannotCompile, NoCompiler

#: So many bytes of states are kept; of more, some are taken again.
MEMORY = 2**29


@dataclass
class Origin:
    """Where some steps begin, beside the values of Functions that derivatives are taken by.

    Attributes
    ----------
    clock : Clock
        Of the stepper.
    constants : list of numpy.ndarray
        Values of the Constants.
    carried : Kept
        What the method begins its iterations with.
    touched : sequence of Function
        What of the state is set, to whatever.
    remembered : list
        By what the system sees what of it was set by hand.
    openings : list
        What system and stepper change before the first step where these are.
    entrance : str or None
        What the method does there.
    """

    clock: Clock
    constants: list[np.ndarray]
    carried: Kept
    touched: Sequence[Function]
    remembered: list
    openings: list
    entrance: str | None


class Passage(Inputs):
    """Steps of one stepper as a function of what they read.

    Parameters
    ----------
    stepper : Stepper
        What takes them.

    Attributes
    ----------
    state : list of Function
        What steps change: those of mixed spaces as a whole.
    inputs : list of Function
        These, and the other Functions that steps read.
    fields : list of Function
        What follows these.

    Raises
    ------
    NotImplementedError
        If derivatives of these steps are not there.
    """

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
        solves = list({id(solve): solve for solve, _ in stepper.sequence}.values())
        unknowns = keys(solve.unknown for solve in solves)
        moving = stepper._moving()
        self._carried = [f for f in moving if keys([f]) <= unknowns]
        written = [f for solve in solves for f in solve.written]
        more = keys(written) | keys(e.target for s in solves for e in s.essential if e.target)
        more |= keys(system.given_in_time())
        #: What is done after the last step.
        self._closings = [*stepper.closings(), *system.closings()]
        made = [form for deed in self._closings for form in forms_of(deed)]
        own = keys(moving) | unknowns | more
        super().__init__(
            [f for f in moving if not keys([f]) <= unknowns],
            Coefficients(solves, own, system.clocks, made),
        )
        #: What was made of functionals of the steps' result.
        self.kept: dict[tuple, tuple] = {}
        #: Why derivatives are taken solve by solve, and not in compiled code; None if they are not.
        self.why_not_compiled: str | None = None
        self._steps: dict[frozenset[int], StepDerivative] = {}
        self._done: dict[tuple, tuple] = {}

    # --- where they begin ------------------------------------------------------------------------
    def origin(self, touched: Sequence[Function]) -> Origin:
        """The present one; ``touched`` of :attr:`views` are set, to whatever."""
        stepper, system = self._stepper, self._stepper.system
        set_now = [f for snapshot in system.remembered() for f in snapshot.changed_parts()]
        touched = self.touched_by([*touched, *set_now])
        entrance = stepper.entrance(touched)
        openings = [*system.openings(touched), *stepper.openings(entrance)]
        stepper.enter_by(entrance)
        return Origin(
            stepper.clock,
            self.constants(),
            Kept(self._carried),
            touched,
            [snapshot.values() for snapshot in system.remembered()],
            openings,
            entrance,
        )

    @contextmanager
    def at(self, origin: Origin, inputs: Sequence[Function]) -> Iterator[None]:
        """Context in which the stepper stands there; afterwards it is again where it was."""
        stepper, system = self._stepper, self._stepper.system
        snapshots = [*system.remembered(), *stepper.remembered()]
        clock, remembered = stepper.clock, [s.values() for s in snapshots]
        mark = stepper.mark
        try:
            with self.holding(inputs, self._carried):
                origin.carried.restore()
                self.set_constants(origin.constants)
                self._set_clock(origin.clock)
                self.renew(inputs)
                # All agrees, but for what is set.
                self._agree()
                for snapshot, values in zip(system.remembered(), origin.remembered, strict=True):
                    snapshot.remember(values, of=origin.touched)
                stepper.enter_by(origin.entrance)
                yield
        finally:
            with shielded():
                self._set_clock(clock)
                for snapshot, values in zip(snapshots, remembered, strict=True):
                    snapshot.remember(values)
                stepper.mark = mark

    def _agree(self) -> None:
        """Take all that is there for what steps have left."""
        self._stepper.system.agree()
        for snapshot in self._stepper.remembered():
            snapshot.take()
        self._stepper.mark = self._stepper.t, None

    def _set_clock(self, clock: Clock) -> None:
        self._stepper._clock = clock
        self._stepper.system.set_time(clock.t)

    # --- taken again -----------------------------------------------------------------------------
    def run(self, steps: int, way: WayBack | None = None) -> None:
        """Take steps from where the stepper stands; ``way`` can follow them back."""
        with nullcontext() if way is None else way.taken:
            self._stepper._advance(steps)
        self._coefficients.refresh()

    def run_each(self, steps: int, each: Callable[[], float]) -> float:
        """The same, and add up what ``each()`` gives after each step."""
        total = 0.0
        for _ in range(steps):
            self._stepper._advance(1)
            total += each()
        return total

    def _derived(self, deeds: Sequence, reached: set[int]) -> list:
        """What is done before or after steps, with derivatives by what it reads."""
        active = reached | keys(self.state) | keys(f for deed in deeds for f in written_by(deed))
        return [self._derived_one(deed, active) for deed in deeds]

    def _derived_one(self, deed, active: set[int]):
        name = id(deed), frozenset(active)
        if name not in self._done:
            # With the deed itself, so that no other one gets its number.
            self._done[name] = deed, derived(deed, active)
        return self._done[name][1]

    def _open(self) -> None:
        """Do what is done before the first step."""
        stepper = self._stepper
        stepper.system.prepare()
        stepper._enter()
        clock = stepper.clock
        if clock.dt != clock.last_dt:
            stepper._change_dt(clock.dt / clock.last_dt)
            stepper._clock = clock.begun()
        self._agree()

    # --- derivatives -----------------------------------------------------------------------------
    def pull(
        self,
        origin: Origin,
        steps: int,
        bars: Vectors,
        wanted: Sequence[Function],
        after_each: Callable[[Vectors], None] | None = None,
    ) -> None:
        """The cotangents of all inputs from those of what the steps give, inside :meth:`at`.

        Parameters
        ----------
        origin : Origin
            Where they begin.
        steps : int
            How many.
        bars : Vectors
            Cotangents, replaced.
        wanted : sequence of Function
            Coefficients that derivatives are taken by.
        after_each : callable, optional
            Adds to the cotangents after each step, called with the state there.
        """
        reached = self._coefficients.reached_by(wanted)
        way = self.way_back(steps, bars.keys(), wanted) if after_each is None else None
        if way is not None:
            self.run(steps, way)
            self.follow(way, origin, bars, wanted)
            return
        step = self._step(reached)
        opened, closed = (self._derived(d, reached) for d in (origin.openings, self._closings))
        before = Kept(
            each_part([*step.places, *(f for opening in opened for f in opening.targets)])
        )
        self._open()
        last = True
        for clock in self._backwards(origin, steps):
            self._stepper._clock = clock
            records = step.record()
            if after_each is not None or last:
                self._stepper.system.set_time(clock.after(1).t)
                self._pull_closings(closed, bars, after_each)
                last = False
            step.pull(records, bars)
        self._pull_openings(origin, before, bars, reached)

    def way_back(
        self,
        steps: int,
        seeded: set[int],
        wanted: Sequence[Function],
        running: Form | None = None,
    ) -> WayBack | None:
        """The compiled way back through steps from here; None if there is none.

        ``seeded`` are the keys of what will have cotangents after them, ``running`` is a functional
        that is taken after each. :attr:`why_not_compiled` says why there is none.
        """
        stepper = self._stepper
        if stepper._fused is not None and not stepper._fused.is_ready:
            with stepper._falling_back():
                stepper._fused.make_ready()
        self.why_not_compiled = stepper.why_not_compiled
        if stepper._fused is None:
            return None
        if self._closings:
            self.why_not_compiled = "what follows the last step is not compiled"
            return None
        reached = self._coefficients.reached_by(wanted)
        moving = [*self.state, *self._carried]
        try:
            return WayBack(stepper._fused, steps, seeded, reached, moving, MEMORY, running)
        except MemoryError:
            raise
        except Exception as error:
            known = isinstance(error, CannotCompile | NoCompiler)
            self.why_not_compiled = str(error) if known else f"{type(error).__name__}: {error}"
            if not known and stepper.system.mesh.comm.rank == 0:
                warnings.warn(
                    f"derivatives are taken solve by solve, and slower: {self.why_not_compiled}",
                    stacklevel=4,
                )
            return None

    def follow(
        self, way: WayBack, origin: Origin, bars: Vectors, wanted: Sequence[Function]
    ) -> None:
        """As :meth:`pull`, after steps that were taken with this way back."""
        way.pull(bars)
        self._pull_openings(origin, way.before, bars, self._coefficients.reached_by(wanted))

    def _pull_openings(
        self, origin: Origin, before: Kept, bars: Vectors, reached: set[int]
    ) -> None:
        opened = self._derived(origin.openings, reached)
        undone = []
        before.restore()
        for number, opening in enumerate(opened, 1):
            undone.append(Kept(opening.targets))
            if number < len(opened):
                opening.apply()
        for opening, kept in zip(reversed(opened), reversed(undone), strict=True):
            kept.restore()
            opening.pull(bars)
        self._coefficients.pull(bars, reached)

    def pull_rates(
        self,
        origin: Origin,
        steps: int,
        bars: Vectors,
        rates: Vectors,
        tangents: Vectors,
        wanted: Sequence[Function],
    ) -> None:
        """:meth:`pull`, and the same of its derivative along tangents of all inputs: of cotangents and
        their rates.
        """
        reached = self.reached_by(wanted)
        step = self._step(reached)
        self._coefficients.push(tangents, reached)
        given = tangents.copy()
        opened, closed = (self._derived(d, reached) for d in (origin.openings, self._closings))
        before = Kept(
            each_part([*step.places, *(f for opening in opened for f in opening.targets)])
        )
        undone = passed(opened, tangents)
        before.restore()
        self._open()
        here, clock, along = Kept(step.places), self._stepper.clock, []
        for _ in range(steps):
            along.append(tangents.copy())
            step.push(step.record(), tangents)
            self._stepper._clock = self._stepper.clock.after(1)
        self._stepper.system.set_time(self._stepper.t)
        pull_rates_of(passed(closed, tangents), bars, rates)
        here.restore()
        self._stepper._clock = clock
        for at in self._backwards(origin, steps):
            self._stepper._clock = at
            step.pull_rates(step.record(), bars, rates, along.pop())
        before.restore()
        for opening in opened:
            opening.apply()
        pull_rates_of(undone, bars, rates)
        self._coefficients.pull_rates(bars, rates, given, reached)

    def push(
        self, origin: Origin, steps: int, tangents: Vectors, wanted: Sequence[Function]
    ) -> None:
        """The tangents after the steps, from those of all inputs, inside :meth:`at`."""
        reached = self._coefficients.reached_by(wanted)
        step = self._step(reached)
        self._coefficients.push(tangents, reached)
        opened, closed = (self._derived(d, reached) for d in (origin.openings, self._closings))
        before = Kept(
            each_part([*step.places, *(f for opening in opened for f in opening.targets)])
        )
        for opening in opened:
            opening.push(tangents)
            opening.apply()
        before.restore()
        self._open()
        for _ in range(steps):
            step.push(step.record(), tangents)
            self._stepper._clock = self._stepper.clock.after(1)
        self._stepper.system.set_time(self._stepper.t)
        for closing in closed:
            closing.push(tangents)
            closing.apply()

    @staticmethod
    def _pull_closings(closed: Sequence, bars: Vectors, after_each) -> None:
        """The cotangents before what is done after a step, those of an objective there included."""
        undone = []
        for closing in closed:
            undone.append(Kept(closing.targets))
            closing.apply()
        if after_each is not None:
            after_each(bars)
        for closing, kept in zip(reversed(closed), reversed(undone), strict=True):
            kept.restore()
            closing.pull(bars)

    def _step(self, reached: set[int]) -> StepDerivative:
        name = frozenset(reached)
        if name not in self._steps:
            moving = [*self.state, *self._carried]
            self._steps[name] = StepDerivative(self._stepper, moving, reached)
        return self._steps[name]

    def _backwards(self, origin: Origin, steps: int) -> Iterator[Clock]:
        """Stand before each step, the last one first.

        All states are kept, or if they are too many every k-th, k² being the number of steps, and
        those between are made again, by the same steps to the last bit.
        """
        moving = [*self.state, *self._carried]
        size = Kept(moving).nbytes * steps
        stride = steps if size <= MEMORY else math.isqrt(steps) + 1
        kept, clocks = [], []
        for first in range(0, steps, stride):
            kept.append(Kept(moving))
            clocks.append(self._stepper.clock)
            if first + stride < steps:
                self._stepper._advance(stride)
        for number in reversed(range(len(kept))):
            kept[number].restore()
            self._stepper._clock = clocks[number]
            self._agree()
            last = min(stride, steps - number * stride)
            inner = []
            for k in range(last):
                inner.append((Kept(moving), self._stepper.clock))
                if k + 1 < last:
                    self._stepper._advance(1)
            for values, clock in reversed(inner):
                values.restore()
                yield clock

    @property
    def name(self) -> str:
        """What takes the steps."""
        return type(self._stepper).__name__

    def title(self, steps: int) -> str:
        """What is done, in words."""
        return f"{steps} steps of {self.name}"
