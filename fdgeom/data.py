"""Values of Firedrake functions as NumPy arrays whose addresses stay the same."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from math import isfinite
from operator import ne

import numpy as np
from firedrake import Cofunction, Constant, Function
from mpi4py import MPI
from petsc4py import PETSc
from pyop2 import op2
from scipy.linalg.blas import dasum

from fdgeom.interrupt import shielded

_compare = ctypes.CDLL(None).memcmp
_compare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


def key(function: Function | Constant) -> int:
    """The identity of a function's data: all views of one function have the same key."""
    return id(function.dat)


def norm(function: Function | Cofunction) -> float:
    """The Euclidean norm of all degrees of freedom."""
    with function.dat.vec_ro as values:
        return values.norm()


def largest(comm, values) -> float:
    """The largest absolute value on all ranks; NaN if there is one, which MPI's maximum can lose."""
    return float(np.max(comm.allgather(np.abs(values).max(initial=0.0))))


def _difference(a: np.ndarray, b: np.ndarray) -> Callable[[], bool | int]:
    """A function that compares two arrays bit by bit; both must stay at their addresses."""
    if 0 < a.nbytes <= 1024:  # a call through ctypes takes ten times longer than this comparison
        return partial(ne, _words(a), _words(b))
    return partial(_compare, a.ctypes.data, b.ctypes.data, a.nbytes)


def _words(array: np.ndarray) -> memoryview:
    """A non-empty array as a memory view of 64-bit words."""
    return array.data.cast("B").cast("Q")


class Number:
    """A scalar Constant that tight loops can read and set quickly."""

    def __init__(self, constant: Constant) -> None:
        # A view gives its number faster than an array; the casts tell its type.
        self._value = memoryview(constant.dat.data).cast("B").cast("d")
        self._changed = constant.dat.increment_dat_version

    def set(self, value: float) -> None:
        """Assign a value."""
        if self._value[0] != value:
            self._value[0] = value
            self._changed()

    @property
    def value(self) -> float:
        """The present value."""
        return self._value[0]


class Field:
    """The values of a function (not mixed), ghosts last; the arrays stay valid as long as it does."""

    def __init__(self, function: Function | Cofunction) -> None:
        self.function = function
        self._dat = function.dat
        self.array = self._dat.data_with_halos
        self.owned = self.array[: self._dat.dataset.size]
        #: Number of values at a node.
        self.block = self._dat.cdim
        self._changed = self._dat.increment_dat_version
        self._parallel = function.function_space().comm.size > 1

    def update_ghosts(self) -> None:
        """Fetch the ghost values if they are stale."""
        if self._parallel and not self._dat.halo_valid:
            self._dat.global_to_local_begin(op2.READ)
            self._dat.global_to_local_end(op2.READ)

    def at(self, dofs: np.ndarray) -> np.ndarray:
        """A copy of the values at flat degrees of freedom of this rank, ghosts up to date."""
        self.update_ghosts()
        return self.array.reshape(-1)[dofs]

    def written(self, ghosts_too: bool = False) -> None:
        """Tell Firedrake that the array has been written to."""
        self._changed()
        if self._parallel:
            self._dat.halo_valid = ghosts_too


def fields(function: Function | Cofunction) -> tuple[Field, ...]:
    """One :class:`Field` for each part of a (possibly mixed) function."""
    return tuple(Field(f) for f in function.subfunctions)


def spread(values: np.ndarray, parts: Sequence[Field]) -> None:
    """Copy a vector of this rank's degrees of freedom, part after part, into fields."""
    start = 0
    for part in parts:
        part.owned.reshape(-1)[...] = values[start : start + part.owned.size]
        start += part.owned.size
        part.written()


def collect(parts: Sequence[Field], values: np.ndarray) -> None:
    """Copy this rank's degrees of freedom of fields, part after part, into a vector."""
    start = 0
    for part in parts:
        values[start : start + part.owned.size] = part.owned.reshape(-1)
        start += part.owned.size


def entries(matrix: PETSc.Mat) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and values of this rank's entries of a sparse matrix."""
    starts, columns, values = matrix.getValuesCSR()
    first, last = matrix.getOwnershipRange()
    return np.repeat(np.arange(first, last), np.diff(starts)), columns, values


