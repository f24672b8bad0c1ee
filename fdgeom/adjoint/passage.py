"""Derivatives of steps of a stepper, from given values of all inputs."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from firedrake import Form, Function
from mpi4py import MPI

from fdgeom.adjoint.deeds import (
    applied,
    derived,
    passed,
    pull_of,
    pull_rates_of,
    push_along,
    written_by,
)
from fdgeom.adjoint.list_derivative import ListDerivative
from fdgeom.adjoint.origin import Origin
from fdgeom.adjoint.taken_again import TakenAgain
from fdgeom.adjoint.values import Kept, Vectors, keys, parts
from fdgeom.adjoint.way_back import WayBack
from fdgeom.clock import Clock
from fdgeom.solvers import key
from fdgeom.solvers.compiled import CannotCompile, falling_back

# Tolerances relative to the size of a field, and to the largest field: see `_largest_change`.
_SAME, _STILL = 1e-6, 1e-12


class Passage(TakenAgain):
    """Steps of one stepper as a function of their inputs, with derivatives."""

    def __init__(self, stepper) -> None:
        if stepper._fused is not None:
            # Before the coefficients are looked for: it may make fields that depend on them.
            stepper._fused.prepare_adjoint()
        super().__init__(stepper)
        #: A cache of functionals and their derivatives.
        self.kept: dict[tuple, tuple] = {}
        #: Why derivatives are taken operation by operation; None if compiled code computes them.
        self.why_not_compiled: str | None = None
        self._steps: dict[frozenset[int], ListDerivative] = {}
        self._done: dict[tuple, tuple] = {}

    def pull(
        self,
        origin: Origin,
        steps: int,
        bars: Vectors,
        wanted: Sequence[Function],
        after_each: Callable[[Vectors], None] | None = None,
    ) -> None:
        """The cotangents of all inputs from those of the outputs, ``bars``, inside :meth:`at`."""
        # wanted: coefficients that derivatives are taken by. after_each(bars) adds cotangents after
        # each step, at the state there.
        reached = self._coefficients.reached_by(wanted)
        self.refuse_jump(origin, reached)
        way = self.way_back(steps, bars.keys(), wanted) if after_each is None else None
        if way is not None:
            self.run(steps, way)
            self.follow(way, origin, bars, wanted)
            return
        step, _, closed, before = self._around(origin, reached)
        self._open()

        def after() -> None:
            done = applied(closed)
            if after_each is not None:
                after_each(bars)
            pull_of(done, bars)

        last = True
        for clock in self._backwards(steps):
            seen = after if after_each is not None or last else None
            step.pull(bars, *self._begin(clock), seen, self._seeds)
            last = False
        self._pull_openings(origin, before, bars, reached)

    def pull_rates(
        self,
        origin: Origin,
        steps: int,
        bars: Vectors,
        rates: Vectors,
        tangents: Vectors,
        wanted: Sequence[Function],
    ) -> None:
        """:meth:`pull`, and its derivative along tangents of all inputs: cotangents and their rates."""
        reached = self.reached_by(wanted)
        self.refuse_jump(origin, reached)
        step, opened, closed, before = self._around(origin, reached)
        self._coefficients.push(tangents, reached)
        given = tangents.copy()
        undone = passed(opened, tangents)
        before.restore()
        self._open()
        way = self._way_of_tangents(steps, reached, self._memory)
        if way is not None:
            way.put_tangents(tangents)
            self.run(steps, way)
            way.get_tangents(tangents)
            pull_rates_of(passed(closed, tangents), bars, rates)
            way.pull_both(bars, rates)
        else:
            here, clock, along = Kept(self._places(step)), self._stepper.clock, []
            for at in self._forwards(steps):
                along.append(tangents.copy())
                step.push(tangents, *at)
            pull_rates_of(passed(closed, tangents), bars, rates)
            here.restore()
            self._stepper._clock = clock
            for at in self._backwards(steps):
                step.pull_rates(bars, rates, along.pop(), *self._begin(at), self._seeds)
        before.restore()
        applied(opened)
        pull_rates_of(undone, bars, rates)
        self._coefficients.pull_rates(bars, rates, given, reached)

    def push(
        self, origin: Origin, steps: int, tangents: Vectors, wanted: Sequence[Function]
    ) -> None:
        """The tangents after the steps from those of all inputs, inside :meth:`at`."""
        reached = self._coefficients.reached_by(wanted)
        self.refuse_jump(origin, reached)
        step, opened, closed, before = self._around(origin, reached)
        self._coefficients.push(tangents, reached)
        push_along(opened, tangents)
        before.restore()
        self._open()
        way = self._way_of_tangents(steps, reached, memory=0)
        if way is not None:
            way.put_tangents(tangents)
            self.run(steps, way)
            way.get_tangents(tangents)
        else:
            for at in self._forwards(steps):
                step.push(tangents, *at)
        push_along(closed, tangents)

    def refuse_jump(self, origin: Origin, reached: set[int]) -> None:
        """Raise ``NotImplementedError`` if the result jumps at functions set to their former values."""
        # Inside `at`. A value that equals the former one goes unnoticed, any other does not, and the
        # method may begin differently then.
        if not origin.unseen:
            return
        stepper, snapshots = self._stepper, self.snapshots()
        opened = self._derived(origin.openings, reached)
        places = _each_part([*self._moving, *(f for opening in opened for f in opening.targets)])
        before, clock, mark = Kept(places), stepper.clock, stepper.mark
        remembered = [snapshot.values() for snapshot in snapshots]
        self._open()
        unset = Kept(_each_part(self._moving))
        before.restore()
        stepper._clock = clock
        applied(opened)
        jump, size = _largest_change(unset, stepper.dt, stepper.system.mesh.comm)
        before.restore()
        stepper.mark = mark
        for snapshot, values in zip(snapshots, remembered, strict=True):
            snapshot.remember(values)
        if jump > size:
            names = ", ".join(f.name() for f in self._with_keys(origin.unseen))
            raise NotImplementedError(
                f"gradients by {names} are not there: it was set to the values that the steps had left, "
                f"and {self.name} goes on from these, but begins anew from any others; so the result "
                "jumps there. Set other values, or make a new stepper before it is set"
            )

    def _around(self, origin: Origin, reached: set[int]) -> tuple:
        """The derivatives of a step and of operations before and after all steps, and the changed values."""
        step = self._step(reached)
        opened, closed = (self._derived(d, reached) for d in (origin.openings, self._closings))
        changed = [*self._places(step), *(f for opening in opened for f in opening.targets)]
        return step, opened, closed, Kept(_each_part(changed))

    def _forwards(self, steps: int) -> Iterator[tuple[float, float]]:
        """Yield the time and the length of each step, which the caller takes."""
        for _ in range(steps):
            yield self._begin(self._stepper.clock)
            self._stepper._clock = self._stepper.clock.after(1)
        self._stepper.system.set_time(self._stepper.t)

    def _begin(self, clock: Clock) -> tuple[float, float]:
        """Set the clock for a step; returns its time and length."""
        self._stepper._clock = clock
        self._stepper.system.set_time(clock.after(1).t)
        return clock.t, clock.dt

    def _step(self, reached: set[int]) -> ListDerivative:
        name = frozenset(reached)
        if name not in self._steps:
            stepper, active = self._stepper, reached | self._seeds
            self._steps[name] = ListDerivative(
                stepper.operations, active, runs=stepper._executor.runs
            )
        return self._steps[name]

    @property
    def _seeds(self) -> set[int]:
        return keys(self._moving)

    def _places(self, step: ListDerivative) -> list[Function]:
        """All functions that a step changes."""
        return _each_part([*self._moving, *step.targets])

    def _derived(self, deeds: Sequence, reached: set[int]) -> list:
        """Operations before or after steps, with their derivatives."""
        active = reached | keys(self.state) | keys(f for deed in deeds for f in written_by(deed))
        return [self._derived_one(deed, active) for deed in deeds]

    def _derived_one(self, deed, active: set[int]):
        name = id(deed), frozenset(active)
        if name not in self._done:
            # The cache keeps the operation alive, so that no other one gets its id.
            self._done[name] = deed, derived(deed, active)
        return self._done[name][1]

    def _pull_openings(
        self, origin: Origin, before: Kept, bars: Vectors, reached: set[int]
    ) -> None:
        before.restore()
        pull_of(applied(self._derived(origin.openings, reached)), bars)
        self._coefficients.pull(bars, reached)

    # --- in compiled code ------------------------------------------------------------------------
    def way_back(
        self,
        steps: int,
        seeded: set[int],
        wanted: Sequence[Function],
        running: Form | None = None,
    ) -> WayBack | None:
        """The compiled reverse sweep through steps from here; if None, :attr:`why_not_compiled` says why."""
        # seeded: keys of functions with cotangents after the steps. running: a functional that is
        # evaluated after each step.
        stepper = self._stepper
        if stepper._fused is not None and not stepper._fused.is_ready:
            with stepper._falling_back():
                stepper._fused.make_ready()
        self.why_not_compiled = stepper.why_not_compiled
        if stepper._fused is None:
            return None
        if self._closings and running is not None:
            self.why_not_compiled = "what is done after the last step is not compiled"
            return None
        reached = self._coefficients.reached_by(wanted)
        if self._closings:
            # Final operations pass cotangents of their results on to functions of the state.
            seeded = keys(self._moving)
        found = None
        with falling_back(
            self._say_why_not,
            stepper.system.mesh.comm,
            required=False,
            what="the way back",
            instead="derivatives are taken operation by operation",
        ):
            found = WayBack(
                stepper._fused, steps, seeded, reached, self._moving, self._memory, running
            )
        return found

    def _way_of_tangents(self, steps: int, reached: set[int], memory: int) -> WayBack | None:
        """Compiled steps with their tangents, and the adjoint of both; None if there are none."""
        compiled = self._stepper._fused
        if compiled is None or not compiled.is_ready:
            return None
        try:
            return WayBack(
                compiled, steps, self._seeds, reached, self._moving, memory, tangents=True
            )
        except CannotCompile:
            return None

    def _say_why_not(self, why: str) -> None:
        self.why_not_compiled = why

    def follow(
        self, way: WayBack, origin: Origin, bars: Vectors, wanted: Sequence[Function]
    ) -> None:
        """Like :meth:`pull`, after steps that were recorded by ``way``."""
        reached = self._coefficients.reached_by(wanted)
        pull_of(applied(self._derived(self._closings, reached)), bars)
        way.pull(bars)
        self._pull_openings(origin, way.before, bars, reached)


def _each_part(functions: Sequence[Function]) -> list[Function]:
    """The parts of functions, each once."""
    return list({key(part): part for f in functions for part in parts(f)}.values())


def _largest_change(before: Kept, dt: float, comm) -> tuple[float, float]:
    """The largest change of Functions, and the change that round-off may cause."""
    # Round-off is that of the solves, or, for accelerations at rest, what moves nothing in a step.
    found = [
        (
            np.abs(now - was).max(initial=0.0),
            max(np.abs(now).max(initial=0.0), np.abs(was).max(initial=0.0)),
        )
        for now, was in before.pairs()
    ]
    gaps, sizes = (np.array(x, dtype=float) for x in zip(*found, strict=True))
    for values in (gaps, sizes):
        comm.Allreduce(MPI.IN_PLACE, values, op=MPI.MAX)
    allowed = np.maximum(_SAME * sizes, _STILL / dt**2 * sizes.max())
    worst = int(np.argmax(gaps - allowed))
    return float(gaps[worst]), float(allowed[worst])
