"""A stage: the unknown of one implicit substep, seen as a state with its variational derivative."""

from dataclasses import dataclass, field, replace

from firedrake import Function
from ufl.classes import Expr, Form

from fdgeom.solvers import EssentialValues


@dataclass(frozen=True)
class Stage:
    """The unknown of a substep and what it says about the state.

    ``state`` and ``gradient`` are the parts of the state and of δh/δz there, ``test`` has zeros for the
    parts that are frozen; ``gradient_test`` belongs to ⟨b, w⟩ = dh(z)[w] where b is an unknown too, and
    ``conditions`` determine the ``auxiliary`` functions and their multipliers.
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
