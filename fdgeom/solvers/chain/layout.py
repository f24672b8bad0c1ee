"""Where the values of a chain lie: its pieces side by side, one in each lane."""

from __future__ import annotations

import ctypes

import numpy as np
from firedrake import Function

from fdgeom.solvers.chain.cells import Part
from fdgeom.solvers.chain.structs import Copy
from fdgeom.solvers.compiled.layout import chain_order
from fdgeom.solvers.compiled.refused import CannotCompile
from fdgeom.solvers.compiled.tables import Tables
from fdgeom.solvers.data import Field


class PieceLayout:
    """Values as [node or cell of the piece][component][lane].

    Parameters
    ----------
    tables : Tables
        The functions.
    lanes : int
        Pieces.

    Attributes
    ----------
    cells, m : int
        Cells of the chain, and of a piece (the last ones may have fewer).
    count : numpy.ndarray
        Cells of each piece.
    fields, arrays : list
        Of the functions: their values in Firedrake's order, and here.

    Raises
    ------
    CannotCompile
        If the mesh is no chain.
    """

    def __init__(self, tables: Tables, lanes: int) -> None:
        order = chain_order(tables)
        if order is None:
            raise CannotCompile("the mesh is no single open chain of cells")
        self._tables, self._lanes = tables, lanes
        self._order = order
        self.cells = tables.mesh.cell_set.size
        self.m = -(-self.cells // lanes)
        self.count = np.clip(self.cells - self.m * np.arange(lanes), 0, self.m).astype(np.int64)
        self.fields = [Field(f) for f in tables.functions]
        self.arrays = [aligned((self._rows(f), f.block, lanes)) for f in self.fields]
        places = self.m * np.arange(lanes)[None, :] + np.arange(self.m + 1)[:, None]
        self._places = []
        for f, nodes in zip(tables.representatives, order, strict=True):
            where = places[: self.m + (tables.arity(f) == 2)]
            there = where < len(nodes)
            self._places.append(
                np.where(there, nodes[np.minimum(where, len(nodes) - 1)], -1).astype(np.int32)
            )

    def _rows(self, field: Field) -> int:
        return self.m + (self._tables.arity(field.function) == 2)

    def copies(self, functions):
        """What brings functions here and back."""
        made = (Copy * max(len(functions), 1))()
        for copy, function in zip(made, functions, strict=False):
            k = self._tables.field(function)
            place = self._places[self._tables.space(function)]
            copy.here, copy.there = self.arrays[k].ctypes.data, self.fields[k].array.ctypes.data
            copy.place, copy.count, copy.size = place.ctypes.data, len(place), self.fields[k].block
        return made

    def array(self, function: Function) -> np.ndarray:
        """The values of a function here."""
        return self.arrays[self._tables.field(function)]

    def places(self, function: Function) -> np.ndarray:
        """Firedrake's numbers of the nodes, (nodes of a piece, lanes); -1 where there is none."""
        return self._places[self._tables.space(function)]

    def masks(self, parts: list[Part], given: dict[Function, np.ndarray]):
        """1 where an unknown is free, (m + 1, N, lanes), and at which nodes some are not.

        Parameters
        ----------
        parts : list of Part
            Of the unknown.
        given : dict
            For each part the scalar degrees of freedom that are given.
        """
        size = sum(p.size for p in parts)
        free = aligned((self.m + 1, size, self._lanes))
        start = 0
        for part in parts:
            there = self.places(part.function)
            values = np.ones((len(self.fields[self._tables.field(part.function)].array), part.size))
            values.reshape(-1)[given.get(part.function, [])] = 0.0
            mine = np.where((there >= 0)[:, None, :], values[there].transpose(0, 2, 1), 0.0)
            free[: len(there), start : start + part.size] = mine
            start += part.size
        special = np.ascontiguousarray((free < 1.0).any(axis=(1, 2)).astype(np.uint8))
        return free, special


def aligned(shape: tuple[int, ...]) -> np.ndarray:
    """Zeros that begin at a line of the cache."""
    size = int(np.prod(shape, dtype=int))
    memory = np.zeros(size + 8)
    first = -(memory.ctypes.data // 8) % 8
    return memory[first : first + size].reshape(shape)


def address(array: np.ndarray | None) -> ctypes.c_void_p | None:
    """Where an array lies."""
    return None if array is None else array.ctypes.data
