"""Loads on rods: the base class, gravity, forces and moments, and loads applied to a part of a rod."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import ufl
from firedrake import Constant
from ufl.algorithms import expand_derivatives
from ufl.classes import Expr, Form, Zero
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom.beams.rod.inertia import Inertia
from fdgeom.beams.rod.variation import Pose, displaced, rate
from fdgeom.beams.sampling import ConditionsByNode
from fdgeom.clock import Time
from fdgeom.lie import halves, join, quaternion
from fdgeom.mean_slope import mean_slope_of
from fdgeom.messages import format_value, is_function, reported_as
from fdgeom.operations.dependent import private
from fdgeom.validation import Fixed, array, evaluated, instances, place_and_time

#: Numbers, a UFL vector of 3, or a function of time, or of arc length and time, that gives one.
Vector = Sequence[float] | Expr | Callable
FRAMES = ("space", "body")


@dataclass(frozen=True)
class PartOfRod:
    """Data of the rod that a load acts on; in an assembly, of one of the beams.

    Attributes
    ----------
    place : callable
        ``place(at)``: 1 for ``at=None``, all along the rod; for "left", "right" or the arc length
        of a node, the factor that turns a force there into a force per length.
    arc : UFL expression
        Arc length at rest.
    inertia : Inertia
        Inertia per length: of the section, and of bodies at the nodes.
    """

    place: Callable[[str | float | None], Expr]
    arc: Expr
    inertia: Inertia
    #: Radius of the section, if it is round.
    radius: float | Expr | None = None


@dataclass(frozen=True)
class NodalStep:
    """A step of the nodes in time, for loads that act over the step.

    Attributes
    ----------
    old, new, middle : pair of UFL expressions
        Poses at its start and end; mean position and the orientation halfway.
    velocity : UFL expression of 6
        Mean over the step (angular in the body frame, linear in space), from Cayley vector and
        shift.
    time : UFL expression
        Time in the middle of the step.
    virtual : UFL expression of 6
        Virtual displacement (rotation in the body frame, translation in space). With ``velocity``
        in its place the work is the power of the step.
    following : UFL expression of 6
        Virtual displacement for loads that turn with the section.
    weight : callable
        ``weight(inertia, field)``: work of the weight in a field of gravity (3) on ``virtual``; for
        masses the exact change of their potential.
    """

    old: Pose
    new: Pose
    middle: Pose
    velocity: Expr
    time: Expr
    virtual: Expr
    following: Expr
    weight: Callable[[Inertia, Expr], Expr]


class BodyLoad(Fixed):
    """Base class of loads on beams.

    Derive your own load with :meth:`work` or, if it has one, :meth:`potential`. All expressions are
    UFL at a node, per length of the beam at rest. ``g`` is the pair of position (3, in space) and
    orientation (unit quaternion, scalar first); velocities and virtual displacements are vectors of
    6, rotation in the body frame, then translation in space (``fg.lie.halves`` splits them); ``t``
    is the time.

    The beam raises ``ValueError`` if either is no scalar, or the work not linear in ``virtual``. In
    statics ``v`` is zero. Methods that conserve energy use the exact change of a potential over
    a step, and evaluate all other work in the middle of the step.

    Examples
    --------
    Linear drag, and a floor at z = 0 that pushes back:

    >>> class Drag(fg.BodyLoad):
    ...     def __init__(self, c):
    ...         self.c = Constant(c)
    ...
    ...     def work(self, rod, g, v, t, virtual):
    ...         return -self.c*dot(fg.lie.halves(v)[1], fg.lie.halves(virtual)[1])
    >>> class Floor(fg.BodyLoad):
    ...     def potential(self, rod, g, t):
    ...         return 0.5e4*max_value(-g[0][2], 0)**2
    """

    #: Whether statics multiply it by the load factor.
    scaled = True
    #: Whether it is dry friction, at whose kink Newton's iteration may circle.
    has_friction = False

    def work(self, rod: PartOfRod, g: Pose, v: Expr, t: Expr, virtual: Expr) -> Expr:
        """Virtual work, linear in ``virtual``, including that of the potential.

        By default it is that of the potential.
        """
        return -rate(lambda s: self.potential(rod, displaced(g, s * virtual), t))

    def potential(self, rod: PartOfRod, g: Pose, t: Expr) -> Any:
        """The potential V at the time ``t``; None if there is none.

        Its negative change is a part of the work.
        """
        return None

    def mean_work(self, rod: PartOfRod, step: NodalStep) -> Expr:
        """Virtual work over a step: the exact change of the potential, the rest at its middle."""

        def potential(g: Pose) -> Expr:
            return self.potential(rod, g, step.time)

        at = rod, step.middle, step.velocity, step.time, step.virtual
        if potential(step.middle) is None:
            return self.work(*at)
        work = -_mean_change(potential, step)
        if type(self).work is not BodyLoad.work:
            slope = rate(lambda s: potential(displaced(step.middle, s * step.virtual)))
            work += self.work(*at) + slope
        return work

    def check(self, rod: PartOfRod) -> None:
        """Raise ``ValueError`` if the rod lacks the place of the load, or the work is not valid."""
        name = type(self).__name__
        if type(self).work is BodyLoad.work and type(self).potential is BodyLoad.potential:
            raise ValueError(f"loads: {name} must have a method work or potential")
        g, v, t, virtual, s = symbols()
        for what, value in (
            ("potential", lambda: self.potential(rod, g, t)),
            ("work", lambda: self.work(rod, g, v, t, s * virtual)),
        ):
            with reported_as(f"loads: the {what} of {name} gives no UFL expression"):
                found = value()
                found = found if found is None and what == "potential" else ufl.as_ufl(found)
            if found is not None and found.ufl_shape != ():
                raise ValueError(
                    f"loads: the {what} of {name} must be a scalar, not of shape {found.ufl_shape}"
                )
            if what == "work":
                slope = expand_derivatives(ufl.diff(found, s))
                if not isinstance(expand_derivatives(ufl.diff(slope, s)), Zero):
                    raise ValueError(
                        f"loads: the work of {name} must be linear in the virtual displacement"
                    )

    def check_start(self, beam) -> None:
        """Raise ``ValueError`` for a configuration of a beam at which no motion can begin."""

    def sees_velocity(self, rod: PartOfRod) -> bool:
        """Whether the work depends on the velocity."""
        g, v, t, virtual, _ = symbols()
        work = expand_derivatives(self.work(rod, g, v, t, virtual))
        return any(part is v for part in unique_pre_traversal(work))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Load(BodyLoad):
    """A force and a moment on a rod.

    Parameters
    ----------
    force, moment : array_like of 3, UFL expression or callable, optional
        Force and moment at a point, or per length (at rest) along the rod. An expression may
        contain the mesh coordinate and Constants that change; a callable takes the time ``t``, the
        arc length ``s``, or both, ``s, t`` (a single argument must have one of these names), and
        returns a UFL vector. Where a condition on the arc length jumps at a node, each side of the
        node has its own value; for a force at a node give ``at``.
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
        Acceleration of free fall in the space frame; expressions, callables and errors as for
        `Load`.
    """

    def __init__(self, acceleration: Vector) -> None:
        self.acceleration = checked_vector("acceleration", acceleration)

    def work(self, rod: PartOfRod, g: Pose, v: Expr, t: Expr, virtual: Expr) -> Expr:
        fall = join(ufl.zero(3), self._field(rod, t))
        return rod.inertia.mass_product(g[1], fall, virtual)

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
        numbers = [v for v in value if not isinstance(v, Expr)]
        array(name, numbers, (len(numbers),), wanted="a vector of finite numbers and UFL scalars")
        return checked_vector(name, ufl.as_vector(list(value)))
    return Constant(array(name, value, (3,)))


@dataclass(frozen=True)
class AppliedLoad:
    """A load on a part of a rod: its densities as expressions on the rod's mesh."""

    load: BodyLoad
    part: PartOfRod
    #: 1 in the cells of the part, 0 elsewhere.
    mask: Expr | float = 1.0
    #: A density of a load in terms of the rod's arc length and mesh, from one in terms of the beam's.
    translate: Callable[[BodyLoad, Expr, Expr], Expr] | None = None
    #: Integrates a density by the nodes, for a rod that is loaded as a whole.
    at_nodes: Callable[[Expr], Form] | None = None

    def __post_init__(self) -> None:
        self.load.check(self.part)

    @cached_property
    def _inside(self) -> ConditionsByNode:
        return ConditionsByNode(self.at_nodes)

    def density(self, name: str, *arguments) -> Any:
        """The "work", "potential" (None without one) or "mean_work" of the load, per length."""
        found = getattr(self.load, name)(self.part, *arguments)
        if found is None:
            return None
        if self.translate is not None:
            found = self.translate(self.load, self.part.arc, found)
        if getattr(self.load, "at", None) is None:
            # At a node where a load ends, only the cell inside of the load counts.
            found = self._inside.of(ufl.as_ufl(found))
        return self.mask * found


