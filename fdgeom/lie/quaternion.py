"""Unit quaternions: formulas for any arithmetic, and for UFL expressions by their names."""

from types import ModuleType
from typing import Generic, TypeVar

from fdgeom.lie import ufl_operations

Operand = TypeVar("Operand")


class Quaternions(Generic[Operand]):
    """Unit quaternions: vectors (4), scalar first; q and -q are the same rotation.

    Functions of a quaternion take it as a unit one and do not divide by its length: `normalize`
    does. Like the other classes of formulas, this one is given the operations of one arithmetic:
    ``fdgeom.lie.ufl_operations`` or ``fdgeom.lie.numpy_operations``.
    """

    def __init__(self, operations: ModuleType) -> None:
        self._of = operations

    def product(self, p: Operand, q: Operand) -> Operand:
        """p q (4), the rotation q followed by p."""
        a, u = self._of.scalar_and_vector(p, "p")
        b, v = self._of.scalar_and_vector(q, "q")
        return self._of.quaternion(a * b - self._of.dot(u, v), a * v + b * u + self._of.cross(u, v))

    def conjugate(self, q: Operand) -> Operand:
        """The inverse rotation (4)."""
        scalar, vector = self._of.scalar_and_vector(q, "q")
        return self._of.quaternion(scalar, -vector)

    def normalize(self, q: Operand) -> Operand:
        """q / |q| (4)."""
        q = self._of.not_zero(self._of.tensor(q, (4,), "q"), "q")
        return q / self._of.sqrt(self._of.dot(q, q))

    def principal(self, q: Operand) -> Operand:
        """q or -q (4), whichever has a scalar part that is not negative."""
        scalar, _ = self._of.scalar_and_vector(q, "q")
        return self._of.where(self._of.below(scalar, 0), -1, 1) * self._of.tensor(q, (4,), "q")

    def rotate(self, q: Operand, v: Operand) -> Operand:
        """The vector v (3) turned by q: from the body frame to the space frame."""
        scalar, vector = self._of.scalar_and_vector(q, "q")
        v = self._of.tensor(v, (3,), "v")
        return v + 2 * self._of.cross(vector, self._of.cross(vector, v) + scalar * v)

    def rotate_inverse(self, q: Operand, v: Operand) -> Operand:
        """The vector v (3) turned back by q: from the space frame to the body frame."""
        return self.rotate(self.conjugate(q), v)

    def matrix(self, q: Operand) -> Operand:
        """Rotation matrix (3x3): matrix(q) v = rotate(q, v)."""
        q = self._of.tensor(q, (4,), "q")
        w, x, y, z = (q[..., i] for i in range(4))
        return self._of.matrix(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )

    def from_matrix(self, rotation: Operand) -> Operand:
        """Unit quaternion (4), scalar part not negative, of a rotation matrix (3x3).

        Every column of K = 4 q qᵀ, which is linear in the matrix, is a multiple of q; the one with
        the largest diagonal entry has a length of at least 2 and so can be normalized safely.
        """
        rotation = self._of.tensor(rotation, (3, 3), "rotation")
        r = [[rotation[..., i, j] for j in range(3)] for i in range(3)]
        vector = [r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1]]
        trace = r[0][0] + r[1][1] + r[2][2]
        diagonal = [1 + trace] + [1 + 2 * r[i][i] - trace for i in range(3)]
        columns = [[diagonal[0], *vector]] + [
            [vector[i]] + [diagonal[i + 1] if i == j else r[i][j] + r[j][i] for j in range(3)]
            for i in range(3)
        ]
        largest, column = diagonal[0], columns[0]
        for candidate, entries in zip(diagonal[1:], columns[1:], strict=True):
            better = self._of.below(largest, candidate)
            column = [self._of.where(better, a, b) for a, b in zip(entries, column, strict=True)]
            largest = self._of.where(better, candidate, largest)
        return self.principal(self.normalize(self._of.vector(column)))

    def cay(self, w: Operand) -> Operand:
        """Unit quaternion (4) of the Cayley map of w (3): (1, w/2) / sqrt(1 + |w|²/4)."""
        w = self._of.tensor(w, (3,), "w")
        return self._of.quaternion(1, 0.5 * w) / self._of.sqrt(1 + 0.25 * self._of.dot(w, w))

    def cay_inverse(self, q: Operand) -> Operand:
        """The w (3) with cay(w) = q or -q; infinite at half a turn."""
        scalar, vector = self._of.scalar_and_vector(q, "q")
        return 2 * vector / scalar

    def exp(self, w: Operand) -> Operand:
        """Unit quaternion (4) of the rotation vector w (3): (cos θ/2, sin(θ/2)/θ w), θ = |w|."""
        w = self._of.tensor(w, (3,), "w")
        s = 0.25 * self._of.dot(w, w)
        return self._of.quaternion(
            1 - s * self._of.coefficients.cosine(s), 0.5 * self._of.coefficients.sine(s) * w
        )

    def log(self, q: Operand) -> Operand:
        """The w (3), |w| < 2 pi, with exp(w) = q.

        It keeps q apart from -q, and so is smooth through half a turn: for the shortest rotation
        take ``log(principal(q))``. At q = (-1, 0, 0, 0) the axis is lost: the UFL expression is
        infinite there, NumPy gives zero.
        """
        return self._of.logarithm(*self._of.scalar_and_vector(q, "q"))


quaternion = Quaternions(ufl_operations)

# For `from fdgeom.lie.quaternion import product`.
__getattr__ = quaternion.__getattribute__
