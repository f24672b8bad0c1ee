"""The configuration form of a beam: its rod, made of the beam's own fields."""

from numbers import Real

import numpy as np
import ufl
from firedrake import Constant, Function, FunctionSpace, TensorFunctionSpace, TestFunction, assemble
from mpi4py import MPI
from ufl.classes import Expr

from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.body_load import AppliedLoad, PartOfRod
from fdgeom.beams.rod.cells import Cells
from fdgeom.beams.rod.inertia import Inertia
from fdgeom.beams.rod.loads import check_at
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.shape_at_rest import shape_in_measure
from fdgeom.line import coordinates_of, end_node
from fdgeom.operations.dependent import private, sampled
from fdgeom.sections.matrices import SectionMatrices
from fdgeom.taping import refuse_recorded
from fdgeom.validation import everywhere, number, real_array


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
        viscosity=viscosity_of(beam),
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
    space = beam.velocity.function_space()
    check_at(at)
    if isinstance(at, str):
        return end_node(space, at)
    arcs = coordinates_of(FunctionSpace(beam.mesh, "CG", 1))
    distance = np.abs(arcs - at)
    nearest = beam.comm.allreduce(distance.min(initial=np.inf), op=MPI.MIN)
    length = beam.comm.allreduce(np.abs(arcs).max(initial=0.0), op=MPI.MAX)
    if nearest > 1e-9 * length:
        raise ValueError(f"at: the mesh has no node at {at!r}; the nearest is {nearest:.3g} away")
    return np.flatnonzero(distance <= 1e-9 * length)


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


def viscosity_of(beam: BeamFields):
    """Kelvin–Voigt viscosity (6×6) from ``beam.damping``: None, a time, or a matrix."""
    damping = beam.damping
    if damping is None:
        return None
    if not isinstance(damping, Expr):
        refuse_recorded("damping", damping)
    if isinstance(damping, Real) and not isinstance(damping, bool):
        return Constant(number("damping", damping, least=0)) * beam.stiffness
    if not isinstance(damping, Expr):
        damping = real_array("damping", damping, "a time or a 6×6 matrix of numbers")
    shape = damping.ufl_shape if isinstance(damping, Expr) else damping.shape
    if shape != (6, 6):
        raise ValueError(f"damping must be a time or a 6×6 matrix, not of shape {shape}")
    space = TensorFunctionSpace(beam.mesh, "DG", 0, shape=(6, 6))
    if isinstance(damping, Expr):
        return sampled("damping", damping, space, check=_check_damping, private=True)
    everywhere(beam.comm, lambda: _check_damping(damping[None]))
    field = Function(space, name="damping")
    field.dat.data_wo[...] = damping
    return field


def _check_damping(values: np.ndarray) -> None:
    size = np.abs(values).max(initial=0.0)
    skew = np.abs(values - np.swapaxes(values, -1, -2)).max(initial=0.0)
    least = np.linalg.eigvalsh(values).min(initial=0.0) if np.all(np.isfinite(values)) else -np.inf
    # A damping of some strains only is semidefinite, to the round-off of its eigenvalues.
    if not (skew <= 1e-10 * size and least >= -1e-12 * size):
        raise ValueError("damping must be symmetric and positive semidefinite everywhere")


def _end_factor(beam: BeamFields) -> Function:
    """A field that is 1 inside, and gives an end node the weight of ``end_weight`` cells."""
    factor = private(Function(FunctionSpace(beam.mesh, "CG", 1), name="end_weight")).assign(1.0)
    for name in ("left", "right"):
        nodes = end_node(beam.velocity.function_space(), name)
        factor.dat.data_wo_with_halos[nodes] = 2 * beam.end_weight
    return factor
