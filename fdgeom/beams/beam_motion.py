"""A beam in configuration form as a motion: its own poses, and its velocity in both frames."""

from functools import cached_property
from typing import Any

import numpy as np
from firedrake import Function

from fdgeom.beams.fingerprint import beam_parameters
from fdgeom.beams.held_nodes import held_ends
from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.beams.rod.variation import body_translation, in_body
from fdgeom.beams.rod_of_beam import rod_of
from fdgeom.line import end_node
from fdgeom.operations import Map, Operation


class BeamMotion(RodMotion):
    """A beam as the methods in configuration form move it, in its own or another strain measure."""

    # The velocity of the motion has its translation in the space frame. `beam.velocity`, all in the
    # body frame, is read before steps and written after them, like the beam's strain and momentum.
    # beam: a `Beam`, whose file imports this one.
    def __init__(self, beam: Any, measure: str | None = None) -> None:
        space = beam.velocity.function_space()
        ends = held_ends(beam.ends, lambda name: end_node(space, name))
        self._measure = None if measure == beam.strain_measure else measure
        rod = beam.rod if self._measure is None else rod_of(beam, measure)
        fields, holds = (beam.position, beam.orientation), tuple(ends.values())
        super().__init__(rod, *fields, (beam,), (ends,), holds=holds)
        self.beam = beam
        for copy, _ in self._written.pairs:
            copy[...] = np.nan  # the velocity has not been read yet

    def synchronise(self, modified=None):
        """Velocity and configuration from what was set last of the beam."""
        modified = modified or ()
        found = self.beam.consistency.for_configuration(self.rod, modified, alone=True)
        of_beam = {id(f) for f in self.beam.functions().values()}
        # Another motion of the beam may have moved it.
        if found or not self._written.holds() or of_beam.intersection(map(id, modified)):
            return [*found, self._to_space]
        return found

    @cached_property
    def _to_space(self) -> Map:
        return Map(values={self.v: body_translation(self.orientation, self.beam.velocity)})

    def publish(self):
        """The beam's velocity, strain and momentum."""
        return self._published

    @cached_property
    def _published(self) -> list[Operation]:
        to_body = Map(values={self.beam.velocity: in_body(self.orientation, self.v)})
        return [to_body, *self.beam.consistency.of_configuration(self.rod)]

    def reactions_of(self, forces):
        """Moment about the node and force at each held end, in space, two arrays of 3."""
        return super().reactions_of(forces)[0]

    def parameters(self) -> dict[str, object]:
        """The parameters of the beam, with this strain measure."""
        found = beam_parameters(self.beam)
        return found if self._measure is None else found | {"strain measure": self._measure}

    def functions(self) -> dict[str, Function]:
        ours, theirs = super().functions(), self.beam.functions()
        ours["velocity in space"] = ours.pop("velocity")
        return {**theirs, **ours}
