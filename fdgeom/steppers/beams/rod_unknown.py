"""How the solves of steps for rods and joints go: their options, and when they end."""

from __future__ import annotations

import math

from petsc4py import PETSc

from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.solvers.banded import banded

# Of the increment's norm: the next update would be below round-off.
_SMALL = 1e-9
# Of the positions' norm: round-off of strains, brought back to displacements by the stiffness.
_UNNOTICED = 1e-13
# Of the first residual: stiff directions let it grow on the way, but never so far.
_LOST = 1e15
_REASON = PETSc.SNES.ConvergedReason


def rod_options(comm) -> dict:
    """PETSc options: Newton with an LU of everything, without pivoting in the order of the nodes.

    The iteration ends by the size of the updates (`Settled`): the residual ends at EA ε |x|/h, which
    is not small.
    """
    return {
        "snes_type": "newtonls",
        "snes_linesearch_type": "basic",
        "snes_rtol": 0.0,
        "snes_atol": 1e-50,
        # PETSc would call a failed line search converged where the increment is large: see Settled.
        "snes_stol": 0.0,
        "snes_max_it": 25,
        **banded(comm),
    }


class Settled:
    """Test of convergence by the size of the updates, and of the residual where a user asks for it.

    An update ends the iteration that is small beside the increment (``snes_stol``, or 1e-9, whose
    square is below round-off: the next one would be of that size), or so small that
    the positions hardly notice it in double precision: where little happens in a step, the increment
    itself has few digits. So does a small one after which the residual is no longer halved.

    Attributes
    ----------
    contracting : bool
        Whether the iteration fails at an update that is not smaller than the last one (the first:
        than the increment that was guessed), unless it is small.
    """

    def __init__(self, motion: RodMotion) -> None:
        self._motion, self.contracting = motion, False

    def __call__(self, snes: PETSc.SNES, iteration: int, norms) -> int:
        x, step, f = norms
        rtol, atol, stol, _ = snes.getTolerances()
        before, self._before = getattr(self, "_before", f), f
        if not math.isfinite(f):
            return _REASON.DIVERGED_FUNCTION_NANORINF
        if f <= atol:
            return _REASON.CONVERGED_FNORM_ABS
        if iteration == 0:
            self._first = f
            self._update = snes.getSolution().norm() if self.contracting else 0.0
            return _REASON.ITERATING
        if f > _LOST * self._first:
            return _REASON.DIVERGED_DTOL
        if f <= rtol * self._first:
            return _REASON.CONVERGED_FNORM_RELATIVE
        small = step <= (stol or _SMALL) * x or (step <= 1e-6 * x and f >= 0.5 * before)
        # Far away increments are so large that every update is small beside them.
        if small and f <= self._first:
            return _REASON.CONVERGED_SNORM_RELATIVE
        with self._motion.position.dat.vec_ro as position:
            unnoticed = step <= _UNNOTICED * position.norm()
        if unnoticed:
            return _REASON.CONVERGED_SNORM_RELATIVE
        last, self._update = self._update, step
        if self.contracting and 0 < last <= step and step > 1e-6 * x:
            return _REASON.DIVERGED_DTOL
        return _REASON.ITERATING
