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
from fdgeom.adjoint.pointwise import Assigned
from fdgeom.adjoint.shelf import Shelf
from fdgeom.adjoint.steps import StepDerivative
from fdgeom.adjoint.values import Kept, Vectors, key, keys, parts
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
        What it changes before the first step where these are.
    """

    clock: Clock
    constants: list[np.ndarray]
    carried: Kept
    touched: Sequence[Function]
    remembered: list
    openings: list


class Passage:
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
        #: As the system has them: perhaps parts of what ``state`` names.
        self.views = [f for f in moving if not keys([f]) <= unknowns]
        self.state = _wholes(self.views)
        written = [f for solve in solves for f in solve.written]
        more = keys(written) | keys(e.target for s in solves for e in s.essential if e.target)
        self._coefficients = Coefficients(solves, keys(moving) | unknowns | more, system.clocks)
        self.inputs = _wholes([*self.state, *self._coefficients.functions])
        self.fields = [f for f in self._coefficients.fields if not keys([f]) & keys(self.inputs)]
        #: What pyadjoint knew the state by after the last steps on its tape, and its values.
        self.seen: dict[int, tuple] = {}
        #: What they last began from when a tape took them again.
        self.shelf = Shelf()
        #: What was made of functionals of the steps' result.
        self.kept: dict[tuple, tuple] = {}
        #: Why derivatives are taken solve by solve, and not in compiled code; None if they are not.
        self.why_not_compiled: str | None = None
        self._steps: dict[frozenset[int], StepDerivative] = {}
        self._assigned: dict[tuple, tuple] = {}

    # --- where they begin ------------------------------------------------------------------------
    def origin(self, touched: Sequence[Function]) -> Origin:
        """The present one; ``touched`` of :attr:`views` are set, to whatever."""
        constants = [np.array(c.dat.data_ro) for c in self._coefficients.constants]
        system = self._stepper.system
        set_now = [f for snapshot in system.remembered() for f in snapshot.changed_parts()]
        touched = self.touched_by([*touched, *set_now])
        return Origin(
            self._stepper.clock,
            constants,
            Kept(self._carried),
            touched,
            [snapshot.values() for snapshot in system.remembered()],
            system.openings(touched),
        )

    @contextmanager
    def at(self, origin: Origin, inputs: Sequence[Function]) -> Iterator[None]:
        """Context in which the stepper stands there; afterwards it is again where it was."""
        stepper, system = self._stepper, self._stepper.system
        self._coefficients.refresh()
        live = Kept([*self.inputs, *self.fields, *self._carried])
        clock, remembered = stepper.clock, [s.values() for s in system.remembered()]
        constants = [np.array(c.dat.data_ro) for c in self._coefficients.constants]
        try:
            for f, value in zip(self.inputs, inputs, strict=True):
                if value is not f:
                    for part, new in zip(parts(f), parts(value), strict=True):
                        part.dat.data_wo[...] = new.dat.data_ro
            origin.carried.restore()
            self._set(origin.clock, origin.constants)
            if any(value is not f for f, value in zip(self.inputs, inputs, strict=True)):
                self._coefficients.renew()
            # All agrees, but for what is set.
            system.settle()
            for snapshot, values in zip(system.remembered(), origin.remembered, strict=True):
                snapshot.remember(values, of=origin.touched)
            yield
        finally:
            with shielded():
                live.restore()
                self._set(clock, constants)
                self._coefficients.accept()
                for snapshot, values in zip(system.remembered(), remembered, strict=True):
                    snapshot.remember(values)

    def _set(self, clock: Clock, constants: Sequence[np.ndarray]) -> None:
        for constant, values in zip(self._coefficients.constants, constants, strict=True):
            constant.dat.data[...] = values
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

    def _opened(self, origin: Origin, active: set[int]) -> list:
        """The openings with their derivatives."""
        return [self._derived_opening(opening, active) for opening in origin.openings]

    def _derived_opening(self, opening, active: set[int]):
        if not isinstance(opening, dict):
            return opening
        name = id(opening), frozenset(active)
        if name not in self._assigned:
            # With the opening itself, so that no other one gets its number.
            self._assigned[name] = opening, Assigned(opening, active)
        return self._assigned[name][1]

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
        before = Kept(step.places)
        self._stepper.system.prepare()
        for clock in self._backwards(origin, steps):
            self._stepper._clock = clock
            records = step.record()
            if after_each is not None:
                after_each(bars)
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
        opened = self._opened(origin, reached | keys([*self.state]))
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

    def push(
        self, origin: Origin, steps: int, tangents: Vectors, wanted: Sequence[Function]
    ) -> None:
        """The tangents after the steps, from those of all inputs, inside :meth:`at`."""
        reached = self._coefficients.reached_by(wanted)
        step = self._step(reached)
        self._coefficients.push(tangents, reached)
        for opening in self._opened(origin, reached | keys([*self.state])):
            opening.push(tangents)
            opening.apply()
        for _ in range(steps):
            step.push(step.record(), tangents)
            self._stepper._clock = self._stepper.clock.after(1)

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
            self._stepper.system.settle()
            last = min(stride, steps - number * stride)
            inner = []
            for k in range(last):
                inner.append((Kept(moving), self._stepper.clock))
                if k + 1 < last:
                    self._stepper._advance(1)
            for values, clock in reversed(inner):
                values.restore()
                yield clock

    def reached_by(self, wanted: Sequence[Function]) -> set[int]:
        """The keys of these data and of all fields that follow them."""
        return self._coefficients.reached_by(wanted)

    def touched_by(self, functions: Sequence[Function]) -> list[Function]:
        """Which of :attr:`views` are, or are parts of, these."""
        touched = keys(functions)
        return [view for view in self.views if keys([view]) & touched]

    def data(self, functions: Sequence[Function]) -> list[Function]:
        """Those that are no state."""
        own = keys(self.state)
        return [f for f in functions if not keys([f]) & own]

    @property
    def outputs(self) -> list[Function]:
        """What steps give: the state, and the fields, made anew."""
        return [*self.state, *self.fields]

    @property
    def name(self) -> str:
        """What takes the steps."""
        return type(self._stepper).__name__

    def title(self, steps: int) -> str:
        """What is done, in words."""
        return f"{steps} steps of {self.name}"


def _wholes(functions: Sequence[Function]) -> list[Function]:
    """Each once; in place of a view of a part of a mixed Function the whole."""
    found: dict[int, Function] = {}
    for f in functions:
        whole = whole_of(f)
        found.setdefault(key(parts(whole)[0]), whole)
    return list(found.values())


def whole_of(function: Function) -> Function:
    """The mixed Function that this is a view of a part of; else itself."""
    if function._ad_floating_active and function._ad_outputs:
        return function._ad_outputs[0]
    return function
