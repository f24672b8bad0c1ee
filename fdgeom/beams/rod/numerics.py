"""Solve of a step of rods: options, convergence test, and attempts from two guesses."""

from collections.abc import Sequence

from firedrake import Function

from fdgeom.execution import Numerics, banded
from fdgeom.operations import EPSILON, Attempt, ConvergenceTest
from fdgeom.systems.motion.motion import Motion

# Of the increment's norm: the next update would be below round-off.
_LAST = 1e-9
# Of the positions' norm: round-off of strains, brought back to displacements by the stiffness.
_UNNOTICED = 1e-13
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
    test = ConvergenceTest(changed, unnoticed=EPSILON, notices_circles=friction)
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


# Where a step does not resolve the stiff directions of rods, as after a sudden load, their
# accelerations alternate, and a guess by extrapolation tears the rods. Newton's iteration with whole
# steps goes on as long as it contracts. Else it restarts from the other guess, then from the first
# without that condition; then both are tried with damped steps, whose line search asks that the next
# update by the same matrix gets smaller. Unlike the norm of the residual, which grows on the way in
# stiff directions, that does not depend on the scale of the stiffness.
def attempts(first: Function, other: Function, *, contracting: bool) -> tuple[Attempt, ...]:
    """Newton's iteration from a guess of the increment or from zero, with damped steps at last."""
    whole = (Attempt(guess=first), Attempt(guess=other))
    if contracting:
        whole = (Attempt(guess=first, must_contract=True), Attempt(guess=other), whole[0])
    damped = [Attempt(guess=guess, damped=True, max_it=_DAMPED) for guess in (other, first)]
    return (*whole, *damped)


def friction_remedy(frictional: Sequence) -> str:
    """Advice for a step that fails with these loads with dry friction; empty without."""
    slips = ", ".join(f"{float(load.slip):g}" for load in dict.fromkeys(frictional))
    return slips and (
        f"friction: try a smaller dt, a larger slip (now {slips}), or loads that grow from zero "
        "instead of jumping"
    )
