"""Newton's method for equilibria in compiled code, at a given load and along a path."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import ufl
from firedrake import Constant, Function
from ufl import replace

from fdgeom.compile.chain import Update
from fdgeom.compile.layout import Layout
from fdgeom.compile.newton import WORDS, Iteration
from fdgeom.errors import SolveFailed
from fdgeom.execution import Numerics
from fdgeom.execution.compiled_or_petsc import Fallbacks
from fdgeom.lie.groups import R3xSO3
from fdgeom.operations import ConvergenceTest, Map, Operation, Prescribed, Reason
from fdgeom.statics.newton import GroupNewton
from fdgeom.statics.problem import EquilibriumProblem
from fdgeom.statics.stability import CompiledStability, Tangent

# Right-hand sides of the equations for an update: minus the residual with the increments of held nodes,
# the loads, given forces.
_RESIDUAL, _LOADS, _GIVEN = range(3)


class CompiledNewton:
    """The iteration of `GroupNewton` at a given load; raises `CannotCompile` with the reason if the
    equations are not those of chains.
    """

    # Of the flat PETSc options it reads the tolerances. `was_singular` says whether the last solve met
    # a singular matrix. An iteration is a list of operations: strain and stress are extrapolated by
    # the last update, the configuration moves by it, and the equations for the next one are solved.
    krylov_iterations = 0

    def __init__(self, problem: EquilibriumProblem, options: Mapping, layout: Layout) -> None:
        self._problem = problem
        self.solves = self.newton_iterations = 0
        self.was_singular = False
        self._most = int(options["snes_max_it"])
        names = ("rtol", "atol", "stol", "divergence_tolerance")
        self._tolerances = [float(options[f"snes_{name}"]) for name in names]
        self._nodes = problem.comm.allreduce(problem.space.dof_dset.size)
        sides = Constant((1.0, 0.0, 0.0), name="right-hand side")
        self._sides = sides.dat.data
        self._forces = Function(problem.space, name="forces")
        self.iteration = Iteration(
            _moves(problem),
            _equations(problem, sides, self._forces),
            live=problem.functions,
            layout=layout,
        )
        self.report = self.iteration.report

    def solve(self) -> str | None:
        """Solve from the present configuration; returns why it failed, and then changes nothing."""
        self.begin()
        reason = self._iterate()
        self.solves += 1
        self.was_singular = reason == Reason.SINGULAR
        if reason < 0:
            return WORDS[reason]
        self.iteration.end()
        return None

    def begin(self) -> None:
        """Begin with the present configuration."""
        self._choose(_RESIDUAL)
        self.iteration.begin()

    def _choose(self, side: int) -> None:
        self._sides[:] = 0.0
        self._sides[side] = 1.0

    def _iterate(self) -> Reason:
        # Old factors take a third of the time: they suffice for another update if the tangent is near
        # them, and for the residual alone where the last update may be the last one. Updates by old
        # factors end the iteration only where the error that they leave is negligible.
        report = self.report
        near = may_end = tries = negligible = False
        step, first, done = 0.0, math.inf, 0
        while True:
            failed = self.iteration.run(old=near or tries)
            size = self.size()
            first = first if done else report.norm
            reason = self.decide(done, report.norm, first, step, size)
            if reason < 0 or (reason and (may_end or not done)):
                return reason
            if tries and not near:
                failed = self.iteration.run(alone=True)
            if failed:
                return Reason(failed)
            before, step = step or size, report.step
            negligible = near and (negligible or step * step <= 1e-15 * size * before)
            may_end = not near or negligible
            near, tries = _is_near(step, before, size, near), step <= 1e-7 * size
            done += 1
            self.newton_iterations += 1

    def size(self) -> float:
        """The norm of the unknown, as `EquilibriumProblem.start` gives it, without multipliers."""
        return math.sqrt(3 * self._nodes + self.report.of**2)

    def decide(self, done: int, f: float, first: float, step: float, size: float) -> Reason:
        """The decision of PETSc's convergence test by the norms of residual, update and unknown."""
        rtol, atol, stol, grown = self._tolerances
        if not (math.isfinite(f) and math.isfinite(step)):
            return Reason.NOT_FINITE
        if f <= atol:
            return Reason.ABSOLUTE
        if done == 0:
            return Reason.ITERATING
        if f <= rtol * first:
            return Reason.RELATIVE
        if step < stol * size:
            return Reason.UPDATE
        if grown > 0.0 and f > grown * first:
            return Reason.GROWN
        return Reason.TOO_MANY if done == self._most else Reason.ITERATING

    # --- other right-hand sides --------------------------------------------------------------------
    def by_loads(self) -> np.ndarray | None:
        """K⁻¹p for the loads p = -∂F/∂λ by the factors of the last run; None if it is not finite."""
        return self._by(_LOADS)

    def by_forces(self, b: np.ndarray) -> np.ndarray | None:
        """K⁻¹b by the factors of the last run, at the configuration where it has begun."""
        lumped = self._problem.lumped[:, None]
        density = self._forces.dat.data_wo
        np.divide(self._problem.by_node(b)[:, :6], lumped, out=density, where=lumped > 0.0)
        self.iteration.begin()
        return self._by(_GIVEN)

    def _by(self, side: int) -> np.ndarray | None:
        self._choose(side)
        failed = self.iteration.run(old=True, alone=True)
        self._choose(_RESIDUAL)
        return None if failed else self.iteration.update()

    def stand(self) -> np.ndarray | None:
        """K⁻¹p at the present configuration; None if K is singular. The report gets its inertia."""
        self.begin()
        self._choose(_LOADS)
        failed = self.iteration.run(inertia=True)
        self._choose(_RESIDUAL)
        return None if failed else self.iteration.update()


