"""Newton's method with one call of compiled code per iteration."""

from collections.abc import Sequence

import numpy as np
from firedrake import Function

from fdgeom.compile.executor import Executor
from fdgeom.compile.layout import Layout
from fdgeom.operations import Operation
from fdgeom.solvers.data import spread


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
        self._executor = Executor([*moves, *equations], live=live, layout=layout)
        unit = self._unit = self._executor.unit
        unit.make_ready()
        (unknown,) = equations[-1].writes
        parts = unit.layout.parts_of(unknown)
        self._arrays = [unit.layout.array(part) for part in parts]
        self._values = self._executor.fields.of(parts)
        self._copies = self._executor.fields.copies(parts)
        self._equations = unit.calls_from(sum(call < len(moves) for call in unit.calls))
        self.report = unit.reports[len(unit.calls) - 1]

    def begin(self) -> None:
        """Read all Functions; the update is zero."""
        self._executor.load()
        for array in self._arrays:
            array[:] = 0.0

    def run(self, *, old: bool = False, inertia: bool = False, alone: bool = False) -> int:
        """Run the operations; returns 0, or the reason of a failure."""
        # old: with the factors of the last run. inertia: the report gets the number of negative
        # eigenvalues. alone: the equations without the moves.
        self._unit.set_update(old, inertia)
        return self._unit.advance(
            1, 0.0, 0.0, blocked=False, run=self._equations if alone else None
        )[0]

    def end(self) -> None:
        """Pass the values of the live Functions to Firedrake."""
        self._executor.store()

    def update(self) -> np.ndarray:
        """The update: this rank's degrees of freedom, part after part."""
        self._unit.library.fdgeom_store(*self._copies)
        return np.concatenate([field.owned.reshape(-1) for field in self._values])

    def set_update(self, values: np.ndarray) -> None:
        """Replace the update."""
        spread(values, self._values)
        for field in self._values:
            field.update_ghosts()
        self._unit.library.fdgeom_load(*self._copies)
