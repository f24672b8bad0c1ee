"""Operators of a section with a complex elasticity: derivatives of all results by a complex step."""

from collections.abc import Callable

import numpy as np

from .elasticity import STEP
from .operators import Operators

Field = np.ndarray | None


class Aside:
    """`Operators` of the elasticity C + iε dC, by those of C."""

    # All results are analytic in C, and ε² is below round-off: real parts are the values for C,
    # imaginary parts over ε their derivatives along dC, to round-off (Squire & Trapp, Using complex
    # variables to estimate derivatives of real functions, SIAM Rev. 40, 1998).
    def __init__(self, operators: Operators, change: np.ndarray) -> None:
        self._of, self._change = operators, change
        self.rigid, self.pair = operators.rigid, operators.pair
        self.area, self.polar_moment = operators.area, operators.polar_moment

    def factorise(self, shift: float) -> None:
        """Nothing, since the factor of C exists."""

    def against_warping(self, g: Field, u: Field) -> np.ndarray:
        """h ↦ ∫ (D(g) + S(u)) : (C + iε dC) : D(h)."""
        return self._applied(self._of.against_warping, g, u)

    def against_slope(self, g: Field, u: Field) -> np.ndarray:
        """h ↦ ∫ (D(g) + S(u)) : (C + iε dC) : S(h)."""
        return self._applied(self._of.against_slope, g, u)

    def against_elasticity(self, first: tuple, second: tuple) -> np.ndarray:
        """dC ↦ ∫ (D(g) + S(u)) : dC : (D(h) + S(v)), independent of the elasticity."""
        action, real = self._of.against_elasticity, _parts(second, np.real)
        rate = action(_parts(first, np.imag), real)
        first = _parts(first, np.real)
        return action(first, real) + 1j * (rate + action(first, _parts(second, np.imag)))

    def solve(self, dual: np.ndarray) -> np.ndarray:
        """The field w with ∫ D(w):(C + iε dC):D(h) = dual(h), orthogonal to the rigid fields."""
        found = self._of.solve(np.real(dual))
        more = self._changed(self._of.against_warping, found, None)
        return found + 1j * STEP * self._of.solve(np.imag(dual) / STEP - more)

    def _applied(self, action: Callable, *fields: Field) -> np.ndarray:
        real, imaginary = _parts(fields, np.real), _parts(fields, np.imag)
        rate = action(*imaginary) + STEP * self._changed(action, *real)
        return action(*real) + 1j * rate

    def _changed(self, action: Callable, *fields: Field) -> np.ndarray:
        with self._of.holding(self._change):
            return action(*fields)


def _parts(fields: tuple, part: Callable) -> tuple:
    return tuple(None if f is None else part(f) for f in fields)
