"""Cotangents before a step of a chain from those after it, with the transposed equations."""

import ctypes
from collections.abc import Mapping, Sequence, Set

import numpy as np
from firedrake import Form, Function, FunctionSpace
from ufl.core.expr import Expr

from fdgeom.errors import CannotCompile
from fdgeom.solvers.chain.cells import CellEquations
from fdgeom.solvers.chain.kinds import kinds_of
from fdgeom.solvers.chain.layout import PieceLayout, address
from fdgeom.solvers.chain.lengths import put_lengths
from fdgeom.solvers.chain.library import load
from fdgeom.solvers.chain.net import NetData
from fdgeom.solvers.chain.parts import part_of
from fdgeom.solvers.chain.pulled import Pulled
from fdgeom.solvers.chain.ranks import of_all
from fdgeom.solvers.chain.source import NO_LINK, Loads, program
from fdgeom.solvers.chain.steps import Map
from fdgeom.solvers.chain.structs import Meeting, Reads
from fdgeom.solvers.compiled.nodes import pieces
from fdgeom.solvers.compiled.tables import Tables
from fdgeom.solvers.data import key
from fdgeom.solvers.spread import in_assignments, in_cells


class ChainBack:
    """The adjoint of one step: assignments at nodes after the solve of F(u; c) = 0.

    With the cotangents of the functions that a step writes, ē, and of those that it reads, c̄,

        ū = (∂e/∂u)ᵀ ē,    c̄ += (∂e/∂c)ᵀ ē,    (∂F/∂u)ᵀ λ = ū,    c̄ -= (∂F/∂c)ᵀ λ.
    """

    # The matrix is that of the chain with transposed blocks, eliminated in the same way. Prescribed
    # degrees of freedom must be constant numbers. wanted: keys of the other functions that derivatives
    # are taken by. prepared: assignments at nodes before the solve, for the step alone. given, chosen:
    # assignments before and after these for prescribed motion, without derivatives.
    def __init__(
        self,
        residual: Form,
        unknown: Function,
        essential: Sequence,
        assignments: Mapping[Function, Expr],
        wanted: Set[int],
        prepared: Mapping[Function, Expr],
        given: Mapping[Function, Expr] | None = None,
        chosen: Mapping[Function, Expr] | None = None,
    ) -> None:
        mesh = pieces(unknown)[0].function_space().mesh()
        residual, assignments = in_cells(residual), in_assignments(assignments)
        tables = self._tables = Tables(mesh)
        if any(getattr(e, "old", None) is not None or e.target is not None for e in essential):
            raise CannotCompile("the reverse sweep supports only numbers as prescribed values")
        kinds = kinds_of(residual, unknown, tables)
        _check(kinds, residual)
        length = Function(FunctionSpace(mesh, "DG", 0), name="length of the cells")
        tables.field(mesh.coordinates)
        tables.field(length)
        active = {key(f) for f in (*assignments, *prepared)} | set(wanted)
        (whole,) = {part.function for part in kinds[0].parts}
        pulled = self._pulled = Pulled(whole, tables, length, active)
        #: Functions c and their cotangents.
        self.bars = pulled.bars
        prepared = in_assignments(prepared)
        maps = {
            "given": in_assignments(given or {}),
            "prepare": prepared,
            "choose_given": in_assignments(chosen or {}),
        }
        text = _text(pulled, kinds, assignments, maps, Loads(tables, length))
        library = self._library = load(text, mesh.comm)
        self.layout = PieceLayout(tables, library.fdgeom_chain_width())
        self._meet()
        components = [pulled.components(kinds[k]) for k in (0, -1)]
        self._data = NetData(
            self.layout,
            components,
            essential,
            pulled.multiplier,
            tables,
            library,
            False,
            shared=self._sums.size,
        )
        self._pointer = ctypes.byref(self._data.net)
        put_lengths(length)
        made = {pulled.multiplier, pulled.bar, pulled.share, pulled.last, length}
        made |= {*pulled.changes.values(), *self.bars.values(), *prepared, *maps["given"]}
        #: The functions that the adjoint reads.
        self.reads = [f for f in tables.functions if f not in made]
        self._share()
        own = list(self.bars.values())
        self._incoming = self.layout.copies([length, *self.reads, *own])
        self._outgoing = self.layout.copies(own, out=True)

    # --- data --------------------------------------------------------------------------------------
    def _meet(self) -> None:
        """Number the nodes at which pieces or links end, and reserve memory for the sums there."""
        layout, nodes, field = self.layout, self._tables.coordinates, self._tables.field
        groups = range(len(layout.groups))
        ends = layout.everywhere(nodes)[np.array([layout.ends(nodes, g) for g in groups])]
        known = np.unique(of_all(self._tables.mesh.comm, ends.reshape(1, -1)))
        self._ids = np.searchsorted(known, ends).astype(np.int32)
        changes = [
            (field(change), field(bar), bar.function_space().block_size)
            for bar, change in self._pulled.changes.items()
        ]
        self._changes = np.array(changes, dtype=np.int32).reshape(-1, 3)
        self._sums = np.zeros(len(known) * int(self._changes[:, 2].sum()))
        self._meeting = Meeting(
            address(self._ids),
            len(known),
            address(self._sums),
            address(self._changes),
            len(changes),
        )

    def _share(self) -> None:
        """Choose the one copy of each node that receives the cotangent of the unknown."""
        layout, pulled = self.layout, self._pulled
        of_chains = {c.component for c in self._data.components(0)}
        for g, group in enumerate(layout.groups):
            share = layout.array(pulled.share, g)
            for k in range(share.shape[1]):
                shared = k in of_chains
                if shared or group.is_link:
                    share[:, k] = layout.own(pulled.share, g, of_links=not shared)
            rows = np.arange(group.m)[:, None]
            layout.array(pulled.last, g)[:, 0] = rows == group.count - 1

    def begin(self) -> None:
        """Pass the present values of the functions that are read, and cotangents, to the compiled code."""
        for field in self.layout.fields:
            field.update_ghosts()
        self._library.fdgeom_chain_in(self._incoming.made, self._incoming.number)

    def end(self) -> None:
        """Pass the cotangents to Firedrake."""
        self._library.fdgeom_chain_out(self._outgoing.made, self._outgoing.number)
        for bar in self.bars.values():
            self.layout.fields[self._tables.field(bar)].written()

    def places(self, function: Function) -> list[int]:
        """The memory locations that hold the addresses of a function's values, group by group."""
        number = self._tables.field(function)
        size = ctypes.sizeof(ctypes.c_void_p)
        return [ctypes.addressof(places) + number * size for places in self._data.places]

    def steps(self, reads: Reads, number: int) -> bool:
        """Compute the cotangents before some steps; False if the matrix of a step is singular."""
        return bool(
            self._library.fdgeom_chain_back(
                self._pointer, ctypes.byref(self._meeting), ctypes.byref(reads), number
            )
        )