def along_all(at: str | float | None) -> Expr:
    """The `place` of a rod without nodes to load."""
    if at is not None:
        raise ValueError(f"at: this rod has no place {at!r}")
    return ufl.as_ufl(1.0)


def check_loads(loads) -> tuple[BodyLoad, ...]:
    """A tuple of loads from one or several; ``TypeError`` for anything else."""
    return instances("loads", loads, BodyLoad, "fdgeom.Load or fdgeom.Gravity, or several")


def symbols() -> tuple:
    """A pose, a velocity, a time, a virtual displacement and a factor of it, as symbols."""
    position, orientation, velocity, virtual = (
        private(Constant(np.zeros(n))) for n in (3, 4, 6, 6)
    )
    time, factor = Time(), ufl.variable(private(Constant(1.0)))
    return (position, orientation), velocity, time, virtual, factor


def _mean_change(potential: Callable[[Pose], Expr], step: NodalStep) -> Expr:
    """dV̄[virtual] over a step, with dV̄ = V¹ - V⁰ for the displacement of the step itself."""

    def of(x: Expr, q: Expr) -> Expr:
        return potential((x, q))

    def between(c: float) -> list[Expr]:
        return [a + c * d for a, d in zip(step.old, change, strict=True)]

    def along(at: list[Expr], direction: list[Expr]) -> Expr:
        return rate(lambda s: of(*(y + s * d for y, d in zip(at, direction, strict=True))))

    # The `MeanSlope` on the straight line of positions and quaternions. A virtual rotation changes
    # the quaternion as the step does, q¹ - q⁰ = (q⁰ + q¹)(0, θ)/(2 (1 + 1/q⁰·q¹)) for its Cayley
    # vector θ.
    change = [b - a for a, b in zip(step.old, step.new, strict=True)]
    rotation, translation = halves(step.virtual, "virtual")
    p, q = step.old[1], step.new[1]
    turn = quaternion.product(p + q, join(ufl.as_vector([0.0]), rotation))
    virtual = [translation, turn / (2 * (1 + 1 / ufl.dot(p, q)))]
    rule = mean_slope_of(of, 3, 4)
    mean = rule.mean([along(between(c), virtual) for c in rule.nodes])
    if rule.exact:
        return mean
    slopes = [along(between(c), change) for c in rule.nodes]
    # In the components that the potential depends on alone: others must not be pushed.
    components = _components(of)
    moved, pushed, reached = (
        [join(*y)[k] for k in components] for y in (change, virtual, step.new)
    )
    size, place = (sum(d * d for d in y) for y in (moved, reached))
    correction = rule.correction(of(*step.old), of(*step.new), slopes, size, place)
    return mean + correction * sum(d * w for d, w in zip(moved, pushed, strict=True))


def _components(function: Callable[[Expr, Expr], Expr]) -> list[int]:
    """The components of position and quaternion, of seven, that a function depends on."""
    symbols, found = [Constant(0.0) for _ in range(7)], []
    for k in range(7):
        s = ufl.variable(Constant(0.0))
        moved = [c + s if i == k else c for i, c in enumerate(symbols)]
        value = function(ufl.as_vector(moved[:3]), ufl.as_vector(moved[3:]))
        if not isinstance(expand_derivatives(ufl.diff(value, s)), Zero):
            found.append(k)
    return found
