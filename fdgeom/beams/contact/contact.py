"""Contact of a rod with obstacles, with friction, as a load."""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import ufl
from firedrake import TestFunction, VectorFunctionSpace
from ufl.classes import Expr

from fdgeom.beams.contact.obstacles import Number, Obstacle, number, present
from fdgeom.beams.rod.body_load import AppliedLoad, BodyLoad, NodalStep, PartOfRod
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.variation import Pose
from fdgeom.execution import VectorAssembly
from fdgeom.lie import halves, join, quaternion
from fdgeom.line import Numbering
from fdgeom.solvers.derived import Interpolation
from fdgeom.taping import off_the_tape
from fdgeom.validation import instance

# Of the squared slip at which friction is rounded off: below it friction has no direction.
_STILL = 1e-24
# Below the square of any change of a depth, so that no change is no quotient of zeros.
_TINY = 1e-60


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
        self.stiffness = number("stiffness", stiffness, above=0)
        self.radius = None if radius is None else number("radius", radius, above=0)
        self.rounding = None if rounding is None else number("rounding", rounding, above=0)
        self.friction = number("friction", friction, least=0)
        #: Whether there is friction: a coefficient that may change, or a number that is not zero.
        self.has_friction = isinstance(friction, Expr) or present(self.friction) != 0
        self.slip = None if slip is None else number("slip", slip, above=0)
        if self.has_friction and slip is None:
            raise ValueError(
                "slip: with friction give the speed below which it is rounded off, such as 1 % of "
                "the speeds that matter"
            )
        self._readings: WeakKeyDictionary = WeakKeyDictionary()

    # --- as a load ---------------------------------------------------------------------------------
    def potential(self, rod: PartOfRod, g: Pose, t: Expr) -> Expr:
        return self._energy(rod, g[0], t)

    def work(self, rod: PartOfRod, g: Pose, v: Expr, t: Expr, virtual: Expr) -> Expr:
        return self._work(self._total_normal_force(rod, g[0], t), rod, g, v, t, virtual)

    def mean_work(self, rod: PartOfRod, step: NodalStep) -> Expr:
        """The exact change of the potential, and friction in the middle of the step."""
        ends, force = (step.old[0], step.new[0]), ufl.zero(3)
        for obstacle in self.obstacles:
            old, new = (self._depth(rod, obstacle, x, step.time) for x in ends)
            mean = self.stiffness * _mean_force(old, new, self._rounding(rod))
            force += mean * obstacle.mean_slope(*ends, step.time)
        return self._work(force, rod, step.middle, step.velocity, step.time, step.virtual)

    @property
    def moves(self) -> bool:
        """Whether an obstacle changes its place or shape in time."""
        return any(obstacle.moves for obstacle in self.obstacles)

    def sees_velocity(self, rod: PartOfRod) -> bool:
        return self.has_friction

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
        distances, _ = self._reading(beam).gaps()
        node, number = np.unravel_index(np.argmin(distances), distances.shape)
        gap = distances[node, number]
        if gap < 0:
            arc = self._reading(beam).numbering.coordinates[node]
            raise ValueError(
                f"loads: the axis of the beam is inside {self.obstacles[number]!r} at the arc length "
                f"{arc:.4g}, {-gap:.3g} below the surface; move the beam out, such as by "
                "beam.reconstruct(position=..., orientation=...)"
            )

    # --- densities along the rod -------------------------------------------------------------------
    def penetration(self, rod: PartOfRod, g: Pose, t: Expr) -> Expr:
        """The greatest depth, 0 where nothing touches."""
        return _greatest(self._depth(rod, obstacle, g[0], t) for obstacle in self.obstacles)

    def normal_force(self, rod: PartOfRod, g: Pose, t: Expr) -> Expr:
        """Sum of the normal forces per length."""
        forces = (self._normal_force(rod, o, g[0], t) for o in self.obstacles)
        return sum(forces, ufl.as_ufl(0.0))

    def force(self, rod: PartOfRod, g: Pose, v: Expr, t: Expr) -> Expr:
        """Force per length (3), with friction."""
        friction = (f.force for f in self._friction_forces(rod, g, v, t))
        return sum(friction, self._total_normal_force(rod, g[0], t))

    def friction_power(self, rod: PartOfRod, step: NodalStep, velocity: str) -> Expr:
        """Power of friction per length in the "slip", or by the velocity of the "surface"."""
        forces = self._friction_forces(rod, step.middle, step.velocity, step.time)
        return sum(ufl.dot(f.force, getattr(f, velocity)) for f in forces)

    def _work(self, normal: Expr, rod: PartOfRod, g: Pose, v: Expr, t: Expr, virtual: Expr) -> Expr:
        """Virtual work of a normal force, and of friction."""
        work = ufl.dot(normal, halves(virtual, "virtual")[1])
        for friction in self._friction_forces(rod, g, v, t):
            work += ufl.dot(friction.force, _at_contact_point(g[1], friction.arm, virtual))
        return work

    def _friction_forces(
        self, rod: PartOfRod, g: Pose, v: Expr, t: Expr
    ) -> Iterator["_FrictionForce"]:
        """Friction with each obstacle; none without a coefficient."""
        if not self.has_friction:
            return
        x, radius = g[0], self._radius(rod)
        for obstacle in self.obstacles:
            normal = obstacle.slope(x, t)
            if not obstacle.is_exact:
                normal = normal / ufl.sqrt(ufl.dot(normal, normal))
            arm = -radius * normal
            surface = obstacle.velocity(x - obstacle.distance(x, t) * normal, t)
            slip = _at_contact_point(g[1], arm, v) - surface
            slip = slip - ufl.dot(slip, normal) * normal
            part = slip / self.slip
            speed = ufl.sqrt(ufl.dot(part, part) + _STILL)
            # χ(y)/y = 2 - y below 1, 1/y beyond.
            factor = (2 - ufl.min_value(speed, 1)) / ufl.max_value(speed, 1)
            size = self.friction * self._normal_force(rod, obstacle, x, t)
            yield _FrictionForce(arm, -size * factor * part, slip, surface)

    def _total_normal_force(self, rod: PartOfRod, x: Expr, t: Expr) -> Expr:
        return sum(self._normal_force(rod, o, x, t) * o.slope(x, t) for o in self.obstacles)

    def _normal_force(self, rod: PartOfRod, obstacle: Obstacle, x: Expr, t: Expr) -> Expr:
        """N of an obstacle."""
        rounding = self._rounding(rod)
        soft, hard = _soft_and_hard(self._depth(rod, obstacle, x, t), rounding)
        return self.stiffness * (soft * soft / (2 * rounding) + hard)

    def _energy(self, rod: PartOfRod, x: Expr, t: Expr) -> Expr:
        rounding, energy = self._rounding(rod), ufl.as_ufl(0.0)
        for obstacle in self.obstacles:
            soft, hard = _soft_and_hard(self._depth(rod, obstacle, x, t), rounding)
            energy += soft * soft * soft / (6 * rounding) + hard * (rounding + hard) / 2
        return self.stiffness * energy

    def _depth(self, rod: PartOfRod, obstacle: Obstacle, x: Expr, t: Expr) -> Expr:
        return self._radius(rod) - obstacle.distance(x, t)

    def _radius(self, rod: PartOfRod) -> Expr:
        if self.radius is not None:
            return self.radius
        if rod.radius is None:
            raise ValueError(
                "radius: the section has none; give Contact a radius, that of a round tube by which "
                "the rod touches (sections made by Section.circle and Section.tube have one)"
            )
        return ufl.as_ufl(rod.radius)

    def _rounding(self, rod: PartOfRod) -> Expr:
        return 0.05 * self._radius(rod) if self.rounding is None else self.rounding

    # --- for users ---------------------------------------------------------------------------------
    @off_the_tape
    def depth(self, beam) -> np.ndarray:
        """Depth in the nearest obstacle at each node of a beam, (nodes,) in the order of the arc
        length, on every rank; negative where the rod is apart from all obstacles.
        """
        distances, radius = self._reading(beam).gaps()
        return radius - distances.min(axis=1)

    @off_the_tape
    def forces(self, beam) -> np.ndarray:
        """Force (in space) on each node of a beam with friction, (nodes, 3) as :meth:`depth`.

        The sum is the total force on the beam, of the present configuration and velocity.
        """
        return self._reading(beam).forces()

    def _reading(self, beam) -> "_Reading":
        if beam not in self._readings:
            self._readings[beam] = _Reading(self, beam)
        return self._readings[beam]

    def __repr__(self) -> str:
        names = ", ".join(type(o).__name__ for o in self.obstacles)
        return f"<contact with {names}{', with friction' if self.has_friction else ''}>"


