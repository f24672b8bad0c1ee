"""SymPy expressions as UFL."""

import operator
from collections.abc import Mapping, Sequence
from functools import reduce

import sympy as sp
import ufl
from firedrake import Constant
from ufl.core.expr import Expr

from fdgeom.messages import format_value
from fdgeom.taping import refuse_recorded

_SAME = "sin cos tan asin acos atan atan2 sinh cosh tanh exp erf sign"
_FUNCTIONS = {getattr(sp, name): getattr(ufl, name) for name in _SAME.split()} | {
    sp.log: ufl.ln,
    sp.Abs: abs,
    sp.Max: ufl.max_value,
    sp.Min: ufl.min_value,
    sp.cot: lambda x: ufl.cos(x) / ufl.sin(x),
    sp.sec: lambda x: 1 / ufl.cos(x),
    sp.csc: lambda x: 1 / ufl.sin(x),
}


def as_ufl(expression: sp.Expr, values: Mapping[sp.Symbol | str, Expr]) -> Expr:
    """A SymPy expression as UFL."""
    expression = sp.sympify(expression)
    made: dict[sp.Basic, Expr] = {}
    missing = []
    for symbol in sorted(expression.free_symbols, key=str):
        key = symbol if symbol in values else symbol.name
        if key in values:
            made[symbol] = ufl.as_ufl(values[key])
        else:
            missing.append(symbol.name)
    if missing:
        raise ValueError(f"no value was given for {', '.join(missing)}")
    for part in sp.postorder_traversal(expression):
        if part not in made:
            made[part] = _translate(part, [made[a] for a in part.args])
    return made[expression]


def components_of(groups: Mapping[str, tuple[Sequence[sp.Symbol], Expr]]) -> dict[sp.Symbol, Expr]:
    """Components of vectors (or scalars, for one symbol), by symbol; the keys name the vectors."""
    values = {}
    for name, (symbols, field) in groups.items():
        if not isinstance(field, Expr):
            raise TypeError(f"{name} must be a UFL expression, not {type(field).__name__}")
        n, shape = len(symbols), field.ufl_shape
        if shape != (n,) and not (n == 1 and shape == ()):
            raise ValueError(f"{name} must be a vector of {n}, not of shape {shape}")
        values |= dict(zip(symbols, tuple(field) if shape else (field,), strict=True))
    return values


def constants_of(given: Mapping[str, object], known: Sequence[str]) -> dict[str, Expr]:
    """Values for parameters, numbers as Constants: each that is known must be given, no other."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        names = ", ".join(known) or "none"
        raise ValueError(f"{unknown[0]} is no parameter of this system; it has {names}")
    missing = sorted(set(known) - set(given))
    if missing:
        raise ValueError(f"a value is needed for the parameter {missing[0]}: {missing[0]}=...")
    values = {}
    for name, value in given.items():
        if not isinstance(value, Expr):
            refuse_recorded(name, value)
        try:
            values[name] = value if isinstance(value, Expr) else Constant(float(value), name=name)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be a number or UFL, not {format_value(value)}") from None
    return values


def _translate(part: sp.Basic, operands: list[Expr]) -> Expr:
    if part.is_number and not part.has(sp.I, sp.zoo, sp.nan, sp.oo, -sp.oo):
        return ufl.as_ufl(int(part) if part.is_Integer else float(part))
    if isinstance(part, sp.Add):
        return sum(operands[1:], operands[0])
    if isinstance(part, sp.Mul):
        return reduce(operator.mul, operands)
    if isinstance(part, sp.Pow):
        return _power(part, operands)
    function = _FUNCTIONS.get(part.func)
    if function is None:
        raise ValueError(f"there is no UFL for {part.func.__name__} in {part}")
    # Max and Min may be of many.
    return function(*operands) if len(operands) == 1 else reduce(function, operands)


def _power(part: sp.Pow, operands: list[Expr]) -> Expr:
    base, exponent = operands
    power = part.exp
    if part.base is sp.E:
        return ufl.exp(exponent)
    if power == sp.Rational(1, 2):
        return ufl.sqrt(base)
    if power.is_negative and power.is_number:
        return 1 / _power(
            sp.Pow(part.base, -power, evaluate=False), [base, ufl.as_ufl(float(-power))]
        )
    if power == 1:
        return base
    if power.is_Integer:
        return base ** int(power)
    return base**exponent
