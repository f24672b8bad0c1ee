"""Copies of arrays that steps change, a row for each of many."""

import ctypes
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from fdgeom.solvers.chain.layout import aligned
from fdgeom.solvers.chain.structs import Kept


class Rows:
    """Rows of copies of some arrays, one after another."""

    def __init__(self, arrays: Sequence[np.ndarray], number: int) -> None:
        self._arrays = [values.reshape(-1) for values in arrays]
        sizes = np.array([values.size for values in arrays], dtype=np.int64)
        self._starts = np.append(0, np.cumsum(sizes))
        #: Numbers in a row.
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
        """Give them what a row holds."""
        for part, values in zip(self._parts(row), self._arrays, strict=True):
            values[...] = part

    def kept(self, row: int) -> Kept:
        """For compiled steps: the first of them fills what follows a row."""
        sizes, places = self._told
        return Kept(
            arrays=ctypes.cast(places, ctypes.c_void_p),
            sizes=sizes.ctypes.data,
            n=len(sizes),
            length=self.length,
            to=self._address(row, 0),
        )

    def addresses(self, rows: Sequence[int]) -> list[int]:
        """Where the copy of each array is, in the row given for it."""
        return [self._address(row, k) for k, row in enumerate(rows)]

    def _address(self, row: int, array: int) -> int:
        return self._rows.ctypes.data + 8 * int(row * self.length + self._starts[array])
