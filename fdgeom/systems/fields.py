"""Data of a beam that may vary along it, sampled where the quadrature looks."""

from __future__ import annotations

import numpy as np
import ufl
from firedrake import Constant, Function, TensorFunctionSpace

from fdgeom.systems.section import check_positive_definite


def body_matrix(name: str, value, scalar_space, *, inverse: bool = False):
    """A 6×6 matrix (or its inverse) for use in forms: of a Constant, or a field where it varies.

    Parameters
    ----------
    name : str
        What to call it in an error.
    value : (6, 6) ndarray or UFL expression
        The matrix.
    scalar_space : FunctionSpace
        Space whose nodes are the quadrature points that the matrix is needed at.
    inverse : bool
        Whether to return the inverse.

    Raises
    ------
    ValueError
        If it is not symmetric positive definite at every node.
    """
    if isinstance(value, np.ndarray):
        numbers = np.linalg.inv(value) if inverse else value
        constant = Constant(numbers)
        # Zeros are left out of the forms: most sections are diagonal.
        return ufl.as_matrix(
            [[constant[i, j] if numbers[i, j] else 0.0 for j in range(6)] for i in range(6)]
        )
    space = TensorFunctionSpace(scalar_space.mesh(), scalar_space.ufl_element(), shape=(6, 6))
    field = Function(space, name=name).interpolate(value)
    _collectively(space.comm, lambda: check_positive_definite(name, field.dat.data_ro))
    if inverse:
        field.dat.data_wo[...] = np.linalg.inv(field.dat.data_ro)
    return field


def sample_shape(name: str, value, space) -> Function | None:
    """A vector of 6 given as an expression or numbers, as a field of ``space``; None stays None."""
    if value is None:
        return None
    if isinstance(value, ufl.core.expr.Expr):
        expression = value
    elif np.ndim(value) == 1:
        expression = ufl.as_vector(list(value))
    else:
        raise ValueError(f"{name} must be a vector of 6, not {value!r}")
    if expression.ufl_shape != (6,):
        raise ValueError(f"{name} must be a vector of 6, not of shape {expression.ufl_shape}")
    field = Function(space, name=name).interpolate(expression)
    bad = not np.all(np.isfinite(field.dat.data_ro))
    if space.comm.allreduce(int(bad)):
        raise ValueError(f"{name} must be finite everywhere along the beam")
    return field


def _collectively(comm, check) -> None:
    """Run a check that may raise on some ranks so that it raises on all."""
    try:
        check()
        message = None
    except ValueError as error:
        message = str(error)
    found = [m for m in comm.allgather(message) if m]
    if found:
        raise ValueError(found[0])
