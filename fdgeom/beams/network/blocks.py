"""Copies and comparisons of many small arrays in one call."""

import ctypes
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from pyop2 import compilation

from fdgeom.data import Snapshot

_CODE = """
#include <string.h>
struct Block { char *here, *there; const long *rows; long count, bytes; };

/* The rows of one array to consecutive ones of another; without numbers all of them. */
void fdgeom_take(const struct Block *blocks, long n) {
  for (const struct Block *b = blocks; b != blocks + n; ++b)
    if (!b->rows) memcpy(b->here, b->there, b->count * b->bytes);
    else for (long k = 0; k < b->count; ++k)
      memcpy(b->here + k * b->bytes, b->there + b->rows[k] * b->bytes, b->bytes);
}

/* Whether all of them are the same, to the last bit. */
int fdgeom_same(const struct Block *blocks, long n) {
  for (const struct Block *b = blocks; b != blocks + n; ++b)
    if (memcmp(b->here, b->there, b->count * b->bytes)) return 0;
  return 1;
}
"""


class _Block(ctypes.Structure):
    _fields_ = (
        ("here", ctypes.c_void_p),
        ("there", ctypes.c_void_p),
        ("rows", ctypes.c_void_p),
        ("count", ctypes.c_long),
        ("bytes", ctypes.c_long),
    )


class Blocks:
    """Pairs of arrays of one rank, at fixed addresses, copied or compared in one C call."""

    # Each pair is (here, there, rows): rows of `there` that belong to those of `here`; None if all do.
    def __init__(self, pairs: Sequence[tuple], comm) -> None:
        library = compilation.load(_CODE, "c", comm=comm)
        self._copy, self._compare = library.fdgeom_take, library.fdgeom_same
        for function, result in ((self._copy, None), (self._compare, ctypes.c_int)):
            function.restype, function.argtypes = result, [ctypes.c_void_p, ctypes.c_long]
        self._number, self._kept = len(pairs), []
        self._blocks = (_Block * max(len(pairs), 1))()
        for block, (here, there, rows) in zip(self._blocks, pairs, strict=False):
            if rows is not None:
                rows = np.ascontiguousarray(rows, dtype=np.int64)
                block.rows = rows.ctypes.data
            block.here, block.there = here.ctypes.data, there.ctypes.data
            block.count = len(here)
            block.bytes = here.nbytes // max(len(here), 1)
            self._kept.append((here, there, rows))

    def take(self) -> None:
        """Copy the second arrays into the first ones."""
        self._copy(self._blocks, self._number)

    def same(self) -> bool:
        """Whether the arrays of all pairs are equal, bit by bit; only for pairs of one shape."""
        return bool(self._compare(self._blocks, self._number))


class ManySnapshots:
    """Several snapshots of one communicator, saved and compared in one call."""

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self._snapshots = tuple(snapshots)

    @cached_property
    def _blocks(self) -> Blocks | None:
        """The snapshots as :class:`Blocks`; None on several ranks."""
        comm = self._snapshots[0].comm
        if comm.size > 1:
            return None
        pairs = [(copy, array, None) for s in self._snapshots for copy, array in s.pairs]
        return Blocks(pairs, comm)

    def take(self) -> None:
        """Save the present values."""
        if self._blocks is not None:
            self._blocks.take()
            return
        for snapshot in self._snapshots:
            snapshot.take()

    def holds(self) -> bool:
        """Whether all values equal the saved ones, bit by bit and on all ranks."""
        if self._blocks is not None:
            return self._blocks.same()
        held = [snapshot.holds() for snapshot in self._snapshots]  # each call is collective
        return all(held)
