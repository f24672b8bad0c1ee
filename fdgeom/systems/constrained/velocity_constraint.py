"""Constraints A(q) v = 0 on velocities, given by the functional ∫ λ·A(q)v."""

from collections.abc import Callable

from firedrake import Form, Function, TrialFunction

from fdgeom.forms import check_functional, depends_on, simplify, substitute
from fdgeom.messages import is_function, reported_as
from fdgeom.systems.constrained.rate_constraint import RateConstraint


class VelocityConstraint(RateConstraint):
    """Constraints that are linear in the velocity: ``functional(λ, v)`` gives the form ∫ λ·A(q)v."""

    def __init__(
        self, q: Function, v: Function, functional: Callable, multiplier: Function
    ) -> None:
        if not is_function(functional):
            raise TypeError(
                "constraint must be a callable of the multiplier and the velocity giving a form, "
                f"such as lambda mult, v: mult*(v[2] - q[1]*v[0])*dx, not "
                f"{type(functional).__name__}"
            )
        super().__init__(q, q.function_space(), multiplier, (v,))
        self._slope = self._bilinear_form(functional, v)

    def _bilinear_form(self, functional: Callable, v: Function) -> Form:
        velocity = TrialFunction(self.q.function_space())
        with reported_as(
            f"constraint: no valid form of a multiplier of shape {self.multiplier.ufl_shape} "
            f"and a velocity of shape {v.ufl_shape}"
        ):
            form = functional(self.test, velocity)
        if not isinstance(form, Form):
            raise TypeError(
                "constraint(mult, v) must be a UFL form such as mult*(v[2] - q[1]*v[0])*dx, not "
                f"{type(form).__name__}"
            )
        symbols = "the multiplier and in the velocity"
        if len(form.arguments()) != 2:
            raise ValueError(f"constraint must be linear in {symbols}, with no other term")
        mesh = self.q.function_space().mesh()
        form = simplify(check_functional("constraint", form, 2, mesh, symbols))
        for function, name in ((self.multiplier, "multiplier"), (v, "velocity")):
            if depends_on(form, function):
                raise ValueError(f"constraint must use its argument, not the {name} itself")
        return substitute(form, {velocity: self._direction})

    def forms(self) -> tuple[Form, ...]:
        """None, since its rate states it."""
        return ()

    def _check_consistent(self, gradient, velocity, speeds) -> None:
        rate = self.rate(velocity)
        self._check_small(
            "A(q) q̇ = 0",
            rate,
            self._row_sums(gradient) * self._largest(speeds),
            "Set a consistent velocity, or call system.project() to go to the nearest one",
        )
