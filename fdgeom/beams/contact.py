"""Contact of a rod with obstacles, with friction, as a load."""

import warnings
from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import ufl
from firedrake import TestFunction
from pyadjoint.tape import no_annotations
from ufl.classes import Expr

from fdgeom.beams.obstacles import Number, Obstacle, number, present
from fdgeom.beams.rod.loads import AppliedLoad, BodyLoad, NodalStep, PartOfRod
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.variation import Pose, body_translation
from fdgeom.execution import VectorAssembly
from fdgeom.forms import shaped_space
from fdgeom.lie import halves, quaternion
from fdgeom.line import Numbering
from fdgeom.operations import Interpolation
from fdgeom.operations.dependent import Sources, in_replay
from fdgeom.validation import instance

# Of the squared slip at which friction is rounded off: below it friction has no direction.
_STILL = 1e-24
# Below the square of any change of a depth, so that no change is no quotient of zeros.
_TINY = 1e-60


#: The bounds of the numbers of a `Contact`.
_BOUNDS: dict[str, dict[str, float]] = {
    "friction": {"least": 0},
    **{name: {"above": 0} for name in ("stiffness", "radius", "rounding", "slip")},
}


def _number(name: str, value: Number) -> Expr:
    """A number of a `Contact` as UFL; ``ValueError`` beyond its bounds."""
    return number(name, value, **_BOUNDS[name])


