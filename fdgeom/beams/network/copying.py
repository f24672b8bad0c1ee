"""Copies of nodal values between several beams and their network, with derivatives."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from firedrake import Function

from fdgeom.beams.network.network import Network
from fdgeom.line import Numbering
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
        numbering = self._network.numbering
        values = numbering.gather(self.whole)
        for own, piece, f in self._places(self.fields):
            values[piece] = own.gather(f)
        numbering.scatter(values, self.whole)

    def scatter(self) -> None:
        """Copy the field of the network to those of the beams."""
        values = self._network.numbering.gather(self.whole)
        for own, piece, f in self._places(self.fields):
            own.scatter(values[piece], f)

    def gathered(self, vectors) -> np.ndarray | None:
        """The vector of the network's field from those of the beams' fields; zero at other nodes."""
        if all(f not in vectors for f in self.fields):
            return None
        self._whole.dat.data_wo[...] = 0.0
        numbering = self._network.numbering
        values = numbering.gather(self._whole)
        for f, (own, piece, place) in zip(self.fields, self._places(self._fields), strict=True):
            found = vectors.of(f)
            place.dat.data_wo[...] = 0.0 if found is None else found
            values[piece] = own.gather(place)
        numbering.scatter(values, self._whole)
        return np.array(self._whole.dat.data_ro)

    def scattered(self, vector: np.ndarray) -> list[np.ndarray]:
        """The vectors of the beams' fields from a vector of the network's field."""
        self._whole.dat.data_wo[...] = vector
        values, found = self._network.numbering.gather(self._whole), []
        for own, piece, place in self._places(self._fields):
            own.scatter(values[piece], place)
            found.append(np.array(place.dat.data_ro))
        return found

    def _places(self, fields) -> Iterator[tuple[Numbering, slice, Function]]:
        """For each beam its nodes, their range in the network, and its field among ``fields``."""
        starts = self._network.starts
        for k, (own, field) in enumerate(zip(self._network.beams, fields, strict=True)):
            yield own, slice(starts[k], starts[k + 1]), field


class _OfPieces:
    """Base class of the derivatives of copies between beams and network."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    def pull_rates(self, bars, rates, tangents) -> None:
        """``pull`` of cotangents and of their rates, since the copies are linear."""
        self.pull(rates)
        self.pull(bars)


class Gathered(_OfPieces):
    """The copy of the beams' fields to that of the network, with derivatives."""

    def __init__(self, pieces: Pieces) -> None:
        super().__init__(pieces)
        self.targets, self.apply = (pieces.whole,), pieces.gather

    def pull(self, bars) -> None:
        """Replace the cotangent of the network's field by those of the beams'."""
        bar = bars.take(self._pieces.whole)
        if bar is not None:
            for f, values in zip(self._pieces.fields, self._pieces.scattered(bar), strict=True):
                bars.add(f, values)

    def push(self, tangents) -> None:
        """Set the tangent of the network's field."""
        tangents.put(self._pieces.whole, self._pieces.gathered(tangents))


class Scattered(_OfPieces):
    """The copy of the network's field to those of the beams, with derivatives."""

    def __init__(self, pieces: Pieces) -> None:
        super().__init__(pieces)
        self.targets, self.apply = pieces.fields, pieces.scatter

    def pull(self, bars) -> None:
        """Replace the cotangents of the beams' fields by that of the network's."""
        found = self._pieces.gathered(bars)
        for f in self._pieces.fields:
            bars.take(f)
        if found is not None:
            bars.add(self._pieces.whole, found)

    def push(self, tangents) -> None:
        """Set the tangents of the beams' fields."""
        tangent = tangents.of(self._pieces.whole)
        found = [None] * len(self._pieces.fields)
        if tangent is not None:
            found = self._pieces.scattered(tangent)
        for f, values in zip(self._pieces.fields, found, strict=True):
            tangents.put(f, values)
