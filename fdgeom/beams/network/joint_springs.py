"""Springs and dampers in the joints of a network: their energy and their work."""

from collections.abc import Iterator

import numpy as np
import ufl
from ufl.classes import Expr, Form

from fdgeom.beams.network.joint import Joint, Revolute, Side, Spherical
from fdgeom.beams.network.joint_set import JointSet
from fdgeom.beams.rod.cells import Cells
from fdgeom.beams.rod.variation import Pose, rate
from fdgeom.lie import halves
from fdgeom.lie.arrays import quaternion
from fdgeom.solvers import SolveFailed


class JointSprings:
    """The springs and dampers of joints."""

    def __init__(self, joints: JointSet) -> None:
        self._set, self._cells = joints, Cells(joints.space.mesh())
        self._hinges = [
            k for k, j in enumerate(joints.joints) if isinstance(j, Revolute) and j.stiffness
        ]
        self._start = self._turned() if self._hinges else None
        sign = np.where(joints.swapped, -1.0, 1.0)
        stiffness = np.array([joint.stiffness for joint in joints.joints])
        damping = np.array([joint.damping for joint in joints.joints])
        # A shift is seen from the first side, an angle about its axis: both change sign.
        rest = sign * np.array([joint.rest for joint in joints.joints])
        self._has_springs, self._has_dampers = bool(stiffness.any()), bool(damping.any())
        self._stiffness, self._damping, self._rest = (
            joints.field(values, "spring") for values in (stiffness, damping, rest)
        )

    def _turned(self) -> np.ndarray:
        """The relative quaternions of the two ends of each hinge with a spring."""
        first, second = self._set.orientations()[:, self._hinges]
        return quaternion.product(quaternion.conjugate(first), second)

    def half_cosines(self) -> np.ndarray | None:
        """Cosines of half the angles, whose sign changes where an angle passes half a turn."""
        return None if self._start is None else (self._start * self._turned()).sum(axis=1)

    def check_half_turns(self, before: np.ndarray) -> None:
        """Raise SolveFailed if an angle has passed half a turn, where the moment would jump."""
        for k, passed in zip(self._hinges, before * self.half_cosines() < 0, strict=True):
            if passed:
                raise SolveFailed(
                    f"the angle of joints[{k}], {self._set.joints[k]!r}, passes half a turn (pi) in "
                    "it, where the moment of its spring would change its sign",
                    remedy="end the run before, or take a stiffer spring or a joint without one",
                )

    def potential(self, configuration: Pose) -> Form:
        """Energy of the springs."""
        return self._set.sum(self._energy(*self._set.ends(configuration)))

    def work(self, configuration: Pose, v: Expr, w: Expr) -> Form:
        """Virtual work of springs and dampers against the motion."""
        joints, work = self._set, ufl.as_ufl(0.0)
        if self._has_springs:
            work += rate(lambda s: self._energy(*joints.displaced(configuration, s * w)))
        if self._has_dampers:
            work += self._damping * self._dissipation(configuration, v, w)
        return joints.sum(work)

    def _energy(self, a: Side, b: Side) -> Expr:
        if not self._has_springs:
            return ufl.as_ufl(0.0)
        a, b = self._set.sides(a, b)
        energy = ufl.as_ufl(0.0)
        for kind, mask in self._sprung("stiffness"):
            energy += mask * kind.potential(a, b, self._stiffness, self._rest)
        return energy

    def _sprung(self, name: str) -> Iterator[tuple[type[Joint], Expr]]:
        """Kinds of joints with a spring or damper, each with its mask."""
        for kind, mask in self._set.kinds:
            joints = self._set.joints
            if any(getattr(joint, name) for joint in joints if isinstance(joint, kind)):
                yield kind, mask

    def _dissipation(self, configuration: Pose, v: Expr, w: Expr) -> Expr:
        """Relative velocity along v times that along w, in the free coordinates of the joints."""
        work = ufl.as_ufl(0.0)
        for kind, mask in self._sprung("damping"):
            if kind is Spherical:
                work += mask * ufl.dot(
                    self._turning(configuration, v), self._turning(configuration, w)
                )
                continue
            v_rate, w_rate = (self._rate(kind, configuration, u) for u in (v, w))
            work += mask * v_rate * w_rate
        return work

    def _rate(self, kind: type[Joint], configuration: Pose, v: Expr) -> Expr:
        """Rate of a joint's coordinate along a velocity."""
        joints = self._set

        def moved(s: Expr) -> Expr:
            return kind.coordinate(*joints.sides(*joints.displaced(configuration, s * v)))

        return rate(moved)

    def _turning(self, configuration: Pose, v: Expr) -> Expr:
        """Angular velocity of the second end relative to the first, in space."""
        (_, p), (_, q) = self._set.ends(configuration)
        first, second = self._cells.ends(v)
        return ufl.dot(q, halves(second, "v")[0]) - ufl.dot(p, halves(first, "v")[0])