class Contact(BodyLoad):
    """Contact of a rod with obstacles: a smooth penalty in the depth, and Coulomb friction.

    With the distance d of the rod's axis from the surface of an obstacle, the depth q = r - d and
    the unit normal n, the normal force per length at rest is N n,

        N = k q²/2δ  (0 ≤ q < δ),     N = k (q - δ/2)  (q ≥ δ),

    and has a potential, which belongs to the energy. Friction acts at the touching point, with its
    moment about the axis of the rod, against the tangential part s of the slip
    u = v + ω × (-r n) - (velocity of the surface):

        f = -μ N χ(|s|/ε) s/|s|,     χ(y) = 2y - y²  (y < 1),     χ(y) = 1  (y ≥ 1).

    Sliding is exact, and friction never does positive work. Nothing sticks for ever: a body at rest
    on a slope α creeps with the speed ε (1 - √(1 - tan α/μ)).

    Parameters
    ----------
    *obstacles : Plane, Sphere, Cylinder, Ring or LevelSet
        The obstacles.
    stiffness : float or UFL scalar
        k: force per length of the rod and depth.
    radius : float or UFL scalar, optional
        r: for contact the rod is a round tube of this radius. Sections made by `Section.circle` and
        `Section.tube` have one by default.
    rounding : float or UFL scalar, optional
        δ: depth over which the force begins smoothly, 0.05 r by default.
    friction : float or UFL scalar
        μ: the coefficient of friction.
    slip : float or UFL scalar, optional
        ε: speed below which friction is rounded off, such as 1 % of the speeds that matter. Needed
        with friction.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described. A beam or assembly refuses contact without a radius, or
        with a radius larger than that of a pipe around it; steppers refuse a start in which the axis
        of the rod is inside an obstacle.

    Notes
    -----
    The nodes touch: cells should be shorter than the details that matter, and an edge of an obstacle
    between two nodes is not noticed. Where steps are large against ε, Newton's iteration may fail:
    take a smaller dt, a larger slip, or let loads grow. Arguments may be Functions of a Real space,
    for gradients by them.

    `EnergyMomentum` and `DiscreteGradient` conserve energy and contact potential to round-off, and
    friction dissipates in every step (see `ContactMonitor`). Statics do not scale contact by the
    load factor. Friction is refused at rest (`StaticEquilibrium`, `VibrationModes`), and by
    `VariationalIntegrator`.

    Examples
    --------
    >>> drum = fg.Cylinder((0, 0, 0.5), axis=(0, 1, 0), radius=0.1, spin=2.0)
    >>> touch = fg.Contact(drum, stiffness=1e6, radius=0.01, friction=0.3, slip=1e-2)
    >>> rope = fg.Beam(mesh, section, loads=[fg.Gravity((0, 0, -9.81)), touch])  # doctest: +SKIP
    """

    scaled = False

    def __init__(
        self,
        *obstacles: Obstacle,
        stiffness: Number,
        radius: Number | None = None,
        rounding: Number | None = None,
        friction: Number = 0.0,
        slip: Number | None = None,
    ) -> None:
        if not obstacles:
            raise ValueError("obstacles: give at least one, such as fdgeom.Plane(point, normal)")
        wanted = "a fdgeom.Plane, Sphere, Cylinder, Ring or LevelSet"
        self.obstacles = tuple(instance("obstacles", o, Obstacle, wanted) for o in obstacles)
        self.stiffness = _number("stiffness", stiffness)
        self.radius = None if radius is None else _number("radius", radius)
        self.rounding = None if rounding is None else _number("rounding", rounding)
        coefficient = _number("friction", friction)
        #: Whether there is friction: a coefficient that may change, or a number that is not zero.
        self.has_friction = isinstance(friction, Expr) or present(coefficient) != 0
        # No Constant that could be assigned to without effect.
        self.friction = coefficient if self.has_friction else 0.0
        self.slip = None if slip is None else _number("slip", slip)
        if self.has_friction and slip is None:
            raise ValueError(
                "slip: with friction give the speed below which it is rounded off, such as 1 % of "
                "the speeds that matter"
            )
        if self.has_friction and not all(o.has_velocity for o in self.obstacles):
            raise ValueError(
                "obstacles: friction needs the velocity of a surface that moves: give "
                "fdgeom.LevelSet(function, velocity=lambda x, t: ...)"
            )
        named = {name: getattr(self, name) for name in _BOUNDS}
        #: The numbers that may change, by name.
        self._numbers = {name: value for name, value in named.items() if isinstance(value, Expr)}
        self._given = Sources(*self._numbers.values())
        self._of_beams: WeakKeyDictionary = WeakKeyDictionary()
        places = [o.place() for o in self.obstacles if self.has_friction]
        self._moved = Sources(*(e for e in places if e is not None))

    # --- as a load ---------------------------------------------------------------------------------
    def potential(self, rod: PartOfRod, g: Pose, t: Expr) -> Expr:
        rounding, energy = self._rounding(rod), ufl.as_ufl(0.0)
        for depth in self._depths(rod, g[0], t):
            soft, hard = _soft_and_hard(depth, rounding)
            energy += soft * soft * soft / (6 * rounding) + hard * (rounding + hard) / 2
        return self.stiffness * energy

    def work(self, rod: PartOfRod, g: Pose, v: Expr, t: Expr, virtual: Expr) -> Expr:
        normal = sum(touch.normal_force * touch.slope for touch in self._touches(rod, g, v, t))
        return self._work(normal, rod, g, v, t, virtual)

    def mean_work(self, rod: PartOfRod, step: NodalStep) -> Expr:
        """The exact change of the potential, and friction in the middle of the step."""
        ends, force = (step.old[0], step.new[0]), ufl.zero(3)
        depths = (self._depths(rod, x, step.time) for x in ends)
        for obstacle, old, new in zip(self.obstacles, *depths, strict=True):
            mean = self.stiffness * _mean_force(old, new, self._rounding(rod))
            force += mean * obstacle.mean_slope(*ends, step.time)
        return self._work(force, rod, step.middle, step.velocity, step.time, step.virtual)

    @property
    def moves(self) -> bool:
        """Whether an obstacle changes its place or shape in time."""
        return any(obstacle.moves for obstacle in self.obstacles)

    def check(self, rod: PartOfRod) -> None:
        radius = present(self._radius(rod))
        for obstacle in self.obstacles:
            hollow = present(obstacle.hollow) if obstacle.inside else None
            if radius is not None and hollow is not None and radius >= hollow:
                raise ValueError(
                    f"loads: a rod of radius {radius:g} does not fit into {obstacle!r} of radius "
                    f"{hollow:g}; give Contact a smaller radius, or the obstacle a larger one"
                )

    def check_start(self, beam) -> None:
        """Raise ``ValueError`` if the axis of a beam is inside an obstacle."""
        nodes = self._nodes(beam)
        distances, _ = nodes.gaps()
        node, number = np.unravel_index(np.argmin(distances), distances.shape)
        gap = distances[node, number]
        if gap < 0:
            raise ValueError(
                f"loads: the axis of the beam is inside {self.obstacles[number]!r} at the arc length "
                f"{nodes.order.coordinates[node]:.4g}, {-gap:.3g} below the surface; move the beam "
                "out, such as by beam.reconstruct(position=..., orientation=...)"
            )

    def check_data(self, *, stepped: bool) -> None:
        """Raise ``ValueError`` if a number has changed beyond its bounds; warn if the place of an obstacle
        with friction has changed since the last call, between steps if ``stepped``.
        """
        if in_replay():
            return
        if self._given.changed():
            for name, value in self._numbers.items():
                _number(name, value)
            self._given.take()
        if self._moved.changed():
            self._check_places(stepped=stepped)

    def _check_places(self, *, stepped: bool) -> None:
        if stepped and self._moved.snapshot is not None:
            warnings.warn(
                f"loads: a Constant or Function has moved an obstacle of {self!r} between steps, and "
                "friction takes its surface to be at rest; give the place as a function of t",
                stacklevel=3,
            )
        self._moved.take()

    # --- densities along the rod -------------------------------------------------------------------
    def penetration(self, rod: PartOfRod, g: Pose, t: Expr) -> Expr:
        """The greatest depth, 0 where nothing touches."""
        return reduce(ufl.max_value, self._depths(rod, g[0], t), ufl.as_ufl(0.0))

    def normal_force(self, rod: PartOfRod, g: Pose, t: Expr) -> Expr:
        """Sum of the normal forces per length."""
        touches = self._touches(rod, g, ufl.zero(6), t)
        return sum((touch.normal_force for touch in touches), ufl.as_ufl(0.0))

    def force(self, rod: PartOfRod, g: Pose, v: Expr, t: Expr) -> Expr:
        """Force per length (3), with friction."""
        touches = self._touches(rod, g, v, t)
        forces = (touch.normal_force * touch.slope + touch.friction for touch in touches)
        return sum(forces, ufl.zero(3))

    def friction_power(self, rod: PartOfRod, step: NodalStep, velocity: str) -> Expr:
        """Power of friction per length in the "slip", or by the velocity of the "surface"."""
        touches = self._touches(rod, step.middle, step.velocity, step.time)
        return sum(ufl.dot(touch.friction, getattr(touch, velocity)) for touch in touches)

    def _work(self, normal: Expr, rod: PartOfRod, g: Pose, v: Expr, t: Expr, virtual: Expr) -> Expr:
        """Virtual work of a normal force, and of friction."""
        work = ufl.dot(normal, halves(virtual, "virtual")[1])
        for touch in self._touches(rod, g, v, t):
            work += ufl.dot(touch.friction, _at_contact_point(g[1], touch.arm, virtual))
        return work

    def _touches(self, rod: PartOfRod, g: Pose, v: Expr, t: Expr) -> Iterator["_Touch"]:
        """The contact with each obstacle; without a coefficient the friction is zero."""
        x, radius, rounding = g[0], self._radius(rod), self._rounding(rod)
        for obstacle, depth in zip(self.obstacles, self._depths(rod, x, t), strict=True):
            soft, hard = _soft_and_hard(depth, rounding)
            normal_force = self.stiffness * (soft * soft / (2 * rounding) + hard)
            normal = slope = obstacle.slope(x, t)
            arm = friction = slip = surface = ufl.zero(3)
            if self.has_friction:
                if not obstacle.is_exact:
                    normal = slope / ufl.sqrt(ufl.dot(slope, slope))
                arm = -radius * normal
                surface = obstacle.velocity(x - obstacle.distance(x, t) * normal, t)
                slip = _at_contact_point(g[1], arm, v) - surface
                slip = slip - ufl.dot(slip, normal) * normal
                part = slip / self.slip
                speed = ufl.sqrt(ufl.dot(part, part) + _STILL)
                # χ(y)/y = 2 - y below 1, 1/y beyond.
                factor = (2 - ufl.min_value(speed, 1)) / ufl.max_value(speed, 1)
                friction = -self.friction * normal_force * factor * part
            yield _Touch(normal_force, slope, arm, friction, slip, surface)

    def _depths(self, rod: PartOfRod, x: Expr, t: Expr) -> list[Expr]:
        return [self._radius(rod) - obstacle.distance(x, t) for obstacle in self.obstacles]

    def _radius(self, rod: PartOfRod) -> Expr:
        if self.radius is not None:
            return self.radius
        if rod.radius is None:
            raise ValueError(
                "radius: the section has none, or the beams have different ones; give Contact a "
                "radius, that of a round tube by which the rod touches (sections made by "
                "Section.circle and Section.tube have one), or each beam its own Contact"
            )
        return ufl.as_ufl(rod.radius)

    def _rounding(self, rod: PartOfRod) -> Expr:
        return 0.05 * self._radius(rod) if self.rounding is None else self.rounding

    # --- for users ---------------------------------------------------------------------------------
    @no_annotations
    def depth(self, beam) -> np.ndarray:
        """Depth in the nearest obstacle at each node of a beam, (nodes,) in the order of the arc
        length, on every rank; negative where the rod is apart from all obstacles.
        """
        with beam.consistency.prepared():
            distances, radius = self._nodes(beam).gaps()
        return radius - distances.min(axis=1)

    @no_annotations
    def forces(self, beam) -> np.ndarray:
        """Force (in space) on each node of a beam with friction, (nodes, 3) as :meth:`depth`.

        The sum is the total force on the beam, of the present configuration and velocity.
        """
        with beam.consistency.prepared():
            return self._nodes(beam).forces()

    def _nodes(self, beam) -> "_Nodes":
        if beam not in self._of_beams:
            self._of_beams[beam] = _Nodes(self, beam)
        return self._of_beams[beam]

    def __repr__(self) -> str:
        names = ", ".join(type(o).__name__ for o in self.obstacles)
        return f"<contact with {names}{', with friction' if self.has_friction else ''}>"


