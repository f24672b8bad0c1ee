"""Derivatives of operations before and after steps."""

from collections.abc import Sequence, Set

import ufl
from firedrake import Form, Function

from fdgeom.adjoint.list_derivative import ListDerivative
from fdgeom.adjoint.values import Kept, Vectors
from fdgeom.operations import Copy, Map, Operation, Solve
from fdgeom.solvers import Deed, prescribed


def written_by(deed) -> list[Function]:
    """The functions that an operation changes: a group of assignments, a `Deed`, or one with derivatives."""
    if isinstance(deed, dict):
        return list(deed)
    if not isinstance(deed, Deed):
        return list(deed.targets)
    unknown = [] if deed.unknown is None else [deed.unknown]
    return [
        *unknown,
        *(f for group in deed.assignments for f in group),
        *(f for f, _ in deed.fixed),
    ]


def forms_of(deed) -> list:
    """The forms and expressions of an operation, as arguments of `Coefficients`."""
    groups = [deed] if isinstance(deed, dict) else getattr(deed, "assignments", ())
    found = [ufl.as_ufl(e) for group in groups for e in group.values()]
    return found if getattr(deed, "residual", None) is None else [deed.residual, *found]


def derived(deed, active: Set[int]):
    """An operation with its derivatives: ``targets``, ``apply()``, ``pull(bars)``, ``push(tangents)``."""
    if isinstance(deed, dict):
        return _Derived([Map(values=deed)], active)
    return _Done(deed, active) if isinstance(deed, Deed) else deed


class _Derived(ListDerivative):
    """Operations whose derivatives leave the state before them."""

    def push(self, tangents: Vectors) -> None:
        """The tangents after the operations from those before them."""
        here = Kept(self.targets)
        super().push(tangents)
        here.restore()


class _Done(_Derived):
    """A `Deed` with its derivatives, which must be called at the state before it."""

    def __init__(self, deed: Deed, active: Set[int]) -> None:
        self._deed = deed
        made = (
            []
            if deed.residual is None
            else solve_operations(deed.residual, deed.unknown, deed.essential)
        )
        made += [Map(values=group) for group in deed.assignments]
        made += [Copy(source=None, target=f, rows=dofs) for f, dofs in deed.fixed]
        super().__init__(made, active, self._find)

    def apply(self) -> None:
        """Run the operation."""
        self._deed.do()

    def _find(self) -> None:
        """Set the unknown to its solution, with all other functions as before the operation."""
        here = Kept(self.targets)
        self.apply()
        solution = Kept([self._deed.unknown])
        here.restore()
        solution.restore()


def solve_operations(
    residual: Form, unknown: Function, essential: Sequence, name: str = "", **timed
) -> list[Operation]:
    """A solve as operations, with the values of prescribed degrees of freedom before it."""
    maps, given = prescribed(essential, unknown, **timed)
    return [*maps, Solve(work=residual, unknown=unknown, prescribed=given, name=name, **timed)]


def applied(deeds: Sequence) -> list[tuple]:
    """Run operations; returns each with the values that it has overwritten."""
    found = []
    for deed in deeds:
        found.append((deed, Kept(deed.targets)))
        deed.apply()
    return found


def pull_of(done: Sequence[tuple], bars: Vectors) -> None:
    """The cotangents before operations that were :func:`applied`."""
    for deed, kept in reversed(done):
        kept.restore()
        deed.pull(bars)


def push_along(deeds: Sequence, tangents: Vectors) -> None:
    """Run operations and set the tangents after them."""
    for deed in deeds:
        deed.push(tangents)
        deed.apply()


def passed(deeds: Sequence, tangents: Vectors) -> list[tuple]:
    """Like :func:`push_along`; returns each operation with the values and tangents before it."""
    found = []
    for deed in deeds:
        found.append((deed, Kept(deed.targets), tangents.copy()))
        push_along([deed], tangents)
    return found


def pull_rates_of(done: Sequence[tuple], bars: Vectors, rates: Vectors) -> None:
    """The cotangents before operations that were :func:`passed`, and their rates."""
    for deed, kept, tangents in reversed(done):
        kept.restore()
        deed.pull_rates(bars, rates, tangents)
