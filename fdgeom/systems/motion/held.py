"""Degrees of freedom of a motion that are held, or prescribed in time."""

from abc import ABC, abstractmethod

import numpy as np
from firedrake import Function
from ufl.core.expr import Expr


class Held(ABC):
    """Degrees of freedom of a motion that are given."""

    #: For each part of the space of the velocity: indices into its flat local values.
    dofs: list[np.ndarray]
    #: Whether some change in time.
    varies: bool
    #: After `update`, the increment to the given configuration at the motion's time, and the
    #: velocity and acceleration there; all are zero elsewhere.
    increment: Function
    v: Function
    a: Function

    @abstractmethod
    def expressions(self) -> tuple[Expr, ...]:
        """The given values that are UFL expressions."""

    @abstractmethod
    def update(self) -> None:
        """Evaluate the given values, at the motion's time and from its present configuration."""

    def assignments(self, t: Expr) -> dict[Function, Expr] | None:
        """The values set by :meth:`update` for a time, as expressions at all nodes, or None."""
        return None

    def all_given(self) -> Function | None:
        """1 at the given degrees of freedom, 0 elsewhere; None where :meth:`assignments` is."""
        return None

    @abstractmethod
    def put(self) -> None:
        """Set the given configuration and velocity in the motion."""

    @abstractmethod
    def fixed(self) -> list[tuple[Function, np.ndarray]]:
        """The functions that :meth:`put` sets, and the indices of their flat local values."""

    @abstractmethod
    def check_start(self) -> None:
        """Raise ``ValueError`` if the start contradicts the given values."""
