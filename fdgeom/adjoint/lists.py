"""Lists of operations with their tangents and adjoints, at the present values of their inputs.

Tangents and cotangents are arrays of the values that a rank owns.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from firedrake import Cofunction, Constant, Form, Function

from fdgeom.data import Field, key
from fdgeom.execution import (
    Executor,
    FunctionalAssembly,
    Run,
    Trajectory,
    VectorAssembly,
    own_values,
)
from fdgeom.forms import has_nodal_values, slope_by
from fdgeom.operations import (
    Cotangents,
    Map,
    Operation,
    Tangents,
    differentiable,
    each_part,
    linearise,
    parts,
)

_duals: WeakKeyDictionary[Function, Any] = WeakKeyDictionary()


def cotangent_of(function: Function) -> Cofunction:
    """A new Cofunction for the derivative by a Function; its dual space is made once."""
    if function not in _duals:
        _duals[function] = function.function_space().dual()
    return Cofunction(_duals[function])


def keys(functions: Iterable[Function]) -> set[int]:
    """The keys of all parts of functions."""
    return {id(dat) for f in functions for dat in f.dat}


class Vectors(dict[int, np.ndarray]):
    """One array of owned values for each part of some Functions, by its key; missing parts are zero."""

    # No array is changed in place, so copies may share them.
    def of(self, part: Function) -> np.ndarray | None:
        """The array of a part; None if it is zero."""
        return self.get(key(part))

    def put(self, part: Function, values: np.ndarray | None) -> None:
        """Replace the array of a part."""
        self.pop(key(part), None)
        if values is not None:
            self[key(part)] = np.array(values)

    def add(self, part: Function, values: np.ndarray) -> None:
        """Add to the array of a part."""
        self[key(part)] = values + self.get(key(part), 0.0)

    def add_all(self, function: Function, value: Function | Cofunction | None) -> None:
        """Add the value of a (mixed) function."""
        if value is not None:
            for part, more in zip(parts(function), parts(value), strict=True):
                self.add(part, more.dat.data_ro)

    def read_all(self, function: Function, result: Function | Cofunction):
        """Fill a (mixed) result with the arrays of a function, and return it."""
        for part, target in zip(parts(function), parts(result), strict=True):
            values = self.of(part)
            target.dat.data_wo[...] = 0.0 if values is None else values
        return result


class Kept:
    """Copies of the values of some Functions and Constants, ghosts included, that can be restored."""

    def __init__(self, functions: Sequence[Function | Constant]) -> None:
        self._dats = [dat for f in functions for dat in f.dat]
        self._values = [np.array(dat.data_ro_with_halos) for dat in self._dats]

    def restore(self) -> None:
        """Copy the values back."""
        self._put(self._dats)

    def copied_to(self, function: Function) -> Function:
        """Copy the values of one Function to another one of its space, and return that."""
        self._put(function.dat)
        return function

    def _put(self, targets: Iterable) -> None:
        for dat, values in zip(targets, self._values, strict=True):
            dat.data_wo_with_halos[...] = values

    def differs(self) -> bool:
        """Whether a present value on this rank is not the saved one, bit by bit."""
        # The first comparison is faster, but NaN differs from NaN there.
        return not all(
            np.array_equal(now, was) or np.array_equal(now, was, equal_nan=True)
            for now, was in self.pairs()
        )

    def pairs(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs of the present and the saved values."""
        return zip((dat.data_ro_with_halos for dat in self._dats), self._values, strict=True)

    @property
    def nbytes(self) -> int:
        """The number of bytes of the values."""
        return sum(values.nbytes for values in self._values)


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


class Slopes:
    """A functional and its derivatives by all functions that steps change or that depend on data."""

    def __init__(self, form: Form, active: set[int]) -> None:
        self.form, self._value = form, FunctionalAssembly(form)
        found = [(f, slope_by(form, f)) for f in form.coefficients() if keys([f]) & active]
        self._slopes = [(f, VectorAssembly(slope)) for f, slope in found if slope is not None]
        #: The keys of the functions that it has derivatives by.
        self.by = keys(f for f, _ in self._slopes)

    def add_to(self, cotangents: Vectors) -> float:
        """Add its present derivatives to cotangents; returns its present value."""
        for f, slope in self._slopes:
            for part, values in zip(parts(f), slope.values(), strict=True):
                cotangents.add(part, values)
        return self._value.assemble()


@dataclass
class Objective:
    """A functional of the state after the last step, and one of that after each step; or neither."""

    end: Slopes | None = None
    each: Slopes | None = None
    #: The value of what has been added.
    value: float = 0.0

    @property
    def running(self) -> Form | None:
        """The functional of the state after each step."""
        return None if self.each is None else self.each.form

    @property
    def by(self) -> set[int]:
        """The keys of the functions that it has derivatives by."""
        return set().union(*(part.by for part in (self.end, self.each) if part is not None))

    def add(self, cotangents: Vectors, *, last: bool, running: bool = True) -> None:
        """Add the derivatives at the state after a step to cotangents, and the value to ``value``."""
        for part, counts in ((self.end, last), (self.each, running)):
            if part is not None and counts:
                self.value += part.add_to(cotangents)


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
        return tangents_of(self.operations, keys(self._active))

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


def tangents_of(operations: Sequence[Operation], active: Set[int]) -> Tangents:
    """Tangents of functions with these keys; those of mixed functions serve their parts."""
    every = (f for op in operations for f in (*op.reads, *op.writes))
    return Tangents(f for f in every if keys([f]) & active)


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
