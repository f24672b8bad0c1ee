"""Obstacles that rods touch, each by the distance from its surface."""

import inspect
from collections.abc import Callable, Sequence

import numpy as np
import ufl
from firedrake import Constant
from ufl.algorithms import expand_derivatives, replace
from ufl.classes import Expr, Zero

from fdgeom.beams.rod.loads import Vector, checked_vector
from fdgeom.beams.rod.variation import rate
from fdgeom.clock import Time
from fdgeom.mean_slope import MeanSlope
from fdgeom.messages import format_value, is_function, reported_as
from fdgeom.solvers.derived import private
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

    def __init__(self, *, inside: bool = False) -> None:
        self.inside = instance("inside", inside, bool, "True or False")
        self._sign = -1.0 if inside else 1.0

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
        return ufl.zero(3)

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
        return None

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
        super().__init__(inside=inside)
        self.point, self.normal = _place("point", point), _direction("normal", normal)
        self.moves = is_function(self.point)

    def distance(self, x: Expr, t: Expr) -> Expr:
        return self._sign * ufl.dot(self.normal, x - _at(self.point, t))

    def slope(self, x: Expr, t: Expr) -> Expr:
        return self._sign * self.normal

    def mean_slope(self, old: Expr, new: Expr, t: Expr) -> Expr:
        return self.slope(new, t)

    def velocity(self, x: Expr, t: Expr) -> Expr:
        return _speed(self.point, t)

    def surface(self, centre, size, t=0.0):
        point, normal = _numbers(_at(self.point, Constant(t))), _numbers(self.normal)
        middle = np.asarray(centre, dtype=float)
        middle = middle - normal * (normal @ (middle - point))
        a, b = _across(normal)
        corners = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
        points = np.array([middle + size / 2 * (u * a + v * b) for u, v in corners])
        return points, np.array([[0, 1, 2], [0, 2, 3]])


class Sphere(Obstacle):
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
        super().__init__(inside=inside)
        self.centre, self.radius = _place("centre", centre), positive("radius", radius)
        self.hollow = self.radius
        self.moves = is_function(self.centre)

    def distance(self, x: Expr, t: Expr) -> Expr:
        return self._sign * (_length(x - _at(self.centre, t), self.radius) - self.radius)

    def slope(self, x: Expr, t: Expr) -> Expr:
        y = x - _at(self.centre, t)
        return self._sign / _length(y, self.radius) * y

    def mean_slope(self, old: Expr, new: Expr, t: Expr) -> Expr:
        centre = _at(self.centre, t)
        return self._sign * _mean_direction(old - centre, new - centre, self.radius)

    def velocity(self, x: Expr, t: Expr) -> Expr:
        return _speed(self.centre, t)

    def surface(self, centre, size, t=0.0):
        middle, R = _numbers(_at(self.centre, Constant(t))), float(self.radius)
        u, v = np.meshgrid(*(np.linspace(0, k * np.pi, _DRAWN) for k in (2, 1)))
        points = [np.sin(v) * np.cos(u), np.sin(v) * np.sin(u), np.cos(v)]
        return _grid(middle + R * np.stack(points, axis=-1))


class Cylinder(Obstacle):
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
        super().__init__(inside=inside)
        self.point, self.axis = _place("point", point), _direction("axis", axis)
        self.radius = self.hollow = positive("radius", radius)
        self.spin = spin
        if not is_function(spin):
            self.spin = constant(scalar("spin", spin))
        else:
            _turning(spin, Time())
        self.moves = is_function(self.point)

    def distance(self, x: Expr, t: Expr) -> Expr:
        return self._sign * (_length(self._arm(x, t), self.radius) - self.radius)

    def slope(self, x: Expr, t: Expr) -> Expr:
        arm = self._arm(x, t)
        return self._sign / _length(arm, self.radius) * arm

    def mean_slope(self, old: Expr, new: Expr, t: Expr) -> Expr:
        return self._sign * _mean_direction(self._arm(old, t), self._arm(new, t), self.radius)

    def velocity(self, x: Expr, t: Expr) -> Expr:
        spin = _turning(self.spin, t) if is_function(self.spin) else self.spin
        return _speed(self.point, t) + spin * ufl.cross(self.axis, x - _at(self.point, t))

    def _arm(self, x: Expr, t: Expr) -> Expr:
        y = x - _at(self.point, t)
        return y - ufl.dot(self.axis, y) * self.axis

    def surface(self, centre, size, t=0.0):
        point, axis = _numbers(_at(self.point, Constant(t))), _numbers(self.axis)
        middle = point + axis * (axis @ (np.asarray(centre, dtype=float) - point))
        a, b = _across(axis)
        u, v = np.meshgrid(np.linspace(0, 2 * np.pi, _DRAWN), [-size / 2, size / 2])
        ring = np.cos(u)[..., None] * a + np.sin(u)[..., None] * b
        return _grid(middle + float(self.radius) * ring + v[..., None] * axis)


