"""The configuration form of a beam: its rod, made of the beam's own fields."""

import numpy as np
import ufl
from firedrake import Constant, Function, FunctionSpace, TestFunction, assemble
from ufl.classes import Expr

from fdgeom.beams.fields import BeamFields
from fdgeom.beams.network.places import Place
from fdgeom.beams.rod.body_load import AppliedLoad, PartOfRod
from fdgeom.beams.rod.cells import Cells
from fdgeom.beams.rod.inertia import Inertia
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.shape_at_rest import shape_in_measure
from fdgeom.line import Numbering, end_node
from fdgeom.operations.dependent import private
from fdgeom.sections.matrices import SectionMatrices


def rod_of(beam: BeamFields, measure: str | None = None) -> Rod:
    """The rod of a beam: its section, shape at rest, loads, damping, its (or another) measure."""
    if beam.degree != 1:
        raise ValueError("degree: the configuration form has beams of degree 1 only")
    measure = beam.strain_measure if measure is None else measure
    cells = Cells(beam.mesh)
    densities: dict = {None: ufl.as_ufl(1.0)}

    def place(at: str | float | None):
        if at not in densities:
            densities[at] = point_density(cells, _nodes(beam, at), f"at {at}")
        return densities[at]

    separate = Inertia.is_separate(beam.section.read_by_beams[1]) and beam.end_weight == 0.5
    matrix = beam.inertia if beam.end_weight == 0.5 else _end_factor(beam) * beam.inertia
    inertia = Inertia(matrix, separate=separate)
    arc = ufl.SpatialCoordinate(beam.mesh)[0]
    part = PartOfRod(place, arc, inertia, radius_of(beam.section))
    return Rod(
        cells,
        stiffness=beam.stiffness,
        law=beam.sampled_law,
        inertia=inertia,
        tangent=beam.tangent,
        strain=measure,
        reference=shape_in_measure(beam, measure) if beam.shaped else beam.reference_strain,
        viscosity=beam.viscosity,
        loads=[AppliedLoad(load, part) for load in beam.loads],
        part=part,
        time=beam.time,
    )


def radius_of(section: SectionMatrices) -> Expr | None:
    """The radius of a round section as forms read it."""
    if section.radius is None or isinstance(section.radius, Expr):
        return section.radius
    return private(Constant(float(section.radius), name="radius"))


def _nodes(beam: BeamFields, at: str | float) -> np.ndarray:
    """The node of an end, or at an arc length: its local index, if this rank has it."""
    numbering = Numbering(beam.velocity.function_space())
    return np.flatnonzero(numbering.nodes == Place(beam, at).index(numbering.coordinates))


def check_places(beam: BeamFields) -> None:
    """Raise ``ValueError`` if a load acts at an arc length where the beam has no node."""
    for load in beam.loads:
        if getattr(load, "at", None) is not None:
            _nodes(beam, load.at)


def point_density(cells: Cells, nodes: np.ndarray, name: str = "point") -> Function:
    """A CG1 field that is 1/(length that belongs to the node) at some nodes and 0 elsewhere."""
    # `Cells.at_nodes` of it times a density is the sum of the density over those nodes, which are
    # local indices, owned and ghosts.
    space = FunctionSpace(cells.mesh, "CG", 1)
    weights = assemble(cells.at_nodes(TestFunction(space))).dat.data_ro_with_halos
    field = private(Function(space, name=name))
    field.dat.data_wo_with_halos[nodes] = 1 / weights[nodes]
    return field


def _end_factor(beam: BeamFields) -> Function:
    """A field that is 1 inside, and gives an end node the weight of ``end_weight`` cells."""
    factor = private(Function(FunctionSpace(beam.mesh, "CG", 1), name="end_weight")).assign(1.0)
    for name in ("left", "right"):
        nodes = end_node(beam.velocity.function_space(), name)
        factor.dat.data_wo_with_halos[nodes] = 2 * beam.end_weight
    return factor
