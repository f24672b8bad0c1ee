"""When Newton's iteration has done what double precision allows."""

import math

from firedrake import Function
from petsc4py import PETSc

_REASON = PETSc.SNES.ConvergedReason
# Of the first residual: where it has grown so far, no small update means anything.
_LOST = 1e15


class Settled:
    """A test of convergence for PETSc's SNES: by tolerances, and by what an update still changes.

    Beside the tolerances ``snes_atol``, ``snes_rtol`` and ``snes_stol`` an update ends the iteration
    after which the residual is no longer halved, if it is small beside the unknown or has left
    little of the first residual: the rest is round-off.

    Parameters
    ----------
    of : Function, optional
        What the unknown changes, such as the positions where that is their increment: where little
        happens in a step the increment itself has few digits.
    unnoticed : float
        An update so small beside the norm of ``of`` ends the iteration.
    last : float, optional
        An update so small beside the unknown ends it by itself where no ``snes_stol`` is asked for:
        the next one would be below round-off.
    small : float
        Beside the unknown, for an update after which the residual is no longer halved.
    left : float
        Of the first residual, for the same.
    gives_up : bool
        Whether the iteration ends where the residual has grown out of all bounds; else it goes on
        until nothing can be solved any more.

    Attributes
    ----------
    contracting : bool
        Whether the iteration ends at an update that is not smaller than the last one (the first:
        than the unknown that was guessed), unless it is small. That is no failure, and no solution.
    contracts : bool
        Whether the last iteration has not ended so.
    """

    def __init__(
        self,
        of: Function | None = None,
        *,
        unnoticed: float = 0.0,
        last: float | None = None,
        small: float = 1e-8,
        left: float = 1e-6,
        gives_up: bool = False,
    ) -> None:
        self.of, self.unnoticed = of, unnoticed
        self.last, self.small, self.left = last, small, left
        self._gives_up = gives_up
        self.contracting, self.contracts = False, True

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
            self.contracts = True
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
        return _REASON.ITERATING

    def _is_last(self, step: float, x: float, f: float, before: float, stol: float) -> bool:
        small = step <= (stol or self.last or 0.0) * x
        if f >= 0.5 * before:
            small = small or step <= self.small * x or f <= self.left * self._first
        if self.last is not None:
            # Far away unknowns are so large that every update is small beside them.
            small = small and f <= self._first
        return small or (self.of is not None and step <= self.unnoticed * _norm(self.of))


def _norm(function: Function) -> float:
    with function.dat.vec_ro as values:
        return values.norm()