def _is_near(step: float, before: float, size: float, old: bool) -> bool:
    """Whether the present factors suffice for another update, as in newton.hpp."""
    if old:
        return step <= 0.01 * before
    return step <= 1e-3 * size and 2.0 * (step / before) ** 4 * step <= 1e-15 * size


def _moves(problem: EquilibriumProblem) -> list[Operation]:
    """The operations that extrapolate strain and stress by the update, and move the configuration."""
    pose, update = problem.pose, problem.unknown
    moved = dict(zip(pose, R3xSO3.retract(pose, update.vector), strict=True))
    if problem.multiplier is not None:
        moved[problem.multiplier] = problem.multiplier + problem.scale * update.multiplier
    return [*problem.extrapolation(pose, update.vector), Map(values=moved)]


def _equations(problem: EquilibriumProblem, sides: Constant, forces: Function) -> list[Operation]:
    """The operations that compute an update, for a choice of right-hand sides."""
    unknown, held = problem.unknown, problem.held
    update, test = unknown.function, Function(unknown.function, name="test")
    (v, trial) = problem.tangent_form.arguments()
    along = unknown.cut(test)[0] if problem.multiplier is not None else test
    work = replace(problem.tangent_form, {v: test, trial: update})
    work += sides[_RESIDUAL] * replace(problem.residual_form, {v: test})
    if problem.is_loaded:
        work -= sides[_LOADS] * replace(problem.loads_form, {v: test})
    work -= sides[_GIVEN] * problem.rod.cells.at_nodes(ufl.dot(forces, along))
    found: list[Operation] = []
    prescribed = [Prescribed(e.dofs, part=e.part) for e in unknown.essential]
    if held is not None and held.varies:
        needed = held.assignments(problem.motion.time)[held.increment]
        (group,) = unknown.assignments(
            unknown.values, [sides[_RESIDUAL] * needed], unknown.no_multiplier
        )
        found.append(Map(values=group))
        prescribed = unknown.prescribed
    numerics = Numerics({}, ConvergenceTest(of=problem.pose[0]))
    return [
        *found,
        Update(
            work=work,
            unknown=update,
            test=test,
            prescribed=prescribed,
            numerics=numerics,
            name="the equilibrium",
        ),
    ]


