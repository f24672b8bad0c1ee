"""Copies of nodal values between several beams and their network, with derivatives."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from firedrake import Function

from fdgeom.beams.network.network import Network
from fdgeom.line import Numbering
from fdgeom.operations import ArrayOperation, owned_values
from fdgeom.solvers import Field
from fdgeom.solvers.many import Blocks


class ToBeams:
    """Copies fields of a network to the fields of its beams, all at once."""

    def __init__(self, network: Network, *copies) -> None:
        self._network, self._copies = network, copies
        theirs = [Field(f) for _, fields, _ in copies for f in fields]
        self._changed = [f.written for f in theirs]

    @cached_property
    def _blocks(self) -> Blocks:
        network, found = self._network, []
        for whole, fields, beams in self._copies:
            rows, values = network.rows(whole), Field(whole).array
            for field, beam in zip(fields, beams, strict=True):
                found.append((Field(field).array, values, rows[network.places(beam, field)]))
        return Blocks(found, network.mesh.comm)

    def apply(self) -> None:
        """Copy the present values."""
        if self._network.mesh.comm.size > 1:
            self._spread()
            return
        self._blocks.take()
        for changed in self._changed:
            changed()

    def _spread(self) -> None:
        """Copy values from any rank to any other."""
        network = self._network
        for whole, fields, beams in self._copies:
            cells = network.is_cellwise(whole)
            values = network.get_cells(whole) if cells else network.numbering.gather(whole)
            for field, beam in zip(fields, beams, strict=True):
                field.dat.data_wo_with_halos[...] = values[network.places(beam, field)]


class Pieces:
    """Fields of some beams as pieces of one field of their network."""

    def __init__(self, network: Network, whole: Function, fields: Sequence[Function]) -> None:
        self._network, self.whole, self.fields = network, whole, tuple(fields)

    # Vectors come in and go out through functions like these.
    @cached_property
    def _whole(self) -> Function:
        return Function(self.whole.function_space())

    @cached_property
    def _fields(self) -> list[Function]:
        return [Function(f.function_space()) for f in self.fields]

    def gather(self) -> None:
        """Copy the fields of the beams to that of the network; other nodes keep their values."""
        self._gather(self.fields, self.whole)

    def scatter(self) -> None:
        """Copy the field of the network to those of the beams."""
        self._scatter(self.whole, self.fields)

    def gathered(self, vectors: Sequence[np.ndarray]) -> np.ndarray:
        """The vector of the network's field from those of the beams' fields; zero at other nodes."""
        self._whole.dat.data_wo[...] = 0.0
        for f, values in zip(self._fields, vectors, strict=True):
            f.dat.data_wo[...] = values
        self._gather(self._fields, self._whole)
        return np.array(self._whole.dat.data_ro)

    def scattered(self, vector: np.ndarray) -> list[np.ndarray]:
        """The vectors of the beams' fields from a vector of the network's field."""
        self._whole.dat.data_wo[...] = vector
        self._scatter(self._whole, self._fields)
        return [np.array(f.dat.data_ro) for f in self._fields]

    def _gather(self, fields: Sequence[Function], whole: Function) -> None:
        numbering = self._network.numbering
        values = numbering.gather(whole)
        for own, piece, f in self._places(fields):
            values[piece] = own.gather(f)
        numbering.scatter(values, whole)

    def _scatter(self, whole: Function, fields: Sequence[Function]) -> None:
        values = self._network.numbering.gather(whole)
        for own, piece, f in self._places(fields):
            own.scatter(values[piece], f)

    def _places(self, fields) -> Iterator[tuple[Numbering, slice, Function]]:
        """For each beam its nodes, their range in the network, and its field among ``fields``."""
        starts = self._network.starts
        for k, (own, field) in enumerate(zip(self._network.beams, fields, strict=True)):
            yield own, slice(starts[k], starts[k + 1]), field


class Gathered(ArrayOperation):
    """Copies the beams' fields to that of the network."""

    def __init__(self, pieces: Pieces) -> None:
        super().__init__()
        self._pieces = pieces

    @property
    def reads(self) -> list[Function]:
        return list(self._pieces.fields)

    @property
    def writes(self) -> list[Function]:
        return [self._pieces.whole]

    def run(self) -> None:
        self._pieces.gather()

    def tangents(self, dots):
        return [self._pieces.gathered(owned_values(dots))]

    def cotangents(self, bars):
        return self._pieces.scattered(*bars)


class Scattered(ArrayOperation):
    """Copies the network's field to those of the beams."""

    def __init__(self, pieces: Pieces) -> None:
        super().__init__()
        self._pieces = pieces

    @property
    def reads(self) -> list[Function]:
        return [self._pieces.whole]

    @property
    def writes(self) -> list[Function]:
        return list(self._pieces.fields)

    def run(self) -> None:
        self._pieces.scatter()

    def tangents(self, dots):
        return self._pieces.scattered(*owned_values(dots))

    def cotangents(self, bars):
        return [self._pieces.gathered(bars)]
