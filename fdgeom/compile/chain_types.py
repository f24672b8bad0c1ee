"""Newton's method and the inverse of the Jacobian along chains of cells, as types of SNES and PC."""

from typing import Any

import numpy as np
from firedrake import Function, derivative
from petsc4py import PETSc
from ufl.algorithms import replace

from fdgeom.compile.chain import Update
from fdgeom.compile.newton import WORDS, Iteration, newton_of
from fdgeom.errors import CannotCompile
from fdgeom.forms import simplify
from fdgeom.messages import Described
from fdgeom.operations import Prescribed, Reason
from fdgeom.solvers.data import collect, fields, spread
from fdgeom.solvers.problem_of import DIVERGED, problem_of, show_iteration


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
    def create(self, snes: PETSc.SNES) -> None:
        """Do nothing: the problem is not known yet."""

    def setFromOptions(self, snes: PETSc.SNES) -> None:
        """Do nothing: it has no options of its own."""

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
        self.failure = WORDS.get(reason)
        if reason in DIVERGED:
            snes.setConvergedReason(DIVERGED[reason])

    def _iterate(self, snes: PETSc.SNES) -> tuple[int, int]:
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
        self._given = np.concatenate(
            [np.array([], dtype=int)]
            + [
                starts[e.part] + np.asarray(e.dofs)[np.asarray(e.dofs) < sizes[e.part]]
                for e in essential
            ]
        )

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
