"""Shared by all tests: this folder is importable, so helpers are `verification.numpy_beam` etc."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    """Random numbers, the same in every run."""
    return np.random.default_rng(20250)
