"""Each method that is compiled gives what it gives through PETSc SNES: all cases of `every_stepper`."""

import numpy as np
import pytest
from every_stepper import CASES, T0, values

#: Cases that go through PETSc in any case: a field that is given in time, a periodic mesh,
#: methods that are not made of implicit substeps.
THROUGH_PETSC = {
    "ImplicitMidpoint, waves",
    "DiscreteGradient",
    "GaussLegendre",
    "RungeKutta4",
    "GeneralizedAlpha, field",
    "HermiteSimpson",
    "HermiteSimpson, field",
    "FourthOrderAlpha",
}


@pytest.mark.parametrize("name", sorted(set(CASES) - THROUGH_PETSC))
def test_same_steps(name):
    dt, make = CASES[name]
    found = []
    for compiled in (None, False):
        stepper = make(dt, compiled=compiled, t0=T0)
        start = values(stepper)
        stepper.advance(5)
        stepper.advance(2)
        found.append(values(stepper))
        assert stepper.is_compiled is (compiled is None), stepper.why_not_compiled
        # A compiled step that failed would have been taken by PETSc.
        through_petsc = stepper.solver_stats()["steps_through_petsc"]
        assert through_petsc == (0 if compiled is None else 7)
    ours, theirs = found
    assert any(np.abs(theirs[key] - start[key]).max(initial=0) > 1e-2 for key in theirs)
    for key, expected in theirs.items():
        # Both solve to round-off; rates are differences by a step, accelerations and multipliers by two.
        size = max(np.abs(expected).max(initial=0), 1e-3)
        assert np.abs(ours[key] - expected).max(initial=0) < 1e-9 * size, key


@pytest.mark.parametrize("name", sorted(THROUGH_PETSC))
def test_what_is_not_compiled_says_why(name):
    dt, make = CASES[name]
    stepper = make(dt, t0=T0)
    stepper.advance(2)
    assert not stepper.is_compiled
    assert stepper.why_not_compiled
    assert stepper.solver_stats()["steps_through_petsc"] == 2


def test_each_method_is_among_them():
    """Of each method that any case has, one is compiled, but for two."""
    methods = {name.partition(",")[0] for name in CASES}
    compiled = {name.partition(",")[0] for name in set(CASES) - THROUGH_PETSC}
    # The first is compiled along chains alone: see test_chain_types. The other solves linear systems.
    assert methods - compiled == {"HermiteSimpson", "FourthOrderAlpha"}
