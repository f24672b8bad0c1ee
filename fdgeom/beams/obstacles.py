"""Obstacles that rods touch, each by the distance from its surface."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import ufl
from firedrake import Constant
from tsfc.ufl_utils import extract_firedrake_constants
from ufl.algorithms import expand_derivatives, replace
from ufl.classes import Expr, Zero

from fdgeom.beams.rod.loads import Vector, checked_vector
from fdgeom.beams.rod.variation import rate, slope
from fdgeom.clock import Time
from fdgeom.mean_slope import MeanSlope
from fdgeom.messages import format_value, is_function, reported_as
from fdgeom.operations.dependent import private
from fdgeom.validation import Fixed, evaluated, instance, needed_arguments, scalar

Number = float | Expr
#: Of the squared radius of a body: added to squared lengths, so that a root has a slope at zero.
_ROUNDED = 1e-18
# Points along a side of a drawn surface.
_DRAWN = 33


class Obstacle(Fixed):
    """Base class of obstacles: the distance from the surface and its slope, and the velocity and
    the shape of the surface.
    """

    #: Whether the slope of the distance has length one everywhere.
    is_exact = True
    #: Whether the velocity of its surface is known where it moves.
    has_velocity = True
    #: Radius of the hollow of a body that is turned inside out, if it is round.
    hollow: Expr | None = None

    def __init__(self, inside: bool, name: str = "place", place: Vector | None = None) -> None:
        self.inside = instance("inside", inside, bool, "True or False")
        self._sign = -1.0 if inside else 1.0
        self._place, self._name = checked_vector(name, place), name
        #: Whether it changes its place or shape in time (a drum that turns does not).
        self.moves = is_function(self._place)
        self._place_at(Time())

    def distance(self, x: Expr, t: Expr) -> Expr:
        """Distance of a point ``x`` (3) from the surface at the time ``t``, positive outside."""
        raise NotImplementedError

    def mean_slope(self, old: Expr, new: Expr, t: Expr) -> Expr:
        """A mean s̄ (3) of the slope over a step: s̄·(x¹ - x⁰) is the change of the distance."""
        raise NotImplementedError

    def slope(self, x: Expr, t: Expr) -> Expr:
        """Derivative of the distance by ``x`` (3): the normal, into the free space."""
        return self.mean_slope(x, x, t)

    def velocity(self, x: Expr, t: Expr) -> Expr:
        """Velocity (3) of the surface near ``x``."""
        return rate(lambda s: self._place_at(t + s))

    def place(self) -> Expr | None:
        """Where the surface is; None if its velocity is known also where a Constant moves it."""
        return self._place_at(Time())

    def surface(
        self, centre: Sequence[float], size: float, t: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Points (n, 3) and triangles (m, 3) of the surface near a scene, to draw it.

        Parameters
        ----------
        centre : array_like of 3
            Middle of the scene.
        size : float
            Length of the part of a plane or cylinder that is drawn.
        t : float
            The time.

        Returns
        -------
        tuple of arrays, or None
            None if the surface is not known, as that of a `LevelSet`.
        """
        if self._place is None:
            return None
        place = _numbers(self._place_at(Constant(t)))
        points = self._points(place, np.asarray(centre, dtype=float), size)
        number = np.arange(points[..., 0].size).reshape(points.shape[:2])
        a, b, c, d = number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]
        return points.reshape(-1, 3), np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3)

    def _points(self, place: np.ndarray, centre: np.ndarray, size: float) -> np.ndarray:
        """Points (n, m, 3) of a grid on the surface."""
        raise NotImplementedError

    def _place_at(self, t: Expr) -> Expr:
        return evaluated(self._name, self._place, (t,), 3) if self.moves else self._place

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{', inside' if self.inside else ''}>"


