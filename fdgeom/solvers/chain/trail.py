"""Record of steps of a chain, and their reverse sweep."""

import ctypes

import numpy as np
from firedrake import Constant

from fdgeom.solvers.chain.back import ChainBack
from fdgeom.solvers.chain.rows import Rows
from fdgeom.solvers.chain.structs import Reads, Test
from fdgeom.solvers.chain.unit import ChainUnit
from fdgeom.solvers.data import Number, key
from fdgeom.solvers.strides import Strides


class ChainSweep:
    """The compiled reverse sweep through steps of a chain."""

    # dt is the Constant of the equations, set to `fraction` times the step; `given` and `found` are as
    # in `reverse.Sweep`.
    def __init__(self, unit: ChainUnit, back: ChainBack, dt: Number, fraction: float) -> None:
        self.unit, self.back, self._dt, self._fraction = unit, back, dt, fraction
        self.given = self.found = list(back.bars.items())
        solved = {key(part.function) for part in unit.parts}
        read = {key(f): f for f in back.reads}
        #: Arrays that steps change, those of them that the reverse sweep reads, and for each of these
        #: whether it reads the value after the step (1) or before it (0).
        self.values: list[np.ndarray] = []
        self.read: list[np.ndarray] = []
        self.after: list[int] = []
        places: list[int] = []
        for f in unit.moving:
            arrays = [unit.layout.array(f, g) for g in range(len(unit.layout.groups))]
            self.values += arrays
            if key(f) in read:
                self.read += arrays
                self.after += [int(key(f) in solved)] * len(arrays)
                places += back.places(read[key(f)])
        self._places = (ctypes.c_void_p * len(places))(*places)

    def trail(self, steps: int, memory: int) -> "ChainTrail":
        """The record of some steps, which uses ``memory`` bytes for states, or more if that is too little."""
        return ChainTrail(self, steps, memory)

    def begin(self, dt: float) -> None:
        """Prepare the reverse sweep through steps of ``dt``."""
        self._dt.set(self._fraction * dt)
        self.back.begin()

    def through(self, rows: Rows, steps: int, times: np.ndarray | None, clock) -> bool:
        """Compute the cotangents before the steps between rows; False if the matrix of a step is singular."""
        found = rows.addresses(self.after)
        addresses = (ctypes.c_void_p * len(found))(*found)
        reads = Reads(
            places=ctypes.cast(self._places, ctypes.c_void_p),
            rows=ctypes.cast(addresses, ctypes.c_void_p),
            n=len(found),
            length=rows.length,
            times=None if times is None else times.ctypes.data,
            clock=None if clock is None else clock.dat._data.ctypes.data,
        )
        return self.back.steps(reads, steps)


class ChainTrail:
    """The record of steps of a chain for a reverse sweep."""

    def __init__(self, sweep: ChainSweep, steps: int, memory: int) -> None:
        self._sweep, self._taken = sweep, 0
        size = 8 * sum(values.size for values in sweep.read)
        strides = self._strides = Strides.fitting(steps, size, memory, sweep.unit.comm)
        #: Values that the sweep reads of the steps of the last stride; states before the other strides.
        self._slots = Rows(sweep.read, strides.stride + 1)
        self._states = Rows(sweep.values, strides.last)
        self._times = np.zeros(steps)
        #: States after steps that did not run in compiled code, by their numbers.
        self.others: dict[int, Rows] = {}

    # --- there -------------------------------------------------------------------------------------
    def begin(self, test: Test, dt: float, clock: Constant | None) -> None:
        """Set test, Δt and clock of the steps, before the first of them."""
        self._told = test, dt, clock

    def advance(self, steps: int, times: np.ndarray | None) -> tuple[int, int, int]:
        """Run and record steps, in place of :meth:`ChainUnit.advance`."""
        test, _, clock = self._told
        reason = done = iterations = 0
        while done < steps:
            self.before()
            number, inside = self._strides.place(self._taken)
            some = min(steps - done, self._strides.stride - inside)
            kept = self._slots.kept(inside) if number == self._strides.last else None
            now = None if times is None else times[done:]
            reason, more, spent = self._sweep.unit.advance(test, some, now, clock, kept)
            if now is not None:
                self._times[self._taken : self._taken + more] = now[:more]
            self._taken += more
            done += more
            iterations += spent
            if more < some:
                break
        return reason, done, iterations

    def before(self) -> None:
        """Save the state before a step, if it is the first of a stride."""
        number, inside = self._strides.place(self._taken)
        if inside:
            return
        if number == self._strides.last:
            self._slots.put(0)
        else:
            self._states.put(number)

    def after_another(self, time: float) -> None:
        """Save the state after a step outside compiled code, whose equations hold ``time``."""
        others = self.others[self._taken] = Rows(self._sweep.values, 1)
        others.put(0)
        number, inside = self._strides.place(self._taken)
        if number == self._strides.last:
            self._slots.put(inside + 1)
        self._times[self._taken] = time
        self._taken += 1

    # --- and back ----------------------------------------------------------------------------------
    def pull(self) -> float:
        """Compute the cotangents before the steps; returns 0, as there is no running functional."""
        _, dt, clock = self._told
        self._sweep.begin(dt)
        for number, first, steps in self._strides.backwards():
            if number < self._strides.last:
                self._states.restore(number)
                self._again(first, steps)
            times = None if clock is None else self._times[first:]
            if not self._sweep.through(self._slots, steps, times, clock):
                raise ValueError("the matrix of the derivative of a step is singular")
        self._sweep.back.end()
        return 0.0

    def _again(self, first: int, steps: int) -> None:
        """Repeat the steps of a stride from its first state."""
        test, _, clock = self._told
        self._slots.put(0)
        k = 0
        while k < steps:
            others = self.others.get(first + k)
            if others is not None:
                others.restore(0)
                k += 1
                self._slots.put(k)
                continue
            end = min([n - first for n in self.others if n > first + k], default=steps)
            some = min(end, steps) - k
            times = None if clock is None else self._times[first + k :]
            self._sweep.unit.advance(test, some, times, clock, self._slots.kept(k))
            k += some
