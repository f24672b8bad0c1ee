"""Newton's method at each node (or in each cell) separately, as a PETSc SNES type."""

from typing import Any

import numpy as np
from mpi4py import MPI
from petsc4py import PETSc

from fdgeom.solvers.compiled import REASONS, CannotCompile, Program, Unit, pieces
from fdgeom.solvers.data import collect, fields, spread
from fdgeom.solvers.problem_of import problem_of, show_iteration

# PETSc's stubs make a reason an int and take a ConvergedReason.
_REASON: Any = PETSc.SNES.ConvergedReason
_DIVERGED = {
    -1: _REASON.DIVERGED_MAX_IT,
    -2: _REASON.DIVERGED_LINEAR_SOLVE,
    -3: _REASON.DIVERGED_FUNCTION_NANORINF,
}


class LocalNewton:
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
        #: The Unit, after `setUp`.
        self._unit: Any = None
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
        if self._unit is not None:
            return
        residual, unknown, essential = problem_of(snes, "LocalNewton")
        program = Program(pieces(unknown)[0].function_space().mesh())
        program.add_solve(residual, unknown, essential=essential)
        self._unit = Unit(program)
        self._fields = fields(unknown)
        self._space = unknown.function_space()
        self._serial = self._space.comm.size == 1
        self._own, self._start = None, np.array([])
        if len(self._fields) == 1:
            with unknown.dat.vec_ro as own:
                self._own = own.handle
            self._start = np.array(self._fields[0].owned)

    def solve(self, snes: PETSc.SNES, b: PETSc.Vec | None, x: PETSc.Vec) -> None:
        """Solve from ``x``; if a node fails, ``x`` keeps its value."""
        if b is not None and b.handle and b.norm() != 0.0:
            raise CannotCompile("LocalNewton solves F(u) = 0 only, without a right-hand side")
        unit = self._unit
        tolerances = unit.tolerances[0]
        tolerances.rtol, tolerances.atol, tolerances.stol, tolerances.max_it = snes.getTolerances()
        # x may be the unknown itself; then it is restored after a failure.
        in_place = x.handle == self._own
        if in_place:
            self._start[...] = self._fields[0].owned
        else:
            spread(x.getArray(readonly=True), self._fields)
        unit.begin()
        self.failure = None
        if self._watched or snes.getMonitor():
            reason = self._together(snes, tolerances)
        else:
            report = unit.reports[0]
            before = report.iterations
            reason = self._agree(unit.solve(0))
            self.iterations = report.iterations - before
        unit.end()
        snes.setIterationNumber(self.iterations)
        if not reason:
            if not in_place:
                collect(self._fields, x.getArray())
            snes.setConvergedReason(_REASON.CONVERGED_FNORM_RELATIVE)
            return
        place = [w for w in self._space.comm.allgather(unit.place_of_failure(0)) if w]
        self.failure = REASONS[reason] + (f" at {place[0]}" if place else "")
        if in_place:
            self._fields[0].owned[...] = self._start
            self._fields[0].written()
        else:
            spread(x.getArray(readonly=True), self._fields)
        snes.setConvergedReason(_DIVERGED[reason])

    def _together(self, snes, tolerances) -> int:
        """Iterate with all nodes in step, and show the norm of the whole residual to the monitors."""
        unit, limit = self._unit, tolerances.max_it
        first = norm = unit.norm(0)
        show_iteration(snes, 0, norm)
        self.iterations = 0
        while not (norm <= tolerances.rtol * first or norm <= tolerances.atol):
            if self.iterations == limit:
                return -1
            tolerances.single = 1
            reason = self._agree(unit.solve(0))
            tolerances.single = 0
            if reason:
                return reason
            before, norm = norm, unit.norm(0)
            self.iterations += 1
            show_iteration(snes, self.iterations, norm)
            if not np.isfinite(norm):
                return -3
            if norm >= before and norm <= 1e-8 * first:
                break  # round-off
        return 0

    def _agree(self, reason: int) -> int:
        return reason if self._serial else self._space.comm.allreduce(reason, op=MPI.MIN)

    def view(self, snes: PETSc.SNES, viewer: PETSc.Viewer | None = None) -> None:
        """Describe the solver."""
        text = "  fdgeom.LocalNewton: Newton's method at each node by itself\n"
        if self._unit is not None:
            (phase,) = self._unit.program.phases
            text += (
                f"    blocks of {phase.block}, {self._unit.lanes} at a time; "
                f"most iterations so far: {self._unit.reports[0].most}\n"
            )
        viewer = viewer or PETSc.Viewer.STDOUT(snes.comm)
        viewer.printfASCII(text)
