"""Newton's method for equilibria in compiled code, for beams that form chains."""

from collections.abc import Mapping

import ufl
from firedrake import Function
from ufl import replace

from fdgeom.forms import flatten
from fdgeom.lie.groups import R3xSO3
from fdgeom.solvers import GivenValues
from fdgeom.solvers.chain import REASONS, SINGULAR, ChainUnit, Step, Test, check_chain
from fdgeom.statics.problem import EquilibriumProblem


class ChainSolve:
    """The iteration of `GroupNewton` at a given load, as a compiled chain; raises `CannotCompile`
    with the reason if the equations are not those of chains.
    """

    # Of the flat PETSc options it reads the tolerances. `unit` has the compiled equations, with the
    # load as the number that a border can find, `test` is the test of convergence, `was_singular`
    # says whether the last solve met a singular matrix.
    krylov_iterations = 0

    def __init__(self, problem: EquilibriumProblem, options: Mapping) -> None:
        check_chain(problem.unknown.function)
        self.solves = self.newton_iterations = 0
        self.was_singular = False
        self.test = Test(
            kind=0,
            max_it=int(options["snes_max_it"]),
            rtol=float(options["snes_rtol"]),
            atol=float(options["snes_atol"]),
            stol=float(options["snes_stol"]),
            positions=-1,
            grown=float(options["snes_divergence_tolerance"]),
        )
        x = problem.unknown.function
        (trial,) = (a for a in problem.tangent_form.arguments() if a.number() == 1)
        change = Function(x, name="change")
        start, moved = _at_nodes(problem, x, change)
        strain = problem.new_strain(problem.unknown.cut(change)[0])
        stress = problem.rod.law.stress(strain, problem.rod.stiffness)
        maps: list[dict] = [start, moved, {problem.strain: strain, problem.stress: stress}]
        held, given = problem.held, ()
        if held is not None and held.varies:
            needed = held.assignments(problem.motion.time)
            maps.append({held.increment: needed[held.increment]})
            given = (3,)
        self.unit = ChainUnit(
            problem.residual_form,
            x,
            tangent=replace(problem.tangent_form, {trial: x}),
            essential=[GivenValues(0, problem.rows)],
            maps=maps,
            step=Step(given=given, before=(0, 2), after=(), moved=(1, 2), relative=True),
            private=[f for f in (*start, *maps[2]) if f is not x],
            following=held.increment if given else None,
            change=change,
            border=problem.factor,
        )

    def solve(self) -> str | None:
        """Solve from the present configuration; a failure raises and changes nothing."""
        unit = self.unit
        unit.begin()
        unit.hold()
        reason, done, iterations = unit.advance(self.test, 1)
        self.was_singular = reason == SINGULAR
        self.solves += 1
        self.newton_iterations += iterations
        if not done:
            return REASONS[reason]
        unit.end()
        return None


def _at_nodes(problem: EquilibriumProblem, x: Function, change: Function) -> tuple[dict, dict]:
    """Assignments at the nodes at the start of an iteration, and after a change of x."""
    pose, multiplier = problem.pose, problem.multiplier
    scaled = [] if multiplier is None else [multiplier / problem.scale]
    first = flatten([ufl.as_vector([1.0] * 3), pose[0], *scaled])
    reference = dict(zip(problem.reference, pose, strict=True))
    start = {x: first, change: ufl.zero(len(first)), **reference}
    by = problem.unknown.cut(change)[0]
    moved = {**reference, **dict(zip(pose, R3xSO3.retract(pose, by), strict=True))}
    if multiplier is not None:
        moved[multiplier] = problem.scale * problem.unknown.multiplier
    return start, moved