class Ring(Obstacle):
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
        super().__init__(inside=inside)
        self.centre, self.axis = _place("centre", centre), _direction("axis", axis)
        self.radius, self.thickness = (
            positive(name, value) for name, value in (("radius", radius), ("thickness", thickness))
        )
        sizes = [present(v) for v in (self.thickness, self.radius)]
        if None not in sizes and sizes[0] >= 2 * sizes[1]:
            raise ValueError(
                f"thickness must be below {2 * sizes[1]:g}, twice the radius of the ring, not "
                f"{sizes[0]:g}: a thicker wire leaves no hole"
            )
        self.hollow = self.thickness / 2
        self.moves = is_function(self.centre)

    def distance(self, x: Expr, t: Expr) -> Expr:
        _, out, along = self._parts(x, t)
        return self._sign * (self._reach(out, along) - self.thickness / 2)

    def slope(self, x: Expr, t: Expr) -> Expr:
        flat, out, along = self._parts(x, t)
        arm = out / _length(flat, self.radius) * flat + along * self.axis
        return self._sign / self._reach(out, along) * arm

    def mean_slope(self, old: Expr, new: Expr, t: Expr) -> Expr:
        (flat0, out0, along0), (flat1, out1, along1) = (self._parts(x, t) for x in (old, new))
        arm = (out0 + out1) * _mean_direction(flat0, flat1, self.radius)
        arm += (along0 + along1) * self.axis
        return self._sign / (self._reach(out0, along0) + self._reach(out1, along1)) * arm

    def velocity(self, x: Expr, t: Expr) -> Expr:
        return _speed(self.centre, t)

    def _parts(self, x: Expr, t: Expr) -> tuple[Expr, Expr, Expr]:
        """The vector to a point in the plane of the ring, its length beyond the radius, and the
        distance from the plane."""
        y = x - _at(self.centre, t)
        along = ufl.dot(self.axis, y)
        flat = y - along * self.axis
        return flat, _length(flat, self.radius) - self.radius, along

    def _reach(self, out: Expr, along: Expr) -> Expr:
        """The distance from the circle in the middle of the wire."""
        return _length(ufl.as_vector([out, along]), self.thickness)

    def surface(self, centre, size, t=0.0):
        middle, axis = _numbers(_at(self.centre, Constant(t))), _numbers(self.axis)
        R, r = float(self.radius), float(self.thickness) / 2
        a, b = _across(axis)
        u, v = np.meshgrid(*[np.linspace(0, 2 * np.pi, _DRAWN)] * 2)
        out = np.cos(u)[..., None] * a + np.sin(u)[..., None] * b
        ring = (R + r * np.cos(v))[..., None] * out + r * np.sin(v)[..., None] * axis
        return _grid(middle + ring)


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
        Zero by default.
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
        super().__init__(inside=inside)
        for name, value in (("function", function), ("velocity", velocity)):
            if value is not None and not is_function(value):
                raise TypeError(f"{name} must be a function of x and t, not {format_value(value)}")
        self.function, self._velocity = function, velocity
        self.moves = len(inspect.signature(function).parameters) > 1
        x, t = private(Constant(np.zeros(3))), Time()
        self._symbols, arguments = (x, t), (x, t) if self.moves else (x,)
        with reported_as("function: it must give a UFL scalar"):
            value = ufl.as_ufl(function(*arguments))
        if value.ufl_shape != ():
            raise ValueError(f"function must give a UFL scalar, not one of shape {value.ufl_shape}")
        slope = _slope(value, x)
        if isinstance(expand_derivatives(ufl.dot(slope, slope)), Zero):
            raise ValueError(
                "function must depend on x: the body is where it is negative, and its slope in x is "
                "the direction out of it"
            )
        self._distance = value / ufl.sqrt(ufl.dot(slope, slope))
        self._slope = _slope(self._distance, x)
        if velocity is not None:
            evaluated("velocity", velocity, (x, t), 3)

    def distance(self, x: Expr, t: Expr) -> Expr:
        return self._sign * self._there(self._distance, x, t)

    def slope(self, x: Expr, t: Expr) -> Expr:
        return self._sign * self._there(self._slope, x, t)

    def velocity(self, x: Expr, t: Expr) -> Expr:
        if self._velocity is None:
            return super().velocity(x, t)
        return evaluated("velocity", self._velocity, (x, t), 3)

    def _there(self, expression: Expr, x: Expr, t: Expr) -> Expr:
        return replace(expression, dict(zip(self._symbols, (x, t), strict=True)))


