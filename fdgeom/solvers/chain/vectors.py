"""Transfer of values between vectors of an unknown and its storage on a chain."""

from collections.abc import Sequence

import numpy as np

from fdgeom.solvers.chain.unit import ChainUnit
from fdgeom.solvers.compiled.nodes import pieces
from fdgeom.solvers.data import key


class Vectors:
    """Copies values between vectors, in the order of degrees of freedom, and a compiled chain."""

    def __init__(self, unit: ChainUnit) -> None:
        self._unit = unit
        layout, starts, start = unit.layout, {}, 0
        for piece in pieces(unit.unknown):
            starts[key(piece)] = start
            start += piece.dat.data_ro.size
        self._values, self._sides = [], []
        for g, group in enumerate(layout.groups):
            for part in unit.parts:
                place = layout.places(part.function, g)
                there = np.broadcast_to(group.there, place.shape)
                there = there & ~group.beyond if len(place) == group.m else there
                at = starts[key(part.function)] + place[:, None] * part.size
                at = at + np.arange(part.size)[None, :, None]
                self._values.append(
                    (layout.array(part.function, g), at, there[:, None] & (at >= 0))
                )
            for i, c in enumerate(unit.components(g)):
                place = layout.places(c.function, g)
                there = np.broadcast_to(group.there, place.shape)
                there = there & ~group.beyond if len(place) == group.m else there
                at = starts[key(c.function)] + place * c.block + c.component
                self._sides.append((g, i, at, there))

    def put(self, x: np.ndarray) -> None:
        """Read the values of the unknown from a vector."""
        for array, at, _ in self._values:
            array[...] = x[at]

    def get(self, x: np.ndarray) -> None:
        """Write the values of the unknown to a vector."""
        for array, at, there in self._values:
            x[at[there]] = array[there]

    def put_right_hand_side(self, b: np.ndarray) -> None:
        """Read a right-hand side from a vector."""
        self._put(self._unit.rhs, b)

    def put_normal(self, b: np.ndarray) -> None:
        """Read the factors of an update in the equation of a border from a vector."""
        self._put(self._unit.normal, b)

    def _put(self, groups: Sequence[np.ndarray], b: np.ndarray) -> None:
        for g, i, at, there in self._sides:
            array = groups[g]
            array[len(at) :, i] = 0.0
            array[: len(at), i] = np.where(there, b[at], 0.0)

    def get_solution(self, x: np.ndarray) -> None:
        """Write a solution to a vector, except entries that occur in no equation."""
        for g, i, at, there in self._sides:
            x[at[there]] = self._unit.rhs[g][: len(at), i][there]
