"""se(3) and SE(3) in UFL: x = (ω, v) in R^6, motions as 4x4 matrices or as poses.

A *pose* is a pair (position, unit quaternion) of shapes (3) and (4): half as many numbers as a
4x4 matrix, and no constraint but the quaternion's length. Motions take body coordinates to space.
All functions are smooth wherever they are defined, at zero too. Tangent maps are *left
trivialised*, f(x)⁻¹ Df(x)·δ = hat(df(x) δ): they give the velocity in the body frame; the right
trivialised map, of the velocity in the space frame, is the same at -x.
"""

import ufl
from ufl.core.expr import Expr

from fdgeom.lie import quaternion, so3
from fdgeom.lie.operands import blocks, coefficients, halves, join, motion, pair, tensor

Pose = tuple[Expr, Expr]

_IDENTITY = ufl.Identity(3)
_ZERO = ufl.zero(3, 3)


# --- the algebra and its dual ---------------------------------------------------------------


def hat(x: Expr) -> Expr:
    """The 4x4 matrix [[hat(ω), v], [0, 0]] of x = (ω, v)."""
    omega, v = halves(x, "x")
    return motion(so3.hat(omega), v, 0)


def vee(matrix: Expr) -> Expr:
    """The vector (6) of a 4x4 matrix of se(3); the inverse of `hat`."""
    rotation, translation = _parts(matrix, "matrix")
    return join(so3.vee(rotation), translation)


def bracket(x: Expr, y: Expr) -> Expr:
    """[(ω₁, v₁), (ω₂, v₂)] = (ω₁ × ω₂, ω₁ × v₂ - ω₂ × v₁)."""
    omega, v = halves(x, "x")
    eta, u = halves(y, "y")
    return join(ufl.cross(omega, eta), ufl.cross(omega, u) + ufl.cross(v, eta))


def coadjoint(x: Expr, a: Expr) -> Expr:
    """[(ω, v), (m, n)]* = (m × ω + n × v, n × ω), from ⟨[x, a]*, y⟩ = ⟨a, [x, y]⟩."""
    omega, v = halves(x, "x")
    m, n = halves(a, "a")
    return join(ufl.cross(m, omega) + ufl.cross(n, v), ufl.cross(n, omega))


def ad(x: Expr) -> Expr:
    """The 6x6 matrix of y ↦ [x, y]."""
    omega, v = halves(x, "x")
    return blocks(so3.hat(omega), _ZERO, so3.hat(v), so3.hat(omega))


# --- motions as 4x4 matrices ----------------------------------------------------------------


def _parts(g: Expr, name: str = "g") -> tuple[Expr, Expr]:
    """Rotation (3x3) and translation (3) of a 4x4 matrix."""
    g = tensor(g, (4, 4), name)
    rotation = ufl.as_matrix([[g[i, j] for j in range(3)] for i in range(3)])
    return rotation, ufl.as_vector([g[i, 3] for i in range(3)])


def _translate(x: Expr, rotation: Expr) -> Expr:
    """hat(x) times a rotation."""
    return ufl.dot(so3.hat(x), rotation)


def Ad(g: Expr) -> Expr:
    """Adjoint action (6x6) [[R, 0], [x̂R, R]] of g = (R, x): hat(Ad(g) y) = g hat(y) g⁻¹."""
    rotation, x = _parts(g)
    return blocks(rotation, _ZERO, _translate(x, rotation), rotation)


def Ad_dual(g: Expr) -> Expr:
    """Coadjoint action (6x6) [[R, x̂R], [0, R]] = Ad(g)⁻ᵀ: body momentum to space momentum."""
    rotation, x = _parts(g)
    return blocks(rotation, _translate(x, rotation), _ZERO, rotation)


def cay(x: Expr) -> Expr:
    """Cayley map (4x4): (I - x̂/2)⁻¹ (I + x̂/2)."""
    omega, v = halves(x, "x")
    return motion(so3.cay(omega), _cay_translation(omega, v), 1)


def cay_inverse(g: Expr) -> Expr:
    """The x (6) with cay(x) = g; infinite where the rotation is half a turn."""
    rotation, x = _parts(g)
    omega = so3.cay_inverse(rotation)
    return join(omega, x - 0.5 * ufl.cross(omega, x))


def exp(x: Expr) -> Expr:
    """Exponential (4x4)."""
    omega, v = halves(x, "x")
    return motion(so3.exp(omega), _exp_translation(omega, v), 1)


def log(g: Expr) -> Expr:
    """The x (6), |ω| ≤ pi, with exp(x) = g; it jumps at half a turn."""
    rotation, x = _parts(g)
    omega = so3.log(rotation)
    return join(omega, _log_translation(omega, x))


def _cay_translation(omega: Expr, v: Expr) -> Expr:
    """(I - ω̂/2)⁻¹ v."""
    return (v + 0.5 * ufl.cross(omega, v) + 0.25 * ufl.dot(omega, v) * omega) / (
        1 + 0.25 * ufl.dot(omega, omega)
    )


def _exp_translation(omega: Expr, v: Expr) -> Expr:
    """(I + (1 - cos θ)/θ² ω̂ + (θ - sin θ)/θ³ ω̂²) v."""
    s, turned = ufl.dot(omega, omega), ufl.cross(omega, v)
    return v + coefficients.cosine(s) * turned + coefficients.cubic(s) * ufl.cross(omega, turned)


