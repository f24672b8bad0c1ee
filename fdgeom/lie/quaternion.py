"""Unit quaternions in UFL: vectors (4), scalar first; q and -q are the same rotation.

Functions of a quaternion take it as a unit one and do not divide by its length: `normalize` does.
"""

import ufl
from ufl.classes import Expr, Zero

from fdgeom.lie.coefficients import ARCTANGENT, polynomial
from fdgeom.lie.operands import coefficients, join, tensor


def _parts(q: Expr, name: str = "q") -> tuple[Expr, Expr]:
    """Scalar and vector part (3)."""
    q = tensor(q, (4,), name)
    return q[0], ufl.as_vector([q[1], q[2], q[3]])


def _quaternion(scalar: Expr, vector: Expr) -> Expr:
    return join(ufl.as_vector([scalar]), vector)


def product(p: Expr, q: Expr) -> Expr:
    """p q (4), the rotation q followed by p."""
    a, u = _parts(p, "p")
    b, v = _parts(q)
    return _quaternion(a * b - ufl.dot(u, v), a * v + b * u + ufl.cross(u, v))


def conjugate(q: Expr) -> Expr:
    """The inverse rotation (4)."""
    scalar, vector = _parts(q)
    return _quaternion(scalar, -vector)


def normalize(q: Expr) -> Expr:
    """q / |q| (4)."""
    q = tensor(q, (4,), "q")
    if isinstance(q, Zero):
        raise ValueError("q must not be the zero quaternion, which is no rotation")
    return q / ufl.sqrt(ufl.dot(q, q))


def principal(q: Expr) -> Expr:
    """q or -q (4), whichever has a scalar part that is not negative."""
    q = tensor(q, (4,), "q")
    return ufl.conditional(ufl.lt(q[0], 0), -1, 1) * q


def rotate(q: Expr, v: Expr) -> Expr:
    """The vector v (3) turned by q: from the body frame to the space frame."""
    scalar, vector = _parts(q)
    v = tensor(v, (3,), "v")
    return v + 2 * ufl.cross(vector, ufl.cross(vector, v) + scalar * v)


def rotate_inverse(q: Expr, v: Expr) -> Expr:
    """The vector v (3) turned back by q: from the space frame to the body frame."""
    return rotate(conjugate(q), v)


def matrix(q: Expr) -> Expr:
    """Rotation matrix (3x3): matrix(q) v = rotate(q, v)."""
    w, u = _parts(q)
    x, y, z = u
    return ufl.as_matrix(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def from_matrix(rotation: Expr) -> Expr:
    """Unit quaternion (4), scalar part not negative, of a rotation matrix (3x3).

    Every column of K = 4 q qᵀ, which is linear in the matrix, is a multiple of q; the one with
    the largest diagonal entry has a length of at least 2 and so can be normalized safely.
    """
    r = tensor(rotation, (3, 3), "rotation")
    vector = [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]]
    trace = r[0, 0] + r[1, 1] + r[2, 2]
    diagonal = [1 + trace] + [1 + 2 * r[i, i] - trace for i in range(3)]
    columns = [[diagonal[0], *vector]] + [
        [vector[i]] + [diagonal[i + 1] if i == j else r[i, j] + r[j, i] for j in range(3)]
        for i in range(3)
    ]
    largest, column = diagonal[0], columns[0]
    for candidate, entries in zip(diagonal[1:], columns[1:], strict=True):
        better = ufl.lt(largest, candidate)
        column = [ufl.conditional(better, a, b) for a, b in zip(entries, column, strict=True)]
        largest = ufl.conditional(better, candidate, largest)
    return principal(normalize(ufl.as_vector(column)))


def cay(w: Expr) -> Expr:
    """Unit quaternion (4) of the Cayley map of w (3): (1, w/2) / sqrt(1 + |w|²/4)."""
    w = tensor(w, (3,), "w")
    return _quaternion(1, 0.5 * w) / ufl.sqrt(1 + 0.25 * ufl.dot(w, w))


def cay_inverse(q: Expr) -> Expr:
    """The w (3) with cay(w) = q or -q; infinite at half a turn."""
    scalar, vector = _parts(q)
    return 2 * vector / scalar


def exp(w: Expr) -> Expr:
    """Unit quaternion (4) of the rotation vector w (3): (cos θ/2, sin(θ/2)/θ w), θ = |w|."""
    w = tensor(w, (3,), "w")
    s = 0.25 * ufl.dot(w, w)
    return _quaternion(1 - s * coefficients.cosine(s), 0.5 * coefficients.sine(s) * w)


def log(q: Expr) -> Expr:
    """The w (3), |w| < 2 pi, with exp(w) = q; infinite at q = (-1, 0, 0, 0).

    It keeps q apart from -q, and so is smooth through half a turn: for the shortest rotation take
    ``log(principal(q))``. Two square roots of q leave a quarter of the rotation; tan(θ/16), 0.2 for
    half a turn and at most 0.41, then goes into the arctangent's series: there is no branch, and
    nothing that is not smooth.
    """
    scalar, vector = _parts(q)
    half = ufl.sqrt(0.5 * (1 + scalar))
    quarter = ufl.sqrt(0.5 * (1 + half))
    tangent = vector / (4 * half * quarter * (1 + quarter))
    return 16 * polynomial(ARCTANGENT, ufl.dot(tangent, tangent)) * tangent
