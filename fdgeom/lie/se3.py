"""se(3) and SE(3): formulas for any arithmetic, and for UFL expressions by their names."""

from types import ModuleType
from typing import Any, Generic

from fdgeom.lie import ufl_operations
from fdgeom.lie.quaternion import Operand, Quaternions, quaternion
from fdgeom.lie.so3 import Rotations, so3

Pose = tuple[Operand, Operand]


def pair(operations: ModuleType, pose: Pose[Any], name: str) -> Pose[Any]:
    """Position (3) and quaternion (4) of a pose, checked."""
    if not isinstance(pose, list | tuple) or len(pose) != 2:
        raise TypeError(f"{name} must be a pair (position, unit quaternion)")
    x = operations.tensor(pose[0], (3,), f"position of {name}")
    return x, operations.tensor(pose[1], (4,), f"quaternion of {name}")


class Motions(Generic[Operand]):
    """se(3) and SE(3): x = (ω, v) in R^6, motions as 4x4 matrices or as poses.

    A *pose* is a pair (position, unit quaternion) of shapes (3) and (4): half as many numbers as a
    4x4 matrix, and no constraint but the quaternion's length. Motions take body coordinates to
    space. All functions are smooth wherever they are defined, at zero too. Tangent maps are *left
    trivialised*, f(x)⁻¹ Df(x)·δ = hat(df(x) δ): they give the velocity in the body frame; the
    right trivialised map, of the velocity in the space frame, is the same at -x.
    """

    def __init__(
        self, operations: ModuleType, quaternion: Quaternions[Operand], so3: Rotations[Operand]
    ) -> None:
        self._of, self._quaternions, self._so3 = operations, quaternion, so3

    # --- the algebra and its dual ---------------------------------------------------------------

    def hat(self, x: Operand) -> Operand:
        """The 4x4 matrix [[hat(ω), v], [0, 0]] of x = (ω, v)."""
        omega, v = self._of.halves(x, "x")
        return self._of.motion(self._so3.hat(omega), v, 0)

    def vee(self, matrix: Operand) -> Operand:
        """The vector (6) of a 4x4 matrix of se(3); the inverse of `hat`."""
        rotation, translation = self._of.motion_parts(matrix, "matrix")
        return self._of.join(self._so3.vee(rotation), translation)

    def bracket(self, x: Operand, y: Operand) -> Operand:
        """[(ω₁, v₁), (ω₂, v₂)] = (ω₁ × ω₂, ω₁ × v₂ - ω₂ × v₁)."""
        omega, v = self._of.halves(x, "x")
        eta, u = self._of.halves(y, "y")
        return self._of.join(
            self._of.cross(omega, eta), self._of.cross(omega, u) + self._of.cross(v, eta)
        )

    def coadjoint(self, x: Operand, a: Operand) -> Operand:
        """[(ω, v), (m, n)]* = (m × ω + n × v, n × ω), from ⟨[x, a]*, y⟩ = ⟨a, [x, y]⟩."""
        omega, v = self._of.halves(x, "x")
        m, n = self._of.halves(a, "a")
        return self._of.join(
            self._of.cross(m, omega) + self._of.cross(n, v), self._of.cross(n, omega)
        )

    def ad(self, x: Operand) -> Operand:
        """The 6x6 matrix of y ↦ [x, y]."""
        omega, v = self._of.halves(x, "x")
        turn = self._so3.hat(omega)
        return self._of.blocks(turn, self._of.zero, self._so3.hat(v), turn)

    # --- motions as 4x4 matrices ----------------------------------------------------------------

    def Ad(self, g: Operand) -> Operand:
        """Adjoint action (6x6) [[R, 0], [x̂R, R]] of g = (R, x): hat(Ad(g) y) = g hat(y) g⁻¹."""
        rotation, x = self._of.motion_parts(g, "g")
        return self._of.blocks(
            rotation, self._of.zero, self._of.times(self._so3.hat(x), rotation), rotation
        )

    def Ad_dual(self, g: Operand) -> Operand:
        """Coadjoint action (6x6) [[R, x̂R], [0, R]] = Ad(g)⁻ᵀ: body momentum to space momentum."""
        rotation, x = self._of.motion_parts(g, "g")
        return self._of.blocks(
            rotation, self._of.times(self._so3.hat(x), rotation), self._of.zero, rotation
        )

    def cay(self, x: Operand) -> Operand:
        """Cayley map (4x4): (I - x̂/2)⁻¹ (I + x̂/2)."""
        return self.pose_matrix(self.pose_cay(x))

    def cay_inverse(self, g: Operand) -> Operand:
        """The x (6) with cay(x) = g; infinite where the rotation is half a turn."""
        return self.pose_cay_inverse(self.pose_from_matrix(g))

    def exp(self, x: Operand) -> Operand:
        """Exponential (4x4)."""
        return self.pose_matrix(self.pose_exp(x))

    def log(self, g: Operand) -> Operand:
        """The x (6), |ω| ≤ pi, with exp(x) = g; it jumps at half a turn."""
        return self.pose_log(self.pose_from_matrix(g))

    # --- tangent maps ---------------------------------------------------------------------------

    def dcay(self, x: Operand) -> Operand:
        """Left-trivialised tangent (6x6) of `cay`."""
        omega, v = self._of.halves(x, "x")
        rotation = self._so3.dcay(omega)
        s = self._of.wide(self._of.dot(omega, omega))
        translation = rotation + 0.25 * self._of.outer(omega, omega) / (1 + 0.25 * s)
        corner = -0.5 * self._of.times(self._so3.hat(v), rotation)
        return self._of.blocks(rotation, self._of.zero, corner, translation)

    def dcay_inverse(self, x: Operand) -> Operand:
        """Inverse (6x6) of `dcay`: y ↦ y + [x, y]/2 - vee(x̂ŷx̂)/4."""
        omega, v = self._of.halves(x, "x")
        translation = self._of.identity + 0.5 * self._so3.hat(omega)
        corner = 0.5 * self._of.times(translation, self._so3.hat(v))
        return self._of.blocks(self._so3.dcay_inverse(omega), self._of.zero, corner, translation)

    def _terms(self, omega: Operand, v: Operand) -> tuple[Operand, Operand, Operand, Operand]:
        """|ω|², its derivative along v (to multiply matrices), ω̂² and its derivative ω̂v̂ + v̂ω̂."""
        s = self._of.wide(self._of.dot(omega, omega))
        rate = 2 * self._of.wide(self._of.dot(omega, v))
        square = self._of.outer(omega, omega) - s * self._of.identity
        symmetric = self._of.outer(omega, v) + self._of.outer(v, omega) - rate * self._of.identity
        return s, rate, square, symmetric

    def dexp(self, x: Operand) -> Operand:
        """Left-trivialised tangent (6x6) of `exp`: the sum of (-ad(x))^k / (k + 1)!.

        ad(ω, v) acts like hat(ω + ε v) with ε² = 0, so that the block below the diagonal is the
        derivative of ``so3.dexp`` at ω along v.
        """
        omega, v = self._of.halves(x, "x")
        s, rate, square, symmetric = self._terms(omega, v)
        corner = (
            self._of.coefficients.cubic(s) * symmetric
            - self._of.coefficients.cosine(s) * self._so3.hat(v)
            + rate * self._of.coefficients.cubic_slope(s) * square
            - rate * self._of.coefficients.cosine_slope(s) * self._so3.hat(omega)
        )
        return self._of.blocks(self._so3.dexp(omega), self._of.zero, corner, self._so3.dexp(omega))

    def dexp_inverse(self, x: Operand) -> Operand:
        """Inverse (6x6) of `dexp`; infinite at |ω| = 2 pi."""
        omega, v = self._of.halves(x, "x")
        s, rate, square, symmetric = self._terms(omega, v)
        corner = (
            0.5 * self._so3.hat(v)
            + self._of.coefficients.cotangent(s) * symmetric
            + rate * self._of.coefficients.cotangent_slope(s) * square
        )
        return self._of.blocks(
            self._so3.dexp_inverse(omega), self._of.zero, corner, self._so3.dexp_inverse(omega)
        )

    # --- motions as poses -----------------------------------------------------------------------

    def pose_compose(self, g: Pose[Operand], h: Pose[Operand]) -> Pose[Operand]:
        """(x, q)(y, r) = (x + rotate(q, y), q r)."""
        (x, q), (y, r) = pair(self._of, g, "g"), pair(self._of, h, "h")
        return x + self._quaternions.rotate(q, y), self._quaternions.product(q, r)

    def pose_inverse(self, g: Pose[Operand]) -> Pose[Operand]:
        """(x, q)⁻¹ = (-rotate_inverse(q, x), q̄)."""
        x, q = pair(self._of, g, "g")
        return -self._quaternions.rotate_inverse(q, x), self._quaternions.conjugate(q)

    def pose_matrix(self, g: Pose[Operand]) -> Operand:
        """The 4x4 matrix of a pose."""
        x, q = pair(self._of, g, "g")
        return self._of.motion(self._quaternions.matrix(q), x, 1)

    def pose_from_matrix(self, g: Operand) -> Pose[Operand]:
        """The pose of a 4x4 matrix, the quaternion's scalar part not negative."""
        rotation, x = self._of.motion_parts(g, "g")
        return x, self._quaternions.from_matrix(rotation)

    def pose_cay(self, x: Operand) -> Pose[Operand]:
        """Pose of the Cayley map of x (6)."""
        omega, v = self._of.halves(x, "x")
        # (I - ω̂/2)⁻¹ v.
        numerator = v + 0.5 * self._of.cross(omega, v) + 0.25 * self._of.dot(omega, v) * omega
        translation = numerator / (1 + 0.25 * self._of.dot(omega, omega))
        return translation, self._quaternions.cay(omega)

    def pose_cay_inverse(self, g: Pose[Operand]) -> Operand:
        """The x (6) with pose_cay(x) = g, up to the quaternion's sign; infinite at half a turn."""
        x, q = pair(self._of, g, "g")
        omega = self._quaternions.cay_inverse(q)
        return self._of.join(omega, x - 0.5 * self._of.cross(omega, x))

    def pose_exp(self, x: Operand) -> Pose[Operand]:
        """Pose of the exponential of x (6)."""
        omega, v = self._of.halves(x, "x")
        # (I + (1 - cos θ)/θ² ω̂ + (θ - sin θ)/θ³ ω̂²) v.
        s, turned = self._of.dot(omega, omega), self._of.cross(omega, v)
        cosine, cubic = self._of.coefficients.cosine(s), self._of.coefficients.cubic(s)
        translation = v + cosine * turned + cubic * self._of.cross(omega, turned)
        return translation, self._quaternions.exp(omega)

    def pose_log(self, g: Pose[Operand]) -> Operand:
        """The x (6), |ω| < 2 pi, with pose_exp(x) = g; see ``quaternion.log`` for the sign of q."""
        x, q = pair(self._of, g, "g")
        omega = self._quaternions.log(q)
        # (I - ω̂/2 + (1 - (θ/2) cot(θ/2))/θ² ω̂²) x.
        turned = self._of.cross(omega, x)
        cotangent = self._of.coefficients.cotangent(self._of.dot(omega, omega))
        translation = x - 0.5 * turned + cotangent * self._of.cross(omega, turned)
        return self._of.join(omega, translation)

    def pose_adjoint_action(self, g: Pose[Operand], y: Operand) -> Operand:
        """Ad(g) y (6): the velocity (ω, v) from the body frame to the space frame."""
        x, q = pair(self._of, g, "g")
        omega, v = self._of.halves(y, "y")
        turned = self._quaternions.rotate(q, omega)
        return self._of.join(turned, self._quaternions.rotate(q, v) + self._of.cross(x, turned))

    def pose_coadjoint_action(self, g: Pose[Operand], a: Operand) -> Operand:
        """Ad_dual(g) a (6): the momentum (m, n) from the body frame to the space frame."""
        x, q = pair(self._of, g, "g")
        m, n = self._of.halves(a, "a")
        turned = self._quaternions.rotate(q, n)
        return self._of.join(self._quaternions.rotate(q, m) + self._of.cross(x, turned), turned)


se3 = Motions(ufl_operations, quaternion, so3)

# For `from fdgeom.lie.se3 import hat`.
__getattr__ = se3.__getattribute__
