"""Runs of compiled units: lists of operations, iterations of Newton's method, and the values of Functions
for them.

Compiled code reads Constants where they are.
"""

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager

import numpy as np
from firedrake import Form, Function, SpatialCoordinate

from fdgeom.compile.build import WIDTH, Copy, address, array_of
from fdgeom.compile.chain import Update
from fdgeom.compile.layout import Layout, Part, layout_of
from fdgeom.compile.map_layout import MapLayout
from fdgeom.compile.unit import Unit
from fdgeom.data import Field, fields, spread
from fdgeom.errors import CannotCompile, SolveFailed
from fdgeom.operations import Map, Operation, Prescribed, Reason, parts
from fdgeom.operations.dependent import Dependents, Sources, dependent_of, is_private


def unit_of(operations: Sequence[Operation], *, singly: bool = False) -> Unit:
    """A unit on chains, or else on maps from cells to nodes; CannotCompile if there is neither."""
    written = [f for op in operations for f in op.writes]
    if not written:
        raise CannotCompile("the operations write nothing")
    mesh = written[0].function_space().mesh().unique()
    chains = None
    try:
        chains = Layout(mesh)
        return Unit(operations, chains, singly=singly)
    except CannotCompile as why:
        try:
            return Unit(operations, MapLayout(mesh), singly=singly)
        except CannotCompile as other:
            if chains is not None:
                raise why from other
            if mesh.ufl_cell().cellname != "interval":
                raise
            raise CannotCompile(f"{other}; along a chain: {why}") from other


class CompiledExecutor:
    """Performs a list of operations, many steps in one call of compiled code.

    Raises CannotCompile if the list is not supported. ``live`` are the Functions whose values are read
    outside of the steps; by default all that operations write. With ``singly`` coefficients may be
    functions of the time: then each step is one call, with the time set to that of ``unit.at``.
    """

    def __init__(
        self, operations: Sequence[Operation], *, live: Iterable[Function] | None = None,
        layout: Layout | None = None, singly: bool = False,
    ) -> None:  # fmt: skip
        self.operations = tuple(operations)
        self.unit = (
            unit_of(self.operations, singly=singly)
            if layout is None
            else Unit(self.operations, layout)
        )
        outside = self.unit.drop_dead(live)
        self.fields = Fields(self.unit, outside)
        #: Whether all live values on this rank are finite after the last steps; None if not known.
        self.finite: bool | None = None
        self._stores_all = outside is not None and self.fields.stores(outside)

    def advance(
        self, steps: int, t: float, dt: float, elapsed: int = 0
    ) -> tuple[int, SolveFailed | None]:
        """Take steps; returns their number, and the failure of the next one, which changes nothing.

        The first step begins at ``t + elapsed * dt``.
        """
        self.fields.prepare()
        self.finite, reports = None, bytes(self.unit.reports)
        reason, _, _ = self.unit.advance(
            steps, t, dt, elapsed=elapsed, load=self.fields.before, store=self.fields.after
        )
        if reason:
            return self._step_by_step(steps, t, dt, elapsed, reports)
        self.fields.stored()
        self.finite = self.unit.stored_finite if self._stores_all else None
        return steps, None

    def _step_by_step(
        self, steps: int, t: float, dt: float, elapsed: int, reports: bytes
    ) -> tuple[int, SolveFailed]:
        """Repeat steps of which one fails; returns the number of the good ones, and the failure."""
        self._restore(reports)
        reason, done, failed = self.unit.advance(steps, t, dt, elapsed=elapsed, blocked=False)
        failure = self.unit.failure(reason, failed)
        try:
            with self.fields.shown():
                self.unit.explain(failed)
        except SolveFailed as better:
            failure = better
        self._restore(reports)
        if done:
            # The same again to the last digit.
            self.unit.advance(done, t, dt, elapsed=elapsed, blocked=False)
            self.fields.store()
        return done, failure

    def _restore(self, reports: bytes) -> None:
        # The Functions still hold the values before the steps.
        self.fields.load()
        memoryview(self.unit.reports).cast("B")[:] = reports

    def stats(self) -> dict[str, int]:
        """Solves so far, and Newton iterations of the place that took most in each."""
        return self.unit.stats()


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


