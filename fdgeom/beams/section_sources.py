"""Where sections come from besides their matrices: drawings, other programs, files, stations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from firedrake import COMM_WORLD

from fdgeom.sections.along import MatrixAlong, check_stations
from fdgeom.sections.properties import (
    Centres,
    mass_centre,
    shear_centre,
    tension_centre,
    to_body,
)
from fdgeom.sections.table import (
    CONVENTIONS,
    from_convention,
    read_json,
    to_convention,
    write_json,
)

if TYPE_CHECKING:
    from fdgeom.beams.section import Section
    from fdgeom.sections.mesh_section import MeshSection


class SectionSources:
    """Ways to make a `Section` from what is not two matrices, and to write it."""

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
        from fdgeom.sections.mesh_section import MeshSection

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

    def at(self, s: float) -> Section:
        """The section at one place of a beam: itself if it does not vary.

        Raises
        ------
        ValueError
            If it is given by UFL expressions.
        """
        if self.is_constant:
            return self
        return type(self)(*self._matrices_at("at", s), axis=self.axis)

    def centres_at(self, s) -> Centres:
        """Shear, tension and mass centre at places of a beam.

        Parameters
        ----------
        s : float or array_like
            Arc lengths.

        Returns
        -------
        Centres
            ``shear``, ``tension`` and ``mass``: two coordinates each along the transverse axes,
            (2,) or (..., 2). Those of the interpolated matrices, which are rational functions of s
            between two stations, and not straight lines between the centres there.

        Raises
        ------
        ValueError
            If an arc length is not finite, or the section is given by UFL expressions.
        """
        s = np.asarray(s, dtype=float)
        if not np.all(np.isfinite(s)):
            raise ValueError(f"s must be finite arc lengths, not {s}")
        stiffness, inertia = self._matrices_at("centres_at", s)
        T = to_body(self.axis)
        S = T.T @ np.linalg.inv(stiffness) @ T
        centres = shear_centre(S), tension_centre(S), mass_centre(T.T @ inertia @ T)
        return Centres(*(np.broadcast_to(centre, (*s.shape, 2)) for centre in centres))

    def _matrices_at(self, caller: str, s) -> tuple[np.ndarray, np.ndarray]:
        """Stiffness and inertia there, (..., 6, 6); (6, 6) if they are the same everywhere."""
        if self.is_constant:
            return self.stiffness, self.inertia
        if not isinstance(self.stiffness, MatrixAlong):
            raise ValueError(
                f"{caller}: a section given by UFL expressions is known on a mesh only"
            )
        return self.stiffness(s), self.inertia(s)

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

    def to_table(self, convention: str) -> tuple[np.ndarray, np.ndarray]:
        """Stiffness and inertia in the order and axes of another program: see :meth:`from_table`."""
        self._need_numbers("to_table")
        return tuple(
            to_convention(m, convention, self.axis) for m in (self.stiffness, self.inertia)
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write stiffness, inertia and axis as JSON, to the last digit; all stations of some.

        In parallel every rank may call it; rank 0 of the world writes.
        """
        from fdgeom.recording.collective import on_root

        on_root(COMM_WORLD, lambda: write_json(self, path), ValueError, f"path = '{path}'")

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