def _log_translation(omega: Expr, x: Expr) -> Expr:
    """The inverse of `_exp_translation`: (I - ω̂/2 + (1 - (θ/2) cot(θ/2))/θ² ω̂²) x."""
    turned = ufl.cross(omega, x)
    cotangent = coefficients.cotangent(ufl.dot(omega, omega))
    return x - 0.5 * turned + cotangent * ufl.cross(omega, turned)


# --- tangent maps ---------------------------------------------------------------------------


def dcay(x: Expr) -> Expr:
    """Left-trivialised tangent (6x6) of `cay`."""
    omega, v = halves(x, "x")
    rotation = so3.dcay(omega)
    translation = rotation + 0.25 * ufl.outer(omega, omega) / (1 + 0.25 * ufl.dot(omega, omega))
    return blocks(rotation, _ZERO, -0.5 * ufl.dot(so3.hat(v), rotation), translation)


def dcay_inverse(x: Expr) -> Expr:
    """Inverse (6x6) of `dcay`: y ↦ y + [x, y]/2 - vee(x̂ŷx̂)/4."""
    omega, v = halves(x, "x")
    translation = _IDENTITY + 0.5 * so3.hat(omega)
    corner = 0.5 * ufl.dot(translation, so3.hat(v))
    return blocks(so3.dcay_inverse(omega), _ZERO, corner, translation)


def _symmetric(omega: Expr, v: Expr) -> Expr:
    """ω̂v̂ + v̂ω̂, the derivative of ω̂² along v."""
    return ufl.outer(omega, v) + ufl.outer(v, omega) - 2 * ufl.dot(omega, v) * _IDENTITY


def dexp(x: Expr) -> Expr:
    """Left-trivialised tangent (6x6) of `exp`: the sum of (-ad(x))^k / (k + 1)!.

    ad(ω, v) acts like hat(ω + ε v) with ε² = 0, so that the block below the diagonal is the
    derivative of ``so3.dexp`` at ω along v.
    """
    omega, v = halves(x, "x")
    s, rate = ufl.dot(omega, omega), 2 * ufl.dot(omega, v)
    square = ufl.outer(omega, omega) - s * _IDENTITY
    corner = (
        coefficients.cubic(s) * _symmetric(omega, v)
        - coefficients.cosine(s) * so3.hat(v)
        + rate * coefficients.cubic_slope(s) * square
        - rate * coefficients.cosine_slope(s) * so3.hat(omega)
    )
    return blocks(so3.dexp(omega), _ZERO, corner, so3.dexp(omega))


def dexp_inverse(x: Expr) -> Expr:
    """Inverse (6x6) of `dexp`; infinite at |ω| = 2 pi."""
    omega, v = halves(x, "x")
    s = ufl.dot(omega, omega)
    square = ufl.outer(omega, omega) - s * _IDENTITY
    corner = (
        0.5 * so3.hat(v)
        + coefficients.cotangent(s) * _symmetric(omega, v)
        + 2 * ufl.dot(omega, v) * coefficients.cotangent_slope(s) * square
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


def pose_matrix(g: Pose) -> Expr:
    """The 4x4 matrix of a pose."""
    x, q = pair(g, "g")
    return motion(quaternion.matrix(q), x, 1)


def pose_from_matrix(g: Expr) -> Pose:
    """The pose of a 4x4 matrix, the quaternion's scalar part not negative."""
    rotation, x = _parts(g)
    return x, quaternion.from_matrix(rotation)


def pose_cay(x: Expr) -> Pose:
    """Pose of the Cayley map of x (6)."""
    omega, v = halves(x, "x")
    return _cay_translation(omega, v), quaternion.cay(omega)


def pose_cay_inverse(g: Pose) -> Expr:
    """The x (6) with pose_cay(x) = g, up to the quaternion's sign; infinite at half a turn."""
    x, q = pair(g, "g")
    omega = quaternion.cay_inverse(q)
    return join(omega, x - 0.5 * ufl.cross(omega, x))


def pose_exp(x: Expr) -> Pose:
    """Pose of the exponential of x (6)."""
    omega, v = halves(x, "x")
    return _exp_translation(omega, v), quaternion.exp(omega)


def pose_log(g: Pose) -> Expr:
    """The x (6), |ω| < 2 pi, with pose_exp(x) = g; see ``quaternion.log`` for the sign of q."""
    x, q = pair(g, "g")
    omega = quaternion.log(q)
    return join(omega, _log_translation(omega, x))


def pose_adjoint_action(g: Pose, y: Expr) -> Expr:
    """Ad(g) y (6): the velocity (ω, v) from the body frame to the space frame."""
    x, q = pair(g, "g")
    omega, v = halves(y, "y")
    turned = quaternion.rotate(q, omega)
    return join(turned, quaternion.rotate(q, v) + ufl.cross(x, turned))


def pose_coadjoint_action(g: Pose, a: Expr) -> Expr:
    """Ad_dual(g) a (6): the momentum (m, n) from the body frame to the space frame."""
    x, q = pair(g, "g")
    m, n = halves(a, "a")
    turned = quaternion.rotate(q, n)
    return join(quaternion.rotate(q, m) + ufl.cross(x, turned), turned)
