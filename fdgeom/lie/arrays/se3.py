"""se(3) and SE(3) on arrays: x = (ω, v) (..., 6), motions (..., 4, 4) or poses (..., 3), (..., 4).

Tangent maps are left trivialised, f(x)⁻¹ Df(x)·δ = hat(df(x) δ), as in ``fdgeom.lie.se3``.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fdgeom.lie.arrays import quaternion, so3
from fdgeom.lie.arrays.operands import (
    blocks,
    coefficients,
    cross,
    dot,
    halves,
    join,
    motion,
    outer,
    pair,
    tensor,
)

Pose = tuple[NDArray, NDArray]

_IDENTITY = np.eye(3)
_ZERO = np.zeros((3, 3))


# --- the algebra and its dual ---------------------------------------------------------------


def hat(x: ArrayLike) -> NDArray:
    """Matrices (..., 4, 4) [[hat(ω), v], [0, 0]] of x = (ω, v)."""
    omega, v = halves(x, "x")
    return motion(so3.hat(omega), v, 0)


def vee(matrix: ArrayLike) -> NDArray:
    """Vectors (..., 6) of matrices (..., 4, 4) of se(3); the inverse of `hat`."""
    rotation, translation = _parts(matrix, "matrix")
    return join(so3.vee(rotation), translation)


def bracket(x: ArrayLike, y: ArrayLike) -> NDArray:
    """[(ω₁, v₁), (ω₂, v₂)] = (ω₁ × ω₂, ω₁ × v₂ - ω₂ × v₁)."""
    omega, v = halves(x, "x")
    eta, u = halves(y, "y")
    return join(cross(omega, eta), cross(omega, u) + cross(v, eta))


def coadjoint(x: ArrayLike, a: ArrayLike) -> NDArray:
    """[(ω, v), (m, n)]* = (m × ω + n × v, n × ω), from ⟨[x, a]*, y⟩ = ⟨a, [x, y]⟩."""
    omega, v = halves(x, "x")
    m, n = halves(a, "a")
    return join(cross(m, omega) + cross(n, v), cross(n, omega))


def ad(x: ArrayLike) -> NDArray:
    """Matrices (..., 6, 6) of y ↦ [x, y]."""
    omega, v = halves(x, "x")
    return blocks(so3.hat(omega), _ZERO, so3.hat(v), so3.hat(omega))


# --- motions as 4x4 matrices ----------------------------------------------------------------


def _parts(g: ArrayLike, name: str = "g") -> tuple[NDArray, NDArray]:
    """Rotations (..., 3, 3) and translations (..., 3) of matrices (..., 4, 4)."""
    g = tensor(g, (4, 4), name)
    return g[..., :3, :3], g[..., :3, 3]


def Ad(g: ArrayLike) -> NDArray:
    """Adjoint action (..., 6, 6) [[R, 0], [x̂R, R]]: hat(Ad(g) y) = g hat(y) g⁻¹."""
    rotation, x = _parts(g)
    return blocks(rotation, _ZERO, so3.hat(x) @ rotation, rotation)


def Ad_dual(g: ArrayLike) -> NDArray:
    """Coadjoint action (..., 6, 6) [[R, x̂R], [0, R]] = Ad(g)⁻ᵀ: body to space momentum."""
    rotation, x = _parts(g)
    return blocks(rotation, so3.hat(x) @ rotation, _ZERO, rotation)


def cay(x: ArrayLike) -> NDArray:
    """Cayley map (..., 4, 4): (I - x̂/2)⁻¹ (I + x̂/2)."""
    omega, v = halves(x, "x")
    return motion(so3.cay(omega), _cay_translation(omega, v), 1)


def cay_inverse(g: ArrayLike) -> NDArray:
    """The x (..., 6) with cay(x) = g; infinite where the rotation is half a turn."""
    rotation, x = _parts(g)
    omega = so3.cay_inverse(rotation)
    return join(omega, x - 0.5 * cross(omega, x))


def exp(x: ArrayLike) -> NDArray:
    """Exponential (..., 4, 4)."""
    omega, v = halves(x, "x")
    return motion(so3.exp(omega), _exp_translation(omega, v), 1)


def log(g: ArrayLike) -> NDArray:
    """The x (..., 6), |ω| ≤ pi, with exp(x) = g."""
    rotation, x = _parts(g)
    omega = so3.log(rotation)
    return join(omega, _log_translation(omega, x))


def _cay_translation(omega: NDArray, v: NDArray) -> NDArray:
    """(I - ω̂/2)⁻¹ v."""
    numerator = v + 0.5 * cross(omega, v) + 0.25 * dot(omega, v) * omega
    return numerator / (1 + 0.25 * dot(omega, omega))


def _exp_translation(omega: NDArray, v: NDArray) -> NDArray:
    """(I + (1 - cos θ)/θ² ω̂ + (θ - sin θ)/θ³ ω̂²) v."""
    s, turned = dot(omega, omega), cross(omega, v)
    return v + coefficients.cosine(s) * turned + coefficients.cubic(s) * cross(omega, turned)


def _log_translation(omega: NDArray, x: NDArray) -> NDArray:
    """The inverse of `_exp_translation`."""
    turned = cross(omega, x)
    cotangent = coefficients.cotangent(dot(omega, omega))
    return x - 0.5 * turned + cotangent * cross(omega, turned)


# --- tangent maps ---------------------------------------------------------------------------


def dcay(x: ArrayLike) -> NDArray:
    """Left-trivialised tangent (..., 6, 6) of `cay`."""
    omega, v = halves(x, "x")
    rotation = so3.dcay(omega)
    scale = 1 + 0.25 * dot(omega, omega)[..., None]
    translation = rotation + 0.25 * outer(omega, omega) / scale
    return blocks(rotation, _ZERO, -0.5 * so3.hat(v) @ rotation, translation)


def dcay_inverse(x: ArrayLike) -> NDArray:
    """Inverse (..., 6, 6) of `dcay`: y ↦ y + [x, y]/2 - vee(x̂ŷx̂)/4."""
    omega, v = halves(x, "x")
    translation = _IDENTITY + 0.5 * so3.hat(omega)
    return blocks(so3.dcay_inverse(omega), _ZERO, 0.5 * translation @ so3.hat(v), translation)


def _terms(omega: NDArray, v: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """|ω|², its derivative along v (both (..., 1, 1)), ω̂², and its derivative ω̂v̂ + v̂ω̂."""
    s, rate = dot(omega, omega)[..., None], 2 * dot(omega, v)[..., None]
    square = outer(omega, omega) - s * _IDENTITY
    return s, rate, square, outer(omega, v) + outer(v, omega) - rate * _IDENTITY


def dexp(x: ArrayLike) -> NDArray:
    """Left-trivialised tangent (..., 6, 6) of `exp`: the sum of (-ad(x))^k / (k + 1)!."""
    omega, v = halves(x, "x")
    s, rate, square, symmetric = _terms(omega, v)
    corner = (
        coefficients.cubic(s) * symmetric
        - coefficients.cosine(s) * so3.hat(v)
        + rate * coefficients.cubic_slope(s) * square
        - rate * coefficients.cosine_slope(s) * so3.hat(omega)
    )
    return blocks(so3.dexp(omega), _ZERO, corner, so3.dexp(omega))


def dexp_inverse(x: ArrayLike) -> NDArray:
    """Inverse (..., 6, 6) of `dexp`; infinite at |ω| = 2 pi."""
    omega, v = halves(x, "x")
    s, rate, square, symmetric = _terms(omega, v)
    corner = (
        0.5 * so3.hat(v)
        + coefficients.cotangent(s) * symmetric
        + rate * coefficients.cotangent_slope(s) * square
    )
    return blocks(so3.dexp_inverse(omega), _ZERO, corner, so3.dexp_inverse(omega))


# --- motions as poses -----------------------------------------------------------------------


def pose_compose(g: Pose, h: Pose) -> Pose:
    """(x, q)(y, r) = (x + rotate(q, y), q r)."""
    (x, q), (y, r) = pair(g, "g"), pair(h, "h")
    return x + quaternion.rotate(q, y), quaternion.product(q, r)


def pose_inverse(g: Pose) -> Pose:
    """(x, q)⁻¹ = (-rotate_inverse(q, x), q̄)."""
    x, q = pair(g, "g")
    return -quaternion.rotate_inverse(q, x), quaternion.conjugate(q)


def pose_matrix(g: Pose) -> NDArray:
    """Matrices (..., 4, 4) of poses."""
    x, q = pair(g, "g")
    return motion(quaternion.matrix(q), x, 1)


def pose_from_matrix(g: ArrayLike) -> Pose:
    """Poses of matrices (..., 4, 4), the quaternions' scalar parts not negative."""
    rotation, x = _parts(g)
    return x, quaternion.from_matrix(rotation)


