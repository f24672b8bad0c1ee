"""The energy-momentum method for beams: large steps that conserve energy and both momenta."""

from collections.abc import Callable

import numpy as np
import ufl
from firedrake import Constant, Function
from ufl.classes import Expr, Form

from fdgeom.beams.ends import check_sliding
from fdgeom.beams.forces import Forces
from fdgeom.beams.rod.mean_directors import MeanStep
from fdgeom.beams.rod.rod_motion import RodMotion, attempts, exact_numerics, friction_remedy
from fdgeom.data import Snapshot
from fdgeom.lie import halves
from fdgeom.operations import Flow, Map, Operation, Solve, with_assignments
from fdgeom.steppers.stepper import Stepper
from fdgeom.systems.motion.motion import check_new_configuration
from fdgeom.systems.motion.nodal_unknown import NodalUnknown, PrescribeMotion


class EnergyMomentum(Stepper):
    """Energy–momentum method for beams: conserves energy, linear and angular momentum to round-off.

    With directors R = (d₁, d₂, d₃), strains that are quadratic in them and the positions,

        Γ = ½(R_A + R_B)ᵀ (x_B - x_A)/h,    K = vee(R_Aᵀ R_B - R_Bᵀ R_A)/(2h),

    and the mean ū = ½(u⁰ + u¹) of the two ends of a step,

        (x¹ - x⁰)/Δt = v̄,     R¹ = R⁰ cay(Δt Ω̄),
        m (v¹ - v⁰)·δx + (R¹JΩ¹ - R⁰JΩ⁰)·η + Δt ∫ C ε̄·δε ds = Δt (work of the loads)

    for all δx and η, where δε is the derivative of the strain along (δx, η × R̄) at the mean
    position and the mean directors R̄. This is the balance of energy if δx is Δx and η is the Cayley
    vector of the rotation in space; it is the balance of the momenta if δx and η are rigid. After
    Simo, Tarnow & Doblaré, Int. J. Numer. Methods Eng. 38 (1995), with directors as Betsch &
    Steinmann, ibid. 54 (2002).

    Second order and symmetric. The fastest wave does not limit the step, and the method adds no
    damping to that of the beam. One coupled solve per step.

    Parameters
    ----------
    system : Beam or Assembly
        The system to integrate, in configuration form: position, orientation and velocity. The
        method uses the strain measure "directors", whatever the beam's ``strain_measure`` is: it
        conserves the energy of that measure, and computes the beam's strain, momentum and energies
        with it. That measure is of second order in the length of the cells, with a larger error
        than the others. The beams of an assembly must have this measure; its joints, whose
        conditions Φ are also of second degree in positions and directors, act with λ·DΦ at the
        mean, and Φ(g¹) = 0.
    dt : float
        Time step.
    t0, solver_parameters, options_prefix, compiled
        As for every stepper. The default is a banded LU (MUMPS on several ranks).

    Raises
    ------
    TypeError, ValueError
        If the system is not a beam of degree 1 or an assembly, or its start contradicts its supports.

    Notes
    -----
    Held ends and ends with a given pose are supported; the total energy then changes by the work of
    given motions, and momenta change by the reactions. Gravity, dead forces and other constant
    loads with a potential belong to the energy; moments, follower loads and loads that change in
    time act with their values in the middle of the step, drag with the mean velocity. For a law
    that is not linear C ε̄ is replaced by the mean stress whose work is the change of its energy
    (`SectionLaw.mean_stress`). A section whose inertia couples rotation and translation moves by g¹
    = g⁰ cay(Δt ζ̄) on SE(3), with the velocity ζ in the body frame, and conserves the same
    quantities; beams of such sections have no `Sliding` ends. Any symmetric inertia is allowed, but
    with one that is not an inertia of masses the energy is not conserved in a field of gravity.
    """

    moves = RodMotion
    needs = "a fdgeom.Beam or Assembly"
    order = 2
    symmetric = True
    conserves = ("energy", "linear momentum", "angular momentum", "constraint")
    cites = ("SimoTarnowDoblare1995", "BetschSteinmann2002", "Gonzalez1996")

    def _form_of(self, system):
        motion = super()._form_of(system)
        # An assembly has its measure already.
        of_beam = motion is not system and hasattr(motion, "in_measure")
        return motion.in_measure("directors") if of_beam else motion

    def _setup(self) -> None:
        _check_system(self.system)
        self.system.check_start()
        self.system.consistency.settle()
        self._unknown = NodalUnknown(self.system, tests=Function)
        self._dt_of_step = Constant(1.0, name="dt")
        #: D of the last step.
        self._increment = Function(self.system.space, name="increment")
        self._known = Snapshot([*self.system.configuration, self.system.v])
        self._forces = MeanForces(
            self.system,
            self._increment,
            self._dt_of_step,
            # The last increment of a composition is that of a substep.
            lambda: not self._is_composed and self.steps > 0 and self._known.holds(),
        )

    def flows(self):
        system, unknown, dt = self.system, self._unknown, self._dt_of_step
        space = unknown.function.function_space()
        first, other = Function(space, name="first guess"), Function(space, name="other guess")
        guess = dt * system.v + dt**2 / 2 * system.acceleration
        impulse = None if system.multiplier is None else dt * system.multiplier
        step = MeanStep(
            system.configuration,
            system.v,
            unknown.vector,
            dt,
            system.rod.inertia.separate,
            (system.held.moved, system.held.v) if system.model.given_in_time() else None,
        )
        # The time of the forms is that of the middle.
        timed = {"dt": dt, "clock": system.model.clocks, "at": 0.5}
        before = [
            Map(values=group, **timed) for group in unknown.assignments(first, [guess], impulse)
        ]
        if unknown.multiplier is not None:
            before.append(Map(values={other: unknown.without_increment(first)}, **timed))
        given: list[Operation] = []
        if system.model.given_in_time():
            # The motion at the end of the step.
            given = [PrescribeMotion(unknown=unknown, held=system.held, clock=system.model.clocks)]
        solve = Solve(
            work=self._residual(step),
            test=unknown.whole_test,
            unknown=unknown.function,
            prescribed=unknown.prescribed,
            # Where steps do not resolve the stiff directions their velocities alternate.
            attempts=attempts(first, other, contracting=False),
            choose="smaller residual",
            options=self.solve_options(),
            numerics=exact_numerics(system.position, friction=bool(system.rod.frictional_loads)),
            remedy=lambda: friction_remedy(system.rod.frictional_loads),
            name="the motion",
            **timed,
        )
        return [Flow([*given, *before, *with_assignments(solve, [self._new_state(step)])])]

    def _residual(self, step: MeanStep) -> Form:
        system, unknown, test = self.system, self._unknown, self._unknown.test
        rod = system.rod
        nodal = step.inertial(rod.inertia, test) - step.external(rod, test)
        form = rod.cells.at_nodes(nodal) + step.internal(rod, test)
        if system.constraint is not None:
            form += step.joint_work(system.constraint, unknown.multiplier, test)
            form += step.joint_value(system.constraint, unknown.nu)
        return form

    def _new_state(self, step: MeanStep) -> dict:
        system, unknown, dt = self.system, self._unknown, self._dt_of_step
        position, orientation = step.configuration
        v = step.velocity
        if system.model.given_in_time():
            where, what = system.held.moved, system.held.v
            v = ufl.as_vector([v[k] + where[k] * (what[k] - v[k]) for k in range(6)])
        new = {
            system.position: position,
            system.orientation: orientation,
            system.v: v,
            # The mean one of the step.
            system.acceleration: (v - system.v) / dt,
            self._increment: unknown.vector,
        }
        if system.constraint is not None:
            new[system.multiplier] = unknown.multiplier / dt
        return new

    def functions(self):
        return {"increment": self._increment}

    def remembered(self):
        return (self._known,)

    def start(self, modified=None):
        if not self._known.holds():
            check_new_configuration(self.system, self._known)
        return super().start(modified)

    def finished(self):
        self._dt_of_step.assign(self.clock.last_dt)
        self._known.take()
        self.system.step_forces = self._forces


