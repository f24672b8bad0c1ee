"""Compiled steps whose values are stored, and their compiled adjoint steps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from firedrake import Function

from fdgeom.compile.layout import Layout, Part, aligned, layout_of
from fdgeom.compile.unit import Unit
from fdgeom.compile.values import Fields, copies_of
from fdgeom.data import Field
from fdgeom.errors import SolveFailed
from fdgeom.operations import AdjointStep, Operation, Strides

# Rows of more bytes are written past the caches.
_PAST = 2**24


@dataclass
class _Piece:
    """Some steps of equal length from ``t + elapsed * dt``; another executor takes them if given."""

    steps: int
    t: float
    dt: float
    elapsed: int = 0
    other: Any = None


class CompiledTrajectory:
    """Steps of a list of operations, and the cotangents before them from those after them.

    ``seeds``, ``wanted`` and ``cotangents`` are those of `fdgeom.execution.Trajectory`. CannotCompile if a
    list is not supported. ``spare`` holds memory that several trajectories use one after another.
    """

    # Nothing is copied: the version of a field that an adjoint operation reads has its place in the row of
    # its step, and is written there at once.
    def __init__(
        self, operations: Sequence[Operation], seeds: Iterable[Function],
        wanted: Iterable[Function], *, live: Iterable[Function] | None = None,
        layout: Layout | None = None, spare: list[np.ndarray] | None = None,
    ) -> None:  # fmt: skip
        self.operations = tuple(operations)
        adjoint = self._adjoint = AdjointStep(self.operations, seeds, wanted)
        #: The cotangent of each Function.
        self.cotangents = adjoint.cotangents
        layout = layout or layout_of([f for op in self.operations for f in op.writes])
        self.layout = layout
        #: The compiled steps, and their compiled adjoint.
        self.forward = Unit(self.operations, layout)
        zeroes = adjoint.zeroes
        self.reverse = Unit([*adjoint.operations, *zeroes], layout)
        self._places = [*adjoint.places, *(0 for _ in zeroes)]
        #: The place in a row of each version: of the part that an operation writes.
        self._offsets: dict[tuple[int, Part], int] = {}
        #: How many numbers a row has.
        self.row = 0
        for call, code in enumerate(self.reverse.codes):
            for part in code.ins:
                self._store_version(call, part)
        self._fields = Fields(self.forward, self.forward.drop_dead(live, self._offsets.keys()))
        written = {part for code in self.forward.codes for part in code.outs}
        self._reverse_fields = Fields(self.reverse, None, written)
        self._spare = [] if spare is None else spare
        self._strides: Strides | None = None

    def _store_version(self, call: int, part: Part) -> None:
        """Give the version that an adjoint operation reads a place in the rows."""
        if not self._adjoint.is_written(part.function):
            return
        _, writer = self._adjoint.writer_for_adjoint(
            self._places[self.reverse.calls[call]], part.function
        )
        if (writer, part) not in self._offsets:
            self._offsets[writer, part] = self.row
            self.row += self.layout.size_of(part)

    # --- places in rows ------------------------------------------------------------------------
    def _home(self, part: Part) -> tuple[int, int]:
        return self.layout.array(part).ctypes.data, 0

    def _in_row(self, rows: np.ndarray, version: tuple[int, Part], step: int) -> tuple[int, int]:
        """The address of a version, of this step (0) or the one before (-1), and the size of a row."""
        return rows.ctypes.data + 8 * ((step + 1) * self.row + self._offsets[version]), self.row

    def _plan_forward(self) -> None:
        unit, adjoint, rows, past = self.forward, self._adjoint, self._rows, self._past

        def place(call: int, part: Part, writes: bool) -> tuple[int, int]:
            if past or not adjoint.is_written(part.function):
                return self._home(part)
            own = unit.calls[call]
            step, writer = (0, own) if writes else adjoint.writer_before(own, part.function)
            known = (writer, part) in self._offsets
            return self._in_row(rows, (writer, part), step) if known else self._home(part)

        def keep(call: int, part: Part) -> tuple[int, int] | None:
            version = unit.calls[call], part
            return self._in_row(rows, version, 0) if version in self._offsets else None

        unit.plan(place, keep if past else None, name=(rows.ctypes.data, past))

    def _plan_reverse(self) -> None:
        unit, adjoint, rows = self.reverse, self._adjoint, self._rows

        def place(call: int, part: Part, writes: bool) -> tuple[int, int]:
            if writes or not adjoint.is_written(part.function):
                return self._home(part)
            own = self._places[unit.calls[call]]
            step, writer = adjoint.writer_for_adjoint(own, part.function)
            return self._in_row(rows, (writer, part), step)

        unit.plan(place, name=rows.ctypes.data)

    # --- running -------------------------------------------------------------------------------
    def begin(self, steps: int, memory: int | None = None) -> None:
        """Prepare the store for so many steps.

        With ``memory``, a number of bytes, values of only some of the steps are stored at a time;
        :meth:`pull` repeats the others.
        """
        self.forward.make_ready()
        whole = Strides(steps, steps)
        comm = self.layout.mesh.comm
        fits = memory is None
        self._strides = whole if fits else Strides.fitting(steps, 8 * self.row, memory, comm)
        self._taken = 0
        #: For each stride its steps and the state before it.
        self._pieces: list[list[_Piece]] = [[] for _ in range(self._strides.last + 1)]
        self._states: list[list[np.ndarray]] = []
        self._rows = self._memory((self._strides.stride + 1) * self.row)
        self._past = self._rows.nbytes > _PAST

    def _memory(self, size: int) -> np.ndarray:
        """An array for rows, if possible that of a trajectory before."""
        spare = self._spare.pop() if self._spare else np.empty(0)
        return aligned(size) if len(spare) < size else spare[:size]

    def take(
        self, steps: int, t: float, dt: float, elapsed: int = 0
    ) -> tuple[int, SolveFailed | None]:
        """Take steps from ``t + elapsed * dt`` and store what their adjoints read.

        Returns the number of steps, and the failure of the next one, which changes nothing.
        """
        done = 0
        while done < steps:
            _, inside = self._strides.place(self._taken)
            some = min(steps - done, self._strides.stride - inside)
            more, failure = self._take(_Piece(some, t, dt, elapsed + done))
            done += more
            if failure is not None:
                return done, failure
        return done, None

    def take_through(self, other: Any, t: float, dt: float) -> None:
        """Take one step by another `Executor` of the same operations, and store what its adjoint reads."""
        self._take(_Piece(1, t, dt, other=other))

    def _take(self, piece: _Piece) -> tuple[int, SolveFailed | None]:
        """Take steps of one stride, whose values are stored if it is the last one."""
        number, inside = self._strides.place(self._taken)
        self._fields.load()
        is_stored = number == self._strides.last
        if inside == 0 and not is_stored:
            self._states.append(self._fields.values())
        done, failure = self._run(piece, inside, is_stored=is_stored)
        if done:
            self._pieces[number].append(replace(piece, steps=done))
            self._taken += done
        return done, failure

    def _run(
        self, piece: _Piece, inside: int, *, is_stored: bool
    ) -> tuple[int, SolveFailed | None]:
        """Take steps from the values of the Functions, and store them into the rows after ``inside``."""
        if is_stored and inside == 0:
            self._copy_last(self._row(0), to_rows=True)
        if piece.other is not None:
            for k in range(len(self.operations)):
                piece.other.perform(k, piece.t, piece.dt)
                if is_stored:
                    self._store_versions(k, self._row(inside + 1))
            return 1, None
        if is_stored:
            self._plan_forward()
        else:
            self.forward.plan()
        steps, failure = piece.steps, None
        times = {"t": piece.t, "dt": piece.dt, "elapsed": piece.elapsed, "first": inside}
        reason, _, failed = self.forward.advance(steps, **times)
        if reason:
            # To find out in which step, and once more up to that.
            self._fields.load()
            reason, steps, failed = self.forward.advance(steps, **times, blocked=False)
            failure = self.forward.failure(reason, failed)
            self._fields.load()
            self.forward.advance(steps, **times, blocked=False)
        if steps and is_stored and not self._past:
            self._copy_last(self._row(inside + steps), to_rows=False)
        if steps:
            self._fields.store()
        return steps, failure

    def _row(self, number: int) -> np.ndarray:
        return self._rows[number * self.row : (number + 1) * self.row]

    def _store_versions(self, writer: int, row: np.ndarray) -> None:
        """Copy the present values of what an operation writes from Functions to a row."""
        places = []
        for (own, part), offset in self._offsets.items():
            if own == writer:
                field = Field(part.function)
                field.update_ghosts()
                places.append((part, row[offset:], field.array))
        self.forward.library.fdgeom_load(copies_of(self.layout, places))

    def _copy_last(self, row: np.ndarray, *, to_rows: bool) -> None:
        """Copy the last versions of a step between a row and the fields of the layout."""
        for (writer, part), offset in self._offsets.items():
            if self._adjoint.is_last(writer, part.function):
                place = row[offset : offset + self.layout.size_of(part)]
                field = self.layout.array(part)
                if to_rows:
                    place[:] = field
                else:
                    field[:] = place

    def pull(self) -> None:
        """The cotangents before the steps, in place of those after them; the store is empty then.

        Functions that the steps write are changed if steps are repeated.
        """
        self.reverse.make_ready()
        self._reverse_fields.load()
        for number, _, _ in self._strides.backwards():
            pieces = self._pieces[number]
            if number < self._strides.last:
                self._repeat(number)
            self._plan_reverse()
            row = sum(piece.steps for piece in pieces)
            for piece in reversed(pieces):
                row -= piece.steps
                reason, _, failed = self.reverse.advance(
                    piece.steps, piece.t, piece.dt, elapsed=piece.elapsed, first=row, back=True
                )
                if reason:
                    raise self.reverse.failure(reason, failed)
        self._reverse_fields.store()
        self._spare.append(self._rows)
        del self._rows

    def _repeat(self, number: int) -> None:
        """Take the steps of a stride again, which stores their values."""
        self._fields.put(self._states[number])
        self._fields.store()
        row = 0
        for piece in self._pieces[number]:
            self._fields.load()
            _, failure = self._run(piece, row, is_stored=True)
            if failure is not None:
                raise failure
            row += piece.steps
