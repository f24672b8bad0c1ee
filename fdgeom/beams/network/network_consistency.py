"""Consistency of the fields of beams with those of their network, and copies between them."""

import ctypes
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from firedrake import Function, TestFunction, dot
from pyop2 import compilation

from fdgeom.beams.beam import Beam
from fdgeom.beams.network.network import Network
from fdgeom.beams.rod.rod_motion import FIELDS, RodConsistency
from fdgeom.beams.rod.variation import in_body
from fdgeom.data import Field, Snapshot, key
from fdgeom.forms import shaped_space
from fdgeom.operations import ArrayOperation, Assemble, Map, Operation, owned_values

_CODE = """
#include <string.h>
struct Block { char *here, *there; const long *rows; long count, bytes; };

/* The rows of one array to consecutive ones of another; without numbers all of them. */
void fdgeom_take(const struct Block *blocks, long n) {
  for (const struct Block *b = blocks; b != blocks + n; ++b)
    if (!b->rows) memcpy(b->here, b->there, b->count * b->bytes);
    else for (long k = 0; k < b->count; ++k)
      memcpy(b->here + k * b->bytes, b->there + b->rows[k] * b->bytes, b->bytes);
}

/* Whether all of them are the same, to the last bit. */
int fdgeom_same(const struct Block *blocks, long n) {
  for (const struct Block *b = blocks; b != blocks + n; ++b)
    if (memcmp(b->here, b->there, b->count * b->bytes)) return 0;
  return 1;
}
"""


_BOTH = (
    "fields of an assembly and of its beams were both set: set position, orientation and v of the "
    "assembly, or position, orientation and velocity of its beams"
)


class NetworkConsistency(RodConsistency):
    """Copies configuration and velocity between beams and network, and computes strains and momenta."""

    # motion: an `Assembly`, whose file imports this one.
    def __init__(self, motion: Any) -> None:
        self._body = Function(motion.space, name="body velocity")
        super().__init__(motion, self._body, (*motion.configuration, motion.v))
        self._network, self._all = motion.network, ManySnapshots(self.snapshots)

    def read_beams(self) -> None:
        """Copy configuration and velocity from the beams."""
        self.perform([*self._from_beams, self._to_space])
        self.written.take()
        self.own.take()

    def _copies(self, found, *, given):
        ours, theirs = self.own.changed_keys(), self.written.changed_keys()
        theirs.update(key(f) for op in found for f in op.writes)
        if not (placed := self.was_placed()):
            ours -= self._poses
        moving = theirs.intersection(key(beam.velocity) for beam in self._beams)
        if moving and key(self._motion.v) in ours:
            raise ValueError(_BOTH)
        copies: list[Operation] = []
        if theirs or given:
            poses, velocity = self._from_beams
            copies += [] if placed else [poses]
            copies += [] if key(self._motion.v) in ours else [velocity, self._to_space]
        return [*copies, *self.after_steps] if ours else copies

    def was_placed(self):
        if self.own.changed_keys().isdisjoint(self._poses):
            return False
        present = Snapshot([*self._motion.configuration, self._motion.v])
        present.take()
        try:
            self.perform(self._from_beams[:1])
            if present.holds():  # the beams are there already, as in replays after statics
                return False
            # The beams have changed, too, if the last common values do not come back from them.
            self.own.restore()
            self.perform(self._from_beams[:1])
            both = not self.own.holds()
        finally:
            present.restore()
        if both:
            raise ValueError(_BOTH)
        return True

    def is_placed(self):
        # v of the assembly alone leaves the configuration where steps have left it.
        of_beams = all(snapshot.holds() for snapshot in self.snapshots[:-1])
        return not of_beams or self.own.changed_keys() != {key(self._motion.v)}

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
    def _from_beams(self) -> tuple[Operation, Operation]:
        """Copies of the poses and of the velocities."""
        *poses, velocity = map(self._copied, FIELDS)
        network = self._network
        return BeamCopy(network, *poses, gathers=True), BeamCopy(network, velocity, gathers=True)

    @cached_property
    def _to_beams(self) -> "BeamCopy":
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
        return [self._from_beams[0]], [*alike, to_beams, *of_others]

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


