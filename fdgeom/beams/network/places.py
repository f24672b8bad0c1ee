"""Places that joints connect: nodes of beams, and the ground."""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from fdgeom.beams.fields import BeamFields
from fdgeom.messages import format_value


@dataclass(frozen=True)
class Place:
    """A node of a beam: an end, "left" or "right", or the arc length of a node."""

    beam: BeamFields
    at: str | float

    def __post_init__(self) -> None:
        named = isinstance(self.at, str) and self.at in ("left", "right")
        number = isinstance(self.at, Real) and not isinstance(self.at, bool)
        if not named and not (number and np.isfinite(self.at)):
            raise ValueError(
                f"at must be 'left', 'right' or the arc length of a node, not {format_value(self.at)}"
            )

    def index(self, arcs: np.ndarray) -> int:
        """The index of the node at this place, among increasing arc lengths."""
        if isinstance(self.at, str):
            return 0 if self.at == "left" else len(arcs) - 1
        found = int(np.argmin(np.abs(arcs - self.at)))
        if not abs(arcs[found] - self.at) <= 1e-9 * (arcs[-1] - arcs[0]):
            raise ValueError(
                f"{self}: the mesh of the beam has no node there; the nearest is at "
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
