"""What the coordinates of a chain say of its cells."""

import numpy as np
from firedrake import Function


def put_lengths(lengths: Function) -> None:
    """Give a function of the cells their lengths."""
    _, cells, x = _cells(lengths)
    lengths.dat.data_wo[cells] = np.abs(x[:, 1] - x[:, 0])


def put_lasts(lasts: Function) -> None:
    """Give it 1 in cells that none follows, else 0."""
    nodes, cells, x = _cells(lasts)
    second = np.take_along_axis(nodes, np.argmax(x, axis=1)[:, None], axis=1)[:, 0]
    first = np.take_along_axis(nodes, np.argmin(x, axis=1)[:, None], axis=1)[:, 0]
    lasts.dat.data_wo[cells] = ~np.isin(second, first)


def _cells(function: Function) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The nodes of cells, the numbers of the cells in a function, and where the nodes are."""
    space = function.function_space()
    coordinates = space.mesh().coordinates
    nodes = coordinates.cell_node_map().values
    cells = space.cell_node_map().values[:, 0]
    return nodes, cells, coordinates.dat.data_ro_with_halos.reshape(-1)[nodes]
