"""Values of Firedrake functions as arrays that stay where they are."""

from __future__ import annotations

import numpy as np
from firedrake import Cofunction, Function
from mpi4py import MPI
from pyop2 import op2


class Field:
    """The values of a function (not mixed), ghosts included, for use in tight loops.

    Attributes
    ----------
    array : numpy.ndarray
        All local values, ghosts last, shape (nodes, ...). It stays valid as long as the function.
    owned : numpy.ndarray
        The values that this rank owns.
    block : int
        Values a node.
    """

    def __init__(self, function: Function | Cofunction) -> None:
        self.function = function
        self._dat = function.dat
        self.array = self._dat.data_with_halos
        self.owned = self.array[: self._dat.dataset.size]
        self.block = self._dat.cdim
        self._parallel = function.function_space().comm.size > 1

    def update_ghosts(self) -> None:
        """Fetch the ghosts' values if they are stale."""
        if self._parallel and not self._dat.halo_valid:
            self._dat.global_to_local_begin(op2.READ)
            self._dat.global_to_local_end(op2.READ)

    def written(self, ghosts_too: bool = False) -> None:
        """Tell Firedrake that the array has been written to."""
        self._dat.increment_dat_version()
        if self._parallel:
            self._dat.halo_valid = ghosts_too


def fields(function: Function | Cofunction) -> tuple[Field, ...]:
    """One :class:`Field` for each part of a (possibly mixed) function."""
    return tuple(Field(f) for f in function.subfunctions)


class Snapshot:
    """A copy of some functions' values that can be put back."""

    def __init__(self, functions) -> None:
        self._fields = [Field(f) for f in functions]
        self._copies = [np.array(f.array) for f in self._fields]

    def take(self) -> None:
        """Remember the present values."""
        for field, copy in zip(self._fields, self._copies, strict=True):
            field.update_ghosts()
            copy[...] = field.array

    def holds(self) -> bool:
        """Whether all values are the remembered ones, to the last bit and on all ranks."""
        same = all(
            np.array_equal(field.owned, copy[: len(field.owned)])
            for field, copy in zip(self._fields, self._copies, strict=True)
        )
        comm = self._fields[0].function.function_space().comm
        return same if comm.size == 1 else bool(comm.allreduce(int(same), op=MPI.MIN))

    def restore(self) -> None:
        """Put the remembered values back."""
        for field, copy in zip(self._fields, self._copies, strict=True):
            field.array[...] = copy
            field.written(ghosts_too=True)
