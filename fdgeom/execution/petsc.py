"""Operations performed by Firedrake's assembly and PETSc's solvers, on any mesh."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, singledispatch
from itertools import groupby
from typing import Any

import numpy as np
import ufl
from firedrake import Form, Function, FunctionSpace, TrialFunction, derivative
from mpi4py import MPI
from petsc4py import PETSc
from ufl.algorithms import expand_derivatives, extract_arguments, extract_coefficients
from ufl.classes import CellVolume, Grad
from ufl.core.expr import Expr
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom.data import Field, Number, fields
from fdgeom.errors import SolveFailed
from fdgeom.execution.assembly import MatrixAssembly, VectorAssembly
from fdgeom.execution.options import falling_back
from fdgeom.execution.snes import EssentialRows, HeldSNES, SolveRun
from fdgeom.forms import (
    copy_into,
    has_nodal_values,
    is_real,
    scalar_space,
    shaped_space,
    simplify,
    slope_by,
)
from fdgeom.operations import (
    AdjointStep,
    Assemble,
    Check,
    Copy,
    HostOperation,
    Map,
    Operation,
    Solve,
    each_part,
    parts,
)
from fdgeom.operations.dependent import dependent_of
from fdgeom.taping import not_taped

#: A call that performs an operation with the present values.
Run = Callable[[], None]


class Executor:
    """Performs a list of operations, step by step, with PETSc."""

    # runs: calls that perform operations, by their originals; they are made when they are first
    # needed, and several executors may share them.
    def __init__(
        self, operations: Sequence[Operation], runs: dict[Operation, Run] | None = None
    ) -> None:
        self.operations = tuple(operations)
        self.runs: dict[Operation, Run] = {} if runs is None else runs
        symbols = {s for op in self.operations for s in (op.dt, *op.clocks) if s is not None}
        numbers = {s: Number(s) for s in symbols}
        self._symbols = [
            (numbers.get(op.dt), op.fraction, [numbers[clock] for clock in op.clocks], op.at)
            for op in self.operations
        ]
        self._calls: list[Run | None] = [None] * len(self.operations)

    @property
    def solvers(self) -> list[HeldSNES]:
        """The SNES that have been made."""
        return [run.snes for run in self.runs.values() if isinstance(run, SolveRun)]

    def make(self, op: Operation) -> Run:
        """The call that performs an operation; its forms and solvers are made once."""
        own = op.original
        if own not in self.runs:
            if own.dt is not None:
                Number(own.dt).set(1.0)
            self.runs[own] = runner(own)
        return self.runs[own]

    def perform(self, index: int, t: float, dt: float) -> None:
        """Perform one operation of a step from ``t`` to ``t + dt``."""
        call = self._calls[index]
        if call is None:
            call = self._calls[index] = self.make(self.operations[index])
        length, fraction, clocks, at = self._symbols[index]
        if length is not None:
            length.set(fraction * dt)
        for clock in clocks:
            clock.set(t + at * dt)
        call()

    def step(self, t: float, dt: float) -> None:
        """Perform all operations of a step from ``t`` to ``t + dt``."""
        for index in range(len(self.operations)):
            self.perform(index, t, dt)


def perform(operations: Sequence[Operation], runs: dict[Any, Run]) -> None:
    """Perform operations without symbols for time and step; ``runs`` are the calls that have been made."""
    for joinable, group in groupby(operations, _is_joinable):
        # Assignments in a row are one unit.
        for op in [tuple(group)] if joinable else group:
            call = runs.get(op)
            if call is None:
                call = PointwiseUpdate(*(m.values for m in op)).apply if joinable else runner(op)
                if not isinstance(op, HostOperation):
                    runs[op] = call
            call()


def _is_joinable(op: Operation) -> bool:
    """Whether an operation can be compiled with others of its kind."""
    # Dependent fields are made anew before a unit runs, not within it.
    return isinstance(op, Map) and all(dependent_of(f) is None for f in op.reads)


@singledispatch
def runner(op: Operation) -> Run:
    """The call that performs an operation; its forms and solvers are made once."""
    raise TypeError(f"{type(op).__name__} is no operation that PETSc performs: define its run()")


@runner.register
def _(op: HostOperation) -> Run:
    return op.run


class PointwiseUpdate:
    """Assigns expressions to functions at all nodes at once, in compiled code if possible."""

    # All functions of an assignment have the same nodes or are numbers of a Real space; expressions
    # contain no derivatives in space, and read the old values of targets. Several assignments are done
    # one after another. Ghosts are updated too, so nothing is communicated. Without a C++ compiler
    # Firedrake interpolates, in milliseconds; functions without values at nodes (N1curl, RT) may be
    # combined linearly, by Function.assign.
    def __init__(self, *assignments: Mapping[Function, Expr]) -> None:
        # Inside of a function: steps can be stated without the compiler.
        from fdgeom.compile import CompiledExecutor

        operations = [Map(values=given) for given in assignments]
        for operation in operations:
            _check_nodes(operation)
        self._assignments = dict(assignments[0])
        #: The exchange of values with the compiled unit.
        self._update: Any = None
        #: Why Firedrake does the assignments; None if compiled code does.
        self.why_not_compiled: str | None = None
        comm = operation.writes[0].function_space().comm
        with falling_back(
            self._give_up,
            comm,
            required=False,
            what="an assignment",
            instead="assignments are interpolated",
        ):
            update = CompiledExecutor(operations)
            update.unit.make_ready()
            self._update = update.fields
            # Assignments cannot fail.
            self._call = update.unit.single_step(self._update.before, self._update.after)
            return
        # Some may be compiled by themselves.
        self._each = [PointwiseUpdate(given) for given in assignments] if assignments[1:] else []
        nodal = all(has_nodal_values(target.function_space()) for target in self._assignments)
        self._put = Function.interpolate if nodal else Function.assign
        self._values = {t: Function(t.function_space()) for t in self._assignments}

    def _give_up(self, why: str) -> None:
        self.why_not_compiled = why

    @not_taped
    def apply(self) -> None:
        """Do the assignments; ``NotImplementedError`` while pyadjoint records."""
        if self._update is None:
            for update in self._each:
                update.apply()
            if self._each:
                return
            for target, value in self._values.items():
                self._put(value, self._assignments[target])
            for target, value in self._values.items():
                copy_into(target, value)
            return
        self._update.prepare()
        self._call()
        self._update.stored()


def _check_nodes(op: Map) -> None:
    """Raise ``ValueError`` unless assignments are expressions of values at the same nodes."""
    for target, value in op.values.items():
        if extract_arguments(ufl.as_ufl(value)):
            raise ValueError(f"the expression for {target.name()} holds a test or trial function")
    first = op.writes[0]
    for f in (*op.writes, *(f for f in op.reads if not is_real(f))):
        if len(parts(f)) > 1:
            raise ValueError(f"{f.name()} is a mixed Function: give and read its subfunctions")
        space = f.function_space()
        if has_nodal_values(space) and space.node_set is not first.function_space().node_set:
            raise ValueError(
                f"{f.name()} has other nodes than {first.name()}: interpolate it first"
            )


@runner.register
def _(op: Map) -> Run:
    return PointwiseUpdate(op.values).apply


@runner.register
def _(op: Copy) -> Run:
    rows = slice(None) if op.rows is None else op.rows
    targets = fields(op.target)
    sources = [None] * len(targets) if op.source is None else fields(op.source)

    def run() -> None:
        for target, source in zip(targets, sources, strict=True):
            if op.adds or op.rows is not None:
                target.update_ghosts()
            place, values = target.array.reshape(-1), 0.0
            if source is not None:
                source.update_ghosts()
                values = source.array.reshape(-1)[rows]
            place[rows] = values + place[rows] if op.adds else values
            target.written(ghosts_too=True)

    return run


@runner.register
def _(op: Check) -> Run:
    nodal = op.reads[0].function_space()
    in_cells = any(isinstance(e, Grad | CellVolume) for e in unique_pre_traversal(op.value))
    if in_cells:
        # At the midpoints.
        field = Function(FunctionSpace(nodal.mesh(), "DG", 0))
        apply, comm = partial(field.interpolate, op.value), nodal.comm
    else:
        field = Function(scalar_space(nodal))
        apply, comm = PointwiseUpdate({field: op.value}).apply, nodal.comm

    def run() -> None:
        apply()
        values = field.dat.data_ro
        fails = bool(values.size) and not np.max(values) <= op.limit
        if comm.allreduce(fails, op=MPI.LOR):
            raise SolveFailed(op.message)

    return run


@runner.register
def _(op: Solve) -> Run:
    if op.find is not None:
        return op.find
    return SolveRun(op) if op.source is None else _LinearSolve(op).run


class _LinearSolve:
    """The solve of an equation that is linear in its unknown, for a given right-hand side."""

    def __init__(self, op: Solve) -> None:
        self._op, space = op, op.unknown.function_space()
        matrix = derivative(slope_by(op.work, op.test), op.unknown, TrialFunction(space))
        self._assembly = MatrixAssembly(simplify(matrix), "aij")
        self._rows = EssentialRows(op.unknown, self._assembly.matrix, op.prescribed)
        self._ksp = PETSc.KSP().create(comm=space.comm)
        self._ksp.setType("preonly")
        self._ksp.getPC().setType("lu")
        self._ksp.getPC().setFactorSolverType("mumps")

    def run(self) -> None:
        """Assemble the matrix, and solve."""
        op, matrix = self._op, self._assembly.assemble()
        self._rows.make_identity()
        self._ksp.setOperators(matrix)
        with op.source.dat.vec_ro as given, op.unknown.dat.vec_wo as solution:
            rhs = given.copy()
            self._rows.zero(rhs)
            self._ksp.solve(rhs, solution)
        if self._ksp.getConvergedReason() < 0:
            raise SolveFailed(f"{op.name} could not be solved for: its matrix is singular")


@runner.register
def _(op: Assemble) -> Run:
    return (_assembly if isinstance(op.work, Form) else _nodal_assembly)(op)


def _assembly(op: Assemble) -> Run:
    forms = []
    for f, target in op.by.items():
        form = slope_by(op.work, f)
        forms.append((_Target(op, target), form and VectorAssembly(form)))

    def run() -> None:
        # All before any target is written, which the others may read.
        found = [form and form.values() for _, form in forms]
        for (target, _), values in zip(forms, found, strict=True):
            target.put(values)

    return run


def own_values(field: Field) -> np.ndarray:
    """The values that this rank owns; a number of a Real space stands on all ranks."""
    return field.array if is_real(field.function) else field.owned


class _Target:
    """A Function that an assembly sets or adds to."""

    def __init__(self, op: Assemble, target: Function) -> None:
        self._places = [(field, own_values(field)) for field in fields(target)]
        self._adds = target in op.adds

    def put(self, values: Sequence[np.ndarray] | None) -> None:
        """Set or add the values that this rank owns, part by part; None is zero."""
        for k, (field, own) in enumerate(self._places):
            if self._adds and values is None:
                continue
            new = 0.0 if values is None else values[k]
            own[...] = new + own if self._adds else new
            field.written()


def _nodal_assembly(op: Assemble) -> Run:
    """The derivatives of a sum over nodes; those by a number of a Real space are summed."""
    work, values, sums = expand_derivatives(op.work), {}, []
    nodal = next(f.function_space() for f in extract_coefficients(work) if not is_real(f))
    element = scalar_space(nodal).ufl_element()
    for f, target in op.by.items():
        slope, place = expand_derivatives(ufl.diff(work, f)), target
        if is_real(f):
            place = Function(shaped_space(f.ufl_shape, nodal.mesh(), element))
            sums.append((Field(place), _Target(op, target), target.dat.data_ro.shape))
        elif target in op.adds:
            slope = target + slope
        values[place] = slope
    update = PointwiseUpdate(values)

    def run() -> None:
        update.apply()
        for place, target, shape in sums:
            found = nodal.comm.allreduce(place.owned.sum(axis=0), op=MPI.SUM)
            target.put([found.reshape(shape)])

    return run


class Trajectory:
    """One run of a list of operations, and the cotangents before it from those after it.

    ``seeds`` are the Functions with cotangents after the run, ``wanted`` those by which derivatives are
    computed. The values of ``cotangents`` are set before and read after :meth:`pull`. ``runs`` perform
    some operations otherwise.
    """

    # The store has one array for each version of a Function that adjoints read. A version is the place of
    # the operation that writes it (-1 before the run), and the key of the Function.
    def __init__(
        self, operations: Sequence[Operation], seeds: Iterable[Function],
        wanted: Iterable[Function], *, runs: dict[Operation, Run] | None = None,
    ) -> None:  # fmt: skip
        self.operations = tuple(operations)
        adjoint = AdjointStep(self.operations, seeds, wanted, once=True)
        #: The cotangent of each Function.
        self.cotangents = adjoint.cotangents
        self._zeroed = [self.cotangents[f] for f in adjoint.zeroed]
        self._forward = Executor(self.operations, runs)
        self._backward = Executor(adjoint.operations)
        #: For each operation of the adjoint the fields that it reads, with their versions.
        self._reads: list[list[tuple[Field, tuple[int, int]]]] = []
        for place, op in zip(adjoint.places, adjoint.operations, strict=True):
            read = {id(f.dat): f for f in each_part(op.reads) if adjoint.is_written(f)}
            writers = [adjoint.writer_for_adjoint(place, f) for f in read.values()]
            versions = [
                (-1 if step else k, name) for (step, k), name in zip(writers, read, strict=True)
            ]
            self._reads.append([*zip(map(Field, read.values()), versions, strict=True)])
        needed = {version: field for reads in self._reads for field, version in reads}
        self._before = [(field, version) for version, field in needed.items() if version[0] < 0]
        self._writes = [
            [(Field(f), (k, id(f.dat))) for f in each_part(op.writes) if (k, id(f.dat)) in needed]
            for k, op in enumerate(self.operations)
        ]
        self._store: dict[tuple[int, int], np.ndarray] = {}
        self._time = 0.0, 0.0

    def advance(self, t: float, dt: float) -> None:
        """Perform the operations as a step, and store what their adjoints read."""
        self._time = t, dt
        self._keep(self._before)
        for k, writes in enumerate(self._writes):
            self._forward.perform(k, t, dt)
            self._keep(writes)

    def _keep(self, versions: Iterable[tuple[Field, tuple[int, int]]]) -> None:
        for field, version in versions:
            field.update_ghosts()
            self._store[version] = np.array(field.array)

    def pull(self) -> None:
        """The cotangents before the run, in place of those after it; the store is empty then."""
        for k, reads in enumerate(self._reads):
            for field, version in reads:
                field.array[...] = self._store[version]
                field.written(ghosts_too=True)
            self._backward.perform(k, *self._time)
        for bar in self._zeroed:
            bar.assign(0.0)
        self._store.clear()