def pose_cay(x: ArrayLike) -> Pose:
    """Poses of the Cayley map of x (..., 6)."""
    omega, v = halves(x, "x")
    return _cay_translation(omega, v), quaternion.cay(omega)


def pose_cay_inverse(g: Pose) -> NDArray:
    """The x (..., 6) with pose_cay(x) = g, up to the quaternions' sign; infinite at half a turn."""
    x, q = pair(g, "g")
    omega = quaternion.cay_inverse(q)
    return join(omega, x - 0.5 * cross(omega, x))


def pose_exp(x: ArrayLike) -> Pose:
    """Poses of the exponential of x (..., 6)."""
    omega, v = halves(x, "x")
    return _exp_translation(omega, v), quaternion.exp(omega)


def pose_log(g: Pose) -> NDArray:
    """The x (..., 6), |ω| < 2 pi, with pose_exp(x) = g; see ``quaternion.log`` on the sign of q."""
    x, q = pair(g, "g")
    omega = quaternion.log(q)
    return join(omega, _log_translation(omega, x))


def pose_adjoint_action(g: Pose, y: ArrayLike) -> NDArray:
    """Ad(g) y (..., 6): velocities (ω, v) from the body frame to the space frame."""
    x, q = pair(g, "g")
    omega, v = halves(y, "y")
    turned = quaternion.rotate(q, omega)
    return join(turned, quaternion.rotate(q, v) + cross(x, turned))


def pose_coadjoint_action(g: Pose, a: ArrayLike) -> NDArray:
    """Ad_dual(g) a (..., 6): momenta (m, n) from the body frame to the space frame."""
    x, q = pair(g, "g")
    m, n = halves(a, "a")
    turned = quaternion.rotate(q, n)
    return join(quaternion.rotate(q, m) + cross(x, turned), turned)
