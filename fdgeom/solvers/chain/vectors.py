"""PETSc's vectors of an unknown, and its values on a chain."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from fdgeom.solvers.chain.unit import ChainUnit
from fdgeom.solvers.compiled.problem import pieces


class Vectors:
    """Moves values between vectors and a compiled chain.

    Parameters
    ----------
    unit : ChainUnit
        The chain.
    """

    def __init__(self, unit: ChainUnit) -> None:
        self._unit = unit
        layout, starts, start = unit.layout, {}, 0
        for piece in pieces(unit.unknown):
            starts[piece] = start
            start += piece.dat.data_ro.size
        self._values, self._sides = [], []
        for g, group in enumerate(layout.groups):
            for part in unit.parts:
                place = layout.places(part.function, g)
                there = np.broadcast_to(group.there, place.shape)
                there = there & ~group.beyond if len(place) == group.m else there
                at = starts[part.function] + place[:, None] * part.size
                at = at + np.arange(part.size)[None, :, None]
                self._values.append(
                    (layout.array(part.function, g), at, there[:, None] & (at >= 0))
                )
            for i, c in enumerate(unit.components(g)):
                place = layout.places(c.function, g)
                there = np.broadcast_to(group.there, place.shape)
                there = there & ~group.beyond if len(place) == group.m else there
                at = starts[c.function] + place * c.block + c.component
                self._sides.append((unit.rhs[g], i, at, there))

    def put(self, x: PETSc.Vec) -> None:
        """Values of the unknown from a vector."""
        values = x.getArray(readonly=True)
        for array, at, _ in self._values:
            array[...] = values[at]

    def get(self, x: PETSc.Vec) -> None:
        """Values of the unknown to a vector."""
        values = x.getArray()
        for array, at, there in self._values:
            values[at[there]] = array[there]

    def put_right_hand_side(self, b: PETSc.Vec) -> None:
        """A right-hand side from a vector."""
        values = b.getArray(readonly=True)
        for rhs, i, at, there in self._sides:
            rhs[len(at) :, i] = 0.0
            rhs[: len(at), i] = np.where(there, values[at], 0.0)

    def get_solution(self, x: PETSc.Vec, b: PETSc.Vec) -> None:
        """A solution to a vector; what no equation knows is as on the right-hand side."""
        b.copy(x)
        values = x.getArray()
        for rhs, i, at, there in self._sides:
            values[at[there]] = rhs[: len(at), i][there]
