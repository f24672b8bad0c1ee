"""All joints of a network as UFL: conditions, their derivatives, springs and dampers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import ufl
from firedrake import CellVolume, Constant, VectorFunctionSpace, dx
from ufl.algorithms import expand_derivatives, replace
from ufl.classes import Form
from ufl.core.expr import Expr

from fdgeom.beams.network.joint import Joint, Side, Spherical, triad
from fdgeom.beams.network.network import Network
from fdgeom.beams.rod.cells import Cells
from fdgeom.beams.rod.variation import Pose, displaced, rate
from fdgeom.lie import quaternion
from fdgeom.lie.operands import halves


class JointSet:
    """The joints of a network.

    Parameters
    ----------
    network : Network
        The mesh, of which the joints are cells.
    joints : sequence of Joint
        The joints, at least one.
    owners : numpy.ndarray of int
        0 or 1 for each joint: which of its nodes carries the multiplier.
    rotations : numpy.ndarray, shape (nodes, 3, 3)
        Rotation matrices of all nodes at the start: the triads of both sides agree there.

    Attributes
    ----------
    size : int
        Most conditions of a joint, m.
    space : FunctionSpace
        CG1 with m components, of the multiplier.
    idle : numpy.ndarray of int
        Flat local degrees of freedom of that space that belong to no condition.
    """

    def __init__(
        self,
        network: Network,
        joints: Sequence[Joint],
        owners: np.ndarray,
        rotations: np.ndarray,
    ) -> None:
        self.joints, self._network = tuple(joints), network
        self.size = max(joint.size for joint in joints)
        mesh = network.mesh
        self.space = VectorFunctionSpace(mesh, "CG", 1, dim=self.size)
        self._cells = Cells(mesh)
        self._measure = dx(domain=mesh, degree=0)
        # The first end of a cell has the smaller number.
        self._swapped = network.ends[:, 0] > network.ends[:, 1]
        self.owner_nodes = network.ends[np.arange(len(joints)), owners]
        self._kinds = sorted({type(joint) for joint in joints}, key=lambda kind: kind.__name__)
        masks = [[isinstance(j, kind) for j in joints] for kind in self._kinds]
        self._masks = [self._field(np.array(m, dtype=float), "joints") for m in masks]
        self._any = self._field(np.ones(len(joints)), "joints")
        self._owner = self._field(np.array(owners != self._swapped, dtype=float), "owner")
        self._first, self._second = self._triads(rotations)
        self._springs = self._numbers()
        self.idle = self._idle()

    # --- fields of the joints ------------------------------------------------------------------------
    def _field(self, values: np.ndarray, name: str, elsewhere: float = 0.0):
        """A DG0 function: a value for each joint."""
        total = len(self._network.cells)
        found = np.full((total, *values.shape[1:]), elsewhere)
        found[self._network.pieces :] = values
        return self._network.cellwise(found, name)

    def _triads(self, rotations: np.ndarray) -> tuple[Expr | None, Expr | None]:
        """The joints' triads in the sections of the two ends: 3×3, constant in each joint."""
        if all(isinstance(joint, Spherical) and not joint.stiffness for joint in self.joints):
            return None, None
        network, found = self._network, []
        for k in range(2):
            values = np.tile(np.eye(3), (len(network.cells), 1, 1))
            for i, joint in enumerate(self.joints):
                node = np.sort(network.ends[i])[k]
                values[network.pieces + i] = rotations[node].T @ triad(joint.axis)
            found.append(network.packed(values, "triads", cells=True))
        return tuple(found)

    def _numbers(self):
        """Stiffness, damping and rest of each joint, for the kinds that have any."""
        sign = np.where(self._swapped, -1.0, 1.0)
        stiffness = np.array([joint.stiffness for joint in self.joints])
        damping = np.array([joint.damping for joint in self.joints])
        rest = sign * np.array([joint.rest for joint in self.joints])
        # A shift is seen from the first side, an angle about its axis: both change sign.
        fields = (self._field(values, "spring") for values in (stiffness, damping, rest))
        return bool(stiffness.any()), bool(damping.any()), tuple(fields)

    def _idle(self) -> np.ndarray:
        used = np.zeros((len(self._network.numbering.coordinates), self.size), dtype=bool)
        for joint, node in zip(self.joints, self.owner_nodes, strict=True):
            used[node, : joint.size] = True
        return np.flatnonzero(~used[self._network.numbering.nodes].ravel())

    # --- in a joint ----------------------------------------------------------------------------------
    def ends(self, configuration: Pose) -> tuple[Side, Side]:
        """Position (3) and rotation matrix (3×3) of the two ends of a cell."""
        ends = zip(*(self._cells.ends(part) for part in configuration), strict=True)
        (x, p), (y, q) = ends
        return (x, quaternion.matrix(p)), (y, quaternion.matrix(q))

    def at_cell(self, multiplier: Expr) -> Expr:
        """A multiplier's value (m) in the cell of a joint."""
        first, second = self._cells.ends(multiplier)
        return first + self._owner * (second - first)

    def sides(self, a: Side, b: Side) -> tuple[Side, Side]:
        """The same with the joint's triads instead of the sections' rotations."""
        if self._first is None:
            return a, b
        return (a[0], ufl.dot(a[1], self._first)), (b[0], ufl.dot(b[1], self._second))

    def constraints(self, a: Side, b: Side) -> Expr:
        """What vanishes (m), of (position, rotation matrix) of the two ends; zero where unused.

        A polynomial of at most second degree in positions and rotation matrices.
        """
        total = [ufl.as_ufl(0.0)] * self.size
        a, b = self.sides(a, b)
        for kind, mask in zip(self._kinds, self._masks, strict=True):
            for k, value in enumerate(kind.constraints(a, b)):
                total[k] += mask * value if len(self._kinds) > 1 else value
        return ufl.as_vector(total)

    def sum(self, density: Expr) -> Form:
        """The sum of a density over the joints."""
        if isinstance(density, ufl.classes.Zero):
            return Form([])
        return self._any / CellVolume(self._network.mesh) * density * self._measure

    # --- forms -----------------------------------------------------------------------------------------
    def value(self, nu: Expr, configuration: Pose) -> Form:
        """ν·Φ(g), over all joints."""
        return self.sum(ufl.dot(self.at_cell(nu), self.constraints(*self.ends(configuration))))

    def slope(self, nu: Expr, w: Expr, configuration: Pose) -> Form:
        """ν·B(g)w: with ν = λ the work of the joints' forces, with w = v the rate of Φ."""
        slope = rate(lambda s: self.constraints(*self._displaced(configuration, s * w)))
        return self.sum(ufl.dot(self.at_cell(nu), slope))

    def turning(self, nu: Expr, v: Expr, configuration: Pose) -> Form:
        """ν·(d²Φ/dt² without the acceleration): of a motion with the constant velocity v."""
        s = ufl.variable(Constant(0.0))
        moved = self.constraints(*self._displaced(configuration, s * v))
        second = expand_derivatives(ufl.diff(ufl.diff(moved, s), s))
        second = replace(second, {s: ufl.as_ufl(0.0)})
        return self.sum(ufl.dot(self.at_cell(nu), second))

    def potential(self, configuration: Pose) -> Form:
        """Energy of the springs."""
        return self.sum(self._potential(*self.ends(configuration)))

    def spring_work(self, configuration: Pose, v: Expr, w: Expr) -> Form:
        """Virtual work of springs and dampers against the motion."""
        has_springs, has_dampers, (_, damping, _) = self._springs
        work = ufl.as_ufl(0.0)
        if has_springs:
            work += rate(lambda s: self._potential(*self._displaced(configuration, s * w)))
        if has_dampers:
            work += damping * self._dissipation(configuration, v, w)
        return self.sum(work)

    # --- springs and dampers -----------------------------------------------------------------------------
    def _potential(self, a: Side, b: Side) -> Expr:
        has_springs, _, (stiffness, _, rest) = self._springs
        if not has_springs:
            return ufl.as_ufl(0.0)
        a, b = self.sides(a, b)
        energy = ufl.as_ufl(0.0)
        for kind, mask in self._sprung("stiffness"):
            energy += mask * kind.potential(a, b, stiffness, rest)
        return energy

    def _sprung(self, name: str):
        """Kinds of which some joint has a spring or damper, and where they are."""
        for kind, mask in zip(self._kinds, self._masks, strict=True):
            if any(getattr(joint, name) for joint in self.joints if isinstance(joint, kind)):
                yield kind, mask

    def _dissipation(self, configuration: Pose, v: Expr, w: Expr) -> Expr:
        """Relative velocity along v times that along w, in what moves in the joints."""
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

        def moved(s: Expr) -> Expr:
            return kind.coordinate(*self.sides(*self._displaced(configuration, s * v)))

        return rate(moved)

    def _turning(self, configuration: Pose, v: Expr) -> Expr:
        """Angular velocity of the second end relative to the first, in space."""
        (_, p), (_, q) = self.ends(configuration)
        first, second = self._cells.ends(v)
        return ufl.dot(q, halves(second, "v")[0]) - ufl.dot(p, halves(first, "v")[0])

    # --- numbers -----------------------------------------------------------------------------------------
    def at_sides(self, values) -> np.ndarray:
        """Values (DG1) on the first and the second side of each joint, (joints, 2, ...)."""
        found = self._network.at_ends(values)[self._network.pieces :]
        found[self._swapped] = found[self._swapped, ::-1]
        return found

    def _displaced(self, configuration: Pose, displacement: Expr) -> tuple[Side, Side]:
        a, b = zip(*(self._cells.ends(part) for part in configuration), strict=True)
        first, second = self._cells.ends(displacement)
        (x, p), (y, q) = displaced(a, first), displaced(b, second)
        return (x, quaternion.matrix(p)), (y, quaternion.matrix(q))
