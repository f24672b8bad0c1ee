"""The variational integrator for beams: explicit symplectic steps that conserve both momenta."""

from collections.abc import Callable
from dataclasses import replace

import ufl
from firedrake import Constant, Form, Function, TestFunction, dot
from ufl.algorithms import extract_coefficients
from ufl.core.expr import Expr

from fdgeom.beams.ends import check_sliding
from fdgeom.beams.rod.inertia import NodalInertia
from fdgeom.beams.rod.rod_motion import RodMotion, exact_numerics
from fdgeom.beams.rod.variation import body_translation
from fdgeom.data import Snapshot, key
from fdgeom.execution import Numerics, defaults, plain
from fdgeom.lie import halves, join, quaternion, se3, so3
from fdgeom.lie.groups import SE3, R3xSO3
from fdgeom.operations import (
    ConvergenceTest,
    Flow,
    Map,
    Operation,
    Prescribed,
    Solve,
    with_assignments,
)
from fdgeom.steppers.stepper import Stepper
from fdgeom.systems.motion.motion import check_new_configuration
from fdgeom.systems.motion.nodal_unknown import NodalUnknown

SOLVES = ("momentum", "increment", "velocity")


class VariationalIntegrator(Stepper):
    """Variational integrator for beams on the group: explicit forces, a small solve at each node.

    With the discrete Lagrangian Δt (½ D/Δt·M D/Δt - ½V(g⁰) - ½V(g¹)), g¹ = g⁰ cay(D), for the
    momentum μ = M v at each node and the force f = -δV/δg,

        μ_½ = μ⁰ + Δt/2 f(g⁰),
        dcay(-D)⁻ᵀ M D/Δt = μ_½,      g¹ = g⁰ cay(D),
        μ¹ = dcay(D)⁻ᵀ M D/Δt + Δt/2 f(g¹);

    for the rotation dcay(∓w)⁻ᵀ μ = μ ± w×μ/2 + w(w·μ)/4; the translation of a section whose frame
    is at its centre of mass moves by Δx = Δt p/m, as in the Störmer–Verlet method. The method is
    the Störmer–Verlet method on the group R³×SO(3), or on SE(3) for other sections. After Marsden &
    West, Acta Numerica 10 (2001), and Demoures et al., Numer. Math. 130 (2015).

    Second order, symmetric, symplectic; linear and angular momentum of a free beam are conserved to
    round-off, and the energy stays in a band of width O(Δt²). The step is limited by the time that
    the fastest wave needs to cross a cell and, for thin beams, by the time that sound needs to
    cross the thickness.

    Parameters
    ----------
    system : Beam or Assembly
        The system to integrate, in configuration form, with its own strain measure. Joints act by
        impulses λ·DΦ(g⁰) in the second line, so that Φ(g¹) = 0, and by others on μ¹, so that its
        velocity satisfies DΦ(g¹)v¹ = 0, as in RATTLE: two more solves per step.
    dt : float
        Time step.
    t0, solver_parameters, options_prefix, compiled
        As for every stepper; the solves are called ``momentum`` (linear), ``increment``, and with
        joints ``velocity``. Compiled unless a load changes in time.

    Raises
    ------
    TypeError, ValueError
        If the system is not a beam of degree 1 or an assembly, has damping or an end with a given
        motion, or its initial state contradicts its supports.
    """

    moves = RodMotion
    needs = "a fdgeom.Beam or Assembly"
    order = 2
    symmetric = True
    symplectic = True
    conserves = ("linear momentum", "angular momentum", "constraint", "velocity constraint")
    cites = ("MarsdenWest2001", "Demoures2015")

    # --- the solves --------------------------------------------------------------------------------
    def _setup(self) -> None:
        system = self.system
        _check_forces(system)
        system.check_start()
        system.consistency.settle()
        self._inertia = NodalInertia(system)
        self._separate = self._inertia.separate
        self._group = (R3xSO3 if self._separate else SE3).by("cay")
        #: μ, as it is carried from step to step.
        self._momentum = Function(system.space, name="momentum of the nodes")
        self._held = _held(system, self._separate)
        self._start_list = [Map(values={self._momentum: self._of_velocity()})]
        self._finish_list = [Map(values={system.v: self._velocity()})]
        self._known = Snapshot((system.v, *system.configuration))
        self._perform(self._start_list)
        self.restored()

    def flows(self):
        # The time passes with the drift.
        first = Flow(self._make_kick(), 0.5, exact=True)
        last = replace(first, begin=1.0)
        drift = self._make_drift()
        if self.system.constraint is None:
            return [first, drift, last]
        projection = replace(self._make_projection(), begin=0.5)
        return [first, drift, last, projection]

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
        """A displacement with its translation in the space frame."""
        if self._separate:
            return displacement
        return body_translation(self.system.orientation, displacement)

    def _make_kick(self) -> list[Operation]:
        """μ ↦ μ + Δt f(g)."""
        system, dt = self.system, Constant(0.0, name="dt")
        unknown, test = Function(system.space, name="momentum"), TestFunction(system.space)
        g = system.configuration
        virtual = self._in_space(test)
        work = system.rod.internal_work(g, virtual) - system.rod.external_work(g, virtual)
        residual = self._inertia.at_nodes(dot(unknown - self._momentum, test)) + dt * work
        # The force is that of the configuration, which waits.
        solve = self._solve(
            "momentum", residual, unknown, self._momentum, self._held, _kept, dt, 0.0
        )
        return with_assignments(solve, [{self._momentum: unknown}])

    def _solve(
        self, name: str, residual: Form, unknown: Function, guess: Function,
        prescribed: list[Prescribed], numerics: Numerics | Callable, dt: Constant, at: float,
    ) -> Solve:  # fmt: skip
        return Solve(
            work=residual,
            unknown=unknown,
            guess=guess,
            prescribed=prescribed,
            dt=dt,
            clock=self.system.model.clocks,
            at=at,
            options=self.solve_options(name, SOLVES),
            numerics=numerics,
            name=name,
        )

    def _moved(self, increment, before) -> dict:
        """The state after an increment, from the momentum before it."""
        system = self.system
        x, q = self._group.retract(system.configuration, increment)
        after = self._after(increment, before)
        return {system.position: x, system.orientation: q, self._momentum: after}

    def _make_drift(self) -> Flow:
        """(g, μ) ↦ (g cay(D), the momentum there), with impulses of the joints at the start and no gap
        at the end.
        """
        system, dt = self.system, Constant(0.0, name="dt")
        joined = system.constraint is not None

        def before(D: Expr) -> Expr:
            return self._before(D, dot(self._inertia.matrix, D) / dt)

        return self._nodal_solve(
            "increment",
            dt,
            gap=lambda D: before(D) - self._momentum,
            condition=lambda D, nu: system.constraint.value(
                nu, self._group.retract(system.configuration, D)
            ),
            after=lambda D, impulse: self._moved(D, before(D) if joined else self._momentum),
            changed=system.position,
        )

    def _make_projection(self) -> Flow:
        """μ ↦ the momentum of velocities that the joints allow."""
        system, dt = self.system, Constant(0.0, name="dt")

        def rate(momentum: Expr, nu: Expr) -> Form:
            velocity = self._in_space(dot(self._inertia.inverse, momentum))
            return system.constraint.slope(nu, velocity, system.configuration)

        return self._nodal_solve(
            "velocity",
            dt,
            gap=lambda momentum: momentum - self._momentum,
            condition=rate,
            after=lambda momentum, impulse: {
                self._momentum: momentum,
                system.multiplier: 2 / dt * impulse,
            },
            changed=self._momentum,
        )

    def _nodal_solve(
        self, name: str, dt: Constant, *, gap: Callable, condition: Callable, after: Callable,
        changed: Function,
    ) -> Flow:  # fmt: skip
        """The solve of ``gap(u)`` = 0 at each node or, with joints, = their impulses + half the kick of
        their springs, with ``condition(u, nu)``; ``after(u, impulse)`` are assignments.
        """
        system, unknown = self.system, NodalUnknown(self.system)
        u, impulse, g = unknown.vector, unknown.multiplier, system.configuration
        residual, held = self._inertia.at_nodes(dot(gap(u), unknown.test)), self._held
        numerics: Numerics | Callable = plain
        if system.constraint is not None:
            virtual = self._in_space(unknown.test)
            residual += system.constraint.slope(impulse, virtual, g)
            residual += 0.5 * dt * system.constraint.spring_work(g, system.v, virtual)
            residual += condition(u, unknown.nu)
            held, numerics = unknown.prescribed, exact_numerics(changed)
        zero = Function(unknown.function.function_space(), name="zero")
        solve = self._solve(name, residual, unknown.function, zero, held, numerics, dt, 0.5)
        return Flow(with_assignments(solve, [after(u, impulse)]))

    def _before(self, increment, impulse):
        """dcay(-D)⁻ᵀ of an impulse."""
        if not self._separate:
            return dot(ufl.transpose(se3.dcay_inverse(-increment)), impulse)
        rotation, _ = halves(increment, "increment")
        spin, linear = halves(impulse, "impulse")
        return join(dot(so3.dcay_inverse(rotation), spin), linear)

    def _after(self, increment, before):
        """dcay(D)⁻ᵀ of the impulse before the drift, in the frame of the new configuration."""
        spin, linear = halves(before, "momentum")
        rotation, _ = halves(increment, "increment")
        if self._separate:
            return join(quaternion.rotate_inverse(quaternion.cay(rotation), spin), linear)
        return se3.pose_coadjoint_action(se3.pose_inverse(se3.pose_cay(increment)), before)

    # --- stepping ----------------------------------------------------------------------------------
    def functions(self):
        return {"momentum of the nodes": self._momentum}

    def remembered(self):
        return (self._known,)

    def start(self, modified=None):
        same = self._known.holds() and not self._inertia.changed()
        if not same:
            check_new_configuration(self.system, self._known)
        if modified is None:
            return [] if same else self._start_list
        own = {key(f) for f in self.system.functions().values()}
        if key(self._momentum) in modified and not modified & own:
            return []
        # A recorded run depends on the inertia, also where that has not changed.
        varies = any(isinstance(f, Function) for f in extract_coefficients(self._inertia.matrix))
        return self._start_list if modified or varies or not same else []

    def started(self, operations):
        if operations:
            self._known.take()
            self._inertia.take()

    def finish(self):
        return self._finish_list

    def finished(self):
        self._known.take()

    def restored(self):
        self.finished()
        self._inertia.take()

    def forget_coefficients(self):
        self._inertia.forget()


