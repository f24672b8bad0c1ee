"""The discrete Lagrange–d'Alembert method for constraints on velocities."""

from firedrake import Constant

from fdgeom.operations import Flow
from fdgeom.steppers.holonomic import HolonomicStepper
from fdgeom.systems.constrained.lagrangian import NonholonomicSystem


class NonholonomicMidpoint(HolonomicStepper):
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
    solver_parameters, options_prefix, compiled
        As for every stepper; the two solves are called ``midpoint`` and ``velocity``:
        ``-<prefix>_midpoint_snes_monitor``. If the equations couple one node only (copies in DG0),
        the steps are compiled. Otherwise the default is one LU of everything.

    Raises
    ------
    TypeError, ValueError
        If the system is not a NonholonomicSystem, starts off its constraints, or these are redundant.
    """

    order = 2
    symmetric = True
    conserves = ("velocity constraint",)
    moves = NonholonomicSystem
    cites = ("CortesMartinez2001",)
    solves = ("midpoint", "velocity")

    def flows(self):
        #: v̄ and λ⁺, which the second solve needs.
        self._middle, *rest = self._unknown("middle")
        return [self._to_middle(*rest), self._to_end()]

    def _to_middle(self, parts, tests) -> Flow:
        system, dt, (v, reaction), (w, test) = self.system, Constant(0.0, name="dt"), parts, tests
        slope = system.constraint.slope
        q = system.q + 0.5 * dt * v
        residual = (
            system.momentum(w, q, v)
            - 0.5 * dt * system.force(w, q, v)
            - system.momentum(w)
            - 0.5 * dt * slope(reaction, w)
            + slope(test, v, at=q)
        )
        velocity, _ = self._middle.subfunctions
        return self._solve(
            "midpoint",
            self._middle,
            dt,
            residual,
            (system.velocity(), system.multiplier),
            [{system.q: system.q + dt * velocity}],
        )

    def _to_end(self) -> Flow:
        system, dt = self.system, Constant(0.0, name="dt")
        slope = system.constraint.slope
        unknown, (v, reaction), (w, test) = self._unknown("end")
        velocity, before = self._middle.subfunctions
        q = system.q - 0.5 * dt * velocity
        residual = (
            system.momentum(w, v=v)
            - system.momentum(w, q, velocity)
            - 0.5 * dt * system.force(w, q, velocity)
            - 0.5 * dt * slope(reaction, w)
            + slope(test, v)
        )
        end, after = unknown.subfunctions
        return self._solve(
            "velocity",
            unknown,
            dt,
            residual,
            (velocity, before),
            [{system.velocity(): end}, {system.multiplier: 0.5 * (before + after)}],
        )
