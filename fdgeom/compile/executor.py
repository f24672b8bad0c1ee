"""The compiled executor: runs lists of operations on interval meshes, on one rank."""

from collections.abc import Iterable, Sequence, Set

import numpy as np
from firedrake import Function

from fdgeom.compile.build import Copy, array_of
from fdgeom.compile.layout import Layout, Part, parts_of
from fdgeom.compile.program import CannotCompile
from fdgeom.compile.unit import Unit
from fdgeom.operations import Check, Operation
from fdgeom.solvers.data import Field
from fdgeom.solvers.derived import derived_of, is_private
from fdgeom.solvers.held_snes import SolveFailed

# So many steps at the most go by before Ctrl-C is heard, or are repeated after a failure.
_CHUNK = 256
#: Why a solve failed, by the `Failure` of fields.hpp.
_REASONS = {
    -1: "too many iterations",
    -2: "a singular Jacobian block",
    -3: "values that are not finite",
}
_NAMES = "_fdgeom_names_of_places"


class Executor:
    """Performs a list of operations, many steps in one call of compiled code.

    Raises CannotCompile if the list is not supported. ``live`` are the Functions whose values are read
    outside of the steps; by default all that operations write.
    """

    def __init__(
        self, operations: Sequence[Operation], *, live: Iterable[Function] | None = None,
        layout: Layout | None = None,
    ) -> None:  # fmt: skip
        self.operations = tuple(operations)
        self.layout = layout or layout_of(self.operations)
        self.unit = Unit(self.operations, self.layout)
        outside = None if live is None else {part for f in live for part in parts_of(f)}
        while dead := _dead(self.unit, outside):
            self.unit.drop(dead)
        self.fields = Fields(self.unit, outside)

    @classmethod
    def unsupported(cls, operations: Sequence[Operation]) -> str | None:
        """Why a list of operations is not compiled; None if it is."""
        try:
            cls(operations)
        except CannotCompile as error:
            return str(error)
        return None

    def load(self) -> None:
        """Copy the values of all Functions that the steps read to the fields of the unit."""
        self.fields.load()

    def store(self) -> None:
        """Copy the values that the steps have written back to the Functions."""
        self.fields.store()

    def advance(self, steps: int, t: float, dt: float) -> tuple[int, SolveFailed | None]:
        """Take steps; returns their number, and the failure of the next one, which changes nothing."""
        self.load()
        done, failure = 0, None
        while done < steps and failure is None:
            # The Functions still hold the values before the first steps.
            saved = self.fields.values() if done else None
            now, begin = min(_CHUNK, steps - done), t + done * dt
            reports = bytes(self.unit.reports)
            reason, _, _ = self.unit.advance(now, begin, dt)
            if reason:
                now, failure = self._step_by_step(now, begin, dt, saved, reports)
            done += now
        self.store()
        return done, failure

    def _step_by_step(
        self, steps: int, t: float, dt: float, saved, reports: bytes
    ) -> tuple[int, SolveFailed]:
        """Repeat steps of which one fails; returns the number of the good ones, and the failure."""
        self._restore(saved, reports)
        reason, done, failed = self.unit.advance(steps, t, dt, blocked=False)
        failure = self._failure(reason, failed)
        self._restore(saved, reports)
        # The same again to the last digit.
        self.unit.advance(done, t, dt, blocked=False)
        return done, failure

    def _restore(self, saved, reports: bytes) -> None:
        if saved is None:
            self.load()
        else:
            self.fields.put(saved)
        memoryview(self.unit.reports).cast("B")[:] = reports

    def _failure(self, reason: int, call: int) -> SolveFailed:
        op, report = self.unit.operations[call], self.unit.reports[call]
        if isinstance(op, Check):
            return SolveFailed(op.message)
        part = self.unit.unknown_of(call)
        where = name_of_place(part, int(self.layout.dofs(part)[report.failed]))
        words = _REASONS.get(reason, f"code {reason}")
        return SolveFailed(
            f"the local solve for {op.name} stopped with {words} at {where}, where a residual of "
            f"{report.norm:.3g} is left"
        )

    def stats(self) -> dict[str, int]:
        """Solves so far, and Newton iterations of the place that took most in each."""
        pairs = zip(self.unit.reports, self.unit.codes, strict=False)
        reports = [report for report, code in pairs if code.solves]
        return {
            "solves": sum(r.solves for r in reports),
            "newton_iterations": sum(r.iterations for r in reports),
        }


def layout_of(operations: Sequence[Operation]) -> Layout:
    """The layout of the mesh of some operations."""
    written = [f for op in operations for f in op.writes]
    if not written:
        raise CannotCompile("the operations write nothing")
    return Layout(written[0].function_space().mesh().unique())


