"""Copies of nodal values between several beams and their network, with derivatives."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from firedrake import Function, dot

from fdgeom.beams.beam import Beam
from fdgeom.beams.consistency import DependentFields
from fdgeom.beams.network.blocks import Blocks
from fdgeom.beams.network.network import Network
from fdgeom.beams.rod.rod import Rod
from fdgeom.execution import PointwiseUpdate, VectorAssembly
from fdgeom.operations import ArrayOperation, owned_values
from fdgeom.solvers import Field

#: Fields that a beam and its piece of the network both have.
FIELDS = ("position", "orientation", "velocity")


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


class BeamCopy(ArrayOperation):
    """Copies fields of the beams to one field of their network, or with ``back`` this to those.

    Other nodes of the network keep their values.
    """

    def __init__(
        self, network: Network, whole: Function, fields: Sequence[Function], *, back: bool = False
    ) -> None:
        super().__init__()
        self._network, self._whole, self._fields, self._back = network, whole, list(fields), back

    @property
    def reads(self) -> list[Function]:
        return [self._whole] if self._back else self._fields

    @property
    def writes(self) -> list[Function]:
        return self._fields if self._back else [self._whole]

    def run(self) -> None:
        self._copy(self._whole, self._fields, self._back)

    def _copy(self, whole: Function, fields: Sequence[Function], back: bool) -> None:
        network = self._network
        values = network.numbering.gather(whole)
        for k, (own, f) in enumerate(zip(network.beams, fields, strict=True)):
            piece = slice(network.starts[k], network.starts[k + 1])
            if back:
                own.scatter(values[piece], f)
            else:
                values[piece] = own.gather(f)
        if not back:
            network.numbering.scatter(values, whole)

    # --- derivatives: vectors go through functions of the same spaces -----------------------------
    def tangents(self, dots):
        return self._copied(owned_values(dots), self._back)

    def cotangents(self, bars):
        return self._copied(bars, not self._back)

    @cached_property
    def _twins(self) -> tuple[Function, list[Function]]:
        fields = [Function(f.function_space()) for f in self._fields]
        return Function(self._whole.function_space()), fields

    def _copied(self, vectors, back: bool) -> list[np.ndarray]:
        """The vectors of the targets from those of the sources; zero at other nodes."""
        whole, fields = self._twins
        sources, targets = ([whole], fields) if back else (fields, [whole])
        whole.dat.data_wo[...] = 0.0
        for f, values in zip(sources, vectors, strict=True):
            f.dat.data_wo[...] = values
        self._copy(whole, fields, back)
        return [np.array(f.dat.data_ro) for f in targets]


class BeamsBehind:
    """Poses, velocities, momenta and strains of beams, copied from their network."""

    def __init__(
        self,
        network: Network,
        beams: Sequence[Beam],
        links: Sequence[DependentFields],
        rod: Rod,
        configuration: tuple[Function, Function],
        velocity: Function,
    ) -> None:
        self._network, self._beams, self._rod = network, beams, rod
        self._wholes = dict(zip(FIELDS, (*configuration, velocity), strict=True))
        # The momentum of an end with a weight of its own, and the strain of a beam whose shape at rest
        # is given in space, are not those of the network.
        alike = [beam.end_weight == 0.5 and not beam.shaped for beam in beams]
        self._alike = [beam for beam, is_so in zip(beams, alike, strict=True) if is_so]
        self._others = [link for link, is_so in zip(links, alike, strict=True) if not is_so]

    def put_poses(self) -> None:
        """Copy the poses of the network to the beams."""
        self._poses.apply()

    def settle(self) -> None:
        """Copy all fields of the network to the beams."""
        self._momenta.apply()
        self._strains.assemble()
        self._all.apply()
        for link in self._others:
            link.settle()

    @cached_property
    def _momentum(self) -> Function:
        return Function(self._wholes["velocity"].function_space())

    @cached_property
    def _momenta(self) -> PointwiseUpdate:
        product = dot(self._rod.inertia.matrix, self._wholes["velocity"])
        return PointwiseUpdate({self._momentum: product})

    @cached_property
    def _strains(self) -> VectorAssembly:
        """Assembly of the strains in the cells."""
        strain = self._rod.strain((self._wholes["position"], self._wholes["orientation"]))
        return VectorAssembly(self._rod.cells.values(strain))

    @cached_property
    def _poses(self) -> ToBeams:
        return ToBeams(self._network, self._of("position"), self._of("orientation"))

    @cached_property
    def _all(self) -> ToBeams:
        found = [self._of(name) for name in FIELDS]
        found.append((self._momentum, [beam.momentum for beam in self._alike], self._alike))
        strain = self._strains.tensor
        found.append((strain, [beam.strain for beam in self._alike], self._alike))
        return ToBeams(self._network, *found)

    def _of(self, name: str) -> tuple:
        return self._wholes[name], [getattr(beam, name) for beam in self._beams], self._beams
