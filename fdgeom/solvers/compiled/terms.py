"""Decomposition of forms into terms, and of terms into number, geometry and rest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import ufl
from firedrake import Function
from ufl.algorithms import extract_coefficients, extract_type
from ufl.classes import (
    Division,
    Expr,
    Form,
    GeometricQuantity,
    Grad,
    Integral,
    Product,
    ReferenceGrad,
    ScalarValue,
    SpatialCoordinate,
    Sum,
)
from ufl.corealg.traversal import unique_pre_traversal

# A product that would expand into more terms stays one term.
_MANY = 256
# Longer sums are built in parts.
_LONG = 64


@dataclass(frozen=True)
class Term:
    """One term of a form: ∫ number · geometry · rest over the measure of an integral."""

    integral: Integral
    number: float
    #: The product of the factors that are geometric quantities, except the coordinate.
    geometry: Expr
    rest: Expr

    @property
    def integrand(self) -> Expr:
        return self.number * self.geometry * self.rest

    def form(self) -> Form:
        """The term as a form of its own."""
        return Form([self.integral.reconstruct(integrand=self.integrand)])

    def contains(self, function: Function) -> bool:
        return function in extract_coefficients(self.rest)

    def has_derivatives(self) -> bool:
        return any(isinstance(e, (Grad, ReferenceGrad)) for e in unique_pre_traversal(self.rest))

    def is_geometric(self) -> bool:
        """Whether the rest still contains geometric quantities other than the coordinate."""
        found = extract_type(self.rest, GeometricQuantity)
        return any(not isinstance(e, SpatialCoordinate) for e in found)

    def __str__(self) -> str:
        kind = self.integral.integral_type()
        where = {"cell": "the cells", "exterior_facet": "the boundary", "interior_facet": "facets"}
        names = sorted({f.name() for f in extract_coefficients(self.rest)}) or ["the test function"]
        slope = ", with derivatives in space" if self.has_derivatives() else ""
        return f"the integral over {where.get(kind, kind)} of {', '.join(names)}{slope}"


def terms_of(form: Form) -> list[Term]:
    """All terms of a form whose derivatives have been applied."""
    return [
        Term(integral, *_weighed(list(factors)))
        for integral in form.integrals()
        for factors in _summands(integral.integrand())
    ]


def _summands(e: Expr) -> Iterator[tuple[Expr, ...]]:
    """The summands of an integrand, each as its factors; products of sums are expanded."""
    if isinstance(e, Sum):
        for operand in e.ufl_operands:
            yield from _summands(operand)
    elif isinstance(e, Product):
        a, b = e.ufl_operands
        left, right = list(_summands(a)), list(_summands(b))
        if len(left) * len(right) > _MANY:
            yield tuple(_factors(e))
            return
        for one in left:
            for other in right:
                yield one + other
    elif isinstance(e, Division):
        a, b = e.ufl_operands
        for left in _summands(a):
            yield (*left, 1 / b)
    else:
        yield (e,)


def _factors(e: Expr) -> Iterator[Expr]:
    """The factors of a product, without expansion."""
    if isinstance(e, Product):
        for operand in e.ufl_operands:
            yield from _factors(operand)
    elif isinstance(e, Division):
        a, b = e.ufl_operands
        yield from _factors(a)
        yield 1 / b
    else:
        yield e


def total(expressions: Sequence[Expr]) -> Expr:
    """The sum of expressions, in parts if it is long: deep expressions exceed Python's recursion limit."""
    items = list(expressions)
    while len(items) > _LONG:
        items = [sum(items[k : k + _LONG]) for k in range(0, len(items), _LONG)]
    return sum(items)


def _weighed(factors: list[Expr]) -> tuple[float, Expr, Expr]:
    number, geometry, rest = 1.0, ufl.as_ufl(1.0), None
    for factor in factors:
        if isinstance(factor, ScalarValue):
            number *= float(factor)
        elif _is_geometry(factor):
            geometry = geometry * factor
        else:
            rest = factor if rest is None else rest * factor
    return number, geometry, ufl.as_ufl(1.0) if rest is None else rest


def _is_geometry(e: Expr) -> bool:
    """Whether an expression contains only numbers and geometric quantities other than the coordinate."""
    terminals = [x for x in unique_pre_traversal(e) if not x.ufl_operands]
    return all(isinstance(x, (ScalarValue, GeometricQuantity)) for x in terminals) and not any(
        isinstance(x, SpatialCoordinate) for x in terminals
    )