def _check(kinds: Sequence[CellEquations], residual: Form) -> None:
    for equations in kinds:
        if not all(part.nodal for part in equations.parts):
            raise CannotCompile("the reverse sweep does not support unknowns in cells")
        if len({part.function for part in equations.parts}) > 1:
            raise CannotCompile("the reverse sweep does not support unknowns of several parts")
    for f in residual.coefficients():
        for piece in pieces(f):
            part_of(piece)


def _text(
    pulled: Pulled,
    kinds: Sequence[CellEquations],
    assignments: Mapping,
    maps: Mapping[str, Mapping],
    loads: Loads,
) -> str:
    names, first = ("Cell", "Link"), [name for name, targets in maps.items() if targets]
    around = [
        *(Map(maps[name]).text(name, loads) for name in first),
        pulled.assigned("after", assignments, solved=True),
        pulled.assigned("before", maps["prepare"]),
    ]
    around += [pulled.through(k, f"through_{n}") for k, n in zip(kinds, names, strict=False)]
    around.append(pulled.clear("clear"))
    # Last, for the graphs that they are made of grow if their text is not kept.
    cells = [pulled.cell(k, n) for k, n in zip(kinds, names, strict=False)]
    there = f"through_Cell, through_{names[len(kinds) - 1]}"
    prepare = " ".join(f"each(X, {name});" for name in first)
    entry = _ENTRY.replace("THROUGH", there).replace("PREPARE", prepare)
    cells += [NO_LINK] * (2 - len(kinds))
    return program(kinds[0].size, cells, [*around, entry], also=("back",))


_ENTRY = """
struct Pull {
  static bool step(Net &X, const Meeting &q) {
    PREPARE
    each(X, after);
    if (!linearise<Cell, Link>(X)) return false;
    update<Cell, Link>(X);
    if (!std::isfinite(X.update)) return false;
    each(X, clear);
    each(X, THROUGH);
    take_changes(X, q);
    each(X, before);
    return true;
  }
};
extern "C" int fdgeom_chain_back(Net *X, const Meeting *q, const Reads *r, long steps) {
  return back<Pull>(*X, *q, *r, steps);
}
"""
