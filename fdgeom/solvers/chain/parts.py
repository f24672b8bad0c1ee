"""Functions of a chain split into values at nodes and values in cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from firedrake import Function

from fdgeom.errors import CannotCompile
from fdgeom.forms import has_nodal_values, scalar_space
from fdgeom.solvers.compiled.tables import nodes_of
from fdgeom.solvers.derived import is_real

# Tabulated values are exact up to a few units in the last place.
_ROUND_OFF = 1e-14

#: Kinds of parts.
AT_NODES, IN_CELLS = (True, None, None), (False, None, None)


class Seen:
    """A view of a function of degree 2 or more: its values at the ends of cells, or at one node inside."""

    def __init__(self, function: Function, nodes: tuple[int, ...]) -> None:
        self.function, self.seen = function, nodes

    def __getattr__(self, name: str):
        return getattr(self.function, name)

    def __eq__(self, other) -> bool:
        return (self.function, self.seen) == (getattr(other, "function", None), nodes_of(other))

    def __hash__(self) -> int:
        return hash((self.function, self.seen))


@dataclass(frozen=True)
class Part:
    """A function with one value at each node or in each cell, and its number of components."""

    #: A Function, a part of a mixed one, or a `Seen` view of one.
    function: Function
    #: Whether its values are at the nodes.
    nodal: bool
    #: Number of components at one place.
    size: int

    @property
    def kind(self) -> tuple:
        """The kind of places of its values; functions of one kind can be assigned together."""
        inside = None if self.nodal else nodes_of(self.function)
        return self.nodal, None if inside is None else _element(self.function)[0], inside


def parts_of(function: Function) -> list[Part]:
    """The parts of a function; for degree p ≥ 2, its values at the nodes and p - 1 values in each cell."""
    space = function.function_space()
    seen = nodes_of(function)
    if seen is not None:
        return [Part(function, len(seen) == 2, space.block_size)]
    if is_real(function):
        raise CannotCompile(f"{function.name()} is a Function of a Real space")
    dofs = space.finat_element.entity_dofs()
    ends, inside = [len(v) for v in dofs[0].values()], len(dofs[1][0])
    size, has_nodes = space.block_size, has_nodal_values(space)
    if has_nodes and (is_linear(function) or (ends, inside) == ([0, 0], 1)):
        return [Part(function, inside == 0, size)]
    if has_nodes and ends == [1, 1] and _basis(_element(function)[1]) is not None:
        seen = [(0, inside + 1), *((1 + k,) for k in range(inside))]
        return [Part(Seen(function, nodes), len(nodes) == 2, size) for nodes in seen]
    raise CannotCompile(
        f"{function.name()}: chains support values at nodes (CG) or one in each cell (DG0), not "
        f"{space.ufl_element()}"
    )


def is_linear(function: Function) -> bool:
    """Whether a function is continuous and linear in each cell."""
    dofs = function.function_space().finat_element.entity_dofs()
    return [len(v) for v in (*dofs[0].values(), *dofs[1].values())] == [1, 1, 0]


def part_of(function: Function) -> Part:
    """The only part of a function; ``CannotCompile`` for degree 2 or more."""
    part, *more = parts_of(function)
    if more:
        raise CannotCompile(f"{function.name()} is of degree {len(more) + 1}, not 1")
    return part


def values_at(parts: Sequence[Part], place: float, derivatives: int) -> list[list[float]]:
    """Basis functions of the nodes of each part, at a place in a cell; derivatives for a cell of length 1."""
    order, element = _basis(_element(parts[0].function)[1])
    table = element.tabulate(derivatives, [(place,)])[derivatives,][order, 0]
    for exact in (0.0, 1.0, -1.0):
        table[np.abs(table - exact) < _ROUND_OFF] = exact
    return [[float(table[k]) for k in nodes_of(part.function)] for part in parts]


def _element(function: Function) -> tuple:
    """The element of one component, for UFL and for tabulation."""
    space = scalar_space(function.function_space())
    return space.ufl_element(), space.finat_element


@cache
def _basis(element):
    """The order of the basis functions along the cell and their FIAT element; None if they have no nodes."""
    element = element.fiat_equivalent
    places = []
    for node in element.dual_basis():
        (place, weights), *more = node.get_point_dict().items()
        if more or weights != [(1.0, ())]:
            return None
        places.append(place[0])
    return np.argsort(places), element
