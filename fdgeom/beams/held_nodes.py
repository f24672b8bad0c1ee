"""Held nodes of rods, and nodes with a given motion, for the steppers of motions."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import ufl
from firedrake import Function
from mpi4py import MPI
from ufl.algorithms import expand_derivatives
from ufl.core.expr import Expr

from fdgeom.beams.ends import GivenPose, Sliding, held_components
from fdgeom.beams.rod.variation import spin
from fdgeom.errors import SolveFailed
from fdgeom.execution import PointwiseUpdate
from fdgeom.lie import join, quaternion
from fdgeom.operations.dependent import private
from fdgeom.systems.motion.held import Held
from fdgeom.systems.motion.motion import Motion

# Of the size of the rods, their velocities and frequencies: a start set from the same formula is off by
# round-off.
_CONSISTENT = 1e-9
# Of the size of the rods: steps on strain and momentum leave an end so near its given pose.
_NEAR = 1e-3


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
    def pose(self) -> GivenPose | None:
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
            needed = self.increment.dat.data_ro_with_halos.reshape(-1)[hold.dofs]
            if self._motion.comm.allreduce(int(not np.all(np.isfinite(needed)))):
                t = float(self._motion.time.dat.data_ro[0])
                raise SolveFailed(
                    f"{hold}, but the given values are not finite at t = {t:.8g}",
                    remedy="give finite positions, and quaternions that are not zero",
                )

    @cached_property
    def _oriented(self) -> tuple[list[tuple[Function, Hold]], PointwiseUpdate]:
        space = self._motion.configuration[1].function_space()
        poses = [(Function(space), hold) for hold in self._moving if 0 in hold.components]
        given = {f: hold.pose.pose(self._motion.time)[1] for f, hold in poses}
        return poses, PointwiseUpdate(given)

    def orientations(self) -> np.ndarray:
        """The given quaternions at the motion's time, (nodes of this rank, 4)."""
        if not any(0 in hold.components for hold in self._moving):
            return np.empty((0, 4))
        poses, update = self._oriented
        update.apply()
        return np.concatenate([f.dat.data_ro_with_halos[hold.nodes] for f, hold in poses])

    def assignments(self, t: Expr) -> dict[Function, Expr]:
        targets = self.increment, self.v, self.a
        found = [[f[k] for k in range(6)] for f in targets]
        for hold in self._moving:
            there = private(Function(self._motion.space, name="the given node"))
            there.dat.data_wo_with_halos.reshape(-1)[hold.dofs] = 1.0
            for values, needed in zip(found, _needed(self._motion, hold.pose, self._turn, t),
                                      strict=True):  # fmt: skip
                for k in hold.components.tolist():
                    values[k] = ufl.conditional(ufl.gt(there[k], 0.5), needed[k], values[k])
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
            if not self._largest(gap / speed) <= _CONSISTENT:
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
            if not self._largest((away / sizes)[hold.dofs].max(initial=0.0)) <= bound:
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
            if not self._largest(rate**2) <= _CONSISTENT * scale:
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
        extent = self._largest(np.abs(position).max(initial=0.0)) or 1.0
        return np.where(np.arange(self.v.dat.data_ro_with_halos.size) % 6 < 3, 1.0, extent)

    def _largest(self, value: float) -> float:
        return self._motion.comm.allreduce(float(value), op=MPI.MAX)


def _needed(motion: Motion, pose: GivenPose, as_vector, t: Expr) -> tuple[Expr, Expr, Expr]:
    """Increment, velocity and acceleration of a given pose at a time, at all nodes."""
    x, q = motion.configuration
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
