"""Data of chains side by side and of the links between them."""

import ctypes
from collections.abc import Sequence

import numpy as np
from firedrake import Function

from fdgeom.solvers.chain.between import Between
from fdgeom.solvers.chain.cells import Component
from fdgeom.solvers.chain.fronts import Fronts
from fdgeom.solvers.chain.layout import PieceLayout, address, aligned
from fdgeom.solvers.chain.library import coupled_in
from fdgeom.solvers.chain.ranks import largest_of_all, sums
from fdgeom.solvers.chain.structs import Chain, Net
from fdgeom.solvers.compiled.nodes import pieces
from fdgeom.solvers.compiled.tables import Tables
from fdgeom.solvers.data import key
from fdgeom.solvers.essential import GivenValues

#: Further numbers in a sum of the reduced system over the ranks.
_MORE = 2


class NetData:
    """The memory that compiled code works on, beside the values of functions."""

    # components: unknowns in a cell of the chains, and in a link. factors: keep factors for other
    # right-hand sides. border: reserve memory for a border. shared: the largest number of other values
    # that are summed over the ranks at once.
    def __init__(
        self,
        layout: PieceLayout,
        components: Sequence[Sequence[Component]],
        essential: Sequence,
        unknown: Function,
        tables: Tables,
        library: ctypes.CDLL,
        factors: bool,
        border: bool = False,
        shared: int = 0,
    ) -> None:
        self._layout, self._components, self._essential = layout, components, list(essential)
        self._split, self._nodes = pieces(unknown), tables.coordinates
        given: dict[int, np.ndarray] = {}
        for e in self._essential:
            whose = key(self._split[e.part])
            known = given.get(whose, np.array([], dtype=int))
            given[whose] = np.concatenate([known, np.asarray(e.dofs, dtype=int)])
        # Path continuation asks for the inertia of one whole matrix; ranks know only their own pieces.
        whole = border or tables.mesh.comm.size > 1
        self._alone = set() if whole else layout.alone(self._nodes)
        between = self._between = Between(
            layout, tuple(components), given, self._nodes, self._alone
        )
        reduced, self._kept = between.struct(layout.lanes)
        self._matrix, self._border = self._kept[0], border
        self._library, self._fronts = library, None
        # On several ranks each of them solves the reduced system by the band.
        if tables.mesh.comm.size == 1 and layout.groups[-1].is_link:
            self._fronts = Fronts(between, layout)
            reduced.fronts = ctypes.addressof(self._fronts.struct)
        self._comm = tables.mesh.comm
        values = between.size * (2 * between.band + 3) + _MORE
        ranks, also = sums(self._comm, max(values, shared))
        self._kept += also
        constants = [c.dat._data.ctypes.data for c in tables.constants]
        self._constants = (ctypes.c_void_p * max(len(constants), 1))(*constants)
        #: For each group: a right-hand side or solution, the factors of an update in the equation of a
        #: border, and the addresses of the values of functions.
        self.rhs: list[np.ndarray] = []
        self.normal: list[np.ndarray] = []
        self.places: list[ctypes.Array] = []
        self._factors: list[np.ndarray] = []
        self._values: list[np.ndarray] = []
        made: tuple[list, list] = ([], [])
        for g, group in enumerate(layout.groups):
            made[group.is_link].append(self._chain(g, between, given, factors or border))
        self._groups = [(Chain * max(len(found), 1))(*found) for found in made]
        self._held = [self._places_of(e) for e in self._essential]
        rods, links = (ctypes.cast(found, ctypes.c_void_p) for found in self._groups)
        shared = None if ranks is None else ctypes.addressof(ranks)
        self.net = Net(rods, len(made[0]), links, len(made[1]), reduced, shared)

    def _chain(self, g: int, between: Between, given: dict, factors: bool) -> Chain:
        """The struct of a group."""
        layout, lanes, group = self._layout, self._layout.lanes, self._layout.groups[g]
        components = self.components(g)
        n, rows = len(components), group.m + 1
        free, once = aligned((rows, n, lanes)), aligned((rows, n, lanes))
        free[...] = 1.0
        for i, c in enumerate(components):
            places = layout.places(c.function, g)
            shared = not group.is_link or c in self._components[0]
            once[: len(places), i] = layout.own(c.function, g, of_links=not shared)
            held = np.isin(places * c.block + c.component, given.get(key(c.function), []))
            free[: len(places), i] = ~held
            if g in self._alone:
                free[len(places) :, i] = 0.0  # the right end has no value of a cell
        special = np.ascontiguousarray((free < 1.0).any(axis=(1, 2)).astype(np.uint8))
        nodes = aligned((rows, lanes))
        nodes[...] = layout.own(self._nodes, g)
        there = group.there.astype(np.uint8)
        values, rhs, saved = (aligned((rows, n, lanes)) for _ in range(3))
        eliminated = None if group.is_link else aligned((rows, n * (2 * n + 1), lanes))
        kept = aligned((rows, 3 * n * n, lanes)) if factors and not group.is_link else None
        normal, step = (aligned((rows, n, lanes)) if self._border else None for _ in range(2))
        alone = aligned((self._library.fdgeom_chain_alone(),)) if g in self._alone else None
        if kept is not None:
            self._factors.append(kept)
        self.normal.append(normal)
        arrays = layout.arrays[g]
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        self._values.append(values)
        self.rhs.append(rhs)
        # The struct has addresses only; self._kept keeps the arrays alive.
        memory = {
            "free": free,
            "special": special,
            "once": once,
            "nodes": nodes,
            "there": there,
            "left": np.ascontiguousarray(between.left[g]),
            "right": np.ascontiguousarray(between.right[g]),
            "X": eliminated,
            "factors": kept,
            "rhs": rhs,
            "given": values,
            "saved": saved,
            "normal": normal,
            "step": step,
            "alone": alone,
        }
        entries = 0
        if self._fronts is not None:
            memory["source"], memory["target"] = self._fronts.entries(
                g, coupled_in(self._library) if group.is_link else None
            )
            entries = len(memory["source"])
        self.places.append(pointers)
        self._kept += memory.values()
        return Chain(
            F=ctypes.cast(pointers, ctypes.c_void_p),
            C=ctypes.cast(self._constants, ctypes.c_void_p),
            m=group.m,
            count=address(group.count),
            whole=int(group.count.min()),
            entries=entries,
            **{name: address(array) for name, array in memory.items()},
        )

    def components(self, g: int) -> Sequence[Component]:
        """The unknowns in a block of a group."""
        return self._components[self._layout.groups[g].is_link]

    def hold(self) -> bool:
        """Read the prescribed values of the unknown; returns whether they stay constant in a step."""
        constant = True
        for e, held in zip(self._essential, self._held, strict=True):
            values = e.values()
            held.put(values)
            # A mean of old and new values changes with them.
            constant = constant and (isinstance(e, GivenValues) or not np.any(values))
        return bool(-largest_of_all(self._comm, -int(constant)))

    def matrix_between(self) -> np.ndarray:
        """The matrix of the free unknowns between the pieces, before elimination."""
        n, band, lanes = self._between.size, self._between.band, self._layout.lanes
        length = self.net.between.length
        first = np.maximum(np.arange(n) - band, 0) // lanes * lanes
        whole = np.zeros((n, n + length))
        rows, columns = np.arange(n)[:, None], first[:, None] + np.arange(length)
        whole[rows, columns] = self._matrix[: n * length].reshape(n, length)
        free = self._between.held == 0
        return whole[:, :n][np.ix_(free, free)]

    def negative_pivots(self) -> int:
        """The number of negative pivots inside the pieces; needs kept factors."""
        found = 0
        groups = [group for group in self._layout.groups if not group.is_link]
        for group, kept in zip(groups, self._factors, strict=True):
            n = len(self._components[0])
            # The factors of a node come first, with the inverse pivots on their diagonal.
            pivots = kept[1 : group.m, : n * n : n + 1]
            found += int((pivots[:, :, group.there] < 0).sum())
        return found

    def _places_of(self, e) -> "_HeldValues":
        """The places of prescribed values in the arrays of the groups."""
        dofs, layout = np.asarray(e.dofs, dtype=int), self._layout
        order = np.argsort(dofs)
        found = []
        for g in range(len(layout.groups)):
            for i, c in enumerate(self.components(g)):
                if key(c.function) != key(self._split[e.part]) or not len(dofs):
                    continue
                wanted = layout.places(c.function, g) * c.block + c.component
                at = np.minimum(np.searchsorted(dofs[order], wanted), len(dofs) - 1)
                rows, lanes = np.nonzero(dofs[order][at] == wanted)
                if len(rows):
                    which = order[at[rows, lanes]]
                    found.append((self._values[g][:, i], rows, lanes, which))
        return _HeldValues(found)


class _HeldValues:
    """Writes values of prescribed degrees of freedom to their places if they have changed."""

    def __init__(self, places: list[tuple]) -> None:
        self._places, self._last = places, np.array(0.0)

    def put(self, values) -> None:
        values = np.asarray(values, dtype=float)
        if np.array_equal(values, self._last):
            return
        self._last = values.copy()
        for array, rows, lanes, which in self._places:
            array[rows, lanes] = values if values.ndim == 0 else values[which]
