"""Rods as a motion: poses of the nodes on R³×SO(3), their velocities, and the balance of forces."""

from collections.abc import Callable, Sequence, Set
from functools import cached_property
from typing import Any

import numpy as np
from firedrake import Function, TestFunction, VectorFunctionSpace
from ufl.classes import Expr, Form

from fdgeom.beams.ends import HeldNodes, Hold
from fdgeom.beams.forces import Forces, PresentForces
from fdgeom.beams.rod.loads import BodyLoad
from fdgeom.beams.rod.output import RodOutput, RodSystem, total_momenta
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.turns import Turns
from fdgeom.beams.rod.variation import body_translation, check_poses, displaced, rate
from fdgeom.data import Snapshot, key
from fdgeom.execution import Numerics, banded
from fdgeom.forms import simplify
from fdgeom.lie.groups import R3xSO3
from fdgeom.operations import EPSILON, Attempt, ConvergenceTest, Map, Operation
from fdgeom.operations.dependent import present
from fdgeom.systems.motion.accelerations import Accelerations
from fdgeom.systems.motion.condition import Condition
from fdgeom.systems.motion.motion import Motion, MotionModel, MotionTraits
from fdgeom.systems.system import Consistency, Model, named_energies
from fdgeom.taping import not_taped

#: Fields that a beam and its motion both have; the translation of a beam's velocity is in the body frame.
FIELDS = ("position", "orientation", "velocity")
# Of the increment's norm: the next update would be below round-off.
_LAST = 1e-9
# Of the positions' norm: round-off of strains, brought back to displacements by the stiffness.
_UNNOTICED = 1e-13
# Iterations of damped attempts: through the kink of friction at many nodes they take long.
_DAMPED = 200
# Limit of the others. A smaller one of the user's is the limit of all.
_WHOLE = 25


class RodConsistency(Consistency):
    """Keeps the fields of rods in configuration form consistent with those of their beams."""

    #: Whether it is of one beam, whose strain determines its shape.
    is_alone = False
    #: The operations of :meth:`read_poses` and :meth:`write_poses`.
    pose_copies: tuple[Sequence[Operation], Sequence[Operation]]

    # `velocity` is that of the beams, whose translation is in the body frame; `own` are Functions of
    # the motion for values that its beams have, too.
    def __init__(
        self, motion: "RodMotion", velocity: Function, own: Sequence[Function] = ()
    ) -> None:
        super().__init__(motion)
        self._motion, self._beams = motion, motion.members
        self._to_space = Map(values={motion.v: body_translation(motion.orientation, velocity)})
        #: Values of the beams' fields when they last agreed with those of the motion.
        self.written = Snapshot([getattr(b, name) for b in self._beams for name in FIELDS])
        #: Values of Functions of the motion when they last agreed with those of the beams.
        self.own = Snapshot(own)
        noted = (beam.consistency.noted for beam in self._beams)
        self.snapshots = (self.written, *noted, self.own)
        self._poses = set(map(key, motion.configuration))

    def _configuration_of(self, beam, modified: Set[int] = frozenset()) -> list[Operation]:
        """The operations that update configuration and velocity of one of the beams."""
        rod = self._motion.rod if self.is_alone else beam.rod
        return beam.consistency.for_configuration(rod, modified, alone=self.is_alone)

    def synchronise(self, modified=None):
        """Configuration and velocity from what was set last of each beam."""
        super().synchronise(modified)  # which checks data
        modified = modified or [frozenset()] * len(self.snapshots)
        if not any(modified) and self.holds():
            return []
        both = zip(self._beams, modified[1:-1], strict=True)
        found = [op for beam, names in both for op in self._configuration_of(beam, names)]
        return found + self._copies(found, given=any(modified[:-1]))

    def _copies(self, found: Sequence[Operation], *, given: bool) -> list[Operation]:
        """The operations that copy from the beams, after those that update these."""
        # Another motion may have moved the beams, whose fields agree with one another then.
        return [self._to_space] if found or given or not self.written.holds() else []

    def synchronised(self):
        for beam in self._beams:
            beam.consistency.synchronised(strain_follows=True)
        self.written.take()
        self.own.take()

    # --- poses and strains, for statics ------------------------------------------------------------
    def read_poses(self) -> None:
        """Copy the configuration from the beams, if the motion has Functions of its own, or to the
        beams if that of the motion was set.
        """
        super().synchronise()  # which checks data
        for beam in self._beams:
            if beam.consistency.strain_was_set:
                self.perform(self._configuration_of(beam))
                beam.consistency.noted.take()
        if self.was_placed():
            self.write_poses()
        else:
            self.perform(self.pose_copies[0])
            self.note_poses()

    def was_placed(self) -> bool:
        """Whether a configuration was set that is not that of the beams."""
        return False

    def note_poses(self) -> None:
        """Note that the configuration is that of the beams."""
        self.own.take(of=self._poses)

    def refuse_strains(self) -> None:
        """Raise ``NotImplementedError`` if a tape would miss how :meth:`read_poses` moves a beam."""
        if self.was_placed():
            raise NotImplementedError(
                "position or orientation of an assembly was set: set those of its beams before solve(), so "
                "that the tape has both"
            )
        if any(beam.consistency.strain_was_set for beam in self._beams):
            raise NotImplementedError(
                "the strain of a beam was set: call its reconstruct() before solve(), so that the tape "
                "has both"
            )

    def write_poses(self) -> None:
        """Copy the configuration to the beams with its strains, without velocities and momenta."""
        self.perform(self.pose_copies[1])
        self.note_poses()
        for beam in self._beams:
            beam.consistency.note_configuration()

    def member_of_nodes(self) -> np.ndarray:
        """The beam that each node of this rank belongs to; -1 for a node of the ground."""
        return np.zeros(self._motion.space.dof_dset.size, dtype=int)


