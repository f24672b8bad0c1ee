"""Flows of a step with the time of the system and the checks of rotations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import ufl
from firedrake import Function

from fdgeom.operations import (
    Check,
    Copy,
    Flow,
    HostOperation,
    Map,
    Operation,
    Solve,
    check_unknowns,
)


def completed(flows: Sequence[Flow], system) -> list[Flow]:
    """The flows with a clock for every operation and checks of rotations.

    Operations without a clock get that of the system at the end of the step.
    """
    made: dict[tuple, tuple[Operation, ...]] = {}
    checked: dict[int, tuple[Operation, ...]] = {}
    check_unknowns([op for flow in flows for op in flow.operations])
    found = []
    for flow in flows:
        name = id(flow.operations)
        if name not in checked:
            checked[name] = _checked(flow.operations, system.turns)
        key = name, flow.fraction, flow.begin
        if key not in made:
            made[key] = tuple(_timed(op, flow, system.clocks) for op in checked[name])
        found.append(replace(flow, operations=made[key]))
    return found


def _timed(op: Operation, flow: Flow, clocks: tuple) -> Operation:
    if op.clock is not None or not clocks:
        return op
    return op.placed(clock=clocks, at=(1.0 - flow.begin) / flow.fraction)


def _checked(operations: Sequence[Operation], turns) -> tuple[Operation, ...]:
    """The operations with a check where they turn the cells of a beam."""
    found: list[Operation] = []
    solved = turns is None or any(isinstance(op, TurnCheck) for op in operations)
    if solved:
        return tuple(operations)
    for op in operations:
        solved = solved or isinstance(op, Solve)
        if solved and isinstance(op, Map) and turns.orientation in op.values:
            before = TurnsBefore(turns=turns)
            found += [before, op, TurnCheck(turns=turns, before=before)]
        else:
            found.append(op)
    return tuple(found)


@dataclass(frozen=True, kw_only=True, eq=False)
class _OfTurns(HostOperation):
    """Reads the rotations of nodes and changes nothing."""

    #: `fdgeom.beams.rod.turns.Turns`.
    turns: Any

    @property
    def reads(self) -> list[Function]:
        return [self.turns.orientation]

    @property
    def writes(self) -> list[Function]:
        return []

    @property
    def derivative_as(self) -> Sequence[Operation]:
        return []


@dataclass(frozen=True, kw_only=True, eq=False)
class TurnsBefore(_OfTurns):
    """Stores the rotations of nodes, for :class:`TurnCheck`."""

    @cached_property
    def orientation(self) -> Function:
        """The orientation before the assignments, in compiled code."""
        return Function(self.turns.orientation.function_space(), name="orientation before")

    def run(self) -> None:
        self.__dict__["found"] = self.turns.values()

    @property
    def compiled_as(self) -> Sequence[Operation] | None:
        before = cast(TurnsBefore, self.original).orientation
        return [Copy(source=self.turns.orientation, target=before)]


@dataclass(frozen=True, kw_only=True, eq=False)
class TurnCheck(_OfTurns):
    """Fails the step where a cell has turned too far; its sentence needs the place and the angle."""

    before: TurnsBefore

    def run(self) -> None:
        self.turns.check(self.before.__dict__["found"])

    @property
    def compiled_as(self) -> Sequence[Operation] | None:
        message = "the two ends of a cell turn too far against one another in a step"
        before, least = self.before.orientation, self.turns.least
        # The angles at both ends bound the change of that between them.
        small = float(np.cos(np.arccos(least) / 2)) - ufl.dot(self.turns.orientation, before)
        return [
            Check(value=-cosine, limit=-least, message=message, sufficient=enough)
            for cosine, enough in zip(self.turns.cosines(before), (small, None), strict=False)
        ]

    def explain(self) -> None:
        self.turns.check(self.before.orientation.dat.data_ro_with_halos)
