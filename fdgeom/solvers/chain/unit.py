"""Compiled equations of a chain, with their data."""

import ctypes
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from firedrake import Constant, Form, Function, FunctionSpace
from mpi4py import MPI

from fdgeom.errors import CannotCompile
from fdgeom.forms import is_affine
from fdgeom.solvers.chain.cells import Component
from fdgeom.solvers.chain.kinds import kinds_of
from fdgeom.solvers.chain.layout import Copies, PieceLayout, topology_of
from fdgeom.solvers.chain.lengths import put_lengths
from fdgeom.solvers.chain.library import load
from fdgeom.solvers.chain.net import NetData
from fdgeom.solvers.chain.parts import part_of, parts_of
from fdgeom.solvers.chain.source import NO_LINK, Loads, kept_cell_class, program
from fdgeom.solvers.chain.steps import Map, Step
from fdgeom.solvers.chain.structs import Border, Kept, Test
from fdgeom.solvers.compiled.nodes import pieces
from fdgeom.solvers.compiled.tables import Tables
from fdgeom.solvers.data import Field, key
from fdgeom.solvers.derived import derived_of
from fdgeom.solvers.spread import in_assignments, in_cells

#: The matrices of larger blocks exceed the caches.
_LARGEST = 32

SINGULAR, TOO_FAR = -2, -5
#: Why Newton's iteration failed, by the unit's code.
REASONS = {
    -1: "too many iterations",
    SINGULAR: "a singular matrix",
    -3: "values that are not finite",
    -4: "divergence",
    -6: "updates that circle, as at the kink of friction",
}


