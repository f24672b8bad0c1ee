"""Steps of a chain that are kept, and cotangents taken back through them."""

from collections.abc import Sequence

import numpy as np
from firedrake import Constant

from fdgeom.solvers.chain.back import ChainBack
from fdgeom.solvers.chain.structs import Test
from fdgeom.solvers.chain.unit import ChainUnit
from fdgeom.solvers.data import Number, key
from fdgeom.solvers.strides import Strides


class ChainSweep:
    """The way back through the steps of a chain, compiled.

    Parameters
    ----------
    unit : ChainUnit
        What takes the steps.
    back : ChainBack
        What takes cotangents back through one of them.
    dt : Number
        How far a step moves, in the equations.
    fraction : float
        Of a step, that the solve moves.

    Attributes
    ----------
    given, found : list of (Function, Function)
        As of `solvers.reverse.Sweep`.
    """

    def __init__(self, unit: ChainUnit, back: ChainBack, dt: Number, fraction: float) -> None:
        self.unit, self.back, self._dt, self._fraction = unit, back, dt, fraction
        self.given = self.found = list(back.bars.items())
        solved = {key(part.function) for part in unit.parts}
        read = {key(f): f for f in back.reads}
        #: Arrays that steps change.
        self.values: list[np.ndarray] = []
        #: For some of them, by number: how many steps after the beginning of one it reads them, where to.
        self.reads: list[tuple[int, int, np.ndarray]] = []
        for f in unit.moving:
            arrays = [unit.layout.array(f, g) for g in range(len(unit.layout.groups))]
            if key(f) in read:
                after = int(key(f) in solved)
                places = back.arrays(read[key(f)])
                start = len(self.values)
                self.reads += [(start + k, after, place) for k, place in enumerate(places)]
            self.values += arrays

    def trail(self, steps: int, memory: int) -> "ChainTrail":
        """For some steps: what they keep takes up to ``memory`` bytes, or as little as can be."""
        return ChainTrail(self, steps, memory)

    def begin(self, dt: float) -> None:
        """Before steps of ``dt`` are taken back."""
        self._dt.set(self._fraction * dt)
        self.back.begin()


class ChainTrail:
    """Some steps of a chain whose way back is wanted.

    Parameters
    ----------
    sweep : ChainSweep
        The way back.
    steps : int
        How many.
    memory : int
        So many bytes may be kept: see `Strides`.
    """

    def __init__(self, sweep: ChainSweep, steps: int, memory: int) -> None:
        self._sweep, self._taken = sweep, 0
        size = 8 * sum(values.size for values in sweep.values)
        strides = self._strides = Strides.fitting(steps, size, memory, sweep.unit.comm)
        self._slots = [np.empty((strides.stride + 1, *values.shape)) for values in sweep.values]
        self._states = [np.empty((strides.last, *values.shape)) for values in sweep.values]
        self._times: list[float] = []
        #: What follows steps that were not taken in compiled code.
        self._others: dict[int, list[np.ndarray]] = {}

    # --- there -------------------------------------------------------------------------------------
    def advance(
        self, test: Test, steps: int, begin: float, dt: float, clock: Constant | None, share: float
    ) -> tuple[int, int, int]:
        """Take some of the steps, in place of :meth:`ChainUnit.advance`."""
        self._last = test, dt, clock, share
        iterations = 0
        for k in range(steps):
            self.before()
            now = begin + k * dt
            reason, done, more = self._sweep.unit.advance(test, 1, now, dt, clock, share)
            iterations += more
            if not done:
                return reason, k, iterations
            self.after(now)
        return reason, steps, iterations

    def before(self) -> None:
        """Note where a step begins."""
        number, inside = self._strides.place(self._taken)
        if inside:
            return
        if number == self._strides.last:
            self._put(self._slots, 0)
        else:
            self._put(self._states, number)

    def after(self, begin: float, *, otherwise: bool = False) -> None:
        """Note what follows a step from a time, that was taken here or ``otherwise``."""
        if otherwise:
            self._others[self._taken] = [np.array(values) for values in self._sweep.values]
        number, inside = self._strides.place(self._taken)
        if number == self._strides.last:
            self._put(self._slots, inside + 1)
        self._taken += 1
        self._times.append(begin)

    def _put(self, kept: Sequence[np.ndarray], number: int) -> None:
        for rows, values in zip(kept, self._sweep.values, strict=True):
            rows[number] = values

    # --- and back ----------------------------------------------------------------------------------
    def pull(self) -> float:
        """The cotangents before the steps from those after them; returns the sum of nothing."""
        _, dt, _, _ = self._last
        self._sweep.begin(dt)
        for number, first, steps in self._strides.backwards():
            if number < self._strides.last:
                for values, states in zip(self._sweep.values, self._states, strict=True):
                    values[...] = states[number]
                self._again(first, steps)
            self._back(first, steps)
        self._sweep.back.end()
        return 0.0

    def _again(self, first: int, steps: int) -> None:
        """Take the steps after a state again."""
        test, dt, clock, share = self._last
        self._put(self._slots, 0)
        for k in range(steps):
            others = self._others.get(first + k)
            if others is None:
                self._sweep.unit.advance(test, 1, self._times[first + k], dt, clock, share)
            else:
                for values, other in zip(self._sweep.values, others, strict=True):
                    values[...] = other
            self._put(self._slots, k + 1)

    def _back(self, first: int, steps: int) -> None:
        """Through steps that have kept all."""
        _, dt, clock, share = self._last
        back = self._sweep.back
        time = None if clock is None else Number(clock)
        for k in reversed(range(steps)):
            for number, after, place in self._sweep.reads:
                place[...] = self._slots[number][k + after]
            if time is not None:
                time.set(self._times[first + k] + share * dt)
            if not back.step():
                raise ValueError(
                    "the derivative of a step could not be solved for: its matrix is singular"
                )
