"""Cells of an interval mesh that are no pieces of rods, but link two nodes of them."""

import numpy as np

_ATTRIBUTE = "_fdgeom_links"


def mark_links(mesh, inside) -> None:
    """Say that a mesh is one of chains, and which of its cells link two nodes of them.

    Parameters
    ----------
    mesh : firedrake.MeshGeometry
        The mesh.
    inside : Function, DG0, or None
        Zero in the links, one elsewhere; None if there are no links.
    """
    setattr(mesh, _ATTRIBUTE, inside)


def is_of_chains(mesh) -> bool:
    """Whether a mesh is known to be one of chains and links."""
    return hasattr(mesh, _ATTRIBUTE)


def inside_of(mesh):
    """The function that :func:`mark_links` was told; None if there are no links."""
    return getattr(mesh, _ATTRIBUTE, None)


def links_of(mesh) -> np.ndarray:
    """Which cells are links, in the order of the maps from cells to nodes."""
    inside = inside_of(mesh)
    if inside is None:
        return np.zeros(mesh.cell_set.size, dtype=bool)
    return inside.dat.data_ro[inside.function_space().cell_node_map().values[:, 0]] < 0.5
