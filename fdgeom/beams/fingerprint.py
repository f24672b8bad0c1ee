"""Parameters of a beam as stored in a checkpoint."""

from collections.abc import Sequence

import numpy as np
from firedrake import Constant

from fdgeom.beams.ends import GivenPose
from fdgeom.beams.fields import BeamFields
from fdgeom.beams.law import LINEAR, SectionLaw
from fdgeom.beams.rod.loads import AppliedLoad, symbols
from fdgeom.clock import Time
from fdgeom.operations.dependent import private
from fdgeom.sections.matrices import MatrixAlong


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
