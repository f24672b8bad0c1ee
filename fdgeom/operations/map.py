"""Assignments of expressions at nodes, and conditions on values there, which fail a step."""

from collections.abc import Mapping
from dataclasses import dataclass

import ufl
from firedrake import Function
from ufl.algorithms import expand_derivatives, extract_coefficients
from ufl.classes import Zero
from ufl.core.expr import Expr

from fdgeom.operations.assemble import gradient
from fdgeom.operations.copy import zero_rest
from fdgeom.operations.operation import Cotangents, Operation, Tangents
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

    @property
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