def name_of_place(part: Part, dof: int) -> str:
    """The place of a node or cell, for messages."""
    space = part.function.function_space()
    mesh = space.mesh()
    x = mesh.coordinates.dat.data_ro.reshape(-1)
    if part.nodal:
        numbers = space.cell_node_map().values.reshape(-1)
        at = x[mesh.coordinates.cell_node_map().values.reshape(-1)[np.argmax(numbers == dof)]]
    else:
        cell = int(np.argmax(space.cell_node_map().values[:, 0] == dof))
        at = x[mesh.coordinates.cell_node_map().values[cell]].mean()
    names = getattr(mesh, _NAMES, None)
    return f"the node at {at:.6g}" if names is None else names(at)


class Fields:
    """The exchange of values between Functions and the fields of a unit."""

    # outside: the parts whose values are read after steps; None for all.
    def __init__(self, unit: Unit, outside: Set[Part] | None) -> None:
        self._unit, self._layout = unit, unit.layout
        read_first, written = _read_first(unit)
        #: The parts that steps change and that later steps or others read.
        self._state = [part for part in written if part in read_first or _is_in(part, outside)]
        self._fields = {
            part: Field(part.function) for part in dict.fromkeys((*read_first, *written))
        }
        derived = {part: derived_of(part.function) for part in read_first}
        derived |= {id(c): derived_of(c) for c in unit.constants}
        made = list({id(d): d for d in derived.values() if d is not None}.values())
        self._followers = [d for d in made if getattr(d, "follows_a_user", True)]
        self._of_mesh = [d for d in made if not getattr(d, "follows_a_user", True)]
        # Values that only fdgeom writes are copied when they have a new version.
        quiet = [part for part in read_first if self._is_quiet(part) and part not in written]
        self._quiet = [(part.function.dat, self._copies([part])) for part in quiet]
        self._versions: list[int] = []
        self._in = self._copies([part for part in read_first if part not in quiet])
        self._out = self._copies(self._state)
        self._mesh, self._mesh_version = unit.layout.mesh.coordinates.dat, -1

    def _is_quiet(self, part: Part) -> bool:
        derived = derived_of(part.function)
        ours = part.function is self._layout.mesh.coordinates or is_private(part.function)
        return ours or bool(derived is not None and getattr(derived, "private", False))

    def _copies(self, parts: Sequence[Part]):
        layout, copies = self._layout, []
        for part in parts:
            copies.append(
                Copy(
                    layout.array(part).ctypes.data, self._fields[part].array.ctypes.data,
                    layout.dofs(part).ctypes.data, layout.counts_of(part).ctypes.data,
                    layout.blocks, part.size,
                )
            )  # fmt: skip
        return array_of(Copy, copies), len(copies)

    def load(self) -> None:
        """Functions to fields."""
        library, version = self._unit.library, self._mesh.dat_version
        moved = version != self._mesh_version
        for derived in (*self._of_mesh, *self._followers) if moved else self._followers:
            derived.refresh()
        self._mesh_version = version
        library.fdgeom_load(*self._in)
        versions = [dat.dat_version for dat, _ in self._quiet]
        if versions != self._versions:
            for _, copies in self._quiet:
                library.fdgeom_load(*copies)
            self._versions = versions

    def store(self) -> None:
        """Fields to Functions."""
        self._unit.library.fdgeom_store(*self._out)
        for part in self._state:
            self._fields[part].written(ghosts_too=True)

    def values(self) -> list[np.ndarray]:
        """Copies of the fields that steps change."""
        return [np.array(self._layout.array(part)) for part in self._state]

    def put(self, values: Sequence[np.ndarray]) -> None:
        """The inverse of :meth:`values`."""
        for part, array in zip(self._state, values, strict=True):
            self._layout.array(part)[:] = array


def _read_first(unit: Unit) -> tuple[list[Part], list[Part]]:
    """The parts that steps read before they write them, and those that they write."""
    read: dict[Part, None] = {}
    written: dict[Part, None] = {}
    for code in unit.codes:
        read |= dict.fromkeys(part for part in code.ins if part not in written)
        written |= dict.fromkeys(code.outs)
    return list(read), list(written)


def _dead(unit: Unit, outside: Set[Part] | None) -> list[int]:
    """The calls whose values are overwritten before they are read."""
    codes = unit.codes

    def is_read(k: int, part: Part) -> bool:
        order = [*range(k + 1, len(codes)), None, *range(k + 1)]
        for j in order:
            if j is None:
                if _is_in(part, outside):
                    return True
            elif part in codes[j].ins:
                return True
            elif part in codes[j].outs:
                return False
        return False

    return [
        k for k, code in enumerate(codes)
        if code.outs and not any(is_read(k, part) for part in code.outs)
    ]  # fmt: skip


def _is_in(part: Part, outside: Set[Part] | None) -> bool:
    return outside is None or part in outside