class Plane(Obstacle):
    """Half-space below a plane.

    Parameters
    ----------
    point : array_like of 3, UFL vector or callable
        A point of the plane; a callable takes the time ``t`` and returns a UFL vector.
    normal : array_like of 3 or UFL vector
        Direction out of the half-space, of any length.
    inside : bool
        Turn the normal around.

    Raises
    ------
    TypeError, ValueError
        If an argument is no vector of 3 finite numbers, or the normal is zero.
    """

    def __init__(self, point: Vector, normal: Vector, *, inside: bool = False) -> None:
        super().__init__(inside, "point", point)
        self.point, self.normal = self._place, _direction("normal", normal)

    def distance(self, x: Expr, t: Expr) -> Expr:
        return self._sign * ufl.dot(_unit(self.normal), x - self._place_at(t))

    def mean_slope(self, old: Expr, new: Expr, t: Expr) -> Expr:
        return self._sign * _unit(self.normal)

    def _points(self, place, centre, size):
        normal, sides = _numbers(_unit(self.normal)), [-size / 2, size / 2]
        a, b = (np.multiply.outer(sides, side) for side in _sides(normal))
        return centre - normal * (normal @ (centre - place)) + a[:, None] + b


class _RoundBody(Obstacle):
    """Base class of the bodies of all points within a radius, `hollow`, of a point or a line."""

    hollow: Expr

    def distance(self, x: Expr, t: Expr) -> Expr:
        return self._sign * (_length(self._arm(x, t), self.hollow) - self.hollow)

    def mean_slope(self, old: Expr, new: Expr, t: Expr) -> Expr:
        return self._sign * _mean_direction(self._arm(old, t), self._arm(new, t), self.hollow)

    def _arm(self, x: Expr, t: Expr) -> Expr:
        """The vector from the nearest point of the point or line."""
        return x - self._place_at(t)


class Sphere(_RoundBody):
    """Ball, or with ``inside`` the hollow in it.

    Parameters
    ----------
    centre : array_like of 3, UFL vector or callable
        Centre; a callable takes the time ``t`` and returns a UFL vector.
    radius : float or UFL scalar
        Radius.
    inside : bool
        Whether rods are inside.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described.
    """

    def __init__(self, centre: Vector, radius: Number, *, inside: bool = False) -> None:
        super().__init__(inside, "centre", centre)
        self.centre = self._place
        self.radius = self.hollow = number("radius", radius, above=0)

    def _points(self, place, centre, size):
        angle, radius = np.linspace(-np.pi / 2, np.pi / 2, _DRAWN), float(self.radius)
        return _revolved(np.eye(3)[2], place, radius * np.cos(angle), radius * np.sin(angle))


class Cylinder(_RoundBody):
    """Round cylinder without ends, which may turn about its axis: a drum, or with ``inside`` a pipe.

    Parameters
    ----------
    point : array_like of 3, UFL vector or callable
        A point of the axis; a callable takes the time ``t`` and returns a UFL vector.
    axis : array_like of 3 or UFL vector
        Direction of the axis, of any length.
    radius : float or UFL scalar
        Radius.
    spin : float, UFL scalar or callable
        Angular velocity about the axis; a callable takes the time ``t``.
    inside : bool
        Whether rods are inside.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or the axis is zero.
    """

    def __init__(
        self,
        point: Vector,
        axis: Vector,
        radius: Number,
        spin: Number | Callable = 0.0,
        *,
        inside: bool = False,
    ) -> None:
        super().__init__(inside, "point", point)
        self.point, self.axis = self._place, _direction("axis", axis)
        self.radius = self.hollow = number("radius", radius, above=0)
        self.spin: Any = spin if is_function(spin) else number("spin", spin)
        self._spin(Time())

    def velocity(self, x: Expr, t: Expr) -> Expr:
        turn = ufl.cross(_unit(self.axis), x - self._place_at(t))
        return super().velocity(x, t) + self._spin(t) * turn

    def _arm(self, x: Expr, t: Expr) -> Expr:
        return _across(_unit(self.axis), x - self._place_at(t))

    def _spin(self, t: Expr) -> Expr:
        """The angular velocity at a time."""
        if not is_function(self.spin):
            return self.spin
        return _scalar_of("spin: the function must give a scalar", self.spin, t)

    def _points(self, place, centre, size):
        axis, radius = _numbers(_unit(self.axis)), float(self.radius)
        middle, heights = place + axis * (axis @ (centre - place)), size * np.array([-0.5, 0.5])
        return _revolved(axis, middle, np.full(2, radius), heights)


