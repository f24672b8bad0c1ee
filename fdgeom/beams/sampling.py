"""Data of a beam that may vary along it, sampled where the quadrature looks."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import ufl
from firedrake import Constant, Function, FunctionSpace, SpatialCoordinate, TensorFunctionSpace
from ufl.core.expr import Expr

from fdgeom.beams.rod.user_vectors import evaluated, number_of_arguments
from fdgeom.numbering import coordinates_of
from fdgeom.real import real_array
from fdgeom.sections.along import MatrixAlong
from fdgeom.sections.matrices import check_positive_definite
from fdgeom.solvers.derived import is_real, private, sampled
from fdgeom.solvers.spread import spread
from fdgeom.words import shown


def body_matrix(name: str, value, mesh, element, *, inverse: bool = False):
    """A 6×6 matrix (or its inverse) for use in forms: of a Constant, or a field where it varies.

    The field follows the Functions and Constants in an expression.

    Parameters
    ----------
    name : str
        What to call it in an error.
    value : (6, 6) ndarray, MatrixAlong or UFL expression
        The matrix.
    mesh, element
        Of the space of scalars whose nodes are the quadrature points that the matrix is needed at.
    inverse : bool
        Whether to return the inverse.

    Raises
    ------
    ValueError
        If it is not symmetric positive definite at every node.
    """
    if isinstance(value, np.ndarray):
        return _constant_matrix(np.asarray(value, dtype=float).tobytes(), inverse)
    space = TensorFunctionSpace(mesh, element, shape=(6, 6))
    if isinstance(value, MatrixAlong):
        value = _at_nodes(value, space)
    elif isinstance(value, Function) and is_real(value):
        # Of a drawn section: a number of another mesh.
        value = spread(value, mesh, element)
    return sampled(
        name,
        value,
        space,
        check=lambda values: check_positive_definite(name, values),
        inverse=inverse,
        private=True,
    )


@lru_cache(maxsize=64)
def _constant_matrix(values: bytes, inverse: bool) -> Expr:
    """A matrix of numbers, one for all beams that have it: nobody changes it."""
    numbers = np.frombuffer(values).reshape(6, 6)
    numbers = np.linalg.inv(numbers) if inverse else numbers
    constant = private(Constant(numbers))
    # Zeros are left out of the forms: most sections are diagonal.
    return ufl.as_matrix(
        [[constant[i, j] if numbers[i, j] else 0.0 for j in range(6)] for i in range(6)]
    )


def _at_nodes(matrix: MatrixAlong, space) -> Function:
    """The values of a matrix that changes along the beam."""
    scalars = FunctionSpace(space.mesh(), space.ufl_element().sub_elements[0])
    field = private(Function(space))
    field.dat.data_wo_with_halos[...] = matrix(coordinates_of(scalars))
    return field


def sample_shape(name: str, value, space, time: Constant) -> Function | None:
    """A vector of 6 given as an expression, a function of time or of arc length and time, or numbers.

    Returns a field of ``space`` that follows it; None stays None.
    """
    if value is None:
        return None
    if callable(value) and not isinstance(value, Expr):
        expression = _of_time(name, value, space.mesh(), time)
    elif isinstance(value, Expr):
        expression = value
    elif np.ndim(value) == 1 and len(value):
        if not any(isinstance(v, ufl.core.expr.Expr) for v in value):
            value = real_array(value, f"{name} must be real numbers, not {shown(value)}")
        expression = ufl.as_vector(list(value))
    else:
        raise ValueError(f"{name} must be a vector of 6, not {shown(value)}")
    if expression.ufl_shape != (6,):
        raise ValueError(f"{name} must be a vector of 6, not of shape {expression.ufl_shape}")

    def check(values: np.ndarray) -> None:
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{name} must be finite everywhere along the beam")

    return sampled(name, expression, space, check=check)


def _of_time(name: str, function: Callable, mesh, time: Constant) -> Expr:
    count = number_of_arguments(function)
    if count not in (1, 2):
        raise ValueError(f"{name}: the function must take (t) or (s, t)")
    arguments = (SpatialCoordinate(mesh)[0], time)
    return evaluated(name, function, arguments[2 - count :], 6)
