"""Variational integrators from a discrete Lagrangian, without constraints and with both kinds."""

from typing import Unpack

from firedrake import Constant
from ufl.classes import Expr, Form

from fdgeom.execution import plain, saddle
from fdgeom.operations import Flow, parts
from fdgeom.steppers.holonomic import HolonomicStepper
from fdgeom.steppers.stepper import StepperOptions
from fdgeom.systems.constrained.lagrangian import LagrangianSystem, NonholonomicSystem
from fdgeom.validation import choice

QUADRATURES = ("midpoint", "trapezoidal")


class _LagrangianStepper(HolonomicStepper):
    """Base of the methods with half of a node's reaction in the step before it, and half after.

        p⁰ = -D₁L_d(q⁰, q¹) - Δt/2 A(q⁰)ᵀγ,   a condition on q¹ for γ,
        p¹ =  D₂L_d(q⁰, q¹) + Δt/2 A(q¹)ᵀλ,   A(q¹) q̇¹ = 0,

    where A is the constraint on velocities. The first solve is for ((q¹-q⁰)/Δt, γ), the second for
    (q̇¹, λ).
    """

    order = 2
    symmetric = True

    def _slopes(self, w: Expr, mean: Expr, dt: Constant) -> tuple[Form, Form]:
        """D₁L_d[w] and D₂L_d[w] for q¹ = q⁰ + Δt u, u the mean velocity; here L_d = Δt L(q̄, u)."""
        middle = self.system.q + 0.5 * dt * mean
        force = 0.5 * dt * self.system.force(w, middle, mean)
        momentum = self.system.momentum(w, middle, mean)
        return force - momentum, force + momentum

    def _condition(self, mean: Expr, test: Expr, dt: Constant) -> Form:
        """The condition on the mean velocity of the step."""
        raise NotImplementedError

    def _reaction(self, gamma: Expr, multiplier: Expr) -> Expr:
        """The multiplier of the system after the step."""
        raise NotImplementedError

    def flows(self):
        stage, *rest = self._unknown("stage")
        return [self._position(stage, *rest), self._velocity(*parts(stage))]

    def _position(self, stage, unknowns, tests) -> Flow:
        # The unknown is u, not q¹: a difference of positions over Δt would lose digits.
        system, dt = self.system, Constant(0.0, name="dt")
        (mean, gamma), (w, test) = unknowns, tests
        v = system.velocity()
        residual = -system.momentum(w, system.q, v) - self._slopes(w, mean, dt)[0]
        start = [v]
        if system.constraint is not None:
            residual -= 0.5 * dt * system.constraint.slope(gamma, w)
            residual += self._condition(mean, test, dt)
            start.append(system.multiplier)
        return self._solve(self.solves[0], stage, dt, residual, start, [], self._numerics())

    def _velocity(self, mean, gamma=None) -> Flow:
        system, dt = self.system, Constant(0.0, name="dt")
        unknown, (v, multiplier), (w, test) = self._unknown("velocity")
        new, found = system.q + dt * mean, parts(unknown)
        residual = system.momentum(w, new, v) - self._slopes(w, mean, dt)[1]
        start, writes = [mean], [{system.q: new}, {system.velocity(): found[0]}]
        if system.constraint is not None:
            residual -= 0.5 * dt * system.constraint.slope(multiplier, w, at=new)
            residual += system.constraint.slope(test, v, at=new)
            start.append(system.multiplier)
            writes.append({system.multiplier: self._reaction(gamma, found[1])})
        return self._solve(self.solves[1], unknown, dt, residual, start, writes, self._numerics())

    def _numerics(self):
        return plain if self.system.constraint is None else saddle


