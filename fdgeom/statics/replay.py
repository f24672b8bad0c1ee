"""Equilibria as functions of the fields and numbers in their equations: replay and derivatives."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import ufl
from firedrake import Function
from ufl.algorithms import extract_coefficients
from ufl.classes import Form

from fdgeom.adjoint import Coefficients, Kept, Replay, keys
from fdgeom.beams.rod.variation import displaced
from fdgeom.forms import simplify
from fdgeom.interrupt import shielded
from fdgeom.lie import arrays, join, quaternion
from fdgeom.operations import Map, Operation
from fdgeom.solvers import EssentialValues, solve_operations
from fdgeom.statics.problem import EquilibriumProblem
from fdgeom.systems.motion.nodal_unknown import NodalUnknown


class TapedPoint:
    """A point that `StaticEquilibrium.follow` has reached, from which solves stay on its branch."""

    # If the path begins with another configuration, the point moves with it, node by node.
    def __init__(self, poses: Sequence[Function], carried: Sequence[Function]) -> None:
        self._poses, self._carried = poses, carried
        self._begun = _values(poses)

    def reach(self) -> None:
        """Save the present configuration, and restore that at the start of the path."""
        self._reached, self._with = _values(self._poses), _values(self._carried)
        _put(self._poses, self._begun)

    def stand(self) -> None:
        """Go from a configuration at the start of the path to the point."""
        now = _values(self._poses)
        moved = list(self._reached)
        for k in range(0, len(now), 2):
            if not np.array_equal(now[k], self._begun[k]):
                moved[k] = self._reached[k] + (now[k] - self._begun[k])
            if not np.array_equal(now[k + 1], self._begun[k + 1]):
                begun = arrays.quaternion.conjugate(self._begun[k + 1])
                turn = arrays.quaternion.product(now[k + 1], begun)
                turned = arrays.quaternion.product(turn, self._reached[k + 1])
                moved[k + 1] = arrays.quaternion.normalize(turned)
        _put(self._poses, moved)
        _put(self._carried, self._with)


def _values(functions: Sequence[Function]) -> list[np.ndarray]:
    return [np.array(f.dat.data_ro_with_halos) for f in functions]


def _put(functions: Sequence[Function], values: Sequence[np.ndarray]) -> None:
    for f, array in zip(functions, values, strict=True):
        f.dat.data_wo_with_halos[...] = array


@dataclass(frozen=True)
class Course:
    """The load, time and number of steps that lead to an equilibrium."""

    load: float
    steps: int
    #: At the end.
    time: float
    #: How often a step may be halved.
    halvings: int
    #: Where it begins, if not at the present configuration.
    point: TapedPoint | None = None


@dataclass
class Departure:
    """The initial state of a solve for an equilibrium, beside Functions, and its result."""

    load: float
    time: float
    constants: list[np.ndarray]
    #: Multipliers that the iteration begins with.
    carried: Kept
    found: Kept | None = None


class EquilibriumReplay(Replay):
    """The equilibrium g of F(g, c) = 0 at a load factor, as a function of c, with its derivative at
    a small displacement w from it, F(g ∘ w, c) = 0 at w = 0:

        ∂F/∂w δw = -∂F/∂c δc,     δg = g δw,

    where δw at held nodes is that of the initial configuration.
    """

    # `go(course)` solves for an equilibrium. NotImplementedError if a given pose contains
    # Functions.
    name = "StaticEquilibrium"

    def __init__(self, problem: EquilibriumProblem, go: Callable[[Course], None]) -> None:
        self._problem, self._go = problem, go
        motion = self._motion = problem.motion
        _refuse_moved(motion)
        self._unknown = unknown = NodalUnknown(motion, "variation")
        self._carried = () if problem.multiplier is None else (problem.multiplier,)
        poses = [f for beam in motion.members for f in (beam.position, beam.orientation)]
        # A copy of the equilibrium, which counts as given in its equations.
        self._there = tuple(Function(f.function_space()) for f in motion.configuration)
        self._residual = simplify(self._form())
        own = [*motion.configuration, *self._there, *self._carried, unknown.function]
        symbols = [*motion.clocks, problem.factor]
        super().__init__(poses, Coefficients([], keys([*poses, *own]), symbols, [self._residual]))
        self._operations = self._made_operations()

    def _form(self) -> Form:
        """F at a small displacement from the equilibrium, with the conditions of joints."""
        problem, motion, unknown = self._problem, self._motion, self._unknown
        g = displaced(self._there, unknown.vector)
        form = problem.rod.internal_work(g, unknown.test)
        form -= problem.rod.external_work(g, unknown.test, factor=problem.factor)
        if motion.joints is not None:
            forces = problem.multiplier + unknown.multiplier
            form += motion.joints.slope(forces, unknown.test, g)
            form += motion.spring_work(g, ufl.zero(6), unknown.test)
            form += motion.joints.value(unknown.nu, g)
        return form

    def _made_operations(self) -> list[Operation]:
        """From the poses of the beams at the start to those at the equilibrium, for derivatives."""
        motion, unknown = self._motion, self._unknown
        given, essential = self._given_values()
        (x, q), (x0, q0) = motion.configuration, self._there
        turn = quaternion.product(quaternion.conjugate(q0), q)
        relative = join(2 * ufl.as_vector([turn[k] for k in (1, 2, 3)]), x - x0)
        none = None if unknown.multiplier is None else 0 * unknown.multiplier
        (group,) = unknown.assignments(given, [relative], none)
        # The unknown is zero at the equilibrium, and so is what the poses there give.
        solve = solve_operations(self._residual, unknown.function, essential, lambda: None)
        moved = dict(zip(motion.configuration, displaced(self._there, unknown.vector), strict=True))
        read, write = motion.pose_copies()
        return [*read, Map(values=group), *solve, Map(values=moved), *write]

    def _given_values(self) -> tuple[Function, list[EssentialValues]]:
        """The increments of held nodes: zero, except for given poses."""
        motion, unknown = self._motion, self._unknown
        space = unknown.function.function_space()
        given, zero = Function(space, name="given"), Function(space, name="zero")
        if motion.held is None:
            return given, list(unknown.essential)
        (held,) = motion.held.dofs
        ours, *others = unknown.essential
        moves = motion.held.moved.dat.data_ro_with_halos.reshape(-1)[held] > 0.5
        found = [
            EssentialValues(0, ours.dofs[which], old=zero, target=target)
            for target, which in ((given, ~moves), (None, moves))
        ]
        return given, [*found, *others]

    def title(self, course: Course) -> str:
        """Description of the solve."""
        return f"the equilibrium of StaticEquilibrium at load {course.load:g}"

    def point(self) -> TapedPoint:
        """The present configuration as the beginning of a path."""
        return TapedPoint(self.views, self._carried)

    # --- where it begins -------------------------------------------------------------------------
    def origin(self, touched: Sequence = ()) -> Departure:
        """The present inputs as a departure."""
        self._standing = Departure(
            self._problem.load,
            float(self._motion.time),
            self.constants(),
            Kept(self._carried),
        )
        return self._standing

    @contextmanager
    def at(self, origin: Departure, inputs: Sequence[Function], *left) -> Iterator[None]:
        """Context with all inputs at a departure, restored afterwards."""
        here = self.origin()
        try:
            with self.holding(inputs, self._motion.configuration):
                self._set(origin)
                self.renew(inputs)
                self._standing = origin
                yield
        finally:
            with shielded():
                self._set(here)

    def _set(self, origin: Departure) -> None:
        self.set_constants(origin.constants)
        origin.carried.restore()
        self._problem.load = origin.load
        self._motion.set_time(origin.time)

    # --- the run ---------------------------------------------------------------------------------
    def run(self, course: Course) -> None:
        """Go to an equilibrium from the present inputs."""
        self._go(course)
        self._coefficients.refresh()
        self._standing.found = Kept(self._problem.functions)

    def _lists(self, origin, steps, reached):
        self._stand(origin, steps)
        return self._list(self._operations, reached), None, None

    def _stand(self, origin: Departure, course: Course) -> None:
        """Restore the equilibrium that was found."""
        if origin.found is None:
            self.run(course)
        origin.found.restore()
        self._problem.load = course.load
        self._motion.set_time(course.time)
        for copy, f in zip(self._there, self._motion.configuration, strict=True):
            copy.assign(f)


def _refuse_moved(motion) -> None:
    held = () if motion.held is None else motion.held.expressions()
    if any(extract_coefficients(e) for e in held):
        raise NotImplementedError(
            "gradients through StaticEquilibrium.solve() by a GivenPose that is made of Functions are "
            "not available: clamp the end, and set its position and orientation before solve(), which "
            "keeps them; or call it inside 'with firedrake.adjoint.stop_annotating():' (its result "
            "then counts as given data)"
        )
