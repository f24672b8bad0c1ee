"""Strains of a piece of rod from the poses of its two ends: three measures, each of second order.

Each measure is a function of the poses (position, unit quaternion) of the two ends and the length
of the piece, and returns six numbers in the section's axes: curvature and twist, then the tangent
(whose difference from the axis along the rod is shear and stretch). All are polynomials, square
roots and quotients that are smooth as long as the piece turns by less than half a turn: they can be
differentiated any number of times. The quaternions of the two ends must lie on one side, q_A·q_B >
0.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import ufl
from firedrake import Constant
from ufl.core.expr import Expr

from fdgeom.beams.rod.variation import Pose, displaced, rate
from fdgeom.lie import join, quaternion
from fdgeom.lie.rotation_coefficients import COTANGENT, POLE, polynomial

# atan(x)/x in x²: the quarter of the angle that a piece turns by. The first term left out is 6e-14
# for a sixteenth of a turn, 4e-8 for an eighth, 2e-6 for a quarter.
_ARCTANGENT = [(-1) ** k / (2 * k + 1) for k in range(6)]
# 1/12 + θ²/720 + θ⁴/30240 + ...
_COTANGENT = [1 / POLE ** (k + 1) * 2 + COTANGENT[k] for k in range(6)]


def simo_reissner(a: Pose, b: Pose, length: Expr) -> Expr:
    """κ = log(q̄_A q_B)/h, Γ = R_mᵀ (x_B - x_A)/h with q_m = (q_A + q_B)/|q_A + q_B|."""
    # Invariant under rigid motions, exact for constant curvature without stretch up to the length
    # of the chord.
    (x, p), (y, q) = a, b
    cosine, _ = _relative(p, q)
    middle = (p + q) / ufl.sqrt(2 * (1 + cosine))
    return join(_logarithm(p, q) / length, quaternion.rotate_inverse(middle, y - x) / length)


def se3_logarithm(a: Pose, b: Pose, length: Expr) -> Expr:
    """log(g_A⁻¹ g_B)/h on SE(3): a piece is a helix, exact for constant strain."""
    (x, p), (y, q) = a, b
    omega = _logarithm(p, q)
    offset = quaternion.rotate_inverse(p, y - x)
    turned = ufl.cross(omega, offset)
    cotangent = polynomial(_COTANGENT, ufl.dot(omega, omega))
    translation = offset - 0.5 * turned + cotangent * ufl.cross(omega, turned)
    return join(omega, translation) / length


def directors(a: Pose, b: Pose, length: Expr) -> Expr:
    """κ = vee(R_Aᵀ R_B - R_Bᵀ R_A)/(2h), Γ = ½(R_A + R_B)ᵀ (x_B - x_A)/h, quadratic in directors."""
    # For methods that conserve energy, which need invariants of second degree; the least accurate
    # of the three.
    (x, p), (y, q) = a, b
    cosine, vector = _relative(p, q)
    tangent = 0.5 * (quaternion.rotate_inverse(p, y - x) + quaternion.rotate_inverse(q, y - x))
    return join(2 * cosine * vector / length, tangent / length)


#: The measures by name.
STRAINS: dict[str, Callable[[Pose, Pose, Expr], Expr]] = {
    "simo-reissner": simo_reissner,
    "se3": se3_logarithm,
    "directors": directors,
}


@cache
def measure_rate(name: str) -> tuple[tuple[Constant, ...], Expr]:
    """The derivative of a measure along displacements of the two ends, and the symbols in it.

    The symbols are the two positions, orientations and displacements, and the length.
    """
    symbols = tuple(Constant(np.zeros(shape)) for shape in (3, 3, 4, 4, 6, 6))
    x, y, p, q, u, v = symbols
    length = Constant(1.0)

    def measured(s: Expr) -> Expr:
        return STRAINS[name](displaced((x, p), s * u), displaced((y, q), s * v), length)

    return (*symbols, length), rate(measured)


def _relative(p: Expr, q: Expr) -> tuple[Expr, Expr]:
    """Scalar and vector part of p̄ q."""
    relative = quaternion.product(quaternion.conjugate(p), q)
    return relative[0], ufl.as_vector([relative[1], relative[2], relative[3]])


def _logarithm(p: Expr, q: Expr) -> Expr:
    """Rotation vector (3) of p̄ q, without trigonometry or conditionals."""
    cosine, vector = _relative(p, q)
    tangent = vector / (1 + cosine)
    return 4 * polynomial(_ARCTANGENT, ufl.dot(tangent, tangent)) * tangent
