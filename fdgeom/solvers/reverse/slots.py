"""Storage of the forward values that the reverse sweep reads: one slot of memory per step."""

import ctypes
from collections.abc import Sequence

import numpy as np

from fdgeom.solvers.compiled.structs import Kept
from fdgeom.solvers.compiled.unit import Unit
from fdgeom.solvers.data import key
from fdgeom.solvers.reverse.reversed_step import Back

# Numbers in a cache line.
_LINE = 8


class Slots:
    """The places of values in a slot: saved by the moves of a step, read by the adjoint moves."""

    def __init__(
        self, unit: Unit, moves: Sequence[tuple], back: Unit, backs: Sequence[Back], reads
    ) -> None:
        phases = unit.program.phases
        written = [{key(f): f for f in phases[number].written} for number, _, _ in moves]
        #: Numbers in a slot.
        self._unit, self.size = unit, 0
        places: dict[tuple[int, int], int] = {}
        kept: list[list[Kept]] = [[] for _ in moves]
        found = []
        for b in backs:
            solved = (
                {key(f) for f in phases[moves[b.move][0]].solved} if b.move < len(moves) else set()
            )
            for f in dict.fromkeys(reads[b.phase]):
                # Adjoints read the solution of a solve, and other functions before the move.
                end = b.move + 1 if key(f) in solved else b.move
                before = [m for m in range(len(moves)) if key(f) in written[m]]
                if not before:
                    continue
                here = [m for m in before if m < end]
                last = here[-1] if here else before[-1]
                if (last, key(f)) not in places:
                    places[last, key(f)] = self.size
                    kept[last].append(self._place(moves[last][0], written[last][key(f)]))
                found.append((b, f, places[last, key(f)], not here))
        # Entries by forward move (kept) and by adjoint move (read).
        self.kept = [_array(entries) for entries in kept]
        read: dict[int, list[Kept]] = {id(b): [] for b in backs}
        for b, f, offset, is_earlier in found:
            entry = Kept(
                field=back.program.tables.field(f),
                offset=offset - self.size if is_earlier else offset,
                lead=unit.layout.shape(0)[2],
            )
            read[id(b)].append(entry)
        self.read = [_array(read[id(b)]) for b in backs]

    def _place(self, phase: int, function) -> Kept:
        """A new place in the slot for a function that a phase writes."""
        tables, layout = self._unit.program.tables, self._unit.layout
        field, space = tables.field(function), tables.space(function)
        rows, length, lead = layout.shape(field)
        first, last, total = layout.ranges[space]
        if not self._unit.program.phases[phase].nodal:
            first, last = 0, total
        made = Kept(
            field=field,
            offset=self.size,
            rows=rows,
            length=length,
            lead=lead,
            first=first,
            last=last,
        )
        self.size += rows * length
        return made


class Memory:
    """Memory for slots, reused because the operating system is slow to provide new memory."""

    def __init__(self) -> None:
        self._spare = np.empty(0)

    def take(self, size: int) -> np.ndarray:
        """An array of this size that begins at a cache line."""
        size += _LINE
        if self._spare.size < size:
            self._spare = np.empty(0)
            self._spare = np.empty(size)
        found, self._spare = self._spare, np.empty(0)
        first = -(found.ctypes.data // found.itemsize) % _LINE
        return found[first:]

    def give(self, memory: np.ndarray) -> None:
        """Return an array of :meth:`take` for the next use."""
        self._spare = memory.base


def tell(plan, kept: Sequence = (), read: Sequence = ()) -> None:
    """Set what the moves of a plan save or read."""
    for move, entries in zip(plan, kept, strict=False):
        move.keeps, move.kept = len(entries), ctypes.addressof(entries)
    for move, entries in zip(plan, read, strict=False):
        move.reads, move.read = len(entries), ctypes.addressof(entries)


def _array(entries: Sequence[Kept]):
    return (Kept * len(entries))(*entries)