class RodModel(MotionModel):
    """The parameters of rods, which determine their equations; their forms are for coefficients."""

    def equations(self):
        return {}

    def all_forms(self):
        motion = self._system
        rod, g, v, w = motion.rod, motion.configuration, motion.v, TestFunction(motion.space)
        # The coefficients of the balance without its derivatives of strains, which take time.
        balance = [rod.stress(g, v), rod.external_work(g, w, v, motion.time)]
        if motion.joints is not None:
            balance.append(motion.joints.spring_work(g, v, w))
        others = *self._of_constraint().values(), *self.given_motions()
        return (*balance, *others, *motion.energies().values())


class RodTraits(MotionTraits):
    """Capabilities of rods, and the default solver of their steps."""

    #: The stiff directions of rods make the rate of the acceleration huge.
    can = frozenset()
    is_chain = True

    def solver_defaults(self, first, other):
        rod = self._motion.rod
        return {
            "numerics": rod_numerics(self._motion, friction=bool(rod.frictional_loads)),
            "attempts": attempts(first, other, contracting=True),
            "remedy": lambda: friction_remedy(rod.frictional_loads),
        }


class RodMotion(RodSystem, Motion):
    """One rod or a network of rods, as the methods in configuration form move it:

        ẋ = v,  q̇ = q (0, Ω)/2,   M v̇ - ad*_v(Mv) + Bᵀσ - f + B_Φᵀλ = 0,   Φ(g) = 0

    at the nodes, with velocities and virtual displacements (rotation in the body frame, translation
    in the space frame) on R³×SO(3), and increments of the rotation as Cayley vectors.

    For authors: ``forces``, ``group``, ``holds``, ``joints``, ``members``, ``network``,
    ``reactions_of``, ``rod``, ``shapes``, ``step_forces``.
    """

    # `members` are the beams that it moves, `ends` the held ends of each, `holds` those and other
    # held nodes, `common_loads` the loads on all beams beside their own.
    def __init__(
        self,
        rod: Rod,
        position: Function,
        orientation: Function,
        members: Sequence[Any],
        ends: Sequence[dict[str, Hold]],
        *,
        holds: Sequence[Hold],
        common_loads: Sequence[BodyLoad] = (),
        condition: "Callable[[RodMotion], Condition] | None" = None,
    ) -> None:
        space = VectorFunctionSpace(rod.cells.mesh, position.function_space().ufl_element()
                                    .sub_elements[0], dim=6)  # fmt: skip
        self.rod, self.members, self._ends = rod, tuple(members), tuple(ends)
        self.common_loads = tuple(common_loads)
        self.position, self.orientation = position, orientation
        self.group, self.holds = R3xSO3.by("cay"), tuple(holds)
        super().__init__(
            {"position": position, "orientation": orientation},
            Function(space, name="velocity"),
            condition=condition,
            held=(lambda motion: HeldNodes(motion, holds)) if holds else None,
            time=rod.time,
        )
        #: The forces of the last step, as the stepper that took it knows them.
        self.step_forces: Forces | None = None
        #: Forms of its small vibrations, made by `fdgeom.statics`.
        self.pencil_forms: Any = None

    @property
    def joints(self) -> Any:
        """The joints of a network, the conditions of the motion; None for a single rod."""
        return self.constraint

    consistency: cached_property[RodConsistency]

    # --- as a motion ---------------------------------------------------------------------------
    def balance(self, configuration: Sequence[Expr], v: Expr, a: Expr, t: Expr, test: Expr) -> Form:
        """Inertial plus internal minus external work, and that of the joints' springs."""
        rod = self.rod
        form = rod.cells.at_nodes(rod.inertia.work(configuration[1], v, a, test))
        form += rod.internal_work(configuration, test, v)
        form += Form([]) - rod.external_work(configuration, test, v, t)
        springs = self.joints
        return form if springs is None else form + springs.spring_work(configuration, v, test)

    def inertia(self, test: Expr, direction: Expr) -> Form:
        """The mass matrix at the present configuration."""
        product = self.rod.inertia.mass_product(self.orientation, direction, test)
        return self.rod.cells.at_nodes(product)

    def rate(self, f: Callable[[Sequence[Expr]], Form], direction: Expr) -> Form:
        """d/ds f(g ∘ s direction) at s = 0."""
        return simplify(rate(lambda s: f(displaced(self.configuration, s * direction))))

    # --- energies and momenta ------------------------------------------------------------------
    def energies(self) -> dict[str, Form]:
        """Kinetic energy, potential energy (elastic, of the joints' springs too), the potential of
        the loads that have one, and the sum.
        """
        rod, pose = self.rod, self.configuration
        kinetic = rod.cells.at_nodes(rod.inertia.kinetic(self.orientation, self.v))
        elastic = rod.potential(pose)
        if self.joints is not None:
            elastic += self.joints.potential(pose)
        return present(named_energies(kinetic, elastic, rod.load_potential(pose)), self)

    def momenta(self) -> dict[str, tuple[Form, ...]]:
        """Momenta in space: linear, and angular about the origin."""
        spin, linear = self.rod.inertia.momentum(self.orientation, self.v)
        found = total_momenta(self.rod.cells.at_nodes, self.position, spin, linear)
        return present(found, self)

    # --- forces ----------------------------------------------------------------------------------
    @cached_property
    def _present_forces(self) -> tuple[Accelerations, PresentForces]:
        """The accelerations and multipliers of the present state, and its forces."""
        found, multiplier = Function(self.space, name="acceleration"), None
        if self.constraint is not None:
            multiplier = Function(self.constraint.space, name="multiplier")
        return Accelerations(self, found, multiplier), PresentForces(self, found, multiplier)

    @cached_property
    def _forces_of_step(self) -> PresentForces:
        return PresentForces(self, self.acceleration, self.multiplier)

    def accelerated(self, belong: Callable[[], bool]) -> None:
        self._forces_of_step.belong = belong
        self.step_forces = self._forces_of_step

    def forces(self) -> Forces:
        """Forces of supports and joints: those of the last step, or of the equations of motion at
        the present state if there was no step or a configuration or velocity was set since.
        """
        self.consistency.prepare()
        if self.step_forces is not None and self.step_forces.belong():
            return self.step_forces
        if self.joints is not None and not self.consistency.stepped:
            self.joints.check_configuration(loosely=True)
        accelerations, forces = self._present_forces
        accelerations.solve()
        return forces

    @not_taped
    def reactions(self) -> Any:
        """Reactions at the held ends of each beam: moment about the node, and force, both in space.

        ``reactions()[k]["left"]`` is that of ``beams[k]`` of an assembly, and ``reactions()["left"]``
        that of a beam alone; the moment at a `GivenPose` with an orientation includes the torque
        that turns it. For joints to the ground use ``force``, which also says to which state the
        forces belong.
        """
        return self.reactions_of(self.forces())

    def reactions_of(self, forces: Forces) -> Any:
        """:meth:`reactions` of given forces."""
        values = forces.supports()
        return tuple(
            {name: self._held_by(values, hold) for name, hold in ends.items()}
            for ends in self._ends
        )

    def _held_by(self, values: np.ndarray, hold: Hold) -> tuple[np.ndarray, np.ndarray]:
        """Moment and force (3 each, in space) of a held node, from the values at the owned nodes."""
        total = np.zeros(6)
        for node in hold.nodes[hold.nodes < len(values)]:
            total[hold.components] += values[node, hold.components]
        total = self.comm.allreduce(total)
        return total[:3], total[3:]

    output = cached_property(RodOutput)

    # --- what the steppers ask -------------------------------------------------------------------
    model: cached_property[Model] = cached_property(RodModel)

    traits = cached_property(RodTraits)

    def check_start(self) -> None:
        self.consistency.prepare()
        super().check_start()

    def _check_poses(self, *, loosely: bool = False) -> None:
        """Raise ``ValueError`` for poses that methods cannot move, or a load refuses."""
        check_poses(self.position, self.orientation, self.rod.cells.in_rods())
        self.turns.check_state()
        for beam in self.members:
            for load in (*beam.loads, *self.common_loads):
                load.check_start(beam)

    @cached_property
    def turns(self) -> Turns:
        in_rods, soft = self.rod.cells.in_rods(), self.rod.measure == "directors"
        return Turns(self.orientation, in_rods, soft=soft, joints=self.joints)


