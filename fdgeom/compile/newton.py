"""Newton's method with one call of compiled code per iteration."""

import math
from collections.abc import Sequence

import numpy as np
from firedrake import Form, Function

from fdgeom.compile.chain import Update
from fdgeom.compile.executor import CompiledExecutor
from fdgeom.compile.layout import WIDTH, Layout, layout_of
from fdgeom.data import fields, spread
from fdgeom.operations import Map, Operation, Prescribed, Reason, parts


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
        self._equations = unit.calls_from(sum(call < len(moves) for call in unit.calls))
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
        failed = self._advance(alone)
        if failed == Reason.SINGULAR and not (old or self._pivots) and unit.pivot_update(True):
            self._pivots = True
            failed = self._advance(alone=True)
        return failed

    def _advance(self, alone: bool) -> int:
        run = self._equations if alone else None
        return self._unit.advance(1, 0.0, 0.0, blocked=False, run=run)[0]

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
