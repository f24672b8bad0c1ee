"""Consistency of the fields of beams with those of their network."""

from collections.abc import Sequence, Set
from functools import cached_property
from typing import Any

import numpy as np
from firedrake import Function, TestFunction, dot

from fdgeom.beams.beam import Beam
from fdgeom.beams.network.copying import BeamCopy, ManySnapshots
from fdgeom.beams.rod.rod_motion import FIELDS, RodConsistency
from fdgeom.beams.rod.variation import body_translation, in_body
from fdgeom.forms import shaped_space
from fdgeom.operations import Assemble, Map, Operation


def configuration_of(beam: Beam, modified: Set[int] = frozenset()) -> list[Operation]:
    """The operations that update configuration and velocity of one of the beams."""
    return beam.consistency.for_configuration(beam.rod, modified, alone=False)


class NetworkConsistency(RodConsistency):
    """Copies configuration and velocity between beams and network, and computes strains and momenta."""

    # motion: an `Assembly`, whose file imports this one.
    def __init__(self, motion: Any) -> None:
        super().__init__(motion)
        self._network, self._all = motion.network, ManySnapshots(self.snapshots)
        self._body = Function(motion.space, name="body velocity")
        self._to_space = Map(values={motion.v: body_translation(motion.orientation, self._body)})

    def read_beams(self) -> None:
        """Copy configuration and velocity from the beams."""
        self.perform([self._from_beams, self._to_space])
        self.written.take()

    def synchronise(self, modified=None):
        """Configuration and velocity from what was set last of each beam."""
        super().synchronise(modified)  # which checks data
        modified = modified or [frozenset()] * (1 + len(self._beams))
        given = any(modified)
        if not given and self._all.holds():
            return []
        both = zip(self._beams, modified[1:], strict=True)
        found = [op for beam, names in both for op in configuration_of(beam, names)]
        if found or given or not self.written.holds():
            found += [self._from_beams, self._to_space]
        return found

    @cached_property
    def after_steps(self) -> list[Operation]:
        """Poses, velocities, momenta and strains of the beams."""
        alike = [self._momenta, self._strain] if self._alike else []
        of_others = [op for b in self._others for op in b.consistency.of_configuration(b.rod)]
        to_body = Map(values={self._body: in_body(self._motion.orientation, self._motion.v)})
        return [to_body, *alike, self._to_beams, *of_others]

    def holds(self) -> bool:
        return self._all.holds()

    def agree(self) -> None:
        self._all.take()

    # The momentum of an end with a weight of its own, and the strain of a beam whose shape at rest is
    # given in space, are not those of the network.
    @cached_property
    def _alike(self) -> list[Beam]:
        return [beam for beam in self._beams if beam.end_weight == 0.5 and not beam.shaped]

    @cached_property
    def _others(self) -> list[Beam]:
        return [beam for beam in self._beams if beam not in self._alike]

    @cached_property
    def _momenta(self) -> Map:
        momentum = Function(self._motion.space, name="momentum")
        return Map(values={momentum: dot(self._motion.rod.section_inertia.matrix, self._body)})

    @cached_property
    def _strain(self) -> Assemble:
        """The strains in the cells of the network."""
        rod = self._motion.rod
        space = shaped_space((6,), self._motion.mesh, "DG", 0)
        test, found = TestFunction(space), Function(space, name="strain")
        work = rod.cells.values(rod.strain(self._motion.configuration), test)
        return Assemble(work=work, by={test: found})

    @cached_property
    def _from_beams(self) -> BeamCopy:
        return BeamCopy(self._network, *map(self._copied, FIELDS), gathers=True)

    @cached_property
    def _to_beams(self) -> BeamCopy:
        found = [self._copied(name) for name in FIELDS]
        if alike := self._alike:
            (momentum,) = self._momenta.values
            found.append((momentum, [beam.momentum for beam in alike], alike))
        return BeamCopy(self._network, *found, *self._strains)

    @cached_property
    def pose_copies(self) -> tuple[list[Operation], list[Operation]]:
        found = [self._copied(name) for name in FIELDS[:2]]
        to_beams = BeamCopy(self._network, *found, *self._strains)
        of_others = [b.consistency.strain_of_configuration(b.rod) for b in self._others]
        alike = [self._strain] if self._alike else []
        from_beams = BeamCopy(self._network, *found, gathers=True)
        return [from_beams], [*alike, to_beams, *of_others]

    @cached_property
    def _strains(self) -> list[tuple[Function, list[Function], Sequence[Beam]]]:
        """The strains of the network, for :class:`BeamCopy`."""
        if not (alike := self._alike):
            return []
        (strain,) = self._strain.writes
        return [(strain, [beam.strain for beam in alike], alike)]

    def _copied(self, name: str) -> tuple[Function, list[Function], Sequence[Beam]]:
        whole = self._body if name == "velocity" else getattr(self._motion, name)
        return whole, [getattr(beam, name) for beam in self._beams], self._beams

    def followers(self):
        """The fields of the beams."""
        return {
            f"{name} of beam {k}": f
            for k, beam in enumerate(self._beams)
            for name, f in beam.functions().items()
        }

    def member_of_nodes(self) -> np.ndarray:
        starts, count = self._network.starts, self._motion.space.dof_dset.size
        nodes = self._network.numbering.nodes[:count]
        return np.where(nodes < starts[-1], np.searchsorted(starts, nodes, "right") - 1, -1)