# --- arguments -------------------------------------------------------------------------------------
def positive(name: str, value) -> Expr:
    """A positive number as a Constant, or a UFL scalar, whose present number is checked too."""
    found = scalar(name, value, above=0)
    number = present(found)
    if number is not None:
        scalar(name, number, above=0)
    return constant(found)


def constant(value) -> Expr:
    """A UFL scalar, of a number too."""
    return value if isinstance(value, Expr) else Constant(float(value))


def present(value) -> float | None:
    """The present number of a Constant or a Function of a Real space; None for other expressions."""
    try:
        return float(value)
    except (TypeError, ValueError, NotImplementedError):
        return None


def _place(name: str, value):
    """A point: a UFL vector, or a function of time that gives one."""
    found = checked_vector(name, value)
    if is_function(found):
        evaluated(name, found, (Time(),), 3)
    return found


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


def _at(place, t: Expr) -> Expr:
    """A point at a time."""
    return ufl.as_ufl(_vector(place(t))) if is_function(place) else place


def _vector(value) -> Expr:
    return ufl.as_vector(list(value)) if isinstance(value, list | tuple) else value


def _speed(place, t: Expr) -> Expr:
    """The velocity of a point."""
    if not is_function(place):
        return ufl.zero(3)
    return ufl.as_vector([rate(lambda s, k=k: _at(place, t + s)[k]) for k in range(3)])


def _turning(spin: Callable, t: Expr) -> Expr:
    """The angular velocity at a time."""
    with reported_as("spin: the function must give a UFL scalar"):
        found = ufl.as_ufl(spin(t))
    if found.ufl_shape != ():
        raise ValueError(
            f"spin: the function must give a scalar, not one of shape {found.ufl_shape}"
        )
    return found


# --- formulas --------------------------------------------------------------------------------------
def _length(y: Expr, size: Expr) -> Expr:
    """|y|, with a slope of zero at y = 0."""
    return ufl.sqrt(ufl.dot(y, y) + _ROUNDED * size * size)


def _mean_direction(old: Expr, new: Expr, size: Expr) -> Expr:
    """A mean e of y/|y| over a step, e·(y¹ - y⁰) = |y¹| - |y⁰|."""
    return (old + new) / (_length(old, size) + _length(new, size))


def _slope(value: Expr, x: Constant) -> Expr:
    """The derivative by a symbol."""

    def along(k: int) -> Expr:
        axis = ufl.as_vector([float(i == k) for i in range(3)])
        return rate(lambda s: replace(value, {x: x + s * axis}))

    return ufl.as_vector([along(k) for k in range(3)])


# --- drawing ---------------------------------------------------------------------------------------
def _numbers(vector: Expr) -> np.ndarray:
    return np.array([float(vector[k]) for k in range(3)])


def _across(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors perpendicular to one."""
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def _grid(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, m, 3) of a grid as a list, with two triangles in each of its cells."""
    n, m = points.shape[:2]
    number = np.arange(n * m).reshape(n, m)
    a, b, c, d = (
        part.ravel()
        for part in (number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1])
    )
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return points.reshape(-1, 3), triangles
