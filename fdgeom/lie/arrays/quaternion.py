"""Unit quaternions on arrays (..., 4), scalar first; q and -q are the same rotation.

Functions of a quaternion take it as a unit one and do not divide by its length: `normalize` does.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fdgeom.lie.arrays.operands import coefficients, cross, dot, join, tensor


def _parts(q: ArrayLike, name: str = "q") -> tuple[NDArray, NDArray]:
    """Scalar (..., 1) and vector part (..., 3)."""
    q = tensor(q, (4,), name)
    return q[..., :1], q[..., 1:]


def product(p: ArrayLike, q: ArrayLike) -> NDArray:
    """p q (..., 4), the rotation q followed by p."""
    a, u = _parts(p, "p")
    b, v = _parts(q)
    return join(a * b - dot(u, v), a * v + b * u + cross(u, v))


def conjugate(q: ArrayLike) -> NDArray:
    """The inverse rotations (..., 4)."""
    scalar, vector = _parts(q)
    return join(scalar, -vector)


def normalize(q: ArrayLike) -> NDArray:
    """q / |q| (..., 4)."""
    q = tensor(q, (4,), "q")
    square = dot(q, q)
    if not np.all(np.real(square) > 0):
        raise ValueError("q must not hold a zero quaternion, which is no rotation, nor NaN")
    return q / np.sqrt(square)


def principal(q: ArrayLike) -> NDArray:
    """q or -q (..., 4), whichever has a scalar part that is not negative."""
    q = tensor(q, (4,), "q")
    return np.where(q[..., :1] < 0, -q, q)


def rotate(q: ArrayLike, v: ArrayLike) -> NDArray:
    """Vectors v (..., 3) turned by q: from the body frame to the space frame."""
    scalar, vector = _parts(q)
    v = tensor(v, (3,), "v")
    return v + 2 * cross(vector, cross(vector, v) + scalar * v)


def rotate_inverse(q: ArrayLike, v: ArrayLike) -> NDArray:
    """Vectors v (..., 3) turned back by q: from the space frame to the body frame."""
    return rotate(conjugate(q), v)


def matrix(q: ArrayLike) -> NDArray:
    """Rotation matrices (..., 3, 3): matrix(q) v = rotate(q, v)."""
    q = tensor(q, (4,), "q")
    return np.swapaxes(rotate(q[..., None, :], np.eye(3)), -1, -2)


def from_matrix(rotation: ArrayLike) -> NDArray:
    """Unit quaternions (..., 4), scalar part not negative, of rotation matrices (..., 3, 3).

    Every column of K = 4 q qᵀ, which is linear in the matrix, is a multiple of q; the one with
    the largest diagonal entry is normalized.
    """
    r = tensor(rotation, (3, 3), "rotation")
    transpose = np.swapaxes(r, -1, -2)
    trace = np.trace(r, axis1=-2, axis2=-1)[..., None, None]
    k = np.empty((*r.shape[:-2], 4, 4), r.dtype)
    skew = r - transpose
    k[..., 0, 1:] = np.stack([skew[..., 2, 1], skew[..., 0, 2], skew[..., 1, 0]], axis=-1)
    k[..., 1:, 0] = k[..., 0, 1:]
    k[..., 1:, 1:] = r + transpose + (1 - trace) * np.eye(3)
    k[..., 0, 0] = 1 + trace[..., 0, 0]
    largest = np.argmax(np.einsum("...ii->...i", k), axis=-1)[..., None, None]
    return principal(normalize(np.take_along_axis(k, largest, axis=-1)[..., 0]))


def cay(w: ArrayLike) -> NDArray:
    """Unit quaternions (..., 4) of the Cayley map of w (..., 3): (1, w/2) / sqrt(1 + |w|²/4)."""
    w = tensor(w, (3,), "w")
    return join(np.ones((1,)), 0.5 * w) / np.sqrt(1 + 0.25 * dot(w, w))


def cay_inverse(q: ArrayLike) -> NDArray:
    """The w (..., 3) with cay(w) = q or -q; infinite at half a turn."""
    scalar, vector = _parts(q)
    return 2 * vector / scalar


def exp(w: ArrayLike) -> NDArray:
    """Unit quaternions (..., 4) of rotation vectors w (..., 3): (cos θ/2, sin(θ/2)/θ w)."""
    w = tensor(w, (3,), "w")
    s = 0.25 * dot(w, w)
    return join(1 - s * coefficients.cosine(s), 0.5 * coefficients.sine(s) * w)


def log(q: ArrayLike) -> NDArray:
    """The w (..., 3), |w| < 2 pi, with exp(w) = q.

    At q = (-1, 0, 0, 0) the axis is lost and the result is zero. For the shortest rotation take
    ``log(principal(q))``.
    """
    scalar, vector = _parts(q)
    length = np.sqrt(dot(vector, vector))
    angle = 2 * np.arctan2(length, scalar)
    return np.where(length > 0, angle / np.where(length > 0, length, 1.0), 2.0) * vector
