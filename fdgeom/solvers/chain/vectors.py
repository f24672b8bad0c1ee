"""PETSc's vectors of an unknown, and its values on a chain."""

from __future__ import annotations

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
        self._blocks, first = [], 0
        for part in unit.parts:
            there = layout.places(part.function)
            valid = there >= 0
            self._blocks.append((
                layout.array(part.function), valid, there[valid], starts[part.function],
                part.size, first, len(there),
            ))  # fmt: skip
            first += part.size

    def put(self, x: PETSc.Vec) -> None:
        """Values of the unknown from a vector."""
        values = x.getArray(readonly=True)
        self._unit.clear_unknown()
        for array, valid, there, start, size, *_ in self._blocks:
            block = values[start : start + (there.max() + 1) * size].reshape(-1, size)
            array.transpose(0, 2, 1)[valid] = block[there]

    def get(self, x: PETSc.Vec) -> None:
        """Values of the unknown to a vector."""
        values = x.getArray()
        for array, valid, there, start, size, *_ in self._blocks:
            block = values[start : start + (there.max() + 1) * size].reshape(-1, size)
            block[there] = array.transpose(0, 2, 1)[valid]

    def put_right_hand_side(self, b: PETSc.Vec) -> None:
        """A right-hand side from a vector."""
        values, rhs = b.getArray(readonly=True), self._unit.rhs
        rhs[...] = 0.0
        for _, valid, there, start, size, first, rows in self._blocks:
            block = values[start : start + (there.max() + 1) * size].reshape(-1, size)
            rhs[:rows, first : first + size].transpose(0, 2, 1)[valid] = block[there]

    def get_solution(self, x: PETSc.Vec) -> None:
        """A solution to a vector."""
        values, rhs = x.getArray(), self._unit.rhs
        for _, valid, there, start, size, first, rows in self._blocks:
            block = values[start : start + (there.max() + 1) * size].reshape(-1, size)
            block[there] = rhs[:rows, first : first + size].transpose(0, 2, 1)[valid]
