"""Tests of gradients: nothing stays on pyadjoint's tape."""

import pytest
from firedrake.adjoint import pause_annotation
from pyadjoint import Tape, annotate_tape, set_working_tape


@pytest.fixture(autouse=True)
def empty_tape():
    """An empty tape, and one for those who come after."""
    set_working_tape(Tape())
    yield
    if annotate_tape():
        pause_annotation()
    set_working_tape(Tape())
