"""Cross-sections of beams: stiffness and inertia as 6×6 matrices, rotation first."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from fdgeom.beams.bar_shapes import BarShapes
from fdgeom.sections.along import MatrixAlong
from fdgeom.sections.drawn_section import DrawnSection
from fdgeom.sections.matrices import SectionMatrices
from fdgeom.sections.stations import check_stations
from fdgeom.sections.table import CONVENTIONS, from_convention, read_json


class Section(SectionMatrices, BarShapes):
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

    @classmethod
    def from_mesh(
        cls,
        mesh,
        materials,
        *,
        origin: str | Sequence[float] = (0.0, 0.0),
        axis: int = 0,
        degree: int = 2,
        solver_parameters: dict | None = None,
        options_prefix: str | None = None,
    ) -> MeshSection:
        """Section from a drawing: stiffness and inertia of any shape of any elastic materials.

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
            Where the beam's axis pierces the section: coordinates on the mesh, or that centre.
        axis : {0, 1, 2}
            Material axis along the beam.
        degree : {1, 2, 3, 4}
            Of the warping. Degree 1 is much too stiff on coarse meshes.
        solver_parameters, options_prefix
            PETSc options of the solve for the warping. By default GMRES preconditioned by a direct
            factor (MUMPS); ``{"pc_type": "gamg"}`` takes algebraic multigrid.

        Returns
        -------
        MeshSection
            A section with its centres, torsion constant and shear factors, that recovers the stress
            in three dimensions.

        Raises
        ------
        TypeError, ValueError
            If an argument is not as described: a mesh of another kind or in pieces, tags that do
            not cover it, a material that is not positive definite or locks with degree 1.
        RuntimeError
            If the solver gives up, or the solutions are out of balance.

        Notes
        -----
        The compliance is the energy of Saint-Venant's six central solutions
        (`fdgeom.sections.saint_venant`), exact for long prismatic bodies away from their ends.
        Warping that is restrained (Vlasov's seventh strain of open thin walls) is not in it.

        Examples
        --------
        >>> steel = fg.Isotropic(youngs_modulus=2.1e11, poisson_ratio=0.3, density=7850)
        >>> section = fg.Section.from_mesh(RectangleMesh(8, 8, 0.1, 0.1), steel,
        ...                                origin="tension")  # doctest: +SKIP
        """
        return MeshSection(
            mesh,
            materials,
            origin=origin,
            axis=axis,
            degree=degree,
            solver_parameters=solver_parameters,
            options_prefix=options_prefix,
        )

    @classmethod
    def along(cls, stations: Sequence[tuple[float, Section]]) -> Section:
        """Section that changes along the beam, interpolated between some.

        Parameters
        ----------
        stations : sequence of (s, Section)
            Sections at arc lengths of the mesh, all about the beam's axis and with the same
            ``axis``.

        Returns
        -------
        Section
            Stiffness and inertia linear in s between the stations and constant beyond them. Its
            ``at(s)`` is the section at one place, and ``centres_at(s)`` are the centres at many.

        Raises
        ------
        TypeError, ValueError
            If there are fewer than two, at one place, or of different axes.

        Notes
        -----
        Drawings are not interpolated, so there is no stress between stations: take that of a drawn
        section near by under the resultants of the place, ``drawn.recover(beam.stress_at(s))``.
        """
        places, sections = check_stations(stations)
        return cls(
            MatrixAlong(places, np.array([section.stiffness for section in sections])),
            MatrixAlong(places, np.array([section.inertia for section in sections])),
            axis=sections[0].axis,
        )

    @classmethod
    def from_table(cls, stiffness, inertia, *, convention: str, axis: int | None = None) -> Section:
        """Section from the 6×6 matrices of another program.

        Parameters
        ----------
        stiffness, inertia : (6, 6) array_like
            As printed there: forces before moments, momentum before angular momentum.
        convention : {"gxbeam", "vabs", "anba", "becas", "beamdyn"}
            Whose. GXBeam and VABS have x along the beam; ANBA4, BECAS and BeamDyn z.
        axis : {0, 1, 2}, optional
            Material axis along the beam; the same as there by default. Otherwise the axes turn
            cyclically: x, y, z of BeamDyn are axes 1, 2, 0 for ``axis=0``.

        Raises
        ------
        TypeError, ValueError
            If a matrix is not as described, or the convention is unknown.
        """
        if axis is None:
            axis = CONVENTIONS.get(convention, 0)
        return cls(
            from_convention("stiffness", stiffness, convention, axis),
            from_convention("inertia", inertia, convention, axis),
            axis=axis,
        )

    @classmethod
    def load(cls, path: str | os.PathLike) -> Section:
        """A section written by :meth:`save`."""
        data = read_json(path)
        if "stations" in data:
            return cls.along(
                [
                    (at["s"], cls(at["stiffness"], at["inertia"], axis=data["axis"]))
                    for at in data["stations"]
                ]
            )
        return cls(data["stiffness"], data["inertia"], axis=data["axis"])


class MeshSection(DrawnSection, Section):
    """A section made by :meth:`Section.from_mesh`."""
