"""Fields of a beam, and its section, law and reference strain at quadrature points."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import ufl
from firedrake import (
    Constant,
    FiniteElement,
    Function,
    FunctionSpace,
    VectorFunctionSpace,
)
from pyadjoint.tape import annotate_tape
from ufl.classes import Expr, Form

from fdgeom.beams.law import LINEAR, SectionLaw, sampled_law
from fdgeom.beams.rod.loads import BodyLoad, check_loads
from fdgeom.beams.rod.rod import STRAINS
from fdgeom.beams.sampling import (
    mean_at_nodes,
    sample_shape,
    viscosity_of,
    warn_beyond_stations,
)
from fdgeom.clock import Time
from fdgeom.line import check_line, coordinates_of, extent
from fdgeom.measures import cell_length, ends, gauss, gauss_lobatto
from fdgeom.operations.dependent import private
from fdgeom.sections.matrices import MatrixAlong, SectionMatrices, body_matrix, check_inertia
from fdgeom.validation import choice, instance, number

DEGREES = (1, 2, 3, 4)


class BeamFields:
    """Fields and data of a beam, which its chain of nodes, its ends, its loads and its rod read."""

    #: Both ends, with ``name`` ("left", "right") and ``kind``, the support as the user gave it.
    ends: Sequence[Any]

    # The arguments are those of `fdgeom.Beam`; `shaped`: the stress-free shape is given in space,
    # and the reference strain follows it. `tangent` is e, the unit vector of 6 along the axis;
    # `stiffness`, `inertia` and its inverse are 6×6 expressions where the forms need them.
    def __init__(
        self,
        mesh,
        section: SectionMatrices,
        *,
        law: SectionLaw | None,
        degree: int,
        end_weight: float,
        reference_strain,
        loads: BodyLoad | Sequence[BodyLoad],
        damping,
        strain_measure: str,
        shaped: bool,
    ) -> None:
        check_line(mesh)
        instance("section", section, SectionMatrices, "a fdgeom.Section")
        choice("degree", degree, DEGREES)
        self.end_weight = number("end_weight", end_weight, above=0)
        if degree > 1 and end_weight != 0.5:
            raise ValueError("end_weight needs degree=1; leave it out")
        self.mesh, self.comm = mesh, mesh.comm
        self.section, self.degree = section, int(degree)
        #: Number of cells and length of all ranks, for descriptions.
        self._extent = extent(mesh)

        strain_space = _spectral(mesh, "DG", degree - 1, 6)
        momentum_space = _spectral(mesh, "CG", degree, 6)
        self.state = Function(strain_space * momentum_space, name="state")
        self.strain, self.momentum = self.state.subfunctions
        self.strain.rename("strain")
        self.momentum.rename("momentum")
        self.velocity = Function(momentum_space, name="velocity")
        self.position = Function(_spectral(mesh, "CG", degree, 3), name="position")
        self.orientation = Function(_spectral(mesh, "CG", degree, 4), name="orientation")
        self._put_straight()

        self.time = Time()
        self.tangent = private(Constant(np.array([0.0] * 3 + _along(section.axis, 1.0)), name="e"))
        in_cells, at_nodes = (
            V.ufl_element().sub_elements[0] for V in (strain_space, momentum_space)
        )
        stiffness, inertia = section.read_by_beams
        if isinstance(stiffness, MatrixAlong):
            warn_beyond_stations(stiffness.stations, mesh)
        inertia = mean_at_nodes("section.inertia", inertia, mesh, at_nodes)
        of = section.made_of
        section.check_unchanged()
        self.stiffness = body_matrix("section.stiffness", stiffness, mesh, in_cells, of)
        given = "section.inertia", inertia, mesh, at_nodes, of
        self.inertia = body_matrix(*given, check=check_inertia)
        self.compliance_of_inertia = body_matrix(*given, check=check_inertia, inverse=True)
        self.law = LINEAR if law is None else law
        moving = (self.state, *self.functions().values())
        self.sampled_law = sampled_law(self.law, self.stiffness, mesh, in_cells, moving)
        if shaped and reference_strain is not None:
            raise ValueError("give reference_strain or reference_shape, not both")
        self.shaped = shaped
        self.reference_strain = (
            Function(strain_space, name="reference_strain")
            if shaped
            else sample_shape("reference_strain", reference_strain, strain_space, self.time)
        )
        self.loads, self.damping = check_loads(loads), damping
        self.viscosity = viscosity_of(damping, self.stiffness, mesh)
        for name, given in (("loads", self.loads), ("damping", self.viscosity is not None)):
            if degree > 1 and given:
                raise ValueError(f"{name}: beams of degree 2 to 4 take none; use degree=1")
        self.strain_measure = choice("strain_measure", strain_measure, STRAINS)
        self._nodal, self._end = gauss_lobatto(mesh, degree + 1), ends(mesh)
        #: The Gauss points of the strain.
        self._inside = gauss(mesh, degree)

    def _put_straight(self) -> None:
        """Place the beam along its axis, as in the mesh."""
        if annotate_tape():
            # The tape is to know where the values come from.
            arc = ufl.SpatialCoordinate(self.mesh)[0]
            self.position.interpolate(ufl.as_vector(_along(self.section.axis, arc)))
            self.orientation.interpolate(ufl.as_vector([1.0, 0.0, 0.0, 0.0]))
            return
        element = self.position.function_space().ufl_element().sub_elements[0]
        arc = coordinates_of(FunctionSpace(self.mesh, element))
        self.position.dat.data_wo_with_halos[:, self.section.axis] = arc
        self.orientation.dat.data_wo_with_halos[:, 0] = 1.0

    # --- integrals ---------------------------------------------------------------------------------
    def at_nodes(self, integrand: Expr) -> Form:
        """∫ over the nodes: Gauss–Lobatto, plus the weight that ``end_weight`` adds at the ends."""
        form = integrand * self._nodal
        extra = self.end_weight - 0.5
        if extra:
            form += extra * cell_length(self.mesh) * integrand * self._end
        return form

    # --- expressions -------------------------------------------------------------------------------
    def elastic_strain(self, strain: Expr | None = None) -> Expr:
        """γ minus the strain of the stress-free shape, body frame."""
        strain = self.strain if strain is None else strain
        return strain if self.reference_strain is None else strain - self.reference_strain

    def stress(self, strain: Expr | None = None) -> Expr:
        """Stress resultants of the law, a UFL vector of 6: moment, then force, in the body frame.

        ``strain`` is a UFL vector of 6, by default the present strain.
        """
        return self.sampled_law.stress(self.elastic_strain(strain), self.stiffness)

    def functions(self) -> dict[str, Function]:
        """Everything that a step changes, by name."""
        names = ("strain", "momentum", "position", "orientation", "velocity")
        return {name: getattr(self, name) for name in names}


def _spectral(mesh, family: str, degree: int, size: int):
    """Vector space whose nodes are the quadrature points it is collocated with."""
    element = FiniteElement(family, mesh.ufl_cell(), degree, variant="spectral")
    return VectorFunctionSpace(mesh, element, dim=size)


def _along(axis: int, value) -> list:
    return [value if k == axis else 0.0 for k in range(3)]
