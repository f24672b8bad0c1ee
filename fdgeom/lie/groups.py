"""Groups for time steppers: moves of configurations, and the bracket of velocities.

A configuration is a tuple of UFL expressions, vectors of the algebra are one UFL vector: rotation
first, translation last. `SO3`, `R3xSO3` and `SE3` move by their exponential; ``SE3.by("cay")`` by the
Cayley map.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import ufl
from ufl.core.expr import Expr

from fdgeom.lie.quaternion import quaternion
from fdgeom.lie.se3 import Motions, se3
from fdgeom.lie.so3 import Rotations, so3
from fdgeom.lie.ufl_operations import blocks, halves, identity, join, tensor, zero
from fdgeom.validation import choice

Configuration = tuple[Expr, ...]

_RETRACTIONS = ("exp", "cay")


class Group(ABC):
    """A group that acts on itself from the right, g ↦ g r(d): r is the exponential or Cayley map."""

    name: ClassVar[str]
    dimension: ClassVar[int]  # of the algebra
    #: Shapes of the parts of a configuration. Rotations are unit quaternions, scalar first.
    shapes: ClassVar[tuple[tuple[int, ...], ...]]
    _algebra: ClassVar[Rotations | Motions]

    def __init__(self, retraction: str = "exp") -> None:
        self.retraction = choice("retraction", retraction, _RETRACTIONS)

    def by(self, retraction: str) -> "Group":
        """The same group, moved by another retraction."""
        return type(self)(retraction)

    def __repr__(self) -> str:
        return f"{self.name} by {self.retraction}"

    @abstractmethod
    def retract(self, configuration: Configuration, increment: Expr) -> Configuration:
        """g r(d) for a configuration g and an increment d of the algebra."""

    @abstractmethod
    def rate(self, configuration: Configuration, v: Expr) -> Configuration:
        """ġ = g v̂, part by part: the derivative of `retract` at d = 0 along v."""

    def tangent(self, increment: Expr) -> Expr:
        """The matrix T(d) with r(d)⁻¹ Dr(d)·δ = hat(T(d) δ)."""
        algebra = self._algebra
        return (algebra.dexp if self.retraction == "exp" else algebra.dcay)(increment)

    def bracket(self, a: Expr, b: Expr) -> Expr:
        """[a, b]."""
        return self._algebra.bracket(a, b)

    def coadjoint(self, v: Expr, momentum: Expr) -> Expr:
        """ad*_v μ, from ⟨ad*_v μ, w⟩ = ⟨μ, [v, w]⟩."""
        return self._algebra.coadjoint(v, momentum)

    def parts(self, configuration: Configuration) -> Configuration:
        """A configuration, its number of parts and their shapes checked."""
        if not isinstance(configuration, list | tuple) or len(configuration) != len(self.shapes):
            raise TypeError(
                f"configuration must be a tuple of {len(self.shapes)} UFL expressions of shapes "
                f"{self.shapes} for {self.name}"
            )
        return tuple(
            tensor(part, shape, "configuration")
            for part, shape in zip(configuration, self.shapes, strict=True)
        )

    def turning(self, orientation: Expr, w: Expr) -> Expr:
        """q̇ = q (0, w)/2 for an angular velocity in the body frame."""
        return 0.5 * quaternion.product(orientation, ufl.as_vector([0, w[0], w[1], w[2]]))

    def turned(self, orientation: Expr, increment: Expr) -> Expr:
        """A unit quaternion after a rotation in the body frame."""
        # (3 - |q|²)/2 ≈ 1/|q| keeps the length at 1 to round-off, however many steps are taken; the
        # increment does not occur in it.
        turn = quaternion.exp if self.retraction == "exp" else quaternion.cay
        length = ufl.dot(orientation, orientation)
        return 0.5 * (3 - length) * quaternion.product(orientation, turn(increment))


class _SO3(Group):
    """Rotations: configuration (unit quaternion), velocity in the body frame."""

    name = "SO3"
    dimension = 3
    shapes = ((4,),)
    _algebra = so3

    def retract(self, configuration: Configuration, increment: Expr) -> Configuration:
        (q,) = self.parts(configuration)
        return (self.turned(q, tensor(increment, (3,), "increment")),)

    def rate(self, configuration: Configuration, v: Expr) -> Configuration:
        (q,) = self.parts(configuration)
        return (self.turning(q, tensor(v, (3,), "v")),)


class _R3xSO3(Group):
    """Translations beside rotations: configuration (position, unit quaternion), velocity (ω, v)
    with ω in the body frame and v = dx/dt in the space frame."""

    name = "R3xSO3"
    dimension = 6
    shapes = ((3,), (4,))
    _algebra = so3

    def retract(self, configuration: Configuration, increment: Expr) -> Configuration:
        x, q = self.parts(configuration)
        rotation, translation = halves(increment, "increment")
        return x + translation, self.turned(q, rotation)

    def rate(self, configuration: Configuration, v: Expr) -> Configuration:
        _, q = self.parts(configuration)
        rotation, translation = halves(v, "v")
        return translation, self.turning(q, rotation)

    def tangent(self, increment: Expr) -> Expr:
        rotation, _ = halves(increment, "increment")
        return blocks(super().tangent(rotation), zero, zero, identity)

    def bracket(self, a: Expr, b: Expr) -> Expr:
        return join(super().bracket(halves(a, "a")[0], halves(b, "b")[0]), ufl.zero(3))

    def coadjoint(self, v: Expr, momentum: Expr) -> Expr:
        moment, _ = halves(momentum, "momentum")
        return join(super().coadjoint(halves(v, "v")[0], moment), ufl.zero(3))


class _SE3(Group):
    """Motions of space: configuration (position, unit quaternion), velocity (ω, v) in the body
    frame."""

    name = "SE3"
    dimension = 6
    shapes = ((3,), (4,))
    _algebra = se3

    def retract(self, configuration: Configuration, increment: Expr) -> Configuration:
        x, q = self.parts(configuration)
        rotation, _ = halves(increment, "increment")
        pose = se3.pose_exp if self.retraction == "exp" else se3.pose_cay
        translation, _ = pose(increment)
        return x + quaternion.rotate(q, translation), self.turned(q, rotation)

    def rate(self, configuration: Configuration, v: Expr) -> Configuration:
        _, q = self.parts(configuration)
        rotation, translation = halves(v, "v")
        return quaternion.rotate(q, translation), self.turning(q, rotation)


#: Rotations about a fixed point.
SO3 = _SO3()
#: Position in space and orientation, one beside the other.
R3xSO3 = _R3xSO3()
#: Rigid motions, velocities in the body frame.
SE3 = _SE3()
