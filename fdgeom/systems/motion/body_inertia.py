"""Inertia and mass of rigid bodies, given as numbers or as fields that differ from body to body."""

from numbers import Real

import numpy as np
import ufl
from firedrake import Constant, Function
from ufl.core.expr import Expr

from fdgeom.forms import shaped_space
from fdgeom.real import real_array
from fdgeom.solvers.derived import collectively, sampled
from fdgeom.words import shown

# Of the largest entry: how symmetric a matrix in double precision is, and how far from singular.
_SYMMETRIC, _SINGULAR = 1e-12, 1e-14


def body_inertia(value, like: Function) -> Expr:
    """The matrix (3, 3) of inertia for use in forms.

    Parameters
    ----------
    value : (3, 3) or (3,) array_like, or UFL expression
        The matrix, its diagonal, or a DG0 function of shape (3, 3) (what a UFL expression becomes).
    like : Function
        A DG0 function of the bodies' mesh.

    Raises
    ------
    TypeError, ValueError
        If it is not finite, symmetric and positive definite in every cell.
    """
    if isinstance(value, Expr):
        return _field("inertia", value, (3, 3), like, _check_inertia)
    matrix = real_array(
        value, f"inertia must be a 3x3 matrix, its diagonal or a UFL expression, not {shown(value)}"
    )
    if matrix.shape == (3,):
        matrix = np.diag(matrix)
    if matrix.shape != (3, 3):
        raise ValueError(f"inertia must be 3x3 (or its diagonal), not of shape {matrix.shape}")
    _check_inertia(matrix[None])
    constant = Constant(matrix)
    # Zeros are left out of the forms: most bodies are given by their principal axes.
    return ufl.as_matrix(
        [[constant[i, j] if matrix[i, j] else 0.0 for j in range(3)] for i in range(3)]
    )


def body_mass(value, like: Function, *, needed: bool) -> Expr | None:
    """The mass for use in forms, or None where it is not needed.

    Raises
    ------
    TypeError, ValueError
        If it is needed and missing or not positive, or given and not needed.
    """
    if value is None and needed:
        raise ValueError("mass is needed for bodies that have a position")
    if value is not None and not needed:
        raise ValueError("mass: bodies about a fixed point have none; put it into the inertia")
    if value is None:
        return None
    if isinstance(value, Expr):
        return _field("mass", value, (), like, _check_mass)
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"mass must be a number or a UFL expression, not {shown(value)}")
    _check_mass(np.array([value], dtype=float))
    return Constant(float(value))


def _field(name: str, value: Expr, shape: tuple[int, ...], like: Function, check) -> Function:
    """A field that is constant in each cell, its values checked on all ranks."""
    if value.ufl_shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, not {value.ufl_shape}")
    space = shaped_space(shape, like.function_space().mesh(), "DG", 0)
    if isinstance(value, Function) and value.function_space() == space:
        collectively(space.comm, lambda: check(value.dat.data_ro))
        return value  # what the user changes is to be seen
    return sampled(name, value, space, check=check, private=True)


def _check_inertia(matrices: np.ndarray) -> None:
    if not np.all(np.isfinite(matrices)):
        raise ValueError("inertia must be finite")
    size = np.abs(matrices).max(axis=(1, 2), initial=0.0)
    skew = np.abs(matrices - matrices.transpose(0, 2, 1)).max(axis=(1, 2), initial=0.0)
    if np.any(skew > _SYMMETRIC * size):
        raise ValueError("inertia must be symmetric")
    if not np.all(np.linalg.eigvalsh(matrices)[:, 0] > _SINGULAR * size):
        raise ValueError(
            "inertia must be positive definite; it is singular or indefinite. A slender body needs "
            "a small moment of inertia about its axis too"
        )


def _check_mass(values: np.ndarray) -> None:
    if not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError("mass must be positive and finite")
