"""Poses of nodes: virtual displacements, derivatives along them, and the check of given poses.

A virtual displacement is (rotation, translation), a vector of 6: the rotation in the body frame, the
translation in the space frame.
"""

from collections.abc import Callable

import numpy as np
import ufl
from firedrake import Constant, Function
from mpi4py import MPI
from ufl.algorithms import expand_derivatives, replace
from ufl.core.expr import Expr

from fdgeom.lie import halves, join, quaternion

Pose = tuple[Expr, Expr]

# Of the square of a quaternion that was meant to be a unit one, as methods keep it.
_UNIT = 1e-8


def displaced(configuration: Pose, displacement: Expr) -> Pose:
    """The configuration after a small displacement, correct to second order."""
    position, orientation = configuration
    rotation, translation = halves(displacement, "displacement")
    turn = join(
        ufl.as_vector([1 - 0.125 * ufl.dot(rotation, rotation)]),
        0.5 * rotation,
    )
    # The quaternion (1 - |θ|²/8, θ/2) has no root and no quotient.
    return position + translation, quaternion.product(orientation, turn)


def rate(value: Callable[[Expr], Expr]) -> Expr:
    """d value(s)/ds at s = 0: with ``value(s) = f(displaced(g, s * w))`` the derivative of f along
    any expression w, such as a test function or a velocity.
    """
    return slope(value, ufl.as_ufl(0.0))


def slope(function: Callable[[Expr], Expr], at: Expr) -> Expr:
    """The derivative of a function of a scalar or vector."""
    y = ufl.variable(Constant(np.zeros(at.ufl_shape)))
    return replace(expand_derivatives(ufl.diff(function(y), y)), {y: at})


def spin(q: Expr, q_rate: Expr) -> Expr:
    """The angular velocity (3, body frame) of a unit quaternion that changes by ``q_rate``."""
    relative = quaternion.product(quaternion.conjugate(q), q_rate)
    return 2 * ufl.as_vector([relative[1], relative[2], relative[3]])


def body_translation(orientation: Expr, displacement: Expr) -> Expr:
    """A displacement whose translation is in the body frame, as one with it in the space frame."""
    rotation, translation = halves(displacement, "displacement")
    return join(rotation, quaternion.rotate(orientation, translation))


def in_body(orientation: Expr, displacement: Expr) -> Expr:
    """A displacement whose translation is in the space frame, as one with it in the body frame."""
    rotation, translation = halves(displacement, "displacement")
    return join(rotation, quaternion.rotate_inverse(orientation, translation))


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
