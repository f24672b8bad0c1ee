"""Derivatives of steps, solve by solve."""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager

from firedrake import Function

from fdgeom.adjoint.takes import Record, Taken, refuse_unseen
from fdgeom.adjoint.values import Kept, Vectors, keys, parts
from fdgeom.solvers import key


class StepDerivative:
    """The derivatives of one step of a stepper, by its `Solve` objects."""

    # The step runs again through PETSc SNES; each solve is recorded and differentiated there. Functions
    # that change without a solve are detected, and refused. moving: all functions that steps change and
    # read again; active: keys of the other functions that derivatives are taken by.
    def __init__(self, stepper, moving: Sequence[Function], active: Set[int]) -> None:
        self._stepper, self._moving = stepper, tuple(moving)
        solves = {id(solve): solve for solve, _ in stepper.sequence}
        unknowns = [solve.unknown for solve in solves.values()]
        written = [f for solve in solves.values() for f in solve.written]
        given = [
            e.target for solve in solves.values() for e in solve.essential if e.target is not None
        ]
        given += stepper.system.given_in_time()
        #: All functions that the solves change or that are prescribed functions of time.
        self.places = each_part([*self._moving, *unknowns, *written, *given])
        self._data = keys(given)
        everything = set(active) | keys([*self._moving, *unknowns, *written])
        self._taken = {
            k: Taken(solve, everything, self.places, stepper.system.clocks)
            for k, solve in solves.items()
        }

    def record(self) -> list[Record]:
        """Run the step from the present state; returns the records of its solves."""
        records: list[Record] = []
        before = Kept(self.places)
        with self._watched(records):
            self._stepper._step(self._stepper.t, self._stepper.dt)
        for record in records:
            self._refuse(before.differing(record.before))
            before = record.after
        self._refuse(before.differing())
        return records

    def _refuse(self, changed: Sequence[Function]) -> None:
        unseen = [f for f in changed if key(f) not in self._data]
        refuse_unseen(unseen, type(self._stepper).__name__, self._stepper.system.mesh.comm)

    @staticmethod
    def pull(records: Sequence[Record], bars: Vectors) -> None:
        """The cotangents before the step from those after it."""
        for record in reversed(records):
            record.taken.pull(record, bars)

    @staticmethod
    def pull_rates(
        records: Sequence[Record], bars: Vectors, rates: Vectors, tangents: Vectors
    ) -> None:
        """:meth:`pull`, and its derivative along the tangents before the step."""
        along = []
        for record in records:
            along.append(tangents.copy())
            record.taken.push(record, tangents)
        for record, before in zip(reversed(records), reversed(along), strict=True):
            record.taken.pull_rates(record, bars, rates, before)

    @staticmethod
    def push(records: Sequence[Record], tangents: Vectors) -> None:
        """The tangents after the step from those before it."""
        for record in records:
            record.taken.push(record, tangents)

    @contextmanager
    def _watched(self, records: list[Record]) -> Iterator[None]:
        solves = {id(solve): solve for solve, _ in self._stepper.sequence}
        try:
            for k, solve in solves.items():
                solve.around = lambda dt, taken=self._taken[k]: taken.recorded(records, dt)
            yield
        finally:
            for solve in solves.values():
                solve.around = None


def each_part(functions: Sequence[Function]) -> list[Function]:
    """The parts of functions, each once."""
    return list({key(part): part for f in functions for part in parts(f)}.values())
