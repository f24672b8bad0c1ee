"""Topology of interval meshes: chains, their pieces, and links."""

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee

from fdgeom.errors import CannotCompile

# The cost of a node between pieces, relative to that of a vector of cells.
_SEPARATOR = 0.13


class Topology:
    """The chains of a mesh; ``CannotCompile`` if three cells of chains meet, or if a chain is closed."""

    # ends: the two nodes of each cell, that of the smaller coordinate first. places: coordinates of the
    # nodes. links: a mask of the cells that are links.
    def __init__(self, ends: np.ndarray, places: np.ndarray, links: np.ndarray) -> None:
        self.ends, self.links = ends, np.flatnonzero(links)
        cells = np.flatnonzero(~links)
        cells = cells[np.argsort(places[ends[cells, 0]], kind="stable")]
        first, last = ends[cells].T
        if not len(cells) or any(len(np.unique(side)) < len(side) for side in (first, last)):
            raise CannotCompile("the mesh is not a set of open chains")
        joined = last[:-1] == first[1:]
        if np.isin(first, last).sum() != joined.sum():
            raise CannotCompile("the mesh is not a set of open chains")
        cut = ~joined | np.isin(first[1:], ends[self.links])
        #: The cells of each chain in order; links end only at ends of chains.
        self.chains = np.split(cells, np.flatnonzero(cut) + 1)

    def groups(self, lanes: int) -> list[list[np.ndarray]]:
        """Pieces of the chains, the longest first, in groups of ``lanes``."""
        lengths = np.array([len(chain) for chain in self.chains])
        longest = lengths.max()
        sizes = np.unique(-(-longest // np.arange(1, min(longest, lanes * 4) + 1)))

        def cost(size: int) -> float:
            pieces = (-(-lengths // size)).sum()
            return -(-pieces // lanes) * size + _SEPARATOR * pieces

        best = min(sizes, key=cost)
        pieces = [
            piece
            for chain in self.chains
            # Lengths differ by one cell at most: shorter pieces cost as much, and need a mask.
            for piece in np.array_split(chain, -(-len(chain) // best))
        ]
        pieces.sort(key=len, reverse=True)
        return [pieces[k : k + lanes] for k in range(0, len(pieces), lanes)]


def narrow_order(pairs: np.ndarray) -> np.ndarray:
    """Nodes in an order that keeps the nodes of a pair close (Cuthill & McKee, 1969)."""
    if not len(pairs):
        return np.array([], dtype=int)
    matrix = csr_matrix((np.ones(len(pairs)), pairs.T), shape=2 * (pairs.max() + 1,))
    order = reverse_cuthill_mckee((matrix + matrix.T).tocsr(), symmetric_mode=True)
    return order if order[0] <= order[-1] else order[::-1]
