"""Bars of one isotropic material: their matrices and properties, from their dimensions."""

import math
from collections.abc import Sequence
from numbers import Real

import numpy as np
import ufl
from ufl.algorithms import extract_arguments

from fdgeom.sections.bars import (
    rectangle_shear_factor,
    rectangle_torsion_constant,
    ring_shear_factor,
)
from fdgeom.taping import refuse_recorded
from fdgeom.words import shown

Number = float | ufl.core.expr.Expr


def bar_matrices(
    area: Number,
    second_moments: Sequence[Number],
    torsion_constant: Number | None,
    density: Number,
    youngs_modulus: Number,
    poisson_ratio: Number,
    shear_factor: float | Sequence[float],
    axis: int,
):
    """Stiffness and inertia (6×6) of a bar: see `fdgeom.Section.from_properties`."""
    for name, value in (
        ("area", area),
        ("density", density),
        ("youngs_modulus", youngs_modulus),
    ):
        _positive(name, value)
    if np.ndim(second_moments) == 0 or len(second_moments) != 2:
        raise ValueError("second_moments must be two, one for each transverse axis")
    for value in second_moments:
        _positive("second_moments", value)
    _check_poisson_ratio(poisson_ratio)
    factors = tuple(np.ravel(shear_factor)) if np.ndim(shear_factor) else (shear_factor,) * 2
    if len(factors) != 2:
        raise ValueError("shear_factor must be one number or two, one for each transverse axis")
    for factor in factors:
        _positive("shear_factor", factor)
    polar = second_moments[0] + second_moments[1]
    torsion = polar if torsion_constant is None else torsion_constant
    _positive("torsion_constant", torsion)

    shear_modulus = youngs_modulus / 2 / (1 + poisson_ratio)
    first, second = (k for k in range(3) if k != axis)
    rotation, bending, stretch = [None] * 3, [None] * 3, [None] * 3
    rotation[axis], rotation[first], rotation[second] = polar, *second_moments
    bending[axis] = shear_modulus * torsion
    bending[first], bending[second] = (youngs_modulus * m for m in second_moments)
    stretch[axis] = youngs_modulus * area
    stretch[first], stretch[second] = (shear_modulus * area * k for k in factors)
    return (
        _diagonal(bending + stretch),
        _diagonal([density * m for m in rotation] + [density * area] * 3),
    )


def rectangle_properties(
    width: Number, height: Number, torsion_constant, shear_factor, material: dict
) -> dict:
    """Properties of a rectangle for `bar_matrices`."""
    _positive("width", width)
    _positive("height", height)
    if torsion_constant is None:
        torsion_constant = rectangle_torsion_constant(width, height)
    nu = _poisson_ratio(material)
    if shear_factor is None:
        shear_factor = (
            rectangle_shear_factor(width, height, nu),
            rectangle_shear_factor(height, width, nu),
        )
    area = width * height
    return {
        "area": area,
        "second_moments": (area * height**2 / 12, area * width**2 / 12),
        "torsion_constant": torsion_constant,
        "shear_factor": shear_factor,
    }


def tube_properties(
    outer_radius: Number, inner_radius: Number, shear_factor, material: dict
) -> dict:
    """Properties of a tube for `bar_matrices`."""
    _positive("outer_radius", outer_radius)
    _positive("inner_radius", inner_radius)
    numbers = not any(isinstance(r, ufl.core.expr.Expr) for r in (outer_radius, inner_radius))
    if numbers and inner_radius >= outer_radius:
        raise ValueError("inner_radius must be smaller than outer_radius")
    return _ring_properties(outer_radius, inner_radius, shear_factor, material)


def circle_properties(radius: Number, shear_factor, material: dict) -> dict:
    """Properties of a full circle for `bar_matrices`."""
    _positive("radius", radius)
    return _ring_properties(radius, 0.0, shear_factor, material)


def _ring_properties(outer, inner, shear_factor, material: dict) -> dict:
    nu = _poisson_ratio(material)
    if shear_factor is None:
        shear_factor = ring_shear_factor(outer, inner, nu)
    moment = math.pi / 4 * (outer**4 - inner**4)
    return {
        "area": math.pi * (outer**2 - inner**2),
        "second_moments": (moment, moment),
        "shear_factor": shear_factor,
    }


def _check_expression(name: str, value) -> None:
    if value.ufl_shape or extract_arguments(value):
        raise ValueError(f"{name} must be a scalar without test functions, not {shown(value)}")


def _check_poisson_ratio(value) -> None:
    if isinstance(value, ufl.core.expr.Expr):
        _check_expression("poisson_ratio", value)
        return
    refuse_recorded("poisson_ratio", value)
    if not isinstance(value, Real):
        raise TypeError(f"poisson_ratio must be a number, not {shown(value)}")
    if not -1 < value <= 0.5:
        raise ValueError(f"poisson_ratio must lie above -1 and not above 0.5, not {shown(value)}")


def _poisson_ratio(material: dict):
    """Poisson's ratio among keywords, checked; zero if missing, which `from_properties` reports."""
    value = material.get("poisson_ratio", 0.0)
    _check_poisson_ratio(value)
    return value


def _diagonal(entries: list):
    if any(isinstance(e, ufl.core.expr.Expr) for e in entries):
        return ufl.as_matrix([[entries[i] if i == j else 0 for j in range(6)] for i in range(6)])
    return np.diag(np.array(entries, dtype=float))


def _positive(name: str, value) -> None:
    if isinstance(value, ufl.core.expr.Expr):
        _check_expression(name, value)
        return
    refuse_recorded(name, value)
    number = isinstance(value, Real) and not isinstance(value, bool)
    array = isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iuf"
    if not number and not array:
        raise TypeError(f"{name} must be a number or a UFL expression, not {shown(value)}")
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a positive number, not {shown(value)}")
