"""Sections drawn as a mesh: full 6×6 matrices, their derivatives, and the recovery of stress."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import ufl
from firedrake import Function, FunctionSpace, TensorFunctionSpace, VectorFunctionSpace
from pyadjoint.tape import annotate_tape, stop_annotating
from ufl.algorithms import extract_coefficients

from fdgeom import citations
from fdgeom.messages import format_value
from fdgeom.operations import (
    ArrayOperation,
    Interpolate,
    Interpolation,
    Operation,
    owned_values,
    up_to_date,
)
from fdgeom.operations.dependent import MadeOnce, Sources, private, read_in
from fdgeom.systems.system import Consistency, Model
from fdgeom.taping import record
from fdgeom.validation import array, choice, instance

from .elasticity import (
    broken_element,
    change_of,
    check_connected,
    check_elasticity,
    check_materials,
    check_mesh,
    from_mandel,
    in_ufl,
    values_at,
)
from .material import AnyMaterial, TsaiWu, VonMises, material_axes, turned
from .matrices import SectionMatrices, centres, check_axis, section_axes, shifted, to_body
from .operators import Operators, strain_vector
from .outline import Tessellation, of_edges
from .saint_venant import MatrixSlopes, SaintVenant, mixed

#: Words for the origin: the centre that each means.
ORIGINS = ("tension", "shear", "mass")
#: Resultants of the six solutions against unit ones: 1e-15 to 1e-10, 1e-7 for very thin walls.
WORST_BALANCE = 1e-6
CHANGED = (
    "the {} of a drawn section have changed since it was made: make it anew, as with "
    "Section.from_mesh(...)"
)


class DrawnSection(SectionMatrices):
    """Section from a plane mesh and its materials; made by :meth:`fdgeom.Section.from_mesh`.

    Parameters
    ----------
    mesh, materials, origin, axis, degree, solver_parameters, options_prefix
        See :meth:`fdgeom.Section.from_mesh`.

    Attributes
    ----------
    mesh : firedrake.MeshGeometry
    materials : dict
        Material by tag of cells, ``{None: material}`` for a single one.
    degree : int
        Degree of the warping.
    area : float
    origin : (2,) ndarray
        Point of the beam's axis, in the mesh's coordinates.
    balance : float
        Largest error of the unit resultants of the six solutions (lengths in radii of gyration), a
        check of the whole computation.
    """

    cites = ("Giavotto1983", "Morandini2010")

    def __init__(
        self,
        mesh,
        materials: AnyMaterial | Mapping[int, AnyMaterial],
        *,
        origin: str | Sequence[float] = (0.0, 0.0),
        axis: int = 0,
        degree: int = 2,
        solver_parameters: dict | None = None,
        options_prefix: str | None = None,
    ) -> None:
        axis = check_axis(axis)
        check_mesh(mesh, degree)
        citations.cite(type(self))
        if isinstance(origin, str):
            choice("origin, if not two numbers,", origin, ORIGINS)
        else:
            origin = array("origin", origin, (2,), wanted="two numbers in the mesh's coordinates")
        self.mesh, self.degree = mesh, degree
        #: Tags, materials and cells.
        self.regions = check_materials(mesh, materials)
        self.materials = self.regions.materials
        check_connected(mesh)

        if degree == 1:
            warnings.warn(
                "degree=1 is much too stiff in bending on coarse meshes; take degree=2",
                stacklevel=5,
            )
        given = self.regions.given()
        if read_in(*given):
            self.made_of = (MadeOnce(CHANGED.format("materials"), *given),)
        self._drawn = MadeOnce(CHANGED.format("mesh's coordinates"), mesh.coordinates)
        # The slope times itself is of degree 2p; curved cells and plies take some more.
        quadrature = 3 * degree
        self._element = element = self.regions.element(quadrature)
        self.regions.check_linear(element)
        #: C, 6×6, at the points of the quadrature.
        self.elasticity = elasticity = self.regions.elasticity(element)
        check_elasticity(elasticity, degree)
        self._operators = op = Operators(
            mesh, degree, elasticity, quadrature, solver_parameters, options_prefix
        )
        C = elasticity.dat.data_ro
        shear = op.moments((C[..., 4, 4] + C[..., 5, 5]) / 4)[3, 3]
        inertia = op.moments(self.regions.density(element))
        self.area, self._mean_shear_modulus = op.area, shear / op.area
        self._solutions = SaintVenant(op)
        self.balance = self._solutions.balance
        if not self.balance < WORST_BALANCE:
            raise RuntimeError(
                f"the six solutions are out of balance by {self.balance:.1g}: walls too thin for "
                "their length, cells too distorted or a solver stopped too early (solver_parameters)"
            )
        # About the centroid so far; from here about the origin.
        S = self._solutions.compliance
        self._inertia, self._given_origin = inertia, origin
        self.origin = self._origin_of(S, inertia)
        #: Strain about the centroid from one about the origin, in the section's own axes.
        self._to_centroid = X = shifted(op.centroid - self.origin)
        inverse, T = np.linalg.inv(X), to_body(axis)
        super().__init__(*self._about(self.origin, S, inertia, axis), axis=axis)
        self.description = f"section of {mesh.comm.allreduce(mesh.cell_set.size)} cells"
        #: Functions of a Real space that hold stiffness and inertia on pyadjoint's tape, if they do.
        self.on_tape: tuple[Function, Function] | None = None
        self.__dict__["compliance"] = T @ inverse @ S @ inverse.T @ T.T

    @cached_property
    def outline(self) -> np.ndarray:
        cut = Tessellation(self.mesh, broken_element(self.mesh, self.degree))
        parts = self.mesh.comm.allgather((cut.places.reshape(-1, 2), cut.outline))
        starts = np.cumsum([0, *(len(points) for points, _ in parts)])
        edges = [own + start for (_, own), start in zip(parts, starts, strict=False)]
        points = np.concatenate([points for points, _ in parts])
        return of_edges(points, np.concatenate(edges)) - (*self.origin, 0)

    @property
    def read_by_beams(self) -> tuple:
        return self.on_tape or super().read_by_beams

    def _check_drawing(self) -> None:
        """Raise ``ValueError`` if materials or mesh have changed; beams read the matrices alone."""
        self.check_unchanged()
        self._drawn.refresh()

    # --- from the centroid to the origin -----------------------------------------------------------
    def _origin_of(self, S: np.ndarray, M: np.ndarray) -> np.ndarray:
        """The origin, from compliance and inertia about the centroid, in the section's own axes."""
        given = self._given_origin
        if isinstance(given, str):
            return self._operators.centroid + getattr(centres(S, M), given)
        return np.array(given)

    def _about(self, origin, S: np.ndarray, M: np.ndarray, axis: int) -> tuple[np.ndarray, ...]:
        """Stiffness and inertia about the origin in the body frame, from S and M."""
        X, T = shifted(self._operators.centroid - origin), to_body(axis)
        return T @ X.T @ np.linalg.inv(S) @ X @ T.T, T @ X.T @ M @ X @ T.T

    def slopes(self, *, origin_fixed: bool = False) -> MatrixSlopes:
        """Derivatives of stiffness and inertia by C and ρ; the origin is fixed, or follows its centre."""

        def about(S: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, ...]:
            origin = self.origin if origin_fixed else self._origin_of(S, M)
            return self._about(origin, S, M, self.axis)

        return MatrixSlopes(self._solutions, self._inertia, about)

    # --- numbers -----------------------------------------------------------------------------------
    @property
    def torsion_constant(self) -> float:
        """Torsional stiffness over the mean shear modulus (against the beam's axis) of the section.

        The stiffness is 1/S of the twist, with free bending and stretch.
        """
        return 1 / (self._own_compliance[0, 0] * self._mean_shear_modulus)

    @property
    def shear_factors(self) -> np.ndarray:
        """Energy shear factors along the two transverse axes: 1/(S·GA), through the shear centre.

        With the mean shear modulus, defined by energy, not by Cowper's mean displacement.
        """
        S = self._own_compliance
        X = shifted(self._centres.shear)
        energies = np.diag(X @ S @ X.T)[4:]
        return 1 / (energies * self._mean_shear_modulus * self.area)

    def derivative(
        self, parameter: str | tuple[str, int], tag: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of stiffness and inertia by a parameter of a material.

        Parameters
        ----------
        parameter : str, or (str, int)
            ``"angle"``, ``"along"``, ``"density"``, ``"youngs_modulus"``, ``"poisson_ratio"``, or
            one of three numbers, such as ``("youngs_moduli", 0)`` for E₁.
        tag : int, optional
            Tag of the cells whose material changes; all cells by default.

        Returns
        -------
        two (6, 6) ndarrays
            In the body frame, with the origin fixed in the mesh's coordinates.

        Raises
        ------
        ValueError
            If no material of these cells has this parameter.

        Notes
        -----
        Twelve more solves with the existing factor: no new forms and no difference quotients.
        """
        self._check_drawing()
        change = change_of(self.regions, parameter, tag, self._element)
        return self.slopes(origin_fixed=True).push(*change)

    def gradient(
        self,
        weights,
        parameters: Sequence[tuple[str | tuple[str, int], int | None]],
        *,
        inertia_weights=None,
    ) -> np.ndarray:
        """Derivatives of a function of stiffness (and inertia) by many parameters at once.

        Parameters
        ----------
        weights : (6, 6) array_like
            Derivative of the function by the stiffness, in the body frame: ``weights[i, j]`` by
            ``stiffness[i, j]``, each entry as if it were independent.
        parameters : sequence of (parameter, tag)
            Each as for :meth:`derivative`; a tag of None means all cells.
        inertia_weights : (6, 6) array_like, optional
            Derivative of the function by the inertia; zero by default.

        Returns
        -------
        ndarray
            One derivative for each parameter, with the origin fixed in the mesh's coordinates.

        Raises
        ------
        TypeError, ValueError
            If an argument is not as described, or no material of these cells has a parameter.

        Notes
        -----
        One adjoint pass (`fdgeom.sections.saint_venant`): six solves with the existing factor for any
        number of parameters; :meth:`derivative` needs twelve for each.

        Examples
        --------
        The bend-twist coupling by the angles of three plies:

        >>> weights = np.zeros((6, 6))
        >>> weights[0, 1] = 1
        >>> section.gradient(weights, [("angle", tag) for tag in (1, 2, 3)])  # doctest: +SKIP
        """
        self._check_drawing()
        pairs = [] if isinstance(parameters, str) else list(parameters)
        if not pairs or any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in pairs):
            raise ValueError(
                "parameters must be pairs (parameter, tag), such as ('angle', 1) or "
                f"(('youngs_moduli', 0), None), not {format_value(parameters)}"
            )
        changes = [change_of(self.regions, *pair, self._element) for pair in pairs]
        of_inertia = np.zeros((6, 6)) if inertia_weights is None else inertia_weights
        by_elasticity, by_density = self.slopes(origin_fixed=True).pull(
            array("weights", weights, (6, 6)), array("inertia_weights", of_inertia, (6, 6))
        )
        found = [
            np.vdot(by_elasticity, elasticity) + np.vdot(by_density, density)
            for elasticity, density in changes
        ]
        return self.mesh.comm.allreduce(np.array(found))

    # --- fields on the mesh ------------------------------------------------------------------------
    @property
    def element(self):
        """Scalar element of the recovered fields: discontinuous, with nodes at the corners."""
        # Extremes of stress are there.
        return broken_element(self.mesh, self.degree)

    @cached_property
    def _strain(self) -> Interpolation:
        """Mandel's vector of the strain of the operators' fields, in the section's own axes."""
        expression = strain_vector(*self._operators.put(None, None))
        return Interpolation(expression, VectorFunctionSpace(self.mesh, self.element, dim=6))

    @cached_property
    def _elasticity_at_nodes(self) -> np.ndarray:
        return self.regions.elasticity(self.element).dat.data_ro.copy()

    def _strain_vectors(self, resultants) -> np.ndarray:
        """Mandel's vectors (nodes, 6) of the strain under resultants."""
        loads, found, strain = self._unit_loads(resultants), self._solutions, self._strain
        self._operators.put(mixed(loads, found.warping), mixed(loads, found.slope))
        return strain.apply().dat.data_ro.copy()

    def _stress_vectors(self, resultants) -> np.ndarray:
        strain = self._strain_vectors(resultants)
        return np.einsum("nij,nj->ni", self._elasticity_at_nodes, strain)

    def _tensor(self, name: str, vectors: np.ndarray) -> Function:
        """A field (3, 3) in the body frame of Mandel's vectors."""
        field = Function(TensorFunctionSpace(self.mesh, self.element, shape=(3, 3)), name=name)
        own, axes = np.array(from_mandel(vectors.T)), section_axes(self.axis)
        field.dat.data_wo[...] = np.einsum("ai,ijn,bj->nab", axes, own, axes)
        return field

    def _unit_loads(self, resultants) -> np.ndarray:
        """Resultants about the centroid in the section's own axes, from (6,) in the body frame."""
        self._check_drawing()
        wanted = "six numbers (moment, force) in the body frame"
        values = array("resultants", resultants, (6,), wanted=wanted)
        return np.linalg.solve(self._to_centroid.T, to_body(self.axis).T @ values)

    def recover(self, resultants) -> Function:
        """Stress in three dimensions under given resultants.

        Parameters
        ----------
        resultants : (6,) array_like
            Moment and force about the section's origin, in the body frame; such as
            ``beam.stress_at(s)``.

        Returns
        -------
        Function
            Stress (3, 3) in the body frame, discontinuous, of the warping's degree, with nodes at
            the corners of the cells.

        Notes
        -----
        Saint-Venant's field: it is valid one or two widths away from ends, joints and point loads,
        and only further away with strong anisotropy.
        """
        return self._tensor("stress", self._stress_vectors(resultants))

    def recover_strain(self, resultants) -> Function:
        """Strain (3, 3) in three dimensions under given resultants; as :meth:`recover`."""
        return self._tensor("strain", self._strain_vectors(resultants))

    def recover_warping(self, resultants) -> Function:
        """Displacement (3) of the section beside its rigid motion, body frame, continuous."""
        loads, field = self._unit_loads(resultants), Function(self._operators.space, name="warping")
        own, axes = mixed(loads, self._solutions.warping), section_axes(self.axis)
        field.dat.data_wo[...] = own @ axes.T
        return field

    def failure_index(self, resultants, criteria) -> Function:
        """Failure index of the materials under given resultants: 1 where one fails.

        Parameters
        ----------
        resultants : (6,) array_like
            As for :meth:`recover`.
        criteria : VonMises, TsaiWu, or dict
            One criterion for the whole section, or by tag of cells; the index is 0 without a
            criterion. The stress is in the axes of the ply.

        Returns
        -------
        Function
            Scalar, discontinuous, with nodes at the corners of the cells.
        """
        return self._failure(resultants, criteria, "index", 0.0)

    def reserve_factor(self, resultants, criteria) -> Function:
        """Factor by which the resultants can grow until each point fails; as :meth:`failure_index`.

        Infinite without a criterion or stress.
        """
        return self._failure(resultants, criteria, "reserve", np.inf)

    def _failure(self, resultants, criteria, quantity: str, start: float) -> Function:
        """A quantity of the criteria by tag, from the stress in the axes of each material."""
        given = dict(criteria) if isinstance(criteria, Mapping) else {None: criteria}
        for tag, criterion in given.items():
            instance("criteria", criterion, VonMises | TsaiWu, "fdgeom.VonMises or fdgeom.TsaiWu")
            if tag is not None and tag not in self.materials:
                raise ValueError(f"criteria: no material has the tag {tag!r}")
        space = FunctionSpace(self.mesh, self.element)
        field, vectors = Function(space, name=quantity), self._stress_vectors(resultants)
        values = field.dat.data_wo
        values[...] = start
        for tag, material, nodes in self.regions.nodes(space):
            criterion = given.get(tag, given.get(None))
            if criterion is None:
                continue
            own = from_mandel(np.moveaxis(vectors[nodes], -1, 0))
            axes = material_axes(material, np.eye(3), values_at(space, nodes))
            values[nodes] = getattr(criterion, quantity)(turned(own, axes))
        return field


# --- on pyadjoint's tape ------------------------------------------------------------------------------
class TapedSection(ArrayOperation):
    """Stiffness and inertia of a drawn section as an operation on C and ρ at its points."""

    # Replays make a new section by ``make()``; the user's section is not changed.
    # It is also the system of its block on the tape, whose functions are the two matrices.
    def __init__(self, section: DrawnSection, make: Callable[[], DrawnSection]) -> None:
        self._section, self._make = section, make
        elasticity = section.elasticity.function_space()
        scalar = FunctionSpace(section.mesh, elasticity.ufl_element().sub_elements[0])
        # For tangents and cotangents alone.
        self._points = [private(Function(space)) for space in (elasticity, scalar)]
        matrix = TensorFunctionSpace(section.mesh, "R", 0, shape=(6, 6))
        self.matrices = tuple(
            Function(matrix, name=f"section {name}") for name in ("stiffness", "inertia")
        )
        super().__init__(self._points, self.matrices)
        #: C and ρ of each material at the points.
        self.updates = list(self._updates(scalar))
        self._read = Sources(*(update.expression for update in self.updates))
        self._read.take()

    def _updates(self, scalar) -> Iterator[Interpolate]:
        for _, material, nodes in self._section.regions.nodes(scalar):
            own = np.zeros(scalar.dof_dset.size, dtype=bool)
            own[nodes] = True
            values = in_ufl(material), ufl.as_ufl(material.density)
            for field, value in zip(self._points, values, strict=True):
                if extract_coefficients(value):
                    yield Interpolate(expression=value, target=field, rows=own, adds=True)

    def run(self) -> None:
        section = self._present()
        for f, values in zip(self.matrices, (section.stiffness, section.inertia), strict=True):
            f.dat.data_wo[...] = values.reshape(f.dat.data_ro.shape)

    def _present(self) -> DrawnSection:
        """The section of the present materials."""
        if self._read.changed():
            with stop_annotating():
                self._section = self._make()
            self._read.take()
        return self._section

    def tangents(self, dots):
        found = self._present().slopes().push(*owned_values(dots))
        return [m.reshape(f.dat.data_ro.shape) for m, f in zip(found, self.matrices, strict=True)]

    def cotangents(self, bars):
        return self._present().slopes().pull(*(bar.reshape(6, 6) for bar in bars))

    def cotangent_rates(self, bars, dots):
        bars = [bar.reshape(6, 6) for bar in bars]
        return self._present().slopes().pull_rates(bars, *owned_values(dots))

    # --- as the system of its block --------------------------------------------------------------
    def functions(self) -> dict[str, Function]:
        """The two matrices."""
        return {f.name(): f for f in self.matrices}

    model = cached_property(Model)
    #: Nobody sets the matrices.
    consistency = cached_property(Consistency)

    def operations(self) -> list[Operation]:
        """The matrices from the materials."""
        return [*map(up_to_date, self.updates), self]


def made_on_tape(make: Callable[[], Any]) -> Any:
    """Make a section, and record it on the working tape if its materials contain Functions."""
    with stop_annotating():
        section = make()
    if not annotate_tape():
        return section
    with stop_annotating():
        taped = TapedSection(section, make)
    if taped.updates:
        record("Section.from_mesh", taped.run, taped.operations, taped)
        section.on_tape = taped.matrices
    return section
