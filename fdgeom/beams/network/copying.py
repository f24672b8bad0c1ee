"""Copies of nodal values between several beams and their network, with derivatives."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from firedrake import Function

from fdgeom.beams.beam import Beam
from fdgeom.beams.network.blocks import Blocks
from fdgeom.beams.network.network import Network
from fdgeom.data import Field
from fdgeom.operations import ArrayOperation, owned_values

#: Fields that a beam and its piece of the network both have.
FIELDS = ("position", "orientation", "velocity")


class BeamCopy(ArrayOperation):
    """Copies fields of a network to those of its beams, or with ``gathers`` those to the network's.

    Each of ``copies`` is a field of the network, the fields of some beams and these beams. Other nodes of
    the network keep their values.
    """

    def __init__(
        self,
        network: Network,
        *copies: tuple[Function, Sequence[Function], Sequence[Beam]],
        gathers: bool = False,
    ) -> None:
        super().__init__()
        self._network, self._copies, self._gathers = network, copies, gathers
        self._wholes = [whole for whole, _, _ in copies]
        self._fields = [f for _, fields, _ in copies for f in fields]

    @property
    def reads(self) -> list[Function]:
        return self._fields if self._gathers else self._wholes

    @property
    def writes(self) -> list[Function]:
        return self._wholes if self._gathers else self._fields

    def run(self) -> None:
        if self._gathers or self._network.mesh.comm.size > 1:
            for whole, fields, beams in self._copies:
                self._copy(whole, fields, beams, self._gathers)
            return
        self._blocks.take()
        for changed in self._changed:
            changed()

    # A Python call for each of a thousand beams would cost more than the copies.
    @cached_property
    def _blocks(self) -> Blocks:
        network, found = self._network, []
        for whole, fields, beams in self._copies:
            rows, values = network.rows(whole), Field(whole).array
            for field, beam in zip(fields, beams, strict=True):
                found.append((Field(field).array, values, rows[network.places(beam, field)]))
        return Blocks(found, network.mesh.comm)

    @cached_property
    def _changed(self) -> list:
        return [Field(f).written for f in self._fields]

    def _copy(self, whole: Function, fields, beams, gathers: bool) -> None:
        """Copy values from any rank to any other."""
        network = self._network
        cells = network.is_cellwise(whole)
        values = network.get_cells(whole) if cells else network.numbering.gather(whole)
        for field, beam in zip(fields, beams, strict=True):
            if gathers:
                places, own = network.all_values(beam, field)
                values[places] = own
            else:
                field.dat.data_wo_with_halos[...] = values[network.places(beam, field)]
        if gathers:
            put = network.put_cells if cells else network.numbering.scatter
            put(values, whole)

    # --- derivatives: vectors go through functions of the same spaces -----------------------------
    def tangents(self, dots):
        return self._copied(owned_values(dots), self._gathers)

    def cotangents(self, bars):
        return self._copied(bars, not self._gathers)

    @cached_property
    def _twins(self) -> list[tuple[Function, list[Function]]]:
        return [
            (Function(whole.function_space()), [Function(f.function_space()) for f in fields])
            for whole, fields, _ in self._copies
        ]

    def _copied(self, vectors, gathers: bool) -> list[np.ndarray]:
        """The vectors of the targets from those of the sources; zero at other nodes."""
        wholes = [whole for whole, _ in self._twins]
        fields = [f for _, found in self._twins for f in found]
        sources, targets = (fields, wholes) if gathers else (wholes, fields)
        for f, values in zip(sources, vectors, strict=True):
            f.dat.data_wo[...] = values
        for (whole, found), (_, _, beams) in zip(self._twins, self._copies, strict=True):
            if gathers:
                whole.dat.data_wo[...] = 0.0
            self._copy(whole, found, beams, gathers)
        return [np.array(f.dat.data_ro) for f in targets]
