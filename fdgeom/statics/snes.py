"""PETSc SNES for a configuration on a group, whose reference is updated with the iterates."""

import math
from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
import petsctools
from petsc4py import PETSc

from fdgeom.compat import options_read
from fdgeom.errors import SolveFailed
from fdgeom.execution import COUPLED
from fdgeom.execution.options import divergence, refuse_unknown, set_from_options, show_reason
from fdgeom.execution.options import reason as petsc_reason
from fdgeom.operations import ConvergenceTest, Watch
from fdgeom.statics.problem import EquilibriumProblem, PathCondition
from fdgeom.statics.stability import Stability, stability_of

#: Steps are taken whole: mixed integration points let the residual grow on the way. The residual's
#: round-off is that of the axial stiffness, so the size of the update stops the iteration as well.
DEFAULTS = {
    "snes_type": "newtonls",
    "snes_linesearch_type": "basic",
    "snes_rtol": 1e-12,
    "snes_atol": 1e-50,
    "snes_stol": 1e-12,
    "snes_max_it": 50,
    "snes_divergence_tolerance": 1e20,
    **COUPLED,
}


def watch_by(rtol: float, atol: float, stol: float, growth: float, small: float = 0.0) -> Watch:
    """The decisions of an iteration that ends by tolerances, or at updates that are ``small`` and do
    not reduce the residual, and fails at PETSc's divergence tolerance, which is not positive for none.
    """
    growth = growth if growth > 0.0 else math.inf
    watch = Watch(ConvergenceTest(small=small, left=0.0, growth=growth, gives_up=True))
    watch.begin(rtol, atol, stol, guess=0.0, of=0.0)
    return watch


