"""Lengths of the cells of a chain."""

import numpy as np
from firedrake import Function


def put_lengths(lengths: Function) -> None:
    """Set a DG0 function to the lengths of the cells."""
    space = lengths.function_space()
    coordinates = space.mesh().coordinates
    nodes = coordinates.cell_node_map().values
    x = coordinates.dat.data_ro_with_halos.reshape(-1)[nodes]
    lengths.dat.data_wo[space.cell_node_map().values[:, 0]] = np.abs(x[:, 1] - x[:, 0])
