"""Steps of a chain that are kept, and cotangents taken back through them."""

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
    values : list of numpy.ndarray
        Arrays that steps change.
    read : list of numpy.ndarray
        Those of them that the way back reads.
    after : list of int
        For each of these 1 if it is what a step has made of it, 0 if what it began from.
    """

    def __init__(self, unit: ChainUnit, back: ChainBack, dt: Number, fraction: float) -> None:
        self.unit, self.back, self._dt, self._fraction = unit, back, dt, fraction
        self.given = self.found = list(back.bars.items())
        solved = {key(part.function) for part in unit.parts}
        read = {key(f): f for f in back.reads}
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
        """For some steps: what they keep takes up to ``memory`` bytes, or as little as can be."""
        return ChainTrail(self, steps, memory)

    def begin(self, dt: float) -> None:
        """Before steps of ``dt`` are taken back."""
        self._dt.set(self._fraction * dt)
        self.back.begin()

    def through(self, rows: Rows, steps: int, times: np.ndarray | None, clock) -> bool:
        """Take the cotangents back through the steps between rows; False if one is singular."""
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
    """Some steps of a chain whose way back is wanted.

    Parameters
    ----------
    sweep : ChainSweep
        The way back.
    steps : int
        How many.
    memory : int
        So many bytes may be kept: see `Strides`.

    Attributes
    ----------
    others : dict
        What follows steps that were not taken in compiled code, by their numbers.
    """

    def __init__(self, sweep: ChainSweep, steps: int, memory: int) -> None:
        self._sweep, self._taken = sweep, 0
        size = 8 * sum(values.size for values in sweep.read)
        strides = self._strides = Strides.fitting(steps, size, memory, sweep.unit.comm)
        #: What the steps of the last stride read and leave, and the states before each other one.
        self._slots = Rows(sweep.read, strides.stride + 1)
        self._states = Rows(sweep.values, strides.last)
        self._times = np.zeros(steps)
        self.others: dict[int, Rows] = {}

    # --- there -------------------------------------------------------------------------------------
    def begin(self, test: Test, dt: float, clock: Constant | None) -> None:
        """What steps are told; before any of them."""
        self._told = test, dt, clock

    def advance(self, steps: int, times: np.ndarray | None) -> tuple[int, int, int]:
        """Take some of the steps, in place of :meth:`ChainUnit.advance`."""
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
        """Note where a step begins."""
        number, inside = self._strides.place(self._taken)
        if inside:
            return
        if number == self._strides.last:
            self._slots.put(0)
        else:
            self._states.put(number)

    def after_another(self, time: float) -> None:
        """Note what follows a step that was taken otherwise, with this time in its equations."""
        others = self.others[self._taken] = Rows(self._sweep.values, 1)
        others.put(0)
        number, inside = self._strides.place(self._taken)
        if number == self._strides.last:
            self._slots.put(inside + 1)
        self._times[self._taken] = time
        self._taken += 1

    # --- and back ----------------------------------------------------------------------------------
    def pull(self) -> float:
        """The cotangents before the steps from those after them; returns the sum of nothing."""
        _, dt, clock = self._told
        self._sweep.begin(dt)
        for number, first, steps in self._strides.backwards():
            if number < self._strides.last:
                self._states.restore(number)
                self._again(first, steps)
            times = None if clock is None else self._times[first:]
            if not self._sweep.through(self._slots, steps, times, clock):
                raise ValueError(
                    "the derivative of a step could not be solved for: its matrix is singular"
                )
        self._sweep.back.end()
        return 0.0

    def _again(self, first: int, steps: int) -> None:
        """Take the steps after a state again."""
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
