"""Mechanical systems with constraints on their velocities."""

from __future__ import annotations

from collections.abc import Callable

from firedrake import (
    Form,
    Function,
    TestFunction,
    TestFunctions,
    TrialFunction,
    assemble,
    derivative,
    split,
)
from ufl.core.expr import Expr

from fdgeom.forms import (
    check_functional,
    copy_into,
    depends_on,
    sorted_by,
    substitute,
    tidy,
)
from fdgeom.solvers import SaddleSNES, SolveFailed, deficiency, saddle_defaults
from fdgeom.systems.constrained.fixed_values import check_at_rest, fixed_values
from fdgeom.systems.constrained.mechanical import MechanicalSystem
from fdgeom.systems.constrained.velocity_constraint import VelocityConstraint
from fdgeom.systems.energies import named_energies
from fdgeom.taping import not_taped


class NonholonomicSystem(MechanicalSystem):
    """A Lagrangian system with constraints that are linear in the velocities (Lagrange–d'Alembert):

        d/dt ∂L/∂q̇ - ∂L/∂q = A(q)ᵀλ,   A(q) q̇ = 0.

    Parameters
    ----------
    q, velocity : Function
        Configuration and velocity, of one space: DG0 on :func:`copies` for many small systems, CG
        for a field theory.
    lagrangian : UFL functional
        L of ``q`` and ``velocity``, without constraints; any mass matrix ∂²L/∂q̇² that is not
        singular.
    constraint : callable
        ``constraint(λ, v)`` gives the form ∫ λ·A(q)v dx, linear in both of its arguments; it may
        use the function q. Several constraints are the components of a vector λ.
    multiplier : Function
        λ, of a space with one component for each constraint; holds the reaction.
    bcs : sequence of DirichletBC, optional
        Homogeneous conditions on the velocity: where they hold, q stays as it is.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described. Whether the start fulfils the constraints, and whether
        they are independent there, is checked when a stepper is made.

    Examples
    --------
    A particle with ż = yẋ:

    >>> system = NonholonomicSystem(
    ...     q, v, lagrangian=0.5*dot(v, v)*dx,
    ...     constraint=lambda mult, v: mult*(v[2] - q[1]*v[0])*dx, multiplier=mult)  # doctest: +SKIP
    """

    def __init__(
        self,
        q: Function,
        velocity: Function,
        lagrangian: Form,
        constraint: Callable,
        multiplier: Function,
        *,
        bcs=(),
    ) -> None:
        for name, value in (("q", q), ("velocity", velocity)):
            if not isinstance(value, Function):
                raise TypeError(f"{name} must be a firedrake Function, not {type(value).__name__}")
        if q is velocity or q.function_space() != velocity.function_space():
            raise ValueError("velocity must be a function of its own, in the space of q")
        if len(q.function_space()) > 1:
            raise ValueError("q must not be of a mixed space: take one vector-valued space")
        super().__init__(q)
        self._v = velocity
        self._lagrangian = tidy(check_functional("lagrangian", lagrangian, 0))
        if not depends_on(self._lagrangian, velocity):
            raise ValueError("lagrangian must depend on the velocity")
        self._direction = Function(self.space, name="direction")
        self._slopes = {
            x: tidy(derivative(self._lagrangian, x, self._direction)) for x in (q, velocity)
        }
        self.multiplier = multiplier
        self.constraint = VelocityConstraint(q, velocity, constraint, multiplier)
        self.fixed = fixed_values(bcs, self.space, velocity)

    # --- forms ---------------------------------------------------------------------------------
    def velocity(self) -> Expr:
        """q̇, a function."""
        return self._v

    def momentum(self, w: Expr, q: Expr | None = None, v: Expr | None = None) -> Form:
        """∂L/∂q̇(q, v)[w], by default at the present state."""
        return self._slope(self._v, w, q, v)

    def force(self, w: Expr, q: Expr | None = None, v: Expr | None = None) -> Form:
        """∂L/∂q(q, v)[w], by default at the present state."""
        return self._slope(self.q, w, q, v)

    def _slope(self, by: Function, w: Expr, q: Expr | None, v: Expr | None) -> Form:
        at = {self.q: self.q if q is None else q, self._v: self._v if v is None else v}
        return substitute(self._slopes[by], {self._direction: w, **at})

    def constraint_defect(self) -> float:
        """The same as :meth:`velocity_defect`: there is no constraint on the configuration."""
        return self.velocity_defect()

    def velocity_defect(self) -> float:
        """Largest \\|A(q) q̇\\|, averaged with each test function of the multiplier's space."""
        return self.constraint.rate(self._v)

    # --- what the recording reads ----------------------------------------------------------------
    def functions(self) -> dict[str, Function]:
        """Everything that a step changes, by name."""
        return {"q": self.q, "velocity": self._v, "multiplier": self.multiplier}

    def energies(self) -> dict[str, Form]:
        """The energy ∂L/∂q̇[q̇] - L, which the motion keeps: of the terms of L with q̇ the kinetic
        one, of those without it the potential one.
        """
        moving, resting = sorted_by(self._lagrangian, self._v)
        return named_energies(tidy(self.momentum(self._v) - moving), tidy(-resting))

    # --- what the steppers ask -------------------------------------------------------------------
    def check_start(self) -> None:
        """Raise ``ValueError`` if no step can start from the present state.

        The state must be finite, A(q) q̇ = 0 to round-off, the mass matrix regular, and A M⁻¹ Aᵀ
        too: then the constraints are independent.
        """
        self._check_finite()
        check_at_rest("velocity", self._v, self.fixed)
        w, trial = TestFunction(self.space), TrialFunction(self.space)
        mass = derivative(self.momentum(w), self._v, trial)
        missing = deficiency(assemble(mass, mat_type="aij").petscmat)
        if missing:
            raise ValueError(
                "lagrangian: the mass matrix ∂²L/∂q̇² is singular at the start: its rank is "
                f"{self.space.dim() - missing} of {self.space.dim()}"
            )
        self.constraint.check(self._v, mass, self.fixed)

    @not_taped
    def project(self) -> None:
        """Change the velocity by a reaction, ∂L/∂q̇(v) = ∂L/∂q̇(v⁰) + A(q)ᵀμ, so that A(q) q̇ = 0.

        Where L is quadratic in q̇ this is the nearest velocity in the kinetic energy.

        Raises
        ------
        ValueError
            If there is no such velocity, or the constraints depend on one another.
        """
        for e in self.fixed:
            self._v.dat.data_wo_with_halos.reshape(-1)[e.dofs] = 0.0
        if "projection" not in self._held:
            self._held["projection"] = self._make_projection()
        solver = self._held["projection"]
        velocity, reaction = solver.unknown.subfunctions
        copy_into(velocity, self._v)
        reaction.dat.data_wo_with_halos[...] = 0.0
        try:
            solver.solve()
        except SolveFailed as failure:
            raise ValueError(
                f"project: no velocity on the constraints was found: {failure}. Check that they "
                "are independent"
            ) from failure
        copy_into(self._v, velocity)

    def _make_projection(self) -> SaddleSNES:
        space = self.space * self.constraint.space
        unknown, (w, test) = Function(space, name="projected"), TestFunctions(space)
        x, reaction = split(unknown)
        residual = tidy(
            self.momentum(w, v=x)
            - self.momentum(w)
            - self.constraint.slope(reaction, w)
            + self.constraint.slope(test, x)
        )
        options = saddle_defaults(residual, unknown)
        return SaddleSNES(
            residual, unknown, essential=self.fixed, options=options, name="the projection"
        )
