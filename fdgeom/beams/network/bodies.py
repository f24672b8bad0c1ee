"""Rigid bodies at nodes of beams."""

from collections.abc import Sequence

import numpy as np

from fdgeom.beams.network.places import Ground, Place, check_place
from fdgeom.messages import format_value
from fdgeom.systems.motion.rigid_bodies import check_moments
from fdgeom.validation import array, number


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
        mass = number("mass", mass, least=0)
        wanted = "a symmetric 3×3 matrix of finite numbers, or its diagonal"
        given = np.zeros(3) if inertia is None else inertia
        own = array("inertia", given, (3,), (3, 3), wanted=wanted)
        own = np.diag(own) if own.ndim == 1 else own
        if not np.allclose(own, own.T):
            raise ValueError(f"inertia must be {wanted}, not {format_value(inertia)}")
        if np.linalg.eigvalsh(own).min() < -1e-12 * np.abs(own).max():
            raise ValueError("inertia must be positive semidefinite")
        check_moments(own)
        x, y, z = array("offset", offset, (3,))
        hat = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        #: Body momentum of body velocity at the node (6×6, rotation first).
        self.matrix = np.zeros((6, 6))
        self.matrix[:3, :3] = own - mass * hat @ hat
        self.matrix[:3, 3:] = mass * hat
        self.matrix[3:, :3] = -mass * hat
        self.matrix[3:, 3:] = mass * np.eye(3)

    def __repr__(self) -> str:
        return f"<body of mass {self.matrix[5, 5]:g} at {self.at}>"
