"""Base classes of the operations that a time step consists of, and the functions for their derivatives."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeGuard

import numpy as np
from firedrake import Cofunction, Constant, Form, Function
from ufl.core.expr import Expr

from fdgeom.data import key

#: A functional that is linear in its test function. An expression means its sum over the nodes that
#: its Functions share.
Work = Form | Expr
#: The values of a Function that this rank owns, those of its parts, or those of a Cofunction; None is
#: zero. A function that returns them is called for active Functions alone.
Values = np.ndarray | Sequence[np.ndarray] | Cofunction | None | Callable[[], Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Operation(ABC):
    """Base class of operations; each gives its derivatives as operations again.

    Parameters
    ----------
    dt : Constant, optional
        The symbol for the length of the operation in its expressions: ``fraction`` times the step.
    fraction : float, optional
        The part of the step (default 1).
    clock : Constant or tuple of Constant, optional
        The symbols for the time in its expressions: t + ``at`` Δt.
    at : float, optional
        The part of the step after which the clock is read (default 1).

    Notes
    -----
    Cotangents are vectors of degrees of freedom, not Riesz representers: the cotangent of a Function
    is a Function of the same space whose values are those of a Cofunction.
    """

    dt: Constant | None = None
    fraction: float = 1.0
    clock: Constant | tuple[Constant, ...] | None = None
    at: float = 1.0

    @property
    def original(self) -> "Operation":
        """The operation that this one places in a step; itself if it is no such copy."""
        return self.__dict__.get("_original", self)

    @property
    def clocks(self) -> tuple[Constant, ...]:
        """The symbols for the time."""
        if self.clock is None:
            return ()
        return self.clock if isinstance(self.clock, tuple) else (self.clock,)

    @property
    @abstractmethod
    def reads(self) -> list[Function]:
        """The Functions that the operation reads."""

    @property
    @abstractmethod
    def writes(self) -> list[Function]:
        """The Functions that the operation writes."""

    @abstractmethod
    def jvp(self, tangents: "Tangents") -> list["Operation"]:
        """The operations that compute the tangents of what this one writes."""

    @abstractmethod
    def vjp(self, cotangents: "Cotangents") -> list["Operation"]:
        """The operations that compute the cotangents before this one from those after it."""

    def scaled(self, weight: float, begin: float = 0.0) -> Self:
        """The operation as a part of a step, which begins at ``begin`` and has the length ``weight``."""
        return self.placed(fraction=weight * self.fraction, at=begin + weight * self.at)

    def placed(self, **places) -> Self:
        """A copy with another fraction, clock or time; executors perform it by the same solver."""
        made = copy(self)
        made.__dict__.update(places, _original=self.original)
        return made

    def _timed(self) -> dict:
        """The arguments that its derivatives share."""
        return {"dt": self.dt, "fraction": self.fraction, "clock": self.clock, "at": self.at}


class HostOperation(Operation):
    """An operation that a Python method performs.

    The PETSc executor calls :meth:`run`; compiled code takes ``compiled_as``, and refuses the step
    without it.

    Subclasses define ``reads``, ``writes`` and :meth:`run`, and ``derivative_as``: operations with the
    same derivatives. They need not compute the values; these are those that :meth:`run` has left.
    They may define ``compiled_as``: operations with the same effect, for compiled code.
    """

    #: Why there are none, as users read it.
    why_not_compiled = ""

    @property
    def compiled_as(self) -> Sequence[Operation] | None:
        """Operations with the same effect, for compiled code; None if there are none."""
        return None

    @property
    def differentiated_as(self) -> Sequence["Operation"] | None:
        """Operations with the same effect, for derivatives of any order; None if there are none.

        An operation whose ``derivative_as`` contains a nonlinear solve needs them.
        """
        return None

    @abstractmethod
    def run(self) -> None:
        """Perform the operation."""

    def explain(self) -> None:
        """Raise the error of a `Check` in ``compiled_as`` that has failed, if its sentence needs Python."""

    @property
    def derivative_as(self) -> Sequence[Operation]:
        """Operations with the same derivatives."""
        raise NotImplementedError(
            f"{type(self).__name__} has no derivatives: define derivative_as, a list of operations"
        )

    def jvp(self, tangents):
        return [made for op in self.derivative_as for made in op.jvp(tangents)]

    def vjp(self, cotangents):
        return reverse(self.derivative_as, cotangents)


def compilable(operations: Iterable[Operation]) -> list[Operation]:
    """Operations with those for compiled code in place of host operations, where there are some."""
    return _replaced(operations, lambda op: op.compiled_as)


def differentiable(operations: Iterable[Operation]) -> list[Operation]:
    """Operations with those for derivatives in place of host operations, where there are some."""
    return _replaced(operations, lambda op: op.differentiated_as)


def _replaced(operations: Iterable[Operation], by: Callable) -> list[Operation]:
    found: list[Operation] = []
    for op in operations:
        others = by(op) if isinstance(op, HostOperation) else None
        found += [op] if others is None else others
    return found


class Tangents:
    """A tangent for each active Function, of the same space."""

    name = "tangent"

    def __init__(self, active: Iterable[Function]) -> None:
        self._made: dict[int, tuple[Function, Function]] = {}
        # Mixed Functions first: their parts get the parts of their tangents.
        for f in sorted(active, key=lambda f: -len(f.function_space())):
            if key(f) in self._made:
                continue
            made = Function(f.function_space(), name=f"{self.name} of {f.name()}")
            self._made[key(f)] = f, made
            if len(f.function_space()) > 1:
                for part, own in zip(f.subfunctions, made.subfunctions, strict=True):
                    self._made[key(part)] = part, own

    def is_active(self, f: Function | None) -> TypeGuard[Function]:
        """Whether derivatives by a Function are computed; None is no Function."""
        return f is not None and key(f) in self._made

    def __contains__(self, f: Function | None) -> bool:
        return self.is_active(f)

    def __getitem__(self, f: Function) -> Function:
        return self._made[key(f)][1]

    def get(self, f: Function | None) -> Function | None:
        """That of a Function; None if it is zero."""
        return self[f] if self.is_active(f) and f in self else None


class Cotangents(Tangents):
    """A cotangent for each active Function; ``in`` tells whether it may differ from zero."""

    name = "cotangent"

    def __init__(self, active: Iterable[Function]) -> None:
        super().__init__(active)
        self._nonzero: set[int] = set()

    def __contains__(self, f: Function | None) -> bool:
        return f is not None and any(key(part) in self._nonzero for part in parts(f))

    def add(self, functions: Iterable[Function]) -> None:
        """Note that the cotangents of Functions may differ from zero."""
        self._nonzero |= {key(part) for f in functions for part in parts(f)}

    def drop(self, functions: Iterable[Function]) -> None:
        """Note that the cotangents of Functions are zero."""
        self._nonzero -= {key(part) for f in functions for part in parts(f)}

    @property
    def nonzero(self) -> list[Function]:
        """The Functions (parts of mixed ones) whose cotangents may differ from zero."""
        return [f for name, (f, _) in self._made.items() if name in self._nonzero]


def reverse(operations: Sequence[Operation], cotangents: Cotangents) -> list[Operation]:
    """The operations that compute the cotangents before some operations from those after them."""
    return [made for op in reversed(operations) for made in op.vjp(cotangents)]


def linearise(operations: Sequence[Operation], tangents: Tangents) -> list[Operation]:
    """Operations together with those for their tangents."""
    found: list[Operation] = []
    for op in operations:
        # A solve's tangent reads its solution; the others' read what their operations overwrite.
        made = op.jvp(tangents)
        found += [op, *made] if getattr(op, "unknown", None) is not None else [*made, op]
    return found


def parts(f):
    """The parts of a mixed Function or Cofunction; another one itself."""
    return tuple(f.subfunctions) if len(f.function_space()) > 1 else (f,)


def each_part(functions: Iterable[Function]) -> list[Function]:
    """The parts of functions, each once."""
    return list({key(part): part for f in functions for part in parts(f)}.values())


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
