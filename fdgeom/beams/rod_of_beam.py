"""The configuration form of a beam: its rod, of the beam's own fields, and its shape at rest in space."""

import numpy as np
import ufl
from firedrake import Constant, Function, FunctionSpace, TestFunction, assemble
from ufl.classes import Expr

from fdgeom.beams.chain import Chain, strain_of
from fdgeom.beams.ends import unit_quaternion
from fdgeom.beams.fields import BeamFields
from fdgeom.beams.network.joints import Place
from fdgeom.beams.rod.cells import Cells
from fdgeom.beams.rod.inertia import Inertia
from fdgeom.beams.rod.loads import AppliedLoad, PartOfRod
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.strains import STRAINS
from fdgeom.beams.rod.variation import check_poses
from fdgeom.forms import copy_into
from fdgeom.lie import se3
from fdgeom.line import Numbering, end_node
from fdgeom.messages import format_value
from fdgeom.operations import Assemble
from fdgeom.operations.dependent import Dependent, private
from fdgeom.operations.interpolate import sampled
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


# --- the stress-free shape in space ----------------------------------------------------------------
def set_shape(beam: BeamFields, chain: Chain, shape) -> None:
    """Put a beam into its stress-free shape in space, with its strain and its reference strain."""
    if not isinstance(shape, list | tuple) or len(shape) != 2:
        raise TypeError("reference_shape must be a pair (position, orientation) of UFL expressions")
    expressions = []
    for name, value, size in zip(("position", "orientation"), shape, (3, 4), strict=True):
        try:
            value = ufl.as_vector(list(value)) if isinstance(value, list | tuple) else value
            value = ufl.as_ufl(value)
        except (TypeError, ValueError):
            raise TypeError(
                f"reference_shape: the {name} must be a UFL vector of {size}, not {format_value(value)}"
            ) from None
        if value.ufl_shape != (size,):
            raise ValueError(
                f"reference_shape: the {name} must be a vector of {size}, not {value.ufl_shape}"
            )
        expressions.append(value)
    # The reference strain is the one from which `chain` makes the shape, and follows the shape; for
    # the rod, `shape_in_measure` gives it in a strain measure.
    turn = unit_quaternion("reference_shape: the orientation", expressions[1])
    pose = []
    for name, e, f in (
        ("position", expressions[0], beam.position),
        ("orientation", turn, beam.orientation),
    ):
        pose.append(sampled(name, e, f.function_space(), check=_finite_shape(name), private=True))
    rest = beam.reference_strain
    made = Dependent([rest], pose, lambda: chain.put_strain(*pose, rest))
    if beam.degree == 1:
        cells = Cells(beam.mesh)
        strain = strain_of(cells, *pose) - beam.tangent
        test = TestFunction(rest.function_space())
        work = cells.values(strain, test)
        made.operations = [Assemble(work=work, by={test: rest}, adds=[rest])]
    for target, source in zip((beam.position, beam.orientation), pose, strict=True):
        copy_into(target, source)
    chain.project()
    if beam.degree == 1:
        check_poses(beam.position, beam.orientation)


def shape_in_measure(beam: BeamFields, measure: str) -> Function:
    """The strain in a measure of the cells of the stress-free shape, from ``beam.reference_strain``."""
    length = Cells(beam.mesh).length
    # The second end of a cell in the stress-free shape, seen from the first.
    pose = se3.pose_cay(length * (beam.reference_strain + beam.tangent))
    origin = (ufl.zero(3), ufl.as_vector([1.0, 0.0, 0.0, 0.0]))
    shape = STRAINS[measure](origin, pose, length) - beam.tangent
    return sampled("reference_strain", shape, beam.strain.function_space(), private=True)


def _finite_shape(name: str):
    def check(values: np.ndarray) -> None:
        if not np.all(np.isfinite(values)):
            raise ValueError(
                f"reference_shape: the {name} is not finite everywhere along the beam"
                + (" (a quaternion that is zero?)" if name == "orientation" else "")
            )

    return check