def _check_system(system: RodMotion) -> None:
    """Raise ``ValueError`` for strains, springs and ends that the method does not treat."""
    beams = getattr(system, "beams", ())
    if beams and beams[0].strain_measure != "directors":
        raise ValueError(
            "system: EnergyMomentum needs strains that are quadratic in the directors: make the "
            'beams of an assembly with strain_measure="directors"'
        )
    # An end that does not turn is moved in space, and stays on its line.
    turning = [hold for hold in system.holds if getattr(hold.kind, "turning", True)]
    check_sliding(turning, system.rod.inertia.separate)
    for joint in () if system.constraint is None else system.constraint.joints:
        if joint.stiffness or joint.damping:
            raise ValueError(
                f"system: EnergyMomentum does not treat the spring or damper of {joint!r}; take "
                "GeneralizedAlpha"
            )


class MeanForces(Forces):
    """The forces whose impulses are the changes of the momenta in the last step:

    (change of the momenta)/Δt + σ̄·δε̄ - (loads of the middle) + λ·DΦ(mean).
    """

    def __init__(
        self, motion: RodMotion, increment: Function, dt: Constant, belong: Callable[[], bool]
    ) -> None:
        self.belong, self._dt = belong, dt
        rod, inertia = motion.rod, motion.rod.inertia
        # The step backwards from its end: the method is symmetric, so the means are the same.
        back = MeanStep(motion.configuration, motion.v, -increment, -dt, inertia.separate)
        before = back.configuration[1], motion.v - dt * motion.acceleration
        after = motion.orientation, motion.v
        _, shift = halves(increment, "increment")

        def change(test: Expr) -> Expr:
            eta, delta = halves(test, "test")
            (m0, n0), (m1, n1) = (inertia.momentum(*at) for at in (before, after))
            work = ufl.dot(m1 - m0, eta) + ufl.dot(n1 - n0, delta)
            if not inertia.separate:
                # About the node, which moves on.
                work += 0.5 * ufl.dot(ufl.cross(shift, n0 + n1), eta)
            return work

        def joint_work(test: Expr) -> Form:
            return back.joint_work(motion.constraint, motion.multiplier, test)

        def balance(test: Expr) -> Form:
            nodal = (change(test) + back.external(rod, test)) / dt
            form = rod.cells.at_nodes(nodal) + back.internal(rod, -test / dt)
            return form if motion.constraint is None else form + joint_work(test)

        super().__init__(motion, balance, joint_work)

    def supports(self) -> np.ndarray:
        # Data that change in time act with their values in the middle.
        model, end = self._motion.model, float(self._motion.time)
        model.set_time(end - 0.5 * float(self._dt))
        try:
            return super().supports()
        finally:
            model.set_time(end)
