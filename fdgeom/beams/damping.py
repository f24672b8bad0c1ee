"""Kelvin–Voigt damping of a beam: its viscosity."""

from numbers import Real

import numpy as np
from firedrake import Constant, Function, TensorFunctionSpace
from ufl.core.expr import Expr

from fdgeom.operations.interpolate import sampled
from fdgeom.taping import refuse_recorded
from fdgeom.validation import everywhere, number, real_array


def viscosity_of(damping, stiffness: Expr, mesh) -> Expr | None:
    """Kelvin–Voigt viscosity (6×6) from the damping of a beam: None, a time, or a matrix."""
    if damping is None:
        return None
    if not isinstance(damping, Expr):
        refuse_recorded("damping", damping)
    if isinstance(damping, Real) and not isinstance(damping, bool):
        return Constant(number("damping", damping, least=0)) * stiffness
    if not isinstance(damping, Expr):
        damping = real_array("damping", damping, "a time or a 6×6 matrix of numbers")
    shape = damping.ufl_shape if isinstance(damping, Expr) else damping.shape
    if shape != (6, 6):
        raise ValueError(f"damping must be a time or a 6×6 matrix, not of shape {shape}")
    space = TensorFunctionSpace(mesh, "DG", 0, shape=(6, 6))
    if isinstance(damping, Expr):
        return sampled("damping", damping, space, check=_check_damping, private=True)
    everywhere(mesh.comm, lambda: _check_damping(damping[None]))
    field = Function(space, name="damping")
    field.dat.data_wo[...] = damping
    return field


def _check_damping(values: np.ndarray) -> None:
    size = np.abs(values).max(initial=0.0)
    skew = np.abs(values - np.swapaxes(values, -1, -2)).max(initial=0.0)
    least = np.linalg.eigvalsh(values).min(initial=0.0) if np.all(np.isfinite(values)) else -np.inf
    # A damping of some strains only is semidefinite, to the round-off of its eigenvalues.
    if not (skew <= 1e-10 * size and least >= -1e-12 * size):
        raise ValueError("damping must be symmetric and positive semidefinite everywhere")
