"""The fourth-order member of the Hamel family, for linear undamped systems."""

from collections.abc import Callable
from functools import cached_property
from typing import Unpack

import numpy as np
from firedrake import Constant, Function, FunctionSpace, TestFunction, derivative

from fdgeom.forms import has_kink, is_affine, is_zero, simplify
from fdgeom.operations import Operation, Prescribed, Solve
from fdgeom.steppers.alpha.two_accelerations import TwoAccelerations, of_everything
from fdgeom.steppers.stepper import StepperOptions
from fdgeom.validation import number

_INSTEAD = "the order would be two; use HermiteSimpson, of order four for any system"


class FourthOrderAlpha(TwoAccelerations):
    """Order four for linear undamped systems M v̇ + K q = f, from a better path between the nodes.

        q¹ = q⁰ + h v⁰ + h² (a⁰/3 + a¹/6) + h⁴ M⁻¹K (μ₀ a⁰ + μ₁ a¹),
        v¹ = v⁰ + h/2 (a⁰ + a¹) + h³/24 M⁻¹K (a⁰ + a¹),   M a¹ + K q¹ = f¹,
        μ₀ = 1/48 + κ/720,   μ₁ = 1/48 - κ/720,

    remark 2 of Gu, Liu, An & Shi (Hamel generalized-α): the coefficients A = ½, A₃ = -1, A₄ = 1, B₁
    = B₂ = 0, with forces at positions q(s) that bulge by the accelerations at the ends. κ shapes
    the bulge: κ = 1 is the cubic with q̈ = a(s), κ = 0 the parabola. The unknown is a¹ with the
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
    solver_parameters, options_prefix, compiled
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

    def after_accelerations(self):
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
