"""Base class of systems with a Lagrangian of position and velocity."""

from firedrake import Function, TestFunction, TrialFunction, assemble, derivative
from ufl.classes import Expr, Form

from fdgeom.forms import check_functional, depends_on, simplify, sorted_by, substitute
from fdgeom.solvers import deficiency
from fdgeom.systems.constrained.fixed_values import check_at_rest
from fdgeom.systems.constrained.mechanical import MechanicalSystem
from fdgeom.systems.energies import named_energies
from fdgeom.validation import firedrake_function


class LagrangianMechanics(MechanicalSystem):
    """Base of systems of a position q and a velocity with a Lagrangian L(q, q̇)."""

    def __init__(self, q, velocity, lagrangian, bcs=(), coordinates=None) -> None:
        firedrake_function("q", q)
        firedrake_function("velocity", velocity)
        if q is velocity or q.function_space() != velocity.function_space():
            raise ValueError("velocity must be a function of its own, in the space of q")
        super().__init__(q, coordinates)
        self._v = velocity
        self._lagrangian = simplify(check_functional("lagrangian", lagrangian, 0, self.mesh))
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
        check_at_rest("velocity", self._v, self.fixed)
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
