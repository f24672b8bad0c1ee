"""Conditions Φ(g) = 0 of a motion with their multiplier, given by a user or by joints."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from firedrake import Function
from ufl.classes import Expr, Form


class Condition(ABC):
    """Conditions Φ(g) = 0 with a multiplier λ each, as forms that are linear in ν.

    Every form has an optional argument for the configuration g, by default the present one.

    ``multiplier`` is λ, ``space`` that of λ and ν; ``idle`` are its degrees of freedom that belong
    to no condition: indices into its flat local values.
    """

    multiplier: Function
    space: object
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
    def check_start(self) -> None:
        """Raise ``ValueError`` if the conditions contradict the start or one another."""
