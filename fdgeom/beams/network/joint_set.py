"""All joints of a network: their conditions, their springs and the nodes of their multipliers."""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property

import numpy as np
import ufl
from firedrake import (
    CellVolume,
    Constant,
    Function,
    TestFunction,
    TrialFunction,
    VectorFunctionSpace,
    assemble,
    dx,
)
from petsc4py import PETSc
from ufl.algorithms import expand_derivatives, replace
from ufl.classes import Expr, Form

from fdgeom.beams.network.joints import (
    Joint,
    Prismatic,
    Revolute,
    Rigid,
    Side,
    Spherical,
    triad,
)
from fdgeom.beams.network.network import Network
from fdgeom.beams.rod.cells import Cells
from fdgeom.beams.rod.variation import Pose, displaced, rate
from fdgeom.data import largest
from fdgeom.errors import SolveFailed
from fdgeom.execution import VectorAssembly
from fdgeom.lie import arrays, halves, quaternion
from fdgeom.line import inside_of, mark_links
from fdgeom.systems.constrained.constraint import LOOSE, deficiency, row_sums
from fdgeom.systems.motion.condition import Condition
from fdgeom.systems.motion.motion import Motion

#: Joints whose conditions are the same for their places in the other order.
_SYMMETRIC = (Spherical, Revolute, Prismatic, Rigid)
# Of the size of the beams and their velocities: what a start may miss the conditions by.
_CONSISTENT = 1e-9
# Of the same: steps of order two leave rates of the order Δt².
_AFTER_STEPS = 1e-2
# Slower motions, in lengths and radians per unit of time, count as rest.
_REST = 1e-6


