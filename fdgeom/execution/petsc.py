"""Operations performed by Firedrake's assembly and PETSc's solvers, on any mesh."""

from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch

import numpy as np
import ufl
from firedrake import Form, Function, TestFunction, TrialFunction, derivative
from firedrake.assemble import get_assembler
from mpi4py import MPI
from petsc4py import PETSc
from ufl.algorithms import expand_derivatives, extract_coefficients
from ufl.classes import Zero

from fdgeom.forms import is_zero, shaped_space, simplify
from fdgeom.operations import Assemble, Check, Copy, HostOperation, Map, Operation, Solve
from fdgeom.solvers import (
    EssentialRows,
    Field,
    MatrixAssembly,
    Number,
    Numerics,
    PointwiseUpdate,
    Snapshot,
    SolveFailed,
    VectorAssembly,
    defaults,
    fields,
    is_local,
)
from fdgeom.solvers.compiled import scalar_space
from fdgeom.solvers.compiling import paused_collection
from fdgeom.solvers.derived import derived_in, is_real

#: A call that performs an operation with the present values.
Run = Callable[[], None]


class Executor:
    """Performs a list of operations, step by step, with PETSc; ``runs`` perform some of them otherwise."""

    def __init__(
        self, operations: Sequence[Operation], runs: Mapping[Operation, Run] | None = None
    ) -> None:
        self.operations = tuple(operations)
        #: The calls that perform operations, each made once.
        self.runs: dict[Operation, Run] = dict(runs or {})
        for op in self.operations:
            if op not in self.runs:
                self.runs[op] = runner(op)
        numbers = {
            s: Number(s) for op in self.operations for s in (op.dt, op.clock) if s is not None
        }
        self._symbols = [
            (numbers.get(op.dt), op.fraction, numbers.get(op.clock), op.at)
            for op in self.operations
        ]
        written = dict.fromkeys(f for op in self.operations for f in op.writes)
        self._snapshot = Snapshot(list(written)) if written else None

    def perform(self, index: int, t: float, dt: float) -> None:
        """Perform one operation of a step from ``t`` to ``t + dt``."""
        length, fraction, clock, at = self._symbols[index]
        if length is not None:
            length.set(fraction * dt)
        if clock is not None:
            clock.set(t + at * dt)
        self.runs[self.operations[index]]()

    def step(self, t: float, dt: float) -> None:
        """Perform all operations of a step from ``t`` to ``t + dt``."""
        for index in range(len(self.operations)):
            self.perform(index, t, dt)

    def advance(self, steps: int, t: float, dt: float) -> tuple[int, SolveFailed | None]:
        """Take steps; returns their number, and the failure of the next one, which changes nothing."""
        for done in range(steps):
            try:
                with self._snapshot.kept():
                    self.step(t + done * dt, dt)
            except SolveFailed as failure:
                return done, failure
        return steps, None


@singledispatch
def runner(op: Operation) -> Run:
    """The call that performs an operation; its forms and solvers are made once."""
    raise TypeError(f"{type(op).__name__} is no operation that PETSc performs: define its run()")


@runner.register
def _(op: HostOperation) -> Run:
    return op.run


@runner.register
def _(op: Map) -> Run:
    return PointwiseUpdate(op.values).apply


@runner.register
def _(op: Copy) -> Run:
    rows = slice(None) if op.rows is None else op.rows
    pairs = list(
        zip(
            op.target.subfunctions,
            [None] * len(op.target.subfunctions) if op.source is None else op.source.subfunctions,
            strict=True,
        )
    )

    def run() -> None:
        for target, source in pairs:
            values = 0.0 if source is None else source.dat.data_ro_with_halos.reshape(-1)[rows]
            place = target.dat.data_with_halos.reshape(-1)
            place[rows] = values + (place[rows] if op.adds else 0.0)

    return run


@runner.register
def _(op: Check) -> Run:
    nodal = op.reads[0].function_space()
    field = Function(scalar_space(nodal))
    update, comm = PointwiseUpdate({field: op.value}), nodal.comm

    def run() -> None:
        update.apply()
        values = field.dat.data_ro
        fails = bool(values.size) and not np.max(values) <= op.limit
        if comm.allreduce(fails, op=MPI.LOR):
            raise SolveFailed(op.message)

    return run


@runner.register
def _(op: Solve) -> Run:
    residual = simplify(derivative(op.work, op.test, TestFunction(op.test.function_space())))
    if op.source is not None:
        return _LinearSolve(residual, op).run
    numerics = (op.numerics or _numerics)(residual, op.unknown)
    snes = numerics.snes(
        residual,
        op.unknown,
        essential=op.prescribed,
        options=numerics.options,
        converged=numerics.converged,
        name=op.name,
    )
    if op.guess is None:
        return snes.solve
    copy = runner(Copy(source=op.guess, target=op.unknown))

    def run() -> None:
        copy()
        snes.solve()

    return run


def _numerics(residual: Form, unknown: Function) -> Numerics:
    """Linear or Newton solves, node by node for local equations, otherwise with one LU by MUMPS."""
    local = is_local(residual, unknown)
    options = defaults(residual, unknown, local)
    # MUMPS pivots: saddle points have zeros on their diagonals.
    return Numerics(options if local else {**options, "pc_factor_mat_solver_type": "mumps"})


class _LinearSolve:
    """The solve of an equation that is linear in its unknown, for a given right-hand side."""

    def __init__(self, residual: Form, op: Solve) -> None:
        self._op, space = op, op.unknown.function_space()
        self._assembly = MatrixAssembly(
            simplify(derivative(residual, op.unknown, TrialFunction(space))), "aij"
        )
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
        form = simplify(derivative(op.work, f, TestFunction(f.function_space())))
        forms.append((_Target(op, target), None if is_zero(form) else LinearForm(form)))

    def run() -> None:
        # Copies: two targets may be derivatives by one Function.
        found = [form and [np.array(part) for part in form.assemble()] for _, form in forms]
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


class LinearForm:
    """A form with one argument, which may be of a Real space, to be assembled repeatedly."""

    def __init__(self, form: Form) -> None:
        (test,) = form.arguments()
        self._dependent, self._real = derived_in(form), is_real(test)
        with paused_collection():
            self._form = get_assembler(form) if self._real else VectorAssembly(form)

    def assemble(self) -> list[np.ndarray]:
        """This rank's values with the present coefficients, part by part."""
        if self._real:
            for field in self._dependent:
                field.refresh()
        return [part.dat.data_ro for part in self._form.assemble().subfunctions]


def _nodal_assembly(op: Assemble) -> Run:
    """The derivatives of a sum over nodes; those by a number of a Real space are summed."""
    work = expand_derivatives(op.work)
    nodal = next(f.function_space() for f in extract_coefficients(work) if not is_real(f))
    element = scalar_space(nodal).ufl_element()
    values, finish = {}, []
    for f, target in op.by.items():
        slope = expand_derivatives(ufl.diff(work, f))
        space = (
            shaped_space(f.ufl_shape, nodal.mesh(), element) if is_real(f) else f.function_space()
        )
        place = Function(space)
        if not isinstance(slope, Zero):
            values[place] = slope
        finish.append((Field(place), _Target(op, target), is_real(f) and target.dat.data_ro.shape))
    update = PointwiseUpdate(values) if values else None

    def run() -> None:
        if update is not None:
            update.apply()
        for place, target, number in finish:
            found = place.owned
            if number:
                found = nodal.comm.allreduce(found.sum(axis=0), op=MPI.SUM).reshape(number)
            target.put([found])

    return run