class _Touch(NamedTuple):
    """Contact with one obstacle, per length of the rod."""

    #: The normal force N, and the slope of the distance.
    normal_force: Expr
    slope: Expr
    #: The vector from the axis to the contact point, and the friction there.
    arm: Expr
    friction: Expr
    #: Velocities at the contact point: of the rod along the surface, and of the surface.
    slip: Expr
    surface: Expr


class _Nodes:
    """Distances from obstacles and forces at the nodes of a beam."""

    def __init__(self, contact: Contact, beam) -> None:
        part, pose, t = beam.rod.part, (beam.position, beam.orientation), beam.time
        contact.check(part)
        space, values = beam.position.function_space(), [contact._radius(part)]
        values += [obstacle.distance(pose[0], t) for obstacle in contact.obstacles]
        element = space.ufl_element().sub_elements[0]
        at_nodes = shaped_space((len(values),), beam.mesh, element)
        self._values = Interpolation(ufl.as_vector(values), at_nodes)
        force = contact.force(part, pose, body_translation(pose[1], beam.velocity), t)
        self._forces = VectorAssembly(beam.rod.cells.at_nodes(ufl.dot(force, TestFunction(space))))
        self.order = Numbering(space)

    def gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """Distances from each obstacle, (nodes, obstacles), and the radius, (nodes,)."""
        values = self.order.gather(self._values.apply())
        return values[:, 1:], values[:, 0]

    def forces(self) -> np.ndarray:
        return self.order.gather(self._forces.assemble())


