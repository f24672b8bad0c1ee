"""Beams in small explicit steps that are symplectic and keep both momenta."""

from __future__ import annotations

from functools import cached_property

import ufl
from firedrake import Constant, Function, TestFunction, dot
from tsfc.ufl_utils import extract_firedrake_constants

from fdgeom.forms import tidy
from fdgeom.lie import quaternion, se3, so3
from fdgeom.lie.groups import SE3, R3xSO3
from fdgeom.lie.operands import halves, join
from fdgeom.solvers.compiled.refused import CannotCompile
from fdgeom.solvers.data import Snapshot
from fdgeom.solvers.essential import EssentialValues
from fdgeom.solvers.held import defaults
from fdgeom.solvers.kept import KeptSNES
from fdgeom.solvers.options import options_of
from fdgeom.solvers.pointwise import PointwiseUpdate
from fdgeom.steppers.stepper import Stepper
from fdgeom.steppers.substep import Solve, options_for
from fdgeom.systems.beam import Beam
from fdgeom.systems.rods.measured import MeasuredBeam
from fdgeom.systems.rods.motion import RodMotion
from fdgeom.systems.rods.nodal import NodalInertia
from fdgeom.systems.rods.variation import body_translation
from fdgeom.systems.stage import Stage

SOLVES = ("momentum", "increment")


class VariationalIntegrator(Stepper):
    """Variational integrator for beams on the group: explicit forces, a small solve at each node.

    With the discrete Lagrangian Δt (½ D/Δt·M D/Δt - ½V(g⁰) - ½V(g¹)), g¹ = g⁰ cay(D), for the
    momentum μ = M v at each node and the force f = -δV/δg,

        μ_½ = μ⁰ + Δt/2 f(g⁰),
        dcay(-D)⁻ᵀ M D/Δt = μ_½,      g¹ = g⁰ cay(D),
        μ¹ = dcay(D)⁻ᵀ M D/Δt + Δt/2 f(g¹);

    for the rotation dcay(∓w)⁻ᵀ μ = μ ± w×μ/2 + w(w·μ)/4; the translation of a section whose frame
    is at its centre of mass moves by Δx = Δt p/m, as in the Störmer–Verlet method, which this is on
    the group R³×SO(3) (else on SE(3)). After Marsden & West, Acta Numerica 10 (2001), and Demoures
    et al., Numer. Math. 130 (2015).

    Second order, symmetric, symplectic; linear and angular momentum of a free beam are kept to
    round-off, and the energy stays in a band of width O(Δt²). The step is bounded by the time that
    the fastest wave takes through a cell.

    Parameters
    ----------
    system : Beam
        What is moved, in configuration form, with its own strain measure.
    dt : float
        Time step.
    solver_parameters, options_prefix, compiled
        As for every stepper; the two solves are called ``momentum`` (linear) and ``increment``.
        Compiled unless a load changes in time.

    Raises
    ------
    TypeError, ValueError
        If the system is no beam of degree 1, has damping or an end with a given motion, or its
        start contradicts how it is held.
    """

    order = 2
    symmetric = True
    symplectic = True
    conserves = ("linear momentum", "angular momentum")

    def __init__(self, system, dt, **options) -> None:
        if isinstance(system, Beam):
            system = MeasuredBeam(system, system.strain_measure)
        super().__init__(system, dt, **options)

    # --- the solves --------------------------------------------------------------------------------
    def _setup(self) -> None:
        system = self.system
        if not isinstance(system, RodMotion):
            raise TypeError(
                f"system: VariationalIntegrator needs a fdgeom.Beam, not {type(system).__name__}"
            )
        if system.joints is not None:
            raise ValueError(
                "system: VariationalIntegrator does not move joints yet; take GeneralizedAlpha"
            )
        _check_forces(system)
        system.check_start()
        system.settle()
        self._inertia = NodalInertia(system)
        self._separate = self._inertia.separate
        #: μ, as it is carried from step to step.
        self._momentum = Function(system.space, name="momentum of the nodes")
        self._zero = Function(system.space, name="zero")
        self._held = _held(system, self._zero, self._separate)
        self._begin = PointwiseUpdate({self._momentum: self._of_velocity()})
        self._kick, self._drift = self._make_kick(), self._make_drift()
        self._end = PointwiseUpdate({system.v: self._velocity()})
        self._known = Snapshot((system.v, *system.configuration))
        self._begin.apply()
        self._known.take()

    def _of_velocity(self):
        """M v, with the translation in the body frame if the group is SE(3)."""
        v = self.system.v
        if not self._separate:
            spin, linear = halves(v, "velocity")
            v = join(spin, quaternion.rotate_inverse(self.system.orientation, linear))
        return dot(self._inertia.matrix, v)

    def _velocity(self):
        """M⁻¹μ, its translation in space."""
        v = dot(self._inertia.inverse, self._momentum)
        return v if self._separate else body_translation(self.system.orientation, v)

    def _make_kick(self) -> Solve:
        """μ ↦ μ + Δt f(g)."""
        system, dt = self.system, Constant(0.0, name="dt")
        unknown, test = Function(system.space, name="momentum"), TestFunction(system.space)
        g = system.configuration
        virtual = test if self._separate else body_translation(g[1], test)
        work = system.rod.internal_work(g, virtual) - system.external_work(g, virtual)
        residual = self._inertia.at_nodes(dot(unknown - self._momentum, test)) + dt * work
        moved = {self._momentum: unknown}
        return self._solve("momentum", unknown, dt, residual, self._momentum, [moved], KeptSolve)

    def _make_drift(self) -> Solve:
        """(g, μ) ↦ (g cay(D), the momentum there)."""
        system, dt = self.system, Constant(0.0, name="dt")
        unknown, test = Function(system.space, name="increment"), TestFunction(system.space)
        impulse = dot(self._inertia.matrix, unknown) / dt
        residual = self._inertia.at_nodes(
            dot(self._before(unknown, impulse) - self._momentum, test)
        )
        group = (R3xSO3 if self._separate else SE3).by("cay")
        x, q = group.retract(system.configuration, unknown)
        after = self._after(unknown)
        moved = {system.position: x, system.orientation: q, self._momentum: after}
        return self._solve("increment", unknown, dt, residual, self._zero, [moved])

    def _before(self, increment, impulse):
        """dcay(-D)⁻ᵀ of an impulse."""
        if not self._separate:
            return dot(ufl.transpose(se3.dcay_inverse(-increment)), impulse)
        rotation, _ = halves(increment, "increment")
        spin, linear = halves(impulse, "impulse")
        return join(dot(so3.dcay_inverse(rotation), spin), linear)

    def _after(self, increment):
        """dcay(D)⁻ᵀ of the impulse: what has been before, seen from the new configuration."""
        spin, linear = halves(self._momentum, "momentum")
        rotation, _ = halves(increment, "increment")
        if self._separate:
            return join(quaternion.rotate_inverse(quaternion.cay(rotation), spin), linear)
        return se3.pose_coadjoint_action(se3.pose_inverse(se3.pose_cay(increment)), self._momentum)

    def _solve(self, name, unknown, dt, residual, guess, assignments, kind=Solve) -> Solve:
        return kind(
            name,
            Stage(unknown, (), (), (), (), essential=self._held),
            dt,
            tidy(residual),
            {unknown: guess},
            assignments,
            options=options_for(self, name, SOLVES),
            given=options_of(self._given, name, SOLVES),
        )

    # --- stepping ----------------------------------------------------------------------------------
    def _moving(self):
        return (*super()._moving(), self._momentum)

    def _advance(self, steps: int) -> None:
        if not self._known.holds():
            self._begin.apply()
        try:
            super()._advance(steps)
        finally:
            self._end.apply()
            self._known.take()

    def _step(self, t: float, dt: float) -> None:
        self.system.set_time(t)
        self._kick.take(0.5 * dt)
        self._drift.take(dt)
        self.system.set_time(t + dt)
        self._kick.take(0.5 * dt)

    def substeps(self):
        constants = extract_firedrake_constants(self._kick.residual)
        if any(c is self.system.time for c in constants):
            raise CannotCompile("a load changes in time")
        return [(self._kick, 0.5), (self._drift, 1.0), (self._kick, 0.5)]

    def _solvers(self):
        return [s.__dict__["solver"] for s in (self._kick, self._drift) if "solver" in s.__dict__]