class DiscreteLagrangian(_LagrangianStepper):
    """Discrete Euler–Lagrange equations of a discrete Lagrangian, in position and momentum.

        p⁰ = -D₁L_d(q⁰, q¹) - Δt/2 Dg(q⁰)ᵀγ,   g(q¹) = 0,
        p¹ =  D₂L_d(q⁰, q¹) + Δt/2 Dg(q¹)ᵀλ,   Dg(q¹) q̇¹ = 0,   p = ∂L/∂q̇(q, q̇),

    equations (24) and (27)-(29) of Bai & Ge, J. Dynamics and Control (2013), from Marsden & West,
    Acta Numerica 10 (2001), with the constraint on the velocity as in RATTLE. The quadrature is

    - midpoint: L_d = Δt L((q⁰+q¹)/2, (q¹-q⁰)/Δt), without constraints the implicit midpoint rule
      where L = T(q̇) - V(q);
    - trapezoidal: L_d = Δt/2 [L(q⁰, u) + L(q¹, u)], u = (q¹-q⁰)/Δt; for L = T(q̇) - V(q) this is
      Störmer–Verlet, and with constraints RATTLE.

    Symplectic and symmetric; momenta of linear symmetries are conserved to round-off (discrete
    Noether theorem). The mass matrix of the Lagrangian must be regular and may depend on q.

    Parameters
    ----------
    system : LagrangianSystem
        The system to integrate. It must start on both constraints (``system.project()`` moves it
        there).
    dt : float
        Time step.
    quadrature : {"midpoint", "trapezoidal"}, optional
        The discrete Lagrangian.
    t0, solver_parameters, options_prefix, compiled
        As for every stepper; the two solves are called ``position`` and ``velocity``.

    Raises
    ------
    TypeError, ValueError
        If the system is not a LagrangianSystem, its mass matrix is singular, it starts off its
        constraints, or these are redundant.
    """

    symplectic = True
    conserves = ("constraint", "velocity constraint", "momenta of linear symmetries")
    moves = LagrangianSystem
    cites = ("MarsdenWest2001", "BaiGe2013")
    solves = ("position", "velocity")

    def __init__(
        self, system, dt: float, *, quadrature: str = "midpoint", **options: Unpack[StepperOptions]
    ) -> None:
        self.quadrature = choice("quadrature", quadrature, QUADRATURES)
        super().__init__(system, dt, **options)

    def parameters(self):
        return {"quadrature": self.quadrature}

    def _slopes(self, w, mean, dt):
        if self.quadrature == "midpoint":
            return super()._slopes(w, mean, dt)
        system, q = self.system, self.system.q
        new = q + dt * mean
        momentum = 0.5 * (system.momentum(w, q, mean) + system.momentum(w, new, mean))
        first, second = (0.5 * dt * system.force(w, at, mean) for at in (q, new))
        return first - momentum, second + momentum

    def _condition(self, mean, test, dt):
        return self.system.constraint.value(test / dt, at=self.system.q + dt * mean)

    def _reaction(self, gamma, multiplier):
        return multiplier


class NonholonomicMidpoint(_LagrangianStepper):
    """Discrete Lagrange–d'Alembert method with the midpoint rule, for constraints A(q) v = 0.

        ∂L/∂v(q̄, v̄) - Δt/2 ∂L/∂q(q̄, v̄) = ∂L/∂v(q⁰, v⁰) + Δt/2 A(q⁰)ᵀλ⁺,   A(q̄) v̄ = 0,
        q¹ = q⁰ + Δt v̄,   q̄ = (q⁰ + q¹)/2,
        ∂L/∂v(q¹, v¹) = ∂L/∂v(q̄, v̄) + Δt/2 ∂L/∂q(q̄, v̄) + Δt/2 A(q¹)ᵀλ⁻,   A(q¹) v¹ = 0.

    The positions are those of the discrete Lagrange–d'Alembert principle of Cortés & Martínez
    (Nonlinearity 14, 2001) with L_d(q⁰, q¹) = Δt L(q̄, v̄) and the discrete constraint
    A(q̄)(q¹ - q⁰) = 0; each node's reaction is split in two, so that the velocity at the node is on
    the constraint too, as in :class:`RATTLE`. Two solves a step: for (v̄, λ⁺), then for (v¹, λ⁻).

    The method is symmetric and of order two in q and v; A(q̄) v̄ = 0 and A(q¹) v¹ = 0 hold to
    round-off. The system's multiplier is (λ⁺ + λ⁻)/2, the reaction in the middle of the step to
    order two (each of the two alone is of order one).

    Motion under constraints on velocities is no Hamiltonian flow, so the method is not symplectic,
    and its energy error has no bound. The motion conserves the energy; the method does so to order
    two over a fixed time, but the energy may drift over long times. Momenta of symmetries are not
    conserved if the reaction works against them. For a system of Chaplygin's type that has a
    Hamiltonian (see :class:`ChaplyginSystem`) a symplectic method is better.

    Parameters
    ----------
    system : NonholonomicSystem
        The system to integrate. It must start on the constraint (``system.project()`` moves it
        there).
    dt : float
        Time step.
    t0, solver_parameters, options_prefix, compiled
        As for every stepper; the two solves are called ``midpoint`` and ``velocity``:
        ``-<prefix>_midpoint_snes_monitor``. If the equations couple one node only (copies in DG0),
        the steps are compiled. Otherwise the default is one LU of everything.

    Raises
    ------
    TypeError, ValueError
        If the system is not a NonholonomicSystem, starts off its constraints, or these are redundant.
    """

    conserves = ("velocity constraint",)
    moves = NonholonomicSystem
    cites = ("CortesMartinez2001",)
    solves = ("midpoint", "velocity")

    def _condition(self, mean, test, dt):
        return self.system.constraint.slope(test, mean, at=self.system.q + 0.5 * dt * mean)

    def _reaction(self, gamma, multiplier):
        return 0.5 * (gamma + multiplier)
