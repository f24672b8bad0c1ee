"""Derivatives of a list of operations at the present values of its inputs."""

from collections.abc import Callable, Iterable, Sequence, Set
from functools import cached_property

from firedrake import Function

from fdgeom.adjoint.values import Vectors, keys, parts
from fdgeom.execution import Executor, Run, Trajectory, own_values
from fdgeom.operations import Map, Operation, Solve, Tangents, linearise
from fdgeom.solvers import Field, key
from fdgeom.solvers.compiled import has_nodal_values


class ListDerivative:
    """Operations that are performed once, and their derivatives."""

    # active: keys of the functions that derivatives are taken by; all that operations write is active
    # too. find: sets the unknown of a solve to a solution that is known, in place of the solve. runs:
    # calls that perform the operations, to be shared.
    def __init__(
        self,
        operations: Sequence[Operation],
        active: Set[int],
        find: Callable[[], None] | None = None,
        runs: dict[Operation, Run] | None = None,
    ) -> None:
        self.operations = tuple(operations)
        self.targets = tuple(_parts(f for op in self.operations for f in op.writes))
        self._written = keys(self.targets)
        read = _parts(f for op in self.operations for f in op.reads)
        self._inputs = [f for f in read if key(f) in active and key(f) not in self._written]
        self._active = [*self._inputs, *self.targets]
        solves = [op for op in self.operations if isinstance(op, Solve)]
        self._runs = (
            dict.fromkeys(solves, find) if find is not None else {} if runs is None else runs
        )
        self._adjoints: dict[tuple, _Adjoint] = {}
        for op in self.operations:
            for f in (*op.reads, *op.writes) if isinstance(op, Map) else ():
                if not has_nodal_values(f.function_space()):
                    raise NotImplementedError(
                        f"gradients where the degrees of freedom of {f.name()} are no values at "
                        "nodes are not there: its assignments are not differentiated"
                    )

    def apply(self) -> None:
        """Perform the operations."""
        for op in self.operations:
            self._executor.make(op)()

    @cached_property
    def _executor(self) -> Executor:
        return Executor(self.operations, self._runs)

    # Each of the next three is called at the state before the operations. `after` is called once when
    # these have been performed.
    def pull(
        self,
        bars: Vectors,
        t: float = 0.0,
        dt: float = 0.0,
        after: Callable[[], None] | None = None,
        seeds: Set[int] | None = None,
    ) -> None:
        """Replace the cotangents after the operations by those before them."""
        # seeds: keys of the functions that may have cotangents after the operations.
        seeds = frozenset((bars.keys() if seeds is None else seeds) & self._written)
        if not seeds:
            return
        adjoint = self._adjoint(seeds)
        adjoint.trajectory.advance(1, t, dt)
        if after is not None:
            after()
        adjoint.bars.put(bars)
        adjoint.trajectory.pull()
        adjoint.bars.get(bars)

    def pull_rates(
        self,
        bars: Vectors,
        rates: Vectors,
        tangents: Vectors,
        t: float = 0.0,
        dt: float = 0.0,
        seeds: Set[int] | None = None,
    ) -> None:
        """:meth:`pull`, and its derivative along the tangents before the operations."""
        given = bars.keys() | rates.keys() if seeds is None else seeds
        seeds = frozenset(given & self._written)
        if not seeds:
            return
        adjoint, (_, places, _) = self._adjoint(seeds, second=True), self._linearised
        places.put(tangents)
        adjoint.trajectory.advance(1, t, dt)
        adjoint.bars.put(bars)
        adjoint.rates.put(rates)
        adjoint.trajectory.pull()
        adjoint.bars.get(bars)
        adjoint.rates.get(rates)

    def push(self, tangents: Vectors, t: float = 0.0, dt: float = 0.0) -> None:
        """Perform the operations, and set the tangents after them."""
        _, places, executor = self._linearised
        places.put(tangents)
        executor.step(t, dt)
        places.get(tangents)

    @cached_property
    def _linearised(self) -> "tuple[Tangents, _Places, Executor]":
        # Tangents of mixed functions serve their parts.
        active = keys(self._active)
        whole = [f for op in self.operations for f in (*op.reads, *op.writes) if keys([f]) & active]
        dots = Tangents([*whole, *self._active])
        executor = Executor(linearise(self.operations, dots), self._runs)
        return dots, _Places(self._active, self._active, dots), executor

    def _adjoint(self, seeds: frozenset[int], second: bool = False) -> "_Adjoint":
        """The adjoint of the operations, or of the operations with their tangents, made once."""
        name = seeds, second
        if name not in self._adjoints:
            seeded = [f for f in self._active if key(f) in seeds or f in self._inputs]
            wanted, dots, operations = list(self._active), None, self.operations
            if second:
                dots, _, executor = self._linearised
                operations = executor.operations
                seeded += [dots[f] for f in seeded]
                wanted += [dots[f] for f in wanted]
            made = Trajectory(operations, seeded, wanted, once=True, runs=self._runs)
            self._adjoints[name] = _Adjoint(made, self._active, dots)
        return self._adjoints[name]


class _Places:
    """The tangents or cotangents of functions, as fields; ``of`` are the functions that they belong to."""

    def __init__(
        self, functions: Sequence[Function], of: Sequence[Function], vectors: Tangents
    ) -> None:
        found = [(f, Field(vectors[g]), g in vectors) for f, g in zip(functions, of, strict=True)]
        self._places = [(f, field, own_values(field), nonzero) for f, field, nonzero in found]

    def put(self, vectors: Vectors) -> None:
        """Set the fields to vectors."""
        for f, field, own, _ in self._places:
            values = vectors.of(f)
            own[...] = 0.0 if values is None else values
            field.written()

    def get(self, vectors: Vectors) -> None:
        """Set vectors to the fields, those of zero cotangents to zero."""
        for f, _, own, nonzero in self._places:
            vectors.put(f, own if nonzero else None)


class _Adjoint:
    """A trajectory of one step, with its cotangents."""

    # Of a step with its tangents: the cotangents of tangents are the cotangents, and those of values
    # are their rates.
    def __init__(
        self, trajectory: Trajectory, functions: Sequence[Function], dots: Tangents | None
    ) -> None:
        self.trajectory, cotangents = trajectory, trajectory.cotangents
        along = functions if dots is None else [dots[f] for f in functions]
        self.bars = _Places(functions, along, cotangents)
        self.rates = _Places(functions, functions, cotangents)


def _parts(functions: Iterable[Function]) -> list[Function]:
    return list({key(part): part for f in functions for part in parts(f)}.values())
