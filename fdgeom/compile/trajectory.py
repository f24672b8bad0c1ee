"""Compiled steps whose values are stored, and their compiled adjoint steps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from firedrake import Function

from fdgeom.compile.fields import Fields
from fdgeom.compile.layout import Layout, Part, aligned, layout_of, parts_of
from fdgeom.compile.unit import Unit
from fdgeom.operations import AdjointStep, Operation

# Rows of more bytes are written past the caches.
_PAST = 2**24


@dataclass
class _Rows:
    """The values of some steps, and before them: one row after each step."""

    values: np.ndarray
    steps: int
    t: float
    dt: float


class Trajectory:
    """Steps of a list of operations, and the cotangents before them from those after them.

    The contract is that of `fdgeom.execution.Trajectory`: the values of ``cotangents`` are set before
    and read after :meth:`pull`. CannotCompile if a list is not supported.
    """

    # Nothing is copied: the version of a field that an adjoint operation reads has its place in the row of
    # its step, and is written there at once.
    def __init__(
        self, operations: Sequence[Operation], seeds: Iterable[Function],
        wanted: Iterable[Function], *, once: bool = False,
        live: Iterable[Function] | None = None, layout: Layout | None = None,
    ) -> None:  # fmt: skip
        self.operations = tuple(operations)
        adjoint = self._adjoint = AdjointStep(self.operations, seeds, wanted, once=once)
        #: The cotangent of each Function.
        self.cotangents = adjoint.cotangents
        layout = layout or layout_of([f for op in self.operations for f in op.writes])
        self.layout = layout
        self._forward = Unit(self.operations, layout)
        zeroes = adjoint.zeroes
        self._reverse = Unit([*adjoint.operations, *zeroes], layout)
        self._places = [*adjoint.places, *(0 for _ in zeroes)]
        #: The place in a row of each version: of the part that an operation writes.
        self._offsets: dict[tuple[int, Part], int] = {}
        #: How many numbers a row has.
        self.row = 0
        for call, code in enumerate(self._reverse.codes):
            for part in code.ins:
                self._store_version(call, part)
        outside = None if live is None else {part for f in live for part in parts_of(f)}
        self._forward.drop_dead(outside, self._offsets.keys())
        self._fields = Fields(self._forward, outside)
        written = {part for code in self._forward.codes for part in code.outs}
        self._reverse_fields = Fields(self._reverse, None, written)
        self._rows: list[_Rows] = []
        self._spare: np.ndarray | None = None

    def _store_version(self, call: int, part: Part) -> None:
        """Give the version that an adjoint operation reads a place in the rows."""
        if not self._adjoint.is_written(part.function):
            return
        _, writer = self._adjoint.writer_for_adjoint(
            self._places[self._reverse.calls[call]], part.function
        )
        if (writer, part) not in self._offsets:
            self._offsets[writer, part] = self.row
            self.row += self.layout.size(part.size)

    # --- places in rows ------------------------------------------------------------------------
    def _home(self, part: Part) -> tuple[int, int]:
        return self.layout.array(part).ctypes.data, 0

    def _in_row(self, rows: np.ndarray, version: tuple[int, Part], step: int) -> tuple[int, int]:
        """The address of a version, of this step (0) or the one before (-1), and the size of a row."""
        return rows.ctypes.data + 8 * ((step + 1) * self.row + self._offsets[version]), self.row

    def _plan_forward(self, rows: np.ndarray, past: bool) -> None:
        unit, adjoint = self._forward, self._adjoint

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

        unit.plan(place, keep if past else None)

    def _plan_reverse(self, rows: np.ndarray) -> None:
        unit, adjoint = self._reverse, self._adjoint

        def place(call: int, part: Part, writes: bool) -> tuple[int, int]:
            if writes or not adjoint.is_written(part.function):
                return self._home(part)
            own = self._places[unit.calls[call]]
            step, writer = adjoint.writer_for_adjoint(own, part.function)
            return self._in_row(rows, (writer, part), step)

        unit.plan(place)

    # --- running -------------------------------------------------------------------------------
    def advance(self, steps: int, t: float, dt: float) -> None:
        """Take steps and store what their adjoints read; raises SolveFailed, and stores nothing then."""
        self._forward.make_ready()
        self._fields.load()
        rows = self._memory((steps + 1) * self.row)
        past = rows.nbytes > _PAST
        self._plan_forward(rows, past)
        self._copy_last(rows[: self.row], to_rows=True)
        reason, _, failed = self._forward.advance(steps, t, dt)
        if reason:
            self._fields.load()
            self._copy_last(rows[: self.row], to_rows=True)
            _, _, failed = self._forward.advance(steps, t, dt, blocked=False)
            raise self._forward.failure(reason, failed)
        if not past:
            self._copy_last(rows[steps * self.row :], to_rows=False)
        self._fields.store()
        self._rows.append(_Rows(rows, steps, t, dt))

    def _copy_last(self, row: np.ndarray, *, to_rows: bool) -> None:
        """Copy the last versions of a step between a row and the fields of the layout."""
        for (writer, part), offset in self._offsets.items():
            if self._adjoint.is_last(writer, part.function):
                place, field = (
                    row[offset : offset + self.layout.size(part.size)],
                    self.layout.array(part),
                )
                if to_rows:
                    place[:] = field
                else:
                    field[:] = place

    def _memory(self, size: int) -> np.ndarray:
        """An array for rows, if possible that of a trajectory before."""
        spare, self._spare = self._spare, None
        return aligned(size) if spare is None or len(spare) < size else spare[:size]

    def pull(self) -> None:
        """The cotangents before the steps, in place of those after them; the store is empty then."""
        self._reverse.make_ready()
        self._reverse_fields.load()
        while self._rows:
            rows = self._rows.pop()
            self._plan_reverse(rows.values)
            reason, _, failed = self._reverse.advance(rows.steps, rows.t, rows.dt, back=True)
            if reason:
                self._rows.clear()
                raise self._reverse.failure(reason, failed)
            self._spare = rows.values
        self._reverse_fields.store()