# --- the solve of a step ---------------------------------------------------------------------------
def rod_numerics(motion: Motion, *, friction: bool = False) -> Numerics:
    """Newton with an LU of everything, without pivoting in the order of the nodes, which ends by
    the size of the updates, since the residual ends at EA ε |x|/h, which is not small; ``friction``:
    with dry friction.
    """
    moved = motion.configuration[0]
    test = ConvergenceTest(
        moved, unnoticed=_UNNOTICED, last=_LAST, small=1e-6, left=0.0, gives_up=True,
        notices_circles=friction,
    )  # fmt: skip
    return Numerics(_options(motion.comm), test)


def exact_numerics(changed: Function, *, friction: bool = False) -> Numerics:
    """`rod_numerics` that ends at round-off, for invariants that hold to the last digits."""
    test = ConvergenceTest(changed, unnoticed=EPSILON, notices_circles=friction)
    return Numerics(_options(changed.function_space().comm), test)


def _options(comm) -> dict:
    return {
        "snes_type": "newtonls",
        "snes_linesearch_type": "basic",
        "snes_rtol": 0.0,
        "snes_atol": 1e-50,
        # PETSc would call a failed line search converged where the increment is large.
        "snes_stol": 0.0,
        "snes_max_it": _WHOLE,
        **banded(comm),
    }


