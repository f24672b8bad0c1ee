"""Methods of order four for second-order systems: two accelerations are the unknowns of a step."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Unpack

import numpy as np
from firedrake import (
    Constant,
    Form,
    Function,
    FunctionSpace,
    MixedFunctionSpace,
    TestFunction,
    TestFunctions,
    derivative,
    split,
)
from ufl.core.expr import Expr

from fdgeom.execution import Numerics, defaults
from fdgeom.forms import flatten, has_kink, is_affine, is_zero, simplify
from fdgeom.operations import (
    EPSILON,
    ConvergenceTest,
    Copy,
    Flow,
    Operation,
    Performed,
    Prescribed,
    Solve,
    parts,
    with_assignments,
)
from fdgeom.steppers.motion_stepper import MotionStepper
from fdgeom.steppers.stepper import StepperOptions
from fdgeom.systems.motion.second_order import SecondOrderSystem
from fdgeom.validation import number

Pair = tuple[Expr, Expr]


class TwoAccelerations(MotionStepper):
    """Base of the methods whose unknown is a pair of fields, both of the space of q."""

    moves = SecondOrderSystem

    def _setup(self) -> None:
        system = self.system
        if system.constraint is not None:
            name = type(self).__name__
            raise ValueError(f"system: {name} takes no constraint; use GeneralizedAlpha")
        self._check_system()
        self._start_motion()

    def flows(self):
        space, h = self.system.space, Constant(self.dt, name="dt")
        n = self._parts = len(space)
        pieces = [space.sub(k) for k in range(n)] if n > 1 else [space]
        whole = MixedFunctionSpace(pieces * 2)
        unknown, first = Function(whole, name="accelerations"), Function(whole, name="first guess")
        residual = self._residual(h, self._pair(split(unknown)), self._pair(TestFunctions(whole)))
        held = self.system.held
        dofs = [] if held is None else held.dofs * 2
        given = Function(whole, name="given accelerations").subfunctions
        timed = {"dt": h, "clock": self.system.model.clocks}
        solve = Solve(
            work=residual,
            unknown=unknown,
            guess=first,
            prescribed=[Prescribed(d, given[k], k) for k, d in enumerate(dofs)],
            options=self.solve_options(),
            numerics=partial(self._numerics, h),
            name="the accelerations",
            **timed,
        )
        guesses, found = self._pairs(first.subfunctions), self._pairs(unknown.subfunctions)
        operations = with_assignments(
            solve,
            [
                self._new_state(h, *state, *pair)
                for state, pair in zip(self._states(), found, strict=True)
            ],
            before=[
                dict(zip(pair, self._guess(h, *state), strict=True))
                for state, pair in zip(self._states(), guesses, strict=True)
            ],
        )
        if self.system.model.given_in_time():
            clock, given_values = self.system.model.clocks, []
            # Of the middle and of the end of the step.
            for at, targets in ((0.5, given[:n]), (1.0, given[n:])):
                given_values.append(Performed(do=held.update, operations=[], clock=clock, at=at))
                pairs = zip(parts(held.a), targets, strict=True)
                given_values += [Copy(source=a, target=target) for a, target in pairs]
            operations = [*given_values, *operations, held.putting(clock=clock)]
        return [Flow(operations)]

    def _numerics(self, h: Constant, residual: Form, unknown: Function) -> Numerics:
        """Newton's method ends at round-off of q over h², also near rest."""
        test = ConvergenceTest(self.system.q, unnoticed=EPSILON / h**2)
        return replace(of_everything(residual, unknown), converged=test)

    def underivable(self):
        if self.system.model.given_in_time():
            return "boundary values move: take GeneralizedAlpha"
        return None

    def uncompilable(self):
        return f"{type(self).__name__} is not made of implicit substeps"

    # --- what a method says ----------------------------------------------------------------------
    def _check_system(self) -> None:
        """Raise an error if the method cannot move this system."""

    @abstractmethod
    def _residual(self, h: Constant, unknowns: Pair, tests: Pair) -> Form:
        """The residual of both unknowns."""

    def _beside(self) -> tuple[Function, ...]:
        """Functions that the method reads and writes beside the system's q, v and accelerations."""
        return ()

    @abstractmethod
    def _guess(self, h: Constant, *state: Expr) -> Pair:
        """First guesses of the two fields, from a part of q, v, accelerations, carried fields."""

    @abstractmethod
    def _new_state(self, h: Constant, *state_and_fields: Function) -> dict[Function, Expr]:
        """The new state of that part, from the two fields."""

    # --- parts of the space of q -----------------------------------------------------------------
    def _states(self) -> list[tuple[Function, ...]]:
        system = self.system
        state = system.q, system.v, system.acceleration, system.algorithmic, *self._beside()
        return list(zip(*(parts(f) for f in state), strict=True))

    def _pairs(self, parts: Sequence[Function]) -> list[tuple[Function, Function]]:
        return list(zip(parts[: self._parts], parts[self._parts :], strict=True))

    def _pair(self, parts: Sequence[Expr]) -> Pair:
        n = self._parts
        return (flatten(parts[:n]), flatten(parts[n:])) if n > 1 else (parts[0], parts[1])


