"""Groups of nodes that links couple, as data for compiled code."""

import ctypes
from collections.abc import Sequence
from ctypes import Structure, c_long, c_void_p

import numpy as np
from firedrake import Function
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from fdgeom.solvers.compiled.layout import ChainLayout
from fdgeom.solvers.compiled.tables import Tables
from fdgeom.solvers.essential import EssentialValues
from fdgeom.solvers.links import links_of


class Group(Structure):
    """Nodes that links connect; see links.hpp."""

    _fields_ = [
        *((name, c_long) for name in ("nodes", "links", "rows")),
        *((name, c_void_p) for name in ("node", "mask", "ends", "cell", "row", "size", "owner")),
    ]


class Links(Structure):
    """All groups, and working memory for one of them."""

    _fields_ = [("count", c_long), ("groups", c_void_p), ("memory", c_void_p)]


def link_data(
    layout: ChainLayout,
    tables: Tables,
    unknown: Function,
    essential: Sequence[EssentialValues],
    conditions: Function,
    owner: Function,
) -> Links:
    """The groups of a mesh's links."""
    # The DG0 functions hold, in each link, the number of its conditions and the end (0 or 1) that
    # stores the multipliers.
    space, block = unknown.function_space(), unknown.function_space().block_size
    cells = np.flatnonzero(links_of(tables.mesh))
    nodes = layout.number(tables.space(unknown), space.cell_node_map().values[cells])
    ends = np.sort(nodes, axis=1)
    sizes, owners = (_in_cells(f, cells) for f in (conditions, owner))
    free = np.ones((layout.ranges[tables.space(unknown)][2], block))
    for e in essential:
        places = layout.number(tables.space(unknown), np.asarray(e.dofs) // block)
        free[places, np.asarray(e.dofs) % block] = 0.0
    used, local = np.unique(ends, return_inverse=True)
    local = local.reshape(ends.shape)
    joined = csr_matrix((np.ones(len(local)), local.T), shape=2 * (len(used),))
    number, label = connected_components(joined, directed=False)
    made, largest = (Group * number)(), 0
    keep, m = [], int(sizes.max())
    for k, group in enumerate(made):
        own, links = np.flatnonzero(label == k), np.flatnonzero(label[local[:, 0]] == k)
        mine, size = np.searchsorted(own, local[links]), sizes[links]
        arrays = {
            "node": used[own].astype(np.int32),
            "mask": np.ascontiguousarray(free[used[own]]),
            "ends": mine.astype(np.int32),
            "cell": (layout.cells + links).astype(np.int32),
            "row": (np.cumsum(size) - size).astype(np.int32),
            "size": size.astype(np.int32),
            "owner": mine[np.arange(len(links)), owners[links]].astype(np.int32),
        }
        group.nodes, group.links, group.rows = len(own), len(links), int(size.sum())
        for name, array in arrays.items():
            setattr(group, name, array.ctypes.data)
        keep.append(arrays)

        largest = max(largest, _memory(group, block, m))
    memory = np.zeros(largest)
    found = Links(number, ctypes.cast(made, c_void_p), memory.ctypes.data)
    found.kept = made, keep, memory
    return found


def _memory(group: Group, n: int, m: int) -> int:
    """The number of doubles that the solve of a group needs."""
    nodes = group.nodes * (2 * n + n * n)
    links = group.links * (3 * 2 * n * m + 2 * n + m)
    return nodes + links + group.rows**2 + 2 * group.rows


def _in_cells(function: Function, cells: np.ndarray) -> np.ndarray:
    """The integer values of a DG0 function in cells."""
    numbers = function.function_space().cell_node_map().values[cells, 0]
    return np.rint(function.dat.data_ro[numbers]).astype(int)
