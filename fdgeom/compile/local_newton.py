"""Newton's method at each node (or in each cell) separately, as a PETSc SNES type."""

from typing import Any

import numpy as np
from firedrake import Function
from petsc4py import PETSc

from fdgeom.compile.executor import CompiledExecutor
from fdgeom.compile.layout import WIDTH
from fdgeom.errors import CannotCompile
from fdgeom.messages import Described
from fdgeom.operations import Prescribed, Solve
from fdgeom.solvers.data import collect, fields, spread
from fdgeom.solvers.problem_of import DIVERGED, REASON, problem_of, show_iteration


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
    def create(self, snes: PETSc.SNES) -> None:
        """Do nothing: the problem is not known yet."""

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
            reason = self._together(snes, x, *tolerances)
        else:
            reason = self._solve(x)
            self.iterations = self._iterations() - before
        snes.setIterationNumber(self.iterations)
        if not reason:
            snes.setConvergedReason(REASON.CONVERGED_FNORM_RELATIVE)
            return
        start.copy(x)
        spread(x.getArray(readonly=True), self._fields)
        snes.setConvergedReason(DIVERGED[reason])

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

        self._executor.unit.one_update()
        first = norm = norm_now()
        show_iteration(snes, 0, norm)
        self.iterations = 0
        while not (norm <= rtol * first or norm <= atol):
            if self.iterations == max_it:
                return -1
            if reason := self._solve(x):
                return reason
            before, norm = norm, norm_now()
            self.iterations += 1
            show_iteration(snes, self.iterations, norm)
            if not np.isfinite(norm):
                return -3
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
