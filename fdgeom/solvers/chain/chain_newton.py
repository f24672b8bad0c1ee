"""Newton's method on a chain of cells, as a PETSc SNES type."""

from typing import Any

import numpy as np
from petsc4py import PETSc

from fdgeom.errors import CannotCompile
from fdgeom.solvers.chain.unit import REASONS, ChainUnit
from fdgeom.solvers.chain.vectors import Vectors
from fdgeom.solvers.problem_of import DIVERGED, problem_of, show_iteration


class ChainNewton:
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
        At set-up, if the residual is not supported or there are several ranks; the message says why.
    """

    #: Whether it calls SNES's convergence test.
    calls_test = True

    def __init__(self) -> None:
        #: Why the last solve failed; None if it did not.
        self.failure: str | None = None
        #: The ChainUnit, after `setUp`.
        self._unit: Any = None

    # --- PETSc's interface -----------------------------------------------------------------------
    def create(self, snes: PETSc.SNES) -> None:
        """Do nothing: the problem is not known yet."""

    def setFromOptions(self, snes: PETSc.SNES) -> None:
        """Do nothing: it has no options of its own."""

    def setUp(self, snes: PETSc.SNES) -> None:
        """Generate and compile the equations of a cell."""
        if self._unit is None:
            residual, unknown, essential = problem_of(snes, "ChainNewton")
            self._unit = ChainUnit(residual, unknown, essential=essential)
            self._vectors = Vectors(self._unit)

    def solve(self, snes: PETSc.SNES, b: PETSc.Vec | None, x: PETSc.Vec) -> None:
        """Solve from ``x``; if that fails, ``x`` keeps its value."""
        if b is not None and b.handle and b.norm() != 0.0:
            raise CannotCompile("ChainNewton solves F(u) = 0 only, without a right-hand side")
        unit, vectors = self._unit, self._vectors
        unit.begin()
        start = np.array(x.getArray(readonly=True))
        vectors.put(start)
        code, iterations = self._iterate(snes)
        snes.setIterationNumber(iterations)
        if code == 0:
            vectors.get(x.getArray())
            return
        x.getArray()[...] = start
        self.failure = REASONS.get(code)
        if code in DIVERGED:
            snes.setConvergedReason(DIVERGED[code])

    def _iterate(self, snes: PETSc.SNES) -> tuple[int, int]:
        unit, limit = self._unit, snes.getTolerances()[3]
        self.failure = None
        solvable, iteration = unit.linearise(), 0
        step = size = 0.0
        while True:
            norm = unit.residual_norm
            if not (np.isfinite(norm) and np.isfinite(step)):
                return -3, iteration
            show_iteration(snes, iteration, norm)
            reason: Any = snes.callConvergenceTest(iteration, size, step, norm)
            if reason is None:
                reason = snes.getConvergedReason()
            if reason:
                snes.setConvergedReason(reason)
                return (0, iteration) if reason > 0 else (-5, iteration)
            if iteration == limit:
                return -1, iteration
            if not solvable:
                return -2, iteration
            step, size = unit.update()
            iteration += 1
            solvable = unit.linearise()

    def view(self, snes: PETSc.SNES, viewer: PETSc.Viewer | None = None) -> None:
        """Describe the solver."""
        text = "  fdgeom.ChainNewton: Newton's method on a chain of cells\n"
        if self._unit is not None:
            text += f"    blocks of {self._unit.size}, {self._unit.lanes} pieces at a time\n"
        (viewer or PETSc.Viewer.STDOUT(snes.comm)).printfASCII(text)
