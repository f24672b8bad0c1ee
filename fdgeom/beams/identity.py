"""What beams and assemblies are made of, as a checkpoint says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fdgeom.beams.network.places import Ground

if TYPE_CHECKING:
    from fdgeom.beams.beam import Beam
    from fdgeom.beams.network.assembly import Assembly


def beam_parameters(beam: Beam) -> dict[str, object]:
    """Section, ends, loads, damping, shape at rest and discretization."""
    section = beam.section
    left, right = beam.ends
    return {
        "section stiffness": _numbers(section.stiffness, beam.stiffness),
        "section inertia": _numbers(section.inertia, beam.inertia),
        "axis": section.axis,
        "left end": left.kind,
        "right end": right.kind,
        "loads": [_with_kind(load) for load in beam.loads],
        "damping": beam.damping,
        "shape at rest": beam.reference_strain,
        "strain measure": beam.strain_measure,
        "degree": beam.degree,
        "end weight": beam.end_weight,
    }


def assembly_parameters(assembly: Assembly) -> dict[str, object]:
    """Its beams, joints, bodies and common loads."""
    beams = list(assembly.beams)

    def where(place) -> str:
        return (
            "ground" if isinstance(place, Ground) else f"{place} of beam {beams.index(place.beam)}"
        )

    joints = () if assembly.joints is None else assembly.joints.joints
    found = {
        f"{name} of beam {k}": value
        for k, beam in enumerate(beams)
        for name, value in beam_parameters(beam).items()
    }
    found |= {
        f"joint {k}": _with_kind(j) | {"first": where(j.first), "second": where(j.second)}
        for k, j in enumerate(joints)
    }
    found |= {
        f"body {k}": {"at": where(body.at), "inertia": np.array(body.matrix)}
        for k, body in enumerate(assembly.bodies)
    }
    return found | {"gravity": [_with_kind(load) for load in assembly.common_loads]}


def _numbers(given, sampled):
    """A matrix of numbers as it was given, else what it is at the nodes."""
    return given if isinstance(given, np.ndarray) else sampled


def _with_kind(thing) -> dict[str, object]:
    public = {k: v for k, v in vars(thing).items() if not k.startswith("_")}
    return {"kind": type(thing).__name__, **public}
