"""Operations that change a system outside steps, for pyadjoint's tape."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from firedrake import Function

from fdgeom.adjoint.coefficients import Coefficients
from fdgeom.adjoint.deeds import (
    applied,
    derived,
    forms_of,
    passed,
    pull_of,
    pull_rates_of,
    push_along,
    written_by,
)
from fdgeom.adjoint.inputs import Inputs
from fdgeom.adjoint.values import Vectors, keys


class DeedPassage(Inputs):
    """Operations, one after another, as a function of their inputs."""

    # do() runs all operations; `deeds` describe them, as those of `System.openings` do.
    def __init__(self, name: str, do: Callable[[], None], deeds: Sequence, system) -> None:
        views = list(system.functions().values())
        forms = [form for deed in deeds for form in forms_of(deed)]
        super().__init__(views, Coefficients([], keys(views), system.clocks, forms))
        self.name, self._do, self._deeds, self._system = name, do, deeds, system
        self._active = keys(views) | keys(f for deed in deeds for f in written_by(deed))

    def title(self, course: None) -> str:
        """The name of the operations in messages."""
        return self.name

    def snapshots(self) -> tuple:
        return self._system.remembered()

    def origin(self, touched: Sequence) -> list:
        """The start: the present values of the Constants."""
        return self.constants()

    @contextmanager
    def at(self, origin: list, inputs: Sequence[Function]) -> Iterator[None]:
        """Context at the start with these inputs; restores all values and snapshots afterwards."""
        snapshots = self.snapshots()
        remembered = [snapshot.values() for snapshot in snapshots]
        with self.holding(inputs, [f for deed in self._deeds for f in written_by(deed)]):
            self.set_constants(origin)
            self.renew(inputs)
            try:
                yield
            finally:
                for snapshot, values in zip(snapshots, remembered, strict=True):
                    snapshot.remember(values)

    def run(self, course: None) -> None:
        """Run all operations."""
        self._do()
        self._coefficients.refresh()

    def _derived(self, reached: set[int]) -> list:
        return [derived(deed, self._active | reached) for deed in self._deeds]

    def pull(self, origin: list, course: None, bars: Vectors, wanted: Sequence[Function]) -> None:
        """The cotangents of all inputs from those of the outputs, inside :meth:`at`."""
        reached = self.reached_by(wanted)
        pull_of(applied(self._derived(reached)), bars)
        self._coefficients.pull(bars, reached)

    def pull_rates(self, origin, course, bars, rates, tangents, wanted) -> None:
        """:meth:`pull`, and its derivative along tangents of all inputs."""
        reached = self.reached_by(wanted)
        self._coefficients.push(tangents, reached)
        given = tangents.copy()
        pull_rates_of(passed(self._derived(reached), tangents), bars, rates)
        self._coefficients.pull_rates(bars, rates, given, reached)

    def push(
        self, origin: list, course: None, tangents: Vectors, wanted: Sequence[Function]
    ) -> None:
        """The tangents of the outputs from those of all inputs, inside :meth:`at`."""
        reached = self.reached_by(wanted)
        self._coefficients.push(tangents, reached)
        push_along(self._derived(reached), tangents)
