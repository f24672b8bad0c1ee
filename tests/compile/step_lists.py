"""Lists of operations of steppers whose solves are local."""

from __future__ import annotations

from steppers import test_steppers_as_lists as steps

from fdgeom.operations import HostOperation

LOCAL = [name for name in steps.CASES if name != "EnergyMomentum"]


def lists(name):
    """A system, its list of operations, and the step length, twice."""
    method, build, dt = steps.CASES[name]
    for _ in range(2):
        stepper = method(build(), dt)
        stepper.system.prepare()
        made = (
            steps.operations_of(stepper) if hasattr(steps, "operations_of") else stepper.operations
        )
        # Without the checks of rotations, which Python performs.
        yield stepper.system, [op for op in made if not isinstance(op, HostOperation)], dt
