"""Tangents and cotangents of Functions as arrays of the values that a rank owns."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from firedrake import Cofunction, Constant, Function

from fdgeom.data import key
from fdgeom.operations import parts

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
