"""The unknowns of substeps of Poisson systems."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import ufl
from firedrake import Function, MixedFunctionSpace, TestFunction, TestFunctions, split
from ufl.classes import Expr, Form

from fdgeom.forms import substitute
from fdgeom.operations import Prescribed, parts


@dataclasses.dataclass(frozen=True)
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
    prescribed: tuple[Prescribed, ...] = ()
    auxiliary: tuple[Expr, ...] = ()
    #: Equations of the auxiliary functions and their multipliers.
    conditions: Form = dataclasses.field(default_factory=lambda: Form([]))


class Substeps:
    """The substeps of a Poisson system: their unknowns, forces, and the fields that move with them.

    A subclass says which parts of δh/δz a system has as fields or as functions of one part alone,
    which values are given, and what moves beside the state.
    """

    def __init__(self, system: Any) -> None:
        self._system = system

    def _chart(self, k: int, unknown: Expr) -> tuple[Expr, Expr | None]:
        """Part ``k`` of the state, and of δh/δz if it follows directly, in terms of the unknown."""
        return unknown, None

    def _prescribed(self, active: Sequence[int], share: float) -> tuple[Prescribed, ...]:
        """Degrees of freedom of a stage that boundary conditions fix (none in general); the stage is
        at this share of the way from old to new values.
        """
        return ()

    def frozen_gradient(self, k: int) -> Expr | None:
        """Part ``k`` of δh/δz at the present state, if the system has it as a field."""
        return None

    def forcing(self, test: Sequence[Expr], gradient: Sequence[Expr], dt: Expr) -> Form:
        """Work of forces that the energy does not contain, linear in the tests (none in general).

        ``gradient`` is δh/δz in the middle of a step ``dt``.
        """
        return Form([])

    def companions(
        self, active: Sequence[int], new: dict[int, Expr], *, dt: Expr
    ) -> dict[Function, Expr]:
        """Further assignments of a substep, by nodal expressions in old fields and ``new`` parts."""
        return {}

    def stage(self, active: Sequence[int], pointwise: bool = True, *, reach: float = 1.0) -> Stage:
        """The unknown of a substep that moves the parts ``active`` and freezes the others.

        If δh/δz is not pointwise, or not to be used so, it is an unknown too. ``reach`` is that in
        new = old + reach (stage - old), for given values.
        """
        system, active = self._system, tuple(active)
        spaces = [system.parts[k].function_space() for k in active]
        pointwise = pointwise and system.gradient(system.parts) is not None
        if not pointwise:
            spaces += [p.function_space() for p in system.parts]
        own = len(spaces)
        if system.auxiliary is not None:
            spaces += system.auxiliary.spaces
        mixed = len(spaces) > 1
        space = MixedFunctionSpace(spaces) if mixed else spaces[0]
        unknown = Function(space, name="stage")
        fields = split(unknown) if mixed else (unknown,)
        tests = TestFunctions(space) if mixed else (TestFunction(space),)

        state = list(system.parts)
        slope: list[Any] = [self.frozen_gradient(k) for k in range(len(system.parts))]
        test = [ufl.zero(*s) if s else ufl.as_ufl(0) for s in system.forms.shapes]
        for k, field, w in zip(active, fields, tests, strict=False):
            state[k], slope[k] = self._chart(k, field)
            test[k] = w
        auxiliary, conditions = tuple(fields[own:]), Form([])
        prescribed = self._prescribed(active, 1 / reach)
        if auxiliary:
            conditions = system.auxiliary.conditions(auxiliary, tests[own:])
            conditions = substitute(conditions, system.forms.at(tuple(state)))
            prescribed += system.auxiliary.prescribed(own)
        if not pointwise:
            slope = list(fields[len(active) : own])
        elif any(b is None for b in slope):
            known = system.gradient(state, auxiliary)
            slope = [g if b is None else b for b, g in zip(slope, known, strict=True)]
        return Stage(
            unknown=unknown,
            active=active,
            state=tuple(state),
            gradient=tuple(slope),
            test=tuple(test),
            gradient_test=None if pointwise else tuple(tests[len(active) : own]),
            prescribed=prescribed,
            auxiliary=auxiliary,
            conditions=conditions,
        )

    def with_energy(self, energy: Form) -> Any:
        """The system with the same state, bracket and pairing and another energy."""
        raise ValueError(
            f"system: the energy of a {type(self._system).__name__} cannot be replaced; state a "
            "PoissonSystem"
        )

    def start_values(self, stage: Stage) -> dict[Function, Function]:
        """A first guess of a stage's unknown: for each of its parts the function to copy."""
        own = parts(stage.unknown)
        return {piece: self._system.parts[k] for k, piece in zip(stage.active, own, strict=False)}
