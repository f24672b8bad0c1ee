"""Host operations: what a Python function performs, with derivatives by operations or by arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from firedrake import Cofunction, Function

from fdgeom.operations.operation import Cotangents, HostOperation, Operation, Tangents, parts

#: The values of a Function that this rank owns, those of its parts, or those of a Cofunction; None is
#: zero. A function that returns them is called for active Functions alone.
Values = np.ndarray | Sequence[np.ndarray] | Cofunction | None | Callable[[], Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Performed(HostOperation):
    """Operations whose values a function computes in its own way."""

    do: Callable[[], None]
    #: The operations, or a function that makes them when derivatives need them.
    operations: Sequence[Operation] | Callable[[], Sequence[Operation]]
    why_not_compiled: str = ""

    @property
    def reads(self) -> list[Function]:
        return list(dict.fromkeys(f for op in self.derivative_as for f in op.reads))

    @property
    def writes(self) -> list[Function]:
        return list(dict.fromkeys(f for op in self.derivative_as for f in op.writes))

    def run(self) -> None:
        self.do()

    @cached_property
    def derivative_as(self) -> Sequence[Operation]:
        return self.operations() if callable(self.operations) else self.operations


def up_to_date(operation: Operation) -> Performed:
    """An operation whose result is up to date, for derivatives alone."""
    return Performed(do=lambda: None, operations=[operation])


class OperationOn(HostOperation):
    """A host operation whose constructor takes the Functions that it reads and writes."""

    # In place of the properties of the base class.
    reads: Any = None
    writes: Any = None

    def __init__(self, reads: Sequence[Function], writes: Sequence[Function]) -> None:
        super().__init__()
        self.reads, self.writes = list(reads), list(writes)


class ArrayOperation(OperationOn):
    """A host operation that gives its derivatives as arrays; ``writes`` are no mixed Functions.

    Subclasses define :meth:`run`, :meth:`tangents` and :meth:`cotangents`, and
    :meth:`cotangent_rates` unless the operation is linear. These three are called at the state before
    the operation.
    """

    def tangents(self, dots: Sequence[Function | None]) -> Sequence[np.ndarray]:
        """The tangents of what it writes, from those of what it reads; None is zero."""
        raise NotImplementedError

    def cotangents(self, bars: Sequence[np.ndarray]) -> Sequence[Values]:
        """The cotangents of what it reads, from those of what it writes."""
        raise NotImplementedError

    def cotangent_rates(
        self, bars: Sequence[np.ndarray], dots: Sequence[Function | None]
    ) -> Sequence[Values]:
        """The derivative of :meth:`cotangents` along tangents of what it reads; None is zero."""
        return [None] * len(bars)

    def jvp(self, tangents: Tangents) -> list[Operation]:
        active = all(f in tangents for f in self.writes) and any(f in tangents for f in self.reads)
        return [_Tangent(self, tangents)] if active else []

    def vjp(self, cotangents: Cotangents) -> list[Operation]:
        return _adjoint(self, cotangents, self.reads, self.writes)


class _Tangent(OperationOn):
    """The tangents of an :class:`ArrayOperation`."""

    def __init__(self, op: ArrayOperation, tangents: Tangents) -> None:
        self.op, self.dots = op, [tangents.get(f) for f in op.reads]
        dots = (dot for dot in self.dots if dot is not None)
        super().__init__([*op.reads, *dots], [tangents[f] for f in op.writes])

    def run(self) -> None:
        values = [np.array(v) for v in self.op.tangents(self.dots)]
        for target, value in zip(self.writes, values, strict=True):
            target.dat.data_wo[...] = value

    def vjp(self, cotangents: Cotangents) -> list[Operation]:
        if not any(target in cotangents for target in self.writes):
            return []
        bent: list[Operation] = []
        if type(self.op).cotangent_rates is not ArrayOperation.cotangent_rates:
            bent = _adjoint(self.op, cotangents, self.op.reads, self.writes, self.dots)
        return [*bent, *_adjoint(self.op, cotangents, self.dots, self.writes)]


def _adjoint(
    op: ArrayOperation,
    cotangents: Cotangents,
    sources: Sequence[Function | None],
    targets: Sequence[Function],
    dots: Sequence[Function | None] | None = None,
) -> list[Operation]:
    """The operation that computes cotangents of sources from those of targets, or adds their rates."""
    if not any(f in cotangents for f in targets):
        return []
    bars = [cotangents.get(f) for f in targets]
    if dots is None:
        cotangents.drop(targets)
    places: list[tuple[Function, list[bool]] | None] = []
    for f in sources:
        if cotangents.is_active(f):
            places.append((cotangents[f], [part in cotangents for part in parts(f)]))
            cotangents.add([f])
        else:
            places.append(None)
    return [_Adjoint(op, bars, places, dots).placed(**op._timed())]


class _Adjoint(OperationOn):
    """The cotangents of an :class:`ArrayOperation`, or their rates along tangents."""

    # places: for each source its cotangent, and whether to add to each part of it.
    def __init__(self, op: ArrayOperation, bars, places, dots) -> None:
        self.op, self.bars, self.places, self.dots = op, bars, places, dots
        own = [*bars, *(dots or ()), *(p[0] for p in places if p and any(p[1]))]
        read = [*op.reads, *(f for f in own if f is not None)]
        super().__init__(read, [p[0] for p in places if p is not None])

    def run(self) -> None:
        bars = [
            np.zeros(f.dat.data_ro.shape) if bar is None else np.array(bar.dat.data_ro)
            for f, bar in zip(self.op.writes, self.bars, strict=True)
        ]
        if self.dots is None:
            found = self.op.cotangents(bars)
        else:
            found = self.op.cotangent_rates(bars, self.dots)
        for place, values in zip(self.places, found, strict=True):
            if place is not None:
                _put(*place, values)


def _put(target: Function, adds: Sequence[bool], values: Values) -> None:
    """Set the parts of a cotangent, or add to them."""
    if callable(values) and not isinstance(values, Cofunction):
        values = values()
    if isinstance(values, Cofunction):
        values = [part.dat.data_ro for part in parts(values)]
    elif isinstance(values, np.ndarray):
        values = [values]
    for k, part in enumerate(parts(target)):
        if values is not None:
            part.dat.data_wo[...] = values[k] + (part.dat.data_ro if adds[k] else 0.0)
        elif not adds[k]:
            part.dat.data_wo[...] = 0.0


def owned_values(dots: Sequence[Function | None]) -> list[np.ndarray | float]:
    """The values of tangents that this rank owns; None is zero."""
    return [0.0 if dot is None else dot.dat.data_ro for dot in dots]
