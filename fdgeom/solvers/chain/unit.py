"""A residual on a chain compiled, with its data."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np
from firedrake import Constant, Form, Function, FunctionSpace
from pyop2 import compilation

from fdgeom.forms import is_affine
from fdgeom.solvers.chain.cells import cell_equations, part_of
from fdgeom.solvers.chain.layout import PieceLayout, address, aligned
from fdgeom.solvers.chain.source import Loads, Map, Step, cell_class, given_from, program
from fdgeom.solvers.chain.structs import Chain, Test
from fdgeom.solvers.compiled.layout import chain_order
from fdgeom.solvers.compiled.problem import pieces
from fdgeom.solvers.compiled.refused import CannotCompile, NoCompiler
from fdgeom.solvers.compiled.tables import Tables
from fdgeom.solvers.derived import derived_of
from fdgeom.solvers.essential import GivenValues

# A NaN must stay one in spite of the other liberties that fast arithmetic takes.
# Copies of some vectors are no blocks of memory.
_FLAGS = (
    "-std=c++17",
    "-fno-finite-math-only",
    "-fno-math-errno",
    "-fno-tree-loop-distribute-patterns",
)
#: More unknowns of a block make matrices that no cache holds.
_LARGEST = 32

#: Why Newton's iteration failed, by the unit's code.
REASONS = {
    -1: "too many iterations",
    -2: "a singular matrix",
    -3: "values that are not finite",
    -4: "updates that do not get smaller",
}


class ChainUnit:
    """The compiled equations of a chain.

    Parameters
    ----------
    residual : Form
        F(u; w), with one argument.
    unknown : Function
        u.
    essential : sequence
        Given degrees of freedom: `EssentialValues` or the like.
    factors : bool
        Whether the factors are kept for other right-hand sides (:meth:`apply`).
    maps : sequence of dict
        Pointwise assignments of a step.
    step : Step, optional
        What a step is made of, for :meth:`advance`.
    private : sequence of Function
        What maps write for the step alone.
    following : Function, optional
        The values of given degrees of freedom, where those are the first components of the unknown;
        a step sets them.

    Raises
    ------
    CannotCompile
        If the equations are not those of a chain; says why.
    """

    def __init__(
        self,
        residual: Form,
        unknown: Function,
        *,
        essential: Sequence = (),
        factors: bool = False,
        maps: Sequence[Mapping] = (),
        step: Step | None = None,
        private: Sequence[Function] = (),
        following: Function | None = None,
    ) -> None:
        mesh = pieces(unknown)[0].function_space().mesh()
        self.comm = mesh.comm
        check_chain(unknown)
        self.unknown, self._mesh = unknown, mesh
        self.tables = Tables(mesh)
        self.length = Function(FunctionSpace(mesh, "DG", 0), name="length of the cells")
        self.affine = is_affine(residual, unknown)
        equations = cell_equations(residual, unknown)
        self.parts, self.size = equations.parts, equations.size
        if self.size > _LARGEST:
            raise CannotCompile(f"{self.size} unknowns at a node, more than {_LARGEST}")
        self.tables.field(mesh.coordinates)
        loads = Loads(self.tables, self.length)
        self.tables.field(self.length)
        for part in self.parts:
            self.tables.field(part.function)
        cell = cell_class(equations, loads)
        texts = [Map(assignments).text(f"map{k}", loads) for k, assignments in enumerate(maps)]
        follow = "" if following is None else given_from(following, loads)
        written = [f for assignments in maps for f in assignments]
        library = self._library = load(
            program(self.size, cell, texts, step.text(follow) if step else ""), self.comm
        )
        self.lanes = library.fdgeom_chain_width()
        self.layout = PieceLayout(self.tables, self.lanes)
        self._essential = list(essential)
        self._context = self._make_context(factors)
        self._pointer = ctypes.byref(self._context)
        self._iterations = ctypes.c_long(0)
        self._derived = list({
            id(d): d for d in map(derived_of, self.tables.functions) if d is not None
        }.values())  # fmt: skip
        own, private = [p.function for p in self.parts], set(private)
        hidden = {self.length, *own, *private}
        read = [f for f in self.tables.functions if f not in hidden]
        quiet = {f for f in read if (d := derived_of(f)) is not None and d.private}
        quiet.add(mesh.coordinates)
        quiet -= set(written)
        self._loud = [f for f in read if f not in quiet]
        self._incoming = self.layout.copies(self._loud)
        self._quiet = [f for f in read if f in quiet]
        self._quiet_copies = self.layout.copies(self._quiet)
        self._written = [f for f in dict.fromkeys((*written, *own)) if f not in private]
        self._outgoing = self.layout.copies(self._written)
        self._written_fields = [self.layout.fields[self.tables.field(f)] for f in self._written]
        self._unknown_copies = self.layout.copies([p.function for p in self.parts])
        self._unknown_fields = [
            self.layout.fields[self.tables.field(p.function)] for p in self.parts
        ]
        self._versions: list[int] | None = None

    def _make_context(self, factors: bool) -> Chain:
        layout, n, lanes = self.layout, self.size, self.lanes
        given: dict[Function, np.ndarray] = {}
        split = pieces(self.unknown)
        for e in self._essential:
            function = split[e.part]
            known = given.get(function, np.array([], dtype=int))
            given[function] = np.concatenate([known, np.asarray(e.dofs, dtype=int)])
        self._free, self._special = layout.masks(self.parts, given)
        self.given = aligned(self._free.shape)
        rows = layout.m + 1
        self._memory = aligned((rows, n * (2 * n + 1), lanes))
        self._factors = aligned((rows, 3 * n * n, lanes)) if factors else None
        self._reduced = aligned((self._library.fdgeom_chain_reduced() // 8 + 1,))
        self.rhs, self._saved = aligned((rows, n, lanes)), aligned((rows, n, lanes))
        self._pointers = (ctypes.c_void_p * len(layout.arrays))(
            *(a.ctypes.data for a in layout.arrays)
        )
        constants = [c.dat._data.ctypes.data for c in self.tables.constants]
        self._constants = (ctypes.c_void_p * max(len(constants), 1))(*constants)
        return Chain(
            F=ctypes.cast(self._pointers, ctypes.c_void_p),
            C=ctypes.cast(self._constants, ctypes.c_void_p),
            m=layout.m,
            cells=layout.cells,
            count=address(layout.count),
            whole=int(layout.count.min()),
            free=address(self._free),
            special=address(self._special),
            X=address(self._memory),
            factors=address(self._factors),
            reduced=address(self._reduced),
            rhs=address(self.rhs),
            given=address(self.given),
            saved=address(self._saved),
        )

    # --- data --------------------------------------------------------------------------------------
    def begin(self) -> None:
        """Make the functions' present values known here, those of the unknown excepted."""
        for derived in self._derived:
            derived.refresh()
        versions = [f.dat.dat_version for f in self._quiet]
        if versions != self._versions:
            self._measure()
            self._library.fdgeom_chain_in(self._quiet_copies, len(self._quiet))
            self._versions = versions
        self._library.fdgeom_chain_in(self._incoming, len(self._loud))

    def end(self) -> None:
        """Give what steps have written to Firedrake."""
        self._library.fdgeom_chain_out(self._outgoing, len(self._written))
        for field in self._written_fields:
            field.written()

    def hold(self) -> bool:
        """Take up the given values of the unknown; whether they stay what they are in a step."""
        constant, split = True, pieces(self.unknown)
        for e in self._essential:
            part = next(p for p in self.parts if p.function is split[e.part])
            first = sum(p.size for p in self.parts[: self.parts.index(part)])
            there = self.layout.places(part.function)
            values = np.zeros(split[e.part].dat.data_ro.shape)
            values.reshape(-1)[e.dofs] = e.values()
            # A mean of old and new values moves with them.
            constant = constant and (isinstance(e, GivenValues) or not values.any())
            rows = self.given[: len(there), first : first + part.size].transpose(0, 2, 1)
            mine = np.zeros_like(values)
            mine.reshape(-1)[e.dofs] = 1.0
            shape = (*there.shape, part.size)
            given = mine.reshape(-1, part.size)[there].reshape(shape) > 0
            taken = values.reshape(-1, part.size)[there].reshape(shape)
            rows[given & (there >= 0)[..., None]] = taken[given & (there >= 0)[..., None]]
        return constant

    def _measure(self) -> None:
        """The lengths of the cells."""
        coordinates = self._mesh.coordinates
        ends = coordinates.dat.data_ro.reshape(-1)[coordinates.cell_node_map().values]
        cells = self.length.function_space().cell_node_map().values[:, 0]
        self.length.dat.data_wo[cells] = np.abs(ends[:, 1] - ends[:, 0])
        # Beyond the ends too, so that no division there makes a slow number.
        self.layout.array(self.length)[...] = 1.0
        self._library.fdgeom_chain_in(self.layout.copies([self.length]), 1)

    def take_unknown(self) -> None:
        """The unknown's values from Firedrake."""
        self.clear_unknown()
        self._library.fdgeom_chain_in(self._unknown_copies, len(self.parts))

    def clear_unknown(self) -> None:
        """Zeros: beyond the ends of the chain they stay."""
        for part in self.parts:
            self.layout.array(part.function)[...] = 0.0

    def give_unknown(self) -> None:
        """The unknown's values to Firedrake."""
        self._library.fdgeom_chain_out(self._unknown_copies, len(self.parts))
        for field in self._unknown_fields:
            field.written()

    # --- Newton's iteration, piece by piece ----------------------------------------------------------
    def linearise(self) -> bool:
        """Residual, tangent and its factors; False if it is singular or not finite."""
        return bool(self._library.fdgeom_chain_linearise(self._pointer))

    def evaluate(self, keep: bool = False) -> float:
        """Norm of the residual; ``keep``: and the residual in :attr:`rhs`."""
        self._library.fdgeom_chain_evaluate(self._pointer, int(keep))
        return self._context.residual

    def update(self) -> tuple[float, float]:
        """Newton's update after :meth:`linearise`; the norms of the update and of the unknown."""
        self._library.fdgeom_chain_update(self._pointer)
        return self._context.update, self._context.size

    def apply(self) -> None:
        """rhs := (tangent)⁻¹ rhs."""
        self._library.fdgeom_chain_apply(self._pointer)

    def number(self, function: Function) -> int:
        """The number of a function in the compiled code."""
        return self.tables.field(function)

    @property
    def residual_norm(self) -> float:
        """Of the last evaluation."""
        return self._context.residual

    def newton(self, test: Test) -> tuple[int, int]:
        """Newton's iteration: the code of the reason, and the number of iterations."""
        self._iterations.value = 0
        reason = self._library.fdgeom_chain_newton(
            self._pointer, ctypes.byref(test), ctypes.byref(self._iterations)
        )
        return reason, self._iterations.value

    def advance(
        self, test: Test, steps: int, begin: float, dt: float, clock: Constant | None, share: float
    ) -> tuple[int, int, int]:
        """Steps between :meth:`begin` and :meth:`end`.

        Parameters
        ----------
        test : Test
            When Newton's iteration ends.
        begin, dt : float
            The time now, and the length of a step.
        clock : Constant or None
            What holds the time in the equations: that of a step's beginning and ``share`` of it.

        Returns
        -------
        tuple of int
            Why the last solve ended, steps done, iterations.
        """
        done, self._iterations.value = ctypes.c_long(0), 0
        where = None if clock is None else clock.dat._data.ctypes.data
        reason = self._library.fdgeom_chain_advance(
            self._pointer, ctypes.byref(test), steps, begin, dt, where, share,
            ctypes.byref(done), ctypes.byref(self._iterations),
        )  # fmt: skip
        return reason, done.value, self._iterations.value


