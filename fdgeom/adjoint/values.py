"""Tangents and cotangents of Functions, part by part, as arrays of what a rank owns."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from firedrake import Cofunction, Function

from fdgeom.solvers import key


def parts(function: Function | Cofunction) -> tuple[Function | Cofunction, ...]:
    """The parts of a Function of a mixed space; of another one itself."""
    mixed = len(function.function_space()) > 1
    return tuple(function.subfunctions) if mixed else (function,)


def cotangent_of(function: Function) -> Cofunction:
    """A new Cofunction for the derivative by a Function, whose dual space is made once."""
    known = function.__dict__
    if "_fdgeom_dual" not in known:
        known["_fdgeom_dual"] = function.function_space().dual()
    return Cofunction(known["_fdgeom_dual"])


def keys(functions: Iterable[Function]) -> set[int]:
    """The keys of all their parts."""
    return {key(part) for f in functions for part in parts(f)}


def fill(part: Function | Cofunction, values: np.ndarray | None) -> None:
    """Set what this rank owns of a part; None is zero."""
    part.dat.data_wo[...] = 0.0 if values is None else values


class Vectors:
    """One array for each part of some Functions, of what this rank owns; others are zero."""

    def __init__(self) -> None:
        self._arrays: dict[int, np.ndarray] = {}

    def of(self, part: Function) -> np.ndarray | None:
        """The array of a part; None where it is zero."""
        return self._arrays.get(key(part))

    def take(self, part: Function) -> np.ndarray | None:
        """The same, and it is zero from now on."""
        return self._arrays.pop(key(part), None)

    def put(self, part: Function, values: np.ndarray | None) -> None:
        """Replace it."""
        self._arrays.pop(key(part), None)
        if values is not None:
            self._arrays[key(part)] = np.array(values)

    def add(self, part: Function, values: np.ndarray) -> None:
        """Add to it."""
        found = self._arrays.get(key(part))
        if found is None:
            self._arrays[key(part)] = np.array(values)
        else:
            found += values

    def keys(self) -> set[int]:
        """The keys of all parts that have one."""
        return set(self._arrays)

    def add_all(self, function: Function, value: Function | Cofunction | None) -> None:
        """Add a (mixed) value of a function."""
        if value is not None:
            for part, more in zip(parts(function), parts(value), strict=True):
                self.add(part, more.dat.data_ro)

    def read_all(self, function: Function, result: Function | Cofunction):
        """Fill a (mixed) result with that of a function, and return it."""
        for part, target in zip(parts(function), parts(result), strict=True):
            fill(target, self.of(part))
        return result

    def __contains__(self, part: Function) -> bool:
        return key(part) in self._arrays

    def copy(self) -> "Vectors":
        """The same, in arrays of their own."""
        made = Vectors()
        made._arrays = {k: np.array(values) for k, values in self._arrays.items()}
        return made


class Kept:
    """Copies of the values of some Functions, ghosts included, that can be put back."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self._parts = [part for f in functions for part in parts(f)]
        self._values = [np.array(values) for values in _all(self._parts)]

    def restore(self) -> None:
        """Put the values back."""
        self._put(self._parts)

    def copied_to(self, function: Function) -> Function:
        """Give the values of one Function to another of its space, and return it."""
        self._put(parts(function))
        return function

    def _put(self, targets: Sequence[Function]) -> None:
        for part, values in zip(targets, self._values, strict=True):
            part.dat.data_wo_with_halos[...] = values

    def differing(self, other: "Kept | None" = None) -> list[Function]:
        """The parts that hold other values now, or in another copy, to the last bit, on this rank."""
        others = _all(self._parts) if other is None else other._values
        return [
            part
            for part, values, now in zip(self._parts, self._values, others, strict=True)
            # Two arrays without a NaN are compared faster.
            if not np.array_equal(values, now) and not np.array_equal(values, now, equal_nan=True)
        ]

    def pairs(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The values now, and those that are kept."""
        return zip(_all(self._parts), self._values, strict=True)

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return sum(values.nbytes for values in self._values)


def _all(wanted: Iterable[Function]) -> Iterator[np.ndarray]:
    for part in wanted:
        yield part.dat.data_ro_with_halos
