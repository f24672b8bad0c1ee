"""Bars of one isotropic material: matrices and properties from their dimensions.

Torsion constants and energy shear factors are exact: Saint-Venant's problem has closed solutions
for rectangles (series) and rings (polynomials). Lengths and Poisson's ratio may be numbers or UFL
expressions.
"""

import math

import numpy as np
import ufl
from ufl.core.expr import Expr

Number = float | Expr

#: Σ 1/n⁵ over odd n: 31 ζ(5)/32.
_ODD_FIFTH = 31 * 1.0369277551433699263 / 32


def rectangle_torsion_constant(width, height):
    """J = a b³/3 (1 - 192 b/(π⁵a) Σ tanh(nπa/2b)/n⁵), odd n, a ≥ b (Saint-Venant 1855)."""
    if any(isinstance(side, Expr) for side in (width, height)):
        a, b = ufl.max_value(width, height), ufl.min_value(width, height)
    else:
        a, b = max(width, height), min(width, height)
    ratio = a / b
    # 1 - tanh falls off as exp(-nπa/b), so that five terms are exact to round-off. This exponential,
    # unlike its inverse, does not overflow.
    decay = [_exp(-n * math.pi * ratio) for n in (1, 3, 5, 7, 9)]
    missing = sum(2 * e / (1 + e) / (2 * k + 1) ** 5 for k, e in enumerate(decay))
    return a * b**3 / 3 * (1 - 192 / (math.pi**5 * ratio) * (_ODD_FIFTH - missing))


def rectangle_shear_factor(depth, breadth, poisson_ratio):
    """Energy shear factor k of a rectangle under a force along its ``depth``, with r = breadth/(2
    depth):

        1/k = 6/5 + (ν/(1+ν))² (2304/π⁶) (π⁶r²/576 + π⁶/1920 - (πr/2) Σ coth(nπr)/n⁵) over odd n.
    """
    # The energy of Saint-Venant's flexure function (J. D. Renton, Generalized beam theory applied
    # to shear stiffness, Int. J. Solids Struct. 27, 1991), his double series summed over one index.
    # coth is 1 but for terms that fall off as exp(-2πrn).
    r = breadth / depth / 2
    is_number = not isinstance(r, Expr)
    # The truncation error of the sum is below 1e-8 of 1/k with eight terms, for any r.
    terms = 400 if is_number else 8
    odd = range(1, 2 * terms, 2)
    decay = (-2 * math.pi * n * r for n in odd)
    coth = sum(-2 * _exp(x) / _expm1(x) / n**5 for n, x in zip(odd, decay, strict=True))
    pi = math.pi
    series = pi**6 / 576 * r**2 + pi**6 / 1920 - pi * r / 2 * (_ODD_FIFTH + coth)
    nu = poisson_ratio / (1 + poisson_ratio)
    return 1 / (6 / 5 + nu**2 * 16 * 144 / pi**6 * series)


def ring_shear_factor(outer_radius, inner_radius, poisson_ratio):
    """Energy shear factor k of a circular ring, or of a circle if ``inner_radius`` is 0."""
    # Saint-Venant's flexure of a ring: τ_r = (A - B/r² - c r²) cos θ, τ_θ = -(A + B/r² - d r²) sin
    # θ times F/I, c = (3+2ν)/8(1+ν), d = (1-2ν)/8(1+ν), B = c a²b², A = c (a² + b²) so that the
    # stress at the radii a, b is tangential. 1/k is its energy, area/I² ∫ τ². For the circle k =
    # 6(1+ν)²/(7+14ν+8ν²).
    nu, m = poisson_ratio, (inner_radius / outer_radius) ** 2
    c, d = (3 + 2 * nu) / (8 * (1 + nu)), (1 - 2 * nu) / (8 * (1 + nu))
    # With a = 1, b² = m; each integral is divided by the area (1 - m).
    energy = (
        c**2 * (1 + m) ** 2
        + c**2 * m
        + (c**2 + d**2) * (1 + m + m**2) / 6
        - c * (c + d) * (1 + m) ** 2 / 2
        + c * (c - d) * m
    )
    return (1 + m) ** 2 / (16 * energy)


def _exp(x):
    return ufl.exp(x) if isinstance(x, Expr) else math.exp(x)


def _expm1(x):
    return ufl.exp(x) - 1 if isinstance(x, Expr) else math.expm1(x)


def described(name: str, *sizes: Number) -> str:
    """A shape and its sizes, if they are numbers, in a few words."""
    if any(isinstance(size, Expr) for size in sizes):
        return f"{name.split()[0]} of varying size"
    return f"{name} {' × '.join(f'{size:.4g}' for size in sizes)}"


def diagonal(entries: list) -> np.ndarray | Expr:
    """The 6×6 with these entries, in UFL if one of them is."""
    if any(isinstance(e, Expr) for e in entries):
        return ufl.as_matrix([[entries[i] if i == j else 0 for j in range(6)] for i in range(6)])
    return np.diag(np.array(entries, dtype=float))