def contacts_of(rod: Rod) -> list[AppliedLoad]:
    """The loads of a rod that are contact."""
    return [load for load in rod.loads if isinstance(load.load, Contact)]


def penetration(rod: Rod, g: Pose) -> Expr:
    """The greatest depth of all contacts of a rod, 0 where nothing touches."""
    depths = (load.density("penetration", g, rod.time) for load in contacts_of(rod))
    return reduce(ufl.max_value, depths)


def contact_fields(rod: Rod, g: Pose, v: Expr) -> dict[str, Expr]:
    """Force of contact per length (3) and depth, for drawing; nothing for rods without contact."""
    forces = [load.density("force", g, v, rod.time) for load in contacts_of(rod)]
    return {"contact_force": sum(forces), "contact_depth": penetration(rod, g)} if forces else {}


def _soft_and_hard(depth: Expr, rounding: Expr) -> tuple[Expr, Expr]:
    """The part of a depth up to the rounding, and the part beyond it; 0 without contact."""
    soft = ufl.min_value(ufl.max_value(depth, 0), rounding)
    return soft, ufl.max_value(depth - rounding, 0)


def _mean_force(old: Expr, new: Expr, rounding: Expr) -> Expr:
    """(V¹ - V⁰)/(q¹ - q⁰)/k for two depths."""
    (soft0, hard0), (soft1, hard1) = (_soft_and_hard(depth, rounding) for depth in (old, new))
    low, high = ufl.min_value(old, new), ufl.max_value(old, new)
    width = high - low

    def beyond(limit: Expr) -> Expr:
        """The part of the step beyond a depth; 1 and 0 are exact, so that short steps lose no digit."""
        part = ufl.max_value(high - limit, 0) * width / (width * width + _TINY)
        return ufl.conditional(ufl.lt(limit, low), 1.0, part)

    soft = (soft0 * soft0 + soft0 * soft1 + soft1 * soft1) / (6 * rounding)
    hard = 0.5 * (rounding + hard0 + hard1)
    return soft * beyond(ufl.as_ufl(0.0)) + (hard - soft) * beyond(rounding)


def _at_contact_point(orientation: Expr, arm: Expr, displacement: Expr) -> Expr:
    """Displacement or velocity of the touching point of the section."""
    rotation, translation = halves(displacement, "displacement")
    return translation + ufl.cross(quaternion.rotate(orientation, rotation), arm)
