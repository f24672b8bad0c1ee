"""Is a Jacobian block diagonal, node by node?"""

from __future__ import annotations

import numpy as np
from firedrake import Form, Function, assemble, derivative

from fdgeom.forms import MATRIX_COMPILER


def is_local(residual: Form, unknown: Function) -> bool:
    """Whether the equations of a residual couple only unknowns of one node.

    Found by assembling the Jacobian at a random value of the unknown: every entry between two
    nodes must be zero exactly (collocated quadratures give exact zeros). A mixed unknown is never
    local.
    """
    space = unknown.function_space()
    if len(space) > 1:
        return False
    keep = np.array(unknown.dat.data_ro_with_halos)
    rng = np.random.default_rng(0)
    unknown.dat.data_wo_with_halos[...] = rng.uniform(0.5, 1.5, keep.shape)
    try:
        matrix = assemble(
            derivative(residual, unknown),
            mat_type="aij",
            form_compiler_parameters=MATRIX_COMPILER,
        ).petscmat
        starts, columns, values = matrix.getValuesCSR()
    finally:
        unknown.dat.data_wo_with_halos[...] = keep
    first, last = matrix.getOwnershipRange()
    rows = np.repeat(np.arange(first, last), np.diff(starts))
    block = space.block_size
    off = rows // block != columns // block
    return not space.comm.allreduce(int(np.any(values[off] != 0)))
