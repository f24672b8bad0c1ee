"""Data that the ranks of a chain share: numbers of nodes, tables and sums."""

import ctypes

import numpy as np
from firedrake import Function
from mpi4py import MPI
from petsc4py import PETSc

from fdgeom.forms import scalar_space
from fdgeom.solvers.chain.structs import Ranks


def numbers_everywhere(function: Function) -> np.ndarray:
    """For each local node or cell of a function, ghosts included, its number on all ranks."""
    space = function.function_space()
    if space.comm.size == 1:
        return np.arange(space.node_set.total_size)
    return np.asarray(scalar_space(space).dof_dset.lgmap.indices, dtype=int)


def of_all(comm: MPI.Comm, table: np.ndarray) -> np.ndarray:
    """The columns of the tables of all ranks, side by side."""
    return table if comm.size == 1 else np.hstack(comm.allgather(table))


def largest_of_all(comm: MPI.Comm, number):
    """The largest of the ranks' numbers, or of arrays entry by entry."""
    if comm.size == 1:
        return number
    return np.max(comm.allgather(number), axis=0)


def sums(comm: MPI.Comm, values: int) -> tuple[Ranks | None, list]:
    """The struct that sums up to ``values`` numbers over ranks (None on one), and objects to keep alive."""
    if comm.size == 1:
        return None, []
    library = ctypes.CDLL(PETSc.__file__)  # which is linked to MPI's library
    own, everything = np.zeros(values), np.zeros(values)
    made = Ranks(
        allreduce=ctypes.cast(library.MPI_Allreduce, ctypes.c_void_p).value,
        real=MPI.DOUBLE.handle,
        sum=MPI.SUM.handle,
        comm=comm.handle,
        own=own.ctypes.data,
        all=everything.ctypes.data,
    )
    return made, [library, own, everything, made, comm]
