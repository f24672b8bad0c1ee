"""A beam in configuration form as a motion: its own poses, and its velocity in both frames."""

from functools import cached_property
from typing import Any

import numpy as np
from firedrake import Function
from mpi4py import MPI

from fdgeom.beams.fingerprint import beam_parameters
from fdgeom.beams.held_nodes import held_ends
from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.beams.rod.variation import body_translation, in_body
from fdgeom.beams.rod_of_beam import rod_of
from fdgeom.data import Field
from fdgeom.execution import PointwiseUpdate
from fdgeom.line import end_node
from fdgeom.operations import Map, Operation, Performed


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
        super().__init__(rod, beam.position, beam.orientation, holds=tuple(ends.values()))
        self.beam, self.members, self._ends = beam, (beam,), (ends,)
        self.body_velocity = BodyVelocity(self.v, self.orientation, beam.velocity)

    def synchronise(self, modified=None):
        """Velocity and configuration from what was set last of the beam."""
        modified = modified or ()
        consistency = self.beam.consistency
        found = consistency.for_configuration(self.rod, modified, alone=True)
        # Another motion of the beam may have moved it.
        known = consistency.noted.holds() and not {id(f) for f in modified} & self._of_beam
        if known and self.body_velocity.agrees():
            return found
        return [*found, self.body_velocity.to_space]

    @cached_property
    def _of_beam(self) -> set[int]:
        return {id(f) for f in self.beam.functions().values()}

    def publish(self):
        """The beam's velocity, strain and momentum."""
        return self._published

    @cached_property
    def _published(self) -> list[Operation]:
        return [self.body_velocity.to_body, *self.beam.consistency.of_configuration(self.rod)]

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


class BodyVelocity:
    """A velocity ``body`` in the body frame beside ``v``, whose translation is in space."""

    def __init__(self, v: Function, orientation: Function, body: Function) -> None:
        self._comm, turned = body.comm, Function(body.function_space())
        self._body, self._turned = Field(body), Field(turned)
        self._turn = PointwiseUpdate({turned: in_body(orientation, v)})
        back = {v: body_translation(orientation, body)}
        self._turn_back = PointwiseUpdate(back)
        #: The operations that compute ``v``, unless both agree, and ``body``.
        self.to_space = Performed(do=self._read, operations=[Map(values=back)])
        self.to_body = Map(values={body: in_body(orientation, v)})

    def _read(self) -> None:
        if not self.agrees():
            self._turn_back.apply()

    def agrees(self) -> bool:
        """Whether both are the same to the last bit."""
        self._turn.apply()
        for field in (self._turned, self._body):
            field.update_ghosts()
        same = np.array_equal(self._turned.array, self._body.array)
        return same if self._comm.size == 1 else self._comm.allreduce(int(same), op=MPI.MIN) == 1
