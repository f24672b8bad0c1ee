"""The compiled executor: runs lists of operations."""

from collections.abc import Iterable, Sequence

from firedrake import Function

from fdgeom.compile.layout import Layout
from fdgeom.compile.load_and_store import Fields
from fdgeom.compile.map_layout import MapLayout
from fdgeom.compile.unit import Unit
from fdgeom.errors import CannotCompile, SolveFailed
from fdgeom.operations import Operation


def unit_of(operations: Sequence[Operation], *, singly: bool = False) -> Unit:
    """A unit on chains, or else on maps from cells to nodes; CannotCompile if there is neither."""
    written = [f for op in operations for f in op.writes]
    if not written:
        raise CannotCompile("the operations write nothing")
    mesh = written[0].function_space().mesh().unique()
    try:
        chains = Layout(mesh)
    except CannotCompile as why:
        try:
            return Unit(operations, MapLayout(mesh), singly=singly)
        except CannotCompile as other:
            if mesh.ufl_cell().cellname != "interval":
                raise
            raise CannotCompile(f"{other}; along a chain: {why}") from other
    try:
        return Unit(operations, chains, singly=singly)
    except CannotCompile as why:
        try:
            return Unit(operations, MapLayout(mesh), singly=singly)
        except CannotCompile as other:
            raise why from other


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
