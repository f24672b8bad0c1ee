"""Rigid bodies at nodes of beams."""

from collections.abc import Sequence

import numpy as np

from fdgeom.beams.network.places import Ground, Place, check_place
from fdgeom.real import not_negative, real_array
from fdgeom.systems.motion.body_inertia import check_moments
from fdgeom.words import shown


class PointBody:
    """A rigid body fixed to a node of a beam.

    Parameters
    ----------
    at : Place
        The node: ``beam.left``, ``beam.right`` or ``beam.at(s)``.
    mass : float
        Its mass.
    inertia : (3, 3) or (3,) array_like, optional
        Inertia about its centre of mass, in the axes of the node's section: the matrix or its
        diagonal. The default is zero, a point mass.
    offset : array_like of 3
        Vector from the node to the centre of mass, in the axes of the section.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or the inertia is not symmetric and positive
        semidefinite, or a principal moment is larger than the sum of the other two.
    """

    def __init__(
        self,
        at: Place,
        *,
        mass: float,
        inertia=None,
        offset: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        self.at = check_place("at", at)
        if isinstance(at, Ground):
            raise ValueError("at: a body on the ground does not move")
        mass = not_negative("mass", mass)
        own = np.zeros((3, 3)) if inertia is None else _numbers("inertia", inertia)
        own = np.diag(own) if own.shape == (3,) else own
        if own.shape != (3, 3) or not np.all(np.isfinite(own)) or not np.allclose(own, own.T):
            raise ValueError("inertia must be a symmetric 3×3 matrix, or its diagonal")
        if np.linalg.eigvalsh(own).min() < -1e-12 * np.abs(own).max():
            raise ValueError("inertia must be positive semidefinite")
        check_moments(own)
        place = _numbers("offset", offset)
        if place.shape != (3,) or not np.all(np.isfinite(place)):
            raise ValueError(f"offset must be a vector of 3 finite numbers, not {shown(offset)}")
        x, y, z = place
        hat = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        #: Body momentum of body velocity at the node (6×6, rotation first).
        self.matrix = np.zeros((6, 6))
        self.matrix[:3, :3] = own - mass * hat @ hat
        self.matrix[:3, 3:] = mass * hat
        self.matrix[3:, :3] = -mass * hat
        self.matrix[3:, 3:] = mass * np.eye(3)

    def __repr__(self) -> str:
        return f"<body of mass {self.matrix[5, 5]:g} at {self.at}>"


def _numbers(name: str, value) -> np.ndarray:
    try:
        return real_array(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers, not {shown(value)}") from None
