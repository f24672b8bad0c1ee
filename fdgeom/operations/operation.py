"""Base class of the operations that a time step consists of, and the functions for their derivatives."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self, TypeGuard

from firedrake import Constant, Form, Function
from ufl.core.expr import Expr

#: A functional that is linear in its test function. An expression means its sum over the nodes that
#: its Functions share.
Work = Form | Expr


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
    """An operation that a Python method performs; executors call it between the others.

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
            if _key(f) in self._made:
                continue
            made = Function(f.function_space(), name=f"{self.name} of {f.name()}")
            self._made[_key(f)] = f, made
            if len(f.function_space()) > 1:
                for part, own in zip(f.subfunctions, made.subfunctions, strict=True):
                    self._made[_key(part)] = part, own

    def is_active(self, f: Function | None) -> TypeGuard[Function]:
        """Whether derivatives by a Function are computed; None is no Function."""
        return f is not None and _key(f) in self._made

    def __contains__(self, f: Function | None) -> bool:
        return self.is_active(f)

    def __getitem__(self, f: Function) -> Function:
        return self._made[_key(f)][1]

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
        return f is not None and any(_key(part) in self._nonzero for part in parts(f))

    def add(self, functions: Iterable[Function]) -> None:
        """Note that the cotangents of Functions may differ from zero."""
        self._nonzero |= {_key(part) for f in functions for part in parts(f)}

    def drop(self, functions: Iterable[Function]) -> None:
        """Note that the cotangents of Functions are zero."""
        self._nonzero -= {_key(part) for f in functions for part in parts(f)}

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


def _key(f: Function) -> int:
    return id(f.dat)


def parts(f):
    """The parts of a mixed Function or Cofunction; another one itself."""
    return tuple(f.subfunctions) if len(f.function_space()) > 1 else (f,)


def each_part(functions: Iterable[Function]) -> list[Function]:
    """The parts of functions, each once."""
    return list({_key(part): part for f in functions for part in parts(f)}.values())
