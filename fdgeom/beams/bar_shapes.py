"""Bars of one isotropic material: their matrices and properties, from their dimensions."""

import math
from collections.abc import Sequence

import numpy as np
import ufl

from fdgeom.sections.bars import (
    rectangle_shear_factor,
    rectangle_torsion_constant,
    ring_shear_factor,
)
from fdgeom.validation import scalar

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
        scalar(name, value, above=0)
    if np.ndim(second_moments) == 0 or len(second_moments) != 2:
        raise ValueError("second_moments must be two, one for each transverse axis")
    for value in second_moments:
        scalar("second_moments", value, above=0)
    scalar("poisson_ratio", poisson_ratio, above=-1, most=0.5)
    factors = tuple(np.ravel(shear_factor)) if np.ndim(shear_factor) else (shear_factor,) * 2
    if len(factors) != 2:
        raise ValueError("shear_factor must be one number or two, one for each transverse axis")
    for factor in factors:
        scalar("shear_factor", factor, above=0)
    polar = second_moments[0] + second_moments[1]
    torsion = polar if torsion_constant is None else torsion_constant
    scalar("torsion_constant", torsion, above=0)

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
    scalar("width", width, above=0)
    scalar("height", height, above=0)
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
    scalar("outer_radius", outer_radius, above=0)
    scalar("inner_radius", inner_radius, above=0)
    numbers = not any(isinstance(r, ufl.core.expr.Expr) for r in (outer_radius, inner_radius))
    if numbers and inner_radius >= outer_radius:
        raise ValueError("inner_radius must be smaller than outer_radius")
    return _ring_properties(outer_radius, inner_radius, shear_factor, material)


def circle_properties(radius: Number, shear_factor, material: dict) -> dict:
    """Properties of a full circle for `bar_matrices`."""
    scalar("radius", radius, above=0)
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


def _poisson_ratio(material: dict):
    """Poisson's ratio among keywords, checked; zero if missing, which `from_properties` reports."""
    return scalar("poisson_ratio", material.get("poisson_ratio", 0.0), above=-1, most=0.5)


def _diagonal(entries: list):
    if any(isinstance(e, ufl.core.expr.Expr) for e in entries):
        return ufl.as_matrix([[entries[i] if i == j else 0 for j in range(6)] for i in range(6)])
    return np.diag(np.array(entries, dtype=float))
