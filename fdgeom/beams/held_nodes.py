"""Nodes of rods that are held or moved in a prescribed way, as the steppers of motions see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import ufl
from firedrake import Function
from mpi4py import MPI
from ufl.algorithms import expand_derivatives
from ufl.core.expr import Expr

from fdgeom.beams.ends import HELD, GivenPose, Sliding
from fdgeom.lie import quaternion
from fdgeom.lie.operands import join
from fdgeom.solvers.pointwise import PointwiseUpdate

if TYPE_CHECKING:
    from fdgeom.beams.rod.rod_motion import RodMotion

# Of the size of the rods and their velocities: a start set from the same formula is off by round-off.
_CONSISTENT = 1e-9


@dataclass(frozen=True)
class Hold:
    """A node and how it is held.

    Attributes
    ----------
    name : str
        What to call it in an error.
    nodes : numpy.ndarray of int
        Its local index, if this rank has it (as its own or as a ghost).
    kind : "clamped", "pinned", Sliding or GivenPose
        How it is held.
    """

    name: str
    nodes: np.ndarray
    kind: str | Sliding | GivenPose

    @property
    def components(self) -> np.ndarray:
        """What is held of (rotation in the body frame, translation in space)."""
        named = isinstance(self.kind, str)
        return np.array(HELD[self.kind] if named else self.kind.components, dtype=int)

    @property
    def dofs(self) -> np.ndarray:
        """The held degrees of freedom, into flat local values of 6 a node."""
        return (6 * self.nodes[:, None] + self.components[None, :]).ravel()


class HeldNodes:
    """Given motions of some nodes: where they should be, their velocity and acceleration.

    Parameters
    ----------
    motion : RodMotion
        Whose nodes.
    holds : sequence of Hold
        Which, and how.

    Attributes
    ----------
    displacement : Function
        After :meth:`update`: what takes the present configuration to where the held nodes should be
        at the motion's time (rotation as a Cayley vector, translation in space).
    v, a : Function
        Velocity and acceleration there; zero elsewhere.
    moved : Function
        1 at the components that are prescribed in time, 0 elsewhere.
    moves : bool
        Whether there are such.
    """

    def __init__(self, motion: RodMotion, holds: Sequence[Hold]) -> None:
        self._motion, self._holds = motion, tuple(holds)
        space = motion.space
        names = ("displacement", "velocity", "acceleration")
        self.displacement, self.v, self.a = (Function(space, name=name) for name in names)
        found = [hold.dofs for hold in self._holds]
        #: Held degrees of freedom, one array for each part of the space (which has one).
        self.dofs = [np.concatenate(found) if found else np.array([], dtype=int)]
        self.moved = Function(space, name="moved")
        self._updates = []
        for hold in self._holds:
            if isinstance(hold.kind, GivenPose):
                self.moved.dat.data_wo_with_halos.reshape(-1)[hold.dofs] = 1.0
                scratch = tuple(Function(space) for _ in range(3))
                update = PointwiseUpdate(dict(zip(scratch, self._needed(hold.kind), strict=True)))
                self._updates.append((hold, scratch, update))
        self.moves = bool(self._updates)

    def _needed(self, kind: GivenPose) -> tuple[Expr, Expr, Expr]:
        motion, zero = self._motion, ufl.zero(3)
        t = ufl.variable(motion.time)
        position, orientation = kind.pose(t)
        turn, spin, spin_rate, shift, drift, drift_rate = (zero,) * 6
        if orientation is not None:
            relative = quaternion.product(quaternion.conjugate(motion.orientation), orientation)
            turn = quaternion.cay_inverse(relative)
            rate = quaternion.product(quaternion.conjugate(orientation), _rate(orientation, t))
            spin = 2 * ufl.as_vector([rate[1], rate[2], rate[3]])
            spin_rate = _rate(spin, t)
        if position is not None:
            shift = position - motion.position
            drift = _rate(position, t)
            drift_rate = _rate(drift, t)
        return join(turn, shift), join(spin, drift), join(spin_rate, drift_rate)

    def expressions(self) -> tuple[Expr, ...]:
        """The given positions and orientations."""
        kinds = [hold.kind for hold, _, _ in self._updates]
        poses = (part for kind in kinds for part in kind.pose(self._motion.time))
        return tuple(part for part in poses if part is not None)

    def update(self) -> None:
        """Evaluate the given motions at the motion's time, from its present configuration."""
        for hold, scratch, update in self._updates:
            update.apply()
            for target, source in zip((self.displacement, self.v, self.a), scratch, strict=True):
                flat = target.dat.data_wo_with_halos.reshape(-1)
                flat[hold.dofs] = source.dat.data_ro_with_halos.reshape(-1)[hold.dofs]

    def put(self) -> None:
        """Move the held nodes to where they should be, with the velocity that they should have."""
        self.update()
        if self.moves:
            self._motion.displace(self.displacement)
        (dofs,) = self.dofs
        v = self._motion.v.dat.data_with_halos.reshape(-1)
        v[dofs] = self.v.dat.data_ro_with_halos.reshape(-1)[dofs]

    def check_start(self) -> None:
        """Raise ``ValueError`` if a held node starts elsewhere, or with another velocity."""
        self.update()
        motion = self._motion
        velocity = motion.v.dat.data_ro_with_halos.reshape(-1)
        wanted = self.v.dat.data_ro_with_halos.reshape(-1)
        away = np.abs(self.displacement.dat.data_ro_with_halos.reshape(-1))
        for hold in self._holds:
            gap = np.abs(velocity - wanted)[hold.dofs].max(initial=0.0)
            speed = np.abs(velocity).max(initial=1.0)
            if not self._largest(gap / speed) <= _CONSISTENT:
                raise ValueError(
                    f"{hold.name} is {_called(hold.kind)}, but starts with another velocity there; "
                    "set the velocity of that node accordingly"
                )
            size = np.abs(motion.position.dat.data_ro_with_halos).max(initial=1.0)
            if not self._largest(away[hold.dofs].max(initial=0.0) / size) <= _CONSISTENT:
                raise ValueError(
                    f"{hold.name} is {_called(hold.kind)}, but starts elsewhere; put it where the "
                    "given pose begins"
                )

    def _largest(self, value: float) -> float:
        return self._motion.comm.allreduce(float(value), op=MPI.MAX)


def _called(kind) -> str:
    return kind if isinstance(kind, str) else repr(kind)


def _rate(value: Expr, t: Expr) -> Expr:
    return expand_derivatives(ufl.diff(value, t))
