"""The scalar functions of s = |w|^2 in the exponential maps, for UFL and for NumPy alike.

Each is analytic in s, but its formula in sines and cosines is 0/0 at s = 0 and loses digits
nearby: all of them in the value, many more in the derivatives that UFL takes of it. So a Taylor
polynomial in s serves below `SWITCH`, the formula above it. Where they meet, at an angle of 2
radians, the polynomials agree with their functions up to the third derivative to 1e-15, and the
formulas, differentiated three times, are still good to 1e-12.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial, pi
from typing import Any

from scipy.special import zeta

SWITCH = 4.0
TERMS = 15

SINE = [(-1) ** k / factorial(2 * k + 1) for k in range(TERMS)]
COSINE = [(-1) ** k / factorial(2 * k + 2) for k in range(TERMS)]
CUBIC = [(-1) ** k / factorial(2 * k + 3) for k in range(TERMS)]
# The cotangent has poles at s = (2 pi m)^2, m = 1, 2, ...: with the first one taken out, the rest
# converges like (s / 16 pi^2)^k. zeta(2n, 2) is the sum of 1/m^(2n) over m >= 2.
POLE = 4 * pi**2
COTANGENT = [2 * float(zeta(2 * k + 2, 2)) / POLE ** (k + 1) for k in range(TERMS)]
# atan(sqrt(x)) / sqrt(x); the logarithm needs it up to x = tan(pi/16)^2 = 0.04 for an angle pi,
# and 0.17 for an angle near 2 pi, where the first term left out is 1e-17.
ARCTANGENT = [(-1) ** k / (2 * k + 1) for k in range(20)]


def polynomial(coefficients: Sequence[float], s: Any) -> Any:
    """Sum of coefficients[k] s^k, by Horner's rule."""
    value = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = coefficient + s * value
    return value


def slope(coefficients: Sequence[float]) -> list[float]:
    """Coefficients of the derivative of a polynomial."""
    return [k * coefficient for k, coefficient in enumerate(coefficients)][1:]


@dataclass(frozen=True)
class RotationCoefficients:
    """The coefficient functions in one arithmetic; with s = θ², ŵ = hat(w) and |w| = θ,

    exp(w)          = I + sine ŵ + cosine ŵ²,
    dexp(w)         = I - cosine ŵ + cubic ŵ²,
    dexp_inverse(w) = I + ŵ/2 + cotangent ŵ².
    """

    sqrt: Callable[[Any], Any]
    sin: Callable[[Any], Any]
    cos: Callable[[Any], Any]
    below: Callable[[Any, float], Any]  # (s, bound): the condition s < bound
    where: Callable[[Any, Any, Any], Any]  # (condition, a, b)

    def _switch(self, s: Any, near: Callable[[Any], Any], far: Callable[[Any], Any]) -> Any:
        # The branch not taken gets a harmless argument: NumPy computes both, and a derivative or a
        # compiler that writes the choice as a sum would multiply an infinite one by zero.
        small = self.below(s, SWITCH)
        return self.where(small, near(self.where(small, s, 0.0)), far(self.where(small, SWITCH, s)))

    def _far_sine(self, s: Any) -> Any:
        angle = self.sqrt(s)
        return self.sin(angle) / angle

    def _far_cosine(self, s: Any) -> Any:
        return (1 - self.cos(self.sqrt(s))) / s

    def _far_cubic(self, s: Any) -> Any:
        return (1 - self._far_sine(s)) / s

    def _far_cotangent(self, s: Any) -> Any:
        half = self.sqrt(s) / 2
        return (1 - half * self.cos(half) / self.sin(half)) / s

    def sine(self, s: Any) -> Any:
        """sin θ / θ."""
        return self._switch(s, lambda s: polynomial(SINE, s), self._far_sine)

    def cosine(self, s: Any) -> Any:
        """(1 - cos θ) / θ²."""
        return self._switch(s, lambda s: polynomial(COSINE, s), self._far_cosine)

    def cubic(self, s: Any) -> Any:
        """(θ - sin θ) / θ³."""
        return self._switch(s, lambda s: polynomial(CUBIC, s), self._far_cubic)

    def cotangent(self, s: Any) -> Any:
        """(1 - (θ/2) cot(θ/2)) / θ²; infinite at θ = 2 pi."""
        return self._switch(
            s, lambda s: 2 / (POLE - s) + polynomial(COTANGENT, s), self._far_cotangent
        )

    def cosine_slope(self, s: Any) -> Any:
        """Derivative of `cosine` with respect to s."""
        return self._switch(
            s,
            lambda s: polynomial(slope(COSINE), s),
            lambda s: (self._far_sine(s) - 2 * self._far_cosine(s)) / (2 * s),
        )

    def cubic_slope(self, s: Any) -> Any:
        """Derivative of `cubic` with respect to s."""
        return self._switch(
            s,
            lambda s: polynomial(slope(CUBIC), s),
            lambda s: (self._far_cosine(s) - 3 * self._far_cubic(s)) / (2 * s),
        )

    def cotangent_slope(self, s: Any) -> Any:
        """Derivative of `cotangent` with respect to s; infinite at θ = 2 pi."""

        def far(s: Any) -> Any:
            value = self._far_cotangent(s)
            return (1 + 4 * s * value * value - 12 * value) / (8 * s)

        return self._switch(s, lambda s: 2 / (POLE - s) ** 2 + polynomial(slope(COTANGENT), s), far)
