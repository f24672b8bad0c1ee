"""Output of beams and networks of rods: total momenta, and fields by name for drawing."""

from collections.abc import Callable

import numpy as np
import ufl
from firedrake import Form, Function
from ufl.core.expr import Expr

from fdgeom.lie import halves, quaternion
from fdgeom.systems.system import System


class RodSystem(System):
    """Base class of beams and networks of rods: total momenta in space, and what is drawn."""

    position: Function
    orientation: Function

    def linear_momentum(self) -> np.ndarray:
        """Total linear momentum in space, shape (3,): ∫ R n of the momentum (m, n)."""
        return self._momentum_named("linear_momentum")

    def angular_momentum(self) -> np.ndarray:
        """Total angular momentum about the origin, in space, shape (3,): ∫ R m + x × R n."""
        return self._momentum_named("angular_momentum")

    def equations(self) -> dict[str, Form | Expr]:
        """None beside those of the class."""
        return {}

    def output_coordinates(self) -> Function:
        return self.position

    def output_orientation(self) -> Function:
        return self.orientation


def total_momenta(
    at_nodes: Callable[[Expr], Form], position: Expr, spin: Expr, linear: Expr
) -> dict[str, tuple[Form, ...]]:
    """Linear and angular momentum by component, from those about the nodes per length, in space."""
    angular = spin + ufl.cross(position, linear)
    return {
        "linear_momentum": tuple(at_nodes(linear[k]) for k in range(3)),
        "angular_momentum": tuple(at_nodes(angular[k]) for k in range(3)),
    }


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
