"""The unknown of one implicit substep, as a state with its variational derivative."""

from dataclasses import dataclass, field, replace

from firedrake import Function
from ufl.classes import Expr, Form

from fdgeom.solvers import EssentialValues


@dataclass(frozen=True)
class Stage:
    """The unknown of a substep, with the state and the gradient there as expressions of it."""

    unknown: Function
    active: tuple[int, ...]
    #: The parts of the state and of δh/δz there.
    state: tuple[Expr, ...]
    gradient: tuple[Expr, ...]
    #: Zero for the parts that are frozen.
    test: tuple[Expr, ...]
    #: For ⟨b, w⟩ = dh(z)[w] where b is an unknown too.
    gradient_test: tuple[Expr, ...] | None = None
    essential: tuple[EssentialValues, ...] = field(default=())
    auxiliary: tuple[Expr, ...] = field(default=())
    #: Equations of the auxiliary functions and their multipliers.
    conditions: Form = field(default_factory=lambda: Form([]))

    def reaching(self, reach: float) -> "Stage":
        """The stage with its given values, of a rule with new = old + reach (stage - old)."""
        given = tuple(e.at_share(1 / reach) for e in self.essential)
        return replace(self, essential=given)
