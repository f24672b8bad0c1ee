"""Inertia and mass of rigid bodies, given as numbers or as fields that differ from body to body."""

import warnings

import numpy as np
import ufl
from firedrake import Constant, Function
from ufl.core.expr import Expr

from fdgeom.forms import shaped_space
from fdgeom.solvers.derived import sampled
from fdgeom.validation import array, everywhere, scalar

# Of the largest entry: how symmetric a matrix in double precision is, and how far from singular.
_SYMMETRIC, _SINGULAR = 1e-12, 1e-14
# Of the largest moment: what rounding to two digits does to a sum, and what is no moment at all.
_ROUNDED, _TINY = 0.05, np.finfo(float).tiny


def body_inertia(value, like: Function) -> Expr:
    """The matrix (3, 3) of inertia for use in forms, checked in every cell."""
    # `value`: the matrix or its diagonal, or a UFL expression, which becomes a DG0 function on the
    # mesh of `like`.
    if isinstance(value, Expr):
        return _field("inertia", value, (3, 3), like, _check_inertia)
    wanted = "a finite 3×3 matrix, its diagonal or a UFL expression"
    matrix = array("inertia", value, (3,), (3, 3), wanted=wanted)
    matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
    _check_inertia(matrix[None])
    constant = Constant(matrix)
    # Zeros are left out of the forms: most bodies are given by their principal axes.
    return ufl.as_matrix(
        [[constant[i, j] if matrix[i, j] else 0.0 for j in range(3)] for i in range(3)]
    )


def body_mass(value, like: Function, *, needed: bool) -> Expr | None:
    """The mass for use in forms, or None where it is not needed; an error if it is given then."""
    if value is None and needed:
        raise ValueError("mass is needed for bodies that have a position")
    if value is not None and not needed:
        raise ValueError("mass: bodies about a fixed point have none; put it into the inertia")
    if value is None:
        return None
    if isinstance(value, Expr):
        return _field("mass", value, (), like, _check_mass)
    return Constant(float(scalar("mass", value, above=0)))


def _field(name: str, value: Expr, shape: tuple[int, ...], like: Function, check) -> Function:
    """A field that is constant in each cell, its values checked on all ranks."""
    if value.ufl_shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, not {value.ufl_shape}")
    space = shaped_space(shape, like.function_space().mesh(), "DG", 0)
    if isinstance(value, Function) and value.function_space() == space:
        everywhere(space.comm, lambda: check(value.dat.data_ro))
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
    check_moments(matrices)


def check_moments(matrices: np.ndarray) -> None:
    """Raise ``ValueError`` where a principal moment is larger than the sum of the other two; warn
    where rounding may be the reason, as for thin plates, whose largest moment is that sum.
    """
    moments = np.linalg.eigvalsh(matrices)
    excess = moments[..., 2] - moments[..., 1] - moments[..., 0]
    worst = np.max(excess / np.maximum(moments[..., 2], _TINY), initial=0.0)
    text = (
        "inertia: no body has a principal moment that is larger than the sum of the other two (of a "
        "thin plate it is that sum)"
    )
    if worst > _ROUNDED:
        raise ValueError(text)
    if worst > 1e-9:
        warnings.warn(text, stacklevel=3)


def _check_mass(values: np.ndarray) -> None:
    if not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError("mass must be positive and finite")
