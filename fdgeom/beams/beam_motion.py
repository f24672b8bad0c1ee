"""A beam in configuration form as a motion: its own poses, and its velocity in both frames."""

import numpy as np
from firedrake import Function

from fdgeom.beams.consistency import Consistency, DependentFields
from fdgeom.beams.fields import BeamFields
from fdgeom.beams.fingerprint import beam_parameters
from fdgeom.beams.forces import Forces
from fdgeom.beams.held_nodes import held_ends
from fdgeom.beams.rod.rod import Rod
from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.execution import PointwiseUpdate
from fdgeom.lie import halves, join, quaternion
from fdgeom.line import end_node
from fdgeom.operations import Map
from fdgeom.solvers import Field
from fdgeom.taping import not_taped


class BeamMotion(RodMotion):
    """A beam as the methods in configuration form move it."""

    # The velocity of the motion has its translation in the space frame. `beam.velocity`, all in the
    # body frame, is read before steps and written after them, like the beam's strain and momentum.
    def __init__(
        self, beam: BeamFields, rod: Rod, consistency: Consistency, *, measure: str | None = None
    ) -> None:
        space = beam.velocity.function_space()
        self._ends = held_ends(beam.ends, lambda name: end_node(space, name))
        holds = tuple(self._ends.values())
        super().__init__(rod, beam.position, beam.orientation, holds=holds)
        self.beam, self.members, self._measure = beam, (beam,), measure
        self._fields, self._consistency = DependentFields(beam, rod, consistency), consistency
        self.body_velocity = BodyVelocity(self.v, self.orientation, beam.velocity)

    def prepare(self) -> None:
        """Read ``beam.velocity``, if it is not the velocity of the last step."""
        self._fields.prepare()
        self.body_velocity.read()

    def settle(self) -> None:
        """Write ``beam.velocity``, strain and momentum."""
        self.body_velocity.write()
        self._fields.settle()

    def openings(self, touched=()):
        names = {id(f) for f in touched}
        flags = [id(f) in names for f in self.beam.functions().values()]
        changes = [a or b for a, b in zip(flags, self._consistency.noted.changed(), strict=True)]
        found = self._consistency.openings_for_configuration(flags)
        return [*found, self.body_velocity.reading] if any(changes) else found

    def remembered(self):
        return (self._consistency.noted,)

    def closings(self):
        return [self.body_velocity.writing, *self._fields.closings]

    def agree(self) -> None:
        self._consistency.note()

    def check_start(self) -> None:
        self.prepare()
        super().check_start()

    @not_taped
    def reactions(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Moment about the node and force at each held end, in space, two arrays of 3."""
        return self.reactions_of(self.forces())

    def reactions_of(self, forces: Forces) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """:meth:`reactions` of given forces."""
        values = forces.supports()
        return {name: self.held_by(values, hold) for name, hold in self._ends.items()}

    def member_of_nodes(self) -> np.ndarray:
        return np.zeros(self.space.dof_dset.size, dtype=int)

    def parameters(self) -> dict[str, object]:
        """The parameters of the beam, with this strain measure."""
        found = beam_parameters(self.beam)
        return found if self._measure is None else found | {"strain measure": self._measure}

    def drawn_beams(self) -> tuple:
        return (self.beam,)

    def functions(self) -> dict[str, Function]:
        ours, theirs = super().functions(), self.beam.functions()
        ours["velocity in space"] = ours.pop("velocity")
        return {**theirs, **ours}


class BodyVelocity:
    """A velocity ``body`` in the body frame beside ``v``, whose translation is in space."""

    def __init__(self, v: Function, orientation: Function, body: Function) -> None:
        scratch = Function(body.function_space())
        self._body, self._scratch = Field(body), Field(scratch)
        self._comm = body.function_space().comm
        spin, drift = halves(v, "velocity")
        turned = join(spin, quaternion.rotate_inverse(orientation, drift))
        self._to_body = PointwiseUpdate({scratch: turned})
        spin, drift = halves(body, "velocity")
        turned_back = {v: join(spin, quaternion.rotate(orientation, drift))}
        self._to_space = PointwiseUpdate(turned_back)
        #: :meth:`read` and :meth:`write` as operations.
        self.reading, self.writing = Map(values=turned_back), Map(values={body: turned})

    def read(self) -> None:
        """Compute ``v`` from ``body``, unless they agree to the last bit."""
        self._turn()
        self._body.update_ghosts()
        same = np.array_equal(self._scratch.array, self._body.array)
        if self._comm.allreduce(int(same)) < self._comm.size:
            self._to_space.apply()

    def write(self) -> None:
        """Compute ``body`` from ``v``."""
        self._turn()
        self._body.array[...] = self._scratch.array
        self._body.written(ghosts_too=True)

    def _turn(self) -> None:
        self._to_body.apply()
        self._scratch.update_ghosts()
