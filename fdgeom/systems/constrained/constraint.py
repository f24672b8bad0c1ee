"""Holonomic constraints g(q) = 0, given by the functional ∫ λ·g(q)."""

from collections.abc import Callable, Mapping

from firedrake import Form, Function, derivative
from ufl.core.expr import Expr

from fdgeom.forms import check_functional, depends_on, simplify, substitute
from fdgeom.messages import is_function, reported_as
from fdgeom.systems.constrained.rate_constraint import RateConstraint


class Constraint(RateConstraint):
    """A holonomic constraint ∫ λ·g(q), the form ``functional(λ)``, and its multiplier λ."""

    # `forbidden`: Functions that may not occur in g, and why.
    def __init__(
        self,
        q: Function,
        functional: Callable,
        multiplier: Function,
        forbidden: Mapping[Function, str],
    ) -> None:
        if not is_function(functional):
            raise TypeError(
                "constraint must be a callable of the multiplier giving a form, such as "
                f"lambda mult: mult*(dot(q, q) - 1)*dx, not {type(functional).__name__}"
            )
        super().__init__(q, self._tangent(q), multiplier, forbidden)
        self._form = self._linear_form(functional, forbidden)
        self._slope = self._along(self._form, self._direction)

    def _linear_form(self, functional: Callable, forbidden) -> Form:
        with reported_as(
            f"constraint: no valid form of a multiplier of shape {self.multiplier.ufl_shape}, "
            "and the multiplier must have one component for each constraint"
        ):
            form = functional(self.test)
        if not isinstance(form, Form):
            raise TypeError(
                "constraint(mult) must be a UFL form such as mult*(dot(q, q) - 1)*dx, not "
                f"{type(form).__name__}"
            )
        if len(form.arguments()) != 1:
            raise ValueError("constraint must be linear in the multiplier, which does not occur")
        mesh = self.q.function_space().mesh()
        form = simplify(check_functional("constraint", form, 1, mesh, "the multiplier"))
        if self.multiplier in form.coefficients():
            raise ValueError("constraint must use its argument, not the multiplier itself")
        for function, why in forbidden.items():
            if depends_on(form, function):
                raise ValueError(f"constraint: {why}")
        if not self._depends(form):
            raise ValueError("constraint does not depend on q: its gradient is zero")
        return form

    # --- what a configuration on a group does in another way ------------------------------------
    def _tangent(self, q: Function):
        return q.function_space()

    def _depends(self, form: Form) -> bool:
        return depends_on(form, self.q)

    def _along(self, form: Form, direction: Expr) -> Form:
        return simplify(derivative(form, self.q, direction))

    # --- forms ---------------------------------------------------------------------------------
    def forms(self) -> tuple[Form, ...]:
        """The form that states it, beside its rate: ∫ ν·g(q)."""
        return (self._form,)

    def value(self, test: Expr, at: Expr | None = None) -> Form:
        """∫ ν·g(q) at a configuration, the present one by default."""
        return substitute(self._form, {self.test: test, self.q: self.q if at is None else at})

    # --- numbers -------------------------------------------------------------------------------
    def defect(self) -> float:
        """Largest \\|g(q)\\|: averages with the multiplier's test functions, over all of them."""
        return self._largest(self._mean("value", lambda: self.value(self.test)))

    def _check_consistent(self, gradient, velocity, speeds) -> None:
        defect = self.defect()
        row = self._row_sums(gradient)
        advice = "Set a consistent start, or call system.project() to go to the nearest one"
        size = self._largest(self.q.dat.data_ro)
        self._check_small("g(q) = 0", defect, row * size, advice)
        rate = self.rate(velocity)
        self._check_small("Dg(q) q̇ = 0", rate, row * self._largest(speeds), advice)
