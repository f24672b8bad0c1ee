"""One solve of a step with what comes before and after it: recorded, and its derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass

from firedrake import Constant, Function

from fdgeom.adjoint.implicit import Solved
from fdgeom.adjoint.pointwise import Assigned
from fdgeom.adjoint.values import Kept, Vectors, key, keys
from fdgeom.solvers import Number


@dataclass(frozen=True)
class Record:
    """One solve that was taken.

    Attributes
    ----------
    taken : Taken
        Which.
    dt : float
        How far it moved.
    clocks : list of float
        What the clocks of the system showed.
    before, after : Kept
        All that moves, before and after it.
    solution : Kept
        What it has found.
    """

    taken: Taken
    dt: float
    clocks: list[float]
    before: Kept
    after: Kept
    solution: Kept


class Taken:
    """A `Solve` of a stepper and its derivatives, from what is recorded when it is taken.

    Parameters
    ----------
    solve : Solve
        It.
    active : set of int
        Keys of the functions that derivatives are taken by.
    moving : sequence of Function
        All that steps change.
    clocks : sequence of Constant
        What holds the time in its forms.
    """

    def __init__(
        self,
        solve,
        active: Set[int],
        moving: Sequence[Function],
        clocks: Sequence[Constant],
    ) -> None:
        self._solve = solve
        self._before = [Assigned(group, active) for group in solve.preparations]
        self._solved = Solved(solve.residual, solve.unknown, solve.essential, active)
        self._after = [Assigned(group, active) for group in solve.assignments]
        self._moving, self._clocks = tuple(moving), tuple(clocks)
        self._dt, self._times = Number(solve.dt), [Number(c) for c in clocks]

    @contextmanager
    def recorded(self, records: list[Record], dt: float) -> Iterator[None]:
        """While it is taken: one more record."""
        before, clocks = Kept(self._moving), [float(c) for c in self._clocks]
        yield
        after, solution = Kept(self._moving), Kept([self._solve.unknown])
        records.append(Record(self, dt, clocks, before, after, solution))

    def pull(self, record: Record, bars: Vectors) -> None:
        """The cotangents before it, from those after it."""
        undone = self._again(record)
        for assigned, before in zip(reversed(self._after), reversed(undone[1]), strict=True):
            before.restore()
            assigned.pull(bars)
        self._solved.pull(bars)
        for assigned, before in zip(reversed(self._before), reversed(undone[0]), strict=True):
            before.restore()
            assigned.pull(bars)

    def pull_rates(self, record: Record, bars: Vectors, rates: Vectors, tangents: Vectors) -> None:
        """:meth:`pull`, and the same of its derivative along the tangents before it."""
        self._set(record)
        before = [self._passed(assigned, tangents) for assigned in self._before]
        self._solve.put_given()
        record.solution.restore()
        self._solved.push(tangents)
        here = tangents.copy()
        after = [self._passed(assigned, tangents) for assigned in self._after]
        self._solve.keep_given()
        self._check(record)
        for assigned, kept, along in reversed(after):
            kept.restore()
            assigned.pull_rates(bars, rates, along)
        self._solved.pull_rates(bars, rates, here)
        for assigned, kept, along in reversed(before):
            kept.restore()
            assigned.pull_rates(bars, rates, along)

    @staticmethod
    def _passed(assigned: Assigned, tangents: Vectors) -> tuple[Assigned, Kept, Vectors]:
        """Do an assignment, and say what it has overwritten and which tangents."""
        kept, along = Kept(assigned.targets), tangents.copy()
        assigned.push(tangents)
        assigned.apply()
        return assigned, kept, along

    def push(self, record: Record, tangents: Vectors) -> None:
        """The tangents after it, from those before it."""
        self._set(record)
        for assigned in self._before:
            assigned.push(tangents)
            assigned.apply()
        self._solve.put_given()
        record.solution.restore()
        self._solved.push(tangents)
        for assigned in self._after:
            assigned.push(tangents)
            assigned.apply()
        self._solve.keep_given()
        self._check(record)

    def _set(self, record: Record) -> None:
        record.before.restore()
        self._dt.set(record.dt)
        for number, value in zip(self._times, record.clocks, strict=True):
            number.set(value)

    def _again(self, record: Record) -> tuple[list[Kept], list[Kept]]:
        """Do all assignments again, and say what they have overwritten, before and after the solve."""
        self._set(record)
        undone: tuple[list[Kept], list[Kept]] = [], []
        for assigned in self._before:
            undone[0].append(Kept(assigned.targets))
            assigned.apply()
        self._solve.put_given()
        record.solution.restore()
        for assigned in self._after:
            undone[1].append(Kept(assigned.targets))
            assigned.apply()
        self._solve.keep_given()
        self._check(record)
        return undone

    def _check(self, record: Record) -> None:
        """Raise ``NotImplementedError`` if the solve does more than it says."""
        own = keys([self._solve.unknown]) | keys(f for a in self._before for f in a.targets)
        unseen = [f for f in record.after.differing() if key(f) not in own]
        refuse_unseen(unseen, self._solve.name, self._solve.unknown.function_space().comm)


def refuse_unseen(functions: Sequence[Function], where: str, comm) -> None:
    """Raise ``NotImplementedError`` on all ranks if there are any on one.

    Something has changed them that no solve says.
    """
    if comm.allreduce(len(functions)):
        names = ", ".join(sorted({f.name() for f in functions})) or "what other ranks hold"
        raise NotImplementedError(
            f"gradients through this step are not there: {names} changed otherwise than by the "
            f"equations of {where!r}. Take the gradient by finite differences of whole runs"
        )
