"""Fields of beams and rods by name, for drawing."""

import ufl
from ufl.core.expr import Expr

from fdgeom.lie import halves, quaternion


def shown(pose, strain: Expr, stress: Expr, momentum: Expr, velocity: Expr) -> dict[str, Expr]:
    """Fields of a beam by name, for drawing: position, directors and velocities in space, strain,
    stress, momentum per length and ``body_velocity`` (angular, linear) in the body frame.
    """
    position, orientation = pose
    axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    directors = {
        f"director{k + 1}": quaternion.rotate(orientation, ufl.as_vector(axis))
        for k, axis in enumerate(axes)
    }
    curvature, stretch = halves(strain, "strain")
    moment, force = halves(stress, "stress")
    angular, linear = halves(momentum, "momentum")
    spin, drift = (quaternion.rotate(orientation, part) for part in halves(velocity, "velocity"))
    return {
        "position": position,
        **directors,
        "curvature": curvature,
        "stretch": stretch,
        "moment": moment,
        "force": force,
        "angular_momentum": angular,
        "linear_momentum": linear,
        "velocity": drift,
        "angular_velocity": spin,
        "body_velocity": velocity,
    }
