"""Names of nodes in messages; parts of mixed functions."""

from collections.abc import Callable

import numpy as np
from firedrake import Function, SpatialCoordinate

from fdgeom.forms import scalar_space

# Families of elements whose unknowns are values at points.
_POINTS = ("Lagrange", "Discontinuous Lagrange", "Q", "DQ")
_NAMES = "_fdgeom_names_of_places"


def pieces(function: Function) -> tuple[Function, ...]:
    """The parts of a mixed function, or the function itself."""
    return function.subfunctions if len(function.function_space()) > 1 else (function,)


def name_places(mesh, words: Callable[[float], str]) -> None:
    """Set the function that names the nodes of an interval mesh in messages, by their coordinates."""
    setattr(mesh, _NAMES, words)


def describe(function: Function) -> Callable[[int], str]:
    """The function that describes the place of a node (or of a cell, for DG0) in messages; collective."""
    space = function.function_space()
    mesh, element = space.mesh(), space.ufl_element()
    if element.family() not in _POINTS:
        return lambda index: f"the local unknown {index}"
    places = [_node_coordinates(space, k) for k in range(mesh.geometric_dimension)]
    names = getattr(mesh, _NAMES, None)

    def words(index: int) -> str:
        if names is not None:
            return names(places[0][min(index, len(places[0]) - 1)])
        x = [f"{place[min(index, len(place) - 1)]:.6g}" for place in places]
        return f"the node at {x[0]}" if len(x) == 1 else f"the node at ({', '.join(x)})"

    return words


def _node_coordinates(space, component: int) -> np.ndarray:
    x = SpatialCoordinate(space.mesh())[component]
    return np.array(Function(scalar_space(space)).interpolate(x).dat.data_ro_with_halos)
