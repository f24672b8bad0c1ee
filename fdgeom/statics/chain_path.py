"""Bordered Newton's method for equilibria with an unknown load, in compiled code."""

from collections.abc import Callable

import numpy as np
import scipy

from fdgeom.solvers import Fallbacks, SolveFailed
from fdgeom.solvers.chain import REASONS, SINGULAR, Vectors
from fdgeom.statics.chain_solve import ChainSolve
from fdgeom.statics.linear_algebra import nearest
from fdgeom.statics.newton import GroupNewton
from fdgeom.statics.problem import EquilibriumProblem
from fdgeom.statics.stability import Stability, Tangent, oriented

# Between the pieces more unknowns are left to sparse factors.
_DENSE = 600


class ChainPath:
    """The bordered iteration of `GroupNewton`, as a compiled chain."""

    # `chain` has the compiled equations; `through_petsc()` gives a bordered `GroupNewton` for
    # tangents that are singular without exchanges of rows, which `fallbacks` counts.
    krylov_iterations = 0

    def __init__(
        self,
        problem: EquilibriumProblem,
        chain: ChainSolve,
        through_petsc: Callable[[], GroupNewton],
        fallbacks: Fallbacks,
    ) -> None:
        self._problem, self._through_petsc = problem, through_petsc
        self._fallbacks = fallbacks
        self._unit, self._test = chain.unit, chain.test
        self._vectors = Vectors(self._unit)
        self._stability: Callable[[], Stability] = self._of_matrix
        self.solves = self.newton_iterations = 0

    def solve(
        self, du: np.ndarray, dload: float, *, normal: np.ndarray, slope: float, step: float
    ) -> np.ndarray:
        """As `GroupNewton.solve`, from the present configuration and a first guess."""
        problem, unit = self._problem, self._unit
        before, load = problem.values(), problem.load
        self._begin()
        self._vectors.put_right_hand_side(du)
        self._vectors.put_normal(normal)
        reason, iterations = unit.bordered(self._test, problem.factor, dload, slope, step)
        reached = problem.load
        self.solves += 1
        self.newton_iterations += iterations
        if reason in REASONS:
            problem.load = load
            if reason == SINGULAR:
                with self._fallbacks.through_petsc(REASONS[reason]):
                    return self._through_petsc().solve(
                        du, dload, normal=normal, slope=slope, step=step
                    )
            raise SolveFailed(f"Newton's method ended with {REASONS[reason]}")
        # Firedrake shall know of it.
        problem.load = reached
        unit.end()
        return problem.unknown.function.dat.data_ro.ravel() - before

    def tangent_of_path(self, normal: np.ndarray, slope: float) -> tuple[np.ndarray, float]:
        """As `GroupNewton.tangent_of_path`: (du, dλ) along it, with normal·du + slope dλ = 1."""
        problem, unit = self._problem, self._unit
        self._begin()
        found = None
        if unit.stand():
            pivots, between = unit.inertia()
            if unit.solve_slope():
                found = np.zeros_like(problem.weights)
                self._vectors.get_solution(found)
        if found is None or not np.all(np.isfinite(found)):
            with self._fallbacks.through_petsc(f"{REASONS[SINGULAR]} on the path"):
                petsc = self._through_petsc()
                self._stability = petsc.stability
                return petsc.tangent_of_path(normal, slope)
        dload = 1.0 / (slope - normal @ found)
        if not problem.loads_turn and len(between) <= _DENSE:
            negative = pivots + negative_eigenvalues(between) - int(problem.conditions.sum())
            self._stability = lambda: ChainStability(problem, self._solve, negative)
        else:
            self._stability = self._of_matrix
        return -dload * found, dload

    def stability(self) -> Stability:
        """Stability at the point whose direction was computed last."""
        return self._stability()

    def _of_matrix(self) -> Tangent:
        return Tangent(self._problem, self._problem.tangent(self._problem.start()))

    def _solve(self, b: np.ndarray) -> np.ndarray:
        """(tangent)⁻¹ b, after :meth:`tangent_of_path`."""
        self._vectors.put_right_hand_side(b)
        self._unit.apply()
        found = np.zeros_like(b)
        self._vectors.get_solution(found)
        return found

    def _begin(self) -> None:
        self._unit.begin()
        self._unit.hold()


class ChainStability:
    """The stability of a symmetric stiffness, as `Tangent`, by the factors of a chain."""

    # The factors of the segments are computed without exchanges of rows, so the signs of their
    # pivots and of the eigenvalues of the interface matrix are those of the whole (Sylvester,
    # Haynsworth). A condition with its multiplier adds one negative eigenvalue and a positive one.
    symmetric = True

    def __init__(
        self,
        problem: EquilibriumProblem,
        solve: Callable[[np.ndarray], np.ndarray],
        negative: int,
    ) -> None:
        self._free, self._solve, self.negative = problem.free, solve, negative
        self._weights = problem.weights

    def nearest(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The eigenvalues nearest to zero, and their vectors φ (all free), φ·W φ = 1."""
        root = np.sqrt(self._weights[self._free])

        def inverse(x: np.ndarray) -> np.ndarray:
            b = np.zeros(len(self._weights))
            b[self._free] = root * x
            return root * self._solve(b)[self._free]

        values, vectors = nearest(inverse, len(root), number, 0.0)
        return values, oriented(vectors / root[:, None], root)


def negative_eigenvalues(matrix: np.ndarray) -> int:
    """Number of negative eigenvalues of a symmetric matrix, by L D Lᵀ (Bunch & Kaufman, 1977)."""
    if not len(matrix):
        return 0
    size = np.sqrt(np.abs(matrix).max(axis=1))
    factors, pivots, _ = scipy.linalg.lapack.dsytrf((matrix + matrix.T) / 2 / size / size[:, None])
    # Blocks of two, the sign of whose numbers is negative, have an eigenvalue of each sign.
    single = pivots > 0
    return int((factors.diagonal()[single] < 0).sum()) + int((~single).sum()) // 2
