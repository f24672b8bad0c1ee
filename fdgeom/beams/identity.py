"""What a beam is made of, as a checkpoint says it."""

import numpy as np

from fdgeom.beams.fields import BeamFields
from fdgeom.beams.law import LINEAR


def beam_parameters(beam: BeamFields) -> dict[str, object]:
    """Section, ends, loads, damping, shape at rest and discretization."""
    section = beam.section
    left, right = beam.ends
    return {
        **({} if beam.law is LINEAR else {"law": with_kind(beam.law)}),
        "section stiffness": _numbers(section.stiffness, beam.stiffness),
        "section inertia": _numbers(section.inertia, beam.inertia),
        "axis": section.axis,
        "left end": left.kind,
        "right end": right.kind,
        "loads": [with_kind(load) for load in beam.loads],
        "damping": beam.damping,
        "shape at rest": beam.reference_strain,
        "strain measure": beam.strain_measure,
        "degree": beam.degree,
        "end weight": beam.end_weight,
    }


def _numbers(given, sampled):
    """A matrix of numbers as it was given, else what it is at the nodes."""
    return given if isinstance(given, np.ndarray) else sampled


def with_kind(thing) -> dict[str, object]:
    """The class of a thing and its public attributes."""
    public = {k: v for k, v in vars(thing).items() if not k.startswith("_")}
    return {"kind": type(thing).__name__, **public}