class KeptSolve(Solve):
    """A linear solve at each node, whose matrix is assembled once."""

    @cached_property
    def solver(self) -> KeptSNES:
        """The SNES, made when it is first needed."""
        unknown = self.stage.unknown
        options, prefix, given = self.options(defaults(self.residual, unknown, local=True))
        return KeptSNES(
            self.residual,
            unknown,
            essential=self.stage.essential,
            options=options,
            prefix=prefix,
            given=given,
            name=self.name,
        )


def _check_forces(system: RodMotion) -> None:
    """Raise ``ValueError`` for forces that the method does not treat."""
    if system.rod.viscosity is not None:
        raise ValueError(
            "system: VariationalIntegrator moves beams without damping, whose explicit steps would "
            "be bounded by it too; take GeneralizedAlpha or EnergyMomentum"
        )
    if system.given is not None and system.given.moves:
        raise ValueError(
            "system: VariationalIntegrator holds nodes but does not move them; for a GivenPose take "
            "GeneralizedAlpha or EnergyMomentum"
        )


def _held(system: RodMotion, zero: Function, separate: bool) -> tuple[EssentialValues, ...]:
    if system.given is None:
        return ()
    (dofs,) = system.given.dofs
    if not separate:
        # A condition on some directions of space is none on components in the body frame.
        for node in set(dofs // 6):
            across = [d for d in dofs[dofs // 6 == node] % 6 if d >= 3]
            if len(across) in (1, 2):
                raise ValueError(
                    "system: a Sliding end needs a section whose inertia does not couple rotation "
                    "and translation here; take GeneralizedAlpha or EnergyMomentum"
                )
    return (EssentialValues(0, dofs, old=zero),)