class ChainUnit:
    """The compiled equations F(u; w) = 0 of a chain; ``CannotCompile`` if they are not those of a chain."""

    # tangent: T(u; w), linear in u, replaces the derivative of F. factors: keep them for other
    # right-hand sides (`apply`). maps: nodal assignments of a `step` for `advance`; they write `private`
    # functions for the step alone. following: values of the prescribed components, the first ones of
    # the unknown, set by a step. change: receives each update of the unknown. seldom: a short compile
    # time matters more than speed. border: a number λ that `bordered` solves for together with u.
    def __init__(
        self,
        residual: Form,
        unknown: Function,
        *,
        tangent: Form | None = None,
        essential: Sequence = (),
        factors: bool = False,
        maps: Sequence[Mapping] = (),
        step: Step | None = None,
        private: Sequence[Function] = (),
        following: Function | None = None,
        change: Function | None = None,
        seldom: bool = False,
        border: Constant | None = None,
    ) -> None:
        mesh = pieces(unknown)[0].function_space().mesh()
        self.comm = mesh.comm
        check_chain(unknown, shared=step is not None and not step.relative)
        self.unknown, self._mesh = unknown, mesh
        self.tables = Tables(mesh)
        self.length = Function(FunctionSpace(mesh, "DG", 0), name="length of the cells")
        residual = self._residual = in_cells(residual)
        tangent = None if tangent is None else in_cells(tangent)
        maps = [in_assignments(assignments) for assignments in maps]
        for f in (following, change):
            if f is not None:
                part_of(f)
        kinds = kinds_of(residual, unknown, self.tables, tangent)
        self.parts, self.size = kinds[0].parts, kinds[0].size
        if max(kind.size for kind in kinds) > _LARGEST:
            raise CannotCompile(f"a node has {self.size} unknowns, more than {_LARGEST}")
        self.tables.field(mesh.coordinates)
        loads = Loads(self.tables, self.length)
        self.tables.field(self.length)
        for part in self.parts:
            self.tables.field(part.function)
        names = ("Cell", "Link")
        cells = [
            kept_cell_class(k, self.tables, self.length, n, following, change, border)
            for k, n in zip(kinds, names, strict=False)
        ]
        cells += [NO_LINK] * (2 - len(kinds))
        texts = [Map(assignments).text(f"map{k}", loads) for k, assignments in enumerate(maps)]
        texts += [step.text(loads)] if step else []
        written = [f for assignments in maps for f in assignments]
        bordered = border is not None
        text = program(
            self.size,
            cells,
            texts,
            relative=bool(step and step.relative),
            bordered=bordered,
        )
        library = self._library = load(text, self.comm, seldom=seldom)
        self.lanes = library.fdgeom_chain_width()
        self.layout = PieceLayout(self.tables, self.lanes)
        data = self._data = NetData(
            self.layout,
            [kinds[0].components, kinds[-1].components],
            essential,
            unknown,
            self.tables,
            library,
            # The last updates of steps reuse factors.
            factors or border is not None or step is not None,
            border is not None,
        )
        self.rhs, self.normal, self._net = data.rhs, data.normal, data.net
        self._pointer = ctypes.byref(self._net)
        self._iterations = ctypes.c_long(0)
        self._derived = list({
            id(d): d
            for d in map(derived_of, (*self.tables.functions, *self.tables.constants))
            if d is not None
        }.values())  # fmt: skip
        own, alone = [p.function for p in self.parts], set(map(key, private))
        hidden = {key(self.length), *map(key, own), *alone}
        read = [f for f in self.tables.functions if key(f) not in hidden]
        quiet = {f for f in read if (d := derived_of(f)) is not None and d.private}
        quiet.add(mesh.coordinates)
        quiet -= set(written)
        self._ghosted = self.layout.fields if self.comm.size > 1 else []
        self._incoming = self.layout.copies([f for f in read if f not in quiet])
        self._quiet = [f for f in read if f in quiet]
        self._quiet_copies = self.layout.copies(self._quiet)
        self._length_copies = self.layout.copies([self.length])
        written = [f for f in dict.fromkeys((*written, *own)) if key(f) not in alone]
        #: The functions that steps change.
        self.moving = written
        self._outgoing = self.layout.copies(written, out=True)
        self._written_fields = [self.layout.fields[self.tables.field(f)] for f in written]
        self._unknown_in, self._unknown_out = (
            self.layout.copies(own, out) for out in (False, True)
        )
        self._unknown_fields = [self.layout.fields[self.tables.field(f)] for f in own]
        self._versions: list[int] | None = None

    # --- data --------------------------------------------------------------------------------------
    def begin(self) -> None:
        """Pass the present values of the functions, except the unknown, to the compiled code."""
        for derived in self._derived:
            derived.refresh()
        versions = [f.dat.dat_version for f in self._quiet]
        if versions != self._versions:
            self._measure()
            self._take(self._quiet_copies)
            self._versions = versions
        self._take(self._incoming)

    def end(self) -> None:
        """Pass the values that steps have written to Firedrake."""
        self._give(self._outgoing, self._written_fields)

    def _take(self, copies: Copies) -> None:
        for field in self._ghosted:
            field.update_ghosts()
        self._library.fdgeom_chain_in(copies.made, copies.number)

    def _give(self, copies: Copies, fields: Sequence[Field]) -> None:
        self._library.fdgeom_chain_out(copies.made, copies.number)
        for field in fields:
            field.written()

    def give(self, function: Function) -> None:
        """Pass the values of a private function to Firedrake."""
        field = self.layout.fields[self.tables.field(function)]
        self._give(self.layout.copies([function], out=True), [field])

    def hold(self) -> bool:
        """Read the prescribed values of the unknown; returns whether they stay constant in a step."""
        return self._data.hold()

    def _measure(self) -> None:
        """Update the lengths of the cells."""
        put_lengths(self.length)
        self._take(self._length_copies)

    def take_unknown(self) -> None:
        """Read the values of the unknown from Firedrake."""
        self._take(self._unknown_in)

    def give_unknown(self) -> None:
        """Pass the values of the unknown to Firedrake."""
        self._give(self._unknown_out, self._unknown_fields)

    # --- Newton's iteration, piece by piece ----------------------------------------------------------
    def linearise(self) -> bool:
        """Assemble the residual and factorise the tangent; False if it is singular or not finite."""
        return bool(self._library.fdgeom_chain_linearise(self._pointer))

    def evaluate(self) -> float:
        """The norm of the residual."""
        self._library.fdgeom_chain_evaluate(self._pointer)
        return self._net.residual

    def update(self) -> tuple[float, float]:
        """Newton's update after :meth:`linearise`; returns the norms of the update and of the unknown."""
        self._library.fdgeom_chain_update(self._pointer)
        return self._net.update, self._net.size

    def apply(self) -> None:
        """rhs := (tangent)⁻¹ rhs."""
        self._library.fdgeom_chain_apply(self._pointer)

    def components(self, group: int) -> Sequence[Component]:
        """The unknowns in a block of a group."""
        return self._data.components(group)

    def number(self, function: Function) -> int:
        """The number of a function in the compiled code."""
        return self.tables.field(function)

    @cached_property
    def affine(self) -> bool:
        """Whether the residual is of first degree in the unknown."""
        return is_affine(self._residual, self.unknown)

    @property
    def residual_norm(self) -> float:
        """The norm of the residual at the last evaluation."""
        return self._net.residual

    def newton(self, test: Test) -> tuple[int, int]:
        """Newton's iteration; returns the code of the reason and the number of iterations."""
        self._iterations.value = 0
        reason = self._library.fdgeom_chain_newton(
            self._pointer, ctypes.byref(test), ctypes.byref(self._iterations)
        )
        return reason, self._iterations.value

    def advance(
        self,
        test: Test,
        steps: int,
        times: np.ndarray | None = None,
        clock: Constant | None = None,
        kept: Kept | None = None,
    ) -> tuple[int, int, int]:
        """Run steps after :meth:`begin`; returns the reason of the last solve, steps done and iterations."""
        # times: values of `clock`, the time in the equations, by step. kept: rows in which steps save
        # their results, the first step in the second row.
        done, self._iterations.value = ctypes.c_long(0), 0
        where = None if clock is None else clock.dat._data.ctypes.data
        reason = self._library.fdgeom_chain_advance(
            self._pointer, ctypes.byref(test), steps,
            None if times is None else times.ctypes.data, where,
            None if kept is None else ctypes.byref(kept),
            ctypes.byref(done), ctypes.byref(self._iterations),
        )  # fmt: skip
        return reason, done.value, self._iterations.value

    # --- with a border -------------------------------------------------------------------------------
    def stand(self) -> bool:
        """Begin a step and condense the tangent; False if a pivot inside the pieces is zero."""
        return bool(self._library.fdgeom_chain_stand(self._pointer))

    def inertia(self) -> tuple[int, np.ndarray]:
        """After :meth:`stand`: the number of negative pivots inside the pieces, and the remaining matrix."""
        return self._data.negative_pivots(), self._data.matrix_between()

    def solve_slope(self) -> bool:
        """After :meth:`stand`: rhs := (tangent)⁻¹ ∂F/∂λ; False if the tangent is singular."""
        return bool(self._library.fdgeom_chain_slope(self._pointer))

    def bordered(
        self, test: Test, number: Constant, ahead: float, slope: float, size: float
    ) -> tuple[int, int]:
        """Newton's iteration for F(u, λ) = 0 and normal·(u - u₀) + slope (λ - λ₀) = size."""
        # It begins at u₀ + rhs and λ₀ + ahead; returns the code of the reason and the iterations.
        self._iterations.value = 0
        border = Border(number.dat._data.ctypes.data, slope, -size)
        reason = self._library.fdgeom_chain_bordered(
            self._pointer, ctypes.byref(test), ctypes.byref(border), ahead,
            ctypes.byref(self._iterations),
        )  # fmt: skip
        return reason, self._iterations.value


def check_chain(unknown: Function, *, shared: bool = False) -> None:
    """Raise ``CannotCompile`` on all ranks if an unknown is not one of a chain on any rank."""
    # shared: several ranks may share the chain, which whole steps support.
    mesh = pieces(unknown)[0].function_space().mesh()
    if mesh.comm.size > 1 and not shared:
        raise CannotCompile("on several ranks only whole time steps of chains are compiled")
    if mesh.ufl_cell().cellname != "interval" or mesh.geometric_dimension != 1:
        raise CannotCompile("chains need an interval mesh in one dimension")
    tables = Tables(mesh)
    for piece in pieces(unknown):
        for part in parts_of(piece):
            tables.field(part.function)
    if shared and mesh.comm.allreduce(mesh.cell_set.size, op=MPI.MIN) == 0:
        raise CannotCompile("a rank has no cells")
    for reason in filter(None, mesh.comm.allgather(_no_chain(tables))):
        raise CannotCompile(reason)


def _no_chain(tables: Tables) -> str:
    """The reason why the cells of this rank are no chains; empty if they are."""
    try:
        topology_of(tables)
    except CannotCompile as reason:
        return str(reason)
    return ""
