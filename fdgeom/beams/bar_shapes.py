"""Sections of bars of one isotropic material, from their dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Self

import numpy as np
import ufl

from fdgeom.sections.bars import (
    rectangle_shear_factor,
    rectangle_torsion_constant,
    ring_shear_factor,
)
from fdgeom.sections.matrices import check_axis
from fdgeom.words import shown

Number = float | ufl.core.expr.Expr


class BarShapes:
    """Ways to make a section from the dimensions of a bar of one isotropic material."""

    @classmethod
    def from_properties(
        cls,
        *,
        area: Number,
        second_moments: Sequence[Number],
        torsion_constant: Number | None = None,
        density: Number,
        youngs_modulus: Number,
        poisson_ratio: Number,
        shear_factor: float | Sequence[float] = 1.0,
        axis: int = 0,
    ) -> Self:
        """Section of a homogeneous isotropic material from the geometry of its shape.

        Parameters
        ----------
        area : float or UFL expression
            Area A.
        second_moments : two floats or UFL expressions
            Second moments of area about the two transverse axes, in increasing order of the axes.
        torsion_constant : float or UFL expression, optional
            Torsion constant; the polar moment (the sum of the second moments) if not given.
        density, youngs_modulus : float or UFL expression
            Mass per volume ρ and modulus E.
        poisson_ratio : float
            Poisson's ratio ν; the shear modulus is G = E/2/(1+ν).
        shear_factor : float or two floats
            Timoshenko's shear correction along the two transverse axes.
        axis : {0, 1, 2}
            Material axis along the beam.
        """
        axis = check_axis(axis)
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
        return cls(
            _diagonal(bending + stretch),
            _diagonal([density * m for m in rotation] + [density * area] * 3),
            axis=axis,
        )

    @classmethod
    def rectangle(
        cls,
        width: Number,
        height: Number,
        *,
        torsion_constant: Number | None = None,
        shear_factor: Number | Sequence[Number] | None = None,
        axis: int = 0,
        **material,
    ) -> Self:
        """Rectangle with sides ``width`` and ``height`` along the two transverse axes.

        The transverse axes count in increasing order: for ``axis=1`` the width lies along axis 0
        and the height along axis 2. Torsion constant and shear factors are those of Saint-Venant's
        solutions unless they are given (`fdgeom.sections.bars`; until version 0.1 they were the
        polar moment and 1). ``material``: see :meth:`from_properties`.
        """
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
        return cls.from_properties(
            area=area,
            second_moments=(area * height**2 / 12, area * width**2 / 12),
            torsion_constant=torsion_constant,
            shear_factor=shear_factor,
            axis=axis,
            **material,
        )

    @classmethod
    def circle(
        cls,
        radius: Number,
        *,
        shear_factor: Number | Sequence[Number] | None = None,
        axis: int = 0,
        **material,
    ) -> Self:
        """Full circle of the given radius.

        The shear factor is that of Saint-Venant's solution, 6(1+ν)²/(7+14ν+8ν²), unless it is given
        (until version 0.1 it was 1). ``material``: see :meth:`from_properties`.
        """
        _positive("radius", radius)
        return cls._ring(radius, 0.0, shear_factor, axis, material)

    @classmethod
    def tube(
        cls,
        outer_radius: Number,
        inner_radius: Number,
        *,
        shear_factor: Number | Sequence[Number] | None = None,
        axis: int = 0,
        **material,
    ) -> Self:
        """Circular tube.

        The shear factor is that of Saint-Venant's solution unless it is given (until version 0.1 it
        was 1). ``material``: see :meth:`from_properties`.
        """
        _positive("outer_radius", outer_radius)
        _positive("inner_radius", inner_radius)
        numbers = not any(isinstance(r, ufl.core.expr.Expr) for r in (outer_radius, inner_radius))
        if numbers and inner_radius >= outer_radius:
            raise ValueError("inner_radius must be smaller than outer_radius")
        return cls._ring(outer_radius, inner_radius, shear_factor, axis, material)

    @classmethod
    def _ring(cls, outer, inner, shear_factor, axis, material) -> Self:
        nu = _poisson_ratio(material)
        if shear_factor is None:
            shear_factor = ring_shear_factor(outer, inner, nu)
        moment = math.pi / 4 * (outer**4 - inner**4)
        return cls.from_properties(
            area=math.pi * (outer**2 - inner**2),
            second_moments=(moment, moment),
            shear_factor=shear_factor,
            axis=axis,
            **material,
        )


def _check_poisson_ratio(value) -> None:
    if isinstance(value, ufl.core.expr.Expr):
        return
    if not isinstance(value, Real):
        raise TypeError(f"poisson_ratio must be a number, not {shown(value)}")
    if not -1 < value <= 0.5:
        raise ValueError(f"poisson_ratio must lie above -1 and not above 0.5, not {shown(value)}")


def _poisson_ratio(material: dict):
    """That of keywords, checked; zero where it is missing, which `from_properties` will say."""
    value = material.get("poisson_ratio", 0.0)
    _check_poisson_ratio(value)
    return value


def _diagonal(entries: list):
    if any(isinstance(e, ufl.core.expr.Expr) for e in entries):
        return ufl.as_matrix([[entries[i] if i == j else 0 for j in range(6)] for i in range(6)])
    return np.diag(np.array(entries, dtype=float))


def _positive(name: str, value) -> None:
    if isinstance(value, ufl.core.expr.Expr):
        return
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number and not (np.ndim(value) == 0 and np.asarray(value).dtype.kind in "iuf"):
        raise TypeError(f"{name} must be a number or a UFL expression, not {shown(value)}")
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a positive number, not {shown(value)}")