class Iteration:
    """Operations that are run once in each iteration of Newton's method.

    ``moves`` move the unknown by the update of the last run, which is zero in the first one;
    ``equations`` end with an `Update`. So a run gives the residual of the present unknown and the next
    update. Raises CannotCompile or NoCompiler if the operations cannot be compiled.
    """

    def __init__(
        self, moves: Sequence[Operation], equations: Sequence[Operation], *,
        live: Sequence[Function], layout: Layout | None = None,
    ) -> None:  # fmt: skip
        layout = layout_of(equations[-1].writes) if layout is None else layout
        self._executor = CompiledExecutor([*moves, *equations], live=live, layout=layout)
        unit = self._unit = self._executor.unit
        unit.make_ready()
        (unknown,) = equations[-1].writes
        places = unit.layout.parts_of(unknown)
        self._arrays = [unit.layout.array(part) for part in places]
        self._values = fields(unknown)
        self._copies = self._executor.fields.copies(places)
        first = sum(call < len(moves) for call in unit.calls)
        self._all, self._alone = unit.single_step(), unit.single_step(first=first)
        self.report = unit.reports[len(unit.calls) - 1]
        #: Whether the factors have pivots among all unknowns of the small system.
        self._pivots = False

    def begin(self) -> None:
        """Read all Functions; the update is zero."""
        self._executor.fields.load()
        for array in self._arrays:
            array[:] = 0.0

    def run(self, *, old: bool = False, inertia: bool = False, alone: bool = False) -> int:
        """Run the operations; returns 0, or the reason of a failure."""
        # old: with the factors of the last run. inertia: the report gets the number of negative
        # eigenvalues. alone: the equations without the moves.
        unit = self._unit
        if self._pivots and not old:
            self._pivots = False
            unit.pivot_update(False)
        unit.set_update(old, inertia)
        failed = self._alone() if alone else self._all()
        if failed == Reason.SINGULAR and not (old or self._pivots) and unit.pivot_update(True):
            self._pivots = True
            failed = self._alone()
        return failed

    def end(self) -> None:
        """Pass the values of the live Functions to Firedrake."""
        self._executor.fields.store()

    def update(self) -> np.ndarray:
        """The update: this rank's degrees of freedom, part after part."""
        self._unit.library.fdgeom_store(self._copies)
        return np.concatenate([field.owned.reshape(-1) for field in self._values])

    def set_update(self, values: np.ndarray) -> None:
        """Replace the update."""
        spread(values, self._values)
        for field in self._values:
            field.update_ghosts()
        self._unit.library.fdgeom_load(self._copies)

    def norm(self, function: Function) -> float:
        """The norm of the present values of a Function, on all ranks."""
        layout, square = self._unit.layout, 0.0
        for part in layout.parts_of(function):
            values = layout.array(part).reshape(-1, part.size, WIDTH)
            owned = layout.owned(part).reshape(-1, 1, WIDTH)
            square += float(np.sum(values * values * owned))
        return math.sqrt(layout.comm.allreduce(square))


def newton_of(
    residual: Form, unknown: Function, essential: Sequence, *, linear: bool = False
) -> Iteration:
    """The iteration of Newton's method for F(u) = 0, whose prescribed values do not change.

    With ``linear``, CannotCompile if the equations are not linear.
    """
    update = Function(unknown.function_space(), name="update")
    pairs = zip(parts(unknown), parts(update), strict=True)
    prescribed = [Prescribed(e.dofs, part=e.part) for e in essential]
    equations = Update(
        work=residual, unknown=update, by=unknown, linear=linear, prescribed=prescribed,
        name=unknown.name(),
    )  # fmt: skip
    moves = [Map(values={u: u + d}) for u, d in pairs]
    return Iteration(moves, [equations], live=[unknown])
