"""SHAKE and RATTLE: the Störmer–Verlet method with holonomic constraints."""

from collections.abc import Callable

import ufl
from firedrake import Constant, Form, Function, TestFunction
from ufl.core.expr import Expr

from fdgeom.execution import plain, saddle
from fdgeom.operations import Flow, Solve, parts, with_assignments
from fdgeom.steppers.holonomic import HolonomicStepper
from fdgeom.systems.constrained.constrained import ConstrainedSystem


class _Verlet(HolonomicStepper):
    """Störmer–Verlet whose first half ends on the constraint."""

    order = 2
    symplectic = True
    moves = ConstrainedSystem

    def _kick(self, p: Expr, w: Expr, dt: Constant) -> Form:
        """⟨p - p⁰, w⟩ + Δt/2 dV[w]."""
        system = self.system
        return system.pairing(p - system.p, w) + 0.5 * dt * system.potential_derivative(w)

    def _position(self, push: Callable[..., Form], *, keeps: bool = False) -> Flow:
        """p_½ and q¹ with the reaction ``push(λ, w, dt)``, whose λ is stored or not."""
        system, dt = self.system, Constant(0.0, name="dt")
        unknown, (p, multiplier), (w, test) = self._unknown("stage")
        moved = system.q + dt * system.velocity(p)
        # Over Δt, so that both rows are of one size.
        on_it = system.constraint.value(test / dt, at=moved)
        half, new = parts(unknown)
        kept = [{system.multiplier: new}] if keeps else []
        return self._solve(
            "position",
            unknown,
            dt,
            self._kick(p, w, dt) + push(multiplier, w, dt) + on_it,
            (system.p, system.multiplier),
            [{system.q: system.q + dt * system.velocity(half)}, {system.p: half}, *kept],
        )


class RATTLE(_Verlet):
    """RATTLE: Störmer–Verlet with both constraints, on position and velocity, after every step.

        p_½ = p⁰ - Δt/2 ∇V(q⁰) + Δt/2 Dg(q⁰)ᵀγ,   q¹ = q⁰ + Δt M⁻¹p_½,   g(q¹) = 0,
        p¹ = p_½ - Δt/2 ∇V(q¹) + Δt/2 Dg(q¹)ᵀλ,   Dg(q¹) M⁻¹p¹ = 0,

    equations (30)-(33) of Bai & Ge, J. Dynamics and Control (2013); Andersen, J. Comput. Phys. 52
    (1983). The first line is solved for (p_½, γ) by Newton's iteration, the second is linear in
    (p¹, λ). Symplectic on the constraint manifold (Leimkuhler & Skeel 1994), symmetric; the energy
    oscillates within O(Δt²) and does not drift. Momenta of linear symmetries are conserved to
    round-off. The constraint adds no stiffness: the fastest motion limits the step, as for Verlet.

    Parameters
    ----------
    system : ConstrainedSystem
        The system to integrate. It must start on both constraints (``system.project()`` moves it
        there).
    dt : float
        Time step.
    t0, solver_parameters, options_prefix, compiled
        As for every stepper; the two solves are called ``position`` and ``velocity``:
        ``-<prefix>_position_snes_monitor``. If the equations couple one node only (copies in DG0),
        the steps are compiled. Otherwise the default is an LU of everything, in an order that
        eliminates the momentum first if the mass is lumped; a Schur complement is ``{"ksp_type":
        "gmres", "pc_type": "fieldsplit", "pc_fieldsplit_type": "schur",
        "pc_fieldsplit_detect_saddle_point": None, "pc_fieldsplit_schur_precondition": "selfp"}``.

    Raises
    ------
    TypeError, ValueError
        If the system is not a ConstrainedSystem, starts off its constraints, or these are redundant.
    """

    symmetric = True
    conserves = ("constraint", "velocity constraint", "momenta of linear symmetries")
    cites = ("Andersen1983", "LeimkuhlerSkeel1994", "BaiGe2013")
    solves = ("position", "velocity")

    def flows(self):
        slope = self.system.constraint.slope
        position = self._position(lambda gamma, w, dt: -(0.5 * dt * slope(gamma, w)))
        return [position, self._velocity()]

    def _velocity(self) -> Flow:
        system, dt = self.system, Constant(0.0, name="dt")
        slope, old = system.constraint.slope, (system.p, system.multiplier)
        unknown, (p, multiplier), (w, test) = self._unknown("stage")
        residual = (
            self._kick(p, w, dt) - 0.5 * dt * slope(multiplier, w) + slope(test, system.velocity(p))
        )
        writes = [{part: new} for part, new in zip(old, parts(unknown), strict=True)]
        return self._solve("velocity", unknown, dt, residual, old, writes)


