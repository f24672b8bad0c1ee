"""Copies of the arrays that steps change, one row per step."""

import ctypes
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from fdgeom.solvers.chain.layout import aligned
from fdgeom.solvers.chain.structs import Kept


class Rows:
    """Rows that each hold copies of some arrays, one after another."""

    def __init__(self, arrays: Sequence[np.ndarray], number: int) -> None:
        self._arrays = [values.reshape(-1) for values in arrays]
        sizes = np.array([values.size for values in arrays], dtype=np.int64)
        self._starts = np.append(0, np.cumsum(sizes))
        #: Length of a row.
        self.length = int(self._starts[-1])
        self._rows = aligned((number, self.length))
        places = (ctypes.c_void_p * len(arrays))(*(values.ctypes.data for values in arrays))
        self._told = sizes, places

    def _parts(self, row: int) -> Iterator[np.ndarray]:
        return (self._rows[row, a:b] for a, b in pairwise(self._starts))

    def put(self, row: int) -> None:
        """Copy the arrays into a row."""
        for part, values in zip(self._parts(row), self._arrays, strict=True):
            part[...] = values

    def restore(self, row: int) -> None:
        """Copy a row back into the arrays."""
        for part, values in zip(self._parts(row), self._arrays, strict=True):
            values[...] = part

    def kept(self, row: int) -> Kept:
        """The struct for compiled steps: the first step fills the row after ``row``."""
        sizes, places = self._told
        return Kept(
            arrays=ctypes.cast(places, ctypes.c_void_p),
            sizes=sizes.ctypes.data,
            n=len(sizes),
            length=self.length,
            to=self._address(row, 0),
        )

    def addresses(self, rows: Sequence[int]) -> list[int]:
        """The address of the copy of each array, in the row given for that array."""
        return [self._address(row, k) for k, row in enumerate(rows)]

    def _address(self, row: int, array: int) -> int:
        return self._rows.ctypes.data + 8 * int(row * self.length + self._starts[array])
