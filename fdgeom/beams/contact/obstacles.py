"""Obstacles that rods touch, each by the distance from its surface."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import ufl
from firedrake import Constant
from ufl.classes import Expr

from fdgeom.beams.rod.loads import Vector, checked_vector
from fdgeom.beams.rod.variation import rate
from fdgeom.clock import Time
from fdgeom.mean_slope import MeanSlope
from fdgeom.messages import is_function, reported_as
from fdgeom.validation import evaluated, instance, scalar

Number = float | Expr
#: Of the squared radius of a body: added to squared lengths, so that a root has a slope at zero.
_ROUNDED = 1e-18
# Points along a side of a drawn surface.
_DRAWN = 33


class Obstacle:
    """Base class of obstacles: a distance from the surface, positive outside, and its slope."""

    #: Whether the slope of the distance has length one everywhere.
    is_exact = True
    #: Whether it changes its place or shape in time (a drum that turns does not).
    moves = False
    #: Radius of the hollow of a body that is turned inside out, if it is round.
    hollow: Expr | None = None

    def __init__(self, inside: bool, name: str = "", place: Vector | None = None) -> None:
        self.inside = instance("inside", inside, bool, "True or False")
        self._sign = -1.0 if inside else 1.0
        self._place = None
        if name:
            self._place = checked_vector(name, place)
            self.moves = is_function(self._place)
            _at(self._place, Time(), name)

    def distance(self, x: Expr, t: Expr) -> Expr:
        """Distance of a point ``x`` (3) from the surface at the time ``t``."""
        raise NotImplementedError

    def slope(self, x: Expr, t: Expr) -> Expr:
        """Derivative of the distance by ``x`` (3): the normal, into the free space."""
        raise NotImplementedError

    def mean_slope(self, old: Expr, new: Expr, t: Expr) -> Expr:
        """A mean s̄ (3) of the slope over a step: s̄·(x¹ - x⁰) is the change of the distance."""
        rule, change = MeanSlope(None), new - old
        slopes = [self.slope(old + c * change, t) for c in rule.nodes]
        along = [ufl.dot(slope, change) for slope in slopes]
        size, reached = ufl.dot(change, change), ufl.dot(new, new)
        ends = self.distance(old, t), self.distance(new, t)
        return rule.mean(slopes) + rule.correction(*ends, along, size, reached) * change

    def velocity(self, x: Expr, t: Expr) -> Expr:
        """Velocity (3) of the surface near ``x``."""
        if not is_function(self._place):
            return ufl.zero(3)

        def component(k: int) -> Expr:
            return rate(lambda s: _at(self._place, t + s)[k])

        return ufl.as_vector([component(k) for k in range(3)])

    def _from_place(self, x: Expr, t: Expr) -> Expr:
        """The vector from the place of the body to a point."""
        return x - _at(self._place, t)

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
        place = _numbers(_at(self._place, Constant(t)))
        return _grid(self._points(place, np.asarray(centre, dtype=float), size))

    def _points(self, place: np.ndarray, centre: np.ndarray, size: float) -> np.ndarray:
        """Points (n, m, 3) of a grid on the surface."""
        raise NotImplementedError

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
        return self._sign * ufl.dot(self.normal, self._from_place(x, t))

    def slope(self, x: Expr, t: Expr) -> Expr:
        return self._sign * self.normal

    def mean_slope(self, old: Expr, new: Expr, t: Expr) -> Expr:
        return self.slope(new, t)

    def _points(self, place, centre, size):
        normal = _numbers(self.normal)
        middle, sides = centre - normal * (normal @ (centre - place)), [-size / 2, size / 2]
        a, b = (np.multiply.outer(sides, side) for side in _across(normal))
        return middle + a[:, None] + b


class _RoundBody(Obstacle):
    """Base class of the bodies of all points within a radius, `hollow`, of a point or a line."""

    hollow: Expr

    def distance(self, x: Expr, t: Expr) -> Expr:
        return self._sign * (_length(self._arm(x, t), self.hollow) - self.hollow)

    def slope(self, x: Expr, t: Expr) -> Expr:
        arm = self._arm(x, t)
        return self._sign / _length(arm, self.hollow) * arm

    def mean_slope(self, old: Expr, new: Expr, t: Expr) -> Expr:
        return self._sign * _mean_direction(self._arm(old, t), self._arm(new, t), self.hollow)

    def _arm(self, x: Expr, t: Expr) -> Expr:
        """The vector from the nearest point of the point or line."""
        return self._from_place(x, t)


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
        return _revolved(place, np.eye(3)[2], radius * np.cos(angle), radius * np.sin(angle))


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
        turn = ufl.cross(self.axis, self._from_place(x, t))
        return super().velocity(x, t) + self._spin(t) * turn

    def _arm(self, x: Expr, t: Expr) -> Expr:
        y = self._from_place(x, t)
        return y - ufl.dot(self.axis, y) * self.axis

    def _spin(self, t: Expr) -> Expr:
        """The angular velocity at a time."""
        if not is_function(self.spin):
            return self.spin
        with reported_as("spin: the function must give a UFL scalar"):
            found = ufl.as_ufl(self.spin(t))
        if found.ufl_shape != ():
            raise ValueError(
                f"spin: the function must give a scalar, not one of shape {found.ufl_shape}"
            )
        return found

    def _points(self, place, centre, size):
        axis, radius = _numbers(self.axis), float(self.radius)
        middle, ends = place + axis * (axis @ (centre - place)), np.array([-0.5, 0.5])
        return _revolved(middle, axis, np.array([radius, radius]), size * ends)


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

    def slope(self, x: Expr, t: Expr) -> Expr:
        flat, out, along = self._parts(x, t)
        arm = out / _length(flat, self.radius) * flat + along * self.axis
        return self._sign / _length(self._arm(x, t), self.hollow) * arm

    def mean_slope(self, old: Expr, new: Expr, t: Expr) -> Expr:
        (flat0, out0, along0), (flat1, out1, along1) = (self._parts(x, t) for x in (old, new))
        arm = (out0 + out1) * _mean_direction(flat0, flat1, self.radius)
        arm += (along0 + along1) * self.axis
        reach = sum(_length(self._arm(x, t), self.hollow) for x in (old, new))
        return self._sign / reach * arm

    def _arm(self, x: Expr, t: Expr) -> Expr:
        """Components, in its plane and across, from the circle in the middle of the wire."""
        return ufl.as_vector(self._parts(x, t)[1:])

    def _parts(self, x: Expr, t: Expr) -> tuple[Expr, Expr, Expr]:
        """The vector in the plane of the ring, its length beyond the radius, and the height."""
        y = self._from_place(x, t)
        along = ufl.dot(self.axis, y)
        flat = y - along * self.axis
        return flat, _length(flat, self.radius) - self.radius, along

    def _points(self, place, centre, size):
        angle, wire = np.linspace(0, 2 * np.pi, _DRAWN), float(self.thickness) / 2
        radii = float(self.radius) + wire * np.cos(angle)
        return _revolved(place, _numbers(self.axis), radii, wire * np.sin(angle))


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
    """A unit vector."""
    found = checked_vector(name, value)
    if is_function(found):
        raise TypeError(f"{name} must be a vector of 3, not a function: it does not turn in time")
    if isinstance(found, Constant):
        numbers = np.array(found.values())
        if not np.linalg.norm(numbers) > 0:
            raise ValueError(f"{name} must not be zero: it is a direction")
        return Constant(numbers / np.linalg.norm(numbers))
    return found / ufl.sqrt(ufl.dot(found, found))


def _at(place, t: Expr, name: str = "place") -> Expr:
    """A point at a time."""
    return evaluated(name, place, (t,), 3) if is_function(place) else place


# --- formulas --------------------------------------------------------------------------------------
def _length(y: Expr, size: Expr) -> Expr:
    """|y|, with a slope of zero at y = 0."""
    return ufl.sqrt(ufl.dot(y, y) + _ROUNDED * size * size)


def _mean_direction(old: Expr, new: Expr, size: Expr) -> Expr:
    """A mean e of y/|y| over a step, e·(y¹ - y⁰) = |y¹| - |y⁰|."""
    return (old + new) / (_length(old, size) + _length(new, size))


# --- drawing ---------------------------------------------------------------------------------------
def _numbers(vector: Expr) -> np.ndarray:
    return np.array([float(vector[k]) for k in range(3)])


def _across(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors perpendicular to one."""
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def _revolved(
    middle: np.ndarray, axis: np.ndarray, radii: np.ndarray, heights: np.ndarray
) -> np.ndarray:
    """Points of a profile that is turned about an axis."""
    (a, b), angle = _across(axis), np.linspace(0, 2 * np.pi, _DRAWN)
    out = np.outer(np.cos(angle), a) + np.outer(np.sin(angle), b)
    return middle + radii[:, None, None] * out + heights[:, None, None] * axis


def _grid(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, m, 3) of a grid as a list, with two triangles in each of its cells."""
    number = np.arange(points[..., 0].size).reshape(points.shape[:2])
    a, b, c, d = number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]
    triangles = np.stack([a, b, c, a, c, d], axis=-1)
    return points.reshape(-1, 3), triangles.reshape(-1, 3)
