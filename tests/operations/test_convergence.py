"""When Newton's iteration ends, by sequences of norms whose end is known by hand, in Python and in C++."""

import ctypes
import re
import subprocess
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from petsc4py import PETSc

import fdgeom
from fdgeom.operations import ConvergenceTest, Reason, Watch

CPP = Path(fdgeom.__file__).parent / "compile" / "cpp"
HEADER = CPP / "convergence.hpp"
PETSC = PETSc.SNES.ConvergedReason
ON, ABSOLUTE, RELATIVE, UPDATE = Reason.ITERATING, Reason.ABSOLUTE, Reason.RELATIVE, Reason.UPDATE

#: Newton with quadratic convergence to round-off: norms of unknown, update and residual.
QUADRATIC = [(0, 0, 1.0), (1, 1, 1e-2), (1, 1e-2, 1e-4), (1, 1e-4, 1e-8), (1, 1e-8, 1e-15)]
ROUND_OFF = (1, 1e-16, 1.2e-15)
#: Every update small beside an unknown that has diverged, with a residual above the first one.
FAR = [(0, 0, 1.0), (1e12, 1.0, 1e3), (1e12, 1.0, 1e3)]
#: The same, with a residual that is bounded.
BOUNDED = [(0, 0, 1.0), (1e12, 1e12, 0.8), (1e12, 1.0, 0.7)]
#: Increment and residual of a body at rest are round-off from the beginning.
REST = [(0, 0, 1e-18), (1e-17, 1e-17, 3e-18), (1e-17, 8e-18, 1e-18)]
#: The residual grows on the way.
HILL = [(0, 0, 1.0), (1, 1.0, 5.0), (1, 0.5, 20.0), (1, 0.1, 15.0)]
GROWING = [(0, 0, 1.0), (1, 0.5, 0.5), (1, 0.6, 0.4)]
#: Two values of updates in turn, from the fifth one on.
CIRCLE = [(0, 0, 1.0), *((1, 0.5**k, 1.0) for k in (0, 1, 2, 3, 3, 2.5, 3, 2.5, 3))]
#: Updates that fall slowly.
SLOW = [(0, 0, 1.0), *((1, 0.8**k, 0.8**k) for k in range(1, 12))]
NAN, INFINITE = float("nan"), float("inf")

