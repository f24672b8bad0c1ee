"""Places at nodes of beams, the joints between them, and rigid bodies there."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import ufl
from ufl.core.expr import Expr

from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.loads import check_at
from fdgeom.lie import arrays
from fdgeom.messages import format_value
from fdgeom.taping import OffTape
from fdgeom.validation import Fixed, array, check_moments, number, read_only

#: Position (3) and triad (3×3, columns: the joint's axes in space) of one side of a joint.
Side = tuple[Expr, Expr]


@dataclass(frozen=True)
class Place:
    """A node of a beam: an end, "left" or "right", or the arc length of a node."""

    beam: BeamFields
    at: str | float

    def __post_init__(self) -> None:
        check_at(self.at)

    def index(self, arcs: np.ndarray) -> int:
        """The index of the node at this place, among increasing arc lengths."""
        if isinstance(self.at, str):
            return 0 if self.at == "left" else len(arcs) - 1
        found = int(np.argmin(np.abs(arcs - self.at)))
        if not abs(arcs[found] - self.at) <= 1e-9 * (arcs[-1] - arcs[0]):
            raise ValueError(
                f"at: the mesh of the beam has no node at {self.at!r}; the nearest is at "
                f"{arcs[found]:.8g}"
            )
        return found

    def __str__(self) -> str:
        return f"the {self.at} end" if isinstance(self.at, str) else f"the node at {self.at:g}"


class Ground:
    """The fixed side of a joint, a single object: ``fdgeom.ground``."""

    def __repr__(self) -> str:
        return "ground"

    def __str__(self) -> str:
        return "the ground"


#: The fixed side of a joint, such as ``Spherical(ground, beam.left)``.
ground = Ground()


def check_place(name: str, place) -> Place | Ground:
    """Return a place; ``TypeError`` for anything else."""
    if not isinstance(place, Place | Ground):
        raise TypeError(
            f"{name} must be a place such as beam.left, beam.right, beam.at(s) or fdgeom.ground, "
            f"not {format_value(place)}"
        )
    return place


class Joint(OffTape, Fixed, ABC):
    """A joint between two places.

    Each side carries a triad, fixed in the section of its node; the triads of the two sides agree
    at the start. The conditions are polynomials of first and second degree in the positions and
    triads, as methods that conserve energy require.

    Parameters
    ----------
    first, second : Place or ground
        The two sides: ``beam.left``, ``beam.right``, ``beam.at(s)`` or ``fdgeom.ground``. The
        ground's node lies where its partner is at the start.
    axis : array_like of 3, optional
        The joint's axis, in the space frame at the start.
    stiffness, damping : float
        Coefficients of a spring and a damper in the joint; the classes state their laws.
    rest : float
        Coordinate at which the spring is at rest.

    Raises
    ------
    TypeError, ValueError
        If the places are the same or both the ground, the axis is no direction, a number is
        negative or not finite, or an axis or ``rest`` is given where the joint has none.
    """

    #: Number of conditions.
    size: ClassVar[int]
    #: Whether the joint has an axis.
    has_axis: ClassVar[bool] = False
    #: Axes of the triads that the two sides share, where the conditions also hold for reversed ones.
    shared: ClassVar[tuple[int, ...]] = ()
    #: Bound of the coordinate at which a spring is at rest.
    largest_rest: ClassVar[float] = np.inf

    def __init_subclass__(cls, **options) -> None:
        """A class with its own `constraints` shares no axes unless it sets `shared`."""
        super().__init_subclass__(**options)
        if "constraints" in vars(cls) and "shared" not in vars(cls):
            cls.shared = ()

    def __init__(
        self,
        first: Place | Ground,
        second: Place | Ground,
        *,
        axis: Sequence[float] | None = None,
        stiffness: float = 0.0,
        damping: float = 0.0,
        rest: float = 0.0,
    ) -> None:
        self.first, self.second = check_place("first", first), check_place("second", second)
        if isinstance(first, Ground) and isinstance(second, Ground):
            raise ValueError(
                f"{type(self).__name__}: the ground cannot be joined to itself; give a beam"
            )
        if first == second:
            raise ValueError(
                f"{type(self).__name__}: {first} cannot be joined to itself; give another place"
            )
        self.axis = _direction(type(self).__name__, axis) if self.has_axis else None
        self.stiffness = number("stiffness", stiffness, least=0)
        self.damping = number("damping", damping, least=0)
        self.rest = number("rest", rest)
        if not self.has_axis and (axis is not None or rest):
            given = "axis" if axis is not None else "rest"
            raise ValueError(
                f"{type(self).__name__} has no {given}; leave it out, or take Revolute or Prismatic"
            )

        if not abs(self.rest) < self.largest_rest:
            raise ValueError(
                f"rest must be an angle between -pi and pi, not {self.rest!r}; the angle of a Revolute "
                "joint with a spring stays within half a turn"
            )

    @staticmethod
    @abstractmethod
    def constraints(a: Side, b: Side) -> list[Expr]:
        """The conditions: ``size`` expressions of the positions and triads of the two sides.

        They vanish in the joint. The sides are those of the places, in their order.
        """

    @staticmethod
    def coordinate(a: Side, b: Side) -> Expr | None:
        """Angle or shift of the second side from the first; None if the joint has none."""
        return None

    @classmethod
    def potential(cls, a: Side, b: Side, stiffness: Expr, rest: Expr) -> Expr:
        """Energy of the spring: ½ k (coordinate - rest)²."""
        coordinate = cls.coordinate(a, b)
        return 0.5 * stiffness * (coordinate - rest) ** 2

    def __repr__(self) -> str:
        return f"<{type(self).__name__} joint of {self.first} and {self.second}>"


class Spherical(Joint):
    """Two nodes at one point, free to turn.

    Parameters
    ----------
    first, second : Place or ground
        As for :class:`Joint`, which also states the errors.
    stiffness : float
        k, a moment: energy k (1 - cos φ) with the angle φ of the relative rotation.
    damping : float
        c, a moment c times the relative angular velocity (rad per time).
    axis, rest
        A spherical joint has neither; ``ValueError`` if given.
    """

    size = 3

    @staticmethod
    def constraints(a: Side, b: Side) -> list[Expr]:
        return _shift(a, b)

    @classmethod
    def potential(cls, a: Side, b: Side, stiffness: Expr, rest: Expr) -> Expr:
        return 0.5 * stiffness * (3 - ufl.inner(a[1], b[1]))


class Revolute(Joint):
    """Two nodes at one point, free to turn about an axis that is fixed in both.

    Parameters
    ----------
    first, second, axis
        As for :class:`Joint`, which also states the errors.
    stiffness : float
        k, a moment per radian: energy ½ k (θ - rest)² with the angle θ from the first to the second
        side, zero when the assembly is made.
    damping : float
        c, a moment per angular velocity: c θ̇.
    rest : float
        Angle in radians between -π and π. A step in which θ of a joint with a spring passes π fails.
    """

    size = 5
    has_axis = True
    shared = (2,)
    largest_rest = np.pi

    @staticmethod
    def constraints(a: Side, b: Side) -> list[Expr]:
        return [*_shift(a, b), _dot(a, 2, b, 0), _dot(a, 2, b, 1)]

    @staticmethod
    def coordinate(a: Side, b: Side) -> Expr:
        return ufl.atan2(_dot(a, 1, b, 0), _dot(a, 0, b, 0))


class Prismatic(Joint):
    """Two nodes that slide along an axis without turning.

    Parameters
    ----------
    first, second, axis
        As for :class:`Joint`, which also states the errors.
    stiffness : float
        k, a force per length: energy ½ k (s - rest)² with the distance s along the axis from the
        first to the second node.
    damping : float
        c, a force per velocity: c ṡ.
    rest : float
        Distance at which the spring is at rest.
    """

    size = 5
    has_axis = True
    shared = (0, 1, 2)

    @staticmethod
    def constraints(a: Side, b: Side) -> list[Expr]:
        return [_along(a, b, 0), _along(a, b, 1), *_locked(a, b)]

    @staticmethod
    def coordinate(a: Side, b: Side) -> Expr:
        return _along(a, b, 2)


class Rigid(Joint):
    """Two nodes at one point that turn together: beams welded at their initial angle.

    Parameters
    ----------
    first, second : Place or ground
        As for :class:`Joint`, which also states the errors.
    """

    size = 6
    shared = (0, 1, 2)

    def __init__(self, first: Place | Ground, second: Place | Ground) -> None:
        super().__init__(first, second)

    @staticmethod
    def constraints(a: Side, b: Side) -> list[Expr]:
        return [*_shift(a, b), *_locked(a, b)]


def _shift(a: Side, b: Side) -> list[Expr]:
    return [b[0][k] - a[0][k] for k in range(3)]


def _dot(a: Side, i: int, b: Side, j: int) -> Expr:
    """Axis i of one side times axis j of the other."""
    return sum(a[1][k, i] * b[1][k, j] for k in range(3))


def _along(a: Side, b: Side, i: int) -> Expr:
    """The shift along axis i of the first side."""
    return sum(a[1][k, i] * (b[0][k] - a[0][k]) for k in range(3))


def _locked(a: Side, b: Side) -> list[Expr]:
    # Of full rank where the triads agree: the derivatives are the three axes. These products also
    # vanish after half turns about an axis, and where the axes are exchanged in a cycle.
    return [_dot(a, 0, b, 1), _dot(a, 1, b, 2), _dot(a, 2, b, 0)]


def triad(axis: np.ndarray | None) -> np.ndarray:
    """A right-handed triad (3×3, columns) whose third axis is the given one."""
    if axis is None:
        return np.eye(3)
    other = np.eye(3)[np.argmin(np.abs(axis))]
    first = np.cross(other, axis)
    first /= np.linalg.norm(first)
    return np.column_stack([first, np.cross(axis, first), axis])


def _direction(name: str, axis) -> np.ndarray:
    if axis is None:
        raise ValueError(f"{name}: axis is missing: give a vector of 3 in the space frame")
    wanted = "a vector of 3 finite numbers, not all zero"
    numbers = array("axis", axis, (3,), wanted=wanted)
    length = np.linalg.norm(numbers)
    if not (length > 0 and np.isfinite(length)):
        raise ValueError(f"axis must be {wanted}, not {format_value(axis)}")
    return read_only(numbers / length)


class PointBody(Fixed):
    """A rigid body fixed to a node of a beam.

    Parameters
    ----------
    at : Place
        The node: ``beam.left``, ``beam.right`` or ``beam.at(s)``.
    mass : float
        Its mass.
    inertia : (3, 3) or (3,) array_like, optional
        Inertia about its centre of mass, in the axes of the node's section: the matrix or its
        diagonal. The default is zero, a point mass.
    offset : array_like of 3
        Vector from the node to the centre of mass, in the axes of the section.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or the inertia is not symmetric and positive
        semidefinite, or a principal moment is larger than the sum of the other two.
    """

    def __init__(
        self,
        at: Place,
        *,
        mass: float,
        inertia=None,
        offset: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        self.at = check_place("at", at)
        if isinstance(at, Ground):
            raise ValueError("at: a body on the ground does not move; give a node of a beam")
        mass = number("mass", mass, least=0)
        wanted = "a symmetric 3×3 matrix of finite numbers, or its diagonal"
        given = np.zeros(3) if inertia is None else inertia
        own = array("inertia", given, (3,), (3, 3), wanted=wanted)
        own = np.diag(own) if own.ndim == 1 else own
        if not np.allclose(own, own.T, rtol=0.0, atol=1e-8 * np.abs(own).max()):
            raise ValueError(f"inertia must be {wanted}, not {format_value(inertia)}")
        if np.linalg.eigvalsh(own).min() < -1e-12 * np.abs(own).max():
            raise ValueError("inertia must be positive semidefinite")
        check_moments(own)
        hat = arrays.so3.hat(array("offset", offset, (3,)))
        #: Body momentum of body velocity at the node (6×6, rotation first).
        self.matrix = read_only(
            np.block([[own - mass * hat @ hat, mass * hat], [-mass * hat, mass * np.eye(3)]])
        )

    def __repr__(self) -> str:
        return f"<body of mass {self.matrix[5, 5]:g} at {self.at}>"
