"""Compiled solves as types of PETSc's SNES and PC, for steppers and for any Firedrake problem."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from firedrake import DirichletBC, Form, Function, derivative
from mpi4py import MPI
from petsc4py import PETSc
from ufl.algorithms import replace

from fdgeom.compat import problem_of_solver
from fdgeom.compile.build import WIDTH
from fdgeom.compile.chain import Update
from fdgeom.compile.executor import CompiledExecutor, Iteration, newton_of
from fdgeom.data import collect, fields, spread
from fdgeom.errors import CannotCompile
from fdgeom.forms import simplify
from fdgeom.messages import Described
from fdgeom.operations import PROBLEM, WORDS, Prescribed, Reason, Solve, dofs_of

# PETSc's stubs make a reason an int and take a ConvergedReason.
REASON: Any = PETSc.SNES.ConvergedReason
# Parameters of the form compiler that change the numbers of a form.
_OF_QUADRATURE = {"quadrature_degree", "quadrature_rule"}


def problem_of(
    holder: PETSc.SNES | PETSc.PC, name: str
) -> tuple[Form, Function, Sequence[Prescribed]]:
    """Residual, unknown and prescribed degrees of freedom of a solver of fdgeom or of Firedrake."""
    known: Any = holder.getDict().get(PROBLEM)
    if known is not None:
        return known
    problem = problem_of_solver(holder.getDM())
    if problem is None:
        raise CannotCompile(f"{name} found no variational problem on this {holder.klass}")
    if unread := _OF_QUADRATURE & set(problem.form_compiler_parameters or ()):
        raise CannotCompile(
            f"{name} reads no form_compiler_parameters, such as {min(unread)!r}: give these with the "
            "measure, as in dx(degree=4)"
        )
    if not all(isinstance(bc, DirichletBC) for bc in problem.bcs):
        raise CannotCompile(f"{name} takes no boundary conditions but DirichletBC")
    return problem.F, problem.u, [_prescribed(bc) for bc in problem.dirichlet_bcs()]


def _prescribed(bc) -> Prescribed:
    """The degrees of freedom of a DirichletBC; Firedrake has put their values into the unknown."""
    space = bc.function_space()
    whole = space if space.component is None else space.parent
    return Prescribed(dofs_of(bc), part=whole.index or 0)


def show_iteration(snes: PETSc.SNES, iteration: int, norm: float) -> None:
    """Report the progress of an iteration to PETSc, its convergence history and its monitors."""
    snes.setIterationNumber(iteration)
    snes.setFunctionNorm(norm)
    snes.logConvergenceHistory(norm)
    snes.monitor(iteration, norm)


class LocalNewton(Described):
    """SNES type for residuals that couple only the unknowns of one node, or of one cell.

    Choose it by the options ``snes_type: python``, ``snes_python_type: fdgeom.LocalNewton``, for the
    steppers of fdgeom or for any :class:`firedrake.NonlinearVariationalProblem`. It generates kernels for
    the residual and the Jacobian of one node from the form, and runs Newton's iteration at each node until
    that node has converged, for several nodes at a time.

    ``snes_rtol``, ``snes_atol`` and ``snes_stol`` apply to each node. ``snes_max_it``, monitors,
    ``snes_view`` and ``snes_converged_reason`` work as for any SNES; with a monitor all nodes iterate
    together, and the monitor shows the norm of the whole residual. If a node fails, the unknown keeps its
    former value, and the reason names the place.

    Raises
    ------
    CannotCompile
        At set-up, if the residual is not local; the message names the term.
    """

    def __init__(self) -> None:
        self.iterations = 0
        self.failure: str | None = None
        #: The compiled solve, after `setUp`.
        self._executor: Any = None
        self._watched = False

    # --- PETSc's interface -----------------------------------------------------------------------
    def setFromOptions(self, snes: PETSc.SNES) -> None:
        """Find out whether the options ask for a monitor."""
        prefix = snes.getOptionsPrefix() or ""
        keys = PETSc.Options().getAll()
        self._watched = any(k.startswith(f"{prefix}snes_monitor") for k in keys)

    def setUp(self, snes: PETSc.SNES) -> None:
        """Generate and compile the local solves."""
        if self._executor is not None:
            return
        residual, unknown, essential = problem_of(snes, "LocalNewton")
        #: Where values are prescribed, the unknown keeps those that it has.
        self._given = [Function(part.function_space()) for part in unknown.subfunctions]
        prescribed = [Prescribed(e.dofs, self._given[e.part], e.part) for e in essential]
        solve = Solve(work=residual, unknown=unknown, prescribed=prescribed, name=unknown.name())
        executor = CompiledExecutor([solve])
        if executor.unit.couples:
            raise CannotCompile("this residual couples the unknowns of neighbouring nodes")
        self._executor, self._fields = executor, fields(unknown)
        self._own = None
        if len(self._fields) == 1:
            with unknown.dat.vec_ro as own:
                self._own = own.handle

    def solve(self, snes: PETSc.SNES, b: PETSc.Vec | None, x: PETSc.Vec) -> None:
        """Solve from ``x``; if a node fails, ``x`` keeps its value."""
        if b is not None and b.handle and b.norm() != 0.0:
            raise CannotCompile("LocalNewton solves F(u) = 0 only, without a right-hand side")
        unit = self._executor.unit
        # x may be the unknown itself.
        if x.handle != self._own:
            spread(x.getArray(readonly=True), self._fields)
        for given, field in zip(self._given, self._fields, strict=True):
            given.dat.data_wo[...] = field.owned.reshape(given.dat.data_ro.shape)
        self.failure, before = None, self._iterations()
        tolerances = snes.getTolerances()
        unit.tolerate(*tolerances)
        start = x.copy()
        if self._watched or snes.getMonitor():
            reason: Any = self._together(snes, x, *tolerances)
        else:
            reason = self._solve(x)
            own = self._iterations() - before
            self.iterations = snes.comm.tompi4py().allreduce(own, MPI.MAX)
        snes.setIterationNumber(self.iterations)
        if not reason:
            snes.setConvergedReason(REASON.CONVERGED_FNORM_RELATIVE)
            return
        start.copy(x)
        spread(x.getArray(readonly=True), self._fields)
        snes.setConvergedReason(reason)

    def _iterations(self) -> int:
        return self._executor.stats()["newton_iterations"]

    def _solve(self, x: PETSc.Vec) -> int:
        """Solve at all nodes; returns 0, or why some node has failed, and then changes nothing."""
        unit, values = self._executor.unit, self._executor.fields
        values.load()
        reason, _, call = unit.advance(1, 0.0, 0.0, blocked=False)
        if reason:
            self.failure = str(unit.failure(reason, call))
            return reason
        values.store()
        if x.handle != self._own:
            collect(self._fields, x.getArray())
        return 0

    def _together(self, snes, x: PETSc.Vec, rtol, atol, stol, max_it) -> int:
        """Iterate with all nodes in step, and show the norm of the whole residual to the monitors."""
        residual = x.duplicate()

        def norm_now() -> float:
            snes.computeFunction(x, residual)
            found: Any = residual.norm()
            return found

        # One update, whatever the residual.
        self._executor.unit.tolerate(0.0, 1e150, 0.0, 1, more=1)
        first = norm = norm_now()
        show_iteration(snes, 0, norm)
        self.iterations = 0
        while not (norm <= rtol * first or norm <= atol):
            if self.iterations == max_it:
                return Reason.TOO_MANY
            if reason := self._solve(x):
                return reason
            before, norm = norm, norm_now()
            self.iterations += 1
            show_iteration(snes, self.iterations, norm)
            if not np.isfinite(norm):
                return Reason.NOT_FINITE
            if norm >= before and norm <= 1e-8 * first:
                break  # round-off
        return 0

    def view(self, snes: PETSc.SNES, viewer: PETSc.Viewer | None = None) -> None:
        """Describe the solver."""
        text = "  fdgeom.LocalNewton: Newton's method at each node by itself\n"
        if self._executor is not None:
            found = self._executor.stats()
            text += (
                f"    {WIDTH} nodes at a time; {found['solves']} solves so far, "
                f"{found['newton_iterations']} iterations\n"
            )
        viewer = viewer or PETSc.Viewer.STDOUT(snes.comm)
        viewer.printfASCII(text)


class ChainNewton(Described):
    """SNES type for residuals on an interval mesh that couple the two nodes of each cell.

    Choose it by the options ``snes_type: python``, ``snes_python_type: fdgeom.ChainNewton``, for the
    steppers of fdgeom or for any :class:`firedrake.NonlinearVariationalProblem` whose unknown has values at
    nodes (CG of any degree), one value in each cell (DG0) or both, on a mesh that is one open line.
    Residual and tangent are compiled for several cells at once, and the matrix is eliminated while it is
    assembled.

    The iteration takes full Newton steps. SNES's convergence test ends it: the one that has been set, or
    that by the tolerances ``snes_rtol``, ``snes_atol`` and ``snes_stol``. ``snes_max_it``, monitors,
    ``snes_view`` and ``snes_converged_reason`` work as for any SNES. If it fails, the unknown keeps its
    former value.

    Raises
    ------
    CannotCompile
        At set-up, if the residual is not supported; the message says why.
    """

    #: Whether it calls SNES's convergence test.
    calls_test = True

    def __init__(self) -> None:
        #: Why the last solve failed; None if it did not.
        self.failure: str | None = None
        #: The compiled iteration, after `setUp`.
        self._iteration: Any = None

    # --- PETSc's interface -----------------------------------------------------------------------
    def setUp(self, snes: PETSc.SNES) -> None:
        """Generate and compile the equations of a cell."""
        if self._iteration is None:
            residual, self._unknown, essential = problem_of(snes, "ChainNewton")
            self._iteration = newton_of(residual, self._unknown, essential)
            self._fields = fields(self._unknown)

    def solve(self, snes: PETSc.SNES, b: PETSc.Vec | None, x: PETSc.Vec) -> None:
        """Solve from ``x``; if that fails, ``x`` keeps its value."""
        if b is not None and b.handle and b.norm() != 0.0:
            raise CannotCompile("ChainNewton solves F(u) = 0 only, without a right-hand side")
        # x may be the unknown itself.
        spread(np.array(x.getArray(readonly=True)), self._fields)
        self._iteration.begin()
        reason, iterations = self._iterate(snes)
        snes.setIterationNumber(iterations)
        self.failure = None
        if reason > 0:
            self._iteration.end()
            collect(self._fields, x.getArray())
            return
        self.failure = WORDS[reason]
        # That of a convergence test is PETSc's already.
        if reason != Reason.GROWN:
            snes.setConvergedReason(reason)

    def _iterate(self, snes: PETSc.SNES) -> tuple[Any, int]:
        run, report = self._iteration.run, self._iteration.report
        step, done, limit = 0.0, 0, snes.getTolerances()[3]
        while True:
            failed, size = run(), self._iteration.norm(self._unknown) if done else 0.0
            if not (np.isfinite(report.norm) and np.isfinite(step)):
                return Reason.NOT_FINITE, done
            show_iteration(snes, done, report.norm)
            reason: Any = snes.callConvergenceTest(done, size, step, report.norm)
            if reason is None:
                reason = snes.getConvergedReason()
            if reason:
                snes.setConvergedReason(reason)
                return (Reason.RELATIVE if reason > 0 else Reason.GROWN), done
            if done == limit:
                return Reason.TOO_MANY, done
            if failed:
                return failed, done
            step = report.step
            done += 1

    def view(self, snes: PETSc.SNES, viewer: PETSc.Viewer | None = None) -> None:
        """Describe the solver."""
        text = "  fdgeom.ChainNewton: Newton's method on a chain of cells\n"
        (viewer or PETSc.Viewer.STDOUT(snes.comm)).printfASCII(text)


class ChainLU(Described):
    """PC type: the LU of the Jacobian of a residual that couples the two nodes of each cell.

    Choose it by the options ``pc_type: python``, ``pc_python_type: fdgeom.ChainLU``, for the steppers of
    fdgeom or for any Firedrake problem on an interval mesh. SNES, its line search and KSP are yours to
    choose. Compiled code assembles the matrix from the form at the present value of the unknown, and
    eliminates it. The matrix of KSP need not be assembled (``mat_type: matfree``). See
    :class:`fdgeom.ChainNewton` for the residuals that are supported.

    Raises
    ------
    CannotCompile
        At set-up, if the residual is not supported; the message says why.
    """

    def __init__(self) -> None:
        #: The compiled solve, after `setUp`.
        self._iteration: Any = None

    def _make(self, pc: PETSc.PC) -> None:
        residual, unknown, essential = problem_of(pc, "ChainLU")
        space = unknown.function_space()
        right, found, test = (Function(space, name=name) for name in ("b", "x", "test"))
        (argument,) = residual.arguments()
        work = simplify(derivative(replace(residual, {argument: test}), unknown, found))
        equations = Update(
            work=work,
            unknown=found,
            test=test,
            source=right,
            prescribed=[Prescribed(e.dofs, part=e.part) for e in essential],
            name=unknown.name(),
        )
        self._iteration = Iteration([], [equations], live=[found])
        self._right = fields(right)
        sizes = [field.owned.size for field in self._right]
        starts = np.cumsum([0, *sizes])
        #: The degrees of freedom that are prescribed.
        own = [starts[e.part] + e.dofs[e.dofs < sizes[e.part]] for e in essential]
        self._given = np.concatenate([np.array([], dtype=int), *own])

    def setUp(self, pc: PETSc.PC) -> None:
        """Linearise at the present value of the unknown."""
        if self._iteration is None:
            self._make(pc)
        # PETSc's stubs make a reason an int and take a FailedReason.
        reasons: Any = PETSc.PC.FailedReason
        self._iteration.begin()
        failed = self._iteration.run()
        pc.setFailedReason(reasons.FACTOR_NUMERIC_ZEROPIVOT if failed else reasons.NOERROR)

    def apply(self, pc: PETSc.PC, b: PETSc.Vec, x: PETSc.Vec) -> None:
        """x := J⁻¹ b."""
        values = np.array(b.getArray(readonly=True))
        spread(values, self._right)
        self._iteration.begin()
        self._iteration.run()
        found = self._iteration.update()
        found[self._given] = values[self._given]
        x.getArray()[...] = found

    def view(self, pc: PETSc.PC, viewer: PETSc.Viewer | None = None) -> None:
        """Describe the preconditioner."""
        text = "  fdgeom.ChainLU: block elimination along a chain of cells\n"
        (viewer or PETSc.Viewer.STDOUT(pc.comm)).printfASCII(text)
