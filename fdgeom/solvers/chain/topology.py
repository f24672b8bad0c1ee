"""How the cells of an interval mesh hang together: chains, the pieces they are cut into, and links."""

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee

from fdgeom.solvers.compiled.refused import CannotCompile

# What a node between pieces costs, beside a cell in every lane.
_SEPARATOR = 0.13


class Topology:
    """The chains of a mesh.

    Parameters
    ----------
    ends : numpy.ndarray of int, shape (cells, 2)
        The two nodes of each cell, the one of the smaller coordinate first.
    places : numpy.ndarray
        Coordinates of the nodes.
    links : numpy.ndarray of bool
        Which cells are links.

    Attributes
    ----------
    links : numpy.ndarray of int
        The cells that link.
    chains : list of numpy.ndarray of int
        The cells of each chain, one after another; no link ends inside.

    Raises
    ------
    CannotCompile
        If more than two cells that are no links meet at a node, or chains are closed.
    """

    def __init__(self, ends: np.ndarray, places: np.ndarray, links: np.ndarray) -> None:
        self.ends, self.links = ends, np.flatnonzero(links)
        cells = np.flatnonzero(~links)
        cells = cells[np.argsort(places[ends[cells, 0]], kind="stable")]
        first, last = ends[cells].T
        if not len(cells) or any(len(np.unique(side)) < len(side) for side in (first, last)):
            raise CannotCompile("the cells of the mesh are no open chains")
        joined = last[:-1] == first[1:]
        if np.isin(first, last).sum() != joined.sum():
            raise CannotCompile("the cells of the mesh are no open chains")
        cut = ~joined | np.isin(first[1:], ends[self.links])
        self.chains = np.split(cells, np.flatnonzero(cut) + 1)

    def groups(self, lanes: int) -> list[list[np.ndarray]]:
        """Pieces of the chains, in groups of so many, the longest first."""
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
            # Of one length but for a cell: what is shorter costs as much, and is to be told apart.
            for piece in np.array_split(chain, -(-len(chain) // best))
        ]
        pieces.sort(key=len, reverse=True)
        return [pieces[k : k + lanes] for k in range(0, len(pieces), lanes)]


def narrow_order(pairs: np.ndarray) -> np.ndarray:
    """Nodes in an order in which those of a pair are near one another (Cuthill & McKee, 1969)."""
    if not len(pairs):
        return np.array([], dtype=int)
    matrix = csr_matrix((np.ones(len(pairs)), pairs.T), shape=2 * (pairs.max() + 1,))
    order = reverse_cuthill_mckee((matrix + matrix.T).tocsr(), symmetric_mode=True)
    return order if order[0] <= order[-1] else order[::-1]