def of_everything(residual: Form, unknown: Function) -> Numerics:
    """Coupled equations, whose matrix is factorised again only if it changes."""
    return Numerics(defaults(residual, unknown, local=False), ConvergenceTest(), reuse_matrix=True)


_INSTEAD = "the order would be two; use HermiteSimpson, of order four for any system"


class FourthOrderAlpha(TwoAccelerations):
    """Order four for linear undamped systems M v̇ + K q = f, from a better path between the nodes.

        q¹ = q⁰ + h v⁰ + h² (a⁰/3 + a¹/6) + h⁴ M⁻¹K (μ₀ a⁰ + μ₁ a¹),
        v¹ = v⁰ + h/2 (a⁰ + a¹) + h³/24 M⁻¹K (a⁰ + a¹),   M a¹ + K q¹ = f¹,
        μ₀ = 1/48 + κ/720,   μ₁ = 1/48 - κ/720,

    remark 2 of Gu, Liu, An & Shi (Hamel generalized-α): the coefficients A = ½, A₃ = -1, A₄ = 1, B₁
    = B₂ = 0, with forces at positions q(s) with a correction from the accelerations at the ends. κ
    sets its shape: κ = 1 is the cubic with q̈ = a(s), κ = 0 the parabola. The unknown is a¹ with the
    auxiliary field h² M⁻¹K a¹, so that only sparse matrices are factorised, once.

    Symplectic, symmetric and without dissipation. Stable for Ω = ω h up to 3.201 (κ = 1), √12 = 3.464
    (κ = 0), and for every Ω with κ ≤ -3/2.

    Parameters
    ----------
    system : SecondOrderSystem
        The system to integrate: a residual of first degree in q and a with constant matrices,
        without v and constraint, loads at most linear in time, and constant boundary values.
    dt : float
        Time step h.
    kappa : float, optional
        The shape parameter κ, 1 if not given.
    t0, solver_parameters, options_prefix, compiled
        As for every stepper.

    Raises
    ------
    TypeError, ValueError
        If the system is not as described; the forms are checked for that.
    """

    order = 4
    symmetric = True
    symplectic = True
    conserves = ("momenta of linear symmetries",)
    cites = ("GuLiuAnShi",)

    def __init__(
        self, system, dt: float, kappa: float = 1.0, **options: Unpack[StepperOptions]
    ) -> None:
        self.kappa = number("kappa", kappa)
        super().__init__(system, dt, **options)

    @staticmethod
    def amplification(kappa: float = 1.0) -> Callable[[np.ndarray], np.ndarray]:
        """The step of (q, h v) for an oscillator, as a function of Ω for :mod:`fdgeom.analysis`."""

        def matrix(Omega):
            W = np.asarray(Omega, dtype=float) ** 2
            mu0, mu1 = 1 / 3 + W * (1 / 48 + kappa / 720), 1 / 6 + W * (1 / 48 - kappa / 720)
            gamma = 1 / 2 + W / 24
            # a = -Ω²q/h²; the new q first, then h v from both.
            q = np.stack([1 - W * mu0, np.ones_like(W)]) / (1 + W * mu1)
            v = np.stack([-gamma * W, np.ones_like(W)]) - gamma * W * q
            return np.moveaxis(np.stack([q, v]), (0, 1), (-2, -1))

        return matrix

    @property
    def _mu(self) -> tuple[float, float]:
        return 1 / 48 + self.kappa / 720, 1 / 48 - self.kappa / 720

    def _check_system(self) -> None:
        system = self.system
        test = TestFunction(system.space)
        clock = Function(FunctionSpace(system.mesh, "DG", 0))
        form = system.balance((system.q,), system.v, system.acceleration, clock, test)
        if has_kink(simplify(form), system.v) or not is_zero(simplify(derivative(form, system.v))):
            raise ValueError(f"system: the residual depends on the velocity; {_INSTEAD}")
        for f, name in ((system.q, "q"), (system.acceleration, "a")):
            matrix = simplify(derivative(form, f))
            if not is_affine(form, f) or any(
                c in matrix.coefficients() for c in (system.q, system.acceleration, clock)
            ):
                raise ValueError(
                    f"system: the residual is not linear in {name} with a constant matrix; {_INSTEAD}"
                )
        if not is_affine(form, clock):
            raise ValueError(f"system: its load is not linear in time; {_INSTEAD}")
        if system.model.given_in_time():
            raise ValueError(f"system: its boundary values move; {_INSTEAD}")

    def _residual(self, h, unknowns, tests):
        system, (a1, b1), (test, test_b) = self.system, unknowns, tests
        q, v, a, b = system.q, system.v, system.acceleration, self._b
        mu0, mu1 = map(Constant, self._mu)
        # b stands for M⁻¹K a, b1 for h² M⁻¹K a¹.
        q1 = q + h * v + h**2 * (a / 3 + a1 / 6) + h**4 * mu0 * b + h**2 * mu1 * b1
        balance = system.balance((q1,), v, a1, system.time, test)
        return balance + system.inertia(test_b, b1) - h**2 * self._stiffness(test_b, a1)

    def _stiffness(self, test, direction):
        system = self.system
        form = system.balance((system.q,), system.v, system.acceleration, system.time, test)
        return simplify(derivative(form, system.q, direction))

    # --- M⁻¹K a at the nodes ---------------------------------------------------------------------
    @cached_property
    def _b(self) -> Function:
        """M⁻¹K a at the present time."""
        return Function(self.system.space, name="bend")

    def _after_accelerations(self):
        return self._bend

    @cached_property
    def _bend(self) -> list[Operation]:
        """The solve for M⁻¹K a."""
        system, test = self.system, TestFunction(self.system.space)
        dofs = [] if system.held is None else system.held.dofs
        solve = Solve(
            work=system.inertia(test, self._b) - self._stiffness(test, system.acceleration),
            unknown=self._b,
            prescribed=[Prescribed(d, part=k) for k, d in enumerate(dofs)],
            numerics=of_everything,
            name="M⁻¹K a",
        )
        return [solve]

    def parameters(self):
        return {"kappa": self.kappa}

    def functions(self):
        return {"bend": self._b}

    # --- stepping --------------------------------------------------------------------------------
    def _beside(self):
        return (self._b,)

    def _guess(self, h, q, v, a, algorithmic, b):
        return a, h**2 * b

    def _new_state(self, h, q, v, a, algorithmic, b, a1, b1):
        mu0, mu1 = map(Constant, self._mu)
        return {
            q: q + h * v + h**2 * (a / 3 + a1 / 6) + h**2 * (h**2 * mu0 * b + mu1 * b1),
            v: v + h / 2 * (a + a1) + h / 24 * (h**2 * b + b1),
            a: a1,
            b: b1 / h**2,
            algorithmic: a1,
        }


