"""Operations of the formulas of the groups on NumPy arrays, and checks of arguments."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fdgeom.lie.rotation_coefficients import RotationCoefficients

identity, zero = np.eye(3), np.zeros((3, 3))
sqrt, times, where = np.sqrt, np.matmul, np.where


def below(s: NDArray, bound: ArrayLike) -> NDArray:
    """Where the real part is smaller."""
    return np.real(s) < np.real(bound)


coefficients = RotationCoefficients(sqrt, np.sin, np.cos, below, where)


def tensor(x: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray:
    """An array (..., *shape) of floats, or an error that names the argument."""
    x = np.asarray(x)
    if x.dtype.kind not in "iufc":
        raise TypeError(f"{name} must be an array of numbers; UFL's functions are in fdgeom.lie")
    if x.shape[x.ndim - len(shape) :] != shape or x.ndim < len(shape):
        trailing = ", ".join(map(str, shape))
        raise ValueError(f"{name} must have shape (..., {trailing}), not {x.shape}")
    return x if x.dtype.kind in "fc" else x.astype(float)


def not_zero(q: NDArray, name: str) -> NDArray:
    """Quaternions of which none is zero or NaN, or an error that names the argument."""
    if not np.all(np.real(dot(q, q)) > 0):
        raise ValueError(f"{name} must not hold a zero quaternion, which is no rotation, nor NaN")
    return q


def halves(x: ArrayLike, name: str) -> tuple[NDArray, NDArray]:
    """First and last three components of vectors (..., 6)."""
    x = tensor(x, (6,), name)
    return x[..., :3], x[..., 3:]


def join(*vectors: NDArray) -> NDArray:
    """Vectors with the components of several, whose leading axes broadcast."""
    if len({v.shape[:-1] for v in vectors}) > 1:
        lead = np.broadcast_shapes(*(v.shape[:-1] for v in vectors))
        vectors = tuple(np.broadcast_to(v, lead + v.shape[-1:]) for v in vectors)
    return np.concatenate(vectors, axis=-1)


def dot(x: NDArray, y: NDArray) -> NDArray:
    """Scalar products (..., 1) of vectors, ready to multiply vectors."""
    return (x * y).sum(axis=-1, keepdims=True)


def cross(x: NDArray, y: NDArray) -> NDArray:
    """Vector products (..., 3); NumPy's own takes three times as long for the few nodes of a beam."""
    lead = x.shape if x.shape == y.shape else np.broadcast_shapes(x.shape, y.shape)
    product = np.empty(lead, np.result_type(x, y))
    x0, x1, x2 = x[..., 0], x[..., 1], x[..., 2]
    y0, y1, y2 = y[..., 0], y[..., 1], y[..., 2]
    product[..., 0] = x1 * y2 - x2 * y1
    product[..., 1] = x2 * y0 - x0 * y2
    product[..., 2] = x0 * y1 - x1 * y0
    return product


def outer(x: NDArray, y: NDArray) -> NDArray:
    """Matrices (..., n, n) x yᵀ."""
    return x[..., :, None] * y[..., None, :]


def blocks(a: NDArray, b: NDArray, c: NDArray, d: NDArray) -> NDArray:
    """Matrices (..., 6, 6) [[a, b], [c, d]] of (..., 3, 3) ones."""
    lead = np.broadcast_shapes(*(m.shape[:-2] for m in (a, b, c, d)))
    matrix = np.empty((*lead, 6, 6), np.result_type(a, b, c, d))
    matrix[..., :3, :3], matrix[..., :3, 3:] = a, b
    matrix[..., 3:, :3], matrix[..., 3:, 3:] = c, d
    return matrix


def motion(rotation: NDArray, translation: NDArray, corner: float) -> NDArray:
    """Matrices (..., 4, 4) [[rotation, translation], [0, corner]]."""
    lead = np.broadcast_shapes(rotation.shape[:-2], translation.shape[:-1])
    matrix = np.zeros((*lead, 4, 4), np.result_type(rotation, translation))
    matrix[..., :3, :3], matrix[..., :3, 3], matrix[..., 3, 3] = rotation, translation, corner
    return matrix


def motion_parts(g: ArrayLike, name: str) -> tuple[NDArray, NDArray]:
    """Rotations (..., 3, 3) and translations (..., 3) of matrices (..., 4, 4)."""
    g = tensor(g, (4, 4), name)
    return g[..., :3, :3], g[..., :3, 3]


def vector(components: Sequence[NDArray]) -> NDArray:
    """Vectors (..., n) of their components (...)."""
    return np.stack(components, axis=-1)


def matrix(rows: Sequence[Sequence[ArrayLike]]) -> NDArray:
    """Matrices (..., 3, 3) of their entries: numbers or arrays (...)."""
    like = rows[0][1]
    entries = np.empty((*like.shape, 3, 3), like.dtype)
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            entries[..., i, j] = entry
    return entries


def trace(m: NDArray) -> NDArray:
    """Traces (..., 1) of matrices, ready to multiply vectors."""
    return np.trace(m, axis1=-2, axis2=-1)[..., None]


def scalar_and_vector(q: ArrayLike, name: str) -> tuple[NDArray, NDArray]:
    """The parts (..., 1) and (..., 3) of quaternions."""
    q = tensor(q, (4,), name)
    return q[..., :1], q[..., 1:]


def quaternion(scalar: ArrayLike, vector: NDArray) -> NDArray:
    """The quaternions of these parts."""
    return join(np.atleast_1d(scalar), vector)


def logarithm(scalar: NDArray, vector: NDArray) -> NDArray:
    """The rotation vectors of unit quaternions."""
    length = np.sqrt(dot(vector, vector))
    angle = 2 * np.arctan2(length, scalar)
    return np.where(length > 0, angle / np.where(length > 0, length, 1.0), 2.0) * vector


def wide(s: NDArray) -> NDArray:
    """Scalars (..., 1, 1) that multiply matrices, of those (..., 1) that multiply vectors."""
    return s[..., None]
