"""Lists of operations in compiled code: the same steps as through PETSc."""

from __future__ import annotations

import numpy as np
import pytest
from step_lists import lists
from steppers.test_steppers_as_lists import CASES
from ways import PETScExecutor

from fdgeom.compile import CompiledExecutor


@pytest.mark.parametrize("name", CASES)
def test_compiled_steps_equal_those_through_petsc(name):
    """All Functions that the list writes, after ten steps."""
    (_, ours, dt), (_, theirs, _) = lists(name)
    assert CompiledExecutor(ours).advance(10, 0.0, dt) == (10, None)
    assert PETScExecutor(theirs).advance(10, 0.0, dt) == (10, None)
    for one, other in zip(ours, theirs, strict=True):
        for f, g in zip(one.writes, other.writes, strict=True):
            for a, b in zip(f.subfunctions, g.subfunctions, strict=True):
                scale = max(1.0, np.abs(b.dat.data_ro).max())
                assert np.abs(a.dat.data_ro - b.dat.data_ro).max() < 1e-10 * scale, f.name()
