"""The configuration form of a beam: its rod and its motion, of its own fields, and its shape at rest."""

import warnings
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import ufl
from firedrake import Constant, Function, FunctionSpace, TestFunction
from ufl.classes import Expr

from fdgeom.beams.chain import Chain, strain_of
from fdgeom.beams.ends import GivenPose, held_ends, unit_quaternion
from fdgeom.beams.fields import BeamFields
from fdgeom.beams.law import LINEAR, SectionLaw
from fdgeom.beams.network.joints import Place
from fdgeom.beams.rod.cells import Cells
from fdgeom.beams.rod.inertia import Inertia
from fdgeom.beams.rod.loads import AppliedLoad, PartOfRod, along_all, symbols
from fdgeom.beams.rod.rod import STRAINS, Rod
from fdgeom.beams.rod.rod_motion import RodConsistency, RodModel, RodMotion
from fdgeom.beams.rod.variation import check_poses, in_body
from fdgeom.beams.sampling import nodal_lengths
from fdgeom.clock import Time
from fdgeom.data import largest
from fdgeom.forms import check_arguments, check_domains, copy_into
from fdgeom.lie import se3
from fdgeom.line import Numbering, end_node
from fdgeom.messages import format_value
from fdgeom.operations import Assemble, Map, Operation
from fdgeom.operations.dependent import Dependent, private
from fdgeom.operations.interpolate import sampled
from fdgeom.sections.matrices import MatrixAlong, SectionMatrices

#: A stretch or shear at rest that a shape at the arc length does not have, unless cells turn by more than
#: 90 degrees: cells of a circle that turn by 1 rad have 9 % in this measure.
_STRETCHED = 0.3