#: Fields of the test, norms, what the decisions are: those before the last one are to go on. Of these
#: fields `guess` and `of` are the norms of the guess, for iterations that must contract, and of `of`.
CASES = {
    "the residual is no longer halved": ({}, [*QUADRATIC, ROUND_OFF], 5, UPDATE),
    "no longer halved, but large": ({"small": 0.0, "left": 0.0}, [*QUADRATIC, ROUND_OFF], 5, ON),
    "atol": ({"atol": 1e-3}, QUADRATIC, 2, ABSOLUTE),
    "atol at once": ({"atol": 2.0}, QUADRATIC, 0, ABSOLUTE),
    "rtol": ({"rtol": 1e-7}, QUADRATIC, 3, RELATIVE),
    "stol": ({"stol": 1e-3}, QUADRATIC, 3, UPDATE),
    "last": ({"last": 1e-7}, QUADRATIC, 4, UPDATE),
    "stol replaces last": ({"last": 1e-7, "stol": 1e-3}, QUADRATIC, 3, UPDATE),
    "far away": ({"last": 1e-9}, FAR, 2, ON),
    "far away, by the secant": ({"secant": 100.0}, BOUNDED, 2, ON),
    "far away, unnoticed": ({}, BOUNDED, 2, UPDATE),
    "round-off from the beginning": ({"secant": 100.0}, [(0, 0, 1e-15), (1, 1e-15, 3e-15)], 1, UPDATE),
    "a good guess": ({"secant": 100.0}, [(0, 0, 1e-6), (1, 1e-6, 1e-9), (1, 1e-9, 9e-10)], 2, UPDATE),
    "at rest": ({}, REST, 2, ON),
    "at rest, unnoticed": ({"unnoticed": 1e-16, "of": 2.0}, REST, 1, UPDATE),
    "a hill": ({}, HILL, 3, ON),
    "lost": ({}, [(0, 0, 1.0), (1, 1e-9, 1e16)], 1, ON),
    "gives up": ({"gives_up": True}, [(0, 0, 1.0), (1, 1e-9, 1e16)], 1, Reason.GROWN),
    "gives up early": ({"gives_up": True, "growth": 10.0}, HILL, 2, Reason.GROWN),
    "residual not finite": ({}, [(0, 0, 1.0), (1, 1.0, NAN)], 1, Reason.NOT_FINITE),
    "update not finite": ({}, [(0, 0, 1.0), (NAN, NAN, 1.0)], 1, Reason.NOT_FINITE),
    "unknown not finite": ({}, [(0, 0, 1.0), (INFINITE, INFINITE, 1.0)], 1, Reason.NOT_FINITE),
    # What a line search without a step length reports.
    "update unknown": ({"small": 1.0}, [(0, 0, 1.0), (1, INFINITE, 0.9)], 1, ON),
    "smaller than the guess": ({"guess": 1.0}, GROWING, 2, Reason.NOT_CONTRACTING),
    "larger than the guess": ({"guess": 0.4}, GROWING, 1, Reason.NOT_CONTRACTING),
    "need not contract": ({}, GROWING, 2, ON),
    "contracts": ({"guess": 2.0}, [*QUADRATIC, ROUND_OFF], 5, UPDATE),
    # Updates 1, 1/2, 1/4, 1/8 | 1/8, 0.18, 1/8, 0.18: none of the last four is below 1/16.
    "circles": ({"notices_circles": True}, CIRCLE, 8, Reason.CIRCLING),
    "may circle": ({}, CIRCLE, 9, ON),
    # The smallest of the last four is 0.8⁴ = 0.41 times the smallest before: below half.
    "slow": ({"notices_circles": True}, SLOW, 11, ON),
}  # fmt: skip


def split(fields):
    """The test, and the norms of guess and `of`; tolerances are zero unless they are given."""
    fields = {"rtol": 0.0, "atol": 1e-50, "stol": 0.0} | fields
    guess, of = fields.pop("guess", 0.0), fields.pop("of", 0.0)
    return ConvergenceTest(**fields), guess, of


def in_python(test, guess, of, norms):
    watch = Watch(test)
    watch.contracting = guess > 0.0
    watch.begin(test.rtol, test.atol, test.stol, guess, of)
    return [watch.decide(k, *now) for k, now in enumerate(norms)]


@pytest.mark.parametrize("name", CASES)
def test_decisions(name):
    fields, norms, number, reason = CASES[name]
    found = in_python(*split(fields), norms)
    assert found[: number + 1] == [ON] * number + [reason]


HARNESS = """
#define FDGEOM_WIDTH 4
#include "{cpp}/lanes.hpp"
#include "{cpp}/convergence.hpp"
extern "C" int decide(const Test *t, double guess, double of, const double *norms, long n, int *found) {{
  Watch watch;
  watch.begin(*t, guess > 0.0, guess, of);
  for (long k = 0; k < n; ++k) found[k] = watch.decide(k, norms[3 * k], norms[3 * k + 1], norms[3 * k + 2]);
  return 0;
}}
"""


class Test(ctypes.Structure):
    """The struct ``Test`` of convergence.hpp."""

    __test__ = False
    _fields_ = [
        (n, ctypes.c_double) for n in ("rtol", "atol", "stol", "unnoticed", "last", "small", "left",
                                "secant", "growth")
    ]  # fmt: skip
    _fields_ += [(n, ctypes.c_int) for n in ("gives_up", "notices_circles", "max_it")]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watch")
    code, library = folder / "watch.cpp", folder / "watch.so"
    code.write_text(HARNESS.format(cpp=CPP))
    subprocess.run(
        ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", code, "-o", library], check=True
    )
    return ctypes.CDLL(str(library)).decide


