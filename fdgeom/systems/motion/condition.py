"""Conditions Φ(g) = 0 of a motion with their multiplier, given by a user or by joints."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from firedrake import Function, TestFunction, TrialFunction
from ufl.classes import Expr, Form

from fdgeom.messages import Described
from fdgeom.systems.constrained import Constraint


class Condition(Described, ABC):
    """Conditions Φ(g) = 0 with a multiplier λ each, as forms that are linear in ν.

    Every form has an optional argument for the configuration g, by default the present one.

    ``multiplier`` is λ, ``space`` that of λ and ν; ``idle`` are its degrees of freedom that belong
    to no condition: indices into its flat local values.
    """

    multiplier: Function
    space: Any
    idle: np.ndarray = np.array([], dtype=int)

    @abstractmethod
    def value(self, nu: Expr, g: Sequence[Expr] | None = None) -> Form:
        """ν·Φ(g)."""

    @abstractmethod
    def slope(self, nu: Expr, w: Expr, g: Sequence[Expr] | None = None) -> Form:
        """ν·B(g)w: with ν = λ the work of the conditions' forces, with w = v the rate of Φ."""

    @abstractmethod
    def turning(self, nu: Expr, v: Expr, g: Sequence[Expr] | None = None) -> Form:
        """ν·Ḃv: the second derivative of Φ in time along a motion of the constant velocity v."""

    @abstractmethod
    def forms(self) -> tuple[Form, ...]:
        """The forms that state it, beside its rate."""

    @abstractmethod
    def defect(self) -> float:
        """The deviation of Φ from zero."""

    @abstractmethod
    def rate(self, velocity: Expr | None = None) -> float:
        """The deviation of dΦ/dt from zero, by default at the motion's velocity."""

    @abstractmethod
    def check_configuration(self, *, loosely: bool = False) -> None:
        """Raise ``ValueError`` if the present configuration is off the conditions; ``loosely``: by more
        than steps leave.
        """

    @abstractmethod
    def check_start(self) -> None:
        """Raise ``ValueError`` if the conditions contradict the start or one another."""


class UserCondition(Constraint, Condition):
    """Φ(g) = 0 given by ``functional(λ)``, the form ∫ λ·Φ(g), on the configuration of ``motion``."""

    def __init__(self, motion, functional: Callable, multiplier: Function) -> None:
        self._motion, self.projects = motion, hasattr(motion, "project")
        forbidden = {motion.v: "depends on the velocity v, so it is not holonomic"}
        super().__init__(motion.configuration, motion.space, functional, multiplier, forbidden)

    def _along(self, form: Form, direction: Expr) -> Form:
        return self._motion.rate(lambda g: self._at(form, {}, g), direction)

    def turning(self, nu: Expr, v: Expr, g: Sequence[Expr] | None = None) -> Form:
        """∫ ν·Ḃv."""
        return self._at(self._motion.rate(lambda h: self.slope(nu, v, h), v), {}, g)

    def rate(self, velocity: Expr | None = None) -> float:
        """Largest |B v|, as :meth:`defect`."""
        return super().rate(self._motion.v if velocity is None else velocity)

    def check_start(self) -> None:
        """Raise ``ValueError`` if the start is off the constraint, or its parts depend on another."""
        motion = self._motion
        test, trial = TestFunction(motion.space), TrialFunction(motion.space)
        self.check(motion.v, motion.inertia(test, trial), ())


def stated(functional: Any, multiplier) -> Callable | None:
    """A function that makes the condition of a user for a motion; None without one."""
    if (functional is None) != (multiplier is None):
        raise ValueError("give constraint and multiplier together, or neither")
    if multiplier is None:
        return None
    return lambda motion: UserCondition(motion, functional, multiplier)
