"""A stage: the unknown of one implicit substep, seen as a state with its variational derivative."""

from dataclasses import dataclass, field, replace

from firedrake import Function
from ufl.classes import Expr, Form

from fdgeom.solvers import EssentialValues


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
    auxiliary : tuple of UFL expressions
        The system's auxiliary functions and their multipliers at the stage, where it has any.
    conditions : Form
        What determines those.
    """

    unknown: Function
    active: tuple[int, ...]
    state: tuple[Expr, ...]
    gradient: tuple[Expr, ...]
    test: tuple[Expr, ...]
    gradient_test: tuple[Expr, ...] | None = None
    essential: tuple[EssentialValues, ...] = field(default=())
    auxiliary: tuple[Expr, ...] = field(default=())
    conditions: Form = field(default_factory=lambda: Form([]))

    def reaching(self, reach: float) -> "Stage":
        """The stage of a rule by which new = old + reach (stage - old): with its given values."""
        given = tuple(e.at_share(1 / reach) for e in self.essential)
        return replace(self, essential=given)
