"""Compiled programs of local solves and updates, which run many steps in one call."""

import ctypes
from collections.abc import Sequence

import numpy as np
from mpi4py import MPI
from pyop2 import compilation

from fdgeom.errors import CannotCompile, NoCompiler
from fdgeom.solvers.compiled.layout import (
    PADDING,
    ChainLayout,
    DirectLayout,
    chain_order,
    describe,
    side_by_side,
)
from fdgeom.solvers.compiled.program import Phase, Program
from fdgeom.solvers.compiled.structs import (
    Context,
    Essential,
    FieldPointer,
    Move,
    Range,
    Report,
    Tolerances,
)
from fdgeom.solvers.derived import derived_of

# Fast arithmetic must preserve NaN. Small matrices stay in registers if their loops are unrolled.
_FLAGS = (
    "-fno-finite-math-only",
    "-fno-math-errno",
    "--param=max-completely-peeled-insns=8000",
    "--param=max-completely-peel-times=64",
)

# For programs without solves, which Python calls phase by phase.
_QUICKLY = "-O1"

#: Why a local solve failed, by the unit's code.
REASONS = {
    -1: "too many iterations",
    -2: "a singular Jacobian block",
    -3: "values that are not finite",
}


class Unit:
    """A compiled program with its data."""

    # chain: use the layout of a chain if the mesh is one (see is_chain). live: functions that may be
    # guesses and that change between two calls. Owners may change coefficients between two calls in
    # any way: begin copies them into the order of a chain each time. Fields that only fdgeom writes
    # (coordinates, weights, sampled sections) are copied when they have a new version.
    def __init__(self, program: Program, *, chain: bool = False, live=()) -> None:
        self.program = program
        tables = program.tables
        self.comm = program.mesh.comm
        self.layout = self._lay_out(chain)
        self.is_chain = self.layout.is_chain
        flags = (
            self.layout.flags
            if any(p.solved for p in program.phases)
            else (*self.layout.flags, _QUICKLY)
        )
        self._library = load(program.code(), flags, self.comm)
        written = {f for p in program.phases for f in p.written}
        # An unknown that starts from another function is internal.
        written -= {f for p in program.phases if p.guess != p.solved for f in p.solved} - set(live)
        numbers = {f: k for k, f in enumerate(tables.functions)}
        self._written = [numbers[f] for f in tables.functions if f in written]
        hidden = {f for p in program.phases for f in p.solved} - written - set(live)
        self._copy_in(self.layout.copies([numbers[f] for f in hidden]))
        derived = {f: derived_of(f) for f in tables.functions}
        made = [*derived.values(), *map(derived_of, tables.constants)]
        made = list({id(d): d for d in made if d is not None}.values())
        self._followers = [d for d in made if d.follows_a_user]
        self._of_mesh = [d for d in made if not d.follows_a_user]
        private = {f: d for f, d in derived.items() if d is not None and d.private}
        still = {f for f, d in private.items() if not d.follows_a_user} | {tables.coordinates}
        quiet = set(private) - still - written
        self._still = self.layout.copies([numbers[f] for f in still - written])
        self._quiet = [(f.dat, self.layout.copies([numbers[f]])) for f in quiet]
        self._mesh, self._mesh_version = tables.coordinates.dat, None
        self._versions: list[int] | None = None
        own = hidden | quiet | (still - written)
        self._incoming = self.layout.copies([k for f, k in numbers.items() if f not in own])
        self._outgoing = self.layout.copies(self._written)
        self._context = self._make_context()
        self._address = ctypes.addressof(self._context)
        fields = self.layout.fields
        self._ghosted = fields if self.comm.size > 1 else []
        self._changed = [fields[k] for k in self._written]

    def _lay_out(self, chain: bool) -> ChainLayout | DirectLayout:
        program, tables = self.program, self.program.tables
        order = chain_order(tables) if chain else None
        if chain and self.comm.allreduce(int(order is None)):
            order = None
        if order is not None and not program.has_links:
            return ChainLayout(tables, order)
        # A gap between two chains is no cell, so programs with cell solves cannot have gaps.
        several = (
            chain and program.side_by_side and all(p.nodal or not p.solved for p in program.phases)
        )
        found = side_by_side(tables) if several else None
        if found is not None:
            return ChainLayout(tables, *found)
        if program.has_links:
            raise CannotCompile("the mesh is not a set of chains with joint cells between them")
        return DirectLayout(tables)

    def _make_context(self) -> Context:
        tables, layout, phases = self.program.tables, self.layout, self.program.phases
        #: The arrays that the structs point to.
        keep = self._keep = []

        def array(kind, items):
            items = list(items)
            made = (kind * max(len(items), 1))(*items)
            keep.append(made)
            return made

        functions = array(FieldPointer, (layout.pointer(k) for k in range(len(tables.functions))))
        maps = array(ctypes.c_void_p, (m.ctypes.data for m in layout.maps))
        constants = array(ctypes.c_void_p, (c.dat._data.ctypes.data for c in tables.constants))
        sides, essential, more = [], [], []
        for phase in phases:
            memory = None
            if phase.explicit:
                memory = layout.workspace(tables.space(phase.solved[0]), phase.block)
                keep.append(memory)
            sides.append((None, 0, 0) if memory is None else (memory.ctypes.data, 0, len(memory)))
            essential.append(self._essential(phase, keep))
            own = None if phase.data is None else phase.data(layout)
            more.append(None if own is None else ctypes.addressof(own))
            keep.append(own)
        self.reports = array(Report, (Report() for _ in phases))
        self.tolerances = array(Tolerances, (p.tolerances for p in phases))
        context = Context(
            F=ctypes.cast(functions, ctypes.c_void_p),
            M=ctypes.cast(maps, ctypes.c_void_p),
            C=ctypes.cast(constants, ctypes.c_void_p),
            B=ctypes.cast(array(FieldPointer, sides), ctypes.c_void_p),
            nodes=ctypes.cast(array(Range, layout.ranges), ctypes.c_void_p),
            cells=layout.cells,
            tol=ctypes.cast(self.tolerances, ctypes.c_void_p),
            report=ctypes.cast(self.reports, ctypes.c_void_p),
            essential=ctypes.cast(array(Essential, essential), ctypes.c_void_p),
            functions=len(tables.functions),
            there=None if layout.there is None else layout.there[PADDING:].ctypes.data,
            more=ctypes.cast(array(ctypes.c_void_p, more), ctypes.c_void_p),
        )
        return context

    def _essential(self, phase: Phase, keep: list) -> Essential:
        """The nodes with prescribed components, in the numbering of the layout."""
        if not phase.essential:
            return Essential()
        tables, block = self.program.tables, phase.block
        owned = phase.solved[0].function_space().node_set.size
        dofs = np.concatenate([e.dofs for e in phase.essential])
        nodes, inverse = np.unique(dofs // block, return_inverse=True)
        mask = np.ones((len(nodes), block))
        mask[inverse, dofs % block] = 0.0
        mine = nodes < owned
        space = tables.space(phase.solved[0])
        numbers = self.layout.number(space, nodes[mine])
        increasing = np.argsort(numbers)
        nodes = np.ascontiguousarray(numbers[increasing], dtype=np.int32)
        mask = np.ascontiguousarray(mask[mine][increasing])
        saved = np.zeros_like(mask)
        keep += [nodes, mask, saved]
        made = Essential(
            count=len(nodes),
            node=nodes.ctypes.data,
            mask=mask.ctypes.data,
            saved=saved.ctypes.data,
        )
        if phase.guess != phase.solved:
            first = phase.essential[0]
            made.old = FieldPointer(*self.layout.pointer(tables.field(first.old)))
            made.share = first.share
        return made

    @property
    def lanes(self) -> int:
        """The number of nodes that are solved at a time."""
        return self._library.fdgeom_width()

    # --- running -------------------------------------------------------------------------------
    def plan(self, sequence: Sequence[tuple[int, object, float]]):
        """The plan for :meth:`advance`, from (phase, Constant for its Δt or None, fraction of the step)."""
        made = (Move * len(sequence))()
        for move, (phase, constant, fraction) in zip(made, sequence, strict=True):
            address = None if constant is None else constant.dat._data.ctypes.data
            move.phase, move.dt, move.value = phase, address, fraction
        return made

    def begin(self) -> None:
        """Pass the present values of the functions to the unit."""
        version = self._mesh.dat_version
        moved = version != self._mesh_version
        for derived in (*self._of_mesh, *self._followers) if moved else self._followers:
            derived.refresh()
        for f in self._ghosted:
            f.update_ghosts()
        self._copy_in(self._incoming)
        if moved:
            self._copy_in(self._still)
            self.layout.extend_coordinates()
            self._mesh_version = version
        if self._quiet:
            self._copy_quiet()

    def _copy_quiet(self) -> None:
        """Copy the fields that only fdgeom writes, if one of them has a new version."""
        versions = [dat.dat_version for dat, _ in self._quiet]
        if versions != self._versions:
            for _, copies in self._quiet:
                self._copy_in(copies)
            self._versions = versions

    def _copy_in(self, copies) -> None:
        if copies:
            self._library.fdgeom_copy_in(copies, len(copies))

    def end(self) -> None:
        """Pass the values that the unit has written back to the functions."""
        if self._outgoing:
            self._library.fdgeom_copy_out(self._outgoing, len(self._outgoing))
        for f in self._changed:
            f.written(ghosts_too=True)

    def advance(self, steps: int, plan, dt: float) -> tuple[int, int, int]:
        """Run steps after :meth:`begin`; returns the reason, the steps done and the failed move."""
        # The reason is 0 for success.
        done, failed = ctypes.c_long(0), ctypes.c_int(-1)
        reason = self._library.fdgeom_advance(
            self._address, steps, len(plan), plan, ctypes.byref(ctypes.c_double(dt)),
            ctypes.byref(done), ctypes.byref(failed),
        )  # fmt: skip
        return reason, done.value, failed.value

    def solve(self, phase: int) -> int:
        """Run one phase; returns the code of the reason, 0 for success."""
        return self._library.fdgeom_phase(self._address, phase)

    def norm(self, phase: int) -> float:
        """Norm of the residual of a solve, over all ranks."""
        square = self._library.fdgeom_norm(self._address, phase)
        return float(np.sqrt(self.comm.allreduce(square) if self.comm.size > 1 else square))

    def place_of_failure(self, phase: int) -> str | None:
        """Describe where the last failure of a phase was on this rank, or None; to be called on all ranks."""
        report = self.reports[phase]
        function = self.program.phases[phase].solved[0]
        words = describe(function)  # on all ranks: describe interpolates coordinates
        if report.reason >= 0:
            return None
        report.reason = 0
        place = words(self.layout.original(self.program.tables.space(function), int(report.failed)))
        return f"{place}, where a residual of {report.norm:.3g} is left"


def load(code: str, flags: Sequence[str], comm: MPI.Comm):
    """Compile C++ text, or find it compiled in PyOP2's cache on disk."""
    try:
        library = compilation.load(code, "cpp", cppargs=(*_FLAGS, *flags), comm=comm)
    except (RuntimeError, OSError, compilation.CompilationError) as error:
        raise NoCompiler(
            "compiled steps need a working C++ compiler (PETSc's, usually mpicxx), and it failed: "
            "install one, or pass compiled=False to step through PETSc SNES instead"
        ) from error
    library.fdgeom_advance.restype = ctypes.c_int
    library.fdgeom_advance.argtypes = [
        ctypes.c_void_p, ctypes.c_long, ctypes.c_int, ctypes.c_void_p,
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
    ]  # fmt: skip
    for copy in (library.fdgeom_copy_in, library.fdgeom_copy_out):
        copy.restype, copy.argtypes = None, [ctypes.c_void_p, ctypes.c_int]
    library.fdgeom_phase.restype = ctypes.c_int
    library.fdgeom_phase.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.fdgeom_norm.restype = ctypes.c_double
    library.fdgeom_norm.argtypes = [ctypes.c_void_p, ctypes.c_int]
    return library
