"""Supports, joints, bodies, loads and obstacles of beams, as pictures show them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from firedrake import Constant, Function, SpatialCoordinate

from fdgeom.beams.contact import Contact
from fdgeom.beams.ends import Sliding
from fdgeom.beams.network.assembly import Assembly
from fdgeom.beams.network.joints import Ground, Place, Prismatic, Revolute
from fdgeom.beams.rod.loads import BodyLoad, Gravity, Load, PartOfRod, along_all, vector
from fdgeom.lie import arrays, quaternion
from fdgeom.line import Numbering
from fdgeom.systems.constrained.mechanical import MechanicalSystem

from .interpolated import Interpolated

_JOINTS = {"revolute": Revolute, "prismatic": Prismatic}
#: Arrows of a load along a beam.
_ALONG = 9


#: Kinds of marks; "joint" is every joint that has no axis.
KINDS = ("clamped", "pinned", "sliding", "given", "ground", "body", "revolute", "prismatic",
         "joint")  # fmt: skip


class Mark(NamedTuple):
    """A support, joint or body at a node.

    ``kind`` is one of `KINDS`; ``vector`` the axis of the slide (in space), or the joint's axis or
    the body's offset (in the axes of the section); ``size`` the radius of the body, 0 if it is a
    point.
    """

    kind: str
    node: int
    vector: tuple[float, float, float] = (0.0, 0.0, 0.0)
    size: float = 0.0

    def numbers(self) -> list[float]:
        """Six numbers, for a file."""
        return [KINDS.index(self.kind), self.node, *self.vector, self.size]

    @classmethod
    def of_numbers(cls, row: list[float], nodes: int) -> "Mark":
        """The mark of such numbers; an error if it is at none of so many nodes."""
        kind = KINDS[check_index("kind", row[0], len(KINDS))]
        return cls(kind, check_index("node", row[1], nodes), tuple(row[2:5]), row[5])


def check_index(name: str, value: float, count: int) -> int:
    """``value`` as an int; ``ValueError`` unless it is the number of one of so many things."""
    if value not in range(count):
        raise ValueError(f"there is no {name} {value:g}")
    return int(value)


def marks_of(system) -> list[Mark]:
    """The supports, joints and bodies of a system."""
    if isinstance(system, MechanicalSystem):
        return _held_nodes(system)
    beams = system.output.beams
    starts = np.cumsum([0, *(beam.position.function_space().dim() // 3 for beam in beams)])
    found = []
    for beam, start, stop in zip(beams, starts, starts[1:], strict=False):
        for end in beam.ends:
            if end.kind != "free":
                node = int(start if end.name == "left" else stop - 1)
                if isinstance(end.kind, Sliding):
                    axis = tuple(np.eye(3)[end.kind.along].tolist())
                    found.append(Mark("sliding", node, axis))
                else:
                    found.append(Mark(end.kind if end.kind in KINDS else "given", node))
    if isinstance(system, Assembly):
        found += _joints(system) + [_body(system, body) for body in system.bodies]
    return found


def _held_nodes(system: MechanicalSystem) -> list[Mark]:
    """The nodes of a chain at which boundary conditions hold the whole position."""
    space = system.space
    if not system.fixed or system.output.coordinates is not system.q:
        return []
    held = Function(space)
    for fixed in system.fixed:
        held.dat.data_wo_with_halos.reshape(-1)[fixed.dofs] = 1.0
    return [Mark("pinned", int(k)) for k in np.flatnonzero(Numbering(space).gather(held).all(1))]


def _joints(assembly: Assembly) -> list[Mark]:
    found = []
    joints = () if assembly.joints is None else assembly.joints.joints
    for joint in joints:
        on_ground = [isinstance(place, Ground) for place in (joint.first, joint.second)]
        node = assembly.network.node(joint.second if on_ground[0] else joint.first)
        axis = np.zeros(3)
        if joint.axis is not None:
            axis = assembly.joints.rotations[node].T @ joint.axis
        kind = next((k for k, of in _JOINTS.items() if isinstance(joint, of)), "joint")
        found.append(Mark(kind, node, tuple(axis.tolist())))
        if any(on_ground):
            found.append(Mark("ground", node))
    return found


def _body(assembly: Assembly, body) -> Mark:
    mass, inertia = body.matrix[5, 5], body.matrix[:3, :3]
    offset = arrays.so3.vee(body.matrix[:3, 3:]) / (mass or 1.0)
    own = np.trace(inertia) - 2 * mass * offset @ offset
    # The ball of the same mass with the mean of the moments, 2/5 m r².
    radius = np.sqrt(2.5 * own / 3 / mass) if mass and own > 1e-9 * np.trace(inertia) else 0.0
    return Mark("body", assembly.network.node(body.at), tuple(offset.tolist()), float(radius))


class Arrows:
    """Forces on the beams of a system at the present time; those of contact are sums over parts."""

    def __init__(self, beams: Sequence) -> None:
        self.nodes: list[int] = []
        self._readers: list[tuple[BodyLoad, Callable[[], np.ndarray]]] = []
        start = 0
        for beam in beams:
            numbering = Numbering(beam.position.function_space())
            for load in beam.loads:
                if (found := _arrows(load, beam, numbering)) is not None:
                    at, read = found
                    self.nodes += (start + at).tolist()
                    self._readers.append((load, read))
            start += len(numbering.coordinates)

    def read(self, factor: float = 1.0) -> np.ndarray:
        """The forces in space at `nodes`, (n, 3), on every rank; per length along a beam."""
        found = [(factor if load.scaled else 1.0) * read() for load, read in self._readers]
        return np.concatenate([np.zeros((0, 3)), *found])


def _arrows(load: BodyLoad, beam, numbering: Numbering):
    """The nodes of a beam that have arrows of a load, and a function that reads the forces; or None."""
    count = len(numbering.coordinates)
    if isinstance(load, Contact):
        parts = np.array_split(np.arange(count), min(count, _ALONG))
        first = [part[0] for part in parts]
        middles = np.array([part[len(part) // 2] for part in parts])
        return middles, lambda: np.add.reduceat(load.forces(beam), first)
    if not isinstance(load, Load) or load.force is None:
        return None
    at = np.arange(0, count, max(1, round((count - 1) / (_ALONG - 1))))
    if load.at is not None:
        at = np.array([Place(beam, load.at).index(numbering.coordinates)])
    part = PartOfRod(along_all, SpatialCoordinate(beam.mesh)[0], None)
    force = vector("force", load.force, part, beam.time)
    if load.frame == "body":
        force = quaternion.rotate(beam.orientation, force)
    element = beam.position.function_space().ufl_element().sub_elements[0]
    at_nodes = Interpolated(force, element, beam.mesh)
    return at, lambda: numbering.gather(at_nodes.apply())[at]


def _loads(system) -> list[BodyLoad]:
    """The loads of beams, and those of all beams of an assembly."""
    found = [load for beam in system.output.beams for load in beam.loads]
    if isinstance(system, Assembly):
        found += [applied.load for applied in system.rod.loads]
    return found


def gravity_of(system) -> np.ndarray:
    """Constant acceleration of gravity on a system, (3,); zero if there is none or it varies."""
    for load in _loads(system):
        if isinstance(load, Gravity) and isinstance(load.acceleration, Constant):
            return np.array(load.acceleration.values(), dtype=float)
    return np.zeros(3)


class Obstacles:
    """The obstacles that beams may touch, as surfaces near their first shape."""

    def __init__(self, system) -> None:
        contacts = [load for load in _loads(system) if isinstance(load, Contact)]
        self._known = list(dict.fromkeys(o for load in contacts for o in load.obstacles))
        self.move = any(obstacle.moves for obstacle in self._known)
        self._view: tuple[np.ndarray, float] | None = None

    def read(self, positions: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Points (n, 3) and triangles (m, 3) at a time."""
        if self._view is None:
            size = 1.6 * float(np.linalg.norm(np.ptp(positions, axis=0)))
            self._view = positions.mean(axis=0), size
        points, triangles = np.zeros((0, 3)), np.zeros((0, 3), dtype=int)
        for obstacle in self._known:
            found = obstacle.surface(*self._view, t)
            if found is not None:
                triangles = np.concatenate([triangles, found[1] + len(points)])
                points = np.concatenate([points, found[0]])
        return points, triangles
