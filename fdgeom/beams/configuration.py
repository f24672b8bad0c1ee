"""The configuration form of a beam: its rod, made of the beam's own fields."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
import ufl
from firedrake import Constant, Function, FunctionSpace, TensorFunctionSpace, TestFunction, assemble
from mpi4py import MPI

from fdgeom.beams.bracket_loads import check_forcing
from fdgeom.beams.rod.cells import Cells
from fdgeom.beams.rod.inertia import Inertia
from fdgeom.beams.rod.loads import check_at
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.strains import STRAINS
from fdgeom.beams.rod.user_vectors import unit_quaternion
from fdgeom.forms import copy_into
from fdgeom.lie import se3
from fdgeom.line import end_node
from fdgeom.real import real_array
from fdgeom.solvers.derived import Derived, collectively, sampled
from fdgeom.words import shown

if TYPE_CHECKING:
    from fdgeom.beams.beam import Beam


def rod_of(beam: Beam) -> Rod:
    """The rod of a beam, with the beam's section, shape at rest, loads and damping.

    Raises
    ------
    ValueError
        If the beam is not of degree 1, or a load acts at a place that it does not have.
    """
    if beam.degree != 1:
        raise ValueError("degree: the configuration form has beams of degree 1 only")
    cells = Cells(beam.mesh)
    densities: dict = {None: ufl.as_ufl(1.0)}

    def place(at: str | float | None):
        if at not in densities:
            densities[at] = point_density(cells, _nodes(beam, at), f"at {at}")
        return densities[at]

    separate = Inertia.is_separate(beam.section.inertia) and beam.end_weight == 0.5
    inertia = beam.inertia
    if beam.end_weight != 0.5:
        inertia = _end_factor(beam) * inertia
    return Rod(
        cells,
        stiffness=beam.stiffness,
        inertia=Inertia(inertia, separate=separate),
        tangent=beam.tangent,
        strain=beam.strain_measure,
        reference=beam.shape_strain if beam.shape_strain is not None else beam.reference_strain,
        viscosity=viscosity_of(beam.damping, beam),
        loads=beam.loads,
        place=place,
        time=beam.time,
    )


def _nodes(beam: Beam, at: str | float) -> np.ndarray:
    """The node of an end, or at an arc length: its local index, if this rank has it."""
    space = beam.velocity.function_space()
    check_at(at)
    if isinstance(at, str):
        return end_node(space, at)
    scalar = FunctionSpace(beam.mesh, "CG", 1)
    arc = Function(scalar).interpolate(ufl.SpatialCoordinate(beam.mesh)[0])
    distance = np.abs(arc.dat.data_ro_with_halos - at)
    nearest = beam.comm.allreduce(distance.min(initial=np.inf), op=MPI.MIN)
    length = beam.comm.allreduce(np.abs(arc.dat.data_ro).max(initial=0.0), op=MPI.MAX)
    if nearest > 1e-9 * length:
        raise ValueError(f"at: the mesh has no node at {at!r}; the nearest is {nearest:.3g} away")
    return np.flatnonzero(distance <= 1e-9 * length)


def check_places(beam: Beam) -> None:
    """Raise ``ValueError`` if a load acts at an arc length where the beam has no node."""
    for load in beam.loads:
        if getattr(load, "at", None) is not None:
            _nodes(beam, load.at)


def set_shape(beam: Beam, shape) -> None:
    """Put a beam into its stress-free shape in space.

    ``beam.reference_strain``, for the strain–momentum steppers, becomes the one from which
    `Beam.reconstruct` makes that shape, and follows it. ``beam.shape_strain``, for degree 1, is the
    same in the beam's measure.
    """
    if not isinstance(shape, list | tuple) or len(shape) != 2:
        raise TypeError("reference_shape must be a pair (position, orientation) of UFL expressions")
    expressions = []
    for name, value, size in zip(("position", "orientation"), shape, (3, 4), strict=True):
        try:
            value = ufl.as_vector(list(value)) if isinstance(value, list | tuple) else value
            value = ufl.as_ufl(value)
        except (TypeError, ValueError):
            raise TypeError(
                f"reference_shape: the {name} must be a UFL vector of {size}, not {shown(value)}"
            ) from None
        if value.ufl_shape != (size,):
            raise ValueError(
                f"reference_shape: the {name} must be a vector of {size}, not {value.ufl_shape}"
            )
        expressions.append(value)
    turn = unit_quaternion("reference_shape: the orientation", expressions[1])
    pose = []
    for name, e, f in (
        ("position", expressions[0], beam.position),
        ("orientation", turn, beam.orientation),
    ):
        pose.append(sampled(name, e, f.function_space(), check=_finite_shape(name), private=True))
    rest = beam.reference_strain
    Derived([rest], pose, lambda: beam.chain.put_strain(*pose, rest))
    for target, source in zip((beam.position, beam.orientation), pose, strict=True):
        copy_into(target, source)
    beam.project()
    if beam.degree == 1:
        check_poses(beam)
        beam.shape_strain = shape_in_measure(beam, beam.strain_measure)


def shape_in_measure(beam: Beam, measure: str) -> Function:
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


def check_poses(beam: Beam) -> None:
    """Raise ``ValueError`` unless the quaternions are of length 1 and neighbours on one side."""
    q = beam.orientation.dat.data_ro_with_halos
    pairs = q[beam.orientation.function_space().cell_node_map().values]
    length = np.abs((q**2).sum(axis=1) - 1).max(initial=0.0)
    side = (pairs[:, 0] * pairs[:, 1]).sum(axis=1).min(initial=1.0)
    # Methods keep the length to round-off; half that of a quaternion's square, so that NaN fails.
    bad = not (length < 1e-8 and np.all(np.isfinite(beam.position.dat.data_ro)))
    if beam.comm.allreduce(int(bad)):
        raise ValueError("orientation must hold unit quaternions, and position finite numbers")
    if beam.comm.allreduce(int(not side > 0)):
        raise ValueError(
            "orientation: neighbouring nodes differ by half a turn or more, or by the sign of their "
            "quaternions; refine the mesh, or give them signs that do not jump"
        )


def check_for_bracket(beam: Beam) -> None:
    """Raise ``ValueError`` where a beam has what the steppers on strain and momentum do not move."""
    if beam.damping is not None:
        raise ValueError(
            "damping: the steppers on strain and momentum move a beam without it (their bracket is "
            "antisymmetric); take a method in configuration form, such as GeneralizedAlpha"
        )
    check_forcing(beam)


def point_density(cells: Cells, nodes: np.ndarray, name: str = "point") -> Function:
    """A CG1 field that is 1/(length that belongs to the node) at some nodes and 0 elsewhere.

    `Cells.at_nodes` of it times a density is the sum of the density over those nodes.

    Parameters
    ----------
    nodes : numpy.ndarray of int
        Local indices, owned and ghosts.
    """
    space = FunctionSpace(cells.mesh, "CG", 1)
    weights = assemble(cells.at_nodes(TestFunction(space))).dat.data_ro_with_halos
    field = Function(space, name=name)
    field.dat.data_wo_with_halos[nodes] = 1 / weights[nodes]
    return field


def viscosity_of(damping, beam: Beam):
    """Kelvin–Voigt viscosity (6×6) from ``damping``: None, a time, or a matrix.

    Raises
    ------
    TypeError, ValueError
        If a time is negative, or a matrix is not symmetric positive semidefinite.
    """
    if damping is None:
        return None
    if isinstance(damping, Real) and not isinstance(damping, bool):
        if not (np.isfinite(damping) and damping >= 0):
            raise ValueError(f"damping must be a time that is not negative, not {damping!r}")
        return Constant(float(damping)) * beam.stiffness
    if not isinstance(damping, ufl.core.expr.Expr):
        try:
            damping = real_array(damping)
        except (TypeError, ValueError):
            raise TypeError(
                f"damping must be a time or a 6×6 matrix of numbers, not {shown(damping)}"
            ) from None
    shape = damping.ufl_shape if isinstance(damping, ufl.core.expr.Expr) else damping.shape
    if shape != (6, 6):
        raise ValueError(f"damping must be a time or a 6×6 matrix, not of shape {shape}")
    space = TensorFunctionSpace(beam.mesh, "DG", 0, shape=(6, 6))
    if isinstance(damping, ufl.core.expr.Expr):
        return sampled("damping", damping, space, check=_check_damping, private=True)
    collectively(beam.comm, lambda: _check_damping(damping[None]))
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


def _end_factor(beam: Beam) -> Function:
    """1 inside, and what makes an end node weigh ``end_weight`` cells."""
    factor = Function(FunctionSpace(beam.mesh, "CG", 1), name="end_weight").assign(1.0)
    for name in ("left", "right"):
        nodes = end_node(beam.velocity.function_space(), name)
        factor.dat.data_wo_with_halos[nodes] = 2 * beam.end_weight
    return factor
