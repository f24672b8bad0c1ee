"""Flows: parts of a step that compositions scale and merge."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fdgeom.operations.operation import Operation
from fdgeom.operations.solve import Solve


@dataclass(frozen=True)
class Flow:
    """A part of a step: operations with their fraction of it.

    Parameters
    ----------
    operations : sequence of Operation
        Its operations, in their order.
    fraction : float, optional
        Its length as a part of the step (default 1).
    exact : bool, optional
        Whether two such flows, one after another, equal one for the sum of the lengths.
    advances_time : bool, optional
        Whether the time of the system advances with it.

    Raises
    ------
    TypeError
        If an entry of ``operations`` is no operation.
    ValueError
        If there is no operation, or two solves have the same unknown.
    """

    operations: tuple[Operation, ...]
    fraction: float = 1.0
    exact: bool = False
    advances_time: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", tuple(self.operations))
        if not self.operations:
            raise ValueError("operations must not be empty")
        for op in self.operations:
            if not isinstance(op, Operation):
                raise TypeError(f"operations must be operations, not {type(op).__name__}")
        unknowns: dict[int, Solve] = {}
        for op in self.operations:
            if isinstance(op, Solve) and unknowns.setdefault(id(op.unknown.dat), op) is not op:
                raise ValueError(
                    f"operations: two solves have the same unknown {op.unknown.name()!r}; give each "
                    "one of its own, and copy the result"
                )

    def scaled(self, weight: float) -> "Flow":
        """The flow for ``weight`` times its length."""
        return replace(self, fraction=weight * self.fraction)


def merged(flows: Sequence[Flow]) -> list[Flow]:
    """One flow in place of neighbours that are the same exact flow."""
    found: list[Flow] = []
    for flow in flows:
        last = found[-1] if found else None
        if last is not None and flow.exact and last.operations == flow.operations:
            found[-1] = replace(last, fraction=last.fraction + flow.fraction)
        else:
            found.append(flow)
    return found


def flattened(flows: Sequence[Flow]) -> list[Operation]:
    """The operations of a step, with their fractions of it and their places in time."""
    found, begin = [], 0.0
    for flow in flows:
        found += [op.scaled(flow.fraction, begin) for op in flow.operations]
        begin += flow.fraction if flow.advances_time else 0.0
    return found
