"""Numbers of a Real space as fields."""

import numpy as np
from firedrake import Function
from mpi4py import MPI

from fdgeom.forms import is_real
from fdgeom.operations.host import ArrayOperation, owned_values


class Broadcast(ArrayOperation):
    """Sets a Function, on any mesh, to a number of a Real space everywhere."""

    def __init__(self, number: Function, target: Function) -> None:
        super().__init__()
        self._number, self._target = number, target

    @property
    def reads(self) -> list[Function]:
        return [self._number]

    @property
    def writes(self) -> list[Function]:
        return [self._target]

    def run(self) -> None:
        self._target.dat.data_wo[...] = self._shaped(self._number.dat.data_ro)

    def tangents(self, dots):
        values = np.zeros(self._target.dat.data_ro.shape)
        values[...] = self._shaped(*owned_values(dots))
        return [values]

    def cotangents(self, bars):
        (bar,) = bars
        if not is_real(self._target):
            comm = self._target.function_space().comm
            bar = comm.allreduce(np.sum(bar, axis=0), op=MPI.SUM)
        return [np.reshape(bar, self._number.dat.data_ro.shape)]

    def _shaped(self, values) -> np.ndarray | float:
        """The number in the shape of one node, or of the other number."""
        if np.ndim(values) == 0:
            return values
        shape = self._target.dat.data_ro.shape
        return np.reshape(values, shape if is_real(self._target) else shape[1:])
