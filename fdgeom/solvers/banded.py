"""An LU for unknowns along rods: their order gives a narrow band."""

from __future__ import annotations


def banded(comm) -> dict:
    """PETSc options: an LU without pivoting in the order of the nodes; MUMPS on several ranks."""
    options = {"mat_type": "aij", "ksp_type": "preonly", "pc_type": "lu"}
    if comm.size > 1:
        return options | {"pc_factor_mat_solver_type": "mumps", "mat_mumps_icntl_7": 5}
    return options | {"pc_factor_mat_ordering_type": "natural", "pc_factor_zeropivot": 1e-50}
