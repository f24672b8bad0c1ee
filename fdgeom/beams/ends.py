"""Ends of a rod: free, clamped, pinned, sliding or with a given pose, and its held nodes.

`HeldNodes` imposes them on poses, `bracket` on strain and momentum.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import ufl
from firedrake import Function
from ufl.algorithms import expand_derivatives
from ufl.classes import Zero
from ufl.core.expr import Expr

from fdgeom.beams.rod.variation import Pose, spin
from fdgeom.data import Field, largest
from fdgeom.errors import SolveFailed
from fdgeom.execution import PointwiseUpdate
from fdgeom.lie import join, quaternion
from fdgeom.messages import format_value, is_function
from fdgeom.operations.dependent import private
from fdgeom.systems.motion.held import Held
from fdgeom.systems.motion.motion import Motion
from fdgeom.validation import evaluated, instance

# Of the size of the rods, their velocities and frequencies: a start set from the same formula is off by
# round-off.
_CONSISTENT = 1e-9
# Of the size of the rods: steps on strain and momentum leave an end so near its given pose.
_NEAR = 1e-3
_AXES = {0: 0, 1: 1, 2: 2, "x": 0, "y": 1, "z": 2}


class Sliding:
    """An end that moves freely along one axis of space and not across it.

    Parameters
    ----------
    along : {"x", "y", "z"} or {0, 1, 2}
        Axis of the space frame; ``ValueError`` for any other.
    turning : bool
        Whether the end may turn; otherwise it keeps its orientation.
    """

    def __init__(self, along: str | int, *, turning: bool = True) -> None:
        if not isinstance(along, str | int) or isinstance(along, bool) or along not in _AXES:
            raise ValueError(
                f"along must be 'x', 'y' or 'z' (or 0, 1, 2), not {format_value(along)}"
            )
        instance("turning", turning, bool, "True or False")
        self.along, self.turning = _AXES[along], turning

    @property
    def components(self) -> tuple[int, ...]:
        """The held components of (rotation in the body frame, translation in space)."""
        across = tuple(3 + k for k in range(3) if k != self.along)
        return across if self.turning else (0, 1, 2, *across)

    def __repr__(self) -> str:
        return f"Sliding({'xyz'[self.along]!r}, turning={self.turning})"


class GivenPose:
    """An end whose pose is prescribed in time.

    Parameters
    ----------
    position : callable, optional
        ``position(t)`` returns a UFL vector of 3 in space; without it the end is free to move.
    orientation : callable, optional
        ``orientation(t)`` returns a quaternion (4, scalar first; it is normalized); without it the
        end is free to turn.

    Raises
    ------
    TypeError, ValueError
        If neither is given, or one is not a function of the time with such a value.
    """

    def __init__(
        self, *, position: Callable | None = None, orientation: Callable | None = None
    ) -> None:
        if position is None and orientation is None:
            raise ValueError("GivenPose: give position, orientation, or both")
        for name, value in (("position", position), ("orientation", orientation)):
            if value is not None and not is_function(value):
                raise TypeError(f"{name} must be a function of the time t giving a UFL vector")
        self._position, self._orientation = position, orientation

    @property
    def components(self) -> tuple[int, ...]:
        """The held components of (rotation in the body frame, translation in space)."""
        rotation = () if self._orientation is None else (0, 1, 2)
        return rotation + (() if self._position is None else (3, 4, 5))

    def pose(self, t: Expr) -> tuple[Any, Any]:
        """Position and unit quaternion at the time t; None where they are free."""
        x = None if self._position is None else evaluated("position", self._position, (t,), 3)
        if self._orientation is None:
            return x, None
        turned = evaluated("orientation", self._orientation, (t,), 4)
        return x, unit_quaternion("orientation", turned)

    def body_velocity(self, t: Expr) -> Expr:
        """The velocity (6) of the motion, all in the body frame; both parts must be given."""
        if len(self.components) < 6:
            raise ValueError("GivenPose: the body velocity needs position and orientation")
        t = ufl.variable(t)
        x, q = self.pose(t)
        x_rate, q_rate = (expand_derivatives(ufl.diff(part, t)) for part in (x, q))
        return join(spin(q, q_rate), quaternion.rotate_inverse(q, x_rate))

    def __repr__(self) -> str:
        given = [n for n in ("position", "orientation") if getattr(self, f"_{n}") is not None]
        return f"<given {' and '.join(given)}>"


#: The held components of (rotation in the body frame, translation in space).
HELD = {"free": (), "clamped": (0, 1, 2, 3, 4, 5), "pinned": (3, 4, 5)}


def held_components(name: str, kind: str | Sliding | GivenPose) -> np.ndarray:
    """The held components of (rotation in the body frame, translation in space) of a kind of end."""
    if isinstance(kind, Sliding | GivenPose):
        return np.array(kind.components, dtype=int)
    if kind not in HELD:
        raise ValueError(
            f"{name}: methods in configuration form need the pose of this end, not its velocity: use "
            "fdgeom.GivenPose(position=..., orientation=...)"
        )
    return np.array(HELD[kind], dtype=int)


def unit_quaternion(name: str, q: Expr) -> Expr:
    """q / |q|; ``ValueError`` with its ``name`` if it is zero in its form."""
    if isinstance(q, Zero):
        raise ValueError(f"{name} is zero; it must be a quaternion, scalar first: (1, 0, 0, 0)")
    return quaternion.normalize(q)


# --- held nodes of motions -----------------------------------------------------------------------
@dataclass(frozen=True)
class Hold:
    """A node and its held components."""

    name: str
    #: Its local index, if this rank has it (as its own or as a ghost).
    nodes: np.ndarray
    kind: str | Sliding | GivenPose
    #: Those held of (rotation in the body frame, translation in space).
    components: np.ndarray

    @property
    def dofs(self) -> np.ndarray:
        """The held degrees of freedom, into flat local values of 6 a node."""
        return (6 * self.nodes[:, None] + self.components[None, :]).ravel()

    @property
    def pose(self) -> Any:
        """The pose that is prescribed in time, or None."""
        return self.kind if isinstance(self.kind, GivenPose) else None

    def __str__(self) -> str:
        return f"{self.name} is {self.kind if isinstance(self.kind, str) else repr(self.kind)}"


def held_ends(ends, nodes: Callable[[str], np.ndarray], article: str = "") -> dict[str, Hold]:
    """The ends of a beam that are not free, by name; ``nodes(name)`` gives the local index of one."""
    return {
        end.name: Hold(
            f"{article}{end.name} end",
            nodes(end.name),
            end.kind,
            held_components(end.name, end.kind),
        )
        for end in ends
        if end.kind != "free"
    }


def check_sliding(holds: Sequence[Hold], separate: bool) -> None:
    """Raise ``ValueError`` for sliding ends, where methods move poses by velocities in the body frame."""
    # A condition on some directions of space is none on components in the body frame.
    if not separate and any(isinstance(hold.kind, Sliding) for hold in holds):
        raise ValueError(
            "system: a Sliding end needs a section whose inertia does not couple rotation and "
            "translation here; take GeneralizedAlpha"
        )


class HeldNodes(Held):
    """Given motions of some nodes of rods."""

    # `turn` gives the rotation of a relative quaternion as the solver counts it, by default its
    # Cayley vector; `increment` has it, with the translation in space. `moved` is 1 at the
    # components that are prescribed in time, 0 elsewhere.
    def __init__(
        self,
        motion: Motion,
        holds: Sequence[Hold],
        turn: Callable[[Expr], Expr] = quaternion.cay_inverse,
    ) -> None:
        self._motion, self.holds, self._turn = motion, tuple(holds), turn
        space = motion.space
        names = ("increment", "velocity", "acceleration", "moved")
        self.increment, self.v, self.a, self.moved = (Function(space, name=n) for n in names)
        self.dofs = [np.concatenate([hold.dofs for hold in self.holds])]
        self._moving = [hold for hold in self.holds if hold.pose is not None]
        for hold in self._moving:
            self.moved.dat.data_wo_with_halos.reshape(-1)[hold.dofs] = 1.0
        self.varies = bool(self._moving)
        self.expressions()  # a wrong function is refused when the beam is made

    def expressions(self) -> tuple[Expr, ...]:
        """The given positions and orientations."""
        poses = (hold.pose.pose(self._motion.time) for hold in self._moving)
        return tuple(part for pose in poses for part in pose if part is not None)

    @cached_property
    def _update(self) -> PointwiseUpdate:
        return PointwiseUpdate(self.assignments(self._motion.time))

    def update(self) -> None:
        if self.varies:
            self._update.apply()
        for hold in self._moving:
            values = self.increment.dat.data_ro_with_halos.reshape(-1)[hold.dofs]
            if self._motion.comm.allreduce(int(not np.all(np.isfinite(values)))):
                t = float(self._motion.time.dat.data_ro[0])
                # The Cayley vector of half a turn is infinite.
                given = np.concatenate([self.orientations()[0].ravel(), values[hold.dofs % 6 > 2]])
                if not self._motion.comm.allreduce(int(not np.all(np.isfinite(given)))):
                    raise SolveFailed(
                        f"{hold}, but is elsewhere, half a turn away, at t = {t:.8g}",
                        remedy="put it where the given pose begins, and let it turn less in a step",
                    )
                raise SolveFailed(
                    f"{hold}, but the given values are not finite at t = {t:.8g}",
                    remedy="give finite positions, and quaternions that are not zero",
                )

    @cached_property
    def _oriented(self) -> tuple[list[tuple[Field, np.ndarray]], PointwiseUpdate | None]:
        orientation = self._motion.configuration[1]
        space = orientation.function_space()
        poses = [(Function(space), hold) for hold in self._moving if 0 in hold.components]
        given = {f: hold.pose.pose(self._motion.time)[1] for f, hold in poses}
        dofs = [(4 * hold.nodes[:, None] + np.arange(4)).ravel() for _, hold in poses]
        fields = [(Field(f), d) for (f, _), d in zip(poses, dofs, strict=True)]
        fields += [(Field(orientation), d) for d in dofs]
        return fields, PointwiseUpdate(given) if given else None

    def orientations(self) -> np.ndarray:
        """The given quaternions at the motion's time and the present ones, (2, nodes of this rank, 4)."""
        fields, update = self._oriented
        if update is None:
            return np.empty((2, 0, 4))
        update.apply()
        return np.concatenate([f.at(dofs) for f, dofs in fields]).reshape(2, -1, 4)

    def assignments(self, t: Expr) -> dict[Function, Expr]:
        targets = self.increment, self.v, self.a
        found = [[f[k] for k in range(6)] for f in targets]
        for hold in self._moving:
            there = private(Function(self._motion.space, name="the given node"))
            there.dat.data_wo_with_halos.reshape(-1)[hold.dofs] = 1.0
            wanted = needed(self._motion.configuration, hold.pose, self._turn, t)
            for values, value in zip(found, wanted, strict=True):
                for k in hold.components.tolist():
                    values[k] = ufl.conditional(ufl.gt(there[k], 0.5), value[k], values[k])
        return {f: ufl.as_vector(values) for f, values in zip(targets, found, strict=True)}

    def put(self) -> None:
        """Set pose and velocity of the held nodes to the given ones."""
        self.update()
        if self.varies:
            self._motion.displace(self.increment)
        (dofs,) = self.dofs
        v = self._motion.v.dat.data_with_halos.reshape(-1)
        v[dofs] = self.v.dat.data_ro_with_halos.reshape(-1)[dofs]

    def fixed(self):
        position, orientation = self._motion.configuration
        found = [(self._motion.v, self.dofs[0])]
        for hold in self._moving:
            for f, first in ((orientation, 0), (position, 3)):
                size = f.dat.cdim
                if first in hold.components:
                    dofs = size * hold.nodes[:, None] + np.arange(size)[None, :]
                    found.append((f, dofs.ravel()))
        return found

    def check_start(self) -> None:
        """Raise ``ValueError`` if a held node starts elsewhere, or with another velocity."""
        self._check_pose(_CONSISTENT)
        velocity = self._motion.v.dat.data_ro_with_halos.reshape(-1)
        wanted = self.v.dat.data_ro_with_halos.reshape(-1)
        for hold in self.holds:
            gap = np.abs(velocity - wanted)[hold.dofs].max(initial=0.0)
            speed = np.abs(velocity).max(initial=1.0)
            if not largest(self._motion.comm, gap / speed) <= _CONSISTENT:
                raise ValueError(
                    f"{hold}, but starts with another velocity there; set the velocity of that node "
                    "accordingly"
                )

    def check_new_configuration(self) -> None:
        if self.varies:
            self._check_pose(_NEAR)

    def _check_pose(self, bound: float) -> None:
        """Raise ``ValueError`` if a held node is elsewhere, by a bound in radians and sizes of the rods."""
        sizes = self._checked_sizes()
        away = np.abs(self.increment.dat.data_ro_with_halos.reshape(-1))
        for hold in self.holds:
            if not largest(self._motion.comm, (away / sizes)[hold.dofs]) <= bound:
                raise ValueError(
                    f"{hold}, but starts elsewhere; put it where the given pose begins"
                )

    def warn_of_turning(self, scale: float) -> None:
        """Warn if a given pose turns at present; ``scale`` is a squared frequency."""
        # Centrifugal forces stiffen the beam then; a constant velocity changes nothing. In statics the
        # time may be a parameter alone.
        self._checked_sizes()
        v = self.v.dat.data_ro_with_halos.reshape(-1)
        for hold in self._moving:
            rate = np.abs(v[hold.dofs[hold.dofs % 6 < 3]]).max(initial=0.0)
            if not largest(self._motion.comm, rate**2) <= _CONSISTENT * scale:
                warnings.warn(
                    f"{hold}, which turns at t = {float(self._motion.time.dat.data_ro[0]):.8g}: modes "
                    "are those of a support at rest, without centrifugal and gyroscopic forces",
                    stacklevel=4,
                )

    def _checked_sizes(self) -> np.ndarray:
        """The sizes of components, 1 and the extent of the whole; ``ValueError`` if a pose is not finite."""
        try:
            self.update()
        except SolveFailed as failure:
            raise ValueError(f"{failure}; {failure.remedy}") from failure
        position = self._motion.configuration[0].dat.data_ro_with_halos
        extent = largest(self._motion.comm, position) or 1.0
        return np.where(np.arange(self.v.dat.data_ro_with_halos.size) % 6 < 3, 1.0, extent)


def needed(start: Pose, pose: GivenPose, as_vector, t: Expr) -> tuple[Expr, Expr, Expr]:
    """Increment from a pose, velocity and acceleration of a given pose at a time, at all nodes."""
    x, q = start
    zero, t = ufl.zero(3), ufl.variable(t)
    position, orientation = pose.pose(t)
    turn, turning, turning_rate, shift, drift, drift_rate = (zero,) * 6
    if orientation is not None:
        turn = as_vector(quaternion.product(quaternion.conjugate(q), orientation))
        turning = spin(orientation, _rate(orientation, t))
        turning_rate = _rate(turning, t)
    if position is not None:
        shift = position - x
        drift = _rate(position, t)
        drift_rate = _rate(drift, t)
    return join(turn, shift), join(turning, drift), join(turning_rate, drift_rate)


def _rate(value: Expr, t: Expr) -> Expr:
    return expand_derivatives(ufl.diff(value, t))
