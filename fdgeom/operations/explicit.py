"""Operations without a solve: `Map` and `Check` at nodes, `Copy`, and `Assemble`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import ufl
from firedrake import Argument, Form, Function, derivative
from ufl.algorithms import expand_derivatives, extract_coefficients
from ufl.classes import Zero
from ufl.core.expr import Expr

from fdgeom.forms import check_domains, is_zero, rename, simplify
from fdgeom.operations.operation import Cotangents, Operation, Tangents, Work, parts
from fdgeom.validation import instance


@dataclass(frozen=True, kw_only=True, eq=False)
class Map(Operation):
    """Sets Functions to expressions at every node or cell; all are read before any is written.

    Parameters
    ----------
    values : dict
        Functions with values at the same nodes, and the UFL expressions that they get. The
        expressions contain Functions with values at these nodes and no derivatives in space.
    dt, fraction, clock, at
        As for every operation: the symbols for its length and its time.

    Raises
    ------
    ValueError
        If ``values`` is empty, or an expression has not the shape of its Function.
    TypeError
        If ``values`` is no dict of Functions.

    Examples
    --------
    >>> fg.Map(values={q: q + dt*p}, dt=dt)  # doctest: +SKIP
    """

    values: Mapping[Function, Expr]

    def __post_init__(self) -> None:
        instance("values", self.values, Mapping, "a dict of Functions and their expressions")
        if not self.values:
            raise ValueError("values is empty; give at least one Function and its expression")
        for target, value in self.values.items():
            instance("values", target, Function, "a dict whose keys are Functions")
            shape = ufl.as_ufl(value).ufl_shape
            if shape != target.ufl_shape:
                raise ValueError(
                    f"values: the expression for {target.name()!r} has the shape {shape}, but the "
                    f"Function has the shape {target.ufl_shape}; give an expression of this shape"
                )

    @cached_property
    def reads(self) -> list[Function]:
        found = (f for e in self.values.values() for f in extract_coefficients(ufl.as_ufl(e)))
        return list(dict.fromkeys(found))

    @property
    def writes(self) -> list[Function]:
        return list(self.values)

    def jvp(self, tangents: Tangents) -> list[Operation]:
        slopes = {}
        for target, value in self.values.items():
            if target in tangents:
                along = [(f, tangents[f]) for f in self.reads if f in tangents]
                slope = sum(
                    (ufl.derivative(ufl.as_ufl(value), f, dot) for f, dot in along),
                    ufl.zero(*target.ufl_shape),
                )
                slopes[tangents[target]] = expand_derivatives(slope)
        return [Map(values=slopes, **self._timed())] if slopes else []

    def vjp(self, cotangents: Cotangents) -> list[Operation]:
        zeroes = [op for t in self.values for op in zero_rest(self._timed(), t, cotangents)]
        given = [(e, cotangents[t]) for t, e in self.values.items() if t in cotangents]
        cotangents.drop(self.values)
        work = sum((ufl.inner(bar, ufl.as_ufl(e)) for e, bar in given), ufl.as_ufl(0.0))
        return (
            [] if isinstance(work, Zero) else [*zeroes, *gradient(self._timed(), work, cotangents)]
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Check(Operation):
    """Fails the step where an expression exceeds a limit at a node or cell.

    Parameters
    ----------
    value : UFL expression
        A scalar expression of Functions with values at the same nodes; with derivatives in space it is
        evaluated at the midpoints of cells.
    limit : float
        The largest value that is allowed; NaN is not.
    message : str
        The sentence of the error.
    sufficient : UFL expression, optional
        A scalar expression of values at nodes. A cell at both nodes of which it is negative is within
        the limit, so that compiled code evaluates ``value`` in other cells alone.
    """

    value: Expr
    limit: float
    message: str
    sufficient: Expr | None = None

    def __post_init__(self) -> None:
        if self.value.ufl_shape:
            raise ValueError(f"value must be scalar, not of the shape {self.value.ufl_shape}")

    @property
    def reads(self) -> list[Function]:
        return extract_coefficients(self.value)

    @property
    def writes(self) -> list[Function]:
        return []

    def jvp(self, tangents):
        return []

    def vjp(self, cotangents):
        return []


@dataclass(frozen=True, kw_only=True, eq=False)
class Copy(Operation):
    """Copies degrees of freedom of one Function to another one, or adds them.

    Parameters
    ----------
    source : Function, optional
        The Function to copy; None for zeros.
    target : Function
        A Function with as many degrees of freedom.
    rows : array of int, optional
        The flat degrees of freedom (of this rank, ghosts included) to copy; by default all.
    adds : bool, optional
        Whether the values are added.

    Raises
    ------
    ValueError
        If source and target are the same Function.
    """

    source: Function | None
    target: Function
    rows: np.ndarray | None = None
    adds: bool = False

    def __post_init__(self) -> None:
        if self.source is self.target:
            raise ValueError("target must be another Function than source")

    @property
    def reads(self) -> list[Function]:
        found = [] if self.source is None else [self.source]
        return [*found, self.target] if self.adds or self.rows is not None else found

    @property
    def writes(self) -> list[Function]:
        return [self.target]

    def jvp(self, tangents: Tangents) -> list[Operation]:
        if self.target not in tangents:
            return []
        return [self._like(tangents.get(self.source), tangents[self.target])]

    def vjp(self, cotangents: Cotangents) -> list[Operation]:
        if self.target not in cotangents:
            return []
        found: list[Operation] = [*zero_rest(self._timed(), self.target, cotangents)]
        bar = cotangents[self.target]
        if cotangents.is_active(self.source):
            own, adds = cotangents[self.source], self.rows is not None
            if self.source in cotangents:
                found += zero_rest(self._timed(), self.source, cotangents)
                adds = True
            elif adds:
                found.append(Copy(source=None, target=own, **self._timed()))
            cotangents.add([self.source])
            found.append(self._like(bar, own, adds))
        if not self.adds and self.rows is None:
            cotangents.drop([self.target])
        elif not self.adds:
            found.append(Copy(source=None, target=bar, rows=self.rows, **self._timed()))
        return found

    def _like(self, source: Function | None, target: Function, adds: bool | None = None) -> "Copy":
        adds = self.adds if adds is None else adds
        return Copy(source=source, target=target, rows=self.rows, adds=adds, **self._timed())


def zero_rest(timed: dict, f: Function, cotangents: Cotangents) -> list[Copy]:
    """The operations that set the zero parts of the cotangent of a mixed Function with other parts."""
    if f not in cotangents:
        return []
    zero = [part for part in parts(f) if part not in cotangents]
    return [Copy(source=None, target=cotangents[part], **timed) for part in zero]


@dataclass(frozen=True, kw_only=True, eq=False)
class Assemble(Operation):
    """Sets Functions to the derivatives of a functional by others, or adds these.

    The values that a target gets are degrees of freedom of a Cofunction: the derivatives by the
    degrees of freedom of the other Function.

    Parameters
    ----------
    work : Form or UFL expression
        The functional; an expression means its sum over the nodes that its Functions share.
    by : dict
        Functions in the functional, and for each the target, a Function of the same space. For a
        form that is linear in a test function its key is the test function.
    adds : collection of Functions, optional
        The targets to which the derivatives are added.
    dt, fraction, clock, at
        As for every operation: the symbols for its length and its time.

    Raises
    ------
    TypeError
        If ``work`` is no form or expression, or ``by`` is no dict of Functions.
    ValueError
        If ``work`` has several meshes, ``by`` is empty, a target has another space, or ``adds`` names
        others than targets.

    Notes
    -----
    All derivatives are computed before any target is written, so the functional may read targets.
    """

    work: Work
    by: Mapping[Function, Function]
    adds: Collection[Function] = frozenset()

    def __post_init__(self) -> None:
        instance("work", self.work, Form | Expr, "a form or a UFL expression")
        instance("by", self.by, Mapping, "a dict of Functions and their targets")
        if not self.by:
            raise ValueError("by is empty; give at least one Function and its target")
        self._name_arguments()
        check_domains("work", self.work)
        for f, target in self.by.items():
            instance("by", f, Function, "a dict whose keys are Functions")
            instance("by", target, Function, "a dict whose values are Functions")
            own, other = f.function_space(), target.function_space()
            if other.ufl_element() != own.ufl_element() or other.mesh() != own.mesh():
                raise ValueError(
                    f"by: the target for {f.name()!r} must be a Function of the same space"
                )
        if not set(self.adds) <= set(self.by.values()):
            raise ValueError("adds contains a Function that is no target; give only targets of by")

    def _name_arguments(self) -> None:
        """Put Functions in the place of test functions."""
        work, by = self.work, dict(self.by)
        for argument in [a for a in by if isinstance(a, Argument)]:
            test = Function(argument.function_space(), name="test")
            work, by[test] = rename(work, argument, test), by.pop(argument)
        object.__setattr__(self, "work", work)
        object.__setattr__(self, "by", by)

    @property
    def reads(self) -> list[Function]:
        return [*extract_coefficients(self.work), *self.adds]

    @property
    def writes(self) -> list[Function]:
        return list(self.by.values())

    def jvp(self, tangents: Tangents) -> list[Operation]:
        work = directional(self.work, {f: tangents[f] for f in self.reads if f in tangents})
        by = {f: tangents[t] for f, t in self.by.items() if t in tangents}
        adds = frozenset(tangents[t] for t in self.adds if t in tangents)
        return [Assemble(work=work, by=by, adds=adds, **self._timed())] if by else []

    def vjp(self, cotangents: Cotangents) -> list[Operation]:
        zeroes = [op for t in self.writes for op in zero_rest(self._timed(), t, cotangents)]
        along = {f: cotangents[t] for f, t in self.by.items() if t in cotangents}
        cotangents.drop([t for t in self.by.values() if t not in self.adds])
        if not along:
            return []
        return [*zeroes, *gradient(self._timed(), directional(self.work, along), cotangents)]


def directional(work: Work, along: Mapping[Function, Function]) -> Work:
    """The derivative of a functional along changes of Functions."""
    if isinstance(work, Form):
        return simplify(sum((derivative(work, f, d) for f, d in along.items()), Form([])))
    return sum((ufl.derivative(work, f, d) for f, d in along.items()), ufl.as_ufl(0.0))


def gradient(
    timed: dict, work: Work, cotangents: Cotangents, but: Collection[Function] = ()
) -> list[Operation]:
    """The operation that adds the derivatives of a functional to the cotangents of what it reads."""
    if isinstance(work, Form) and is_zero(work):
        return []
    by = [f for f in extract_coefficients(work) if cotangents.is_active(f) and f not in but]
    if not by:
        return []
    zeroes = [made for f in by for made in zero_rest(timed, f, cotangents)]
    for bar in [op.target for op in zeroes if op.target in extract_coefficients(work)]:
        # The operation has set a part of a mixed Function, which it also reads.
        own = Function(bar.function_space(), name=bar.name())
        zeroes.insert(0, Copy(source=bar, target=own, **timed))
        work = ufl.replace(work, {bar: own})
    adds = frozenset(cotangents[f] for f in by if f in cotangents)
    cotangents.add(by)
    targets = {f: cotangents[f] for f in by}
    return [*zeroes, Assemble(work=work, by=targets, adds=adds, **timed)]
