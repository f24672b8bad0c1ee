"""Derivatives of lists of operations that have none."""

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, TestFunction, dx

import fdgeom as fg
from fdgeom.adjoint import OperationList, Vectors, keys
from fdgeom.adjoint.lists import Derivatives
from fdgeom.errors import SolveFailed
from fdgeom.operations import Solve


def test_a_singular_matrix_is_an_error():
    """x³ = c at c = 0: the slope of x is infinite, forwards and backwards."""
    space = FunctionSpace(fg.copies(2), "DG", 0)
    x, c = Function(space), Function(space)
    form = (x**3 - c) * TestFunction(space) * dx
    made = OperationList([Solve(work=form, unknown=x, name="the root", find=str)], keys([c]), {})
    vectors = Vectors()
    vectors.put(c, np.ones(2))
    made.places.put(vectors)
    with pytest.raises(SolveFailed, match="the root"):
        made.linearised.step(0.0, 1.0)
    derivatives = Derivatives()
    derivatives.cotangents.put(x, np.ones(2))
    trajectory, places = made.trajectory(derivatives.keys())
    trajectory.advance(0.0, 1.0)
    derivatives.put(places)
    with pytest.raises(SolveFailed, match="the root"):
        trajectory.pull()
