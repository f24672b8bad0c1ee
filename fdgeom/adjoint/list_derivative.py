"""Derivatives of a list of operations at the present values of its inputs."""

from collections.abc import Callable, Sequence, Set

import numpy as np
from firedrake import Function

from fdgeom.adjoint.values import Vectors, fill, keys, parts
from fdgeom.execution import Executor, Trajectory
from fdgeom.operations import Map, Operation, Solve, Tangents, linearise
from fdgeom.solvers import key
from fdgeom.solvers.compiled import has_nodal_values


class ListDerivative:
    """Operations that are performed once, and their derivatives."""

    # active: keys of the functions that derivatives are taken by, and of all that operations change.
    # find: sets the unknown of a solve to a solution that is known, in place of the solve.
    def __init__(
        self,
        operations: Sequence[Operation],
        active: Set[int],
        find: Callable[[], None] | None = None,
    ) -> None:
        self.operations = tuple(operations)
        self.targets = tuple(_parts(f for op in self.operations for f in op.writes))
        read = _parts(f for op in self.operations for f in op.reads)
        written = keys(self.targets)
        #: The functions with derivatives that are inputs alone, and all functions with derivatives.
        self._inputs = [f for f in read if key(f) in active and key(f) not in written]
        self._active = [*self._inputs, *self.targets]
        solves = [op for op in self.operations if isinstance(op, Solve)]
        self._runs = {} if find is None else dict.fromkeys(solves, find)
        self._trajectories: dict[tuple, tuple[Trajectory, Tangents | None]] = {}
        self._tangents: tuple[Tangents, Executor] | None = None
        for op in self.operations:
            for f in (*op.reads, *op.writes) if isinstance(op, Map) else ():
                if not has_nodal_values(f.function_space()):
                    raise NotImplementedError(
                        f"gradients where the degrees of freedom of {f.name()} are no values at "
                        "nodes are not there: its assignments are not differentiated"
                    )

    def apply(self) -> None:
        """Perform the operations."""
        if not self._runs.keys() >= set(self.operations):
            self._runs = Executor(self.operations, self._runs).runs
        for op in self.operations:
            self._runs[op]()

    def pull(self, bars: Vectors, dt: float = 0.0, after: Callable[[], None] | None = None) -> None:
        """The cotangents before the operations from those after them; call it at the state before.

        ``after`` is called once when the operations have been performed.
        """
        seeds = frozenset(bars.keys() & keys(self.targets))
        if not seeds and after is None:
            return
        trajectory, _ = self._trajectory(seeds)
        trajectory.advance(1, 0.0, dt)
        if after is not None:
            after()
        _put(self._active, trajectory.cotangents, bars)
        trajectory.pull()
        _get(self._active, trajectory, bars)

    def pull_rates(
        self,
        bars: Vectors,
        rates: Vectors,
        tangents: Vectors,
        dt: float = 0.0,
        after: Callable[[], None] | None = None,
    ) -> None:
        """:meth:`pull`, and its derivative along the tangents before the operations."""
        seeds = frozenset((bars.keys() | rates.keys()) & keys(self.targets))
        if not seeds and after is None:
            return
        trajectory, dots = self._trajectory(seeds, second=True)
        _put(self._active, dots, tangents)
        trajectory.advance(1, 0.0, dt)
        if after is not None:
            after()
        # The cotangents of tangents are the cotangents, and those of values their rates.
        along = [dots[f] for f in self._active]
        for f, dot in zip(self._active, along, strict=True):
            fill(trajectory.cotangents[dot], bars.of(f))
            fill(trajectory.cotangents[f], rates.of(f))
        trajectory.pull()
        _get(self._active, trajectory, rates)
        _get(self._active, trajectory, bars, along)

    def push(
        self, tangents: Vectors, dt: float = 0.0, after: Callable[[], None] | None = None
    ) -> None:
        """Perform the operations, and set the tangents after them."""
        dots, executor = self._linearised()
        _put(self._active, dots, tangents)
        executor.advance(1, 0.0, dt)
        if after is not None:
            after()
        for f in self.targets:
            tangents.put(f, np.array(dots[f].dat.data_ro))

    def _linearised(self) -> tuple[Tangents, Executor]:
        if self._tangents is None:
            dots = Tangents(self._whole())
            executor = Executor(linearise(self.operations, dots), self._runs)
            self._tangents = dots, executor
        return self._tangents

    def _whole(self) -> list[Function]:
        """The functions with derivatives, and the mixed functions that they are parts of."""
        active, found = keys(self._active), []
        for op in self.operations:
            found += [f for f in (*op.reads, *op.writes) if keys([f]) & active]
        return [*found, *self._active]

    def _trajectory(
        self, seeds: frozenset[int], second: bool = False
    ) -> tuple[Trajectory, Tangents | None]:
        name = seeds, second
        if name not in self._trajectories:
            seeded = [f for f in self._active if key(f) in seeds or f in self._inputs]
            wanted, dots, operations = list(self._active), None, self.operations
            if second:
                dots, executor = self._linearised()
                operations = executor.operations
                seeded += [dots[f] for f in seeded]
                wanted += [dots[f] for f in wanted]
            made = Trajectory(operations, seeded, wanted, once=True, runs=self._runs)
            self._trajectories[name] = made, dots
        return self._trajectories[name]


def _parts(functions) -> list[Function]:
    return list({key(part): part for f in functions for part in parts(f)}.values())


def _put(functions: Sequence[Function], places: Tangents, vectors: Vectors) -> None:
    """Set the tangents or cotangents of functions to vectors."""
    for f in functions:
        fill(places[f], vectors.of(f))


def _get(
    functions: Sequence[Function],
    trajectory: Trajectory,
    vectors: Vectors,
    along: Sequence[Function] | None = None,
) -> None:
    """Set vectors to the cotangents of functions, or of their tangents."""
    for f, place in zip(functions, along or functions, strict=True):
        nonzero = place in trajectory.cotangents
        vectors.put(f, trajectory.cotangents[place].dat.data_ro if nonzero else None)
