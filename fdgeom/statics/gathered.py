"""Whole matrices and vectors on every process, and the symmetry of a stiffness with loads."""

import numpy as np
import scipy.sparse as sparse
from firedrake import Function
from petsc4py import PETSc


def gathered(comm, values: np.ndarray) -> np.ndarray:
    """The values of all processes, one after the other."""
    return np.concatenate(comm.allgather(np.array(values)))


def scattered(everything: np.ndarray, function: Function) -> Function:
    """Set a function to the gathered values of all processes."""
    own = function.dat.data_ro
    first = function.function_space().comm.scan(own.size) - own.size
    function.dat.data_wo[...] = everything[first : first + own.size].reshape(own.shape)
    return function


def to_scipy(matrix: PETSc.Mat) -> sparse.csr_matrix:
    """The whole matrix on every process."""
    rows, columns, values = matrix.getValuesCSR()
    blocks = matrix.getComm().tompi4py().allgather((rows, columns, values))
    size = matrix.getSize()
    parts = [sparse.csr_matrix((v, c, r), shape=(len(r) - 1, size[1])) for r, c, v in blocks]
    return sparse.vstack(parts, format="csr")


def is_symmetric(stiffness: sparse.csr_matrix, of_loads: sparse.csr_matrix) -> bool:
    """Whether a stiffness with the part ``of_loads`` is symmetric to round-off."""
    # Then the loads are conservative. Newton's method leaves 1e-12 of the forces, and for wires the
    # round-off of the axial force; without loads nothing else is unsymmetric.
    return abs(stiffness - stiffness.T).max() <= 1e-6 * abs(of_loads).max()
