"""so(3) and SO(3): formulas for any arithmetic, and for UFL expressions by their names."""

from types import ModuleType
from typing import Generic

from fdgeom.lie import ufl_operations
from fdgeom.lie.quaternion import Operand, Quaternions, quaternion


class Rotations(Generic[Operand]):
    """so(3) and SO(3): rotation vectors (3) and rotation matrices (3x3).

    All functions are smooth wherever they are defined, at zero too: they may be differentiated any
    number of times there. Tangent maps are *left trivialised*,

        f(w)⁻¹ Df(w)·δ = hat(df(w) δ),

    so that they give the angular velocity in the body frame. The right trivialised map, of the
    velocity in the space frame, is the same at -w, which is the transpose: df(-w) = df(w)ᵀ.
    """

    def __init__(self, operations: ModuleType, quaternion: Quaternions[Operand]) -> None:
        self._of, self._quaternions = operations, quaternion

    def hat(self, w: Operand) -> Operand:
        """The skew matrix (3x3) of a vector (3): hat(w) y = w × y."""
        w = self._of.tensor(w, (3,), "w")
        x, y, z = (w[..., i] for i in range(3))
        return self._of.matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])

    def vee(self, matrix: Operand) -> Operand:
        """The vector (3) of the skew part of a matrix (3x3); the inverse of `hat`."""
        m = self._of.tensor(matrix, (3, 3), "matrix")
        pairs = ((2, 1), (0, 2), (1, 0))
        return 0.5 * self._of.vector([m[..., i, j] - m[..., j, i] for i, j in pairs])

    def bracket(self, x: Operand, y: Operand) -> Operand:
        """[x, y] = x × y."""
        return self._of.cross(self._of.tensor(x, (3,), "x"), self._of.tensor(y, (3,), "y"))

    def coadjoint(self, x: Operand, a: Operand) -> Operand:
        """[x, a]* = a × x, from ⟨[x, a]*, y⟩ = ⟨a, [x, y]⟩."""
        return self._of.cross(self._of.tensor(a, (3,), "a"), self._of.tensor(x, (3,), "x"))

    def Ad(self, rotation: Operand) -> Operand:
        """Adjoint action (3x3) of a rotation on so(3) ≅ R³: the rotation itself."""
        return self._of.tensor(rotation, (3, 3), "rotation")

    def _terms(self, w: Operand) -> tuple[Operand, Operand, Operand]:
        """|w|², to multiply matrices, hat(w) and hat(w)²."""
        w = self._of.tensor(w, (3,), "w")
        s = self._of.wide(self._of.dot(w, w))
        return s, self.hat(w), self._of.outer(w, w) - s * self._of.identity

    def cay(self, w: Operand) -> Operand:
        """Cayley map (3x3): (I - ŵ/2)⁻¹ (I + ŵ/2) = I + (ŵ + ŵ²/2) / (1 + |w|²/4)."""
        s, skew, square = self._terms(w)
        return self._of.identity + (skew + 0.5 * square) / (1 + 0.25 * s)

    def cay_inverse(self, rotation: Operand) -> Operand:
        """The w (3) with cay(w) = rotation (3x3); infinite at half a turn."""
        rotation = self._of.tensor(rotation, (3, 3), "rotation")
        return 4 * self.vee(rotation) / (1 + self._of.trace(rotation))

    def dcay(self, w: Operand) -> Operand:
        """Left-trivialised tangent (3x3) of `cay`: (I - ŵ/2) / (1 + |w|²/4)."""
        s, skew, _ = self._terms(w)
        return (self._of.identity - 0.5 * skew) / (1 + 0.25 * s)

    def dcay_inverse(self, w: Operand) -> Operand:
        """Inverse (3x3) of `dcay`: I + ŵ/2 + w wᵀ/4."""
        w = self._of.tensor(w, (3,), "w")
        return self._of.identity + 0.5 * self.hat(w) + 0.25 * self._of.outer(w, w)

    def exp(self, w: Operand) -> Operand:
        """Exponential (3x3), Rodrigues' formula: I + sin θ/θ ŵ + (1 - cos θ)/θ² ŵ²."""
        return self._quaternions.matrix(self._quaternions.exp(w))

    def log(self, rotation: Operand) -> Operand:
        """The w (3), |w| ≤ pi, with exp(w) = rotation (3x3); it jumps at half a turn."""
        return self._quaternions.log(self._quaternions.from_matrix(rotation))

    def dexp(self, w: Operand) -> Operand:
        """Left-trivialised tangent (3x3) of `exp`: I - (1 - cos θ)/θ² ŵ + (θ - sin θ)/θ³ ŵ²."""
        s, skew, square = self._terms(w)
        return (
            self._of.identity
            - self._of.coefficients.cosine(s) * skew
            + self._of.coefficients.cubic(s) * square
        )

    def dexp_inverse(self, w: Operand) -> Operand:
        """Inverse (3x3) of `dexp`: I + ŵ/2 + (1 - (θ/2) cot(θ/2))/θ² ŵ²; infinite at θ = 2 pi."""
        s, skew, square = self._terms(w)
        return self._of.identity + 0.5 * skew + self._of.coefficients.cotangent(s) * square


so3 = Rotations(ufl_operations, quaternion)

# For `from fdgeom.lie.so3 import hat`.
__getattr__ = so3.__getattribute__
