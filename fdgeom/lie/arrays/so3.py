"""so(3) and SO(3) on arrays: rotation vectors (..., 3) and rotation matrices (..., 3, 3).

Tangent maps are left trivialised, f(w)⁻¹ Df(w)·δ = hat(df(w) δ), as in ``fdgeom.lie.so3``.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fdgeom.lie.arrays import quaternion
from fdgeom.lie.arrays.operands import coefficients, dot, outer, tensor

_IDENTITY = np.eye(3)


def hat(w: ArrayLike) -> NDArray:
    """Skew matrices (..., 3, 3) of vectors (..., 3): hat(w) y = w × y."""
    w = tensor(w, (3,), "w")
    matrix = np.zeros((*w.shape, 3), w.dtype)
    matrix[..., 2, 1], matrix[..., 0, 2], matrix[..., 1, 0] = np.moveaxis(w, -1, 0)
    return matrix - np.swapaxes(matrix, -1, -2)


def vee(matrix: ArrayLike) -> NDArray:
    """Vectors (..., 3) of the skew parts of matrices (..., 3, 3); the inverse of `hat`."""
    m = tensor(matrix, (3, 3), "matrix")
    skew = 0.5 * (m - np.swapaxes(m, -1, -2))
    return np.stack([skew[..., 2, 1], skew[..., 0, 2], skew[..., 1, 0]], axis=-1)


def bracket(x: ArrayLike, y: ArrayLike) -> NDArray:
    """[x, y] = x × y."""
    return np.cross(tensor(x, (3,), "x"), tensor(y, (3,), "y"))


def coadjoint(x: ArrayLike, a: ArrayLike) -> NDArray:
    """[x, a]* = a × x, from ⟨[x, a]*, y⟩ = ⟨a, [x, y]⟩."""
    return np.cross(tensor(a, (3,), "a"), tensor(x, (3,), "x"))


def Ad(rotation: ArrayLike) -> NDArray:
    """Adjoint action (..., 3, 3) of rotations on so(3) ≅ R³: the rotations themselves."""
    return tensor(rotation, (3, 3), "rotation")


def _terms(w: ArrayLike) -> tuple[NDArray, NDArray, NDArray]:
    """|w|² (..., 1, 1), hat(w) and hat(w)²."""
    w = tensor(w, (3,), "w")
    s = dot(w, w)[..., None]
    return s, hat(w), outer(w, w) - s * _IDENTITY


def cay(w: ArrayLike) -> NDArray:
    """Cayley map (..., 3, 3): (I - ŵ/2)⁻¹ (I + ŵ/2) = I + (ŵ + ŵ²/2) / (1 + |w|²/4)."""
    s, skew, square = _terms(w)
    return _IDENTITY + (skew + 0.5 * square) / (1 + 0.25 * s)


def cay_inverse(rotation: ArrayLike) -> NDArray:
    """The w (..., 3) with cay(w) = rotation (..., 3, 3); infinite at half a turn."""
    rotation = tensor(rotation, (3, 3), "rotation")
    return 4 * vee(rotation) / (1 + np.trace(rotation, axis1=-2, axis2=-1)[..., None])


def dcay(w: ArrayLike) -> NDArray:
    """Left-trivialised tangent (..., 3, 3) of `cay`: (I - ŵ/2) / (1 + |w|²/4)."""
    s, skew, _ = _terms(w)
    return (_IDENTITY - 0.5 * skew) / (1 + 0.25 * s)


def dcay_inverse(w: ArrayLike) -> NDArray:
    """Inverse (..., 3, 3) of `dcay`: I + ŵ/2 + w wᵀ/4."""
    s, skew, square = _terms(w)
    return (1 + 0.25 * s) * _IDENTITY + 0.5 * skew + 0.25 * square


def exp(w: ArrayLike) -> NDArray:
    """Exponential (..., 3, 3), Rodrigues' formula."""
    s, skew, square = _terms(w)
    return _IDENTITY + coefficients.sine(s) * skew + coefficients.cosine(s) * square


def log(rotation: ArrayLike) -> NDArray:
    """The w (..., 3), |w| ≤ pi, with exp(w) = rotation (..., 3, 3)."""
    return quaternion.log(quaternion.from_matrix(rotation))


def dexp(w: ArrayLike) -> NDArray:
    """Left-trivialised tangent (..., 3, 3) of `exp`."""
    s, skew, square = _terms(w)
    return _IDENTITY - coefficients.cosine(s) * skew + coefficients.cubic(s) * square


def dexp_inverse(w: ArrayLike) -> NDArray:
    """Inverse (..., 3, 3) of `dexp`; infinite at |w| = 2 pi."""
    s, skew, square = _terms(w)
    return _IDENTITY + 0.5 * skew + coefficients.cotangent(s) * square
