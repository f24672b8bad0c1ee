"""Newton's method for equilibria in compiled code, at a given load and along a path."""

import math
from collections import Counter
from collections.abc import Mapping
from functools import cached_property

import numpy as np
import scipy.sparse as sparse
import ufl
from firedrake import Constant, Function
from ufl import replace

from fdgeom.compile.chain import Update
from fdgeom.compile.executor import Iteration
from fdgeom.compile.layout import Layout
from fdgeom.errors import SolveFailed
from fdgeom.execution import Numerics
from fdgeom.lie.groups import R3xSO3
from fdgeom.operations import ConvergenceTest, Map, Operation, Prescribed, Reason
from fdgeom.statics.problem import EquilibriumProblem, PathCondition
from fdgeom.statics.snes import watch_by
from fdgeom.statics.stability import Stability, stability_of

# Right-hand sides of the equations for an update: minus the residual with the increments of held nodes,
# the loads, given forces.
_RESIDUAL, _LOADS, _GIVEN = range(3)


class CompiledNewton:
    """The iterations of `GroupNewton`; raises `CannotCompile` with the reason if the equations are not
    those of chains.
    """

    # Of the flat PETSc options it reads the tolerances, and it counts in `counts`. An iteration is a list
    # of operations: strain and stress are extrapolated by the last update, the configuration moves by
    # it, and the equations for the next one are solved.
    def __init__(
        self, problem: EquilibriumProblem, counts: Counter[str], options: Mapping, layout: Layout
    ) -> None:
        self._problem, self._counts = problem, counts
        self._most = int(options["snes_max_it"])
        names = ("rtol", "atol", "stol", "divergence_tolerance")
        self._tolerances = [float(options[f"snes_{name}"]) for name in names]
        self._nodes = problem.comm.allreduce(problem.space.dof_dset.size)
        self._length = float(problem.length)
        sides = Constant((1.0, 0.0, 0.0), name="right-hand side")
        self._sides = sides.dat.data
        self._forces = Function(problem.space, name="forces")
        self._iteration = Iteration(
            _moves(problem),
            _equations(problem, sides, self._forces),
            live=problem.functions,
            layout=layout,
        )
        self._report = self._iteration.report

    def solve(self, condition: PathCondition | None = None) -> tuple[Reason, np.ndarray | None]:
        """Solve from the present configuration, at its load or with a condition: why the iteration ended,
        and with a condition the displacement. If it fails, nothing changes.
        """
        problem, load, moved = self._problem, self._problem.load, None
        self._begin(0.0 if condition is None else condition.small)
        if condition is None:
            reason = self._iterate()
        else:
            moved = condition.du.copy()
            self._set_update(moved)
            problem.load = load + condition.dload
            reason = self._iterate_along(condition, moved)
        self._counts["solves"] += 1
        if reason > 0:
            self._iteration.end()
        else:
            problem.load = load
        return reason, moved

    def _begin(self, small: float = 0.0) -> None:
        """Begin with the present configuration."""
        self._watch = watch_by(*self._tolerances, small)
        self._choose(_RESIDUAL)
        self._iteration.begin()

    def _choose(self, side: int) -> None:
        self._sides[:] = 0.0
        self._sides[side] = 1.0

    def _iterate(self) -> Reason:
        # Old factors take a third of the time: they suffice for another update if the tangent is near
        # them, and for the residual alone where the last update may be the last one. Updates by old
        # factors end the iteration only where the error that they leave is negligible.
        report = self._report
        near = may_end = tries = negligible = False
        step, done = 0.0, 0
        while True:
            failed = self._iteration.run(old=near or tries)
            size = self._size()
            reason = self._decide(done, size, step, report.norm)
            if reason < 0 or (reason and (may_end or not done)):
                return reason
            if tries and not near:
                failed = self._iteration.run(alone=True)
            if failed:
                return Reason(failed)
            before, step = step or size, report.step
            negligible = near and (negligible or step * step <= 1e-15 * size * before)
            may_end = not near or negligible
            near, tries = _is_near(step, before, size, near), step <= 1e-7 * size
            done += 1
            self._counts["newton_iterations"] += 1

    def _size(self) -> float:
        """The norm of the unknown, as `EquilibriumProblem.start` gives it, without multipliers."""
        return math.sqrt(3 * self._nodes + (self._report.of / self._length) ** 2)

    def _decide(self, done: int, size: float, step: float, f: float) -> Reason:
        reason = self._watch.decide(done, size, step, f)
        is_last = reason == Reason.ITERATING and done == self._most
        return Reason.TOO_MANY if is_last else reason

    # --- along a path --------------------------------------------------------------------------------
    # Block elimination computes a = -K⁻¹F and z = K⁻¹p with the factors of K, for the loads p = -∂F/∂λ,
    # then the change of the load. If K is nearly singular this loses digits, which the next iteration
    # recovers: it refines the last one (Govaerts & Pryce, Block elimination with one refinement, BIT
    # 30, 1990).
    def _iterate_along(self, condition: PathCondition, moved: np.ndarray) -> Reason:
        """Newton's iteration with the condition, which adds updates to ``moved``."""
        problem, iteration = self._problem, self._iteration
        normal, slope = condition.normal, condition.slope
        # The residual of the condition.
        left = self._dot(normal, moved) + slope * condition.dload - condition.size
        step, done = 0.0, 0
        while True:
            failed = iteration.run()
            f = math.hypot(self._report.norm, left)
            reason = self._decide(done, math.hypot(self._size(), problem.load), step, f)
            if reason:
                return reason
            a = None if failed else self._update()
            z = None if failed else self._by(_LOADS)
            if z is None:
                return Reason(failed or Reason.SINGULAR)
            along = self._dot(normal, a)
            change = -(left + along) / (slope + self._dot(normal, z))
            if not math.isfinite(change):
                return Reason.SINGULAR
            a += change * z
            moved += a
            self._set_update(a)
            problem.load += change
            left += self._dot(normal, a) + slope * change
            scaled = a / problem.lengths
            step = math.hypot(math.sqrt(self._dot(scaled, scaled)), change)
            done += 1
            self._counts["newton_iterations"] += 1

    def direction(
        self, normal: np.ndarray, slope: float
    ) -> tuple[np.ndarray, float, Stability] | None:
        """As `GroupNewton.direction`; None if K is singular."""
        problem = self._problem
        self._begin()
        z = self._by(_LOADS, anew=True)
        if z is None or not math.isfinite(self._dot(z, z)):
            return None
        dload = 1.0 / (slope + self._dot(normal, z))
        if problem.change_form is None and problem.comm.size == 1:
            stability = self._stability()
        else:
            stability = stability_of(problem, problem.tangent(problem.start()))
        return dload * z, dload, stability

    def _stability(self) -> Stability:
        """The stability by the factors of the last run, at the configuration where it has begun."""
        # The signs of the eigenvalues of all eliminated blocks are those of the whole (Sylvester,
        # Haynsworth). A condition with its multiplier adds one negative eigenvalue and a positive one.
        problem, free, size = self._problem, self._problem.free, self._problem.norms
        negative = self._report.negative - int(problem.conditions.sum())
        lumped = problem.lumped[:, None]

        def solve(x: np.ndarray) -> np.ndarray:
            forces, density = np.zeros(len(free)), self._forces.dat.data_wo
            forces[free] = size * x
            np.divide(problem.by_node(forces)[:, :6], lumped, out=density, where=lumped > 0.0)
            self._iteration.begin()
            found = self._by(_GIVEN)
            if found is None:
                raise SolveFailed("the tangent stiffness is singular")
            return size * found[free]

        return Stability(problem, self._root, solve, negative)

    @cached_property
    def _root(self) -> sparse.spmatrix:
        return sparse.diags(1 / self._problem.norms)

    def _by(self, side: int, *, anew: bool = False) -> np.ndarray | None:
        """K⁻¹ times a right-hand side by the factors of the last run, or by new ones, whose inertia the
        report gets; None if it is not finite.
        """
        self._choose(side)
        failed = self._iteration.run(old=not anew, alone=not anew, inertia=anew)
        self._choose(_RESIDUAL)
        return None if failed else self._update()

    def _update(self) -> np.ndarray:
        return self._iteration.update() * self._problem.lengths

    def _set_update(self, values: np.ndarray) -> None:
        self._iteration.set_update(values / self._problem.lengths)

    def _dot(self, a: np.ndarray, b: np.ndarray) -> float:
        return self._problem.comm.allreduce(float(a @ b))