def _kept(residual: Form, unknown: Function) -> Numerics:
    """Linear at each node, with a matrix that is assembled once."""
    return Numerics(defaults(residual, unknown, local=True), ConvergenceTest(), reuse_matrix=True)


def _check_forces(system: RodMotion) -> None:
    """Raise ``ValueError`` for forces that the method does not treat."""
    if system.rod.viscosity is not None:
        raise ValueError(
            "system: VariationalIntegrator moves beams without damping, whose explicit steps would "
            "be bounded by it too; take GeneralizedAlpha or EnergyMomentum"
        )
    if system.rod.loads_see_velocity:
        raise ValueError(
            "system: a load that depends on the velocity has no place in VariationalIntegrator, whose "
            "forces are those of a configuration; take GeneralizedAlpha or EnergyMomentum"
        )
    for joint in () if system.constraint is None else system.constraint.joints:
        if joint.damping:
            raise ValueError(
                f"system: VariationalIntegrator does not treat the damper of {joint!r}; take "
                "GeneralizedAlpha"
            )
    if system.model.given_in_time():
        raise ValueError(
            "system: VariationalIntegrator holds nodes but does not move them; for a GivenPose take "
            "GeneralizedAlpha or EnergyMomentum"
        )


def _held(system: RodMotion, separate: bool) -> list[Prescribed]:
    if system.held is None:
        return []
    check_sliding(system.holds, separate)
    (dofs,) = system.held.dofs
    return [Prescribed(dofs)]
