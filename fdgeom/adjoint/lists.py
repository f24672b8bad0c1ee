"""Lists of operations with their tangents and adjoints, at the present values of their inputs."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

from firedrake import Function

from fdgeom.adjoint.values import Vectors, keys
from fdgeom.data import Field, key
from fdgeom.execution import Executor, Run, Trajectory, own_values
from fdgeom.forms import has_nodal_values
from fdgeom.operations import (
    Cotangents,
    Map,
    Operation,
    Tangents,
    differentiable,
    each_part,
    linearise,
)


@dataclass
class Derivatives:
    """The cotangents of Functions; for second derivatives also tangents and the rates along these."""

    cotangents: Vectors = field(default_factory=Vectors)
    rates: Vectors = field(default_factory=Vectors)
    tangents: Vectors | None = None

    def keys(self) -> set[int]:
        """The keys of all parts with a cotangent or its rate."""
        return self.cotangents.keys() | self.rates.keys()

    def put(self, places: Sequence["Places"]) -> None:
        """Set the fields of cotangents and rates."""
        for vectors, place in zip((self.cotangents, self.rates), places, strict=False):
            place.put(vectors)

    def get(self, places: Sequence["Places"]) -> None:
        """Read cotangents and rates from their fields."""
        for vectors, place in zip((self.cotangents, self.rates), places, strict=False):
            place.get(vectors)


class OperationList:
    """Operations that are performed once, with those for tangents and adjoints, made when needed."""

    # active: keys of the functions that derivatives are taken by; all that operations write is active
    # too. runs: calls that perform the operations, to be shared.
    def __init__(
        self, operations: Sequence[Operation], active: Set[int], runs: dict[Operation, Run]
    ) -> None:
        self.operations, self._runs = tuple(differentiable(operations)), runs
        self.targets = each_part(f for op in self.operations for f in op.writes)
        self._written = keys(self.targets)
        read = each_part(f for op in self.operations for f in op.reads)
        self._inputs = [f for f in read if key(f) in active and key(f) not in self._written]
        self._active = [*self._inputs, *self.targets]
        self._trajectories: dict[tuple, tuple[Trajectory, list[Places]]] = {}
        for op in self.operations:
            for f in (*op.reads, *op.writes) if isinstance(op, Map) else ():
                if not has_nodal_values(f.function_space()):
                    raise NotImplementedError(
                        f"gradients through assignments of {f.name()} are not available: its degrees "
                        "of freedom are not values at nodes"
                    )

    @cached_property
    def executor(self) -> Executor:
        """Performs the operations."""
        return Executor(self.operations, self._runs)

    @cached_property
    def linearised(self) -> Executor:
        """Performs the operations with those for the tangents in :attr:`places`."""
        return Executor(linearise(self.operations, self._dots), self._runs)

    @cached_property
    def places(self) -> "Places":
        """The tangents of all active functions."""
        return Places(self._active, self._active, self._dots)

    @cached_property
    def _dots(self) -> Tangents:
        # Tangents of mixed functions serve their parts.
        active = keys(self._active)
        whole = [f for op in self.operations for f in (*op.reads, *op.writes) if keys([f]) & active]
        return Tangents([*whole, *self._active])

    def trajectory(
        self, seeds: Set[int], *, second: bool = False
    ) -> tuple[Trajectory, list["Places"]]:
        """One run of the operations, or of these with their tangents, and its cotangents."""
        # seeds: keys of the functions that may have cotangents after the operations.
        name = frozenset(seeds & self._written), second
        if name not in self._trajectories:
            operations, wanted, dots = self.operations, list(self._active), None
            seeded = [f for f in self._active if key(f) in seeds or f in self._inputs]
            if second:
                operations, dots = self.linearised.operations, self._dots
                seeded += [dots[f] for f in seeded]
                wanted += [dots[f] for f in wanted]
            made = Trajectory(operations, seeded, wanted, runs=self._runs)
            places = cotangent_places(self._active, dots, made.cotangents)
            self._trajectories[name] = made, places
        return self._trajectories[name]


class Places:
    """The tangents or cotangents of functions as fields; ``of`` are the functions they belong to."""

    def __init__(
        self, functions: Iterable[Function], of: Iterable[Function], vectors: Tangents
    ) -> None:
        found = [(f, Field(vectors[g]), g in vectors) for f, g in zip(functions, of, strict=True)]
        self._places = [(f, place, own_values(place), there) for f, place, there in found]

    @property
    def functions(self) -> list[Function]:
        """The fields."""
        return [place.function for _, place, _, _ in self._places]

    def put(self, vectors: Vectors) -> None:
        """Set the fields to vectors."""
        for f, place, own, _ in self._places:
            values = vectors.of(f)
            own[...] = 0.0 if values is None else values
            place.written()

    def get(self, vectors: Vectors) -> None:
        """Set vectors to the fields, those of zero cotangents to zero."""
        for f, _, own, nonzero in self._places:
            vectors.put(f, own if nonzero else None)


def cotangent_places(
    functions: Sequence[Function], dots: Tangents | None, cotangents: Cotangents
) -> list[Places]:
    """The cotangents of functions and, with their tangents, the rates."""
    found = [Places(functions, functions, cotangents)]
    if dots is not None:
        # The cotangents of tangents are the cotangents, and those of values are the rates.
        moved = [f for f in functions if f in dots and cotangents.is_active(dots[f])]
        found.insert(0, Places(moved, [dots[f] for f in moved], cotangents))
    return found
