"""Coordinates with their velocities and accelerations as plain symbols, and expressions of them."""

import random
from collections.abc import Mapping, Sequence

import sympy as sp
from sympy.core.function import AppliedUndef

from fdgeom.messages import format_value

_SAMPLES, _DIGITS = 6, 50
#: Functions that may vanish for some values and not for others; they are sampled more often.
_PIECEWISE = sp.Abs, sp.sign, sp.Max, sp.Min, sp.Heaviside, sp.floor, sp.ceiling, sp.Piecewise
_SAMPLES_PIECEWISE = 32


class Jets:
    """Symbols for q, q̇, q̈, q⃛ of coordinates q(t), and expressions written with them instead of
    the user's functions of time.
    """

    def __init__(self, coordinates: Sequence) -> None:
        self.coordinates = tuple(check_coordinate("coordinates", c) for c in coordinates)
        if not self.coordinates:
            raise ValueError("coordinates must not be empty")
        times = {c.args[0] for c in self.coordinates}
        if len(times) > 1:
            raise ValueError(f"coordinates must be functions of one time, not of {times}")
        (self.t,) = times
        #: Names of the coordinates.
        self.names = tuple(c.func.__name__ for c in self.coordinates)
        if len(set(self.names)) < len(self.names):
            raise ValueError("coordinates must have different names")
        # Not zero: integrals over a ray then need no case for its direction.
        self.q, self.v, self.a, self.j = (
            tuple(sp.Symbol(f"{name}{dots}", real=True, nonzero=True) for name in self.names)
            for dots in ("", "'", "''", "'''")
        )

    def plain(self, name: str, expression, others: Mapping | None = None) -> sp.Expr:
        """An expression in functions of time, in symbols instead."""
        if isinstance(expression, str):  # SymPy would make symbols of it that are no coordinates
            raise TypeError(f"{name} must be a SymPy expression, not the string {expression!r}")
        try:
            expression = sp.sympify(expression).doit()
        except (sp.SympifyError, AttributeError) as error:
            raise TypeError(
                f"{name} must be a SymPy expression, not {format_value(expression)}"
            ) from error
        if not isinstance(expression, sp.Expr) or expression.is_Matrix:
            raise TypeError(
                f"{name} must be a scalar SymPy expression, not {format_value(expression)}"
            )
        if taken := expression.free_symbols.intersection(self._symbols().values()):
            parameter = min(map(str, taken))
            raise ValueError(
                f"{name}: the parameter {parameter} has the name of a coordinate; rename it"
            )
        result = expression.xreplace({**(others or {}), **self._symbols()})
        left = result.atoms(AppliedUndef) | result.atoms(sp.Derivative)
        if left:
            unknown = ", ".join(sorted(map(str, left)))
            raise ValueError(f"{name} must not contain {unknown}")
        return result

    def of_velocities(self, name: str, expression, others: Mapping | None = None) -> sp.Expr:
        """As :meth:`plain`, of an expression without accelerations."""
        plain = self.plain(name, expression, others)
        if plain.has(*self.a, *self.j):
            raise ValueError(f"{name} must not contain accelerations")
        return plain

    def dynamic(self, expression: sp.Expr) -> sp.Expr:
        """An expression in symbols, in functions of time instead."""
        return expression.xreplace({s: f for f, s in self._symbols().items()})

    def _symbols(self) -> dict[sp.Expr, sp.Symbol]:
        """The symbols for the coordinates and their derivatives."""
        found = {}
        for q, *jet in zip(self.coordinates, self.q, self.v, self.a, self.j, strict=True):
            found |= {(q.diff(self.t, n) if n else q): s for n, s in enumerate(jet)}
        return found

    def total_derivative(self, expression: sp.Expr) -> sp.Expr:
        """d/dt along a motion."""
        result = sp.diff(expression, self.t)
        for low, high in ((self.q, self.v), (self.v, self.a), (self.a, self.j)):
            for x, slope in zip(low, high, strict=True):
                result += sp.diff(expression, x) * slope
        return result

    def euler(self, expression: sp.Expr, k: int) -> sp.Expr:
        """Euler's operator E_k = d/dt ∂/∂q̇_k - ∂/∂q_k."""
        momentum = sp.diff(expression, self.v[k])
        return self.total_derivative(momentum) - sp.diff(expression, self.q[k])


def check_coordinate(name: str, coordinate):
    """Return a function of time; raise ``TypeError`` for anything else."""
    if not (isinstance(coordinate, AppliedUndef) and len(coordinate.args) == 1):
        raise TypeError(
            f"{name} must be functions of time, such as sympy.physics.mechanics.dynamicsymbols "
            f"gives, not {format_value(coordinate)}"
        )
    return coordinate


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
    points = [{s: draw.uniform(0.2, 1.4) for s in symbols} for _ in range(_SAMPLES)]
    if expression.has(*_PIECEWISE):
        # Both signs and many sizes, for kinks up to 1000.
        barred = {s: (s.is_nonpositive and 1, s.is_nonnegative and -1) for s in symbols}
        signs = {s: [k for k in (-1, 1) if k not in barred[s]] for s in symbols}
        points += [
            {s: draw.choice(signs[s]) * 10 ** draw.uniform(-1, 3) for s in symbols}
            for _ in range(_SAMPLES_PIECEWISE)
        ]
    for drawn in points:
        point = {s: sp.Float(str(x), _DIGITS) for s, x in drawn.items()}
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