class Ring(_RoundBody):
    """Ring of round wire: an eye that a rope runs through.

    Parameters
    ----------
    centre : array_like of 3, UFL vector or callable
        Centre; a callable takes the time ``t`` and returns a UFL vector.
    axis : array_like of 3 or UFL vector
        Direction across its plane, of any length.
    radius : float or UFL scalar
        Radius of the circle in the middle of the wire.
    thickness : float or UFL scalar
        Diameter of the wire.
    inside : bool
        Whether rods are inside the wire, which is then a curved pipe.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, the axis is zero, or the wire leaves no hole.
    """

    def __init__(
        self,
        centre: Vector,
        axis: Vector,
        radius: Number,
        thickness: Number,
        *,
        inside: bool = False,
    ) -> None:
        super().__init__(inside, "centre", centre)
        self.centre, self.axis = self._place, _direction("axis", axis)
        self.radius = number("radius", radius, above=0)
        self.thickness = number("thickness", thickness, above=0)
        wire, circle = present(self.thickness), present(self.radius)
        if wire is not None and circle is not None and wire >= 2 * circle:
            raise ValueError(
                f"thickness must be below {2 * circle:g}, twice the radius of the ring, not "
                f"{wire:g}: a thicker wire leaves no hole"
            )
        self.hollow = self.thickness / 2

    def mean_slope(self, old: Expr, new: Expr, t: Expr) -> Expr:
        out, along = super().mean_slope(old, new, t)
        outwards = _mean_direction(self._flat(old, t), self._flat(new, t), self.radius)
        return out * outwards + along * _unit(self.axis)

    def _arm(self, x: Expr, t: Expr) -> Expr:
        """Components, in its plane and across, from the circle in the middle of the wire."""
        out = _length(self._flat(x, t), self.radius) - self.radius
        return ufl.as_vector([out, ufl.dot(_unit(self.axis), x - self._place_at(t))])

    def _flat(self, x: Expr, t: Expr) -> Expr:
        """The vector from the centre in the plane of the ring."""
        return _across(_unit(self.axis), x - self._place_at(t))

    def _points(self, place, centre, size):
        angle, wire = np.linspace(0, 2 * np.pi, _DRAWN), float(self.hollow)
        radii = float(self.radius) + wire * np.cos(angle)
        return _revolved(_numbers(_unit(self.axis)), place, radii, wire * np.sin(angle))


class LevelSet(Obstacle):
    """Body of points where a function of your own is negative.

    The distance is f/|∇f|, which is that to the surface to second order near it.

    Parameters
    ----------
    function : callable
        ``f(x)`` or ``f(x, t)`` of a point (3) in space and the time returns a UFL scalar, positive
        outside the body, with a slope that is not zero near the surface.
    velocity : callable, optional
        ``velocity(x, t)`` of the surface, a UFL vector of 3; friction reads its tangential part.
        Zero by default, for a surface that stands still; friction on one that moves needs it.
    inside : bool
        Turn the body inside out.

    Raises
    ------
    TypeError, ValueError
        If an argument is no function, or f gives no UFL scalar, or one without a slope in x.
    """

    is_exact = False

    def __init__(
        self, function: Callable, velocity: Callable | None = None, *, inside: bool = False
    ) -> None:
        super().__init__(inside)
        self._velocity_is_given = velocity is not None
        velocity = (lambda x, t: ufl.zero(3)) if velocity is None else velocity
        for name, value in (("function", function), ("velocity", velocity)):
            if not is_function(value):
                raise TypeError(f"{name} must be a function of x and t, not {format_value(value)}")
        self.function, self._velocity = function, velocity
        self._symbols = x, t = private(Constant(np.zeros(3))), Time()
        arguments = (x, t)[: max(len(needed_arguments(function)), 1)]
        level = _scalar_of("function must give a UFL scalar", function, *arguments)
        # Not by its arguments: a function of x and t may be that of a body at rest.
        self.moves = t in extract_firedrake_constants(level)
        self.has_velocity = self._velocity_is_given or not self.moves
        direction = slope(lambda y: replace(level, {x: y}), x)
        if isinstance(expand_derivatives(ufl.dot(direction, direction)), Zero):
            raise ValueError(
                "function must depend on x: the body is where it is negative, and its slope in x is "
                "the direction out of it"
            )
        self._distance = level / ufl.sqrt(ufl.dot(direction, direction))
        self._slope = slope(lambda y: replace(self._distance, {x: y}), x)
        self.velocity(x, t)

    def distance(self, x: Expr, t: Expr) -> Expr:
        return self._at(self._distance, x, t)

    def slope(self, x: Expr, t: Expr) -> Expr:
        return self._at(self._slope, x, t)

    def place(self):
        return None if self._velocity_is_given else self._distance

    def mean_slope(self, old: Expr, new: Expr, t: Expr) -> Expr:
        rule, change = MeanSlope(None), new - old
        slopes = [self.slope(old + c * change, t) for c in rule.nodes]
        along = [ufl.dot(slope, change) for slope in slopes]
        size, reached = ufl.dot(change, change), ufl.dot(new, new)
        ends = self.distance(old, t), self.distance(new, t)
        return rule.mean(slopes) + rule.correction(*ends, along, size, reached) * change

    def velocity(self, x: Expr, t: Expr) -> Expr:
        return evaluated("velocity", self._velocity, (x, t), 3)

    def _at(self, expression: Expr, x: Expr, t: Expr) -> Expr:
        return self._sign * replace(expression, dict(zip(self._symbols, (x, t), strict=True)))


