"""Lists of operations of steppers whose solves are local."""

from __future__ import annotations

from steppers.test_steppers_as_lists import CASES

LOCAL = [name for name in CASES if name != "EnergyMomentum"]


def operations_of(stepper):
    """The operations of a step of a prepared system."""
    stepper.system.consistency.prepare()
    return stepper.operations


def lists(name):
    """A system, its list of operations, and the step length, twice."""
    method, build, dt = CASES[name]
    for _ in range(2):
        stepper = method(build(), dt)
        yield stepper.system, operations_of(stepper), dt