class SHAKE(_Verlet):
    """SHAKE: Störmer–Verlet with the constraint on the position.

        q^{k+1} - 2q^k + q^{k-1} = -Δt² M⁻¹(∇V(q^k) - Dg(q^k)ᵀλ^k),   g(q^{k+1}) = 0

    (Ryckaert, Ciccotti & Berendsen, J. Comput. Phys. 23, 1977), as a step from (q, p) to (q, p):

        p_½ = p⁰ - Δt/2 ∇V(q⁰) + Δt Dg(q⁰)ᵀ(λ - λ⁰/2),   q¹ = q⁰ + Δt M⁻¹p_½,   g(q¹) = 0,
        p¹ = p_½ - Δt/2 ∇V(q¹) + Δt/2 Dg(q¹)ᵀλ.

    The positions are those of :class:`RATTLE`, to round-off; the momentum is within O(Δt²) of the
    constraint on the velocity, for less work: the second line is explicit where the mass is lumped.
    On the manifold g(q) = 0 it preserves dq∧dp, as RATTLE does: the two momenta differ along Dg,
    normal to every δq of the manifold (Leimkuhler & Skeel 1994). It is not symmetric in p.

    Parameters
    ----------
    system : ConstrainedSystem
        The system to integrate; its multiplier is set to that of the exact motion at the start, and
        where the state or a coefficient has been set by hand.
    dt : float
        Time step.
    t0, solver_parameters, options_prefix, compiled
        As for :class:`RATTLE`; the two solves are called ``position`` and ``momentum``.
        The errors are those of :class:`RATTLE`.
    """

    conserves = ("constraint", "momenta of linear symmetries")
    cites = ("RyckaertCiccottiBerendsen1977", "LeimkuhlerSkeel1994")
    solves = ("position", "momentum")

    def remembered(self):
        return (*super().remembered(), self._known.snapshot)

    def _watched(self):
        # λ⁰ belongs to the state and to the forces, also where a coefficient changes before every
        # step: positions do not depend on λ⁰, and the next step removes most of what p is then off.
        system = self.system
        return (system.q, system.p, system.multiplier, *system.model.coefficients())

    def start(self, modified=None):
        touched = modified and not modified.isdisjoint(self._known.snapshot.keys())
        if not (touched or self._known.changed()):
            return []
        super().start(modified)
        return self.system.multiplier_operations

    def rescale(self, ratio):
        """Scale the part of p off the constraint on the velocity, which is proportional to Δt².

        Unscaled it would enter λ, divided by the new Δt.
        """
        system = self.system
        unknown, (p, multiplier), tests = self._unknown("tangent momentum")
        solve = Solve(
            work=system.consistent_momentum(p, multiplier, *tests), unknown=unknown,
            prescribed=system.fixed, numerics=saddle, name="the momentum",
        )  # fmt: skip
        tangent = parts(unknown)[0]
        # A longer step needs no more of it, and would enlarge its round-off.
        shorter = ufl.min_value(ratio, 1.0) ** 2
        return with_assignments(solve, [{system.p: tangent + shorter * (system.p - tangent)}])

    def flows(self):
        system = self.system
        system.solve_multiplier()
        self._known.take()
        slope, before = system.constraint.slope, system.multiplier
        position = self._position(
            lambda new, w, dt: -(dt * slope(new, w)) + 0.5 * dt * slope(before, w),
            keeps=True,
        )
        return [position, self._momentum()]

    def _momentum(self) -> Flow:
        system, dt = self.system, Constant(0.0, name="dt")
        unknown, w = Function(system.space, name="momentum"), TestFunction(system.space)
        residual = self._kick(unknown, w, dt)
        residual -= 0.5 * dt * system.constraint.slope(system.multiplier, w)
        writes = [{system.p: unknown}]
        return self._solve("momentum", unknown, dt, residual, (system.p,), writes, plain)
