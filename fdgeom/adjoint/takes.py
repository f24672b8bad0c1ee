"""Records of the solves of a step, and their derivatives."""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass

from firedrake import Constant, Function

from fdgeom.adjoint.deeds import applied, passed, pull_of, pull_rates_of, push_along
from fdgeom.adjoint.implicit import Solved
from fdgeom.adjoint.pointwise import Assigned
from fdgeom.adjoint.values import Kept, Vectors, keys
from fdgeom.solvers import Number, key


@dataclass(frozen=True)
class Record:
    """The record of one solve, with the assignments before and after it."""

    taken: "Taken"
    dt: float
    #: The times of the system's clocks.
    clocks: list[float]
    #: All functions that steps change.
    before: Kept
    after: Kept
    solution: Kept


class Taken:
    """A `Solve` of a stepper and its derivatives, from its records."""

    # active: keys of the functions that derivatives are taken by. moving: all functions that steps
    # change. clocks: Constants that hold the time in the forms.
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
        """Context of the solve that appends a record."""
        before, clocks = Kept(self._moving), [float(c) for c in self._clocks]
        yield
        after, solution = Kept(self._moving), Kept([self._solve.unknown])
        records.append(Record(self, dt, clocks, before, after, solution))

    def pull(self, record: Record, bars: Vectors) -> None:
        """The cotangents before the solve from those after it."""
        self._set(record)
        before = applied(self._before)
        self._find(record)
        after = applied(self._after)
        self._leave(record)
        pull_of(after, bars)
        self._solved.pull(bars)
        pull_of(before, bars)

    def pull_rates(self, record: Record, bars: Vectors, rates: Vectors, tangents: Vectors) -> None:
        """:meth:`pull`, and its derivative along the tangents before the solve."""
        self._set(record)
        before = passed(self._before, tangents)
        self._find(record)
        self._solved.push(tangents)
        here = tangents.copy()
        after = passed(self._after, tangents)
        self._leave(record)
        pull_rates_of(after, bars, rates)
        self._solved.pull_rates(bars, rates, here)
        pull_rates_of(before, bars, rates)

    def push(self, record: Record, tangents: Vectors) -> None:
        """The tangents after the solve from those before it."""
        self._set(record)
        push_along(self._before, tangents)
        self._find(record)
        self._solved.push(tangents)
        push_along(self._after, tangents)
        self._leave(record)

    def _set(self, record: Record) -> None:
        record.before.restore()
        self._dt.set(record.dt)
        for number, value in zip(self._times, record.clocks, strict=True):
            number.set(value)

    def _find(self, record: Record) -> None:
        """Set the values prescribed in time, and the unknown to the recorded solution."""
        self._solve.put_given()
        record.solution.restore()

    def _leave(self, record: Record) -> None:
        """Set the values prescribed in time; ``NotImplementedError`` if other functions changed."""
        self._solve.keep_given()
        own = keys([self._solve.unknown]) | keys(f for a in self._before for f in a.targets)
        unseen = [f for f in record.after.differing() if key(f) not in own]
        refuse_unseen(unseen, self._solve.name, self._solve.unknown.function_space().comm)


def refuse_unseen(functions: Sequence[Function], where: str, comm) -> None:
    """Raise ``NotImplementedError`` on all ranks if, on any rank, functions changed without a solve."""
    if comm.allreduce(len(functions)):
        names = ", ".join(sorted({f.name() for f in functions})) or "what other ranks hold"
        raise NotImplementedError(
            f"gradients through this step are not there: {names} changed otherwise than by the "
            f"equations of {where!r}. Take the gradient by finite differences of whole runs"
        )
