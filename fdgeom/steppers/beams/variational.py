"""Beams in small explicit steps that are symplectic and keep both momenta."""

from __future__ import annotations

import ufl
from firedrake import Constant, Function, TestFunction, dot
from tsfc.ufl_utils import extract_firedrake_constants

from fdgeom.beams.beam import Beam
from fdgeom.beams.rod.nodal_inertia import NodalInertia
from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.beams.rod.variation import body_translation
from fdgeom.forms import tidy
from fdgeom.lie import quaternion, se3, so3
from fdgeom.lie.groups import SE3, R3xSO3
from fdgeom.lie.operands import halves, join
from fdgeom.solvers.compiled.refused import CannotCompile
from fdgeom.solvers.data import Field, Snapshot
from fdgeom.solvers.essential import EssentialValues
from fdgeom.solvers.pointwise import PointwiseUpdate
from fdgeom.steppers.beams.variational_solves import JointSolve, KeptSolve
from fdgeom.steppers.refusal import wrong_system
from fdgeom.steppers.stepper import Stepper
from fdgeom.steppers.substep import Solve, options_for
from fdgeom.systems.poisson.stage import Stage

SOLVES = ("momentum", "increment", "velocity")


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
    system : Beam or Assembly
        What is moved, in configuration form, with its own strain measure. Joints act by impulses
        λ·DΦ(g⁰) in the second line, so that Φ(g¹) = 0, and by others on μ¹, so that its velocity
        fulfils DΦ(g¹)v¹ = 0, as in RATTLE: two more solves a step.
    dt : float
        Time step.
    solver_parameters, options_prefix, compiled
        As for every stepper; the solves are called ``momentum`` (linear), ``increment``, and with
        joints ``velocity``. Compiled unless a load changes in time or there are joints.

    Raises
    ------
    TypeError, ValueError
        If the system is no beam of degree 1 and no assembly, has damping or an end with a given
        motion, or its start contradicts how it is held.
    """

    order = 2
    symmetric = True
    symplectic = True
    conserves = ("linear momentum", "angular momentum", "constraint", "velocity constraint")

    def __init__(self, system, dt, **options) -> None:
        if isinstance(system, Beam):
            system = system.in_measure(system.strain_measure)
        super().__init__(system, dt, **options)

    # --- the solves --------------------------------------------------------------------------------
    def _setup(self) -> None:
        system = self.system
        if not isinstance(system, RodMotion):
            raise wrong_system("VariationalIntegrator", "a fdgeom.Beam or Assembly", system)
        _check_forces(system)
        system.check_start()
        system.settle()
        self._inertia = NodalInertia(system)
        self._separate = self._inertia.separate
        self._group = (R3xSO3 if self._separate else SE3).by("cay")
        #: μ, as it is carried from step to step.
        self._momentum = Function(system.space, name="momentum of the nodes")
        self._zero = Function(system.space, name="zero")
        self._reactions = None if system.joints is None else Field(system.multiplier)
        self._held = _held(system, self._zero, self._separate)
        self._begin = PointwiseUpdate({self._momentum: self._of_velocity()})
        self._kick, self._project = self._make_kick(), None
        if system.joints is None:
            self._drift = self._make_drift()
        else:
            self._drift, self._project = self._make_joined_drift(), self._make_projection()
        self._end = PointwiseUpdate({system.v: self._velocity()})
        self._known = Snapshot((system.v, *system.configuration))
        self._begin.apply()
        self._known.take()
        self._inertia_seen = self._inertia.version()

    def _of_velocity(self):
        """M v, with the translation in the body frame if the group is SE(3)."""
        v = self.system.v
        if not self._separate:
            spin, linear = halves(v, "velocity")
            v = join(spin, quaternion.rotate_inverse(self.system.orientation, linear))
        return dot(self._inertia.matrix, v)

    def _velocity(self):
        """M⁻¹μ, its translation in space."""
        return self._in_space(dot(self._inertia.inverse, self._momentum))

    def _in_space(self, displacement):
        """The same with its translation in the space frame."""
        if self._separate:
            return displacement
        return body_translation(self.system.orientation, displacement)

    def _make_kick(self) -> Solve:
        """μ ↦ μ + Δt f(g)."""
        system, dt = self.system, Constant(0.0, name="dt")
        unknown, test = Function(system.space, name="momentum"), TestFunction(system.space)
        g = system.configuration
        virtual = self._in_space(test)
        work = system.rod.internal_work(g, virtual) - system.external_work(g, virtual)
        if system.joints is not None:
            work += system.joints.spring_work(g, system.v, virtual)
        residual = self._inertia.at_nodes(dot(unknown - self._momentum, test)) + dt * work
        moved = {self._momentum: unknown}
        made = self._solve("momentum", unknown, dt, residual, self._momentum, [moved], KeptSolve)
        made.exact = True  # the force is that of the configuration, which waits
        return made

    def _make_drift(self) -> Solve:
        """(g, μ) ↦ (g cay(D), the momentum there)."""
        system, dt = self.system, Constant(0.0, name="dt")
        unknown, test = Function(system.space, name="increment"), TestFunction(system.space)
        impulse = dot(self._inertia.matrix, unknown) / dt
        residual = self._inertia.at_nodes(
            dot(self._before(unknown, impulse) - self._momentum, test)
        )
        moved = self._moved(unknown, self._momentum)
        return self._solve("increment", unknown, dt, residual, self._zero, [moved])

    def _moved(self, increment, before) -> dict:
        """The state after an increment, from the momentum before it."""
        system = self.system
        x, q = self._group.retract(system.configuration, increment)
        after = self._after(increment, before)
        return {system.position: x, system.orientation: q, self._momentum: after}

    def _make_joined_drift(self) -> JointSolve:
        """The same with impulses of the joints at the start and no gap at the end."""
        system, joints, M = self.system, self.system.joints, self._inertia.matrix

        def residual(D, impulse, test, nu, dt):
            gap = self._before(D, dot(M, D) / dt) - self._momentum
            form = self._inertia.at_nodes(dot(gap, test))
            form += joints.slope(impulse, self._in_space(test), system.configuration)
            return form + joints.value(nu, self._group.retract(system.configuration, D))

        return self._joined(
            "increment",
            residual,
            lambda D, dt: self._moved(D, self._before(D, dot(M, D) / dt)),
        )

    def _make_projection(self) -> JointSolve:
        """μ ↦ the momentum of velocities that the joints allow."""
        joints, g = self.system.joints, self.system.configuration

        def residual(momentum, impulse, test, nu, dt):
            form = self._inertia.at_nodes(dot(momentum - self._momentum, test))
            form += joints.slope(impulse, self._in_space(test), g)
            velocity = self._in_space(dot(self._inertia.inverse, momentum))
            return form + joints.slope(nu, velocity, g)

        return self._joined("velocity", residual, lambda momentum, dt: {self._momentum: momentum})

    def _joined(self, name, residual, assignments) -> JointSolve:
        return JointSolve(
            name,
            self.system,
            residual,
            assignments,
            options=options_for(self, name, SOLVES),
        )

    def _before(self, increment, impulse):
        """dcay(-D)⁻ᵀ of an impulse."""
        if not self._separate:
            return dot(ufl.transpose(se3.dcay_inverse(-increment)), impulse)
        rotation, _ = halves(increment, "increment")
        spin, linear = halves(impulse, "impulse")
        return join(dot(so3.dcay_inverse(rotation), spin), linear)

    def _after(self, increment, before):
        """dcay(D)⁻ᵀ of the impulse: what has been before, seen from the new configuration."""
        spin, linear = halves(before, "momentum")
        rotation, _ = halves(increment, "increment")
        if self._separate:
            return join(quaternion.rotate_inverse(quaternion.cay(rotation), spin), linear)
        return se3.pose_coadjoint_action(se3.pose_inverse(se3.pose_cay(increment)), before)

    def _solve(self, name, unknown, dt, residual, guess, assignments, kind=Solve) -> Solve:
        return kind(
            name,
            Stage(unknown, (), (), (), (), essential=self._held),
            dt,
            tidy(residual),
            {unknown: guess},
            assignments,
            options=options_for(self, name, SOLVES),
        )

    # --- stepping ----------------------------------------------------------------------------------
    def functions(self):
        return {"momentum of the nodes": self._momentum}

    def _enter(self) -> None:
        version = self._inertia.version()
        if version != self._inertia_seen or not self._known.holds():
            self._begin.apply()
            self._inertia_seen = version

    def _leave(self) -> None:
        self._end.apply()
        self._known.take()

    def _taken_up(self) -> None:
        self._known.take()

    def _step(self, t: float, dt: float) -> None:
        self.system.set_time(t)
        self._kick.take(0.5 * dt)
        self._drift.take(dt)
        self.system.set_time(t + dt)
        self._kick.take(0.5 * dt)
        if self._project is not None:
            self._project.take(dt)
            self._reactions.array[...] = 2 / dt * self._project.unknown.multipliers
            self._reactions.written(ghosts_too=True)

    def substeps(self):
        if self._project is not None:
            raise CannotCompile("joints couple the nodes of several beams")
        constants = extract_firedrake_constants(self._kick.residual)
        if any(c is self.system.time for c in constants):
            raise CannotCompile("a load changes in time")
        return [(self._kick, 0.5), (self._drift, 1.0), (self._kick, 0.5)]

    def flows(self):
        return None if self._project is not None else (self._kick, self._drift)

    def _solvers(self):
        solves = [s for s in (self._kick, self._drift, self._project) if s is not None]
        return [s.__dict__["solver"] for s in solves if "solver" in s.__dict__]


def _check_forces(system: RodMotion) -> None:
    """Raise ``ValueError`` for forces that the method does not treat."""
    if system.rod.viscosity is not None:
        raise ValueError(
            "system: VariationalIntegrator moves beams without damping, whose explicit steps would "
            "be bounded by it too; take GeneralizedAlpha or EnergyMomentum"
        )
    for joint in () if system.joints is None else system.joints.joints:
        if joint.damping:
            raise ValueError(
                f"system: VariationalIntegrator does not treat the damper of {joint!r}; take "
                "GeneralizedAlpha"
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
