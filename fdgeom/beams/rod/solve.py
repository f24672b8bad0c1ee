"""Solve of a step of rods: options, convergence test, and Newton's iteration from two guesses."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from firedrake import Function

from fdgeom.operations import ConvergenceTest, Reason, Watch
from fdgeom.solvers import HeldSNES, Numerics, SolveFailed, banded
from fdgeom.systems.motion.motion import Motion
from fdgeom.systems.motion.nodal_unknown import NodalUnknown

# Of the increment's norm: the next update would be below round-off.
_LAST = 1e-9
# Of the positions' norm: round-off of strains, brought back to displacements by the stiffness.
_UNNOTICED = 1e-13
_EPSILON = float(np.finfo(float).eps)
# Iterations of damped attempts: through the kink of friction at many nodes they take long.
_DAMPED = 200
# Limit of the others. A smaller one of the user's is the limit of all.
_WHOLE = 25


def rod_numerics(motion: Motion, *, friction: bool = False) -> Numerics:
    """Newton with an LU of everything, without pivoting in the order of the nodes, which ends by
    the size of the updates, since the residual ends at EA ε |x|/h, which is not small; ``friction``:
    with dry friction.
    """
    moved = motion.configuration[0]
    test = ConvergenceTest(
        moved, unnoticed=_UNNOTICED, last=_LAST, small=1e-6, left=0.0, gives_up=True,
        notices_circles=friction,
    )  # fmt: skip
    return Numerics(_options(motion.comm), test)


def exact_numerics(changed: Function, *, friction: bool = False) -> Numerics:
    """`rod_numerics` that ends at round-off, for invariants that hold to the last digits."""
    test = ConvergenceTest(changed, unnoticed=_EPSILON, notices_circles=friction)
    return Numerics(_options(changed.function_space().comm), test)


def _options(comm) -> dict:
    return {
        "snes_type": "newtonls",
        "snes_linesearch_type": "basic",
        "snes_rtol": 0.0,
        "snes_atol": 1e-50,
        # PETSc would call a failed line search converged where the increment is large.
        "snes_stol": 0.0,
        "snes_max_it": _WHOLE,
        **banded(comm),
    }


class RodNewton:
    """Newton's iteration from a guess of the increment or from zero, with damped steps at last."""

    # Where a step does not resolve the stiff directions of rods, as after a sudden load, their
    # accelerations alternate, and a guess by extrapolation tears the rods. Newton's iteration with
    # full steps goes on as long as it contracts: each update is smaller than the last, and the
    # first is smaller than the guess. Else it restarts from the other guess, then from the first
    # without that condition; then both are tried with steps damped by an error-oriented line
    # search, Deuflhard's NLEQ-ERR (Newton Methods for Nonlinear Problems, 2011, §3.3.3), which asks
    # that the next update by the same matrix gets smaller. Unlike the norm of the residual, which
    # grows on the way in stiff directions, that does not depend on the scale of the stiffness. The
    # sequence depends on the state alone, so resumed runs repeat it; a good first guess costs no
    # extra evaluation. Unless it is `contracting`, the guess of the smaller residual is the first,
    # which takes an evaluation for each.
    # `frictional` are the loads with dry friction: at its kink whole steps circle where they are large
    # against the slip at which it is rounded off. Then damped steps come at once, and they are slow.
    def __init__(
        self, unknown: NodalUnknown, contracting: bool = False, frictional: Sequence = ()
    ) -> None:
        self._unknown, self._contracts, self._frictional = unknown, contracting, frictional
        #: The first attempts, as compiled steps know them, and what makes the other guess.
        self.attempt = "contracting" if contracting else "smaller"
        self.other = unknown.without_increment()

    def __call__(self, solver: HeldSNES) -> None:
        """Solve from the guess in the unknown, or else from a zero increment."""
        multipliers = np.array(self._unknown.multipliers)
        first, other = np.array(self._unknown.vectors), 0.0
        if not self._contracts:
            norms = []
            for guess in (first, other):
                self._put(guess, multipliers)
                norms.append(solver.residual_norm())
            if norms[1] <= norms[0]:
                first, other = other, first
        # Guess, whether it must contract, whether steps are damped.
        attempts = [(first, False, False), (other, False, False)]
        if _takes_whole_steps(solver):
            attempts += [(other, False, True), (first, False, True)]
            if self._contracts:
                # The first again, whatever it takes, comes after the other.
                attempts[:2] = (first, True, False), (other, False, False), (first, False, False)
        failure, circles = None, False
        for guess, contracting, damped in attempts:
            if circles and not damped:
                continue
            self._put(guess, multipliers)
            try:
                with _contracting(solver, contracting), _line_search(solver, damped):
                    solver.solve(provisional=True)
                if damped:
                    # An update may be small because it was damped: whole ones have the last word.
                    solver.solve(provisional=True)
            except SolveFailed as error:
                failure = failure if damped and failure else error
                circles = _ended(solver) is Reason.CIRCLING
            else:
                if _ended(solver) is not Reason.NOT_CONTRACTING:
                    solver.show_reason()
                    return
        solver.show_reason()
        failure.remedy = self.remedy() or failure.remedy
        raise failure

    def remedy(self) -> str:
        """Advice for a step that fails with friction; empty without."""
        slips = ", ".join(f"{float(load.slip):g}" for load in dict.fromkeys(self._frictional))
        return slips and (
            f"friction: try a smaller dt, a larger slip (now {slips}), or loads that grow from zero "
            "instead of jumping"
        )

    def _put(self, guess, multipliers) -> None:
        unknown = self._unknown
        unknown.vectors[...] = guess
        unknown.multipliers[...] = multipliers
        unknown.field.written(ghosts_too=True)


def _ended(solver: HeldSNES) -> Reason | None:
    """Why the last iteration ended, if fdgeom's convergence test ended it."""
    return solver.test.reason if isinstance(solver.test, Watch) else None


@contextmanager
def _contracting(solver: HeldSNES, wanted: bool) -> Iterator[None]:
    """Context in which an iteration that does not contract ends, if requested."""
    test = solver.test if isinstance(solver.test, Watch) else None
    if test is not None:
        test.contracting = wanted
    try:
        yield
    finally:
        if test is not None:
            test.contracting = False


def _takes_whole_steps(solver: HeldSNES) -> bool:
    """Whether the user's options leave Newton's full steps."""
    snes = solver.snes
    return snes.getType() == "newtonls" and snes.getLineSearch().getType() == "basic"


@contextmanager
def _line_search(solver: HeldSNES, damped: bool) -> Iterator[None]:
    """Context with damped steps, if requested."""
    if not damped:
        yield
        return
    snes, test = solver.snes, solver.test
    search, most = snes.getLineSearch(), snes.getTolerances()[3]
    notices = isinstance(test, Watch) and test.notices_circles
    search.setType("nleqerr")
    snes.setTolerances(max_it=most if most < _WHOLE else max(most, _DAMPED))
    if notices:
        test.notices_circles = False
    try:
        yield
    finally:
        search.setType("basic")
        snes.setTolerances(max_it=most)
        if notices:
            test.notices_circles = True