class Snapshot:
    """A copy of the values of some (possibly mixed) functions that can be restored.

    ``numbers`` are Constants, and Functions of Real spaces.
    """

    def __init__(self, functions, numbers=()) -> None:
        self._fields = [field for f in functions for field in fields(f)]
        self.comm = (
            self._fields[0].function.function_space().comm if self._fields else MPI.COMM_SELF
        )
        self._ghosted = self._fields if self.comm.size > 1 else []
        self._numbers = list(numbers)
        self._keys = [*(key(f.function) for f in self._fields), *map(key, numbers)]
        own = [*(f.array for f in self._fields), *(number.dat.data for number in numbers)]
        #: The copies and the functions' own arrays; both stay where they are.
        self.pairs = [(np.array(array), array) for array in own]
        #: The functions' block variables on pyadjoint's tape at that time, and their values then.
        self.known_by: dict[int, tuple] = {}

    @cached_property
    def _differences(self) -> list[Callable[[], bool | int]]:
        """The comparisons of each array with its copy, without ghosts."""
        owned = [*(f.owned for f in self._fields), *(a for _, a in self.pairs[len(self._fields) :])]
        return [
            _difference(array, copy.reshape(-1)[: array.size])
            for array, (copy, _) in zip(owned, self.pairs, strict=True)
        ]

    @cached_property
    def _words(self) -> list[tuple[memoryview, memoryview]]:
        """The copies and arrays as memory views, by which small ones are copied in half the time."""
        return [(_words(copy), _words(array)) for copy, array in self.pairs if array.size]

    @cached_property
    def _flat(self) -> list[np.ndarray]:
        return [f.owned.reshape(-1) for f in self._fields if f.owned.size]

    def update_ghosts(self) -> None:
        """Bring the present values of ghosts up to date; collective."""
        for field in self._ghosted:
            field.update_ghosts()

    def take(self, of=None) -> None:
        """Save the present values; with ``of``, only those of the keys in ``of``."""
        if self._ghosted:
            self.update_ghosts()
        if of is None:
            for saved, present in self._words:
                saved[:] = present
            return
        for name, (copy, array) in zip(self._keys, self.pairs, strict=True):
            if name in of:
                copy[...] = array

    def forget(self) -> None:
        """Save values that no function has, so that all count as changed."""
        for copy, _ in self.pairs:
            copy[...] = np.nan

    def holds(self) -> bool:
        """Whether all values equal the saved ones, bit by bit and on all ranks."""
        same = True
        for differ in self._differences:  # not `any`: asked before each step of a small system
            if differ():
                same = False
                break
        return bool(self.comm.allreduce(int(same), op=MPI.MIN)) if self._ghosted else same

    def sees_finite(self, own: bool | None = None) -> bool:
        """Whether the present values are finite, on all ranks; ``own``: on this one, if that is known."""
        if own is None:
            # If a value is not finite, the sum is not either; summing takes a tenth of the time.
            own = all(isfinite(dasum(x)) or np.isfinite(x).all() for x in self._flat)
        return own if not self._ghosted else bool(self.comm.allreduce(int(own), op=MPI.MIN))

    def changed(self) -> list[bool]:
        """For each function (or part of one), whether a value differs from the saved one on any rank."""
        found = [bool(differ()) for differ in self._differences]
        return (
            found
            if not self._ghosted
            else [any(x) for x in zip(*self.comm.allgather(found), strict=True)]
        )

    def values(self) -> list[np.ndarray]:
        """Copies of the saved values."""
        return [np.array(copy) for copy, _ in self.pairs]

    def remember(self, values: list[np.ndarray], of=None) -> None:
        """Replace saved values by those of :meth:`values`; with ``of``, only those of the keys in ``of``."""
        for name, (copy, _), given in zip(self.keys(), self.pairs, values, strict=True):
            if of is None or name in of:
                copy[...] = given

    def keys(self) -> list[int]:
        """The keys of the functions, or of their parts, and of the numbers."""
        return list(self._keys)

    def changed_keys(self) -> set[int]:
        """The keys of the functions whose values differ from the saved ones, on any rank."""
        return {name for name, now in zip(self.keys(), self.changed(), strict=True) if now}

    def restore(self) -> None:
        """Copy the saved values back."""
        for copy, array in self.pairs:
            array[...] = copy
        for field in self._fields:
            field.written(ghosts_too=True)
        for number in self._numbers:
            number.dat.increment_dat_version()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Context that saves the values, and restores them if an exception leaves it."""
        self.take()
        try:
            yield
        except BaseException:  # Ctrl-C too
            with shielded():
                self.restore()
            raise
