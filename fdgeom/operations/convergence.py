"""Convergence tests of Newton's method."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from firedrake import Function
from petsc4py import PETSc
from ufl.core.expr import Expr

from fdgeom.data import norm


class Reason(IntEnum):
    """Why Newton's iteration goes on (0), has converged (positive) or has failed (negative).

    The numbers are PETSc's, but for NOT_CONTRACTING, and those of the compiled iteration (``Reason``
    in ``compile/cpp/convergence.hpp``).
    """

    ITERATING = 0
    ABSOLUTE = 2
    RELATIVE = 3
    UPDATE = 4
    SINGULAR = -3
    NOT_FINITE = -4
    TOO_MANY = -5
    CIRCLING = -8
    GROWN = -9
    NOT_CONTRACTING = -20


#: Why an iteration has failed.
WORDS: dict[int, str] = {
    Reason.TOO_MANY: "too many iterations",
    Reason.SINGULAR: "a singular Jacobian",
    Reason.NOT_FINITE: "values that are not finite",
    Reason.GROWN: "a residual that has grown",
    Reason.NOT_CONTRACTING: "updates that do not get smaller",
    Reason.CIRCLING: "updates that circle, as at the kink of friction",
}

#: Round-off, for ``unnoticed``.
EPSILON = float(np.finfo(float).eps)
# Updates before circles are looked for, and the number of updates that are compared with those before.
_EARLY, _RECENT = 8, 4


@dataclass(frozen=True, eq=False)
class ConvergenceTest:
    """Ends Newton's method by tolerances, or where updates no longer reduce the residual.

    A residual cannot get smaller than the round-off of its own terms, which a tolerance relative to
    the first residual does not know: with many cells, or a good first guess, it may lie below. So
    the iteration also ends where the residual is no longer halved, if the update is at most
    ``small`` times the unknown or the residual at most ``left`` times the first one: Newton's
    method converges quadratically there, and what remains is round-off.

    Parameters
    ----------
    of : Function, optional
        The Function for ``unnoticed``, such as the positions whose increment is the unknown: a small
        increment has few digits.
    unnoticed : float or UFL expression of Constants, optional
        An update ends the iteration if it is at most this times the norm of ``of``.
    last : float, optional
        An update ends the iteration if it is at most this times the unknown and the residual is not
        above the first one: the next update would be below round-off. ``stol`` replaces it.
    small, left : float, optional
        See above.
    secant : float, optional
        Beside an unknown that has diverged every update is small. So the residual must be small, too:
        with the slope of all updates together it means an update of at most this times ``small``, or
        ``stol``, times the unknown. By default that is not asked: where stiffnesses differ by many
        orders, round-off of stiff directions is as large as the first residual.
    growth : float, optional
        If the residual has grown by this factor, a small update means nothing.
    gives_up : bool, optional
        Whether the iteration fails if the residual has grown by ``growth``; by default it goes on
        until a linear solve fails.
    notices_circles : bool, optional
        Whether the iteration fails if updates circle, as at the kink of dry friction: after eight
        updates, if none of the last four is below half of the smallest one before.
    rtol, atol, stol : float, optional
        The iteration ends at a residual of ``rtol`` times the first one, at a residual of ``atol``,
        or at an update of ``stol`` times the unknown.
    max_it : int, optional
        The limit of iterations.

    Notes
    -----
    PETSc's tolerances replace these in solves through SNES. The compiled iteration makes the same
    decisions (``Watch`` in ``compile/cpp/convergence.hpp``).
    """

    of: Function | None = None
    unnoticed: float | Expr = 0.0
    last: float | None = None
    small: float = 1e-8
    left: float = 1e-6
    secant: float = 0.0
    growth: float = 1e15
    gives_up: bool = False
    notices_circles: bool = False
    rtol: float = 1e-13
    atol: float = 1e-50
    stol: float = 1e-14
    max_it: int = 25

    def with_options(self, options: Mapping) -> "ConvergenceTest":
        """The test with the tolerances that PETSc options set."""
        kinds = {"rtol": float, "atol": float, "stol": float, "max_it": int}
        given = {
            k: kind(options[f"snes_{k}"]) for k, kind in kinds.items() if f"snes_{k}" in options
        }
        return replace(self, **given)


#: The test of solves at single nodes or cells.
LOCAL_TEST = ConvergenceTest(secant=100.0)


class Watch:
    """The decisions of a convergence test in a Newton iteration; PETSc's test of a SNES."""

    def __init__(self, test: ConvergenceTest) -> None:
        self.test = test
        #: Whether the iteration ends at an update that is neither small nor smaller than the one before
        #: (the first one: than the guess).
        self.contracting = False
        self.notices_circles = test.notices_circles
        #: The last decision.
        self.reason = Reason.ITERATING

    def __call__(self, snes: PETSc.SNES, iteration: int, norms) -> int:
        """PETSc's convergence test: norms of unknown, update and residual."""
        rtol, atol, stol, _ = snes.getTolerances()
        if iteration == 0:
            guess = snes.getSolution().norm() if self.contracting else 0.0
            of = self.test.of
            self.begin(rtol, atol, stol, guess, norm(of) if of is not None else 0.0)
        reason = self.decide(iteration, *norms)
        # After updates that do not contract another attempt follows: PETSc should not report a failure.
        contracting = reason != Reason.NOT_CONTRACTING
        return reason if contracting else PETSc.SNES.ConvergedReason.CONVERGED_ITS

    def begin(self, rtol: float, atol: float, stol: float, guess: float, of: float) -> None:
        """Begin an iteration with the tolerances and the norms of the guess and of ``test.of``."""
        self._tolerances, self._update = (rtol, atol, stol), guess
        self._unnoticed = float(self.test.unnoticed) * of
        self._moved = 0.0
        self._updates: list[float] = []

    def decide(self, iteration: int, x: float, step: float, f: float) -> Reason:
        """The decision for the norms of unknown, update and residual."""
        self.reason = self._decide(iteration, x, step, f)
        return self.reason

    def _decide(self, iteration: int, x: float, step: float, f: float) -> Reason:
        test, (rtol, atol, stol) = self.test, self._tolerances
        if not (math.isfinite(f) and math.isfinite(x)) or math.isnan(step):
            return Reason.NOT_FINITE
        if iteration == 0:
            self._first = self._before = f
        before, self._before = self._before, f
        self._moved += step
        if f <= atol:
            return Reason.ABSOLUTE
        if iteration == 0:
            return Reason.ITERATING
        lost = f > test.growth * self._first
        if lost and test.gives_up:
            return Reason.GROWN
        if f <= rtol * self._first:
            return Reason.RELATIVE
        if not lost and self._is_last(stol, x, step, f, before):
            return Reason.UPDATE
        last, self._update = self._update, step
        if self.contracting and 0 < last <= step and step > test.small * x:
            return Reason.NOT_CONTRACTING
        self._updates.append(step)
        return Reason.CIRCLING if self.notices_circles and self._circles() else Reason.ITERATING

    def _is_last(self, stol: float, x: float, step: float, f: float, before: float) -> bool:
        test, stays = self.test, f >= 0.5 * before
        tolerance = stol or test.last or 0.0
        small = step <= tolerance * x or (stays and step <= test.small * x)
        # A diverging unknown becomes so large that every update is small beside it.
        if test.last is not None:
            small = small and f <= self._first
        if test.secant:
            limit = test.secant * max(tolerance, test.small) * x
            small = small and f * self._moved <= limit * self._first
        small = small or (stays and f <= test.left * self._first)
        return small or step <= self._unnoticed

    def _circles(self) -> bool:
        if len(self._updates) < _EARLY:
            return False
        return min(self._updates[-_RECENT:]) >= 0.5 * min(self._updates[:-_RECENT])
