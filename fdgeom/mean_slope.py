"""The mean of a slope over a step, whose work is exactly the change of the function."""

from collections.abc import Callable, Sequence

import ufl
from firedrake import Constant
from numpy.polynomial import legendre
from ufl.algorithms import expand_derivatives
from ufl.classes import Expr, Zero

from fdgeom.forms import has_kink

#: Gauss points at the least: the last two Legendre coefficients are to tell about convergence.
LEAST_POINTS = 5
# Of the slope, where the rule may be a little off: the error is about the square of that.
_RESOLVED = 1e-8
# Of the function and its slope, what rounding may leave of the identity.
_ROUND_OFF = 1e-13
# Below the square of any change, so that no step is no quotient of zeros; compiled code multiplies
# several reciprocals of it, which must not overflow.
_TINY = 1e-60
_HIGHEST_DEGREE = 8


class MeanSlope:
    """de̅[w] of a function e(z) for a step from z⁰ to z¹, with de̅[z¹ - z⁰] = e(z¹) - e(z⁰):

        de̅[w] = Σ_k b_k de(z_k)[w] + κ Δz·w,      z_k = z⁰ + c_k (z¹ - z⁰),

    with the Gauss rule (b_k, c_k), exact for polynomials of twice its number of points, and for
    other functions Gonzalez's correction (J. Nonlinear Sci. 6, 1996)

        κ = ω r / Δz·Δz,      r = e(z¹) - e(z⁰) - Σ_k b_k de(z_k)[Δz].
    """

    # The factor ω is 1 where the slopes de(z_k)[Δz] are not resolved by the rule, as their last two
    # Legendre coefficients show, and where r itself is more than round-off, as with a kink between
    # two Gauss points. It falls to zero elsewhere: r is round-off there, which must not be divided
    # by a short step. Both parts are symmetric in time. `degree` is that of e as a polynomial, None
    # if it is none.
    def __init__(self, degree: int | None, points: int = LEAST_POINTS) -> None:
        self.exact = degree is not None
        count = max(points, LEAST_POINTS) if degree is None else max(1, -(-degree // 2))
        nodes, weights = legendre.leggauss(count)
        basis = legendre.legvander(nodes, count - 1)
        self.nodes, self._weights = (0.5 + 0.5 * nodes).tolist(), (0.5 * weights).tolist()
        self._defects = (0.5 * (weights[:, None] * basis[:, -2:]).T).tolist()

    def mean(self, slopes: Sequence[Expr]) -> Expr:
        """Σ_k b_k s_k."""
        return _combination(self._weights, slopes)

    def correction(
        self, old: Expr, new: Expr, slopes: Sequence[Expr], size: Expr, reached: Expr
    ) -> Expr:
        """κ, from e(z⁰), e(z¹), the de(z_k)[Δz], Δz·Δz and z¹·z¹."""
        rest, size = new - old - self.mean(slopes), size + _TINY
        defects = [_combination(row, slopes) for row in self._defects]
        # Products, not powers: those are slow in compiled code.
        unresolved = sum(_RESOLVED**-2 * d * d for d in defects)
        squares = self.mean([s * s for s in slopes]) + _TINY
        # Rounding z changes e by its slope, (de(z_k)[Δz]/|Δz|) |z|, beside the rounding of e itself.
        scale = old * old + new * new + squares * (1 + reached / size)
        left = _ROUND_OFF**-2 * rest * rest / scale
        ratio = unresolved / squares + ufl.max_value(left - 1, 0)
        weight = ratio * ratio / (1 + ratio * ratio)
        return weight * rest / size


def _combination(factors: Sequence[float], values: Sequence[Expr]) -> Expr:
    terms = [c * v for c, v in zip(factors, values, strict=True) if c]
    return sum(terms[1:], terms[0])


def mean_slope_of(function: Callable[..., Expr], *sizes: int) -> MeanSlope:
    """The rule for a function of vectors: exact for polynomials of all their components."""
    s = ufl.variable(Constant(0.0))
    lines = [ufl.as_vector([Constant(0.0) + s * Constant(0.0) for _ in range(n)]) for n in sizes]
    found = expand_derivatives(function(*lines))
    if has_kink(found, s):
        return MeanSlope(None)
    for degree in range(_HIGHEST_DEGREE + 1):
        found = expand_derivatives(ufl.diff(found, s))
        if isinstance(found, Zero):
            return MeanSlope(degree)
    return MeanSlope(None)
