"""The generalized-α family, on vector spaces and on Lie groups, with constraints."""

from typing import Unpack

from firedrake import Constant, Form, Function

from fdgeom.data import Snapshot
from fdgeom.errors import SolveFailed, StepFailed
from fdgeom.operations import Copy, Flow, Map, Operation, Solve, parts, with_assignments
from fdgeom.steppers.alpha_scheme import AlphaScheme, hamel_alpha
from fdgeom.steppers.motion_stepper import MotionStepper
from fdgeom.steppers.stepper import StepperOptions
from fdgeom.systems.motion.motion import Motion
from fdgeom.systems.motion.nodal_unknown import NodalUnknown, PrescribeMotion
from fdgeom.validation import choice, instance, whole

STARTS = ("default", "consistent")
#: A multiplier grows without bound where nothing damps the highest frequencies.
_LARGEST_RHO = 1 - 1e-6


class GeneralizedAlpha(MotionStepper):
    """Generalized-α: Newmark, HHT-α, WBZ-α, Chung–Hulbert and Hamel-α in one scheme.

    On a Lie group (a vector space is one, with g exp(D) = q + D), with the true acceleration v̇
    and an algorithmic one a,

        D  = h v⁰ + h² ((½ - β) a⁰ + β a¹),          g¹ = g⁰ exp(D),
        v¹ = v⁰ + h ((1 - A) a⁰ + A a¹),
        a¹ = (1 + B₁) v̇¹ - (B₁ + B₂) v̇⁰ + B₂ a⁰,
        r(g¹, v¹, v̇¹, t¹) + B(g¹)ᵀλ¹ = 0,           Φ(g¹) = 0:

    the equations hold at the new time, and one Newton iteration finds D and λ. Gu, Liu, An & Shi
    (Hamel generalized-α, eqs. 33-35 and 55-65); without the Lie group Chung & Hulbert, J. Appl.
    Mech. 60 (1993); with it Brüls & Cardona, J. Comput. Nonlinear Dyn. 5 (2010).

    Parameters
    ----------
    system : Motion
        The system to integrate: a :class:`fdgeom.SecondOrderSystem`, rigid bodies, a beam.
    dt : float
        Time step h. If it changes between two steps, the control force M(a - v̇) and the deviation
        of the velocity from a constraint are rescaled, so that the order stays.
    scheme : AlphaScheme, optional
        The member of the family, by default ``hamel_alpha(0.8)``.
    start : {"default", "consistent"}
        The initial value of a. "default": a⁰ = v̇⁰, safe for stiff systems. "consistent": a⁰ = v̇
        at the shifted time, and with a constraint a velocity that is O(h²) off it, so that the
        multiplier is of second order from the first step on; this needs one more derivative of the
        equations.
    halvings : int
        How often a step that does not converge is halved before it fails; steps are then not
        compiled. The order stays, as for any change of the step.
    t0, solver_parameters, options_prefix, compiled
        As for every stepper. A linear problem with constant matrices is factorised once. The
        default is an LU of everything; for large problems use for example ``{"ksp_type": "cg",
        "pc_type": "gamg"}``.

    Raises
    ------
    TypeError, ValueError
        If the system is not a motion, its start determines no acceleration or violates the
        constraint, or the system has a constraint and the scheme does not damp.

    Notes
    -----
    You may set the configuration and velocity of the system between two steps: the accelerations
    are then solved for again, for all nodes. Where a state is set before every step, the method is
    of first order. A coefficient that changes before every step counts as a function of time, with
    its value at the end of the step: a⁰ is not changed. Only the value of a DirichletBC does not;
    give it as a function of time. The reported ``acceleration`` is the true one, v̇.

    For beams Newton's iteration begins with the extrapolated motion. If that does not contract, as
    after a sudden load that a step does not resolve, it begins again from the present
    configuration, and at last with damped steps: see
    :func:`fdgeom.beams.rod.rod_motion.attempts`.
    """

    moves = Motion
    needs = "a second-order motion such as a SecondOrderSystem, RigidBodies, a Beam or an Assembly"
    order = 2
    conserves = ("constraint",)
    cites = ("ChungHulbert1993", "BrulsCardona2010", "GuLiuAnShi")
    samples_coefficients = True

    def __init__(
        self,
        system: Motion,
        dt: float,
        scheme: AlphaScheme | None = None,
        *,
        start: str = "default",
        halvings: int = 0,
        **options: Unpack[StepperOptions],
    ) -> None:
        if scheme is not None:
            instance("scheme", scheme, AlphaScheme, "an AlphaScheme such as hamel_alpha(0.8)")
        choice("start", start, STARTS)
        self._halvings = whole("halvings", halvings, least=0)
        self.scheme = hamel_alpha(0.8) if scheme is None else scheme
        self.order = 2 if self.scheme.is_second_order else 1
        self._start_kind = start
        super().__init__(system, dt, **options)

    def _setup(self) -> None:
        system = self.system
        if system.constraint is not None and self.scheme.rho_inf > _LARGEST_RHO:
            raise ValueError(
                f"scheme: {self.scheme.name or 'it'} does not damp the highest frequencies "
                f"(rho_inf = {self.scheme.rho_inf:.3g}), and a multiplier then grows without bound; "
                "take hamel_alpha(rho_inf) with rho_inf <= 0.95"
            )
        self._start_motion()

    # --- the step ----------------------------------------------------------------------------------
    def flows(self):
        """A solve for the increment D and Λ = wλ, with assignments before and after it,

            w r(g∘D, v_c + v_D D, a_c + a_D D, t) + B(g∘D)ᵀΛ = 0,   Φ(g∘D) = 0,   w = βh²,

        with the parts v_c, a_c of the new velocity and acceleration that do not depend on D.
        """
        # With the factor w the matrix is near the mass for a small step, and that of the conditions
        # does not depend on h.
        motion, self._kinematics = self.system, _Kinematics(self.scheme)
        self._unknown = unknown = NodalUnknown(motion, tests=Function)
        self._v_c, self._a_c = (Function(motion.space, name=name) for name in ("v_c", "a_c"))
        self._h = Constant(0.0, name="dt")
        self._timed = {"dt": self._h, "clock": motion.model.clocks}
        function = unknown.function
        space = function.function_space()
        first, other = Function(space, name="first guess"), Function(space, name="other guess")
        solve = Solve(
            work=self._residual(),
            test=unknown.whole_test,
            unknown=function,
            prescribed=unknown.prescribed,
            options=self.solve_options(),
            # An error of D over βh² shows in the accelerations: round-off shall be all there is.
            extra_updates=1,
            name="the motion",
            **motion.traits.solver_defaults(first, other),
            **self._timed,
        )
        before = [self._map(group) for group in self._prediction(first)]
        if solve.attempts and unknown.multiplier is not None:
            before.append(self._map({other: unknown.without_increment(first)}))
        given, kept = self._given_motion()
        return [Flow([*before, *given, *with_assignments(solve, self._update()), *kept])]

    def _map(self, values) -> Map:
        return Map(values=values, **self._timed)

    def _residual(self) -> Form:
        motion, unknown = self.system, self._unknown
        w, v_D, a_D = self._kinematics.slopes(self._h)
        D, g = unknown.vector, motion.moved(unknown.vector)
        v, a = self._v_c + v_D * D, self._a_c + a_D * D
        form = w * motion.balance(g, v, a, motion.time, unknown.test)
        if motion.constraint is not None:
            form += motion.constraint.slope(unknown.multiplier, unknown.test, g)
            form += motion.constraint.value(unknown.nu, g)
        return form

    # --- around the solve, part by part ------------------------------------------------------------
    def _states(self):
        """v, a and v̇, for each part of their space."""
        motion = self.system
        state = motion.v, motion.algorithmic, motion.acceleration
        return list(zip(*(parts(f) for f in state), strict=True))

    def _constants(self):
        """v_c and a_c, for each part of their space."""
        return list(zip(parts(self._v_c), parts(self._a_c), strict=True))

    def _prediction(self, first: Function) -> list[dict]:
        """First guess: the motion continues with the present a."""
        h, kinematics, multiplier = self._h, self._kinematics, self.system.multiplier
        going_on = [h * (v + 0.5 * h * a) for v, a, _ in self._states()]
        scaled = None if multiplier is None else kinematics.slopes(h)[0] * multiplier
        groups = self._unknown.assignments(first, going_on, scaled)
        for group, targets, state in zip(groups, self._constants(), self._states(), strict=False):
            group |= dict(zip(targets, kinematics.constants(h, *state), strict=True))
        return groups

    def _update(self) -> list[dict]:
        motion, unknown, kinematics = self.system, self._unknown, self._kinematics
        w, v_D, a_D = kinematics.slopes(self._h)
        groups = motion.displacements(unknown.parts)
        every = zip(groups, self._states(), self._constants(), unknown.parts, strict=True)
        for group, (v, a, rate), (v_c, a_c), D in every:
            new = a_c + a_D * D
            group |= {v: v_c + v_D * D, a: kinematics.algorithmic(new, a, rate), rate: new}
        if motion.multiplier is not None:
            found = {motion.multiplier: unknown.multiplier_part / w}
            groups = [groups[0] | found] if unknown.is_joined else [*groups, found]
        return groups

    def _given_motion(self) -> tuple[list, list]:
        """Operations before and after the solve that prescribe the given motion."""
        held = self.system.held
        if held is None:
            return [], []
        before: list[Operation] = [PrescribeMotion(unknown=self._unknown, held=held, **self._timed)]
        if not held.varies:
            return before, []
        # v_c and a_c that make the new velocity and acceleration the given ones.
        _, *slopes = self._kinematics.slopes(self._h)
        for constant, slope, value in zip(
            (self._v_c, self._a_c), slopes, (held.v, held.a), strict=True
        ):
            given = Function(self.system.space, name=f"{constant.name()} of a given motion")
            values = zip(*map(parts, (given, value, held.increment)), strict=True)
            before += [self._map({g: new - slope * D}) for g, new, D in values]
            before += self._copies(given, constant)
        # The control force is of no use where the motion is given.
        return before, self._copies(self.system.acceleration, self.system.algorithmic)

    def _copies(self, source: Function, target: Function) -> list[Copy]:
        """Copies at the given degrees of freedom."""
        copied = zip(parts(source), parts(target), self.system.held.dofs, strict=True)
        return [Copy(source=s, target=t, rows=dofs) for s, t, dofs in copied]

    def uncompilable(self):
        return "a step that fails is to be cut in halves" if self._halvings else None

    # --- the accelerations at the start ----------------------------------------------------------
    def underivable(self):
        if self._halvings:
            return "a step may be cut in halves: take halvings=0"
        if self._start_kind == "consistent" and self.system.constraint is not None:
            return (
                "its consistent start moves the velocity off the constraint: take start='default'"
            )
        return None

    def _after_beginning(self):
        """a = v̇ + σ Δt v̈ for a consistent start, and the part of v off the constraint."""
        if self._start_kind != "consistent":
            return []
        system, scheme, found = self.system, self.scheme, self._accelerations
        h = Constant(self.dt)
        operations = list(found.jerk_operations())
        if system.constraint is not None:
            change, weight = Function(system.space), 1 / 6 - scheme.beta - scheme.shift / 2
            bracket = system.bracket(system.v, system.acceleration)
            operations += [
                Map(values={change: h**2 * weight * found.jerk + h**2 / 12 * bracket}),
                *found.normal_operations(change),
                Map(values={system.v: system.v + change}),
            ]
        pairs = zip(parts(system.algorithmic), parts(found.jerk), strict=True)
        return [*operations, *(Map(values={a: a + scheme.shift * h * jerk}) for a, jerk in pairs)]

    def _name_of_beginning(self):
        return "begin", self.dt if self._start_kind == "consistent" else None

    def rescale(self, ratio):
        """τ = M(a - v̇) is proportional to the step, what v is off a constraint to its square."""
        system = self.system
        pairs = zip(parts(system.algorithmic), parts(system.acceleration), strict=True)
        found: list[Operation] = [Map(values={a: true + ratio * (a - true)}) for a, true in pairs]
        if system.constraint is None or "normal" not in system.traits.can:
            return found
        off = Function(system.space, name="off the constraint")
        back = zip(parts(system.v), parts(off), strict=True)
        return [
            *found,
            Copy(source=system.v, target=off),
            *self._accelerations.normal_operations(off),
            *(Map(values={v: v + (ratio**2 - 1) * o}) for v, o in back),
        ]

    def finished(self):
        super().finished()
        # Where all have been set, as from a checkpoint, they are taken to agree.
        self.system.accelerated(lambda: self._known.holds() or not self._carried.holds())

    # --- stepping --------------------------------------------------------------------------------
    def _failed(self, failure: SolveFailed) -> StepFailed:
        if self.steps and self.scheme.rho_inf > 0.5:
            failure.remedy = (
                f"{failure.remedy or 'try a smaller dt or other solver_parameters'}; if the highest "
                "frequencies have grown, a scheme that damps them more helps, such as hamel_alpha(0.5)"
            )
        return super()._failed(failure)

    def _rescale(self, ratio: float) -> None:
        if not self._halvings:  # else each piece of a step does it
            super()._rescale(ratio)

    def _step(self, t: float, dt: float) -> None:
        if not self._halvings:
            super()._step(t, dt)
            return
        self._piece = self._cut_step(t, dt, self.clock.last_dt, self._halvings)

    def _cut_step(self, t: float, dt: float, last: float, halvings: int) -> float:
        """Take a step after one of the length ``last``, or its halves; returns the last one's length."""
        before = Snapshot(self.state_functions)
        before.take()
        try:
            if dt != last:
                super()._rescale(dt / last)
            super()._step(t, dt)
            return dt
        except SolveFailed:
            if not halvings:
                raise
            before.restore()
        for start in (t, t + dt / 2):
            last = self._cut_step(start, dt / 2, last, halvings - 1)
        return last

    def carried_for(self, dt):
        return self._piece if self._halvings else dt

    def parameters(self):
        numbers = (
            f"{name} = {value:.17g}" for name, value in vars(self.scheme).items() if name != "name"
        )
        return {"scheme": f"{self.scheme.name} ({', '.join(numbers)})", "start": self._start_kind}


