"""Lists of operations of steppers whose solves are local."""

from __future__ import annotations

from steppers import test_steppers_as_lists as steps

from fdgeom.operations import HostOperation

LOCAL = [name for name in steps.CASES if name != "EnergyMomentum"]


def operations_of(stepper):
    """The operations of a step, without the checks of rotations, which Python performs."""
    stepper.system.prepare()
    made = steps.operations_of(stepper) if hasattr(steps, "operations_of") else stepper.operations
    return [op for op in made if not isinstance(op, HostOperation)]


def lists(name):
    """A system, its list of operations, and the step length, twice."""
    method, build, dt = steps.CASES[name]
    for _ in range(2):
        stepper = method(build(), dt)
        yield stepper.system, operations_of(stepper), dt
