"""A convergence test that ends Newton's iteration at round-off."""

import math

from firedrake import Function
from petsc4py import PETSc

_REASON = PETSc.SNES.ConvergedReason
# If the residual has grown by this factor, a small update means nothing.
_LOST = 1e15
#: See `notices_circles`; compiled code does the same (Watch in newton.hpp).
EARLY, RECENT = 8, 4


class Settled:
    """PETSc convergence test by tolerances, and by updates that reduce the residual no further."""

    # An update ends the iteration if the residual is no longer halved and the update is at most
    # `small` times the unknown, or the residual at most `left` times the first one: the rest is
    # round-off. An update also ends it if it is at most `unnoticed` times the norm of `of` (such as
    # the positions whose increment is the unknown: a small increment has few digits), or at most
    # `last` times the unknown where no snes_stol is set: the next update would be below round-off.
    # gives_up: stop when the residual has grown out of all bounds, else go on until a solve fails.
    # notices_circles: end with a failure where updates circle, as at the kink of dry friction: after
    # `EARLY` updates, if none of the last `RECENT` is below half of the smallest before.
    def __init__(
        self,
        of: Function | None = None,
        *,
        unnoticed: float = 0.0,
        last: float | None = None,
        small: float = 1e-8,
        left: float = 1e-6,
        gives_up: bool = False,
        notices_circles: bool = False,
    ) -> None:
        self.of, self.unnoticed = of, unnoticed
        self.last, self.small, self.left = last, small, left
        self._gives_up = gives_up
        # contracting: end without failure at an update that is neither small nor smaller than the
        # previous one (the first: than the guess); contracts is then False.
        self.contracting, self.contracts = False, True
        self.notices_circles, self.circles = notices_circles, False
        self._updates: list[float] = []

    def __call__(self, snes: PETSc.SNES, iteration: int, norms) -> int:
        x, step, f = norms
        rtol, atol, stol, _ = snes.getTolerances()
        if not math.isfinite(f):
            return _REASON.DIVERGED_FUNCTION_NANORINF
        if f <= atol:
            return _REASON.CONVERGED_FNORM_ABS
        if iteration == 0:
            self._first = self._before = f
            self._update = snes.getSolution().norm() if self.contracting else 0.0
            self.contracts, self.circles, self._updates = True, False, []
            return _REASON.ITERATING
        before, self._before = self._before, f
        lost = f > _LOST * self._first
        if lost and self._gives_up:
            return _REASON.DIVERGED_DTOL
        if f <= rtol * self._first:
            return _REASON.CONVERGED_FNORM_RELATIVE
        if not lost and self._is_last(step, x, f, before, stol):
            return _REASON.CONVERGED_SNORM_RELATIVE
        last, self._update = self._update, step
        if self.contracting and 0 < last <= step and step > self.small * x:
            self.contracts = False
            return _REASON.CONVERGED_ITS
        self._updates.append(step)
        if self.notices_circles and len(self._updates) >= EARLY:
            before, recent = self._updates[:-RECENT], self._updates[-RECENT:]
            self.circles = min(recent) >= 0.5 * min(before)
        return _REASON.DIVERGED_LOCAL_MIN if self.circles else _REASON.ITERATING

    def _is_last(self, step: float, x: float, f: float, before: float, stol: float) -> bool:
        small = step <= (stol or self.last or 0.0) * x
        if f >= 0.5 * before:
            small = small or step <= self.small * x or f <= self.left * self._first
        if self.last is not None:
            # A diverging unknown becomes so large that every update is small beside it.
            small = small and f <= self._first
        return small or (self.of is not None and step <= self.unnoticed * _norm(self.of))


def _norm(function: Function) -> float:
    with function.dat.vec_ro as values:
        return values.norm()
