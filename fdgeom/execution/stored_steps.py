"""Steps whose values are stored, and their adjoint steps."""

from collections.abc import Iterable, Sequence

import numpy as np
from firedrake import Function

from fdgeom.data import Field
from fdgeom.execution.petsc import Executor, Run
from fdgeom.operations import AdjointStep, Operation, parts

# The store: one array for each version of a Function. An operation that writes a Function makes a new
# version; the adjoint of an operation reads the versions before it, but the solution of a solve.
Version = tuple[int, int]  # the place of the operation, and the key of the Function


class Trajectory:
    """Steps of a list of operations, and the cotangents before them from those after them.

    ``seeds`` are the Functions with cotangents after the steps, ``wanted`` those by which derivatives
    are computed. The values of ``cotangents`` are set before and read after :meth:`pull`. With
    ``once`` it serves single steps alone, and the adjoint omits what only several steps need. ``runs``
    perform some operations otherwise.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        seeds: Iterable[Function],
        wanted: Iterable[Function],
        *,
        once: bool = False,
        runs: dict[Operation, Run] | None = None,
    ) -> None:
        self.operations = tuple(operations)
        adjoint = self._adjoint = AdjointStep(self.operations, seeds, wanted, once=once)
        #: The cotangent of each Function.
        self.cotangents = adjoint.cotangents
        self._zeroed = [self.cotangents[f] for f in adjoint.zeroed]
        self._forward = Executor(self.operations, runs)
        self._backward = Executor(adjoint.operations)
        self._last = {id(f.dat): k for k, op in enumerate(self.operations) for f in _written(op)}
        self._reads = self._needed()
        self._before, self._writes = self._stored()
        self._store: list[dict[Version, np.ndarray]] = []
        self._times: list[tuple[float, float]] = []

    def _needed(self) -> list[list[tuple[Field, int, Version]]]:
        """For each operation of the adjoint step what it reads: a field, and the step and the version."""
        adjoint, found = self._adjoint, []
        for place, op in zip(adjoint.places, adjoint.operations, strict=True):
            read = {id(f.dat): f for g in op.reads for f in parts(g) if adjoint.is_written(f)}
            versions = [(f, *adjoint.writer_for_adjoint(place, f)) for f in read.values()]
            found.append([(Field(f), step, (k, id(f.dat))) for f, step, k in versions])
        return found

    def _stored(self) -> tuple[list, list[list[tuple[Field, Version]]]]:
        """The versions that are stored before the first step, and after each operation."""
        wanted = {version for reads in self._reads for _, _, version in reads}
        before = {
            version: field
            for reads in self._reads
            for field, _, (_, name) in reads
            if (version := (self._last[name], name))
        }
        after = [
            [(Field(f), (k, id(f.dat))) for f in _written(op) if (k, id(f.dat)) in wanted]
            for k, op in enumerate(self.operations)
        ]
        return list(before.items()), after

    def advance(self, steps: int, t: float, dt: float) -> None:
        """Take steps and store what their adjoints read."""
        if not self._store:
            # The values before the first step stand for those that a step before has left.
            self._store.append({version: _values(field) for version, field in self._before})
        for step in range(steps):
            row, now = {}, t + step * dt
            for k, writes in enumerate(self._writes):
                self._forward.perform(k, now, dt)
                for field, version in writes:
                    row[version] = _values(field)
            self._store.append(row)
            self._times.append((now, dt))

    def pull(self) -> None:
        """The cotangents before the steps, in place of those after them; the store is empty then."""
        while self._times:
            t, dt = self._times.pop()
            rows = self._store[-2:]
            for k, reads in enumerate(self._reads):
                for field, step, version in reads:
                    field.array[...] = rows[step + 1][version]
                    field.written(ghosts_too=True)
                self._backward.perform(k, t, dt)
            for bar in self._zeroed:
                bar.assign(0.0)
            self._store.pop()
        self._store.clear()


def _written(op: Operation) -> list[Function]:
    return [part for f in op.writes for part in parts(f)]


def _values(field: Field) -> np.ndarray:
    field.update_ghosts()
    return np.array(field.array)
