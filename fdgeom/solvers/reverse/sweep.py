"""Forward and reverse sweeps of steps in compiled code."""

from collections.abc import Sequence, Set

import numpy as np
from firedrake import Form

from fdgeom.solvers.compiled.refused import CannotCompile
from fdgeom.solvers.compiled.unit import REASONS, Unit
from fdgeom.solvers.reverse.reversed_step import ReversedStep
from fdgeom.solvers.reverse.slots import Memory, Slots, tell
from fdgeom.solvers.strides import Strides

# The largest number of steps between two checks for Ctrl-C.
_CHUNK = 256
# Slots of more bytes exceed the cache.
_CACHE = 2**24


class Sweep:
    """The compiled reverse sweep through steps of a unit; arguments as of `ReversedStep`."""

    def __init__(
        self,
        unit: Unit,
        moves: Sequence[tuple],
        seeded: Set[int],
        wanted: Set[int],
        memory: Memory,
        running: Form | None = None,
    ) -> None:
        self.unit = unit
        step = ReversedStep(unit.program, moves, seeded, wanted, running)
        self.back: Unit | None = None
        self.plan, self.size = unit.plan(moves), 0
        if step.backs:
            self.back = Unit(step.program, chain=unit.is_chain)
            if self.back.is_chain != unit.is_chain:
                raise CannotCompile("the reverse sweep stores the values in another order")
            self._slots = Slots(unit, moves, self.back, step.backs, step.program.reads)
            self.size = self._slots.size
            self.plan_back = self.back.plan([(b.phase, b.dt, b.fraction) for b in step.backs])
            tell(self.plan_back, read=self._slots.read)
            tell(self.plan, kept=self._slots.kept)
        # Functions and their cotangents after the steps, set before Trail.pull, and before the steps;
        # functions that are missing in `found` have none.
        self.given = [(step.functions[k], step.bars[k]) for k in step.after if k in step.bars]
        self.found = [(step.functions[k], step.bars[k]) for k in step.alive if k in step.bars]
        self.memory, self._totals = memory, step.totals

    def take_total(self) -> float:
        """The sum of the running functional over the steps since the last call."""
        found = 0.0
        for number in self._totals:
            report = self.back.reports[number]
            found, report.sum = found + report.sum, 0.0
        return self.unit.comm.allreduce(found)

    def trail(self, steps: int, memory: int) -> "Trail":
        """The record of some steps, which uses ``memory`` bytes for states, or more if that is too little."""
        return Trail(self, steps, memory)


class Trail:
    """The record of steps for a reverse sweep."""

    def __init__(self, sweep: Sweep, steps: int, memory: int) -> None:
        self._sweep, self._taken, self._dt = sweep, 0, 0.0
        strides = Strides.fitting(steps, 8 * sweep.size, memory, sweep.unit.comm)
        self._strides, states = strides, strides.last
        slots = (strides.stride + 1) * sweep.size
        self._size = sum(values.size for values in sweep.unit.written_values()) if states else 0
        self._memory = sweep.memory.take(slots + states * self._size)
        self._past = 8 * slots > _CACHE
        #: The states before all strides but the last one.
        self._states = self._memory[slots : slots + states * self._size].reshape(states, self._size)

    def advance(self, steps: int, plan, dt: float) -> tuple[int, int, int]:
        """Run and record steps, in place of :meth:`Unit.advance`."""
        unit, done, self._dt = self._sweep.unit, 0, dt
        while done < steps:
            number, inside = self._strides.place(self._taken)
            is_last = number == self._strides.last
            if inside == 0 and is_last:
                self._begin()
            elif inside == 0:
                self._copy(self._states[number], put=False)
            piece = min(steps - done, self._strides.stride - inside)
            if is_last:
                reason, more, move = self._keep(inside, piece)
            else:
                reason, more, move = unit.advance(piece, plan, dt)
            done, self._taken = done + more, self._taken + more
            if reason:
                return reason, done, move
        return 0, done, -1

    def _copy(self, state: np.ndarray, *, put: bool) -> None:
        """Copy a state to the unit's values (``put``), or the unit's values to the state."""
        start = 0
        for values in self._sweep.unit.written_values():
            found = state[start : start + values.size].reshape(values.shape)
            start += values.size
            if put:
                values[...] = found
            else:
                found[...] = values

    def _begin(self) -> None:
        """Save the values before the first of the steps that :meth:`_keep` runs."""
        unit = self._sweep.unit
        unit.stand(self._address(1), self._sweep.size, past=self._past)
        unit.keep(self._sweep.plan)
        unit.stand(None)

    def _keep(self, first: int, steps: int) -> tuple[int, int, int]:
        """Run steps from number ``first`` of the stride, and save all values that the reverse sweep reads."""
        unit = self._sweep.unit
        unit.stand(self._address(first + 1), self._sweep.size, past=self._past)
        try:
            return unit.advance(steps, self._sweep.plan, self._dt)
        finally:
            unit.stand(None)

    def _address(self, slot: int) -> int:
        return self._memory.ctypes.data + 8 * self._sweep.size * slot

    def pull(self) -> float:
        """Compute the cotangents before the steps; returns the sum of the running functional."""
        # The unit's functions hold an earlier state afterwards.
        sweep = self._sweep
        if sweep.back is None:
            return 0.0
        sweep.back.begin()
        for number, _, steps in self._strides.backwards():
            if number < self._strides.last:
                self._copy(self._states[number], put=True)
                self._begin()
                for first in range(0, steps, _CHUNK):
                    self._keep(first, min(_CHUNK, steps - first))
            self._back(steps)
        sweep.back.end()
        if len(self._states):
            sweep.unit.end()
        sweep.memory.give(self._memory)
        return sweep.take_total()

    def _back(self, steps: int) -> None:
        """Run the adjoints of the last ``steps`` recorded steps."""
        back, plan = self._sweep.back, self._sweep.plan_back
        while steps:
            some = min(_CHUNK, steps)
            back.stand(self._address(steps), -self._sweep.size, past=self._past)
            reason, _, _ = back.advance(some, plan, self._dt)
            back.stand(None)
            if reason:
                raise ValueError(
                    "the matrix of the derivative of a step is singular "
                    f"({REASONS.get(reason, reason)})"
                )
            steps -= some
