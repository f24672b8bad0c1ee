"""Checks of the poses of the nodes of rods."""

import numpy as np
from firedrake import Function
from mpi4py import MPI

# Of the square of a quaternion that was meant to be a unit one, as methods keep it.
_UNIT = 1e-8


def check_poses(
    position: Function, orientation: Function, in_rods: np.ndarray | bool = True
) -> None:
    """Raise ``ValueError`` unless quaternions are of length 1, and neighbours in a rod on one side."""
    space = orientation.function_space()
    q = orientation.dat.data_ro_with_halos
    pairs = q[space.cell_node_map().values]
    length = np.abs((q**2).sum(axis=1) - 1).max(initial=0.0)
    side = (pairs[:, 0] * pairs[:, 1]).sum(axis=1)
    side = np.where(in_rods, side, 1.0).min(initial=1.0)
    # NaN fails too.
    bad = not (length < _UNIT and np.all(np.isfinite(position.dat.data_ro)))
    if space.comm.allreduce(int(bad)):
        raise ValueError(
            "orientation must hold unit quaternions, and position finite numbers; divide quaternions "
            "by their lengths, such as with fg.lie.quaternion.normalize"
        )
    if not space.comm.allreduce(side, op=MPI.MIN) > 0:
        raise ValueError(
            "orientation: neighbouring nodes differ by half a turn or more, or by the sign of their "
            "quaternions; refine the mesh, or give them signs that do not jump"
        )
