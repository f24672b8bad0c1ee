"""The generalized-α family, on vector spaces and on Lie groups, with constraints."""

from functools import cached_property
from typing import Unpack

from firedrake import Constant, Function

from fdgeom.data import Snapshot
from fdgeom.errors import SolveFailed, StepFailed
from fdgeom.operations import Copy, Flow, Map, Operation, parts
from fdgeom.steppers.alpha.members import hamel_alpha
from fdgeom.steppers.alpha.motion_stepper import MotionStepper
from fdgeom.steppers.alpha.residual import AlphaSolve
from fdgeom.steppers.alpha.scheme import AlphaScheme
from fdgeom.steppers.stepper import StepperOptions
from fdgeom.systems.motion.motion import Motion
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
    are then solved for again, as after a change of a coefficient. A coefficient that changes before
    every step counts as a function of time, with its value at the end of the step: a⁰ is not
    changed. The reported ``acceleration`` is the true one, v̇.

    For beams Newton's iteration begins with the extrapolated motion. If that does not contract, as
    after a sudden load that a step does not resolve, it begins again from the present
    configuration, and at last with damped steps: see
    :func:`fdgeom.beams.rod.numerics.attempts`.
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

    def flows(self):
        return [Flow(AlphaSolve(self.system, self.scheme, self.solve_options()).operations)]

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

    def after_beginning(self):
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
        return [] if self._halvings else self._rescaled(ratio)

    def _rescaled(self, factor: Constant) -> list[Operation]:
        """τ = M(a - v̇) is proportional to the step, what v is off a constraint to its square."""
        system = self.system
        pairs = zip(parts(system.algorithmic), parts(system.acceleration), strict=True)
        found: list[Operation] = [Map(values={a: true + factor * (a - true)}) for a, true in pairs]
        if system.constraint is None or "normal" not in system.can:
            return found
        off = Function(system.space, name="off the constraint")
        back = zip(parts(system.v), parts(off), strict=True)
        return [
            *found,
            Copy(source=system.v, target=off),
            *self._accelerations.normal_operations(off),
            *(Map(values={v: v + (factor**2 - 1) * o}) for v, o in back),
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
                ratio, rescaling = self._rescaling_of_pieces
                ratio.assign(dt / last)
                self._perform(rescaling)
            super()._step(t, dt)
            return dt
        except SolveFailed:
            if not halvings:
                raise
            before.restore()
        for start in (t, t + dt / 2):
            last = self._cut_step(start, dt / 2, last, halvings - 1)
        return last

    @cached_property
    def _rescaling_of_pieces(self) -> tuple[Constant, list[Operation]]:
        ratio = Constant(1.0)
        return ratio, self._rescaled(ratio)

    def carried_for(self, dt):
        return self._piece if self._halvings else dt

    def parameters(self):
        numbers = (
            f"{name} = {value:.17g}" for name, value in vars(self.scheme).items() if name != "name"
        )
        return {"scheme": f"{self.scheme.name} ({', '.join(numbers)})", "start": self._start_kind}