# --- copies of nodal values, and of many small arrays ----------------------------------------------------
class _Block(ctypes.Structure):
    _fields_ = (
        ("here", ctypes.c_void_p),
        ("there", ctypes.c_void_p),
        ("rows", ctypes.c_void_p),
        ("count", ctypes.c_long),
        ("bytes", ctypes.c_long),
    )


class Blocks:
    """Pairs of arrays of one rank, at fixed addresses, copied or compared in one C call."""

    # Each pair is (here, there, rows): rows of `there` that belong to those of `here`; None if all do.
    def __init__(self, pairs: Sequence[tuple], comm) -> None:
        library = compilation.load(_CODE, "c", comm=comm)
        self._copy, self._compare = library.fdgeom_take, library.fdgeom_same
        for function, result in ((self._copy, None), (self._compare, ctypes.c_int)):
            function.restype, function.argtypes = result, [ctypes.c_void_p, ctypes.c_long]
        self._number, self._kept = len(pairs), []
        self._blocks = (_Block * max(len(pairs), 1))()
        for block, (here, there, rows) in zip(self._blocks, pairs, strict=False):
            if rows is not None:
                rows = np.ascontiguousarray(rows, dtype=np.int64)
                block.rows = rows.ctypes.data
            block.here, block.there = here.ctypes.data, there.ctypes.data
            block.count = len(here)
            block.bytes = here.nbytes // max(len(here), 1)
            self._kept.append((here, there, rows))

    def take(self) -> None:
        """Copy the second arrays into the first ones."""
        self._copy(self._blocks, self._number)

    def same(self) -> bool:
        """Whether the arrays of all pairs are equal, bit by bit; only for pairs of one shape."""
        return bool(self._compare(self._blocks, self._number))


class ManySnapshots:
    """Several snapshots of one communicator, saved and compared in one call."""

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self._snapshots = tuple(snapshots)

    @cached_property
    def _blocks(self) -> Blocks | None:
        """The snapshots as :class:`Blocks`; None on several ranks."""
        comm = self._snapshots[0].comm
        if comm.size > 1:
            return None
        pairs = [(copy, array, None) for s in self._snapshots for copy, array in s.pairs]
        return Blocks(pairs, comm)

    def take(self) -> None:
        """Save the present values."""
        if self._blocks is not None:
            self._blocks.take()
            return
        for snapshot in self._snapshots:
            snapshot.take()

    def holds(self) -> bool:
        """Whether all values equal the saved ones, bit by bit and on all ranks."""
        if self._blocks is not None:
            return self._blocks.same()
        held = [snapshot.holds() for snapshot in self._snapshots]  # each call is collective
        return all(held)


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
        wholes = [whole for whole, _, _ in copies]
        self._fields = [f for _, fields, _ in copies for f in fields]
        super().__init__(*((self._fields, wholes) if gathers else (wholes, self._fields)))
        self._network, self._copies, self._gathers = network, copies, gathers

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
            # Where each node or cell of the network has its values, on one rank.
            rows = np.argsort(network.numbering.numbers(whole))
            values = Field(whole).array
            for field, beam in zip(fields, beams, strict=True):
                found.append((Field(field).array, values, rows[network.places(beam, field)]))
        return Blocks(found, network.mesh.comm)

    @cached_property
    def _changed(self) -> list:
        return [Field(f).written for f in self._fields]

    def _copy(self, whole: Function, fields, beams, gathers: bool) -> None:
        """Copy values from any rank to any other."""
        network = self._network
        values = network.numbering.gather(whole)
        for field, beam in zip(fields, beams, strict=True):
            if gathers:
                places, own = network.all_values(beam, field)
                values[places] = own
            else:
                field.dat.data_wo_with_halos[...] = values[network.places(beam, field)]
        if gathers:
            network.numbering.scatter(values, whole)

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
