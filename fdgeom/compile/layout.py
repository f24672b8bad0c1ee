"""Places of values on interval meshes: open chains of cells, one after another, in blocks of lanes.

The C++ side is `fields.hpp`: values lie as [block of WIDTH places][component][lane]. The nodes of a chain
have consecutive places in the order of the arc length, from the beginning of a block on; a cell has the
place of its left node. Places after the end of a chain are gaps, which repeat the value before them. On
several ranks the chains of a rank contain its ghosts.

Cells that link chains follow in pairs of blocks: one for the first nodes of WIDTH links, which are also
the places of their cells, then one for the second nodes. So a node at a link has several places with the
same values; a chain begins and ends there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from firedrake import Function, SpatialCoordinate, VectorFunctionSpace
from mpi4py import MPI
from pyop2.mpi import internal_comm
from ufl.domain import extract_unique_domain

from fdgeom.compile.build import WIDTH, Exchange, Keep, Neighbour, address, array_of
from fdgeom.errors import CannotCompile
from fdgeom.forms import has_nodal_values, is_real
from fdgeom.line import inside_of, links_of
from fdgeom.messages import describe
from fdgeom.operations import parts
from fdgeom.operations.dependent import dependent_of, is_private
from fdgeom.validation import everywhere

#: Degrees of freedom of linear and of constant functions at the vertices of a cell and inside it.
_LINEAR, _CONSTANT = [1, 1, 0], [0, 0, 1]

#: Kinds of places.
AT_NODES, IN_CELLS = (True, 0, None), (False, 0, None)
# Of tabulated values.
_ROUND_OFF = 1e-14


@dataclass(frozen=True, eq=False)
class Part:
    """The values of a Function, or of a part of a mixed one, at each node or in each cell.

    A continuous function of degree p ≥ 2 has one part at the nodes, which are the vertices, and p - 1 in
    the cells.
    """

    function: Function
    #: Whether its values are at the nodes.
    nodal: bool
    #: Number of components at a place.
    size: int
    #: The number of its node inside the cell, from the left one: 1 … p - 1; 0 for others.
    inner: int = 0
    #: The kind of nodes on a general mesh; None on a chain.
    nodes: Any = None

    def __eq__(self, other) -> bool:
        same = isinstance(other, Part) and self.function.dat is other.function.dat
        return same and self.inner == other.inner

    def __hash__(self) -> int:
        return hash((id(self.function.dat), self.inner))

    @property
    def kind(self) -> tuple:
        """The kind of its places; values of one kind can be in one expression of a place."""
        order = _nodes_of(self.function)[1] if self.inner else self.nodes
        return self.nodal, self.inner, order

    @property
    def name(self) -> str:
        """The name of the Function."""
        return self.function.name()


def marked(function: Function, dofs) -> Function:
    """A Function of the same space that is 1 at some degrees of freedom and 0 elsewhere."""
    mask = Function(function.function_space(), name=f"rows of {function.name()}")
    mask.dat.data_wo_with_halos.reshape(-1)[np.asarray(dofs)] = 1.0
    return mask


def parts_of(function: Function) -> list[Part]:
    """The parts of a Function; CannotCompile if it is neither continuous nor constant in the cells."""
    return [part for piece in parts(function) for part in _parts(piece)]


def _parts(function: Function) -> list[Part]:
    space = function.function_space()
    if is_real(function):
        raise CannotCompile(f"{function.name()} is a number of a Real space")
    dofs, size = dofs_of(space), space.block_size
    values = has_nodal_values(space)
    if values and dofs in (_LINEAR, _CONSTANT):
        return [Part(function, dofs == _LINEAR, size)]
    if values and dofs[:2] == [1, 1] and _nodes_of(function) is not None:
        return [Part(function, k == 0, size, k) for k in range(dofs[2] + 1)]
    raise CannotCompile(
        f"{function.name()}: lists on interval meshes are compiled for functions of values at nodes "
        f"(CG) or of one in each cell (DG0), not {space.ufl_element()}"
    )


def _nodes_of(function: Function):
    """The order of the nodes along a cell, and the FIAT element; None if it has no nodes."""
    element = function.function_space().finat_element
    return _nodes(getattr(element, "base_element", element))


@cache
def _nodes(element):
    element = element.fiat_equivalent
    places = []
    for node in element.dual_basis():
        (place, weights), *more = node.get_point_dict().items()
        if more or weights != [(1.0, ())]:
            return None
        places.append(place[0])
    return tuple(int(k) for k in np.argsort(places)), element


def basis_at(function: Function, x: float, derivatives: int) -> list[float]:
    """The basis functions of a function of degree p ≥ 2 in a cell of length 1, from its left node on."""
    order, element = _nodes_of(function)
    table = element.tabulate(derivatives, [(x,)])[derivatives,][list(order), 0]
    for exact in (0.0, 1.0, -1.0):
        # Tabulated values are exact up to a few units in the last place.
        table[np.abs(table - exact) < _ROUND_OFF] = exact
    return [float(value) for value in table]


def dofs_of(space) -> list[int]:
    """How many degrees of freedom (or blocks of them) each vertex of a cell has, and its interior."""
    element = space.finat_element.entity_dofs()
    return [len(v) for dimension in sorted(element) for v in element[dimension].values()]


def aligned(size: int) -> np.ndarray:
    """Zeros that begin at a cache line."""
    memory = np.zeros(size + WIDTH)
    first = -(memory.ctypes.data // memory.itemsize) % WIDTH
    return memory[first : first + size]


class Layout:
    """The places of the nodes and cells of a mesh; CannotCompile if it does not consist of open chains."""

    def __init__(self, mesh) -> None:
        self.comm = mesh.comm
        space = mesh.coordinates.function_space()
        if mesh.geometric_dimension != 1 or dofs_of(space) != _LINEAR:
            raise CannotCompile("the mesh is no straight interval mesh, or periodic")
        self.mesh, links = mesh, links_of(mesh)
        ends = space.cell_node_map().values_with_halo
        x = mesh.coordinates.dat.data_ro_with_halos.reshape(-1)
        #: Cells that link chains, and whether there are some on any rank.
        self.links, self.has_links = np.flatnonzero(links), inside_of(mesh) is not None
        rods = np.flatnonzero(~links)
        left = np.argmin(x[ends[rods]], axis=1)
        rank = np.empty(len(x), dtype=int)
        rank[np.argsort(x)] = np.arange(len(x))
        first = rank[ends[rods, left]]
        order = np.argsort(first)
        first = first[order]
        last = rank[ends[rods, 1 - left]][order]
        is_other = len(np.unique(first)) < len(first) or np.any(last != first + 1)
        joined = np.sort(rank[ends[self.links]], axis=1)
        is_other = is_other or len(np.unique([*first, *last, *joined.ravel()])) < len(x)
        if self.comm.allreduce(int(is_other)):
            raise CannotCompile("the cells of the mesh are no open chains")
        first_of_links = np.argmin(x[ends[self.links]], axis=1)
        #: The cells in the order of their places, and the columns of their left nodes.
        self.cells = np.append(rods[order], self.links)
        self._left = np.append(left[order], first_of_links)
        home = self._number(first, joined)[rank]
        #: 1 at one place of each node of this rank, and at its cells.
        self.own_nodes, self.own_cells = aligned(self.size(1)), aligned(self.size(1))
        self.own_nodes[home[: space.node_set.size]] = 1.0
        self.own_cells[self.cell_places[self.cells < mesh.cell_set.size]] = 1.0

    def check_order(self) -> None:
        """Raise ``ValueError`` on all ranks if cells have been turned over, whose left nodes are known."""
        x = self.mesh.coordinates.dat.data_ro_with_halos.reshape(-1)
        ends = x[self.mesh.coordinates.cell_node_map().values_with_halo[self.cells]]
        rows = np.arange(len(ends))

        def check() -> None:
            if not (ends[rows, self._left] < ends[rows, 1 - self._left]).all():
                raise ValueError(
                    "mesh: cells have been turned over since a stepper was made; make another one"
                )

        everywhere(self.comm, check)

    def _number(self, first: np.ndarray, joined: np.ndarray) -> np.ndarray:
        """Places for nodes, numbered along the chains, and for cells with these first nodes and links."""
        begins = np.isin(first, joined) | np.append(True, np.diff(first) != 1)[: len(first)]
        #: Of each chain: its cells, the place of its first node.
        self.lengths = np.bincount(np.cumsum(begins) - 1)
        blocks = self.lengths // WIDTH + 1
        self.starts = WIDTH * (np.cumsum(blocks) - blocks)
        number = np.arange(len(first)) - np.repeat(np.flatnonzero(begins), self.lengths)
        own = np.repeat(self.starts, self.lengths) + number
        ends = np.append(begins[1:], True)[: len(first)]
        #: Blocks of the chains, before those of the links.
        self.chain_blocks, links = int(blocks.sum()), np.arange(len(joined))
        linked = WIDTH * (self.chain_blocks + links // WIDTH * 2) + links % WIDTH
        #: The places of the first nodes of the cells, and of their second nodes.
        self.cell_places = np.append(own, linked)
        self.next_places = np.append(own + 1, linked + WIDTH)
        self.blocks = self.chain_blocks + 2 * -(-len(joined) // WIDTH)
        places = np.concatenate([own, own[ends] + 1, linked, linked + WIDTH])
        nodes = np.concatenate([first, first[ends] + 1, joined[:, 0], joined[:, 1]])
        self.nodes = int(places.max(initial=-1)) + 1
        #: Nodes and cells in each block.
        self.node_counts = self._counts(places)
        self.counts = self._counts(self.cell_places)
        home = places[np.unique(nodes, return_index=True)[1]]
        order = np.argsort(nodes, kind="stable")
        order = order[np.bincount(nodes)[nodes[order]] > 1]
        ends = np.flatnonzero(np.diff(nodes[order])) + 1
        self._begin()
        self.shared = np.split(places[order], ends) if len(order) else []
        return home

    def _begin(self) -> None:
        #: The places of each node with several ones, the first of which ``own_nodes`` counts.
        self.shared: list[np.ndarray] = []
        self._dofs: dict = {}
        #: The values of parts.
        self.home: dict[Part, np.ndarray] = {}
        self._made: dict = {}
        #: Parts whose sums over all places are numbers of Real spaces.
        self.sums: dict[Part, Function] = {}

    def parts_of(self, function: Function) -> list[Part]:
        """The parts of a Function; CannotCompile if it has values at other places."""
        return parts_of(function)

    def part_like(self, part: Part, function: Function) -> Part:
        """The part of another Function of the same space."""
        return next(other for other in self.parts_of(function) if other.kind == part.kind)

    def all_places(self, part: Part) -> tuple[np.ndarray, np.ndarray]:
        """All places of the nodes or cells of a part, and their numbers in Firedrake's order."""
        places = self.cell_places
        if part.nodal:
            places = np.unique(np.concatenate([places, self.next_places]))
        return places, self.dofs(part)[places]

    def summands(self, number: Function, kind: tuple) -> Part:
        """What the places of a kind give to a number of a Real space, which is the sum over them."""

        def make() -> Part:
            size = number.dat.data_ro.size
            space = VectorFunctionSpace(self.mesh, *self.element_of(kind), dim=size)
            (part,) = self.parts_of(Function(space, name=f"summands of {number.name()}"))
            return part

        part = self.made_once(("summands", id(number.dat), kind), make)
        self.sums[part] = number
        return part

    def element_of(self, kind: tuple) -> tuple:
        """The element, or its family and degree, of one value at each place of a kind."""
        return ("CG", 1) if kind[0] else ("DG", 0)

    def check_mesh_of(self, place: SpatialCoordinate) -> None:
        """Raise ``CannotCompile`` for the coordinate of another mesh."""
        if extract_unique_domain(place) is not self.mesh:
            raise CannotCompile("a coordinate is that of another mesh")

    def coordinates_at(self, kind: tuple) -> Function | None:
        """The coordinates of places, if these are nodes."""
        return self.mesh.coordinates if kind == AT_NODES else None

    def total(self, part: Part) -> np.ndarray:
        """The sum of a part over all places of all ranks."""
        values = self.array(part).reshape(-1, part.size, WIDTH)
        own = self.owned(part).reshape(-1, WIDTH)
        return self.comm.allreduce(np.einsum("kcl,kl->c", values, own))

    def owned(self, part: Part) -> np.ndarray:
        """1 at the places of a part that this rank owns, 0 elsewhere."""
        return self.own_nodes if part.nodal else self.own_cells

    def alike(self, part: Part, component: int, *, of_links: bool) -> float | None:
        """0 or 1 if internal, unchanging values are that in all cells of chains, or of links."""
        if not self.has_links:
            return None

        def make() -> dict[int, float]:
            function = part.function
            if not is_private(function) or dependent_of(function) is not None:
                return {}
            chains = len(self.cells) - len(self.links)
            cells = self.cells[chains:] if of_links else self.cells[:chains]
            rows = function.function_space().cell_node_map().values_with_halo[cells, 0]
            values = function.dat.data_ro_with_halos.reshape(-1, part.size)[rows]
            found = [(values == x).all(axis=0) for x in (0.0, 1.0)]
            zero, one = np.all(self.comm.allgather(found), axis=0)
            return {int(k): float(one[k]) for k in np.flatnonzero(zero | one)}

        return self.made_once(("alike", part, of_links), make).get(component)

    def made_once(self, key, make: Callable):
        """What ``make`` returns, made once for a key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _counts(self, places: np.ndarray) -> np.ndarray:
        return np.bincount(places // WIDTH, minlength=self.blocks + 1).astype(np.int64)

    def size(self, components: int) -> int:
        """How many numbers a field has; after the last block there is another one, which is read only."""
        return (self.blocks + 1) * components * WIDTH

    def size_of(self, part: Part) -> int:
        """How many numbers the field of a part has."""
        return (self.blocks_of(part) + 1) * part.size * WIDTH

    def blocks_of(self, part: Part) -> int:
        """The number of blocks of a part."""
        return self.blocks

    def array(self, part: Part) -> np.ndarray:
        """The values of a part."""
        if part not in self.home:
            self.home[part] = aligned(self.size_of(part))
        return self.home[part]

    def counts_of(self, part: Part) -> np.ndarray:
        """How many places of each block hold values of a part."""
        return self.node_counts if part.nodal else self.counts

    def dofs(self, part: Part) -> np.ndarray:
        """Firedrake's number of the node or cell at each place; gaps repeat the number before them."""
        space = part.function.function_space()
        if space.mesh().topology is not self.mesh.topology:
            raise CannotCompile(f"{part.name} lives on another mesh")
        key = space.node_set, part.nodal, part.inner
        if key not in self._dofs:
            values = space.cell_node_map().values_with_halo[self.cells]
            dofs = np.full(self.size(1), -1)
            # The columns of the nodes along the cells, which may begin at their right ends.
            rows, order = np.arange(len(values)), np.arange(values.shape[1])
            if values.shape[1] > 1:
                order = np.array(_nodes_of(part.function)[0])
            along = np.where(self._left[:, None] == 0, order, order[::-1])
            if part.nodal:
                dofs[self.next_places] = values[rows, along[:, -1]]
                dofs[self.cell_places] = values[rows, along[:, 0]]
            else:
                dofs[self.cell_places] = values[rows, along[:, part.inner]]
            known = np.maximum.accumulate(np.where(dofs >= 0, np.arange(len(dofs)), 0))
            self._dofs[key] = dofs[known].astype(np.int32)
        return self._dofs[key]

    def blocks_with(self, part: Part, dofs: np.ndarray) -> np.ndarray:
        """1 for each block with one of the scalar degrees of freedom of a part, as bytes."""
        found = np.isin(self.dofs(part), np.unique(np.asarray(dofs) // part.size))
        counts = self.counts_of(part)
        found &= np.tile(np.arange(WIDTH), len(counts)) < np.repeat(counts, WIDTH)
        return found.reshape(-1, WIDTH).any(axis=1).astype(np.int8)

    def places(self, part: Part) -> Callable[[int], str]:
        """The function that describes the node or the cell at a place; collective."""
        describe_dof, dofs = describe(part.function), self.dofs(part)
        return lambda place: describe_dof(dofs[place])


def layout_of(functions: Sequence[Function]) -> Layout:
    """The layout of the mesh of some Functions."""
    if not functions:
        raise CannotCompile("the operations write nothing")
    return Layout(functions[0].function_space().mesh().unique())


#: So many blocks at an end are advanced first, as in step.hpp.
_END = 256 // WIDTH


class Ghosts:
    """The places of nodes or cells that a rank shares with others; made by all of them."""

    def __init__(self, layout: Layout, part: Part) -> None:
        space = part.function.function_space()
        comm = self._comm = internal_comm(layout.comm, self)
        _, leaves, roots = space.dof_dset.halo.sf.getGraph()
        ranks, numbers = np.reshape(roots, (-1, 2)).T
        leaves = np.arange(len(ranks)) if leaves is None else np.asarray(leaves)
        owner, root = np.full((2, space.node_set.total_size), -1)
        owner[leaves], root[leaves] = ranks, numbers
        places, dofs = layout.all_places(part)
        place = np.full(len(owner), -1, dtype=np.int32)
        place[dofs] = places
        # A node at links has several places.
        wanted = [np.flatnonzero(owner[dofs] == r) for r in range(comm.size)]
        asked = comm.alltoall([root[dofs[own]] for own in wanted])
        #: For each other rank: the places whose values it needs, and those whose values it owns.
        self._with = [
            (r, place[asked[r]], places[own].astype(np.int32))
            for r, own in enumerate(wanted)
            if len(own) or len(asked[r])
        ]
        #: 1 at the places of ghosts, as bytes.
        self.flags = np.zeros(layout.size_of(part) // part.size, dtype=np.int8)
        self.flags[places[owner[dofs] >= 0]] = 1
        self._counts = layout.counts_of(part)
        shared = [p // WIDTH for _, *both in self._with for p in both]
        blocks = np.concatenate(shared) if shared else np.zeros(0, dtype=int)
        first, last = blocks < _END, blocks >= layout.blocks_of(part) - _END
        self._ends = int(first.any()) + 2 * int((last & ~first).any())
        #: Whether all shared places lie at the ends, on all ranks.
        self.at_ends = self.all(bool(np.all(first | last)))

    def all(self, holds: bool) -> bool:
        """Whether a condition holds on all ranks."""
        return bool(self._comm.allreduce(int(holds), op=MPI.MIN))

    def struct(self, width: int, shares: Sequence[Keep] = ()) -> tuple[Exchange, list]:
        """The struct for an exchange of ``width`` numbers of each place, and what it points to."""
        share = array_of(Keep, shares)
        kept: list = [share]
        with_: list[Neighbour] = []
        for rank, *both in self._with:
            memory = [np.zeros(max(width * max(map(len, both)), 1)) for _ in both]
            pointers = [a.ctypes.data for a in (*both, *memory)]
            with_.append(Neighbour(rank, len(both[0]), len(both[1]), *pointers))
            kept += [*both, *memory]
        found = array_of(Neighbour, with_)
        made = Exchange(
            self._comm.handle, len(with_), self._ends, address(found), address(share), len(shares),
            self._counts.ctypes.data,
        )  # fmt: skip
        return made, [*kept, found]


def ghosts_of(layout: Layout, part: Part) -> Ghosts | None:
    """Those of the nodes or cells of a part; None on one rank."""
    if layout.comm.size == 1:
        return None
    return layout.made_once(("ghosts", part.kind), lambda: Ghosts(layout, part))
