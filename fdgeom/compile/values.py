"""Values of Functions for compiled units: copies before and after steps.

Compiled code reads Constants where they are.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager

import numpy as np
from firedrake import SpatialCoordinate

from fdgeom.compile.build import Copy, address, array_of
from fdgeom.compile.layout import Layout, Part
from fdgeom.compile.unit import Unit
from fdgeom.data import Field
from fdgeom.operations.dependent import Dependents, Sources, dependent_of, is_private


class Fields:
    """The exchange of values between Functions and the fields of a unit."""

    # outside: the parts whose values are read after steps; None for all. elsewhere: parts that the unit
    # does not find in the fields of the layout.
    def __init__(
        self, unit: Unit, outside: Set[Part] | None, elsewhere: Set[Part] = frozenset()
    ) -> None:
        self._unit, self._layout = unit, unit.layout
        read_first, written = _read_first(unit)
        sums = unit.layout.sums
        self._summands = [part for part in written if part in sums]
        self._written = written = [part for part in written if part not in sums]
        read_first = [part for part in read_first if part not in elsewhere and part not in sums]
        #: The parts that steps change and that later steps or others read.
        self._state = [
            part for part in written if outside is None or part in outside or part in read_first
        ]
        self._fields = {
            part: Field(part.function) for part in dict.fromkeys((*read_first, *written))
        }
        self._ghosted = list(self._fields.values()) if unit.layout.comm.size > 1 else []
        read = (*(part.function for part in read_first), *unit.constants)
        found = {id(d): d for d in map(dependent_of, read) if d is not None}.values()
        # Functions of the mesh alone are made anew if its coordinates have changed.
        self._of_users = Dependents(d for d in found if d.follows_a_user)
        self._of_mesh = Dependents(d for d in found if not d.follows_a_user)
        self._places = Sources(SpatialCoordinate(unit.layout.mesh))
        # Values that only fdgeom writes are copied when they have a new version.
        quiet = [part for part in read_first if self._is_quiet(part) and part not in written]
        self._quiet = [(part.function.dat, self.copies([part])) for part in quiet]
        self._versions: list[int] = []
        self._in = self.copies([part for part in read_first if part not in quiet])
        self._out = self.copies(self._state)
        #: Their addresses: the copies before and after steps.
        self.before, self.after = address(self._in), address(self._out)
        self._changed = [self._fields[part].written for part in self._state]

    def _is_quiet(self, part: Part) -> bool:
        dependent = dependent_of(part.function)
        ours = part.function is self._layout.mesh.coordinates or is_private(part.function)
        return ours or bool(dependent is not None and dependent.private)

    def stores(self, parts: Set[Part]) -> bool:
        """Whether the values of these parts are all copied after steps."""
        return parts <= set(self._state)

    def copies(self, parts: Sequence[Part]):
        """The copies of parts between Functions and fields."""
        return copies_of(
            self._layout, [(p, self._layout.array(p), self._fields[p].array) for p in parts]
        )

    def load(self) -> None:
        """Functions to fields."""
        self.prepare()
        self._unit.library.fdgeom_load(self._in)

    def prepare(self) -> None:
        """Do all of :meth:`load` but the copies ``before`` steps."""
        library = self._unit.library
        moved = self._places.changed()
        if moved:
            self._layout.check_order()
            self._places.forget_ghosts()
            self._of_mesh.refresh()
        self._of_users.refresh()
        if moved:
            self._places.take()
        for field in self._ghosted:
            field.update_ghosts()
        for part in self._summands:
            self._layout.array(part)[:] = 0.0
        if self._quiet:
            versions = [dat.dat_version for dat, _ in self._quiet]
            if moved or versions != self._versions:
                for _, copies in self._quiet:
                    library.fdgeom_load(copies)
                self._versions = versions

    def store(self) -> None:
        """Fields to Functions."""
        self._unit.library.fdgeom_store(self._out)
        self.stored()

    def stored(self) -> None:
        """Do all of :meth:`store` but the copies ``after`` steps."""
        for written in self._changed:
            written(ghosts_too=True)
        for part in self._summands:
            number = self._layout.sums[part].dat
            number.data[...] += self._layout.total(part).reshape(number.data_ro.shape)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Context in which the Functions have the present values of all fields that steps change."""
        kept = [np.array(self._fields[part].array) for part in self._written]
        self._unit.library.fdgeom_store(self.copies(self._written))
        try:
            yield
        finally:
            for part, array in zip(self._written, kept, strict=True):
                self._fields[part].array[...] = array

    def values(self) -> list[np.ndarray]:
        """Copies of the fields that steps change."""
        return [np.array(self._layout.array(part)) for part in self._state]

    def put(self, values: Sequence[np.ndarray]) -> None:
        """The inverse of :meth:`values`."""
        for part, array in zip(self._state, values, strict=True):
            self._layout.array(part)[:] = array


def copies_of(layout: Layout, places: Iterable[tuple[Part, np.ndarray, np.ndarray]]):
    """The copies of parts between arrays in the order of a layout and those of Functions."""
    copies = [
        Copy(
            field.ctypes.data, values.ctypes.data, layout.dofs(part).ctypes.data,
            layout.counts_of(part).ctypes.data, layout.blocks_of(part), part.size,
        )
        for part, field, values in places
    ]  # fmt: skip
    return array_of(Copy, [*copies, Copy()])


def _read_first(unit: Unit) -> tuple[list[Part], list[Part]]:
    """The parts that steps read before they write them, and those that they write."""
    read: dict[Part, None] = {}
    written: dict[Part, None] = {}
    for code in unit.codes:
        read |= dict.fromkeys(part for part in code.ins if part not in written)
        written |= dict.fromkeys(code.outs)
    return list(read), list(written)
