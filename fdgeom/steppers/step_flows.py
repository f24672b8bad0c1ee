"""Flows of a step with the time of the system and the checks of beams."""

from collections.abc import Sequence
from dataclasses import replace

from fdgeom.operations import Flow, Map, Operation, Solve, check_unknowns
from fdgeom.steppers.host_operations import TurnCheck, TurnsBefore


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
