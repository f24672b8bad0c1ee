"""Several ranks: ghosts of nodes and cells, whose values come from their owners."""

from collections.abc import Sequence

import numpy as np
from mpi4py import MPI
from pyop2.mpi import internal_comm

from fdgeom.compile.build import Exchange, Keep, Neighbour, address, array_of
from fdgeom.compile.layout import WIDTH, Layout, Part

#: So many blocks at an end are advanced first, as in step.hpp.
_END = 256 // WIDTH


class Ghosts:
    """The places of nodes or cells that a rank shares with others; made by all of them."""

    def __init__(self, layout: Layout, part: Part) -> None:
        space = part.function.function_space()
        comm = self._comm = internal_comm(layout.comm, self)
        _, leaves, roots = space.dof_dset.halo.sf.getGraph()
        ranks, numbers = np.reshape(roots, (-1, 2)).T
        leaves = np.arange(len(ranks)) if leaves is None else np.asarray(leaves)
        owner, root = np.full((2, space.node_set.total_size), -1)
        owner[leaves], root[leaves] = ranks, numbers
        places, dofs = layout.all_places(part)
        place = np.full(len(owner), -1, dtype=np.int32)
        place[dofs] = places
        # A node at links has several places.
        wanted = [np.flatnonzero(owner[dofs] == r) for r in range(comm.size)]
        asked = comm.alltoall([root[dofs[own]] for own in wanted])
        #: For each other rank: the places whose values it needs, and those whose values it owns.
        self._with = [
            (r, place[asked[r]], places[own].astype(np.int32))
            for r, own in enumerate(wanted)
            if len(own) or len(asked[r])
        ]
        #: 1 at the places of ghosts, as bytes.
        self.flags = np.zeros(layout.size_of(part) // part.size, dtype=np.int8)
        self.flags[places[owner[dofs] >= 0]] = 1
        self._counts = layout.counts_of(part)
        shared = [p // WIDTH for _, *both in self._with for p in both]
        blocks = np.concatenate(shared) if shared else np.zeros(0, dtype=int)
        first, last = blocks < _END, blocks >= layout.blocks_of(part) - _END
        self._ends = int(first.any()) + 2 * int((last & ~first).any())
        #: Whether all shared places lie at the ends, on all ranks.
        self.at_ends = self.all(bool(np.all(first | last)))

    def all(self, holds: bool) -> bool:
        """Whether a condition holds on all ranks."""
        return bool(self._comm.allreduce(int(holds), op=MPI.MIN))

    def struct(self, width: int, shares: Sequence[Keep] = ()) -> tuple[Exchange, list]:
        """The struct for an exchange of ``width`` numbers of each place, and what it points to."""
        share = array_of(Keep, shares)
        kept: list = [share]
        with_: list[Neighbour] = []
        for rank, *both in self._with:
            memory = [np.zeros(max(width * max(map(len, both)), 1)) for _ in both]
            pointers = [a.ctypes.data for a in (*both, *memory)]
            with_.append(Neighbour(rank, len(both[0]), len(both[1]), *pointers))
            kept += [*both, *memory]
        found = array_of(Neighbour, with_)
        made = Exchange(
            self._comm.handle, len(with_), self._ends, address(found), address(share), len(shares),
            self._counts.ctypes.data,
        )  # fmt: skip
        return made, [*kept, found]


def ghosts_of(layout: Layout, part: Part) -> Ghosts | None:
    """Those of the nodes or cells of a part; None on one rank."""
    if layout.comm.size == 1:
        return None
    return layout.made_once(("ghosts", part.kind), lambda: Ghosts(layout, part))
