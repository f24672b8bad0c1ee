"""Obstacles given by a level set."""

import inspect
from collections.abc import Callable

import numpy as np
import ufl
from firedrake import Constant
from ufl.algorithms import expand_derivatives, replace
from ufl.classes import Expr, Zero

from fdgeom.beams.contact.obstacles import Obstacle
from fdgeom.beams.rod.variation import rate
from fdgeom.clock import Time
from fdgeom.messages import format_value, is_function, reported_as
from fdgeom.solvers.derived import private
from fdgeom.validation import evaluated


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
        super().__init__(inside)
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
        return self._at(self._distance, x, t)

    def slope(self, x: Expr, t: Expr) -> Expr:
        return self._at(self._slope, x, t)

    def velocity(self, x: Expr, t: Expr) -> Expr:
        if self._velocity is None:
            return super().velocity(x, t)
        return evaluated("velocity", self._velocity, (x, t), 3)

    def _at(self, expression: Expr, x: Expr, t: Expr) -> Expr:
        return self._sign * replace(expression, dict(zip(self._symbols, (x, t), strict=True)))


def _slope(value: Expr, x: Constant) -> Expr:
    """The derivative by a symbol."""

    def along(k: int) -> Expr:
        axis = ufl.as_vector([float(i == k) for i in range(3)])
        return rate(lambda s: replace(value, {x: x + s * axis}))

    return ufl.as_vector([along(k) for k in range(3)])
