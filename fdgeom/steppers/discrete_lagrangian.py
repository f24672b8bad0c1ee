"""Variational integrators from a discrete Lagrangian, without and with constraints."""

from typing import Unpack

from firedrake import Constant, Function
from ufl.classes import Expr, Form

from fdgeom.execution import plain, saddle
from fdgeom.operations import Flow, parts
from fdgeom.steppers.holonomic import HolonomicStepper
from fdgeom.steppers.stepper import StepperOptions
from fdgeom.systems.constrained.lagrangian import LagrangianSystem
from fdgeom.validation import choice

QUADRATURES = ("midpoint", "trapezoidal")


class DiscreteLagrangian(HolonomicStepper):
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
    solver_parameters, options_prefix, compiled
        As for every stepper; the two solves are called ``position`` and ``velocity``.

    Raises
    ------
    TypeError, ValueError
        If the system is not a LagrangianSystem, its mass matrix is singular, it starts off its
        constraints, or these are redundant.
    """

    order = 2
    symmetric = True
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

    def flows(self):
        unknown, *rest = self._unknown("stage")
        return [self._position(unknown, *rest), self._velocity(parts(unknown)[0])]

    def _slopes(self, w: Expr, mean: Expr, dt: Constant) -> tuple[Form, Form]:
        """D₁L_d[w] and D₂L_d[w] for q¹ = q⁰ + Δt u, u the mean velocity of the step."""
        system, q = self.system, self.system.q
        if self.quadrature == "midpoint":
            middle = q + 0.5 * dt * mean
            force = 0.5 * dt * system.force(w, middle, mean)
            momentum = system.momentum(w, middle, mean)
            return force - momentum, force + momentum
        new = q + dt * mean
        momentum = 0.5 * (system.momentum(w, q, mean) + system.momentum(w, new, mean))
        first, second = (0.5 * dt * system.force(w, at, mean) for at in (q, new))
        return first - momentum, second + momentum

    def _position(self, unknown, parts, tests) -> Flow:
        # The unknown is u, not q¹: a difference of positions over Δt would lose digits.
        system, dt = self.system, Constant(0.0, name="dt")
        (mean, gamma), (w, test) = parts, tests
        v = system.velocity()
        residual = -system.momentum(w, system.q, v) - self._slopes(w, mean, dt)[0]
        start = [v]
        if system.constraint is not None:
            new = system.q + dt * mean
            residual -= 0.5 * dt * system.constraint.slope(gamma, w)
            residual += system.constraint.value(test / dt, at=new)
            start.append(system.multiplier)
        return self._solve("position", unknown, dt, residual, start, [], self._numerics())

    def _velocity(self, mean: Function) -> Flow:
        system, dt = self.system, Constant(0.0, name="dt")
        unknown, (v, multiplier), (w, test) = self._unknown("velocity")
        new = system.q + dt * mean
        residual = system.momentum(w, new, v) - self._slopes(w, mean, dt)[1]
        start, old = [mean], [system.velocity()]
        if system.constraint is not None:
            residual -= 0.5 * dt * system.constraint.slope(multiplier, w, at=new)
            residual += system.constraint.slope(test, v, at=new)
            start.append(system.multiplier)
            old.append(system.multiplier)
        writes = [{target: part} for target, part in zip(old, parts(unknown), strict=True)]
        writes.insert(0, {system.q: new})
        return self._solve("velocity", unknown, dt, residual, start, writes, self._numerics())

    def _numerics(self):
        return plain if self.system.constraint is None else saddle