class HermiteSimpson(TwoAccelerations):
    """Fourth order for nonlinear, damped and forced second-order systems M v̇ = F(q, v, t).

        q_m = (q⁰ + q¹)/2 - h²/16 (a⁰ + a¹),   v_m = (v⁰ + v¹)/2 - h/8 (a¹ - a⁰),
        q¹ = q⁰ + h v⁰ + h²/6 (a⁰ + 2 a_m),    v¹ = v⁰ + h/6 (a⁰ + 4 a_m + a¹),

    with the true accelerations a at both ends and a_m in the middle, each from the balance of
    forces there: Hermite's interpolation of the end values, Simpson's rule for the integrals. For
    linear undamped systems it is :class:`FourthOrderAlpha` with κ = 0, to round-off. One solve
    gives both a_m and a¹, twice as many unknowns as in :class:`GeneralizedAlpha`.

    Symmetric. An undamped oscillation keeps its amplitude for Ω = ω h ≤ √12 and is unstable above:
    use this method for accuracy in time with steps that resolve the fastest motion of the mesh.

    Parameters
    ----------
    system : SecondOrderSystem
        The system to integrate, without constraint. For given degrees of freedom a_m and a¹ are
        given too.
    dt : float
        Time step h.
    t0, solver_parameters, options_prefix, compiled
        As for every stepper; the default is an LU of both unknowns, reused while the matrix does
        not change.

    Raises
    ------
    TypeError, ValueError
        If the system is not a SecondOrderSystem or has a constraint, or its start determines no
        acceleration.
    """

    order = 4
    symmetric = True

    def _residual(self, h, unknowns, tests):
        system, (a_m, a1), (test_m, test) = self.system, unknowns, tests
        q, v, a, t = system.q, system.v, system.acceleration, system.time
        q1 = q + h * v + h**2 / 6 * (a + 2 * a_m)
        v1 = v + h / 6 * (a + 4 * a_m + a1)
        q_m = (q + q1) / 2 - h**2 / 16 * (a + a1)
        v_m = (v + v1) / 2 - h / 8 * (a1 - a)
        middle = system.balance((q_m,), v_m, a_m, t - h / 2, test_m)
        return middle + system.balance((q1,), v1, a1, t, test)

    def _guess(self, h, q, v, a, algorithmic):
        return a, a

    def _new_state(self, h, q, v, a, algorithmic, a_m, a1):
        return {
            q: q + h * v + h**2 / 6 * (a + 2 * a_m),
            v: v + h / 6 * (a + 4 * a_m + a1),
            a: a1,
            algorithmic: a1,
        }
