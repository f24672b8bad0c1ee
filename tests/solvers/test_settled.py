"""When Newton's iteration ends, told by sequences of norms whose end is known by hand."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from petsc4py import PETSc

from fdgeom.solvers.settled import Settled

REASON = PETSc.SNES.ConvergedReason
ITERATING = REASON.ITERATING


def of_norm(value: float):
    return SimpleNamespace(norm=lambda: value)


def reasons(test, norms, rtol=0.0, atol=1e-50, stol=0.0, start=0.0):
    """What the test says after each iteration, for norms of unknown, update and residual."""
    snes = SimpleNamespace(
        getTolerances=lambda: (rtol, atol, stol, 25),
        getSolution=lambda: of_norm(start),
    )
    found = []
    for iteration, now in enumerate(norms):
        found.append(test(snes, iteration, now))
        if found[-1] != ITERATING:
            break
    return found


#: Newton with quadratic convergence to round-off: errors 1e-1, 1e-2, 1e-4, 1e-8, then 1e-16.
QUADRATIC = [(0, 0, 1.0), (1, 1, 1e-2), (1, 1e-2, 1e-4), (1, 1e-4, 1e-8), (1, 1e-8, 1e-15)]
ROUND_OFF = (1, 1e-16, 1.2e-15)


def test_ends_where_the_residual_is_no_longer_halved():
    found = reasons(Settled(), [*QUADRATIC, ROUND_OFF])
    assert found == [ITERATING] * 5 + [REASON.CONVERGED_SNORM_RELATIVE]


def test_goes_on_where_the_residual_grows_on_the_way():
    """Large updates are none that end an iteration, whatever the residual does."""
    norms = [(0, 0, 1.0), (1, 1.0, 5.0), (1, 0.5, 20.0), (1, 0.1, 15.0)]
    assert reasons(Settled(), norms) == [ITERATING] * 4


def test_lost():
    norms = [(0, 0, 1.0), (1, 1.0, 1e16)]
    assert reasons(Settled(), norms) == [ITERATING] * 2
    assert reasons(Settled(gives_up=True), norms)[-1] == REASON.DIVERGED_DTOL
    nan = [(0, 0, 1.0), (1, 1.0, float("nan"))]
    assert reasons(Settled(), nan)[-1] == REASON.DIVERGED_FUNCTION_NANORINF


@pytest.mark.parametrize(
    ("tolerances", "number", "reason"),
    [
        ({"atol": 1e-3}, 3, REASON.CONVERGED_FNORM_ABS),
        ({"rtol": 1e-7}, 4, REASON.CONVERGED_FNORM_RELATIVE),
        ({"stol": 1e-3}, 4, REASON.CONVERGED_SNORM_RELATIVE),
    ],
)
def test_tolerances_of_the_user(tolerances, number, reason):
    found = reasons(Settled(), [*QUADRATIC, ROUND_OFF], **tolerances)
    assert len(found) == number
    assert found[-1] == reason


def test_the_last_update_is_known_beforehand():
    """Of quadratic convergence: 1e-8, squared, is round-off; a tolerance of the user's wins."""
    found = reasons(Settled(last=1e-7), QUADRATIC)
    assert found == [ITERATING] * 4 + [REASON.CONVERGED_SNORM_RELATIVE]
    assert len(reasons(Settled(last=1e-7), QUADRATIC, stol=1e-3)) == 4


def test_far_away_small_updates_are_none():
    """An unknown of 1e12, from which every update looks small, with a residual above the first."""
    norms = [(0, 0, 1.0), (1e12, 1.0, 1e3), (1e12, 1.0, 1e3)]
    assert reasons(Settled(last=1e-9), norms) == [ITERATING] * 3


def test_what_the_positions_do_not_notice():
    """At rest: increment and residual are round-off from the beginning and stay so."""
    norms = [(0, 0, 1e-18), (1e-17, 1e-17, 3e-18), (1e-17, 8e-18, 1e-18)]
    assert reasons(Settled(), norms) == [ITERATING] * 3
    positions = SimpleNamespace(dat=SimpleNamespace(vec_ro=nullcontext(of_norm(2.0))))
    settled = Settled(positions, unnoticed=1e-16)
    assert reasons(settled, norms) == [ITERATING, REASON.CONVERGED_SNORM_RELATIVE]


def test_contracting():
    """The first update must be smaller than the guess, and each smaller than the one before."""
    settled = Settled()
    settled.contracting = True
    growing = [(0, 0, 1.0), (1, 0.5, 0.5), (1, 0.6, 0.4)]
    # No failure, of which PETSc would tell the user: another guess comes next.
    assert reasons(settled, growing, start=1.0)[-1] == REASON.CONVERGED_ITS
    assert not settled.contracts
    assert len(reasons(settled, growing, start=0.4)) == 2
    assert reasons(settled, [*QUADRATIC, ROUND_OFF], start=2.0)[-1] > 0
    settled.contracting = False
    assert reasons(settled, growing, start=0.4) == [ITERATING] * 3
