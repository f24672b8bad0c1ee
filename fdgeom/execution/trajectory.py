"""Operations whose values are stored, and their adjoint."""

from collections.abc import Iterable, Sequence

import numpy as np
from firedrake import Function

from fdgeom.data import Field
from fdgeom.execution.petsc import Executor, Run
from fdgeom.operations import AdjointStep, Operation, each_part


class Trajectory:
    """One run of a list of operations, and the cotangents before it from those after it.

    ``seeds`` are the Functions with cotangents after the run, ``wanted`` those by which derivatives are
    computed. The values of ``cotangents`` are set before and read after :meth:`pull`. ``runs`` perform
    some operations otherwise.
    """

    # The store has one array for each version of a Function that adjoints read. A version is the place of
    # the operation that writes it (-1 before the run), and the key of the Function.
    def __init__(
        self, operations: Sequence[Operation], seeds: Iterable[Function],
        wanted: Iterable[Function], *, runs: dict[Operation, Run] | None = None,
    ) -> None:  # fmt: skip
        self.operations = tuple(operations)
        adjoint = AdjointStep(self.operations, seeds, wanted, once=True)
        #: The cotangent of each Function.
        self.cotangents = adjoint.cotangents
        self._zeroed = [self.cotangents[f] for f in adjoint.zeroed]
        self._forward = Executor(self.operations, runs)
        self._backward = Executor(adjoint.operations)
        #: For each operation of the adjoint the fields that it reads, with their versions.
        self._reads: list[list[tuple[Field, tuple[int, int]]]] = []
        for place, op in zip(adjoint.places, adjoint.operations, strict=True):
            read = {id(f.dat): f for f in each_part(op.reads) if adjoint.is_written(f)}
            writers = [adjoint.writer_for_adjoint(place, f) for f in read.values()]
            versions = [
                (-1 if step else k, name) for (step, k), name in zip(writers, read, strict=True)
            ]
            self._reads.append([*zip(map(Field, read.values()), versions, strict=True)])
        needed = {version: field for reads in self._reads for field, version in reads}
        self._before = [(field, version) for version, field in needed.items() if version[0] < 0]
        self._writes = [
            [(Field(f), (k, id(f.dat))) for f in each_part(op.writes) if (k, id(f.dat)) in needed]
            for k, op in enumerate(self.operations)
        ]
        self._store: dict[tuple[int, int], np.ndarray] = {}
        self._time = 0.0, 0.0

    def advance(self, t: float, dt: float) -> None:
        """Perform the operations as a step, and store what their adjoints read."""
        self._time = t, dt
        self._keep(self._before)
        for k, writes in enumerate(self._writes):
            self._forward.perform(k, t, dt)
            self._keep(writes)

    def _keep(self, versions: Iterable[tuple[Field, tuple[int, int]]]) -> None:
        for field, version in versions:
            field.update_ghosts()
            self._store[version] = np.array(field.array)

    def pull(self) -> None:
        """The cotangents before the run, in place of those after it; the store is empty then."""
        for k, reads in enumerate(self._reads):
            for field, version in reads:
                field.array[...] = self._store[version]
                field.written(ghosts_too=True)
            self._backward.perform(k, *self._time)
        for bar in self._zeroed:
            bar.assign(0.0)
        self._store.clear()