def _is_near(step: float, before: float, size: float, old: bool) -> bool:
    """Whether the present factors suffice for another update, as in newton.hpp."""
    if old:
        return step <= 0.01 * before
    return step <= 1e-3 * size and 2.0 * (step / before) ** 4 * step <= 1e-15 * size


def _moves(problem: EquilibriumProblem) -> list[Operation]:
    """The operations that extrapolate strain and stress by the update, and move the configuration."""
    pose, update = problem.pose, problem.unknown
    increment = problem.from_lengths(update.vector)
    moved = dict(zip(pose, R3xSO3.retract(pose, increment), strict=True))
    if problem.multiplier is not None:
        moved[problem.multiplier] = problem.multiplier + problem.scale * update.multiplier
    return [*problem.extrapolation(pose, increment), Map(values=moved)]


def _equations(problem: EquilibriumProblem, sides: Constant, forces: Function) -> list[Operation]:
    """The operations that compute an update, for a choice of right-hand sides."""
    unknown, held = problem.unknown, problem.held
    update, test = unknown.function, Function(unknown.function, name="test")
    (v, trial) = problem.tangent_form.arguments()
    moved, along = problem.from_lengths(update), problem.from_lengths(test)
    work = replace(problem.tangent_form, {v: along, trial: moved})
    work += sides[_RESIDUAL] * replace(problem.residual_form, {v: along})
    if problem.is_loaded:
        work -= sides[_LOADS] * replace(problem.loads_form, {v: along})
    given = ufl.dot(forces, ufl.as_vector([along[k] for k in range(6)]))
    work -= sides[_GIVEN] * problem.rod.cells.at_nodes(given)
    found: list[Operation] = []
    prescribed = [Prescribed(e.dofs, part=e.part) for e in unknown.prescribed]
    if held is not None and held.varies:
        needed = held.assignments(problem.motion.time)[held.increment]
        (group,) = unknown.assignments(
            unknown.values,
            [sides[_RESIDUAL] * problem.to_lengths(needed)],
            unknown.no_multiplier,
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
