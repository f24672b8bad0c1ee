"""A holonomic constraint that a user states on the configuration of a motion."""

from collections.abc import Callable, Sequence

from firedrake import Function, TestFunction, TrialFunction
from ufl.algorithms import replace
from ufl.classes import Expr, Form

from fdgeom.forms import depends_on, simplify
from fdgeom.systems.constrained import Constraint
from fdgeom.systems.motion.condition import Condition
from fdgeom.systems.motion.motion import Motion


class UserCondition(Constraint, Condition):
    """Φ(g) = 0 given by ``functional(λ)``, the form ∫ λ·Φ(g), on the configuration of ``motion``."""

    def __init__(self, motion: Motion, functional: Callable, multiplier: Function) -> None:
        self._motion = motion
        forbidden = {motion.v: "depends on the velocity v, so it is not holonomic"}
        super().__init__(motion.configuration[0], functional, multiplier, forbidden)

    def _tangent(self, q: Function):
        return self._motion.space

    def _depends(self, form: Form) -> bool:
        return any(depends_on(form, f) for f in self._motion.configuration)

    def _along(self, form: Form, direction: Expr) -> Form:
        return self._motion.rate(lambda g: self._at(form, {}, g), direction)

    def _at(self, form: Form, mapping: dict, g: Sequence[Expr] | None) -> Form:
        if g is not None:
            mapping = {**mapping, **dict(zip(self._motion.configuration, g, strict=True))}
        return simplify(replace(form, mapping))

    def value(self, nu: Expr, g: Sequence[Expr] | None = None) -> Form:
        """∫ ν·Φ(g)."""
        return self._at(self._form, {self.test: nu}, g)

    def slope(self, nu: Expr, w: Expr, g: Sequence[Expr] | None = None) -> Form:
        """∫ ν·B(g)w."""
        return self._at(self._slope, {self.test: nu, self._direction: w}, g)

    def turning(self, nu: Expr, v: Expr, g: Sequence[Expr] | None = None) -> Form:
        """∫ ν·Ḃv."""
        return self._at(self._motion.rate(lambda h: self.slope(nu, v, h), v), {}, g)

    def rate(self, velocity: Expr | None = None) -> float:
        """Largest \\|B v\\|, as :meth:`defect`."""
        return super().rate(self._motion.v if velocity is None else velocity)

    def check_start(self) -> None:
        """Raise ``ValueError`` if the start is off the constraint, or its parts depend on another."""
        motion = self._motion
        test, trial = TestFunction(motion.space), TrialFunction(motion.space)
        self.check(motion.v, motion.inertia(test, trial), ())


def stated(functional: Callable | None, multiplier) -> Callable[[Motion], Condition] | None:
    """A function that makes the condition of a user for a motion; None without one."""
    if (functional is None) != (multiplier is None):
        raise ValueError("give constraint and multiplier together, or neither")
    if multiplier is None:
        return None
    return lambda motion: UserCondition(motion, functional, multiplier)