class _Kinematics:
    """Velocity and accelerations after an increment D, in expressions or numbers alike:

    a¹ = (D - h v⁰ - h² (½ - β) a⁰)/βh²,   v¹ = v⁰ + h ((1 - A) a⁰ + A a¹),
    a¹ = (1 + B₁) v̇¹ - (B₁ + B₂) v̇⁰ + B₂ a⁰.
    """

    def __init__(self, scheme: AlphaScheme) -> None:
        self.parameters = tuple(map(Constant, (scheme.beta, scheme.A, scheme.B1, scheme.B2)))

    def slopes(self, dt):
        """w, v_D and a_D."""
        beta, A, B1, _ = self.parameters
        # Products, not powers: those are slow in compiled code.
        w = beta * dt * dt
        return w, A / (beta * dt), 1 / (w * (1 + B1))

    def constants(self, dt, v, a, rate):
        """v_c and a_c."""
        beta, A, B1, B2 = self.parameters
        new = -(v / dt + (0.5 - beta) * a) / beta
        return v + dt * ((1 - A) * a + A * new), (new - B2 * a + (B1 + B2) * rate) / (1 + B1)

    def algorithmic(self, new, a, rate):
        """a¹ for the new v̇¹."""
        _, _, B1, B2 = self.parameters
        return (1 + B1) * new - (B1 + B2) * rate + B2 * a
