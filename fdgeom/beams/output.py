"""Output of a beam: its momenta in space, and the fields worth drawing."""

import ufl
from ufl.classes import Expr, Form

from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.output import shown
from fdgeom.lie import halves, quaternion


def momentum_forms(beam: BeamFields) -> dict[str, tuple[Form, ...]]:
    """Total linear momentum ∫ R n and angular momentum ∫ R m + x × R n, in space, by component."""
    spin, linear = (quaternion.rotate(beam.orientation, part) for part in halves(beam.momentum))
    angular = spin + ufl.cross(beam.position, linear)
    return {
        "linear_momentum": tuple(beam.at_nodes(linear[k]) for k in range(3)),
        "angular_momentum": tuple(beam.at_nodes(angular[k]) for k in range(3)),
    }


def output_fields(beam: BeamFields) -> dict[str, Expr]:
    """Fields worth drawing, as :func:`fdgeom.beams.rod.output.shown` names them."""
    pose = beam.position, beam.orientation
    return shown(pose, beam.strain, beam.stress(), beam.momentum, beam.velocity)
