"""What a beam shows of itself: its momenta in space, and the fields worth drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ufl
from ufl.classes import Form
from ufl.core.expr import Expr

from fdgeom.lie import quaternion

if TYPE_CHECKING:
    from fdgeom.systems.beam import Beam


def momentum_forms(beam: Beam) -> dict[str, tuple[Form, ...]]:
    """Total linear momentum ∫ R n and angular momentum ∫ R m + x × R n, in space, by component."""
    spin, linear = (quaternion.rotate(beam.orientation, part) for part in _halves(beam.momentum))
    angular = spin + ufl.cross(beam.position, linear)
    return {
        "linear_momentum": tuple(beam.at_nodes(linear[k]) for k in range(3)),
        "angular_momentum": tuple(beam.at_nodes(angular[k]) for k in range(3)),
    }


def output_fields(beam: Beam) -> dict[str, Expr]:
    """Position and directors in space; strain, stress resultants and momentum in the body frame."""
    axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    directors = {
        f"director{k + 1}": quaternion.rotate(beam.orientation, ufl.as_vector(axis))
        for k, axis in enumerate(axes)
    }
    curvature, stretch = _halves(beam.strain)
    moment, force = _halves(beam.stress())
    angular, linear = _halves(beam.momentum)
    return {
        "position": beam.position,
        **directors,
        "curvature": curvature,
        "stretch": stretch,
        "moment": moment,
        "force": force,
        "angular_momentum": angular,
        "linear_momentum": linear,
    }


def _halves(f: Expr) -> tuple[Expr, Expr]:
    """The rotational and the translational half of a vector of 6."""
    return tuple(ufl.as_vector([f[start + k] for k in range(3)]) for start in (0, 3))
