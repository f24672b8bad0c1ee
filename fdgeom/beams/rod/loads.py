"""Loads on rods: gravity, forces and moments, dead or follower, at an end or along the rod."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
import ufl
from firedrake import Constant
from ufl.core.expr import Expr

from fdgeom.beams.rod.user_vectors import evaluated, number_of_arguments
from fdgeom.lie import quaternion
from fdgeom.lie.operands import halves
from fdgeom.real import real_array
from fdgeom.words import shown

if TYPE_CHECKING:
    from fdgeom.beams.rod.rod import Rod

#: Numbers, a UFL vector of 3, or a function of time, or of arc length and time, that gives one.
Vector = Sequence[float] | Expr | Callable
FRAMES = ("space", "body")


class BodyLoad(ABC):
    """Something that does work on a rod."""

    @abstractmethod
    def work(self, rod: Rod, configuration, virtual: Expr) -> Expr:
        """Virtual work per length at a node, linear in the virtual displacement."""

    def potential(self, rod: Rod, configuration) -> Expr:
        """Potential per length at a node: zero for moments and for loads that follow the section.

        That of a load which changes in time is the one at the present time.
        """
        return ufl.as_ufl(0.0)

    @abstractmethod
    def check(self, rod: Rod) -> None:
        """Raise ``ValueError`` if the rod has no such place, or a function gives no vector of 3."""


class Load(BodyLoad):
    """A force and a moment on a rod.

    Parameters
    ----------
    force, moment : array_like of 3, UFL expression or callable, optional
        The value: of a load at a point the force and the moment, of one along the rod those per
        length (at rest). An expression may contain the mesh coordinate and Constants that change; a
        callable takes the time ``t``, or the arc length and the time ``s, t``, and gives a vector.
    at : str or float, optional
        "left" or "right": that end; a number: the node at that arc length; all along the rod if not
        given.
    frame : {"space", "body"}
        "space": a dead load, its components in space stay as they are. "body": a follower load, its
        components are along the section's axes and turn with it.

    Raises
    ------
    TypeError, ValueError
        If neither force nor moment is given, one is no vector of 3 finite numbers, or the place or
        the frame is unknown. Whether there is a node at an arc length is checked by the beam.
    """

    def __init__(
        self,
        *,
        force: Vector | None = None,
        moment: Vector | None = None,
        at: str | float | None = None,
        frame: str = "space",
    ) -> None:
        if force is None and moment is None:
            raise ValueError("Load: give force, moment, or both")
        if frame not in FRAMES:
            raise ValueError(
                f"frame must be 'space' (a dead load) or 'body' (a follower load), not {frame!r}"
            )
        if at is not None:
            check_at(at)
        self.force, self.moment = _checked("force", force), _checked("moment", moment)
        self.at, self.frame = at, frame

    def work(self, rod: Rod, configuration, virtual: Expr) -> Expr:
        _, orientation = configuration
        rotation, translation = halves(virtual, "virtual")
        density = ufl.as_ufl(0.0)
        if self.force is not None:
            force = vector("force", self.force, rod)
            if self.frame == "body":
                force = quaternion.rotate(orientation, force)
            density += ufl.dot(force, translation)
        if self.moment is not None:
            moment = vector("moment", self.moment, rod)
            if self.frame == "space":
                moment = quaternion.rotate_inverse(orientation, moment)
            density += ufl.dot(moment, rotation)
        return rod.place(self.at) * density

    def potential(self, rod: Rod, configuration) -> Expr:
        if self.force is None or self.frame == "body":
            return super().potential(rod, configuration)
        force = vector("force", self.force, rod)
        return -rod.place(self.at) * ufl.dot(force, configuration[0])

    def check(self, rod: Rod) -> None:
        rod.place(self.at)
        for name in ("force", "moment"):
            if getattr(self, name) is not None:
                vector(name, getattr(self, name), rod)

    def __repr__(self) -> str:
        what = " and ".join(n for n in ("force", "moment") if getattr(self, n) is not None)
        where = "along the rod" if self.at is None else f"at {self.at!r}"
        return f"<{'dead' if self.frame == 'space' else 'follower'} {what} {where}>"


class Gravity(BodyLoad):
    """Weight: a field of gravity acts on the inertia of the sections.

    It has a potential where that inertia is one of masses, [[J, mĉ], [-mĉ, mI]] with the mass m and
    the place c of its centre. Any other symmetric inertia falls as it should, but then no method
    keeps an energy with gravity.

    Parameters
    ----------
    acceleration : array_like of 3, UFL expression or callable
        Acceleration of free fall in the space frame; expressions and callables as for `Load`.
    """

    def __init__(self, acceleration: Vector) -> None:
        self.acceleration = _checked("acceleration", acceleration)

    def work(self, rod: Rod, configuration, virtual: Expr) -> Expr:
        field = vector("acceleration", self.acceleration, rod)
        return rod.inertia.weight(configuration[1], field, virtual)

    def potential(self, rod: Rod, configuration) -> Expr:
        field = vector("acceleration", self.acceleration, rod)
        return -ufl.dot(field, rod.inertia.first_moment(configuration))

    def check(self, rod: Rod) -> None:
        vector("acceleration", self.acceleration, rod)

    def __repr__(self) -> str:
        return "<gravity>"


def check_at(at) -> None:
    """Raise ``ValueError`` unless it is an end or an arc length."""
    if isinstance(at, str) and at in ("left", "right"):
        return
    if (
        isinstance(at, str)
        or not isinstance(at, Real)
        or isinstance(at, bool)
        or not np.isfinite(at)
    ):
        raise ValueError(
            f"at must be 'left', 'right', the arc length of a node, or None (all along), not {shown(at)}"
        )


def check_loads(loads) -> tuple[BodyLoad, ...]:
    """A tuple of loads from one or several; ``TypeError`` for anything else."""
    several = tuple(loads) if isinstance(loads, list | tuple) else (loads,)
    for load in several:
        if not isinstance(load, BodyLoad):
            raise TypeError(
                f"loads must be fdgeom.Load or fdgeom.Gravity, or several, not {shown(load)}"
            )
    return several


def vector(name: str, value: Vector, rod: Rod) -> Expr:
    """The UFL vector of a load's value on a rod."""
    if callable(value) and not isinstance(value, Expr):
        arguments = (rod.arc, rod.time)[2 - number_of_arguments(value) :]
        return evaluated(name, value, arguments, 3)
    return value


def _checked(name: str, value):
    if value is None or (callable(value) and not isinstance(value, Expr)):
        if value is not None and number_of_arguments(value) not in (1, 2):
            raise ValueError(f"{name}: the function must take (t) or (s, t)")
        return value
    if isinstance(value, Expr):
        if value.ufl_shape != (3,):
            raise ValueError(f"{name} must be a vector of 3, not of shape {value.ufl_shape}")
        return value
    if isinstance(value, list | tuple) and any(isinstance(v, Expr) for v in value):
        return _checked(name, ufl.as_vector(list(value)))
    try:
        numbers = real_array(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a vector of 3 numbers, not {value!r}") from None
    if numbers.shape != (3,) or not np.all(np.isfinite(numbers)):
        raise ValueError(f"{name} must be a vector of 3 finite numbers, not {value!r}")
    return Constant(numbers)
