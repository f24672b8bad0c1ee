"""Conditions on values, which fail a step."""

from dataclasses import dataclass

from firedrake import Function
from ufl.algorithms import extract_coefficients
from ufl.core.expr import Expr

from fdgeom.operations.operation import Operation


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
