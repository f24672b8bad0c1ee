"""Ranks that own no cell and no node."""

from pathlib import Path

import numpy as np
import pytest
from ranks import run_on

from fdgeom.sections.matrices import check_positive_definite
from fdgeom.validation import everywhere


def test_no_matrices_are_positive_definite():
    check_positive_definite("inertia", np.empty((0, 6, 6)))


def test_one_rank_fails_all():
    class Ranks:
        """Two ranks, the other of which has found something."""

        def allgather(self, message):
            return [message, "inertia must be positive definite"]

    with pytest.raises(ValueError, match="^inertia must be positive definite$"):
        everywhere(Ranks(), lambda: None)


@pytest.mark.parallel
def test_on_several_ranks(tmp_path, several):
    """A rank without cells takes part in sections of Functions and expressions."""
    found = []
    for ranks in (1, several):
        path = tmp_path / f"{ranks}.npy"
        done = run_on(ranks, Path(__file__).with_name("one_cell.py"), path)
        assert not done.returncode, done.stdout + done.stderr
        found.append(np.load(path))
    # Each node has half of the cell: 1000 · 0.02 · 0.01 / 2 at the left, 1.1 times that at the right.
    assert found[0][5] == pytest.approx(0.01 * 0.2 * (1 + 1.1) / 2, rel=1e-9)
    assert np.allclose(*found, rtol=1e-9, atol=1e-12)
