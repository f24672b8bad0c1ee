"""Tests of SymPy expressions for zero, and expressions in their shortest form."""

import random
from collections.abc import Sequence

import sympy as sp

_SAMPLES, _DIGITS = 6, 50


def is_zero(expression) -> bool:
    """Whether an expression vanishes: by values at random points, then by simplification."""
    expression = sp.sympify(expression)
    if expression.is_zero:
        return True
    return _vanishes_at_random_points(expression) and (
        sp.simplify(expression) == 0 or _vanishes_at_random_points(expression, seed=1)
    )


def _vanishes_at_random_points(expression: sp.Expr, seed: int = 0) -> bool:
    draw = random.Random(seed)
    symbols = sorted(expression.free_symbols, key=str)
    terms = sp.Add.make_args(sp.expand(expression))
    for _ in range(_SAMPLES):
        point = {s: sp.Float(str(draw.uniform(0.2, 1.4)), _DIGITS) for s in symbols}
        values = [sp.N(term.xreplace(point), _DIGITS) for term in terms]
        size = sum(abs(v) for v in values)
        if not abs(sum(values)) <= 1e-30 * size:
            return False
    return True


def shortest(expression, variables: Sequence[sp.Symbol] = ()) -> sp.Expr:
    """An expression simplified; if a polynomial of ``variables``, coefficient by coefficient."""
    expression = sp.expand(sp.sympify(expression))
    try:
        polynomial = sp.Poly(expression, *variables) if variables else None
    except sp.PolynomialError:
        polynomial = None
    if polynomial is None or any(set(variables) & c.free_symbols for c in polynomial.coeffs()):
        return sp.simplify(expression)
    return sp.Add(
        *(
            sp.simplify(coefficient)
            * sp.Mul(*(v**n for v, n in zip(variables, powers, strict=True)))
            for powers, coefficient in polynomial.terms()
        )
    )