# --- arguments -------------------------------------------------------------------------------------
def number(name: str, value, **bounds: float) -> Expr:
    """A number as a Constant, or a UFL scalar; within bounds, as the present one of a scalar."""
    found = scalar(name, value, **bounds)
    if present(found) is not None:
        scalar(name, present(found), **bounds)
    return found if isinstance(found, Expr) else Constant(float(found))


def present(value) -> float | None:
    """The present number of a Constant or a Function of a Real space; None for other expressions."""
    try:
        return float(value)
    except (TypeError, ValueError, NotImplementedError):
        return None


def _direction(name: str, value) -> Expr:
    """A vector of any length that is not zero."""
    found = checked_vector(name, value)
    if is_function(found):
        raise TypeError(f"{name} must be a vector of 3, not a function: it does not turn in time")
    if present(ufl.dot(found, found)) == 0:
        raise ValueError(f"{name} must not be zero: it is a direction")
    return found


def _unit(direction: Expr) -> Expr:
    """The unit vector of a direction, whose Constants may change."""
    return direction / ufl.sqrt(ufl.dot(direction, direction))


def _scalar_of(wanted: str, function: Callable, *arguments: Expr) -> Expr:
    """The scalar that a user's function gives."""
    with reported_as(wanted):
        found = ufl.as_ufl(function(*arguments))
    if found.ufl_shape != ():
        raise ValueError(f"{wanted}, not one of shape {found.ufl_shape}")
    return found


# --- formulas --------------------------------------------------------------------------------------
def _length(y: Expr, size: Expr) -> Expr:
    """|y|, with a slope of zero at y = 0."""
    return ufl.sqrt(ufl.dot(y, y) + _ROUNDED * size * size)


def _mean_direction(old: Expr, new: Expr, size: Expr) -> Expr:
    """A mean e of y/|y| over a step, e·(y¹ - y⁰) = |y¹| - |y⁰|."""
    return (old + new) / (_length(old, size) + _length(new, size))


def _across(axis: Expr, y: Expr) -> Expr:
    """The part of a vector that is perpendicular to an axis."""
    return y - ufl.dot(axis, y) * axis


# --- drawing ---------------------------------------------------------------------------------------
def _numbers(vector: Expr) -> np.ndarray:
    return np.array([float(vector[k]) for k in range(3)])


def _sides(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors perpendicular to one."""
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def _revolved(
    axis: np.ndarray, middle: np.ndarray, radii: np.ndarray, heights: np.ndarray
) -> np.ndarray:
    """Points of a curve that turns about an axis."""
    (a, b), angle = _sides(axis), np.linspace(0, 2 * np.pi, _DRAWN)
    out = np.outer(np.cos(angle), a) + np.outer(np.sin(angle), b)
    return middle + radii[:, None, None] * out + heights[:, None, None] * axis
