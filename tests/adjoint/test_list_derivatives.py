"""Derivatives of lists of operations that have none."""

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, TestFunction, dx

import fdgeom as fg
from fdgeom.adjoint import ListDerivative, Vectors, keys
from fdgeom.operations import Solve
from fdgeom.solvers import SolveFailed


def test_a_singular_matrix_is_an_error():
    """x³ = c at c = 0: the slope of x is infinite, forwards and backwards."""
    space = FunctionSpace(fg.copies(2), "DG", 0)
    x, c = Function(space), Function(space)
    solve = Solve(work=(x**3 - c) * TestFunction(space) * dx, unknown=x, name="the root")
    derivative = ListDerivative([solve], keys([c]), lambda: None)
    for given, take in ((c, derivative.push), (x, derivative.pull)):
        vectors = Vectors()
        vectors.put(given, np.ones(2))
        with pytest.raises(SolveFailed, match="the root"):
            take(vectors)
