"""Saddle-point solves: a motion together with the multiplier of its constraint."""

import numpy as np
from firedrake import Form, Function, assemble, derivative

from fdgeom.operations import ConvergenceTest
from fdgeom.solvers.data import Snapshot, entries
from fdgeom.solvers.held_snes import COUPLED, HeldSNES, defaults

# Up to this number of unknowns a plain LU, in spite of its fill, is faster than a Schur complement.
_SMALL = 1000
_MUMPS = {"pc_factor_mat_solver_type": "mumps", "mat_mumps_icntl_7": 5}
_NATURAL = {"pc_factor_mat_ordering_type": "natural", "pc_factor_zeropivot": 1e-50}
_SCHUR = {
    "pc_type": "fieldsplit",
    "pc_fieldsplit_type": "schur",
    "pc_fieldsplit_schur_fact_type": "full",
    "pc_fieldsplit_schur_precondition": "selfp",
    "pc_fieldsplit_detect_saddle_point": True,
    "fieldsplit_0_ksp_type": "preonly",
    "fieldsplit_0_pc_type": "jacobi",
    "fieldsplit_1_ksp_type": "preonly",
    "fieldsplit_1_pc_type": "lu",
}


def saddle_defaults(residual: Form, unknown: Function) -> dict:
    """Default options for F(x, λ) = 0, linear or Newton."""
    options = defaults(residual, unknown, local=False)
    if options["snes_type"] != "ksponly":
        # Constraints hold to the last digit; the convergence test ends the iteration at round-off.
        options["snes_rtol"] = 1e-15
    space = unknown.function_space()
    parallel = space.comm.size > 1
    # A diagonal matrix of x (mass lumping) makes the elimination of x exact: by PETSc's LU in the
    # natural order for small problems, else by a Schur complement that selfp assembles.
    if not _first_block_is_diagonal(residual, unknown):
        return options | _MUMPS
    if space.dim() <= _SMALL and not parallel:
        return options | _NATURAL
    options |= _SCHUR
    if parallel:
        options |= {f"fieldsplit_1_{key}": value for key, value in _MUMPS.items()}
    return options


def banded(comm) -> dict:
    """PETSc options for unknowns in the order of a rod: an LU without pivoting; MUMPS on several ranks."""
    return COUPLED | (_MUMPS if comm.size > 1 else _NATURAL)


def _first_block_is_diagonal(residual: Form, unknown: Function) -> bool:
    """Whether the equations of the first part couple none of its values to one another."""
    keep = Snapshot(unknown.subfunctions)
    keep.take()
    rng = np.random.default_rng(0)
    for f in unknown.subfunctions:
        f.dat.data_wo[...] = rng.uniform(0.5, 1.5, f.dat.data_ro.shape)
    try:
        # The whole Jacobian is assembled: its kernels are needed anyway.
        matrix = assemble(derivative(residual, unknown), mat_type="aij").petscmat
    finally:
        keep.restore()
    rows, columns, values = entries(matrix)
    # Rows and columns of a rank are those of the first part, then those of the second.
    comm, part = unknown.function_space().comm, unknown.function_space()[0]
    sizes = np.array(comm.allgather(part.dof_dset.size * part.block_size))
    owners = matrix.getOwnershipRanges()

    def in_first(index):
        rank = np.searchsorted(owners, index, side="right") - 1
        return index - owners[rank] < sizes[rank]

    block = in_first(rows) & in_first(columns)
    scale = np.abs(values[block]).max(initial=0.0)
    coupled = np.any(np.abs(values[block & (rows != columns)]) > 1e-14 * scale)
    return not comm.allreduce(int(coupled))


class SaddleSNES(HeldSNES):
    """A :class:`HeldSNES` whose Newton iteration also ends at round-off."""

    def __init__(self, residual, unknown, *, converged=None, options=None, **arguments) -> None:
        options = saddle_defaults(residual, unknown) if options is None else options
        converged = converged or ConvergenceTest()
        super().__init__(residual, unknown, converged=converged, options=options, **arguments)
