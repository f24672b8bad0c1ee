"""The equations of equilibrium of beams and joints, and their tangent by mixed integration points."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sparse
import ufl
from firedrake import (
    Constant,
    Function,
    TestFunction,
    TrialFunction,
    VectorFunctionSpace,
    assemble,
)
from mpi4py import MPI
from petsc4py import PETSc
from ufl.classes import Form
from ufl.core.expr import Expr

from fdgeom.beams.beam import Beam
from fdgeom.beams.contact import contacts_of
from fdgeom.beams.ends import HeldNodes
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.beams.rod.turns import Turns
from fdgeom.beams.rod_of_beam import BeamMotion
from fdgeom.data import Number, Snapshot, largest
from fdgeom.errors import SolveFailed
from fdgeom.execution import MatrixAssembly, Run, VectorAssembly, perform
from fdgeom.forms import simplify
from fdgeom.lie import quaternion
from fdgeom.lie.groups import R3xSO3
from fdgeom.operations import Assemble, Copy, Map, Operation
from fdgeom.operations.dependent import Sources, refresh
from fdgeom.statics.linear_algebra import gathered, to_scipy
from fdgeom.systems.motion.nodal_unknown import NodalUnknown

# Samples of a given orientation in half a load step; least cosine of half the angle between equal ones.
_SAMPLES, _SAME = 8, 1 - 1e-9


def motion_of(beam) -> RodMotion:
    """The network of a beam (one alone) or an assembly; ``TypeError`` for anything else."""
    if isinstance(beam, Beam):
        return beam.motion
    if isinstance(beam, RodMotion) and not isinstance(beam, BeamMotion):
        return beam  # an assembly
    hint = ": give the beam itself" if isinstance(getattr(beam, "beam", None), Beam) else ""
    raise TypeError(f"beam must be a fdgeom.Beam, not {type(beam).__name__}{hint}")


def check_contact(rod: Rod, *, still: bool = False) -> None:
    """Raise ``ValueError`` for friction, and with ``still`` for obstacles that move."""
    for load in rod.frictional_loads:
        raise ValueError(
            f"loads: {load!r}: at rest nothing slips, so friction is undetermined; take "
            "friction=0, or let the beam come to rest in time with damping"
        )
    for contact in contacts_of(rod):
        if still and contact.load.moves:
            raise ValueError(
                f"loads: {contact.load!r} has an obstacle that moves in time, so there is no "
                "equilibrium to vibrate about; give the obstacle a fixed place"
            )


@dataclass(frozen=True)
class LoadProgram:
    """The load, time and number of steps that lead to an equilibrium."""

    load: float
    steps: int
    #: At the end.
    time: float
    #: How often a step may be halved.
    halvings: int
    #: Where it begins, if not at the present configuration.
    point: Any = None  # a `TapedPoint`


@dataclass(frozen=True)
class PathCondition:
    """Condition for the load along a path, normal·(u - u₀) + slope (λ - λ₀) = size, and a guess."""

    # Where the residual is no longer halved, an update of `small` times the unknown ends the iteration.
    normal: np.ndarray
    slope: float
    size: float
    du: np.ndarray
    dload: float
    small: float = 0.0

    def part(self, fraction: float) -> "PathCondition":
        """The condition of a fraction of the way."""
        size, du, dload = fraction * self.size, fraction * self.du, fraction * self.dload
        return replace(self, size=size, du=du, dload=dload)


class EquilibriumProblem:
    """F(g, λ; δ) + B(g)ᵀμ = 0 and Φ(g) = 0, with F = internal work - λ · work of the loads, and the
    conditions Φ, B of the joints, for Newton's method; λ does not scale contact.
    """

    # The unknown is a vector x of 6 values and the multipliers μ of the joints (over a force, so that
    # forces become numbers of the size of strains) at each node. Only changes of the 6 have a
    # meaning: u_r belongs to the reference g_r, and u to g_r ∘ (u - u_r) with a rotation vector in
    # the body frame and a translation in space. Every tangent makes the present configuration the
    # new reference.
    #
    # The tangent is that of mixed integration points (Magisano, Leonetti & Garcea, Int. J. Numer.
    # Meth. Engng 109, 2017): δε·C B + σ·δ²ε where stress σ and tangent C of the law are those of
    # the strain that was extrapolated linearly in the last update, ε - ε₀ + B Δu. The residual is
    # the true one. Pure Newton needs many small load steps for slender beams, since an update that
    # is linear in the displacements stretches them. Newton's method itself extrapolates the
    # multipliers, which are unknowns of their own.
    #
    # `functions` make up an equilibrium, `rows` are the owned degrees of freedom that are held, or
    # multipliers of nothing (local indices), and `weights` those of the degrees of freedom in the
    # norm of a displacement: the mean over the beams of |rotation|² + |translation / their
    # length|²; zero for multipliers.
    def __init__(self, motion: RodMotion) -> None:
        self.motion, self.rod, self.comm = motion, motion.rod, motion.comm
        self.pose, self.space = motion.configuration, motion.space
        check_contact(self.rod)
        self.factor = Constant(0.0, name="load factor")
        self._load = Number(self.factor)
        unknown = self.unknown = NodalUnknown(motion)
        self.unknown_space = unknown.function.function_space()
        self.multiplier, self.functions = None, self.pose
        if motion.joints is not None:
            self.multiplier = Function(motion.joints.space, name="multiplier")
            self.functions = (*self.pose, self.multiplier)

        self._set_rows()
        self._set_forms()
        #: The last equilibrium and the data that it was found from.
        self.found = Sources(*self.functions, self.residual_form, *self.given_poses())
        self._coming = np.empty((0, 4)) if self.held is None else self.held.orientations()[0]
        #: The given orientations of the last load step.
        self.given = Constant(np.zeros((max(len(self._coming), 1), 4)), name="given orientations")
        self._runs: dict[Operation, Run] = {}
        self._x = np.zeros(self._size)

    def snapshot(self) -> Snapshot:
        """The present configuration with its load and its time."""
        made = Snapshot(self.functions, [self.factor, self.given, *self.motion.model.clocks])
        made.take()
        return made

    def given_poses(self) -> tuple[Expr, ...]:
        """The expressions of given poses."""
        return () if self.motion.held is None else tuple(self.motion.held.expressions())

    def check_found(self, what: str) -> None:
        """Raise ``ValueError`` if the present configuration is not an equilibrium that was found."""
        refresh(self.residual_form, *self.given_poses())
        if self.found.changed():
            raise ValueError(
                f"{what}: the present configuration is no equilibrium that solve() has found for the "
                "present data; call solve() first"
            )

    def _set_rows(self) -> None:
        """Find the rows of held, idle and multiplier degrees of freedom of the unknown."""
        motion = self.motion
        self._width = width = self.unknown_space.value_size
        self._size = width * self.space.dof_dset.size
        own = [e.dofs[e.dofs < self._size] for e in self.unknown.prescribed]
        none = np.array([], dtype=int)
        self.rows = np.concatenate([none, *own])
        self.held, self._held_rows = None, none
        if motion.held is not None:

            def turn(relative: Expr) -> Expr:
                return quaternion.log(quaternion.principal(relative))

            self.held, self._held_rows = HeldNodes(motion, motion.holds, turn), own[0]
        self._held = 6 * (self._held_rows // width) + self._held_rows % width

    def _set_forms(self) -> None:
        motion, rod, pose, unknown = self.motion, self.rod, self.pose, self.unknown
        joints = motion.joints
        length = self._total_length() / len(motion.members)
        #: The mean length of the beams: translations in lengths are numbers, as rotations are.
        self.length = Constant(length, name="length")
        self._force = 1.0 if joints is None else self._size_of_stiffness() / length
        #: Factor of multipliers and conditions, a force.
        self.scale = Constant(self._force, name="size of the multipliers")
        test, nu = unknown.test, unknown.nu
        trial, dual = TrialFunction(self.unknown_space), None
        if joints is not None:
            trial, dual = unknown.cut(trial)

        #: The virtual work of the loads that the factor scales.
        self.loads_form = simplify(rod.scaled_work(pose, test))
        self.is_loaded = not self.loads_form.empty()
        residual = self.balance(test)
        if joints is not None:
            residual += self.scale * joints.value(nu, pose)
        self.residual_form = simplify(residual)

        strains = VectorFunctionSpace(motion.mesh, "DG", 0, dim=6)
        self.stress = Function(strains, name="stress")
        #: The elastic strain that was extrapolated.
        self.strain = Function(strains, name="strain")
        tangent = rod.material_stiffness(pose, trial, test, self.strain)
        tangent += rod.geometric_stiffness(self.stress, pose, trial, test)
        change = simplify(rod.load_stiffness(pose, trial, test, self.factor))
        if not change.empty():
            tangent -= change
        if joints is not None:
            tangent += motion.rate(lambda g: self.joint_work(test, g), trial)
            tangent += self.scale * joints.slope(dual, test, pose)
            tangent += self.scale * joints.slope(nu, trial, pose)
        self.tangent_form = simplify(tangent)
        #: What tells whether loads are conservative: their stiffness and commutator; None if both are zero.
        of_loads = simplify(change + rod.load_commutator(pose, trial, test, self.factor))
        self.change_form = None if of_loads.empty() else of_loads

    def extrapolation(self, pose: Sequence[Expr], increment: Expr) -> list[Operation]:
        """The operations that extrapolate strain, ε(g) - ε₀ + B Δu, and stress linearly from a pose."""
        rod, test = self.rod, TestFunction(self.strain.function_space())
        strain = rod.elastic_strain(pose) + rod.strain_rate(pose, increment)
        return [
            Assemble(work=rod.cells.values(strain, test), by={test: self.strain}),
            Map(values={self.stress: rod.law.stress(self.strain, rod.stiffness)}),
        ]

    def balance(
        self, test: Expr, g: Sequence[Expr] | None = None, multiplier: Expr | None = None
    ) -> Form:
        """Work of strains, loads, springs and joints: zero in equilibrium except at held nodes."""
        g = self.pose if g is None else g
        form = self.rod.internal_work(g, test)
        form -= self.rod.external_work(g, test, factor=self.factor)
        return form if self.multiplier is None else form + self.joint_work(test, g, multiplier)

    def joint_work(
        self, test: Expr, g: Sequence[Expr] | None = None, multiplier: Expr | None = None
    ) -> Form:
        """Work of joints and their springs, at the present configuration by default."""
        g = self.pose if g is None else g
        multiplier = self.multiplier if multiplier is None else multiplier
        joints = self.motion.joints
        return joints.slope(multiplier, test, g) + joints.spring_work(g, ufl.zero(6), test)

    def _size_of_stiffness(self) -> float:
        """About the largest entry on the diagonal of the tangent, for translations in lengths."""
        rod, strains = self.rod, VectorFunctionSpace(self.motion.mesh, "DG", 0, dim=6)
        tangent, h = rod.law.tangent(ufl.zero(6), rod.stiffness), rod.cells.length
        section = [tangent[k, k] for k in range(6)]
        # A node turns the halves of its two cells.
        turning = [k / h + h / 4 * sum(section[3:]) for k in section[:3]]
        moving = [self.length**2 * k / h for k in section[3:]]
        entries = 2 * ufl.as_vector([*turning, *moving])
        if rod.cells.inside is not None:
            entries = rod.cells.inside * entries
        return largest(self.comm, Function(strains).interpolate(entries).dat.data_ro)

    # --- what is assembled, made when it is first needed ------------------------------------------
    @cached_property
    def _increment(self) -> Function:
        return Function(self.space, name="increment")

    @cached_property
    def _operations(self) -> dict[str, list[Operation]]:
        """The operations by which PETSc's iteration moves the configuration and its reference."""
        increment = self._increment
        reference = tuple(Function(f.function_space()) for f in self.pose)
        moved = zip(self.pose, R3xSO3.retract(reference, increment), strict=True)
        pairs = zip(self.pose, reference, strict=True)
        return {
            "move": [Map(values=dict(moved))],
            "refer": [Copy(source=f, target=copy) for f, copy in pairs],
            "extrapolate": self.extrapolation(reference, increment),
        }

    def _perform(self, *names: str) -> None:
        perform([op for name in names for op in self._operations[name]], self._runs)

    @cached_property
    def _residual(self) -> VectorAssembly:
        return VectorAssembly(self.residual_form)

    @cached_property
    def _loads(self) -> VectorAssembly:
        return VectorAssembly(self.loads_form)

    @cached_property
    def _matrix(self) -> MatrixAssembly:
        return MatrixAssembly(self.tangent_form, "aij")

    @cached_property
    def _change(self) -> MatrixAssembly:
        return MatrixAssembly(self.change_form, "aij")

    @cached_property
    def free(self) -> np.ndarray:
        """Mask of all processes' unknowns that are displacements and not held, on every process."""
        return self._not_held(self._displacements())

    @cached_property
    def conditions(self) -> np.ndarray:
        """Mask of all processes' unknowns that are multipliers of conditions, on every process."""
        return self._not_held(~self._displacements())

    def _not_held(self, own: np.ndarray) -> np.ndarray:
        own[self.rows] = False
        return gathered(self.comm, own)

    def _displacements(self) -> np.ndarray:
        return np.tile(np.arange(self._width) < 6, self._size // self._width)

    @cached_property
    def lumped(self) -> np.ndarray:
        """The length that belongs to each node."""
        return assemble(self.rod.cells.at_nodes(TestFunction(self.space)[0])).dat.data_ro[:, 0]

    def _total_length(self) -> float:
        return self.comm.allreduce(float(self.lumped.sum()))

    @cached_property
    def weights(self) -> np.ndarray:
        length = self._total_length()
        values = np.zeros((len(self.lumped), self._width))
        weights = np.array([1.0] * 3 + [1 / length**2] * 3)
        values[:, :6] = self.lumped[:, None] / length * weights
        return values.ravel()

    @cached_property
    def norms(self) -> np.ndarray:
        """The root of the weight of each free degree of freedom, on every process."""
        return np.sqrt(gathered(self.comm, self.weights)[self.free])

    @property
    def load(self) -> float:
        """The load factor."""
        return self._load.value

    @load.setter
    def load(self, value: float) -> None:
        self._load.set(value)

    # --- rotations in a step -----------------------------------------------------------------------
    def set_time(self, begin: float, end: float) -> None:
        """Go to a time; raise SolveFailed if a given orientation turns too far since ``begin``, or is
        too far from that of its node.
        """
        if self.held is None or not self.held.varies:
            self.motion.model.set_time(end)
            return
        # Beyond 180 degrees the increment of a held node would go the short way. A few samples would
        # not see whole turns between them.
        samples = np.linspace(0, 1, 1 if begin == end else _SAMPLES + 1)
        # Unequal parts, of which no number of whole turns is missed.
        halves = np.concatenate([0.5 * samples**1.3, 0.5 + 0.5 * samples[1:] ** 1.3])
        count, found = len(halves), []
        for time in (*(begin + (end - begin) * halves[:-1]).tolist(), end):
            self.motion.model.set_time(time)
            given, node = self.held.orientations()
            found.append(given)
        turned, middle = np.array(found), count // 2
        first, last = _cosines(turned, node), self.given.dat.data_ro[: len(node)]
        # The sign of a node is that of the last step where it still stands, and free elsewhere.
        stands = _cosines(last, node)
        first *= np.where(np.where(np.abs(stands) > _SAME, stands, first[0]) < 0, -1, 1)
        second = _cosines(turned[middle:], turned[middle])
        cosines = np.concatenate([first[: middle + 1], second]).min(axis=0)
        # A node that is put at the end by hand, and not at the begin, does not turn.
        cosines[(np.abs(first[-1]) > _SAME) & (np.abs(first[0]) < _SAME)] = 1.0
        # A turn by 180 degrees has two ways to go. NaNs are for the solve, which says where.
        some = bool(np.any(cosines < Turns.least + 1e-6))
        if self.comm.allreduce(some, op=MPI.LOR):
            raise SolveFailed(
                "the orientation of a GivenPose turns by more than 90 degrees in half a load step, or "
                "its quaternion jumps to the opposite sign",
                remedy="take more steps, and give a quaternion that is continuous in time",
            )
        self._coming = turned[-1]

    def turned(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Rotations of nodes and of sprung joints, for :meth:`check_turned`."""
        return self.motion.turns.values(), self.motion.turns.branch()

    def check_turned(self, before: tuple[np.ndarray, np.ndarray | None]) -> None:
        """Raise SolveFailed if a cell or joint has turned too far from ``before`` (:meth:`turned`)."""
        turned, branch = before
        self.motion.turns.check(turned)
        if branch is not None:
            self.motion.turns.check_branch(branch)
        if self.motion.joints is not None and (message := self.motion.joints.reversed()):
            raise SolveFailed(message, remedy="take more steps")
        self.given.dat.data[: len(self._coming)] = self._coming  # the nodes stand there now

    # --- the unknown -----------------------------------------------------------------------------
    def start(self) -> np.ndarray:
        """Make the present configuration the reference; returns its x, (1, 1, 1, position, μ),
        whose size SNES's ``stol`` compares with, for positions in lengths.
        """
        values = np.ones((self._size // self._width, self._width))
        values[:, 3:6] = self.pose[0].dat.data_ro
        if self.multiplier is not None:
            values[:, 6:] = self.multiplier.dat.data_ro / self._force
        self._x = values.ravel()
        self._increment.dat.data_wo_with_halos[...] = 0.0
        self._perform("refer", "extrapolate")
        return self._x.copy()

    def move(self, x: np.ndarray) -> None:
        """Go to the configuration and the multipliers of x."""
        self._increment.dat.data_wo[...] = self.by_node(x - self._x)[:, :6]
        self._perform("move")
        if self.multiplier is not None:
            self.multiplier.dat.data_wo[...] = self._force * self.by_node(x)[:, 6:]

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length by which norms divide translations; 1 for other entries of the unknown."""
        values = np.ones((self._size // self._width, self._width))
        values[:, 3:6] = float(self.length)
        return values.ravel()

    def from_lengths(self, vector: Expr) -> Expr:
        """A vector like the unknown whose translations were given in lengths."""
        return _translations_times(self.length, vector)

    def to_lengths(self, vector: Expr) -> Expr:
        """A vector like the unknown with its translations in lengths."""
        return _translations_times(1 / self.length, vector)

    def by_node(self, x: np.ndarray) -> np.ndarray:
        """Values of an unknown as (nodes, 6 and the number of multipliers)."""
        return x.reshape(-1, self._width)

    def tangent(self, x: np.ndarray) -> PETSc.Mat:
        """Go to the configuration of x, make it the reference, and return the tangent there."""
        self.move(x)
        self._perform("extrapolate", "refer")
        self._x = x.copy()
        matrix = self._matrix.assemble()
        first, _ = matrix.getOwnershipRange()
        matrix.zeroRows((first + self.rows).astype(PETSc.IntType), diag=1.0)
        return matrix

    def stiffness(self, tangent: PETSc.Mat) -> sparse.csr_matrix:
        """The part of a tangent that acts on displacements, of all nodes, on every process."""
        displacements = gathered(self.comm, self._displacements())
        return to_scipy(tangent)[displacements][:, displacements]

    def load_tangent(self) -> PETSc.Mat | None:
        """The matrix of :attr:`change_form`; None if there is none."""
        return None if self.change_form is None else self._change.assemble()

    # --- forces ------------------------------------------------------------------------------------
    def residual(self) -> np.ndarray:
        """F at the present configuration; minus the required increment in held degrees of freedom."""
        values = self._residual.assemble().dat.data_ro.reshape(-1).copy()
        values[self.rows] = 0.0
        if self.held is not None:
            self.held.update()
            needed = self.held.increment.dat.data_ro.reshape(-1)
            values[self._held_rows] = -needed[self._held]
        return values

    def loads(self) -> np.ndarray:
        """-∂F/∂λ at the present configuration."""
        values = self._loads.assemble().dat.data_ro.reshape(-1).copy()
        values[self.rows] = 0.0
        return values


def _cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The cosines of half the angles between quaternions."""
    return (a * b).sum(axis=-1)


def _translations_times(factor: Expr, vector: Expr) -> Expr:
    entries = [vector[k] for k in range(vector.ufl_shape[0])]
    entries[3:6] = [factor * x for x in entries[3:6]]
    return ufl.as_vector(entries)
