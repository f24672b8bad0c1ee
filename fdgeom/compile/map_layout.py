"""Places of values on general meshes: the nodes of each space, found from cells through Firedrake's maps.

Each kind of nodes has places of its own, in Firedrake's order, ghosts last, in blocks of lanes as
`fields.hpp` says.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from firedrake import Function, FunctionSpace, SpatialCoordinate, VectorFunctionSpace

from fdgeom.compile.build import WIDTH
from fdgeom.compile.layout import Layout, Part, aligned
from fdgeom.errors import CannotCompile
from fdgeom.forms import is_real, scalar_space
from fdgeom.line import inside_of
from fdgeom.operations import parts
from fdgeom.operations.interpolate import sampled


@dataclass(frozen=True)
class Nodes:
    """A kind of nodes: those of a scalar element."""

    node_set: Any
    element: Any
    #: Whether each belongs to one cell.
    in_cells: bool


class MapLayout(Layout):
    """The places of the nodes of functions on a mesh of any kind."""

    def __init__(self, mesh) -> None:
        self.mesh, self.comm = mesh, mesh.comm
        #: No operation knows these of a chain.
        self.blocks, self.nodes = 0, 0
        self.own_nodes = self.own_cells = aligned(WIDTH)
        self.chain_blocks = 2**40
        self.counts = self.node_counts = np.zeros(1, dtype=np.int64)
        self._begin()

    def check_order(self) -> None:
        """Nothing: cells keep the order of their nodes."""

    @property
    def cells(self) -> int:
        """The number of cells of this rank, ghosts included."""
        return self.mesh.cell_set.total_size

    def parts_of(self, function: Function) -> list[Part]:
        return [self._part(piece) for piece in parts(function)]

    def _part(self, function: Function) -> Part:
        space = function.function_space()
        if is_real(function):
            raise CannotCompile(f"{function.name()} is a number of a Real space")
        if space.mesh().topology is not self.mesh.topology:
            raise CannotCompile(f"{function.name()} lives on another mesh")
        scalar = scalar_space(space).ufl_element()
        dofs = space.finat_element.entity_dofs()
        shared = any(own for dim in dofs if dim != max(dofs) for own in dofs[dim].values())
        nodes = Nodes(space.node_set, scalar, not shared)
        return Part(function, False, space.block_size, nodes=nodes)

    def counts_of(self, part: Part) -> np.ndarray:
        return self.counts_for(part.nodes.node_set.total_size)

    def counts_for(self, total: int) -> np.ndarray:
        """How many of so many places each block has."""

        def make() -> np.ndarray:
            # A block of none comes last.
            return np.clip(total - WIDTH * np.arange(-(-total // WIDTH) + 1), 0, WIDTH)

        return self.made_once(("counts", total), make)

    def blocks_of(self, part: Part) -> int:
        return len(self.counts_of(part)) - 1

    def dofs(self, part: Part) -> np.ndarray:
        key = part.nodes
        if key not in self._dofs:
            numbers = np.arange(self.size_of(part) // part.size)
            last = max(part.nodes.node_set.total_size - 1, 0)
            self._dofs[key] = np.minimum(numbers, last).astype(np.int32)
        return self._dofs[key]

    def map_of(self, nodes: Nodes) -> np.ndarray:
        """The nodes of each cell; CannotCompile if cells are extruded, or of different kinds."""

        def make() -> np.ndarray:
            if self.mesh.extruded:
                raise CannotCompile("the mesh is extruded")
            if inside_of(self.mesh) is not None:
                raise CannotCompile("the mesh has cells that link chains")
            space = FunctionSpace(self.mesh, nodes.element)
            return np.ascontiguousarray(space.cell_node_map().values_with_halo, dtype=np.int32)

        return self.made_once(("map", nodes), make)

    def element_of(self, kind: tuple) -> tuple:
        return (kind[2].element,)

    def coordinates_at(self, kind: tuple) -> Function:
        def make() -> Function:
            x, mesh = SpatialCoordinate(self.mesh), self.mesh
            space = VectorFunctionSpace(mesh, kind[2].element, dim=mesh.geometric_dimension)
            return sampled("x", x, space, private=True)

        return self.made_once(("coordinates", kind[2]), make)

    def owned(self, part: Part) -> np.ndarray:
        found = np.zeros(self.size_of(part) // part.size)
        found[: part.nodes.node_set.size] = 1.0
        return found

    def all_places(self, part: Part) -> tuple[np.ndarray, np.ndarray]:
        numbers = np.arange(part.nodes.node_set.total_size)
        return numbers, numbers
