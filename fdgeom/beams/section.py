"""Cross-sections of beams: stiffness and inertia as 6×6 matrices, rotation first."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ufl.classes import Expr

from fdgeom.messages import brief
from fdgeom.sections import outline
from fdgeom.sections.bars import (
    Number,
    described,
    diagonal,
    rectangle_shear_factor,
    rectangle_torsion_constant,
    ring_shear_factor,
)
from fdgeom.sections.drawn_section import DrawnSection, made_on_tape
from fdgeom.sections.material import AnyMaterial
from fdgeom.sections.matrices import (
    CONVENTIONS,
    FORMAT,
    MatrixAlong,
    SectionMatrices,
    check_axis,
    check_masses,
    check_stations,
    check_table,
    from_convention,
    transverse,
)
from fdgeom.validation import scalar


class Section(SectionMatrices):
    """Cross-section of a beam, from two matrices, from the dimensions of a bar, or drawn as a mesh.

    Use any consistent set of units.

    Parameters
    ----------
    stiffness : (6, 6) array_like or UFL expression
        Stiffness D₂: stress resultants (moment, force) from strain (curvature, stretch), in the
        body frame, rotation first. An expression may contain the mesh coordinate, so that it varies
        along the beam, and Functions and Constants, whose present values beams use.
    inertia : (6, 6) array_like or UFL expression
        Inertia D₁ per length: body momentum (angular, linear) from body velocity.
    axis : {0, 1, 2}
        Material axis along the beam: the unstrained tangent is ``e = (0, E_axis)``.

    Raises
    ------
    ValueError
        If a matrix is not 6×6, finite, symmetric and positive definite (a beam tests expressions at
        its quadrature points when it is made), its rows are in another order, or ``axis`` is not
        0, 1 or 2. A warning reports an inertia that no cross-section has; a beam with added mass
        may have one.

    Notes
    -----
    h = ½⟨μ, D₁⁻¹μ⟩ + ½⟨D₂γ, γ⟩, Chen & Shi (2025), equation (40).
    """

    def __init__(self, stiffness, inertia, *, axis: int = 0) -> None:
        super().__init__(stiffness, inertia, axis=axis)
        if isinstance(self.inertia, np.ndarray):
            check_masses(self.inertia, self.axis)

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
    ) -> "Section":
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

        Raises
        ------
        TypeError, ValueError
            If an argument is not as described, a number not positive, or ν not in (-1, ½].
        """
        axis = check_axis(axis)
        for name, value in (
            ("area", area),
            ("density", density),
            ("youngs_modulus", youngs_modulus),
        ):
            scalar(name, value, above=0)
        moments: Any = second_moments
        if np.ndim(moments) == 0 or len(moments) != 2:
            raise ValueError("second_moments must be two, one for each transverse axis")
        for value in moments:
            scalar("second_moments", value, above=0)
        scalar("poisson_ratio", poisson_ratio, above=-1, most=0.5)
        factors: tuple[Any, ...]
        factors = tuple(np.ravel(shear_factor)) if np.ndim(shear_factor) else (shear_factor,) * 2
        if len(factors) != 2:
            raise ValueError("shear_factor must be one number or two, one for each transverse axis")
        for factor in factors:
            scalar("shear_factor", factor, above=0)
        polar = moments[0] + moments[1]
        torsion = polar if torsion_constant is None else torsion_constant
        scalar("torsion_constant", torsion, above=0)

        shear_modulus = youngs_modulus / 2 / (1 + poisson_ratio)
        # Along the beam, then along the transverse axes; in the order of the axes from here.
        rows = (
            [shear_modulus * torsion, *(youngs_modulus * m for m in moments)],
            [youngs_modulus * area, *(shear_modulus * area * k for k in factors)],
            [polar, *moments],
        )
        order = np.argsort([axis, *transverse(axis)]).tolist()
        bending, stretch, rotation = ([row[k] for k in order] for row in rows)
        stiffness = diagonal(bending + stretch)
        inertia = diagonal([density * m for m in rotation] + [density * area] * 3)
        return cls(stiffness, inertia, axis=axis)

    @classmethod
    def rectangle(
        cls,
        width: Number,
        height: Number,
        *,
        density: Number,
        youngs_modulus: Number,
        poisson_ratio: Number,
        torsion_constant: Number | None = None,
        shear_factor: Number | Sequence[Number] | None = None,
        axis: int = 0,
    ) -> "Section":
        """Rectangle.

        Torsion constant and shear factors are those of Saint-Venant's solutions unless they are
        given (`fdgeom.sections.bars`; in version 0.1.0 they were the polar moment and 1).

        Parameters
        ----------
        width, height : float or UFL expression
            Sides along the two transverse axes, in increasing order: for ``axis=1`` the width lies
            along axis 0 and the height along axis 2.
        density, youngs_modulus, poisson_ratio, torsion_constant, shear_factor, axis
            As for :meth:`from_properties`, with its errors.
        """
        scalar("width", width, above=0)
        scalar("height", height, above=0)
        nu = scalar("poisson_ratio", poisson_ratio, above=-1, most=0.5)
        if torsion_constant is None:
            torsion_constant = rectangle_torsion_constant(width, height)
        factors: Any = shear_factor
        if factors is None:
            sides = (width, height), (height, width)
            factors = [rectangle_shear_factor(*pair, nu) for pair in sides]
        area = width * height
        made = cls.from_properties(
            area=area, second_moments=(area * height**2 / 12, area * width**2 / 12),
            torsion_constant=torsion_constant, density=density, youngs_modulus=youngs_modulus,
            poisson_ratio=nu, shear_factor=factors, axis=axis,
        )  # fmt: skip
        made.description = described("rectangle", width, height)
        made.outline = outline.of_numbers(outline.rectangle, width, height)
        return made

    @classmethod
    def circle(
        cls,
        radius: Number,
        *,
        density: Number,
        youngs_modulus: Number,
        poisson_ratio: Number,
        torsion_constant: Number | None = None,
        shear_factor: Number | Sequence[Number] | None = None,
        axis: int = 0,
    ) -> "Section":
        """Full circle.

        The shear factor is that of Saint-Venant's solution, 6(1+ν)²/(7+14ν+8ν²), unless it is given
        (in version 0.1.0 it was 1).

        Parameters
        ----------
        radius : float or UFL expression
            Radius.
        density, youngs_modulus, poisson_ratio, torsion_constant, shear_factor, axis
            As for :meth:`from_properties`, with its errors.
        """
        scalar("radius", radius, above=0)
        made = cls._ring(
            radius, 0.0, shear_factor, poisson_ratio, torsion_constant=torsion_constant,
            density=density, youngs_modulus=youngs_modulus, axis=axis,
        )  # fmt: skip
        made.description = described("circle of radius", radius)
        made.outline = outline.of_numbers(outline.ellipse, radius, radius)
        return made

    @classmethod
    def tube(
        cls,
        outer_radius: Number,
        inner_radius: Number,
        *,
        density: Number,
        youngs_modulus: Number,
        poisson_ratio: Number,
        torsion_constant: Number | None = None,
        shear_factor: Number | Sequence[Number] | None = None,
        axis: int = 0,
    ) -> "Section":
        """Circular tube.

        The shear factor is that of Saint-Venant's solution unless it is given (in version 0.1.0 it
        was 1).

        Parameters
        ----------
        outer_radius, inner_radius : float or UFL expression
            Radii; ``ValueError`` unless the inner one is smaller.
        density, youngs_modulus, poisson_ratio, torsion_constant, shear_factor, axis
            As for :meth:`from_properties`, with its errors.
        """
        scalar("outer_radius", outer_radius, above=0)
        scalar("inner_radius", inner_radius, above=0)
        numbers = not any(isinstance(r, Expr) for r in (outer_radius, inner_radius))
        if numbers and inner_radius >= outer_radius:
            raise ValueError("inner_radius must be smaller than outer_radius")
        made = cls._ring(
            outer_radius, inner_radius, shear_factor, poisson_ratio,
            torsion_constant=torsion_constant, density=density, youngs_modulus=youngs_modulus,
            axis=axis,
        )  # fmt: skip
        made.description = described("tube of radii", outer_radius, inner_radius)
        made.outline = outline.of_numbers(outline.ring, outer_radius, inner_radius)
        return made

    @classmethod
    def _ring(cls, outer, inner, shear_factor, poisson_ratio, **others) -> "Section":
        nu = scalar("poisson_ratio", poisson_ratio, above=-1, most=0.5)
        if shear_factor is None:
            shear_factor = ring_shear_factor(outer, inner, nu)
        moment, area = math.pi / 4 * (outer**4 - inner**4), math.pi * (outer**2 - inner**2)
        made = cls.from_properties(
            area=area, second_moments=(moment, moment), shear_factor=shear_factor,
            poisson_ratio=nu, **others,
        )  # fmt: skip
        made.radius = outer
        return made

    # --- from drawings, stations, other programs and files -----------------------------------------
    @classmethod
    def from_mesh(
        cls,
        mesh,
        materials: AnyMaterial | Mapping[int, AnyMaterial],
        *,
        origin: str | Sequence[float] = (0.0, 0.0),
        axis: int = 0,
        degree: int = 2,
        solver_parameters: dict | None = None,
        options_prefix: str | None = None,
    ) -> "MeshSection":
        """Section from a mesh: stiffness and inertia of any shape with any elastic materials.

        Parameters
        ----------
        mesh : firedrake.MeshGeometry
            Triangles or quadrilaterals, straight or curved, in a plane whose coordinates are those
            along the two transverse axes, in increasing order of the axes.
        materials : material, or dict
            `Isotropic`, `Orthotropic`, `Ply`, or another object with ``density`` and
            ``stress(strain, frame)`` in UFL (3×3, in the axes of the section: along the beam, then
            the transverse two; the rows of ``frame`` are these axes). One for the whole section, or
            by tag of cells.
        origin : two floats, or "tension", "shear", "mass"
            Point of the section on the beam's axis: coordinates on the mesh, or that centre.
        axis : {0, 1, 2}
            Material axis along the beam.
        degree : {1, 2, 3, 4}
            Degree of the warping. Degree 1 is much too stiff on coarse meshes.
        solver_parameters, options_prefix
            PETSc options of the solve for the warping. The default is GMRES preconditioned by a
            direct factor (MUMPS); ``{"pc_type": "gamg"}`` selects algebraic multigrid.

        Returns
        -------
        MeshSection
            A section with its centres, torsion constant and shear factors, and recovery of the
            stress in three dimensions.

        Raises
        ------
        TypeError, ValueError
            If an argument is not as described: a mesh of another kind or in pieces, tags that do
            not cover it, a material that is not positive definite or locks with degree 1.
        RuntimeError
            If the solver does not converge, or the solutions are out of balance.

        Notes
        -----
        The compliance is the energy of Saint-Venant's six central solutions
        (`fdgeom.sections.saint_venant`), exact for long prismatic bodies away from their ends.
        Restrained warping (Vlasov's seventh strain of open thin walls) is not included.

        While pyadjoint records, a section whose materials contain Functions is a block on its tape,
        and gradients of beams with this section reach these Functions. Numbers read from the
        section itself (``stiffness``, centres, stress) count as given data.

        Functions and Constants in materials are read once, here. If they change later, beams of the
        section and its own stresses and derivatives raise ``ValueError``: make a new section.

        Examples
        --------
        >>> steel = fg.Isotropic(youngs_modulus=2.1e11, poisson_ratio=0.3, density=7850)
        >>> section = fg.Section.from_mesh(RectangleMesh(8, 8, 0.1, 0.1), steel,
        ...                                origin="tension")  # doctest: +SKIP
        """
        if isinstance(materials, Mapping):
            materials = dict(materials)
        options: dict[str, Any] = {
            "solver_parameters": solver_parameters,
            "options_prefix": options_prefix,
        }

        def make() -> MeshSection:
            return MeshSection(mesh, materials, origin=origin, axis=axis, degree=degree, **options)

        return made_on_tape(make)

    @classmethod
    def along(cls, stations: "Sequence[tuple[float, Section]]") -> "Section":
        """Section that changes along the beam, interpolated between stations.

        Parameters
        ----------
        stations : sequence of (s, Section)
            Sections at arc lengths of the mesh, all about the beam's axis and with the same
            ``axis``.

        Returns
        -------
        Section
            Stiffness and inertia are linear in s between the stations and constant beyond them.
            ``at(s)`` returns the section at one place, ``centres_at(s)`` the centres at many.

        Raises
        ------
        TypeError, ValueError
            If there are fewer than two stations, two at one place, or two with different axes.

        Notes
        -----
        Meshes are not interpolated, so stress cannot be recovered between stations: use a drawn
        section near by with the resultants of the place, ``drawn.recover(beam.stress_at(s))``.
        """
        places, sections = check_stations(stations)
        made = cls(
            MatrixAlong(places, np.array([section.stiffness for section in sections])),
            MatrixAlong(places, np.array([section.inertia for section in sections])),
            axis=sections[0].axis,
        )
        made.outline = sections[len(sections) // 2].outline
        made.made_of = tuple(once for section in sections for once in section.made_of)
        made.check_unchanged()
        return made

    @classmethod
    def from_table(
        cls, stiffness, inertia, *, convention: str, axis: int | None = None
    ) -> "Section":
        """Section from the 6×6 matrices of another program.

        Parameters
        ----------
        stiffness, inertia : (6, 6) array_like
            As that program prints them: forces before moments, momentum before angular momentum.
        convention : {"gxbeam", "vabs", "anba", "becas", "beamdyn"}
            Name of the program. GXBeam and VABS have x along the beam; ANBA4, BECAS and BeamDyn z.
        axis : {0, 1, 2}, optional
            Material axis along the beam, by default as in that program. Otherwise the axes turn
            cyclically: x, y, z of BeamDyn are axes 1, 2, 0 for ``axis=0``.

        Raises
        ------
        TypeError, ValueError
            If a matrix is not as described, the convention is unknown, or the moments of inertia
            show another order of the rows or another axis along the beam.
        """
        if axis is None:
            axis = CONVENTIONS.get(convention, 0)
        axis = check_axis(axis)
        stiffness = from_convention("stiffness", stiffness, convention, axis)
        inertia = from_convention("inertia", inertia, convention, axis)
        check_table(inertia, axis)
        return cls(stiffness, inertia, axis=axis)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Section":
        """A section written by :meth:`save`; ``ValueError`` with the path if the file has none."""
        try:
            data = json.loads(Path(path).read_text())
            if data["format"] != FORMAT or data["version"] != 1:
                raise KeyError("format")
            if "stations" in data:
                return cls.along(
                    [
                        (at["s"], cls(at["stiffness"], at["inertia"], axis=data["axis"]))
                        for at in data["stations"]
                    ]
                )
            return cls(data["stiffness"], data["inertia"], axis=data["axis"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                f"path = '{path}' is not a section written by fdgeom: {brief(error)}"
            ) from None


class MeshSection(DrawnSection, Section):
    """A section made by :meth:`Section.from_mesh`."""