class _FrictionForce(NamedTuple):
    """Friction with one obstacle."""

    #: The vector from the axis to the contact point.
    arm: Expr
    force: Expr
    slip: Expr
    surface: Expr


class _Reading:
    """Distances from obstacles and forces at the nodes of a beam."""

    def __init__(self, contact: Contact, beam) -> None:
        part, pose, mesh = beam.rod.part, (beam.position, beam.orientation), beam.mesh
        contact.check(part)
        distances = [o.distance(pose[0], beam.time) for o in contact.obstacles]
        values = ufl.as_vector([*distances, contact._radius(part)])
        element = beam.position.function_space().ufl_element().sub_elements[0]
        self._values = Interpolation(
            values, VectorFunctionSpace(mesh, element, dim=len(distances) + 1)
        )
        spin, linear = halves(beam.velocity, "velocity")
        v = join(spin, quaternion.rotate(pose[1], linear))
        force, space = contact.force(part, pose, v, beam.time), beam.position.function_space()
        self._forces = VectorAssembly(beam.rod.cells.at_nodes(ufl.dot(force, TestFunction(space))))
        self.numbering = Numbering(space)

    def gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """Distances from each obstacle, (nodes, obstacles), and the radius, (nodes,)."""
        values = self.numbering.gather(self._values.apply())
        return values[:, :-1], values[:, -1]

    def forces(self) -> np.ndarray:
        return self.numbering.gather(self._forces.assemble())


def contacts_of(rod: Rod) -> list[AppliedLoad]:
    """The loads of a rod that are contact."""
    return [load for load in rod.loads if isinstance(load.load, Contact)]


def penetration(contacts: Sequence[AppliedLoad], g: Pose, t: Expr) -> Expr:
    """The greatest depth of some contacts, 0 where nothing touches."""
    return _greatest(contact.density("penetration", g, t) for contact in contacts)


def contact_fields(rod: Rod, g: Pose, v: Expr) -> dict[str, Expr]:
    """Force of contact per length (3) and depth, for drawing; nothing for rods without contact."""
    contacts = contacts_of(rod)
    if not contacts:
        return {}
    force = sum(contact.density("force", g, v, rod.time) for contact in contacts)
    return {"contact_force": force, "contact_depth": penetration(contacts, g, rod.time)}


def _greatest(depths: Iterable[Expr]) -> Expr:
    return reduce(ufl.max_value, depths, ufl.as_ufl(0.0))


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
