"""Data on meshes: cells that link rods, and names of nodes in messages."""

from collections.abc import Callable
from typing import Any

import numpy as np
from firedrake import Function, SpatialCoordinate

from fdgeom.forms import scalar_space

# Families of elements whose unknowns are values at points.
_POINTS = ("Lagrange", "Discontinuous Lagrange", "Q", "DQ")


def data_of(mesh) -> dict[str, Any]:
    """What fdgeom keeps with a mesh, in Firedrake's dictionary for that."""
    return mesh.geometric_shared_data_cache["fdgeom"]


def mark_links(mesh, inside) -> None:
    """Mark a mesh as chains with links: ``inside`` (DG0) is 0 in links and 1 elsewhere; None for no links."""
    data_of(mesh)["inside"] = inside


def inside_of(mesh):
    """The function given to :func:`mark_links`; None if there are no links."""
    return data_of(mesh).get("inside")


def links_of(mesh) -> np.ndarray:
    """A mask of the cells (with halo) that are links, in the order of the maps from cells to nodes."""
    inside = inside_of(mesh)
    if inside is None:
        return np.zeros(mesh.cell_set.total_size, dtype=bool)
    dofs = inside.function_space().cell_node_map().values_with_halo[:, 0]
    return inside.dat.data_ro_with_halos[dofs] < 0.5


def name_places(mesh, name: Callable[[float], str]) -> None:
    """Set the function that names the nodes of an interval mesh in messages, by their coordinates."""
    data_of(mesh)["name"] = name


def node_name(mesh) -> Callable[..., str]:
    """The function that names a node in messages by its coordinates."""

    def by_coordinates(*x: float) -> str:
        numbers = ", ".join(f"{value:.6g}" for value in x)
        return f"the node at {numbers}" if len(x) == 1 else f"the node at ({numbers})"

    return data_of(mesh).get("name", by_coordinates)


def describe(function: Function) -> Callable[[int], str]:
    """The function that describes the place of a node (or of a cell, for DG0) in messages; collective."""
    space = function.function_space()
    mesh = space.mesh()
    if space.ufl_element().family() not in _POINTS:
        return lambda index: f"the local unknown {index}"
    nodes, name = scalar_space(space), node_name(mesh)
    places = [
        np.array(Function(nodes).interpolate(x).dat.data_ro_with_halos)
        for x in SpatialCoordinate(mesh)
    ]
    return lambda index: name(*(place[min(index, len(place) - 1)] for place in places))
