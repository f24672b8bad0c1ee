"""Flows: parts of a step that compositions scale and merge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from firedrake import Function
from ufl.core.expr import Expr

from fdgeom.operations.explicit import Assemble, Copy, Map
from fdgeom.operations.operation import Operation, each_part, parts
from fdgeom.operations.solve import Solve

Assignments = Mapping[Function, Expr]


@dataclass(frozen=True)
class Flow:
    """A part of a step: operations with their fraction of it.

    Parameters
    ----------
    operations : sequence of Operation
        Its operations, in their order.
    fraction : float, optional
        Its length as a part of the step (default 1): the symbol ``dt`` of an operation is
        ``fraction`` times the step.
    begin : float, optional
        The part of the step after which it begins, for the time in its operations (default 0): the
        clock of an operation shows t + (``begin`` + ``fraction`` ``at``) Δt.
    exact : bool, optional
        Whether two such flows, one after another, equal one for the sum of the lengths.

    Raises
    ------
    TypeError
        If an entry of ``operations`` is no operation.
    ValueError
        If there is no operation, or two solves have the same unknown.

    Examples
    --------
    >>> kick = fg.Flow([solve, fg.Map(values={p: solve.unknown})], 0.5)  # doctest: +SKIP
    """

    operations: Sequence[Operation]
    fraction: float = 1.0
    begin: float = 0.0
    exact: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", tuple(self.operations))
        if not self.operations:
            raise ValueError("operations must not be empty")
        for op in self.operations:
            if not isinstance(op, Operation):
                raise TypeError(f"operations must be operations, not {type(op).__name__}")
        check_unknowns(self.operations)

    def scaled(self, weight: float, begin: float = 0.0) -> "Flow":
        """The flow as a part of a step, which begins at ``begin`` and has the length ``weight``."""
        return replace(self, fraction=weight * self.fraction, begin=begin + weight * self.begin)

    @property
    def reads_time(self) -> bool:
        """Whether a clock is set for one of its operations."""
        return any(op.clock is not None for op in self.operations)


def check_unknowns(operations: Sequence[Operation]) -> None:
    """Raise ``ValueError`` if two solves have the same unknown."""
    unknowns: dict[int, Operation] = {}
    for op in operations:
        if not isinstance(op, Solve):
            continue
        for part in parts(op.unknown):
            if unknowns.setdefault(id(part.dat), op.original) is not op.original:
                raise ValueError(
                    f"operations: two solves have the same unknown {op.unknown.name()!r}; give each "
                    "one of its own, and copy the result"
                )


def check_state(operations: Sequence[Operation], state: Sequence[Function]) -> None:
    """Raise ``ValueError`` if a Function that is not of the state is carried to the next step or to users."""
    # Compiled steps store the state alone, and a failed step restores nothing else.
    known = {id(part.dat) for f in state for part in parts(f)}
    originals = dict.fromkeys(op.original for op in operations)
    reads = {op: _needed(op) for op in originals}
    writes = {op: each_part(op.writes) for op in originals}
    read = known | {id(part.dat) for found in reads.values() for part in found}
    written_in_step = {id(part.dat) for found in writes.values() for part in found}
    written = known
    for op in originals:
        for part in reads[op]:
            if id(part.dat) in written_in_step - written:
                raise ValueError(_not_of_state(part, "is read before it is written"))
        for part in writes[op]:
            if isinstance(op, Map | Assemble) and id(part.dat) not in read:
                raise ValueError(_not_of_state(part, "is written and not read"))
        written = written | {id(part.dat) for part in writes[op]}


def _needed(op: Operation) -> list[Function]:
    """The Functions, by parts, that an operation needs: no first guess, and none that it writes in part."""
    found = each_part(op.reads)
    if isinstance(op, Solve) or (isinstance(op, Copy) and not op.adds):
        own = {id(part.dat) for part in each_part(op.writes)}
        found = [part for part in found if id(part.dat) not in own]
    return found


def _not_of_state(f: Function, what: str) -> str:
    return (
        f"flows: {f.name()!r} {what} in a step, and is no function of the state; return it from the "
        "functions() of the stepper or of the system"
    )


def with_assignments(
    solve: Solve,
    after: Sequence[Assignments],
    *,
    before: Sequence[Assignments] = (),
    guess: Mapping[Function, Function] | None = None,
) -> list[Operation]:
    """A solve with assignments before and after it; ``guess`` are first guesses of parts of its unknown."""
    timed = {"dt": solve.dt, "clock": solve.clock, "at": solve.at}
    copied = {part: g for part, g in (guess or {}).items() if g is not part}
    if solve.unknown in copied:
        solve = replace(solve, guess=copied.pop(solve.unknown))
    return [
        *(Map(values=group, **timed) for group in before),
        *(Copy(source=g, target=part) for part, g in copied.items()),
        solve,
        *(Map(values=group, **timed) for group in after),
    ]


def merged(flows: Sequence[Flow]) -> list[Flow]:
    """One flow in place of neighbours that are the same exact flow at the same time."""
    found: list[Flow] = []
    for flow in flows:
        last = found[-1] if found else None
        same = last is not None and flow.exact and last.operations == flow.operations
        if same and (last.begin == flow.begin or not flow.reads_time):
            found[-1] = replace(last, fraction=last.fraction + flow.fraction)
        else:
            found.append(flow)
    return found


def flattened(flows: Sequence[Flow]) -> list[Operation]:
    """The operations of a step, with their fractions of it and their places in time."""
    return [op.scaled(flow.fraction, flow.begin) for flow in flows for op in flow.operations]


def completed(flows: Sequence[Flow], system) -> list[Flow]:
    """The flows with a clock for every operation and checks of rotations.

    Operations without a clock get that of the system at the end of the step.
    """
    made: dict[tuple, tuple[Operation, ...]] = {}
    checked: dict[int, Sequence[Operation]] = {}
    check_unknowns([op for flow in flows for op in flow.operations])
    found = []
    for flow in flows:
        name, operations = id(flow.operations), flow.operations
        if name not in checked:
            turns = system.turns
            checked[name] = operations if turns is None else turns.checked(operations)
        key = name, flow.fraction, flow.begin
        if key not in made:
            made[key] = tuple(_timed(op, flow, system.model.clocks) for op in checked[name])
        found.append(replace(flow, operations=made[key]))
    return found


def _timed(op: Operation, flow: Flow, clocks: tuple) -> Operation:
    if op.clock is not None or not clocks:
        return op
    return op.placed(clock=clocks, at=(1.0 - flow.begin) / flow.fraction)
