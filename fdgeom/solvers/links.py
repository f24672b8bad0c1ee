"""Marks on interval meshes of rod networks: cells that link two nodes instead of being part of a rod."""

import numpy as np

_ATTRIBUTE = "_fdgeom_links"


def mark_links(mesh, inside) -> None:
    """Mark a mesh as chains with links: ``inside`` (DG0) is 0 in links and 1 elsewhere; None for no links."""
    setattr(mesh, _ATTRIBUTE, inside)


def inside_of(mesh):
    """The function given to :func:`mark_links`; None if there are no links."""
    return getattr(mesh, _ATTRIBUTE, None)


def links_of(mesh, *, ghosts: bool = False) -> np.ndarray:
    """A mask of the cells that are links, in the order of the maps from cells to nodes."""
    inside, cells = inside_of(mesh), mesh.cell_set
    if inside is None:
        return np.zeros(cells.total_size if ghosts else cells.size, dtype=bool)
    dofs = inside.function_space().cell_node_map()
    dofs = (dofs.values_with_halo if ghosts else dofs.values)[:, 0]
    return inside.dat.data_ro_with_halos[dofs] < 0.5