class CompiledPath:
    """The iteration of `GroupNewton` with an unknown load and a condition, in compiled code.

    Block elimination computes a = -K⁻¹F and z = K⁻¹p with the factors of K, then the change of the
    load. If K is nearly singular this loses digits, which the next iteration recovers: it refines the
    last one (Govaerts & Pryce, Block elimination with one refinement, BIT 30, 1990).
    """

    # `through_petsc()` gives a bordered `GroupNewton` for tangents that are singular without exchanges
    # of rows, which `fallbacks` counts.
    krylov_iterations = 0

    def __init__(
        self,
        problem: EquilibriumProblem,
        newton: CompiledNewton,
        through_petsc: Callable[[], GroupNewton],
        fallbacks: Fallbacks,
    ) -> None:
        self._problem, self._newton, self._through_petsc = problem, newton, through_petsc
        self._fallbacks = fallbacks
        self._stability: Callable[[], Tangent | CompiledStability] = self._of_matrix
        self.solves = self.newton_iterations = 0

    def solve(
        self, du: np.ndarray, dload: float, *, normal: np.ndarray, slope: float, step: float
    ) -> np.ndarray:
        """As `GroupNewton.solve`, from the present configuration and a first guess."""
        problem, newton = self._problem, self._newton
        load, moved = problem.load, du.copy()
        newton.begin()
        newton.iteration.set_update(du)
        problem.load = load + dload
        left = self._dot(normal, du) + slope * dload - step
        reason = self._iterate(moved, left, normal, slope)
        self.solves += 1
        if reason > 0:
            newton.iteration.end()
            return moved
        problem.load = load
        if reason == Reason.SINGULAR:
            with self._fallbacks.through_petsc(WORDS[reason]):
                return self._through_petsc().solve(du, dload, normal=normal, slope=slope, step=step)
        raise SolveFailed(f"Newton's method ended with {WORDS[reason]}")

    def _iterate(self, moved: np.ndarray, left: float, normal: np.ndarray, slope: float) -> Reason:
        """Newton's iteration, which adds updates to ``moved``; ``left``: residual of the condition."""
        problem, newton = self._problem, self._newton
        first, step, done = math.inf, 0.0, 0
        while True:
            failed = newton.iteration.run()
            f, size = (
                math.hypot(*pair)
                for pair in ((newton.report.norm, left), (newton.size(), problem.load))
            )
            first = first if done else f
            reason = newton.decide(done, f, first, step, size)
            if reason:
                return reason
            a = None if failed else newton.iteration.update()
            z = None if failed else newton.by_loads()
            if z is None:
                return Reason(failed or Reason.SINGULAR)
            along = self._dot(normal, a)
            change = -(left + along) / (slope + self._dot(normal, z))
            if not math.isfinite(change):
                return Reason.SINGULAR
            a += change * z
            moved += a
            newton.iteration.set_update(a)
            problem.load += change
            left += self._dot(normal, a) + slope * change
            step = math.hypot(math.sqrt(self._dot(a, a)), change)
            done += 1
            self.newton_iterations += 1

    def _dot(self, a: np.ndarray, b: np.ndarray) -> float:
        return self._problem.comm.allreduce(float(a @ b))

    def tangent_of_path(self, normal: np.ndarray, slope: float) -> tuple[np.ndarray, float]:
        """As `GroupNewton.tangent_of_path`: (du, dλ) along it, with normal·du + slope dλ = 1."""
        problem, newton = self._problem, self._newton
        z = newton.stand()
        if z is None or not math.isfinite(self._dot(z, z)):
            with self._fallbacks.through_petsc(f"{WORDS[Reason.SINGULAR]} on the path"):
                petsc = self._through_petsc()
                self._stability = petsc.stability
                return petsc.tangent_of_path(normal, slope)
        dload = 1.0 / (slope + self._dot(normal, z))
        self._stability = self._of_matrix
        if problem.change_form is None and problem.comm.size == 1:
            # A condition with its multiplier adds one negative eigenvalue and a positive one.
            negative = newton.report.negative - int(problem.conditions.sum())
            self._stability = lambda: CompiledStability(problem, newton, negative)
        return dload * z, dload

    def stability(self) -> Tangent | CompiledStability:
        """Stability at the point whose direction was computed last."""
        return self._stability()

    def _of_matrix(self) -> Tangent:
        return Tangent(self._problem, self._problem.tangent(self._problem.start()))
