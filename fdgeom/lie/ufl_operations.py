"""Operations of the formulas of the groups on UFL expressions, and checks of arguments."""

import numpy as np
import ufl
from ufl.classes import Zero
from ufl.core.expr import Expr

from fdgeom.lie.rotation_coefficients import ARCTANGENT, RotationCoefficients, polynomial

identity, zero = ufl.Identity(3), ufl.zero(3, 3)
cross, dot, outer, times, trace = ufl.cross, ufl.dot, ufl.outer, ufl.dot, ufl.tr
matrix, vector = ufl.as_matrix, ufl.as_vector
sqrt, below, where = ufl.sqrt, ufl.lt, ufl.conditional
coefficients = RotationCoefficients(sqrt, ufl.sin, ufl.cos, below, where)


def tensor(x: Expr, shape: tuple[int, ...], name: str) -> Expr:
    """A UFL expression of the given shape, made of a list too, or an error that names the argument."""
    if isinstance(x, list | tuple | np.ndarray):
        try:
            x = ufl.as_tensor(x.tolist() if isinstance(x, np.ndarray) else x)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be of shape {shape}, of numbers or UFL") from None
    if not isinstance(x, Expr):
        raise TypeError(
            f"{name} must be a UFL expression of shape {shape}, not {type(x).__name__}; "
            "functions of NumPy arrays are in fdgeom.lie.arrays"
        )
    if x.ufl_shape != shape:
        raise ValueError(f"{name} must have shape {shape}, not {x.ufl_shape}")
    return x


def not_zero(q: Expr, name: str) -> Expr:
    """A quaternion that is not simply zero, or an error that names the argument."""
    if isinstance(q, Zero):
        raise ValueError(f"{name} must not be the zero quaternion, which is no rotation")
    return q


def halves(x: Expr, name: str = "vector") -> tuple[Expr, Expr]:
    """First and last three components of a vector with six."""
    x = tensor(x, (6,), name)
    return ufl.as_vector([x[0], x[1], x[2]]), ufl.as_vector([x[3], x[4], x[5]])


def join(*vectors: Expr) -> Expr:
    """One vector of the components of several."""
    return ufl.as_vector([x[i] for x in vectors for i in range(x.ufl_shape[0])])


def blocks(a: Expr, b: Expr, c: Expr, d: Expr) -> Expr:
    """The 6x6 matrix [[a, b], [c, d]] of 3x3 ones."""
    upper = [[a[i, j] for j in range(3)] + [b[i, j] for j in range(3)] for i in range(3)]
    lower = [[c[i, j] for j in range(3)] + [d[i, j] for j in range(3)] for i in range(3)]
    return ufl.as_matrix(upper + lower)


def motion(rotation: Expr, translation: Expr, corner: float) -> Expr:
    """The 4x4 matrix [[rotation, translation], [0, corner]]."""
    rows = [[rotation[i, j] for j in range(3)] + [translation[i]] for i in range(3)]
    return ufl.as_matrix([*rows, [0, 0, 0, corner]])


def motion_parts(g: Expr, name: str) -> tuple[Expr, Expr]:
    """Rotation (3x3) and translation (3) of a 4x4 matrix."""
    g = tensor(g, (4, 4), name)
    rotation = ufl.as_matrix([[g[i, j] for j in range(3)] for i in range(3)])
    return rotation, ufl.as_vector([g[i, 3] for i in range(3)])


def scalar_and_vector(q: Expr, name: str) -> tuple[Expr, Expr]:
    """The parts of a quaternion."""
    q = tensor(q, (4,), name)
    return q[0], ufl.as_vector([q[1], q[2], q[3]])


def quaternion(scalar: Expr, vector: Expr) -> Expr:
    """The quaternion of these parts."""
    return join(ufl.as_vector([scalar]), vector)


def logarithm(scalar: Expr, vector: Expr) -> Expr:
    """The rotation vector of a unit quaternion, smooth and without a branch."""
    # Two square roots leave a quarter of the rotation; tan(θ/16), 0.2 for half a turn and at most
    # 0.41, goes into the arctangent's series.
    half = ufl.sqrt(0.5 * (1 + scalar))
    quarter = ufl.sqrt(0.5 * (1 + half))
    tangent = vector / (4 * half * quarter * (1 + quarter))
    return 16 * polynomial(ARCTANGENT, ufl.dot(tangent, tangent)) * tangent


def wide(s: Expr) -> Expr:
    """A scalar that multiplies matrices."""
    return s
