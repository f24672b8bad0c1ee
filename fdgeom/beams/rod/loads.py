"""Loads on rods: gravity, forces and moments, dead or follower, at an end or along the rod."""

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import ufl
from firedrake import Constant
from ufl.core.expr import Expr

from fdgeom.beams.rod.body_load import BodyLoad, NodalStep, PartOfRod
from fdgeom.beams.rod.variation import Pose
from fdgeom.clock import Time
from fdgeom.lie import halves, quaternion
from fdgeom.messages import format_value, is_function
from fdgeom.taping import refuse_recorded
from fdgeom.validation import array, evaluated, place_and_time

#: Numbers, a UFL vector of 3, or a function of time, or of arc length and time, that gives one.
Vector = Sequence[float] | Expr | Callable
FRAMES = ("space", "body")


class Load(BodyLoad):
    """A force and a moment on a rod.

    Parameters
    ----------
    force, moment : array_like of 3, UFL expression or callable, optional
        Force and moment at a point, or per length (at rest) along the rod. An expression may
        contain the mesh coordinate and Constants that change; a callable takes the time ``t``, the
        arc length ``s``, or both, ``s, t`` (a single argument must have one of these names), and
        returns a UFL vector.
    at : str or float, optional
        "left" or "right" for an end, a number for the node at that arc length; all along the rod by
        default.
    frame : {"space", "body"}
        "space": a dead load with constant components in space. "body": a follower load, whose
        components are along the section's axes and turn with it.

    Raises
    ------
    TypeError, ValueError
        If neither force nor moment is given, one is not a vector of 3 finite numbers, or the place or
        the frame is unknown. The beam checks whether it has a node at an arc length.
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
                f"frame must be 'space' (a dead load) or 'body' (a follower load), not {format_value(frame)}"
            )
        if at is not None:
            check_at(at)
        self.force, self.moment = checked_vector("force", force), checked_vector("moment", moment)
        self.at, self.frame = at, frame

    def work(self, rod: PartOfRod, g: Pose, v: Expr, t: Expr, virtual: Expr) -> Expr:
        _, orientation = g
        rotation, translation = halves(virtual, "virtual")
        density = ufl.as_ufl(0.0)
        if self.force is not None:
            force = vector("force", self.force, rod, t)
            if self.frame == "body":
                force = quaternion.rotate(orientation, force)
            density += ufl.dot(force, translation)
        if self.moment is not None:
            moment = vector("moment", self.moment, rod, t)
            if self.frame == "space":
                moment = quaternion.rotate_inverse(orientation, moment)
            density += ufl.dot(moment, rotation)
        return rod.place(self.at) * density

    def potential(self, rod: PartOfRod, g: Pose, t: Expr) -> Expr | None:
        # Moments and what follows the section have none.
        if self.force is None or self.frame == "body":
            return None
        force = vector("force", self.force, rod, t)
        return -rod.place(self.at) * ufl.dot(force, g[0])

    def mean_work(self, rod: PartOfRod, step: NodalStep) -> Expr:
        """Work of the load in the middle of the step, exact for the potential of a dead force."""
        virtual = step.virtual if self.frame == "space" else step.following
        return self.work(rod, step.middle, step.velocity, step.time, virtual)

    def check(self, rod: PartOfRod) -> None:
        rod.place(self.at)
        for name in ("force", "moment"):
            if getattr(self, name) is not None:
                vector(name, getattr(self, name), rod, Time())

    def __repr__(self) -> str:
        what = " and ".join(n for n in ("force", "moment") if getattr(self, n) is not None)
        where = "along the rod" if self.at is None else f"at {self.at!r}"
        return f"<{'dead' if self.frame == 'space' else 'follower'} {what} {where}>"


class Gravity(BodyLoad):
    """Weight: a field of gravity acts on the inertia of the sections.

    It has a potential if that inertia is one of masses, [[J, mĉ], [-mĉ, mI]] with the mass m and
    the place c of its centre. With any other symmetric inertia the motion is right, but no method
    conserves an energy with gravity.

    Parameters
    ----------
    acceleration : array_like of 3, UFL expression or callable
        Acceleration of free fall in the space frame; expressions and callables as for `Load`.
    """

    def __init__(self, acceleration: Vector) -> None:
        self.acceleration = checked_vector("acceleration", acceleration)

    def work(self, rod: PartOfRod, g: Pose, v: Expr, t: Expr, virtual: Expr) -> Expr:
        return rod.inertia.weight(g[1], self._field(rod, t), virtual)

    def potential(self, rod: PartOfRod, g: Pose, t: Expr) -> Expr:
        return -ufl.dot(self._field(rod, t), rod.inertia.first_moment(g))

    def mean_work(self, rod: PartOfRod, step: NodalStep) -> Expr:
        """The change of the potential, by the means of the directors."""
        return step.weight(rod.inertia, self._field(rod, step.time))

    def check(self, rod: PartOfRod) -> None:
        self._field(rod, Time())

    def _field(self, rod: PartOfRod, t: Expr) -> Expr:
        return vector("acceleration", self.acceleration, rod, t)

    def __repr__(self) -> str:
        return "<gravity>"


def check_at(at) -> None:
    """Raise ``ValueError`` unless a place is an end or an arc length."""
    number = isinstance(at, Real) and not isinstance(at, bool) and math.isfinite(at)
    if not number and not (isinstance(at, str) and at in ("left", "right")):
        raise ValueError(
            f"at must be 'left', 'right' or the arc length of a node, not {format_value(at)}"
        )


def vector(name: str, value: Any, rod: PartOfRod, t: Expr) -> Expr:
    """The UFL vector of a load's value on a rod at a time."""
    if is_function(value):
        return evaluated(name, value, place_and_time(name, value, rod.arc, t), 3)
    return value


def checked_vector(name: str, value):
    if value is None or is_function(value):
        if value is not None:
            place_and_time(name, value, None, None)
        return value
    if isinstance(value, Expr):
        if value.ufl_shape != (3,):
            raise ValueError(f"{name} must be a vector of 3, not of shape {value.ufl_shape}")
        return value
    if isinstance(value, list | tuple) and any(isinstance(v, Expr) for v in value):
        refuse_recorded(name, [v for v in value if not isinstance(v, Expr)])
        return checked_vector(name, ufl.as_vector(list(value)))
    return Constant(array(name, value, (3,)))
