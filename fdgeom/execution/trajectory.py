"""Steps whose values are stored, and their adjoint steps."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from firedrake import Function

from fdgeom.execution.petsc import Executor, Run
from fdgeom.operations import Cotangents, Operation, Solve

# The store: one array for each version of a Function. An operation that writes a Function makes a new
# version; the adjoint of an operation reads the versions before it, but the solution of a solve.
_START = -1


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
        runs: Mapping[Operation, Run] | None = None,
    ) -> None:
        self.operations, seeds = tuple(operations), list(seeds)
        active = _reached(self.operations, list(wanted))
        self.cotangents = Cotangents([*active, *seeds])
        # The cotangents that may differ from zero after a step: the walk adds to them until it ends.
        alive = {part for f in seeds for part in _split(f)}
        while True:
            back = self._reverse(alive)
            more = set(self.cotangents.nonzero) - alive
            if once or not more:
                break
            alive |= more
        #: The adjoint of a step: for each operation the place of the one that it belongs to.
        self._places = [place for place, _ in back]
        self._zeroed = [self.cotangents[f] for f in alive - set(self.cotangents.nonzero)]
        self._forward = Executor(self.operations, runs)
        self._backward = Executor([op for _, op in back])
        self._last = {id(f.dat): k for k, op in enumerate(self.operations) for f in _written(op)}
        self._versions = self._needed([op for _, op in back])
        self._store: list[dict[tuple[int, int], np.ndarray]] = []
        self._times: list[tuple[float, float]] = []

    def _reverse(self, alive: set[Function]) -> list[tuple[int, Operation]]:
        self.cotangents.drop(self.cotangents.nonzero)
        self.cotangents.add(alive)
        return [
            (k, made)
            for k, op in reversed(list(enumerate(self.operations)))
            for made in op.vjp(self.cotangents)
        ]

    def _version(self, place: int, f: Function) -> tuple[int, int] | None:
        """The step (0 for the same, -1 for the one before) and the operation that wrote what is read."""
        name = id(f.dat)
        if name not in self._last:
            return None
        writes = [{id(g.dat) for g in _written(op)} for op in self.operations[: place + 1]]
        if isinstance(self.operations[place], Solve) and name in writes[place]:
            return 0, place
        before = [k for k in range(place) if name in writes[k]]
        return (0, before[-1]) if before else (-1, self._last[name])

    def _needed(self, back: Sequence[Operation]) -> list[list[tuple[Function, tuple[int, int]]]]:
        """For each operation of the adjoint step the Functions that it reads, with their versions."""
        found = []
        for place, op in zip(self._places, back, strict=True):
            read = {id(f.dat): f for g in op.reads for f in _split(g)}
            pairs = [(f, self._version(place, f)) for f in read.values()]
            found.append([(f, version) for f, version in pairs if version is not None])
        return found

    def advance(self, steps: int, t: float, dt: float) -> None:
        """Take steps and store what their adjoints read."""
        wanted = {(k, id(f.dat)) for pairs in self._versions for f, (_, k) in pairs}
        if not self._store:
            names = {id(f.dat): f for pairs in self._versions for f, _ in pairs}
            # The values before the first step stand for those that a step before has left.
            self._store.append({(self._last[n], n): _values(f) for n, f in names.items()})
        for step in range(steps):
            row, now = {}, t + step * dt
            for k, op in enumerate(self.operations):
                self._forward.perform(k, now, dt)
                row |= {
                    (k, id(f.dat)): _values(f) for f in _written(op) if (k, id(f.dat)) in wanted
                }
            self._store.append(row)
            self._times.append((now, dt))

    def pull(self) -> None:
        """The cotangents before the steps, in place of those after them; the store is empty then."""
        while self._times:
            t, dt = self._times.pop()
            rows = {-1: self._store[-2], 0: self._store[-1]}
            for k, pairs in enumerate(self._versions):
                for f, (step, writer) in pairs:
                    f.dat.data_wo_with_halos[...] = rows[step][writer, id(f.dat)]
                self._backward.perform(k, t, dt)
            for bar in self._zeroed:
                bar.assign(0.0)
            self._store.pop()
        self._store.clear()


def _split(f: Function) -> tuple[Function, ...]:
    return tuple(f.subfunctions) if len(f.function_space()) > 1 else (f,)


def _written(op: Operation) -> list[Function]:
    return [part for f in op.writes for part in _split(f)]


def _values(f: Function) -> np.ndarray:
    return np.array(f.dat.data_ro_with_halos)


def _reached(operations: Sequence[Operation], wanted: Iterable[Function]) -> list[Function]:
    """The Functions that depend on the wanted ones, with the whole of mixed ones."""
    found = {id(part.dat): part for f in wanted for part in _split(f)}
    whole = [f for f in wanted if len(f.function_space()) > 1]
    while True:
        count = len(found)
        for op in operations:
            if any(id(part.dat) in found for f in op.reads for part in _split(f)):
                found |= {id(part.dat): part for part in _written(op)}
        if len(found) == count:
            break
    for op in operations:
        for f in (*op.reads, *op.writes):
            if len(f.function_space()) > 1 and any(id(p.dat) in found for p in _split(f)):
                whole.append(f)
    return [*dict.fromkeys(whole), *found.values()]
