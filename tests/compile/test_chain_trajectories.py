"""Adjoints of implicit steps through compiled trajectories: those through PETSc."""

from __future__ import annotations

import numpy as np
import pytest
from step_lists import operations_of
from test_chain_solves import wave
from test_chain_steppers import CASES, state_of
from test_compiled_trajectories import adjoint, same

from fdgeom import execution
from fdgeom.compile import Trajectory


def both(step, state, everything, dt):
    """The cotangents of a state after some steps, by both kinds of trajectories."""
    start = {f: np.array(f.dat.data_ro) for f in everything}
    return [
        adjoint(kind, step, [state[-1]], state, start, (3, 1, 3), dt)
        for kind in (Trajectory, execution.Trajectory)
    ]


def written(step):
    return [part for op in step for f in op.writes for part in f.subfunctions]


def test_prescribed_values_and_the_time():
    step = wave()
    found = both(step, [step[1].guess], written(step), 0.02)
    same(*found)
    assert np.abs(found[0][0]).max() > 0.1


@pytest.mark.parametrize("name", list(CASES))
def test_implicit_steppers(name):
    method, build, dt = CASES[name]
    stepper = method(build(), dt)
    step, state = operations_of(stepper), state_of(stepper)
    found = both(step, state, [*state, *written(step)], dt)
    same(*found)
    assert max(np.abs(values).max() for values in found[0]) > 0.1
