"""A stage: the unknown of one implicit substep, seen as a state with its variational derivative."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from firedrake import Function
from ufl.core.expr import Expr


@dataclass(frozen=True)
class EssentialValues:
    """Degrees of freedom of an unknown that are given, not solved for.

    Attributes
    ----------
    part : int
        Index of the subspace of the unknown (0 if it is not mixed).
    dofs : numpy.ndarray of int
        Local scalar degrees of freedom, owned and ghosts.
    old : Function
        The field whose values the unknown replaces.
    target : Function or None
        What that field is to become there (None: zero). The unknown is given as the mean.
    """

    part: int
    dofs: np.ndarray
    old: Function
    target: Function | None = None

    def values(self) -> np.ndarray:
        """The given values now, in the order of ``dofs``."""
        old = self.old.dat.data_ro_with_halos.reshape(-1)[self.dofs]
        if self.target is None:
            return 0.5 * old
        return 0.5 * (old + self.target.dat.data_ro_with_halos.reshape(-1)[self.dofs])


@dataclass(frozen=True)
class Stage:
    """The unknown of a substep and what it says about the state.

    Attributes
    ----------
    unknown : Function
        What the solver solves for.
    active : tuple of int
        Parts of the state that the substep moves; the others are frozen.
    state : tuple of UFL expressions
        All parts of the state at the stage.
    gradient : tuple of UFL expressions
        The variational derivative δh/δz there, part by part.
    test : tuple of UFL expressions
        Test functions for the active parts, zeros for the frozen ones.
    gradient_test : tuple of UFL expressions or None
        Test functions of the equations ⟨b, w⟩ = dh(z)[w], where the gradient b is an unknown too.
    essential : tuple of EssentialValues
        Given degrees of freedom of the unknown.
    """

    unknown: Function
    active: tuple[int, ...]
    state: tuple[Expr, ...]
    gradient: tuple[Expr, ...]
    test: tuple[Expr, ...]
    gradient_test: tuple[Expr, ...] | None = None
    essential: tuple[EssentialValues, ...] = field(default=())