def rod_of(beam: BeamFields, measure: str | None = None) -> Rod:
    """The rod of a beam: its section, shape at rest, loads, damping, its (or another) measure."""
    if beam.degree != 1:
        raise ValueError("degree: the configuration form has beams of degree 1 only")
    measure = beam.strain_measure if measure is None else measure
    cells = Cells(beam.mesh)
    separate = Inertia.is_separate(beam.section.read_by_beams[1]) and beam.end_weight == 0.5
    matrix = beam.inertia if beam.end_weight == 0.5 else _end_factor(beam) * beam.inertia
    inertia = Inertia(matrix, separate=separate)
    arc = ufl.SpatialCoordinate(beam.mesh)[0]
    part = PartOfRod(placed(cells, partial(_nodes, beam)), arc, inertia, radius_of(beam.section))
    loads = tuple(AppliedLoad(load, part, at_nodes=cells.at_nodes) for load in beam.loads)
    for load in loads:
        g, v, t, virtual, _ = symbols()
        work = load.load.work(part, g, v, t, virtual)
        check_arguments(f"loads: {load.load!r}", work, *beam.functions().values(), beam.state)
        check_domains(f"loads: {load.load!r}", arc * work)
    return Rod(
        cells=cells,
        stiffness=beam.stiffness,
        law=beam.sampled_law,
        inertia=inertia,
        section_inertia=inertia,
        tangent=beam.tangent,
        measure=measure,
        reference=shape_in_measure(beam, measure) if beam.shaped else beam.reference_strain,
        viscosity=beam.viscosity,
        loads=loads,
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


def placed(cells: Cells, nodes: Callable[[str | float], np.ndarray]) -> Callable:
    """The `place` of a rod whose nodes at an end or an arc length are ``nodes(at)``."""

    @cache
    def place(at: str | float | None) -> Expr:
        return along_all(at) if at is None else point_density(cells, nodes(at), f"at {at}")

    return place


def point_density(cells: Cells, nodes: np.ndarray, name: str = "point") -> Function:
    """A CG1 field that is 1/(length that belongs to the node) at some nodes and 0 elsewhere."""
    # `Cells.at_nodes` of it times a density is the sum of the density over those nodes, which are
    # local indices, owned and ghosts.
    space = FunctionSpace(cells.mesh, "CG", 1)
    field = private(Function(space, name=name))
    field.dat.data_wo_with_halos[nodes] = 1 / nodal_lengths(cells.at_nodes, space)[nodes]
    return field


def _end_factor(beam: BeamFields) -> Function:
    """A field that is 1 inside, and gives an end node the weight of ``end_weight`` cells."""
    factor = private(Function(FunctionSpace(beam.mesh, "CG", 1), name="end_weight")).assign(1.0)
    for name in ("left", "right"):
        nodes = end_node(beam.velocity.function_space(), name)
        factor.dat.data_wo_with_halos[nodes] = 2 * beam.end_weight
    return factor


class BeamMotionConsistency(RodConsistency):
    """Keeps the velocity of a motion, whose translation is in the space frame, consistent with that
    of its beam, in the body frame, and updates the beam's strain and momentum.
    """

    is_alone = True

    def __init__(self, motion: "BeamMotion") -> None:
        super().__init__(motion, motion.beam.velocity)
        self._beam = motion.beam
        self.written.forget()  # the velocity has not been read yet

    @cached_property
    def pose_copies(self) -> tuple[list[Operation], list[Operation]]:
        return [], [self._beam.consistency.strain_of_configuration(self._motion.rod)]

    @cached_property
    def after_steps(self) -> list[Operation]:
        """The beam's velocity, strain and momentum."""
        motion, beam = self._motion, self._beam
        to_body = Map(values={beam.velocity: in_body(motion.orientation, motion.v)})
        return [to_body, *beam.consistency.of_configuration(motion.rod)]


class BeamMotionModel(RodModel):
    """The parameters of a beam, with the strain measure of its motion."""

    def parameters(self):
        motion = self._system
        found = beam_parameters(motion.beam)
        return found if motion.measure is None else found | {"strain measure": motion.measure}


class BeamMotion(RodMotion):
    """A beam as the methods in configuration form move it, in its own or another strain measure."""

    # beam: a `Beam`, whose file imports this one.
    def __init__(self, beam: Any, measure: str | None = None) -> None:
        space = beam.velocity.function_space()
        ends = held_ends(beam.ends, lambda name: end_node(space, name))
        #: Its strain measure if that is another than the beam's.
        self.measure = None if measure == beam.strain_measure else measure
        rod = beam.rod if self.measure is None else rod_of(beam, measure)
        fields, holds = (beam.position, beam.orientation), tuple(ends.values())
        super().__init__(rod, *fields, (beam,), (ends,), holds=holds)
        self.beam = beam

    consistency = cached_property(BeamMotionConsistency)

    model = cached_property(BeamMotionModel)

    def reactions_of(self, forces):
        """Moment about the node and force at each held end, in space, two arrays of 3."""
        return super().reactions_of(forces)[0]

    def in_measure(self, measure: str) -> "BeamMotion":
        """The motion with strains, stresses and elastic energy in another strain measure."""
        return BeamMotion(self.beam, measure)

    def functions(self) -> dict[str, Function]:
        ours, theirs = super().functions(), self.beam.functions()
        ours["velocity in space"] = ours.pop("velocity")
        return {**theirs, **ours}


# --- the stress-free shape in space ----------------------------------------------------------------
def set_shape(beam: BeamFields, chain: Chain, shape) -> None:
    """Put a beam into its stress-free shape in space, with its strain and its reference strain."""
    if not isinstance(shape, list | tuple) or len(shape) != 2:
        raise TypeError("reference_shape must be a pair (position, orientation) of UFL expressions")
    # The reference strain is the one from which `chain` makes the shape, and follows the shape; for
    # the rod, `shape_in_measure` gives it in a strain measure.
    names, fields, pose = ("position", "orientation"), (beam.position, beam.orientation), []
    for name, value, field in zip(names, shape, fields, strict=True):
        (size,) = field.ufl_shape
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
        if name == "orientation":
            value = unit_quaternion("reference_shape: the orientation", value)
        space, check = field.function_space(), _finite_shape(name)
        pose.append(sampled(name, value, space, check=check, private=True))
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
    _warn_of_stretch(beam)


def _warn_of_stretch(beam: BeamFields) -> None:
    """Warn of a stress-free shape that is stretched or sheared against the mesh."""
    strain = largest(beam.comm, beam.reference_strain.dat.data_ro[:, 3:])
    if strain > _STRETCHED:
        warnings.warn(
            "reference_shape: the beam without stress is stretched or sheared against its mesh by "
            f"{strain:.0%}: the positions should be those at the arc length of the mesh, and the "
            "orientation should turn the axis of the section along the curve",
            stacklevel=4,
        )


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


# --- parameters of a beam as stored in a checkpoint ----------------------------------------------------
def beam_parameters(beam: BeamFields) -> dict[str, object]:
    """Section, ends, loads, damping, shape at rest and discretization."""
    section = beam.section
    left, right = beam.ends
    return {
        **({} if beam.law is LINEAR else {"law": _law(beam.law)}),
        "section stiffness": _matrix(section.stiffness),
        "section inertia": _matrix(section.inertia),
        "axis": section.axis,
        "left end": _end(left.kind),
        "right end": _end(right.kind),
        "loads": parameters_of_loads(beam.rod.loads) if beam.loads else [],
        "damping": beam.damping,
        "shape at rest": beam.reference_strain,
        "strain measure": beam.strain_measure,
        "degree": beam.degree,
        "end weight": beam.end_weight,
    }


def parameters_of_loads(loads: Sequence[AppliedLoad]) -> list[dict]:
    """Loads by their attributes, and by the expressions of their work and potential."""
    g, v, t, virtual, _ = symbols()
    return [
        with_kind(applied.load)
        | {
            "work": applied.density("work", g, v, t, virtual),
            "potential": applied.density("potential", g, t),
        }
        for applied in loads
    ]


def _law(law: SectionLaw) -> dict[str, object]:
    at = [private(Constant(np.zeros(shape))) for shape in ((6,), (6, 6))]
    return with_kind(law) | {"energy": law.energy(*at), "stress": law.stress(*at)}


def _end(kind):
    """The kind of an end, with the expressions of a given motion."""
    t = Time()
    if isinstance(kind, GivenPose):
        return {
            "kind": "GivenPose",
            **dict(zip(("position", "orientation"), kind.pose(t), strict=True)),
        }
    return {"velocity": kind(t)} if callable(kind) else kind


def _matrix(given):
    return vars(given) if isinstance(given, MatrixAlong) else given


def with_kind(thing) -> dict[str, object]:
    """The class of a thing and its public attributes."""
    public = {k: v for k, v in vars(thing).items() if not k.startswith("_")}
    return {"kind": type(thing).__name__, **public}
