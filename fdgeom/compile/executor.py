"""Runs of compiled units: lists of operations, and iterations of Newton's method."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from firedrake import Form, Function

from fdgeom.compile.build import WIDTH
from fdgeom.compile.chain import Update
from fdgeom.compile.layout import Layout, layout_of
from fdgeom.compile.map_layout import MapLayout
from fdgeom.compile.unit import Unit
from fdgeom.compile.values import Fields
from fdgeom.data import fields, spread
from fdgeom.errors import CannotCompile, SolveFailed
from fdgeom.operations import Map, Operation, Prescribed, Reason, parts


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