@pytest.mark.parametrize("name", CASES)
def test_compiled_decisions(compiled, name):
    fields, norms, number, reason = CASES[name]
    test, guess, of = split(fields)
    given = {n: getattr(test, n) for n, _ in Test._fields_} | {
        "last": -1.0 if test.last is None else test.last
    }
    flat = (ctypes.c_double * (3 * len(norms)))(*[x for now in norms for x in now])
    found = (ctypes.c_int * len(norms))()
    d = ctypes.c_double
    compiled(ctypes.byref(Test(**given)), d(guess), d(of), flat, ctypes.c_long(len(norms)), found)
    assert list(found)[: number + 1] == [ON] * number + [reason]
    assert list(found)[: number + 1] == in_python(test, guess, of, norms)[: number + 1]


def test_the_same_numbers():
    """Those of the compiled iteration are ours, and all but one PETSc's."""
    names = re.findall(r"(\w+) = (-?\d+)", re.search(r"enum {([^}]*)}", HEADER.read_text())[1])
    assert {name.upper(): int(number) for name, number in names} == {r.name: r for r in Reason}
    of_petsc = {
        PETSC.ITERATING: Reason.ITERATING,
        PETSC.CONVERGED_FNORM_ABS: Reason.ABSOLUTE,
        PETSC.CONVERGED_FNORM_RELATIVE: Reason.RELATIVE,
        PETSC.CONVERGED_SNORM_RELATIVE: Reason.UPDATE,
        PETSC.DIVERGED_LINEAR_SOLVE: Reason.SINGULAR,
        PETSC.DIVERGED_FUNCTION_NANORINF: Reason.NOT_FINITE,
        PETSC.DIVERGED_MAX_IT: Reason.TOO_MANY,
        PETSC.DIVERGED_LOCAL_MIN: Reason.CIRCLING,
        PETSC.DIVERGED_DTOL: Reason.GROWN,
    }
    assert all(number == reason for number, reason in of_petsc.items())
    assert set(Reason) - set(of_petsc.values()) == {Reason.NOT_CONTRACTING}
    others = {getattr(PETSC, name) for name in dir(PETSC) if name.isupper()} - set(of_petsc)
    assert others.isdisjoint(Reason)


def test_petsc_reasons():
    """The call for SNES takes PETSc's tolerances, and the norms of guess and positions."""

    def reasons(watch, norms, start=0.0, **tolerances):
        known = {"rtol": 0.0, "atol": 1e-50, "stol": 0.0} | tolerances
        snes = SimpleNamespace(
            getTolerances=lambda: (*known.values(), 25),
            getSolution=lambda: SimpleNamespace(norm=lambda: start),
        )
        found = [watch(snes, k, now) for k, now in enumerate(norms)]
        return next((r for r in found if r != PETSC.ITERATING), PETSC.ITERATING)

    quadratic = [*QUADRATIC, ROUND_OFF]
    assert reasons(Watch(ConvergenceTest()), quadratic) == PETSC.CONVERGED_SNORM_RELATIVE
    assert reasons(Watch(ConvergenceTest()), quadratic, rtol=1e-7) == PETSC.CONVERGED_FNORM_RELATIVE
    assert reasons(Watch(ConvergenceTest()), quadratic, atol=1e-3) == PETSC.CONVERGED_FNORM_ABS
    vector = SimpleNamespace(norm=lambda: 2.0)
    positions = SimpleNamespace(dat=SimpleNamespace(vec_ro=nullcontext(vector)))
    watch = Watch(ConvergenceTest(positions, unnoticed=1e-16))
    assert reasons(watch, REST) == PETSC.CONVERGED_SNORM_RELATIVE
    watch = Watch(ConvergenceTest())
    watch.contracting = True
    # No failure, which PETSc would report: another guess follows.
    assert reasons(watch, GROWING[:2], start=0.4) == PETSC.CONVERGED_ITS
    assert watch.reason is Reason.NOT_CONTRACTING


def test_options_are_tolerances():
    test = ConvergenceTest(small=1e-3).with_options(
        {"snes_rtol": "1e-9", "snes_max_it": 7, "ksp_rtol": 1}
    )
    assert (test.rtol, test.max_it, test.small, test.stol) == (1e-9, 7, 1e-3, 1e-14)
