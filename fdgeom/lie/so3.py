"""so(3) and SO(3) in UFL: rotation vectors (3) and rotation matrices (3x3).

All functions are smooth wherever they are defined, at zero too: they may be differentiated any
number of times there. Tangent maps are *left trivialised*,

    f(w)⁻¹ Df(w)·δ = hat(df(w) δ),

so that they give the angular velocity in the body frame. The right trivialised map, of the
velocity in the space frame, is the same at -w, which is the transpose: df(-w) = df(w)ᵀ.
"""

import ufl
from ufl.core.expr import Expr

from fdgeom.lie import quaternion
from fdgeom.lie.operands import coefficients, tensor

_IDENTITY = ufl.Identity(3)


def hat(w: Expr) -> Expr:
    """The skew matrix (3x3) of a vector (3): hat(w) y = w × y."""
    w = tensor(w, (3,), "w")
    return ufl.as_matrix([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def vee(matrix: Expr) -> Expr:
    """The vector (3) of the skew part of a matrix (3x3); the inverse of `hat`."""
    m = tensor(matrix, (3, 3), "matrix")
    return 0.5 * ufl.as_vector([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])


def bracket(x: Expr, y: Expr) -> Expr:
    """[x, y] = x × y."""
    return ufl.cross(tensor(x, (3,), "x"), tensor(y, (3,), "y"))


def coadjoint(x: Expr, a: Expr) -> Expr:
    """[x, a]* = a × x, from ⟨[x, a]*, y⟩ = ⟨a, [x, y]⟩."""
    return ufl.cross(tensor(a, (3,), "a"), tensor(x, (3,), "x"))


def Ad(rotation: Expr) -> Expr:
    """Adjoint action (3x3) of a rotation on so(3) ≅ R³: the rotation itself."""
    return tensor(rotation, (3, 3), "rotation")


def _square(w: Expr) -> Expr:
    """hat(w)²."""
    return ufl.outer(w, w) - ufl.dot(w, w) * _IDENTITY


def cay(w: Expr) -> Expr:
    """Cayley map (3x3): (I - ŵ/2)⁻¹ (I + ŵ/2) = I + (ŵ + ŵ²/2) / (1 + |w|²/4)."""
    w = tensor(w, (3,), "w")
    return _IDENTITY + (hat(w) + 0.5 * _square(w)) / (1 + 0.25 * ufl.dot(w, w))


def cay_inverse(rotation: Expr) -> Expr:
    """The w (3) with cay(w) = rotation (3x3); infinite at half a turn."""
    rotation = tensor(rotation, (3, 3), "rotation")
    return 4 * vee(rotation) / (1 + ufl.tr(rotation))


def dcay(w: Expr) -> Expr:
    """Left-trivialised tangent (3x3) of `cay`: (I - ŵ/2) / (1 + |w|²/4)."""
    w = tensor(w, (3,), "w")
    return (_IDENTITY - 0.5 * hat(w)) / (1 + 0.25 * ufl.dot(w, w))


def dcay_inverse(w: Expr) -> Expr:
    """Inverse (3x3) of `dcay`: I + ŵ/2 + w wᵀ/4."""
    w = tensor(w, (3,), "w")
    return _IDENTITY + 0.5 * hat(w) + 0.25 * ufl.outer(w, w)


def exp(w: Expr) -> Expr:
    """Exponential (3x3), Rodrigues' formula: I + sin θ/θ ŵ + (1 - cos θ)/θ² ŵ²."""
    w = tensor(w, (3,), "w")
    s = ufl.dot(w, w)
    return _IDENTITY + coefficients.sine(s) * hat(w) + coefficients.cosine(s) * _square(w)


def log(rotation: Expr) -> Expr:
    """The w (3), |w| ≤ pi, with exp(w) = rotation (3x3); it jumps at half a turn."""
    return quaternion.log(quaternion.from_matrix(rotation))


def dexp(w: Expr) -> Expr:
    """Left-trivialised tangent (3x3) of `exp`: I - (1 - cos θ)/θ² ŵ + (θ - sin θ)/θ³ ŵ²."""
    w = tensor(w, (3,), "w")
    s = ufl.dot(w, w)
    return _IDENTITY - coefficients.cosine(s) * hat(w) + coefficients.cubic(s) * _square(w)


def dexp_inverse(w: Expr) -> Expr:
    """Inverse (3x3) of `dexp`: I + ŵ/2 + (1 - (θ/2) cot(θ/2))/θ² ŵ²; infinite at θ = 2 pi."""
    w = tensor(w, (3,), "w")
    return _IDENTITY + 0.5 * hat(w) + coefficients.cotangent(ufl.dot(w, w)) * _square(w)
