"""Virtual displacements of a configuration, and derivatives along them.

A virtual displacement is (rotation, translation), a vector of 6: the rotation in the body frame, the
translation in the space frame.
"""

from collections.abc import Callable

import ufl
from firedrake import Constant
from ufl.algorithms import expand_derivatives, replace
from ufl.core.expr import Expr

from fdgeom.lie import halves, join, quaternion

Pose = tuple[Expr, Expr]


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
    s = ufl.variable(Constant(0.0))
    return replace(expand_derivatives(ufl.diff(value(s), s)), {s: ufl.as_ufl(0.0)})


def body_translation(orientation: Expr, displacement: Expr) -> Expr:
    """A displacement whose translation is in the body frame, as one with it in the space frame."""
    rotation, translation = halves(displacement, "displacement")
    return join(rotation, quaternion.rotate(orientation, translation))