class GroupNewton:
    """Newton's method on F(g, λ) = 0, with λ given or, bordered, as an unknown with a condition."""

    # `bordered`: the load factor is the last unknown, on the last rank, with the condition
    # normal·(u - u₀) + slope (λ - λ₀) = size. `options` are flat PETSc options with the defaults
    # merged in, `given` those that the user gave. It counts in `counts`.
    def __init__(
        self,
        problem: EquilibriumProblem,
        counts: Counter[str],
        *,
        bordered: bool,
        options: Mapping,
        prefix: str,
        given: Mapping,
    ) -> None:
        self._problem, self._bordered, self._counts = problem, bordered, counts
        self.comm, start = problem.comm, problem.start()
        #: Whether it can solve again: an error in a callback leaves vectors of PETSc locked.
        self.is_usable = True
        self._n = len(start)
        self._last = bordered and self.comm.rank == self.comm.size - 1
        zero = np.zeros(self._n)
        self._origin, self._condition = (start, 0.0), PathCondition(zero, 1.0, 0.0, zero, 0.0)

        options = dict(options)
        options.pop("mat_type", None)
        self._x = PETSc.Vec().createMPI((self._n + self._last, None), comm=self.comm)
        self._f = self._x.duplicate()
        self._tangent = problem.tangent(start)
        self._matrix = self._border(create=True) if bordered else self._tangent
        self.snes = PETSc.SNES().create(comm=self.comm)
        self.snes.setFunction(self._function, self._f)
        self.snes.setJacobian(self._jacobian, self._matrix)
        self._lengths = problem.lengths
        self.snes.setConvergenceTest(self._decide)
        self._shows_reason = set_from_options(self.snes, options, prefix, "fdgeom_statics")
        if given:
            refuse_unknown(given, options_read(self.snes), DEFAULTS)

    # --- callbacks ---------------------------------------------------------------------------------
    def _read(self, x: PETSc.Vec) -> tuple[np.ndarray, float]:
        values = x.getArray(readonly=True)
        if not self._bordered:
            return np.array(values), self._problem.load
        own = float(values[-1]) if self._last else 0.0
        factor = self.comm.bcast(own, root=self.comm.size - 1)
        return np.array(values[: self._n]), factor

    def _function(self, snes, x: PETSc.Vec, f: PETSc.Vec) -> None:
        u, self._problem.load = self._read(x)
        self._problem.move(u)
        out = f.getArray()
        out[: self._n] = self._problem.residual()
        if self._bordered:
            (u0, factor0), condition = self._origin, self._condition
            along = self.comm.allreduce(float(condition.normal @ (u - u0)))
            if self._last:
                out[-1] = along + condition.slope * (self._problem.load - factor0) - condition.size

    def _jacobian(self, snes, x: PETSc.Vec, J: PETSc.Mat, P: PETSc.Mat) -> None:
        u, self._problem.load = self._read(x)
        self._tangent = self._problem.tangent(u)
        if self._bordered:
            self._border()

    def _decide(self, snes, iteration: int, norms) -> int:
        """PETSc's convergence test, with translations in lengths and their forces as moments."""
        x, f = (v.getArray(readonly=True).copy() for v in (snes.getSolution(), self._f))
        self._put_given(x[: self._n], f, iteration)
        x[: self._n] /= self._lengths
        f[: self._n] *= self._lengths
        if iteration == 0:
            growth = snes.getDivergenceTolerance()
            small = self._condition.small if self._bordered else 0.0
            self._before, self._watch = x, watch_by(*snes.getTolerances()[:3], growth, small)
        step, self._before = x - self._before, x
        squares = self.comm.allreduce(np.array([x @ x, step @ step, f @ f]))
        return self._watch.decide(iteration, *np.sqrt(squares))

    def _put_given(self, u: np.ndarray, f: np.ndarray, iteration: int) -> None:
        """Replace increments of held nodes in a residual by the forces that they cause."""
        # After the first iteration they are round-off. Along a path nodes do not move; a tangent there
        # would end the extrapolation of the predictor.
        problem, rows = self._problem, self._problem.rows
        given = -f[rows]
        f[rows] = 0.0
        if iteration == 0 and not self._bordered and self.comm.allreduce(int(given.any())):
            needed = self._tangent.createVecRight()
            needed.getArray()[rows] = given
            f[: self._n] += (problem.tangent(u) * needed).getArray()
            f[rows] = 0.0

    def _border(self, create: bool = False) -> PETSc.Mat:
        """[[K, -p], [normalᵀ, slope]] from the tangent K and the loads p."""
        rows, columns, values = self._tangent.getValuesCSR()
        end = self._tangent.getSize()[0]
        # The load factor's column comes last in every row: its global number is the largest.
        where = rows[1:]
        columns = np.insert(columns, where, end).astype(PETSc.IntType)
        values = np.insert(values, where, -self._problem.loads())
        rows = rows + np.arange(len(rows), dtype=rows.dtype)
        normals = self.comm.gather(self._condition.normal, root=self.comm.size - 1)
        if self._last:
            columns = np.concatenate([columns, np.arange(end + 1)]).astype(PETSc.IntType)
            values = np.concatenate([values, *normals, [self._condition.slope]])
            rows = np.append(rows, len(columns)).astype(PETSc.IntType)
        if create:
            size = (self._n + self._last, None)
            self._matrix = PETSc.Mat().createAIJ(
                (size, size), csr=(rows, columns, values), comm=self.comm
            )
        else:
            self._matrix.setValuesCSR(rows, columns, values)
            self._matrix.assemble()
        return self._matrix

    # --- solving -------------------------------------------------------------------------------------
    def direction(self, normal: np.ndarray, slope: float) -> tuple[np.ndarray, float, Stability]:
        """The direction (du, dλ) along the path, with normal·du + slope dλ = 1, and the stability."""
        u = self._problem.start()
        self._condition = PathCondition(normal, slope, 0.0, u, 0.0)
        self._tangent = self._problem.tangent(u)
        self._border()
        self._f.set(0.0)
        if self._last:
            self._f.getArray()[-1] = 1.0
        ksp = self.snes.getKSP()
        with petsctools.inserted_options(self.snes):
            ksp.setOperators(self._matrix)
            self._guarded(lambda: ksp.solve(self._f, self._x))
        if ksp.getConvergedReason() < 0:
            raise SolveFailed(f"the linear solve failed (KSP reason {ksp.getConvergedReason()})")
        return *self._read(self._x), stability_of(self._problem, self._tangent)

    def solve(
        self, condition: PathCondition | None = None, *, provisional: bool = True
    ) -> np.ndarray:
        """Solve from the present configuration, at its load or (bordered) with a condition; returns the
        displacement.
        """
        # provisional: smaller steps come after a failure.
        start, factor = self._problem.start(), self._problem.load
        values = self._x.getArray()
        values[: self._n] = start
        if condition is not None:
            self._origin, self._condition = (start, factor), condition
            values[: self._n] += condition.du
            if self._last:
                values[-1] = factor + condition.dload
        with petsctools.inserted_options(self.snes):
            self._guarded(lambda: self.snes.solve(None, self._x))
        self._counts["solves"] += 1
        self._counts["newton_iterations"] += self.snes.getIterationNumber()
        self._counts["krylov_iterations"] += self.snes.getLinearSolveIterations()
        reason = self.snes.getConvergedReason()
        if self._shows_reason and (reason > 0 or not provisional):
            show_reason(self.snes)
        if reason < 0:
            raise SolveFailed(
                f"SNES stopped with {divergence(reason)} after "
                f"{self.snes.getIterationNumber()} iterations "
                f"(residual norm {self.snes.getFunctionNorm():.3g})"
            )
        if not np.isfinite(self._x.norm()):
            raise SolveFailed("SNES gave values that are not finite")
        u, self._problem.load = self._read(self._x)
        self._problem.move(u)
        return u - start

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except PETSc.Error as error:
            self.is_usable = False
            if error.__cause__ is not None:  # of a callback: Ctrl-C, say
                raise error.__cause__ from None
            raise SolveFailed(f"SNES: PETSc: {petsc_reason(error)}") from error