def check_chain(unknown: Function) -> None:
    """Raise CannotCompile if an unknown is not one of a chain, or on several ranks."""
    mesh = pieces(unknown)[0].function_space().mesh()
    if mesh.comm.size > 1:
        raise CannotCompile("chains on several ranks are solved by PETSc")
    if mesh.ufl_cell().cellname != "interval" or mesh.geometric_dimension != 1:
        raise CannotCompile("chains are made of interval meshes in one dimension")
    tables = Tables(mesh)
    for piece in pieces(unknown):
        tables.field(part_of(piece).function)
    if chain_order(tables) is None:
        raise CannotCompile("the cells of the mesh are no single open chain")


def load(code: str, comm):
    """Compile the text of a chain, or find it compiled on disk.

    Raises
    ------
    NoCompiler
        If there is no working C++ compiler.
    """
    try:
        library = compilation.load(code, "cpp", cppargs=_FLAGS, comm=comm)
    except (RuntimeError, OSError, compilation.CompilationError) as error:
        raise NoCompiler(
            "compiled chains need a working C++ compiler (PETSc's, usually mpicxx), and it failed: "
            "install one, or pass compiled=False to step through PETSc SNES instead"
        ) from error
    pointer, number = ctypes.c_void_p, ctypes.c_int
    for name, result, arguments in (
        ("in", None, [pointer, number]), ("out", None, [pointer, number]),
        ("width", number, []), ("reduced", ctypes.c_long, []), ("linearise", number, [pointer]),
        ("evaluate", None, [pointer, number]), ("update", None, [pointer]),
        ("apply", None, [pointer]), ("newton", number, [pointer, pointer, pointer]),
    ):  # fmt: skip
        function = getattr(library, f"fdgeom_chain_{name}")
        function.restype, function.argtypes = result, arguments
    if hasattr(library, "fdgeom_chain_advance"):
        real = ctypes.c_double
        library.fdgeom_chain_advance.restype = number
        library.fdgeom_chain_advance.argtypes = [
            pointer, pointer, ctypes.c_long, real, real, pointer, real, pointer, pointer,
        ]  # fmt: skip
    return library
