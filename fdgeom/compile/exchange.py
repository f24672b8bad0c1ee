"""Several ranks: ghosts of nodes, whose values come from their owners."""

import numpy as np
from mpi4py import MPI
from pyop2.mpi import internal_comm

from fdgeom.compile.build import Exchange, Neighbour, address, array_of
from fdgeom.compile.layout import WIDTH, Layout, Part

#: So many blocks at an end are advanced first, as in step.hpp.
_END = 256 // WIDTH


class Ghosts:
    """The places of the nodes of a space that a rank shares with others; made by all of them."""

    def __init__(self, layout: Layout, part: Part) -> None:
        space = part.function.function_space()
        comm = self._comm = internal_comm(layout.comm, self)
        _, leaves, roots = space.dof_dset.halo.sf.getGraph()
        ranks, numbers = np.reshape(roots, (-1, 2)).T
        leaves = np.arange(len(ranks)) if leaves is None else np.asarray(leaves)
        wanted = [np.flatnonzero(ranks == r) for r in range(comm.size)]
        asked = comm.alltoall([numbers[own] for own in wanted])
        places = layout.node_places(space).astype(np.int32)
        #: For each other rank: the places whose values it needs, and those whose values it owns.
        self._with = [
            (r, places[asked[r]], places[leaves[own]])
            for r, own in enumerate(wanted)
            if len(own) or len(asked[r])
        ]
        #: 1 at the places of ghosts, as bytes.
        self.flags = np.zeros(layout.size_of(part) // part.size, dtype=np.int8)
        self.flags[places[space.node_set.size :]] = 1
        shared = [p // WIDTH for _, *both in self._with for p in both]
        blocks = np.concatenate(shared) if shared else np.zeros(0, dtype=int)
        first, last = blocks < _END, blocks >= layout.blocks_of(part) - _END
        self._ends = int(first.any()) + 2 * int((last & ~first).any())
        #: Whether all shared places lie at the ends, on all ranks.
        self.at_ends = self.all(bool(np.all(first | last)))

    def all(self, holds: bool) -> bool:
        """Whether a condition holds on all ranks."""
        return bool(self._comm.allreduce(int(holds), op=MPI.MIN))

    def struct(self, width: int) -> tuple[Exchange, list]:
        """The struct for an exchange of ``width`` numbers of each place, and what it points to."""
        kept: list = []
        with_: list[Neighbour] = []
        for rank, *both in self._with:
            memory = [np.zeros(max(width * max(map(len, both)), 1)) for _ in both]
            pointers = [a.ctypes.data for a in (*both, *memory)]
            with_.append(Neighbour(rank, len(both[0]), len(both[1]), *pointers))
            kept += [*both, *memory]
        found = array_of(Neighbour, with_)
        return Exchange(self._comm.handle, len(with_), self._ends, address(found)), [*kept, found]


def ghosts_of(layout: Layout, part: Part) -> Ghosts | None:
    """Those of the nodes of a part; None on one rank."""
    if layout.comm.size == 1:
        return None
    return layout.made_once(("ghosts", part.kind), lambda: Ghosts(layout, part))
