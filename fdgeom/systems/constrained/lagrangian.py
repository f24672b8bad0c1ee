"""Mechanical systems stated by a Lagrangian of position and velocity."""

from __future__ import annotations

from collections.abc import Callable

from firedrake import Function, TestFunction, TrialFunction, assemble, derivative, dx, inner
from ufl.classes import Form
from ufl.core.expr import Expr

from fdgeom.forms import check_functional, depends_on, sorted_by, substitute, tidy
from fdgeom.solvers import deficiency
from fdgeom.systems.constrained.constraint import Constraint
from fdgeom.systems.constrained.fixed_values import check_at_rest, fixed_values
from fdgeom.systems.constrained.mechanical import MechanicalSystem
from fdgeom.systems.constrained.projection import Projection
from fdgeom.systems.energies import named_energies
from fdgeom.taping import not_taped


class LagrangianSystem(MechanicalSystem):
    """A system with the Lagrangian L(q, q̇), perhaps with holonomic constraints g(q) = 0:

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
        λ, of a space with one component for each constraint; holds the last multiplier.
    bcs : sequence of DirichletBC, optional
        Homogeneous conditions on the velocity: where they hold, q stays as it is.
    coordinates : Function, optional
        Where in space the nodes are, for output: ``q`` itself for a chain in space.

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
        for name, value in (("q", q), ("velocity", velocity)):
            if not isinstance(value, Function):
                raise TypeError(f"{name} must be a firedrake Function, not {type(value).__name__}")
        if q is velocity or q.function_space() != velocity.function_space():
            raise ValueError("velocity must be a function of its own, in the space of q")
        if (constraint is None) != (multiplier is None):
            raise ValueError("give constraint and multiplier together, or neither")
        super().__init__(q, coordinates)
        self._v = velocity
        self._lagrangian = tidy(check_functional("lagrangian", lagrangian, 0))
        if not depends_on(self._lagrangian, velocity):
            raise ValueError("lagrangian must depend on the velocity")
        self.multiplier, self.constraint = multiplier, None
        if multiplier is not None:
            why = "depends on the velocity, so it is not holonomic"
            self.constraint = Constraint(q, constraint, multiplier, {velocity: why})
        self.fixed = fixed_values(bcs, self.space, velocity)
        self._direction = Function(self.space, name="direction")
        self._by_q = tidy(derivative(self._lagrangian, q, self._direction))
        self._by_v = tidy(derivative(self._lagrangian, velocity, self._direction))

    # --- forms ---------------------------------------------------------------------------------
    def velocity(self) -> Expr:
        """q̇, a function."""
        return self._v

    def force(self, w: Expr, q: Expr, v: Expr) -> Form:
        """∂L/∂q(q, v)[w]."""
        return substitute(self._by_q, {self._direction: w, self.q: q, self._v: v})

    def momentum(self, w: Expr, q: Expr, v: Expr) -> Form:
        """∂L/∂q̇(q, v)[w]."""
        return substitute(self._by_v, {self._direction: w, self.q: q, self._v: v})

    # --- what the recording reads ----------------------------------------------------------------
    def functions(self) -> dict[str, Function]:
        """Everything that a step changes, by name."""
        found = {"q": self.q, "velocity": self._v}
        return found | ({"multiplier": self.multiplier} if self.multiplier is not None else {})

    def energies(self) -> dict[str, Form]:
        """The energy ∂L/∂q̇[q̇] - L: of the terms of L with q̇ the kinetic one, of those without
        it the potential one.
        """
        moving, resting = sorted_by(self._lagrangian, self._v)
        kinetic = tidy(self.momentum(self._v, self.q, self._v) - moving)
        return named_energies(kinetic, tidy(-resting))

    # --- what the steppers ask -------------------------------------------------------------------
    def check_start(self) -> None:
        """Raise ``ValueError`` if no step can start from the present state.

        The state must be finite, the mass matrix regular, and a constraint fulfilled, its
        derivative in time too, by parts that do not follow from one another.
        """
        self._check_finite()
        check_at_rest("velocity", self._v, self.fixed)
        w, trial = TestFunction(self.space), TrialFunction(self.space)
        mass = derivative(self.momentum(w, self.q, self._v), self._v, trial)
        missing = deficiency(assemble(mass, mat_type="aij").petscmat)
        if missing:
            raise ValueError(
                "lagrangian: the mass matrix ∂²L/∂q̇² is singular at the start: its rank is "
                f"{self.space.dim() - missing} of {self.space.dim()}"
            )
        if self.constraint is not None:
            self.constraint.check(self._v, mass, self.fixed)

    @not_taped
    def project(self) -> None:
        """Go to the nearest configuration with g(q) = 0, and drop the velocity's part against it.

        The configuration moves orthogonally in L², the momentum ∂L/∂q̇ by a multiplier.

        Raises
        ------
        ValueError
            If Newton's iteration does not find such a configuration.
        """
        if self.constraint is None:
            return
        if "projection" not in self._held:
            self._held["projection"] = Projection(
                self.constraint,
                self._v,
                lambda a, b: inner(a, b) * dx,
                momentum=lambda v, w: self.momentum(w, self.q, v),
                velocity=lambda v: v,
                fixed=self.fixed,
            )
        self._held["projection"].apply()