# Where a step does not resolve the stiff directions of rods, as after a sudden load, their
# accelerations alternate, and a guess by extrapolation tears the rods. Newton's iteration with whole
# steps goes on as long as it contracts. Else it restarts from the other guess, then from the first
# without that condition; then both are tried with damped steps, whose line search asks that the next
# update by the same matrix gets smaller. Unlike the norm of the residual, which grows on the way in
# stiff directions, that does not depend on the scale of the stiffness.
def attempts(first: Function, other: Function, *, contracting: bool) -> tuple[Attempt, ...]:
    """Newton's iteration from a guess of the increment or from zero, with damped steps at last."""
    whole = (Attempt(guess=first), Attempt(guess=other))
    if contracting:
        whole = (Attempt(guess=first, must_contract=True), Attempt(guess=other), whole[0])
    damped = [Attempt(guess=guess, damped=True, max_it=_DAMPED) for guess in (other, first)]
    return (*whole, *damped)


def friction_remedy(frictional: Sequence) -> str:
    """Advice for a step that fails with these loads with dry friction; empty without."""
    slips = ", ".join(f"{float(load.slip):g}" for load in dict.fromkeys(frictional))
    return slips and (
        f"friction: try a smaller dt, a larger slip (now {slips}), or loads that grow from zero "
        "instead of jumping"
    )
