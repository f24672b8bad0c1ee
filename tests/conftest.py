"""Shared by all tests: this folder is importable, so helpers are `verification.numpy_beam` etc."""

import os

import numpy as np
import pytest

# PETSc reads pytest's command line; it need not list what it did not understand.
os.environ.setdefault("PETSC_OPTIONS", "-options_left 0")


@pytest.fixture
def rng():
    """Random numbers, the same in every run."""
    return np.random.default_rng(20250)
