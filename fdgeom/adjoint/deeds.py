"""Derivatives of operations before and after steps."""

from collections.abc import Sequence, Set

import numpy as np
import ufl
from firedrake import Function

from fdgeom.adjoint.implicit import Solved
from fdgeom.adjoint.pointwise import Assigned
from fdgeom.adjoint.values import Kept, Vectors, keys
from fdgeom.solvers import Deed


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
        return Assigned(deed, active)
    return Done(deed, active) if isinstance(deed, Deed) else deed


class Done:
    """A `Deed` with its derivatives, which must be called at the state before it."""

    # active: keys of the functions that derivatives are taken by, and of all that operations change.
    def __init__(self, deed: Deed, active: Set[int]) -> None:
        self._deed, self.targets = deed, tuple(written_by(deed))
        self._assigned = [Assigned(group, active) for group in deed.assignments]
        self._solved = None
        if deed.residual is not None:
            own = keys([deed.unknown])
            self._solved = Solved(deed.residual, deed.unknown, deed.essential, active - own)

    def apply(self) -> None:
        """Run the operation."""
        self._deed.do()

    def _find(self) -> None:
        """Set the unknown to its solution, with all other functions as before the operation."""
        if self._solved is not None:
            here = Kept(self.targets)
            self.apply()
            solution = Kept([self._deed.unknown])
            here.restore()
            solution.restore()

    def pull(self, bars: Vectors) -> None:
        """The cotangents before the operation from those after it."""
        self._find()
        for assigned in reversed(self._assigned):
            assigned.pull(bars)
        if self._solved is not None:
            self._solved.pull(bars)
        self._fix(bars)

    def pull_rates(self, bars: Vectors, rates: Vectors, tangents: Vectors) -> None:
        """:meth:`pull`, and its derivative along the tangents before the operation."""
        here = tangents.copy()
        self._find()
        if self._solved is not None:
            self._solved.push(here)
        for assigned in reversed(self._assigned):
            assigned.pull_rates(bars, rates, here)
        if self._solved is not None:
            self._solved.pull_rates(bars, rates, here)
        self._fix(bars)
        self._fix(rates)

    def push(self, tangents: Vectors) -> None:
        """The tangents after the operation from those before it."""
        self._find()
        if self._solved is not None:
            self._solved.push(tangents)
        for assigned in self._assigned:
            assigned.push(tangents)
        self._fix(tangents)

    def _fix(self, vectors: Vectors) -> None:
        for f, dofs in self._deed.fixed:
            values = vectors.of(f)
            if values is not None:
                values = np.array(values)
                values.reshape(-1)[dofs[dofs < values.size]] = 0.0
                vectors.put(f, values)


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
