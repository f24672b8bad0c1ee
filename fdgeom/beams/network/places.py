"""Places at nodes of beams, the ground, and rigid bodies at such places."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdgeom.beams.fields import BeamFields
from fdgeom.beams.rod.loads import check_at
from fdgeom.lie import arrays
from fdgeom.messages import format_value
from fdgeom.validation import array, check_moments, number


@dataclass(frozen=True)
class Place:
    """A node of a beam: an end, "left" or "right", or the arc length of a node."""

    beam: BeamFields
    at: str | float

    def __post_init__(self) -> None:
        check_at(self.at)

    def index(self, arcs: np.ndarray) -> int:
        """The index of the node at this place, among increasing arc lengths."""
        if isinstance(self.at, str):
            return 0 if self.at == "left" else len(arcs) - 1
        found = int(np.argmin(np.abs(arcs - self.at)))
        if not abs(arcs[found] - self.at) <= 1e-9 * (arcs[-1] - arcs[0]):
            raise ValueError(
                f"at: the mesh of the beam has no node at {self.at!r}; the nearest is at "
                f"{arcs[found]:.8g}"
            )
        return found

    def __str__(self) -> str:
        return f"the {self.at} end" if isinstance(self.at, str) else f"the node at {self.at:g}"


class Ground:
    """The fixed side of a joint, a single object: ``fdgeom.ground``."""

    def __repr__(self) -> str:
        return "ground"

    def __str__(self) -> str:
        return "the ground"


#: The fixed side of a joint, such as ``Spherical(ground, beam.left)``.
ground = Ground()


def check_place(name: str, place) -> Place | Ground:
    """Return a place; ``TypeError`` for anything else."""
    if not isinstance(place, Place | Ground):
        raise TypeError(
            f"{name} must be a place such as beam.left, beam.right, beam.at(s) or fdgeom.ground, "
            f"not {format_value(place)}"
        )
    return place


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
            raise ValueError("at: a body on the ground does not move; give a node of a beam")
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
        hat = arrays.so3.hat(array("offset", offset, (3,)))
        #: Body momentum of body velocity at the node (6×6, rotation first).
        self.matrix = np.block(
            [[own - mass * hat @ hat, mass * hat], [-mass * hat, mass * np.eye(3)]]
        )

    def __repr__(self) -> str:
        return f"<body of mass {self.matrix[5, 5]:g} at {self.at}>"
