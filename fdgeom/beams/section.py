"""Cross-sections of beams: stiffness and inertia as 6×6 matrices, rotation first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from numbers import Integral, Real

import numpy as np
import ufl

from fdgeom.beams.section_sources import SectionSources
from fdgeom.real import real_array
from fdgeom.sections.along import MatrixAlong
from fdgeom.sections.bars import (
    rectangle_shear_factor,
    rectangle_torsion_constant,
    ring_shear_factor,
)
from fdgeom.sections.properties import (
    mass_centre,
    principal_bending,
    section_axes,
    shear_centre,
    tension_centre,
    to_body,
)
from fdgeom.words import shown

Number = float | ufl.core.expr.Expr


class Section(SectionSources):
    """Cross-section of a beam: of two matrices, of a bar's dimensions, or drawn as a mesh.

    Parameters
    ----------
    stiffness : (6, 6) array_like or UFL expression
        Stiffness D₂: stress resultants (moment, force) from strain (curvature, stretch), in the
        body frame, rotation first. An expression may contain the mesh coordinate, so that it varies
        along the beam, and Functions and Constants: beams follow them when they change.
    inertia : (6, 6) array_like or UFL expression
        Inertia D₁ per length: body momentum (angular, linear) from body velocity.
    axis : {0, 1, 2}
        Material axis along the beam: the unstrained tangent is ``e = (0, E_axis)``.

    Raises
    ------
    ValueError
        If a matrix is not 6×6, finite, symmetric and positive definite (expressions are tested
        where the beam uses them, when it is made), or ``axis`` is none of 0, 1, 2.

    Notes
    -----
    h = ½⟨μ, D₁⁻¹μ⟩ + ½⟨D₂γ, γ⟩, Chen & Shi (2025), equation (40).
    """

    def __init__(self, stiffness, inertia, *, axis: int = 0) -> None:
        axis = check_axis(axis)
        self.stiffness = _matrix("stiffness", stiffness)
        self.inertia = _matrix("inertia", inertia)
        self.axis = axis

    def __repr__(self) -> str:
        kind = "constant" if self.is_constant else "varying"
        return f"<{kind} section along axis {self.axis}>"

    @property
    def is_constant(self) -> bool:
        """Whether both matrices are numbers, the same all along the beam."""
        return isinstance(self.stiffness, np.ndarray) and isinstance(self.inertia, np.ndarray)

    # --- what the matrices tell --------------------------------------------------------------------
    @cached_property
    def compliance(self) -> np.ndarray:
        """Strain from stress resultants, (6, 6), body frame: the inverse of the stiffness."""
        self._need_numbers("compliance")
        return np.linalg.inv(self.stiffness)

    @property
    def _own_compliance(self) -> np.ndarray:
        """The compliance in the section's own axes: beam's axis, then the transverse two."""
        T = to_body(self.axis)
        return T.T @ self.compliance @ T

    @property
    def shear_centre(self) -> np.ndarray:
        """Where a transverse force does not twist: two coordinates along the transverse axes."""
        return shear_centre(self._own_compliance)

    @property
    def tension_centre(self) -> np.ndarray:
        """Where an axial force does not bend: two coordinates along the transverse axes."""
        return tension_centre(self._own_compliance)

    @property
    def mass_centre(self) -> np.ndarray:
        """Centre of mass: two coordinates along the transverse axes."""
        self._need_numbers("mass_centre")
        T = to_body(self.axis)
        return mass_centre(T.T @ self.inertia @ T)

    @property
    def principal_axes(self) -> np.ndarray:
        """Directions of principal bending in the body frame, rows of (2, 3), the stiffest first."""
        directions = principal_bending(self._own_compliance)[1]
        return directions @ section_axes(self.axis)[:, 1:].T

    @property
    def principal_stiffnesses(self) -> np.ndarray:
        """Bending stiffnesses about :attr:`principal_axes`, the other resultants being zero."""
        return principal_bending(self._own_compliance)[0]

    def _need_numbers(self, name: str) -> None:
        if not self.is_constant:
            raise ValueError(f"{name}: the section varies along the beam")

    # --- bars of one isotropic material ------------------------------------------------------------
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
    ) -> Section:
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
    ) -> Section:
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
    ) -> Section:
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
    ) -> Section:
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
    def _ring(cls, outer, inner, shear_factor, axis, material) -> Section:
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


def check_positive_definite(name: str, matrices: np.ndarray) -> None:
    """Raise ``ValueError`` unless all matrices (..., 6, 6) are symmetric positive definite."""
    if not np.all(np.isfinite(matrices)):
        raise ValueError(f"{name} must be finite everywhere along the beam")
    transposed = np.swapaxes(matrices, -1, -2)
    # Round-off of an assembled stiffness is a few units in the last place; 1e-10 is a wrong entry.
    if np.abs(matrices - transposed).max() > 1e-10 * np.abs(matrices).max():
        raise ValueError(f"{name} must be symmetric")
    least = np.linalg.eigvalsh((matrices + transposed) / 2)[..., 0].min()
    if not least > 0:
        raise ValueError(
            f"{name} must be positive definite: its least eigenvalue is {least:.3g} "
            "(a negative or zero density, modulus or dimension?)"
        )


def _matrix(name: str, value):
    if isinstance(value, MatrixAlong):
        check_positive_definite(name, value.matrices)
        return value
    if isinstance(value, ufl.core.expr.Expr):
        if value.ufl_shape != (6, 6):
            raise ValueError(f"{name} must have shape (6, 6), not {value.ufl_shape}")
        return value
    try:
        matrix = real_array(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a 6×6 array of numbers or a UFL expression") from None
    if matrix.shape != (6, 6):
        raise ValueError(f"{name} must have shape (6, 6), not {matrix.shape}")
    check_positive_definite(name, matrix)
    return (matrix + matrix.T) / 2


def check_axis(axis) -> int:
    """``axis`` as an int; ``ValueError`` unless it is 0, 1 or 2."""
    if not isinstance(axis, Integral) or isinstance(axis, bool) or axis not in (0, 1, 2):
        raise ValueError(
            f"axis must be 0, 1 or 2 (the material axis along the beam), not {shown(axis)}"
        )
    return int(axis)


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
