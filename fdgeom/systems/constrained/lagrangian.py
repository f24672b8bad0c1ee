"""Mechanical systems stated by a Lagrangian of position and velocity, with constraints on either."""

from collections.abc import Callable

from firedrake import Function, TestFunction, TrialFunction, assemble, derivative, dx, inner
from ufl.classes import Expr, Form

from fdgeom.forms import (
    checked_form,
    depends_on,
    simplify,
    sorted_by,
    substitute,
    with_fixed_quadrature,
)
from fdgeom.systems.constrained.constraint import Constraint, VelocityConstraint, deficiency
from fdgeom.systems.constrained.mechanical import MechanicalSystem
from fdgeom.systems.system import named_energies
from fdgeom.taping import not_taped
from fdgeom.validation import one_space, state_function


class LagrangianMechanics(MechanicalSystem):
    """Base of systems of a position q and a velocity with a Lagrangian L(q, q̇)."""

    def __init__(self, q, velocity, lagrangian, bcs=(), coordinates=None) -> None:
        state_function("q", q)
        state_function("velocity", velocity)
        if q is velocity or q.function_space() != velocity.function_space():
            raise ValueError("velocity must be a function of its own, in the space of q")
        one_space("q", q)
        super().__init__(q, coordinates)
        self._v = velocity
        checked = checked_form("lagrangian", lagrangian, mesh=self.mesh, state=(q, velocity))
        self._lagrangian = with_fixed_quadrature(checked, q, velocity)
        if not depends_on(self._lagrangian, velocity):
            raise ValueError("lagrangian must depend on the velocity")
        self._hold(bcs, velocity)
        self._direction = Function(self.space, name="direction")
        self._slopes = {
            x: simplify(derivative(self._lagrangian, x, self._direction)) for x in (q, velocity)
        }

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

    def _consistent_velocity(self, v: Expr, mu: Expr, w: Expr, nu: Expr) -> Form:
        """The residual of ∂L/∂q̇(v) = ∂L/∂q̇(v⁰) + A(q)ᵀμ, A(q)v = 0."""
        slope = self.constraint.slope
        return self.momentum(w, v=v) - self.momentum(w) - slope(mu, w) + slope(nu, v)

    def _slope(self, by: Function, w: Expr, q: Expr | None, v: Expr | None) -> Form:
        at = {self.q: self.q if q is None else q, self._v: self._v if v is None else v}
        return substitute(self._slopes[by], {self._direction: w, **at})

    # --- what the recording reads ----------------------------------------------------------------
    def functions(self) -> dict[str, Function]:
        found = {"q": self.q, "velocity": self._v}
        return found | ({"multiplier": self.multiplier} if self.multiplier is not None else {})

    def energies(self) -> dict[str, Form]:
        """The conserved energy ∂L/∂q̇[q̇] - L; its kinetic part is from the terms of L with q̇."""
        moving, resting = sorted_by(self._lagrangian, self._v)
        return named_energies(simplify(self.momentum(self._v) - moving), simplify(-resting))

    # --- what the steppers ask -------------------------------------------------------------------
    def check_start(self) -> None:
        """Raise ``ValueError`` unless the state is finite, the mass matrix M regular, and a
        constraint satisfied to round-off by independent parts: A M⁻¹ Aᵀ is regular.
        """
        self._check_finite()
        self._check_at_rest("velocity")
        w, trial = TestFunction(self.space), TrialFunction(self.space)
        mass = derivative(self.momentum(w), self._v, trial)
        missing = deficiency(assemble(mass, mat_type="aij").petscmat)
        if missing:
            raise ValueError(
                "lagrangian: the mass matrix ∂²L/∂q̇² is singular at the start: its rank is "
                f"{self.space.dim() - missing} of {self.space.dim()}"
            )
        if self.constraint is not None:
            self.constraint.check(self._v, mass, self.fixed)


class LagrangianSystem(LagrangianMechanics):
    """A system with the Lagrangian L(q, q̇), with or without holonomic constraints g(q) = 0.

        d/dt ∂L/∂q̇ = ∂L/∂q + Dg(q)ᵀλ,   g(q) = 0.

    Parameters
    ----------
    q, velocity : Function
        Configuration and velocity, of one space.
    lagrangian : UFL functional
        L of ``q`` and ``velocity``; any mass matrix ∂²L/∂q̇² that is not singular.
    constraint : callable, optional
        ``constraint(λ)`` gives the form ∫ λ·g(q) dx, linear in λ.
    multiplier : Function, optional
        λ, of a space with one component for each constraint. After a step it is that of the step's
        equations, of first order in Δt, also in compositions.
    bcs : sequence of DirichletBC, optional
        Homogeneous conditions on the velocity: q is constant there.
    coordinates : Function, optional
        Positions of the nodes in space, for output: ``q`` itself for a chain in space.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described.

    Examples
    --------
    A plane double pendulum in its two angles (``v`` their rates):

    >>> system = LagrangianSystem(
    ...     q, v, (v[0]**2 + 0.5*v[1]**2 + v[0]*v[1]*cos(q[0] - q[1])
    ...            + 2*cos(q[0]) + cos(q[1]))*dx)  # doctest: +SKIP
    """

    def __init__(
        self,
        q: Function,
        velocity: Function,
        lagrangian: Form,
        *,
        constraint: Callable | None = None,
        multiplier: Function | None = None,
        bcs=(),
        coordinates: Function | None = None,
    ) -> None:
        if (constraint is None) != (multiplier is None):
            raise ValueError("give constraint and multiplier together, or neither")
        super().__init__(q, velocity, lagrangian, bcs, coordinates)
        if multiplier is not None and constraint is not None:
            why = "depends on the velocity, so it is not holonomic"
            self.multiplier = multiplier
            self.constraint = Constraint((q,), self.space, constraint, multiplier, {velocity: why})

    @not_taped
    def project(self) -> None:
        """Move to the nearest configuration with g(q) = 0, and remove the part of the velocity that
        violates it.

        The configuration moves orthogonally in L², the momentum ∂L/∂q̇ by a multiplier.

        Raises
        ------
        ValueError
            If Newton's iteration does not find such a configuration.
        """
        if self.constraint is not None:
            nearest = self._nearest(lambda a, b: inner(a, b) * dx)
            self._project((self.q, nearest), (self._v, self._consistent_velocity))


class NonholonomicSystem(LagrangianMechanics):
    """A Lagrangian system with constraints that are linear in the velocities (Lagrange–d'Alembert).

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
        λ, of a space with one component for each constraint: the reaction.
    bcs : sequence of DirichletBC, optional
        Homogeneous conditions on the velocity: q is constant there.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described. A stepper checks that the start satisfies the
        constraints, and that they are independent there.

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
        super().__init__(q, velocity, lagrangian, bcs)
        self.multiplier = multiplier
        self.constraint = VelocityConstraint(q, velocity, constraint, multiplier)

    def constraint_defect(self) -> float:
        """The same as :meth:`velocity_defect`, since the configuration has no constraint."""
        return self.velocity_defect()

    @not_taped
    def project(self) -> None:
        """Change the velocity by a reaction, ∂L/∂q̇(v) = ∂L/∂q̇(v⁰) + A(q)ᵀμ, so that A(q) q̇ = 0.

        If L is quadratic in q̇ this is the nearest velocity in the norm of the kinetic energy.

        Raises
        ------
        ValueError
            If there is no such velocity, or the constraints depend on one another.
        """
        self._project((self._v, self._consistent_velocity))
