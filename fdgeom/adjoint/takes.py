"""Records of the solves of a step, and their derivatives."""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass

from firedrake import Constant, Function

from fdgeom.adjoint.deeds import solve_operations
from fdgeom.adjoint.list_derivative import ListDerivative
from fdgeom.adjoint.values import Kept, Vectors, keys
from fdgeom.operations import Map
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
        self._solve, timed = solve, {"dt": solve.dt}
        operations = [
            *(Map(values=group, **timed) for group in solve.preparations),
            *solve_operations(solve.residual, solve.unknown, solve.essential, solve.name, **timed),
            *(Map(values=group, **timed) for group in solve.assignments),
        ]
        self._derivative = ListDerivative(operations, active, self._find)
        self._moving, self._times = tuple(moving), [Number(c) for c in clocks]
        self._clocks = tuple(clocks)

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
        self._derivative.pull(bars, record.dt, self._leave)

    def pull_rates(self, record: Record, bars: Vectors, rates: Vectors, tangents: Vectors) -> None:
        """:meth:`pull`, and its derivative along the tangents before the solve."""
        self._set(record)
        self._derivative.pull_rates(bars, rates, tangents, record.dt, self._leave)

    def push(self, record: Record, tangents: Vectors) -> None:
        """The tangents after the solve from those before it."""
        self._set(record)
        self._derivative.push(tangents, record.dt, self._leave)

    def _set(self, record: Record) -> None:
        self._record = record
        record.before.restore()
        for number, value in zip(self._times, record.clocks, strict=True):
            number.set(value)

    def _find(self) -> None:
        """Set the values prescribed in time, and the unknown to the recorded solution."""
        self._solve.put_given()
        self._record.solution.restore()

    def _leave(self) -> None:
        """Set the values prescribed in time; ``NotImplementedError`` if other functions changed."""
        self._solve.keep_given()
        written = [f for group in self._solve.preparations for f in group]
        own = keys([self._solve.unknown, *written])
        unseen = [f for f in self._record.after.differing() if key(f) not in own]
        refuse_unseen(unseen, self._solve.name, self._solve.unknown.function_space().comm)


def refuse_unseen(functions: Sequence[Function], where: str, comm) -> None:
    """Raise ``NotImplementedError`` on all ranks if, on any rank, functions changed without a solve."""
    if comm.allreduce(len(functions)):
        names = ", ".join(sorted({f.name() for f in functions})) or "what other ranks hold"
        raise NotImplementedError(
            f"gradients through this step are not there: {names} changed otherwise than by the "
            f"equations of {where!r}. Take the gradient by finite differences of whole runs"
        )