class JointSet(Condition):
    """The joints of a network: Φ(g) = 0 of all of them, with a multiplier at a node of each, and their
    springs and dampers.
    """

    # `fixed`: the nodes that are held. The field `owner` says which node of a joint, by their
    # numbers, carries the multiplier. `swapped`: joints with their first place at the second end
    # of their cell. `rotations` (nodes, 3, 3) are those at the start, where the triads of both
    # sides agree. `size` is the number of components of the multiplier, the most conditions of a
    # joint; `kinds` are classes of joints, each with its mask.
    def __init__(
        self,
        motion: Motion,
        network: Network,
        joints: Sequence[Joint],
        fixed: Collection[int],
        rotations: np.ndarray,
    ) -> None:
        self._motion, self._network = motion, network
        self.joints = tuple(joints)
        self.size = max(joint.size for joint in joints)
        mesh, owners = network.mesh, _owners(network.ends, fixed, joints)
        self.space = VectorFunctionSpace(mesh, "CG", 1, dim=self.size)
        self.multiplier = Function(self.space, name="multiplier")
        self._cells = Cells(mesh)
        self._measure = dx(domain=mesh, degree=0)
        # The first end of a cell has the smaller number.
        self.swapped = network.ends[:, 0] > network.ends[:, 1]
        kinds = sorted({type(joint) for joint in joints}, key=lambda kind: kind.__name__)
        masks = [np.array([type(j) is kind for j in joints], dtype=float) for kind in kinds]
        self.kinds = [
            (kind, self.field(mask, "joints")) for kind, mask in zip(kinds, masks, strict=True)
        ]
        self._any = self.field(np.ones(len(joints)), "joints")
        mark_links(mesh, inside_of(mesh), self._any)
        self.owner = self.field(np.array(owners != self.swapped, dtype=float), "owner")
        self.rotations, self.idle = rotations, self._idle(owners)
        self._first, self._second = self._triads()
        shared = [triad(joint.axis)[:, list(joint.shared)] for joint in joints]
        #: Projections (3×3, in space at the start) to the shared axes of each joint.
        self._shared = np.array([axes @ axes.T for axes in shared])
        self._set_springs()

    def _set_springs(self) -> None:
        joints = self.joints
        self._hinges = [k for k, j in enumerate(joints) if isinstance(j, Revolute) and j.stiffness]
        self._start = self._turned() if self._hinges else None
        stiffness, damping, rest = (
            np.array([getattr(joint, name) for joint in joints])
            for name in ("stiffness", "damping", "rest")
        )
        # A shift is seen from the first side, an angle about its axis: both change sign.
        own = np.array([type(joint) in _SYMMETRIC for joint in joints])
        rest = np.where(self.swapped & own, -1.0, 1.0) * rest
        self._stiffness, self._damping, self._rest = (
            self.field(values, "spring") for values in (stiffness, damping, rest)
        )

    # --- fields of the joints ------------------------------------------------------------------------
    def field(self, values: np.ndarray, name: str) -> Function:
        """A DG0 function: a value for each joint, and zero elsewhere."""
        found = np.zeros((len(self._network.cells), *values.shape[1:]))
        found[self._network.pieces :] = values
        return self._network.field(found, name, cells=True)

    def _triads_of(self, number: int) -> np.ndarray:
        """The triads of a joint in the sections of its two ends, the smaller node first: (2, 3, 3)."""
        nodes = np.sort(self._network.ends[number])
        return self.rotations[nodes].swapaxes(1, 2) @ triad(self.joints[number].axis)

    def fixed_axes(self, number: int) -> np.ndarray:
        """The axes that a joint's conditions or its spring fix in the sections of its ends: (2, 3, n)."""
        joint = self.joints[number]
        axes = (0, 1, 2) if joint.stiffness or not joint.shared else joint.shared
        if type(joint) is Spherical and not joint.stiffness:
            axes = ()
        return self._triads_of(number)[..., list(axes)]

    def _triads(self) -> tuple[Expr, Expr]:
        """The joints' triads in the sections of the two ends: 3×3, constant in each joint."""
        network = self._network
        values = np.tile(np.eye(3), (2, len(network.cells), 1, 1))
        for i in range(len(self.joints)):
            values[:, network.pieces + i] = self._triads_of(i)
        first, second = (network.packed(v, "triads", cells=True) for v in values)
        return first, second

    def _idle(self, owners: np.ndarray) -> np.ndarray:
        used = np.zeros((len(self._network.numbering.coordinates), self.size), dtype=bool)
        for joint, ends, owner in zip(self.joints, self._network.ends, owners, strict=True):
            used[ends[owner], : joint.size] = True
        return np.flatnonzero(~used[self._network.numbering.nodes].ravel())

    # --- in a joint ----------------------------------------------------------------------------------
    def ends(self, configuration: Pose) -> tuple[Side, Side]:
        """Position (3) and rotation matrix (3×3) of the two ends of a cell."""
        (x, y), (p, q) = (self._cells.ends(part) for part in configuration)
        return (x, quaternion.matrix(p)), (y, quaternion.matrix(q))

    def at_cell(self, multiplier: Expr) -> Expr:
        """A multiplier's value (m) in the cell of a joint."""
        first, second = self._cells.ends(multiplier)
        return first + self.owner * (second - first)

    def sides(self, kind: type[Joint], a: Side, b: Side) -> tuple[Side, Side]:
        """Positions and triads of the joint at its two places, from those of the ends of its cell."""
        a = a[0], ufl.dot(a[1], self._first)
        b = b[0], ufl.dot(b[1], self._second)
        if kind in _SYMMETRIC or not self.swapped.any():
            return a, b
        s, pairs = self._is_swapped, list(zip(a, b, strict=True))
        return tuple(x + s * (y - x) for x, y in pairs), tuple(y + s * (x - y) for x, y in pairs)

    @cached_property
    def _is_swapped(self) -> Function:
        return self.field(self.swapped.astype(float), "swapped")

    def constraints(self, a: Side, b: Side) -> Expr:
        """The conditions (m) of (position, rotation matrix) at the two ends, polynomials of at most
        second degree; zero in unused components.
        """
        total = [ufl.as_ufl(0.0)] * self.size
        for kind, mask in self.kinds:
            for k, value in enumerate(kind.constraints(*self.sides(kind, a, b))):
                total[k] += mask * value if len(self.kinds) > 1 else value
        return ufl.as_vector(total)

    def sum(self, density: Expr) -> Form:
        """The sum of a density over the joints."""
        if isinstance(density, ufl.classes.Zero):
            return Form([])
        return self._any / CellVolume(self._network.mesh) * density * self._measure

    # --- forms -----------------------------------------------------------------------------------------
    def value(self, nu: Expr, g: Pose | None = None) -> Form:
        """ν·Φ(g), over all joints."""
        ends = self.ends(self._configuration(g))
        return self.sum(ufl.dot(self.at_cell(nu), self.constraints(*ends)))

    def slope(self, nu: Expr, w: Expr, g: Pose | None = None) -> Form:
        """ν·B(g)w, over all joints."""
        g = self._configuration(g)
        slope = rate(lambda s: self.constraints(*self.ends(displaced(g, s * w))))
        return self.sum(ufl.dot(self.at_cell(nu), slope))

    def turning(self, nu: Expr, v: Expr, g: Pose | None = None) -> Form:
        """ν·(d²Φ/dt² without the acceleration): of a motion with the constant velocity v."""
        s = ufl.variable(Constant(0.0))
        moved = self.constraints(*self.ends(displaced(self._configuration(g), s * v)))
        second = expand_derivatives(ufl.diff(ufl.diff(moved, s), s))
        second = replace(second, {s: ufl.as_ufl(0.0)})
        return self.sum(ufl.dot(self.at_cell(nu), second))

    def forms(self) -> tuple[Form, ...]:
        """Φ(g)."""
        return (self.value(TestFunction(self.space)),)

    def _configuration(self, g: Pose | None) -> Pose:
        return self._motion.configuration if g is None else g

    # --- springs and dampers -----------------------------------------------------------------------
    def _turned(self) -> np.ndarray:
        """The relative quaternions of the two ends of each hinge with a spring."""
        nodes = self._network.ends[self._hinges].T
        first, second = self._network.numbering.gather(self._motion.configuration[1])[nodes]
        return arrays.quaternion.product(arrays.quaternion.conjugate(first), second)

    def half_cosines(self) -> np.ndarray | None:
        """Cosines of half the angles of hinges with a spring, whose sign changes at half a turn."""
        return None if self._start is None else (self._start * self._turned()).sum(axis=1)

    def check_half_turns(self, before: np.ndarray) -> None:
        """Raise SolveFailed if an angle has passed half a turn, where the moment would jump."""
        for k, passed in zip(self._hinges, before * self.half_cosines() < 0, strict=True):
            if passed:
                raise SolveFailed(
                    f"the angle of joints[{k}], {self.joints[k]!r}, passes half a turn (pi), "
                    "where the moment of its spring would change its sign",
                    remedy="end the run before, or take a stiffer spring or a joint without one",
                )

    def potential(self, g: Pose) -> Form:
        """Energy of the springs."""
        return self.sum(self._energy(*self.ends(g)))

    def spring_work(self, g: Pose, v: Expr, w: Expr) -> Form:
        """Virtual work of springs and dampers against the motion."""

        def product(kind: type[Joint]) -> Expr:
            """Relative velocity along v times that along w, in the free coordinates of a joint."""
            return ufl.dot(*(self._relative(kind, g, velocity) for velocity in (v, w)))

        work = rate(lambda s: self._energy(*self.ends(displaced(g, s * w))))
        return self.sum(work + self._damping * self._over("damping", product))

    def _energy(self, a: Side, b: Side) -> Expr:
        def energy(kind: type[Joint]) -> Expr:
            return kind.potential(*self.sides(kind, a, b), self._stiffness, self._rest)

        return self._over("stiffness", energy)

    def _over(self, name: str, term: Callable[[type[Joint]], Expr]) -> Expr:
        """The sum of a term over the kinds of joints with a spring ("stiffness") or damper."""
        total = ufl.as_ufl(0.0)
        for kind, mask in self.kinds:
            if any(getattr(joint, name) for joint in self.joints if type(joint) is kind):
                total += mask * term(kind)
        return total

    def _relative(self, kind: type[Joint], g: Pose, v: Expr) -> Expr:
        """Rate of a joint's coordinate along a velocity; of a Spherical joint, also a derived one
        without a coordinate of its own, the relative angular velocity in space.
        """
        if not issubclass(kind, Spherical) or kind.coordinate is not Joint.coordinate:
            return rate(
                lambda s: kind.coordinate(*self.sides(kind, *self.ends(displaced(g, s * v))))
            )
        (_, p), (_, q) = self.ends(g)
        first, second = (halves(part, "v")[0] for part in self._cells.ends(v))
        return ufl.dot(q, second) - ufl.dot(p, first)

    # --- numbers -----------------------------------------------------------------------------------------
    @cached_property
    def _value(self) -> VectorAssembly:
        return VectorAssembly(self.value(TestFunction(self.space)))

    @cached_property
    def _rate(self) -> VectorAssembly:
        return VectorAssembly(self.slope(TestFunction(self.space), self._motion.v))

    @cached_property
    def _rows(self) -> np.ndarray:
        """This rank's rows of conditions; the others are round-off."""
        return np.setdiff1d(np.arange(self.space.dof_dset.size * self.size), self.idle)

    def _largest(self, values) -> float:
        return largest(self._motion.comm, values)

    def defect(self) -> float:
        """Largest |Φ(g)|: gaps in lengths, misalignments in radians."""
        return self._largest(self._value.assemble().dat.data_ro)

    def rate(self, velocity: Expr | None = None) -> float:
        """Largest |dΦ/dt|."""
        return self._largest(self._rate.assemble().dat.data_ro)

    def at_sides(self, values) -> np.ndarray:
        """Values (DG1) on the first and the second side of each joint, (joints, 2, ...)."""
        found = self._network.at_ends(values)[self._network.pieces :]
        found[self.swapped] = found[self.swapped, ::-1]
        return found

    def check_start(self) -> None:
        """Raise ``ValueError`` if the start contradicts the joints, or these contradict one another."""
        slope = self._gradient()
        self._check_gaps(slope, loosely=False)
        motion = self._motion
        # The rates by the matrix: the form of :meth:`rate` need not be compiled for a start.
        with motion.v.dat.vec_ro as velocity:
            rates = (slope * velocity).getArray()
        size, v = self._size, motion.v.dat.data_ro
        turning = max(self._largest(v[:, :3]), self._largest(v[:, 3:]) / size, _REST)
        bound = _AFTER_STEPS if motion.consistency.stepped else _CONSISTENT
        self._check("the rates of the joints", rates, slope, (turning, turning * size), bound)
        missing = self._missing(slope)
        if missing:
            raise ValueError(
                f"joints: the system is over-constrained: {missing} of their conditions follow from the "
                "others, or from the supports of the beams. Leave them out"
            )

    def check_configuration(self, *, loosely: bool = False) -> None:
        """Raise ``ValueError`` if the joints are violated."""
        self._check_gaps(self._gradient(), loosely=loosely)

    @property
    def _size(self) -> float:
        """The largest coordinate."""
        return self._largest(self._motion.configuration[0].dat.data_ro)

    def _gradient(self) -> PETSc.Mat:
        """The derivatives of the conditions by displacements, rotations first at each node."""
        trial = TrialFunction(self._motion.space)
        return assemble(self.slope(TestFunction(self.space), trial), mat_type="aij").petscmat

    def _check_gaps(self, slope: PETSc.Mat, *, loosely: bool) -> None:
        gaps = self._value.assemble().dat.data_ro
        bound = LOOSE if loosely else _CONSISTENT
        self._check("the conditions of the joints", gaps, slope, (1.0, self._size), bound)
        if message := self.reversed():
            raise ValueError(f"{message}. Set orientations of the beams in which they agree")

    def reversed(self) -> str | None:
        """Description of a joint whose shared axes do not agree although its conditions hold."""
        ends = self._network.ends
        now = self._network.numbering.gather(self._motion.configuration[1])[ends]
        turns = arrays.quaternion.matrix(now) @ self.rotations[ends].swapaxes(2, 3)
        agreement = np.einsum("nij,nik,njk->n", turns[:, 0], turns[:, 1], self._shared)
        # 3 or 1, the number of shared axes; after a half turn -1, after a third of a turn 0.
        wrong = np.flatnonzero(agreement < 0.5 * np.trace(self._shared, axis1=1, axis2=2))
        if not wrong.size:
            return None
        return (
            f"joints[{wrong[0]}], {self.joints[wrong[0]]!r}: the axes that its two sides share are "
            "reversed or exchanged, by half or a third of a turn since the assembly was made"
        )

    def _check(
        self,
        what: str,
        values: np.ndarray,
        slope: PETSc.Mat,
        sizes: tuple[float, float],
        bound: float,
    ) -> None:
        """Raise ``ValueError`` unless values of the conditions are round-off of rotations and
        translations of some ``sizes``.
        """
        starts, columns, entries = slope.getValuesCSR()
        # Rotations come first, as in a twist.
        terms = row_sums(starts, np.abs(entries) * np.where(columns % 6 < 3, *sizes))
        rows = self._rows
        values, terms = values.ravel()[rows], terms[rows]
        off = self._largest(np.where(np.abs(values) <= bound * terms, 0.0, values))
        if off != 0.0:
            where = "state" if bound == LOOSE else "start"
            raise ValueError(
                f"the {where} does not fulfil {what}: it is off by {off:.3g}. Set a configuration and "
                "velocities that fulfil them"
            )

    def _missing(self, slope: PETSc.Mat) -> int:
        """Number of conditions above the rank of B M⁻¹ Bᵀ, with the matrix ``slope`` B."""
        motion = self._motion
        test, trial = TestFunction(motion.space), TrialFunction(motion.space)
        mass = assemble(motion.inertia(test, trial), diagonal=True)
        with mass.dat.vec_ro as diagonal:
            weight = diagonal.copy()
        weight.reciprocal()  # zeros stay, of nodes of the ground, which have no mass and are held
        if motion.held is not None:
            (held,) = motion.held.dofs
            weight.getArray()[held[held < weight.getLocalSize()]] = 0.0
        rows = (slope.getOwnershipRange()[0] + self._rows).astype(PETSc.IntType)
        wanted = PETSc.IS().createGeneral(rows, comm=slope.comm)
        gradient = slope.createSubMatrix(wanted, None)
        scaled = gradient.copy()
        scaled.diagonalScale(None, weight)
        scaled.transpose()
        return deficiency(gradient.matMult(scaled))


def _owners(ends: np.ndarray, fixed: Collection[int], joints: Sequence[Joint]) -> np.ndarray:
    """A node of its own for each joint, none of them held: 0 or 1, the first or second place."""
    # Each tree of nodes and joints has its multipliers away from a root, the held node if there is
    # one: so the equations of a joint have full rank in the displacements of its owner.
    found, known = np.full(len(ends), -1), np.bincount([*fixed], minlength=ends.max() + 1)
    while (left := np.flatnonzero(found < 0)).size:
        new = left[known[ends[left]].any(axis=1)]
        if not new.size:
            known[ends[left].min()] = 1  # the root of a tree without a held node
            continue
        found[new] = known[ends[new, 0]]
        nodes = ends[new, found[new]]
        known += np.bincount(nodes, minlength=len(known))
        if (over := new[known[nodes] > 1]).size:
            raise ValueError(
                f"joints: {joints[over[-1]]!r} is over-constrained: other joints or supports already "
                "connect the same nodes. Leave it out, or replace them all by one joint"
            )
    return found
