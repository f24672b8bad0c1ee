"""Coefficients of steps: data that derivatives are taken by, and dependent fields."""

from collections.abc import Iterable, Sequence, Set

import ufl
from firedrake import Constant, Function

from fdgeom.adjoint.lists import keys
from fdgeom.data import key
from fdgeom.operations import Assemble, Map, Operation, Performed, Solve, up_to_date
from fdgeom.operations.dependent import Dependents, constants_behind, dependent_of, read_in


class Coefficients:
    """The Functions (``functions``) and ``constants`` that operations read and that a user may change."""

    # moving: keys of the functions that the operations change. clocks: Constants that hold the time.
    # more: further forms and expressions that are read.
    def __init__(
        self,
        operations: Sequence[Operation],
        moving: set[int],
        clocks: Iterable[Constant],
        more: Sequence = (),
    ) -> None:
        things = [*(thing for op in operations for thing in _read_by(op)), *more]
        clocks = {id(clock) for clock in clocks}
        own = {id(op.dt) for op in operations} | clocks
        found = read_in(*things)
        self.constants = [c for c in found if isinstance(c, Constant) and id(c) not in own]
        #: The dependent fields, each after the fields that it depends on.
        self.fields: list[Function] = []
        for thing in things:
            for f in ufl.algorithms.extract_coefficients(thing):
                self._add_field(f, moving)
        #: Those of the fields that follow the time.
        self.in_time = [f for f in self.fields if clocks & set(map(id, constants_behind(f)))]
        others = moving | keys(self.fields)
        self.functions = [f for f in found if isinstance(f, Function) and not keys([f]) & others]

    def _add_field(self, field: Function, moving: set[int]) -> None:
        dependent = dependent_of(field)
        if dependent is None or key(field) in moving | keys(self.fields):
            return
        if not dependent.follows_a_user:
            return
        for source in dependent.sources.functions:
            self._add_field(source, moving)
        self.fields.append(field)

    @property
    def dependents(self) -> Dependents:
        """Those of the fields, in the same order."""
        return Dependents(dependent_of(field) for field in self.fields)

    def reached_by(self, wanted: Iterable[Function]) -> set[int]:
        """The keys of functions and of the fields that depend on them; each field needs operations."""
        reached = keys(wanted)
        for field, dependent in zip(self.fields, self.dependents, strict=True):
            if keys(dependent.sources.functions) & reached:
                if dependent.operations is None:
                    raise NotImplementedError(
                        f"gradients by the sources of {field.name()} are not available, since it is "
                        "computed by more than interpolation. Take finite differences of whole runs"
                    )
                refuse_set(field)
                reached.add(key(field))
        return reached

    def updates(self, reached: Set[int]) -> list[Operation]:
        """For derivatives, the updates of the fields that depend on functions with the keys ``reached``."""
        found: list[Operation] = []
        for field, dependent in zip(self.fields, self.dependents, strict=True):
            if key(field) in reached and keys(dependent.sources.functions) & reached:
                found += map(up_to_date, dependent.operations)
        return found

    def with_updates(self, operations: Sequence[Operation], reached: Set[int]) -> list[Operation]:
        """The operations, and before each of them the updates of the fields in time that it reads."""
        fields = keys(self.in_time) & reached
        found: list[Operation] = []
        for op in operations:
            place = {"dt": op.dt, "fraction": op.fraction, "clock": op.clock, "at": op.at}
            found += self.updates_in_time(reached, **place) if keys(op.reads) & fields else []
            found.append(op)
        return found

    def updates_in_time(self, reached: Set[int], **place) -> list[Operation]:
        """The updates of the fields in time, at the ``place`` of an operation or at the present time."""
        return [_in_place(f, place) for f in self.in_time if keys([f]) & reached]


def _in_place(field: Function, place: dict) -> Operation:
    """The update of a dependent field without derivatives by what it was at another time."""
    dependent = dependent_of(field)
    made = [
        o.placed(**place, **({"adds": type(o.adds)()} if hasattr(o, "adds") else {}))
        for o in dependent.operations
    ]
    return Performed(do=dependent.refresh, operations=made, **place)


def refuse_set(field: Function) -> None:
    """Raise ``NotImplementedError`` if a dependent field has other values than those made of its sources."""
    dependent = dependent_of(field)
    dependent.refresh()
    if not dependent.made.holds():
        raise NotImplementedError(
            f"{field.name()} is computed from other Functions, and was set by hand: derivatives and "
            "replays would compute it anew. Set the Functions that it is computed from"
        )


def _read_by(op: Operation) -> list:
    """The forms and expressions of an operation."""
    if isinstance(op, Solve):
        return [op.residual]
    if isinstance(op, Map):
        return [ufl.as_ufl(e) for e in op.values.values()]
    if isinstance(op, Assemble):
        return [op.work]
    if isinstance(op, Performed):
        return [thing for inner in op.derivative_as for thing in _read_by(inner)]
    return list(op.reads)
