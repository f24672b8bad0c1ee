"""Interpolants of expressions, inverse matrices at nodes, numbers of a Real space as fields, and data
of users sampled at nodes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from firedrake import (
    Cofunction,
    Function,
    SpatialCoordinate,
    TestFunction,
    assemble,
    get_interpolator,
    interpolate,
)
from mpi4py import MPI
from ufl import BaseForm, derivative
from ufl.algorithms import expand_derivatives, extract_coefficients, extract_type, replace
from ufl.classes import Zero
from ufl.core.expr import Expr
from ufl.corealg.map_dag import map_expr_dag
from ufl.corealg.multifunction import MultiFunction
from ufl.domain import extract_domains

from fdgeom.compat import interpolates_into
from fdgeom.forms import is_real, shaped_space
from fdgeom.operations.dependent import Dependent, dependent_of
from fdgeom.operations.explicit import Copy
from fdgeom.operations.operation import ArrayOperation, Operation, Tangents, owned_values
from fdgeom.taping import refuse_annotation
from fdgeom.validation import everywhere

# Of the way to the middle of a cell.
_INSIDE = 1e-6


class Interpolation:
    """Interpolates one expression repeatedly into ``values``."""

    def __init__(self, expression: Expr, space) -> None:
        self.values = Function(space)
        self._update = interpolates_into(
            get_interpolator(interpolate(expression, space)), self.values
        )

    def apply(self) -> Function:
        """Interpolate the present values."""
        self._update()
        return self.values


@dataclass(frozen=True, kw_only=True, eq=False)
class Interpolate(ArrayOperation):
    """Sets a Function to the interpolant of an expression, or adds this.

    Parameters
    ----------
    expression : UFL expression
        The expression, of the shape of the target.
    target : Function
        A Function whose degrees of freedom are values at nodes, not mixed.
    rows : array of bool, optional
        The nodes of this rank at which the interpolant counts; at others it is zero.
    adds : bool, optional
        Whether the values are added.
    """

    expression: Expr
    target: Function
    rows: np.ndarray | None = None
    adds: bool = False

    @property
    def reads(self) -> list[Function]:
        return [*extract_coefficients(self.expression), *([self.target] if self.adds else [])]

    @property
    def writes(self) -> list[Function]:
        return [self.target]

    @cached_property
    def _interpolation(self) -> Interpolation:
        return Interpolation(self.expression, self.target.function_space())

    def run(self) -> None:
        values = _masked(self._interpolation.apply().dat.data_ro, self.rows)
        self.target.dat.data_wo[...] = values + (self.target.dat.data_ro if self.adds else 0.0)

    def jvp(self, tangents: Tangents) -> list[Operation]:
        if self.target not in tangents:
            return []
        sources = [f for f in extract_coefficients(self.expression) if f in tangents]
        slopes = (derivative(self.expression, f, tangents[f]) for f in sources)
        slope = expand_derivatives(sum(slopes, Zero(self.expression.ufl_shape)))
        target = tangents[self.target]
        if isinstance(slope, Zero):
            return [] if self.adds else [Copy(source=None, target=target)]
        own = {"rows": self.rows, "adds": self.adds, **self._timed()}
        return [Interpolate(expression=slope, target=target, **own)]

    def cotangents(self, bars):
        self._weights.dat.data_wo[...] = _masked(bars[0], self.rows)
        found = [partial(self._pulled, f) for f in extract_coefficients(self.expression)]
        return [*found, bars[0]] if self.adds else found

    @cached_property
    def _weights(self) -> Cofunction:
        return Cofunction(self.target.function_space().dual())

    @cached_property
    def _adjoints(self) -> dict[Function, BaseForm | None]:
        return {}

    def _pulled(self, f: Function) -> Cofunction | None:
        """The cotangent of a Function from the weights of the nodes; None is zero."""
        if f not in self._adjoints:
            slope = derivative(self.expression, f, TestFunction(f.function_space()))
            slope = expand_derivatives(slope)
            zero = isinstance(slope, Zero)
            self._adjoints[f] = None if zero else interpolate(slope, self._weights)
        made = self._adjoints[f]
        return None if made is None else assemble(made)


def _masked(values: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    """The values at some nodes, zero at others."""
    if rows is None:
        return values
    found = np.zeros_like(values)
    found[rows] = values[rows]
    return found


class Inverse(ArrayOperation):
    """Sets a Function to the inverse matrices of another one at its nodes."""

    # With X = A⁻¹: dX = -X dA X. An X that is the inverse of a block of A, and zero else, has the same
    # derivative.
    def __init__(self, matrices: Function, target: Function) -> None:
        super().__init__([matrices], [target])
        self._matrices, self._target = matrices, target

    def run(self) -> None:
        self._target.dat.data_wo[...] = np.linalg.inv(self._matrices.dat.data_ro)

    def tangents(self, dots):
        (dot,), x = dots, self._target.dat.data_ro
        return [np.zeros_like(x) if dot is None else -x @ dot.dat.data_ro @ x]

    def cotangents(self, bars):
        (bar,), x = bars, np.swapaxes(self._target.dat.data_ro, -1, -2)
        return [-x @ bar @ x]

    def cotangent_rates(self, bars, dots):
        (bar,), x = bars, np.swapaxes(self._target.dat.data_ro, -1, -2)
        dx = np.swapaxes(self.tangents(dots)[0], -1, -2)
        return [-dx @ bar @ x - x @ bar @ dx]


class Broadcast(ArrayOperation):
    """Sets a Function, on any mesh, to a number of a Real space everywhere."""

    def __init__(self, number: Function, target: Function) -> None:
        super().__init__([number], [target])
        self._number, self._target = number, target

    def run(self) -> None:
        self._target.dat.data_wo[...] = self._shaped(self._number.dat.data_ro)

    def tangents(self, dots):
        values = np.zeros(self._target.dat.data_ro.shape)
        values[...] = self._shaped(*owned_values(dots))
        return [values]

    def cotangents(self, bars):
        (bar,) = bars
        if not is_real(self._target):
            comm = self._target.function_space().comm
            bar = comm.allreduce(np.sum(bar, axis=0), op=MPI.SUM)
        return [np.reshape(bar, self._number.dat.data_ro.shape)]

    def _shaped(self, values) -> np.ndarray | float:
        """The number in the shape of one node, or of the other number."""
        if np.ndim(values) == 0:
            return values
        shape = self._target.dat.data_ro.shape
        return np.reshape(values, shape if is_real(self._target) else shape[1:])


def sampled(
    name: str,
    expression: Expr,
    space,
    *,
    inverse: bool = False,
    check: Callable[[np.ndarray], None] | None = None,
    private: bool = False,
) -> Function:
    """A dependent function: an expression, or its inverse matrices (``inverse``), at the nodes."""
    # check(values) sees the values of this rank and raises ValueError; `everywhere` raises it on all
    # ranks, here and at every refresh.
    if any(dependent_of(f) is None for f in extract_coefficients(expression)):
        refuse_annotation(f"{name}, sampled from a Function,")
    field, found = Function(space, name=name), Interpolation(expression, space)

    def make() -> None:
        values = found.apply().dat.data_ro
        if check is not None:
            everywhere(space.comm, lambda: check(values))
        field.dat.data_wo[...] = np.linalg.inv(values) if inverse else values

    made = Dependent([field], [expression], make, private=private)
    made.expression = expression
    if inverse:
        made.operations = inverse_of(expression, field)
    else:
        made.operations = [Interpolate(expression=expression, target=field, adds=not private)]
    return field


def inverse_of(expression: Expr, field: Function) -> list[Operation]:
    """The operations that set a field to the inverse matrices of an expression."""
    matrices = Function(field.function_space())
    return [Interpolate(expression=expression, target=matrices), Inverse(matrices, field)]


class ConditionsInside(MultiFunction):
    """Evaluates conditions on the place a little inside of the cell: at its ends either side may hold.

    Those of equality stay, which hold at single places.
    """

    expr = eq = ne = MultiFunction.reuse_if_untouched
    and_condition = or_condition = not_condition = MultiFunction.reuse_if_untouched

    def __init__(self) -> None:
        super().__init__()
        self._middles: dict[Expr, Function] = {}

    def of(self, value: Expr) -> Expr:
        """An expression with such conditions."""
        return map_expr_dag(self, value)

    def _middle(self, x: Expr) -> Function:
        if x not in self._middles:
            (mesh,) = extract_domains(x)
            space = shaped_space(x.ufl_shape, mesh, "DG", 0)
            self._middles[x] = sampled("middle", x, space, private=True)
        return self._middles[x]

    def moved(self, condition: Expr) -> list:
        """The terminals of a condition that have other values inside."""
        return list(extract_type(condition, SpatialCoordinate))

    def condition(self, o, *operands):
        return replace(o, {x: x + _INSIDE * (self._middle(x) - x) for x in self.moved(o)})
