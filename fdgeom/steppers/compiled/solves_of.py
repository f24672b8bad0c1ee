"""Flows as solves between assignments, for compiled steps."""

from collections.abc import Sequence

from firedrake import Function

from fdgeom.errors import CannotCompile
from fdgeom.operations import Assignments, Copy, Flow, HostOperation, Map, Operation, Solve
from fdgeom.solvers import EssentialValues, GivenValues, Numerics, key, plain
from fdgeom.solvers.essential import PrescribedNumbers
from fdgeom.solvers.options import SolveOptions
from fdgeom.steppers.compiled.hints import hints_of
from fdgeom.steppers.host_operations import TurnCheck, TurnsBefore


class SolveOf:
    """One solve of a flow, with the assignments before and after it."""

    def __init__(self, op: Solve, before: Sequence[Operation], flow: Flow, turns) -> None:
        self.op, self.exact, hints = op, flow.exact, hints_of(op)
        self.name, self.unknown, self.dt = op.name, op.unknown, op.dt
        self.residual, self.more = op.residual, op.extra_updates
        self.options = op.options or SolveOptions({}, "")
        self.remedy = op.remedy
        self.uncompilable = hints.get("uncompilable")
        self.following = hints.get("following")
        self.other, self.share = hints.get("other"), hints.get("share")
        self._replaced = {id(r) for r in hints.get("replaced", ())}
        guesses = [a.guess for a in op.attempts]
        self.attempt = None
        if len(op.attempts) > 1:
            self.attempt = "contracting" if op.choose == "first" else "smaller"
            if self.other is None:
                self.uncompilable = "it is solved in attempts of its own"
        first = guesses[0] if guesses else op.guess
        self.guess = {} if first is None else _by_parts(op.unknown, first)
        self._hosts = [
            b for b in before if isinstance(b, HostOperation) and id(b) in self._replaced
        ]
        self.essential = hints.get("essential") or _essential(op)
        left_out = set(guesses[1:]) - {first}
        if "essential" in hints:
            left_out |= {p.value for p in op.prescribed}
        parts = {key(part) for part in op.unknown.subfunctions}
        self.preparations: list[Assignments] = []
        for b in before:
            if isinstance(b, Copy) and b.rows is None and key(b.target) in parts:
                self.guess[b.target] = b.source
            elif isinstance(b, Map):
                self._check_length(b)
                if not (id(b) in self._replaced or left_out.issuperset(b.values)):
                    self.preparations.append(b.values)
            elif id(b) not in self._replaced and not isinstance(b, PrescribedNumbers):
                self._refuse(b)
        if not self.guess and len(parts) == 1:
            self.guess = {op.unknown: op.unknown}
        self.assignments: list[Assignments] = []
        self._turns, self.turns = turns, None

    def add(self, op: Operation) -> None:
        """Add an operation after the solve."""
        if isinstance(op, Map):
            self._check_length(op)
            if id(op) not in self._replaced:
                self.assignments.append(op.values)
            if self._turns is not None and self._turns.orientation in op.values:
                self.turns = self._turns
        elif not isinstance(op, TurnsBefore | TurnCheck) and id(op) not in self._replaced:
            self._refuse(op)

    def _check_length(self, op: Operation) -> None:
        if op.dt not in (None, self.dt) or op.fraction != self.op.fraction:
            raise CannotCompile(f"{self.name}: assignments have another length")

    def _refuse(self, op: Operation) -> None:
        raise CannotCompile(f"{self.name}: operations of the kind {type(op).__name__}")

    @property
    def is_run(self) -> bool:
        """Whether several attempts may be needed."""
        return self.attempt is not None

    def numerics(self) -> Numerics:
        """The numerics of the solve without the user's options."""
        return (self.op.numerics or plain)(self.residual, self.unknown)

    def put_given(self) -> None:
        """Set the degrees of freedom that are given in time."""
        for op in self._hosts:
            op.run()


def solves_of(flows: Sequence[Flow], turns) -> list[tuple[SolveOf, float]]:
    """The solves of a step and their fractions of it; neighbours that are the same exact flow are one."""
    made: dict[tuple[int, ...], list[SolveOf]] = {}
    found: list[tuple[SolveOf, float]] = []
    for flow in flows:
        name = tuple(id(op.original) for op in flow.operations)
        if name not in made:
            made[name] = _solves_of(flow, turns)
        for solve in made[name]:
            fraction = flow.fraction
            if found and solve.exact and found[-1][0] is solve:
                fraction += found.pop()[1]
            found.append((solve, fraction))
    return found


def _solves_of(flow: Flow, turns) -> list[SolveOf]:
    found: list[SolveOf] = []
    before: list[Operation] = []
    operations = [op.original for op in flow.operations]
    solves = [k for k, op in enumerate(operations) if isinstance(op, Solve)]
    if not solves:
        raise CannotCompile("a part of the step has no solve")
    for k, op in enumerate(operations):
        if isinstance(op, Solve):
            found.append(SolveOf(op, before, flow, turns))
            before = []
        elif found and (k > solves[-1] or not isinstance(op, Copy)):
            found[-1].add(op)
        else:
            before.append(op)
    return found


def _essential(op: Solve) -> list[EssentialValues | GivenValues]:
    return [
        GivenValues(p.part, p.dofs)
        if p.value is None
        else EssentialValues(p.part, p.dofs, old=p.value, share=0.0)
        for p in op.prescribed
    ]


def _by_parts(unknown: Function, guess: Function) -> dict[Function, Function]:
    whole = len(unknown.function_space()) == 1
    if whole:
        return {unknown: guess}
    return dict(zip(unknown.subfunctions, guess.subfunctions, strict=True))
