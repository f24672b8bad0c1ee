"""The stress-free shape of a beam, given by the poses of its nodes in space."""

import numpy as np
import ufl
from firedrake import Function, TestFunction

from fdgeom.beams.chain import Chain, strain_of
from fdgeom.beams.ends import unit_quaternion
from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.cells import Cells
from fdgeom.beams.rod.strains import STRAINS
from fdgeom.beams.rod.variation import check_poses
from fdgeom.forms import copy_into
from fdgeom.lie import se3
from fdgeom.messages import format_value
from fdgeom.operations import Assemble
from fdgeom.operations.dependent import Dependent, sampled


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
