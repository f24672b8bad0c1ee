"""Continuation of equilibria as the loads grow, with their limits and bifurcations."""

from dataclasses import dataclass, field, replace

import numpy as np
import scipy
from firedrake import Function

from fdgeom.errors import SolveFailed
from fdgeom.statics.iterations import Iterations
from fdgeom.statics.linear_algebra import modes_of
from fdgeom.statics.problem import EquilibriumProblem, PathCondition
from fdgeom.statics.stability import Stability

# Of a part of a step: how far the path may leave its tangent, and the least cosine of its turn.
_AWAY, _TURN = 0.5, 0.5
# Of a step: the least part that is tried. Of a point: least change of the load along the path, over
# the load, for it to be beside a limit. Of a switch to a branch: the least part that is tried.
_LEAST, _FLAT, _LEAST_SWITCH = 2.0**-20, 1e-5, 1e-3


@dataclass(frozen=True)
class _Search:
    """How closely a singular point is sought, in parts of the way to it."""

    #: How closely it is found.
    close: float
    #: How close two of them count as one.
    same: float
    #: How far before and behind it the stiffness is not near singular.
    off: float
    #: The largest size of its eigenvalue, over the largest one on the way.
    zero: float
    #: As of a `PathCondition`.
    small: float


# Near a singular stiffness round-off of the residual makes updates that do not get smaller, or lead to
# the branch: then the search is less close. Columns along an axis have no such round-off.
_SEARCHES = _Search(1e-6, 1e-5, 1e-3, 1e-3, 0.0), _Search(1e-4, 1e-3, 1e-2, 1e-2, 1e-8)


@dataclass(frozen=True, eq=False)
class SingularPoint:
    """A point of a path of equilibria where the tangent stiffness is singular.

    Attributes
    ----------
    kind : {"limit", "bifurcation"}
        "limit": the load has an extremum there. "bifurcation": the load is monotonic there, and
        other paths leave in the direction of the modes.
    load : float
        The load factor.
    modes : tuple of Function, CG1, 6 components
        φ with K φ = 0: rotation in the body frame, translation in space; of length 1 in the norm of
        `StaticEquilibrium.follow`. One for each eigenvalue that changes its sign.
    position, orientation : Function
        The configuration; for an assembly that of all nodes of its network, like the modes.
    time : float
        ``beam.time`` there.
    """

    kind: str
    load: float
    modes: tuple[Function, ...] = field(repr=False)
    position: Function = field(repr=False)
    orientation: Function = field(repr=False)
    time: float = field(repr=False)
    equilibrium: tuple[Function, ...] = field(repr=False)
    direction: np.ndarray = field(repr=False)

    @property
    def multiplicity(self) -> int:
        """Number of eigenvalues of the tangent stiffness that change their sign."""
        return len(self.modes)


@dataclass(frozen=True)
class _Place:
    """A point of the path: the load, the unit direction (du, dλ) of the path, and the stability."""

    load: float
    du: np.ndarray
    slope: float
    stability: Stability


class EquilibriumPath:
    """Continuation of the equilibria of a problem by arc length."""

    def __init__(self, problem: EquilibriumProblem, iterations: Iterations) -> None:
        self._problem, self._iterations = problem, iterations
        self._start = problem.snapshot()
        # The tangent at the end of the last step, None before the first.
        self.direction: np.ndarray | None = None
        self._slope = 0.0
        # The singular points that steps have passed.
        self.points: list[SingularPoint] = []

    @property
    def at_limit(self) -> bool:
        """Whether the last step has ended where the load is at a limit."""
        return abs(self._slope) <= _FLAT * abs(self._problem.load)

    # --- steps ---------------------------------------------------------------------------------------
    def step(self, length: float, load_step: float | None = None) -> None:
        """Go along the path, in parts, at most to the next bifurcation or change of load by
        ``load_step``; ``SolveFailed`` if even a small part does not converge or leaves the path.
        """
        time = float(self._problem.motion.time)
        self._problem.set_time(time, time)
        begin, left, part = self._problem.load, abs(length), abs(length)
        here = self._here(self.direction)
        while left > _LEAST * abs(length):
            part = min(part, left)
            condition = self._arc(here, np.copysign(part, length))
            last = load_step is not None and abs(here.load + condition.dload - begin) >= load_step
            if last:
                condition = self._to_load(here, condition, begin, load_step)
            self._start.take()
            try:
                there, point, done = self._part(here, condition)
                if load_step is not None and abs(there.load - begin) > load_step * (1 + 1e-9):
                    raise SolveFailed("the load changes by more than load_step")
            except SolveFailed as failure:
                part /= 2
                self._start.restore()
                if part < _LEAST * abs(length):
                    raise SolveFailed(
                        f"{failure}, also with steps of {part:.2g}", remedy=failure.remedy
                    ) from failure
                continue
            self.direction, self._slope, here = there.du, there.slope, there
            if point is not None:
                self.points.append(point)
            if (last and done == 1.0) or (point is not None and point.kind == "bifurcation"):
                return
            left -= done * part
            part *= 2

    def leave(self, point: SingularPoint, mode: int, length: float) -> None:
        """Go to a bifurcation point and from there to the branch along one of its modes."""
        problem, weights = self._problem, self._problem.weights
        for function, source in zip(problem.functions, point.equilibrium, strict=True):
            function.assign(source)
        problem.load = point.load
        problem.set_time(point.time, point.time)
        # The branch is sought across the path that has been followed.
        across = np.zeros_like(weights)
        problem.by_node(across)[:, :6] = point.modes[mode].dat.data_ro
        across -= self._dot(across, point.direction) * point.direction
        across /= np.sqrt(self._dot(across, across))
        self._start.take()
        part = length
        while True:
            condition = PathCondition(weights * across, 0.0, part, part * across, 0.0)
            try:
                self._go(condition)
                there = self._here(np.sign(length) * across)
                break
            except SolveFailed:
                part /= 2
                self._start.restore()
                if abs(part) < _LEAST_SWITCH * abs(length):
                    raise
        self.direction, self._slope = there.du, there.slope
        if part != length:
            self.step(abs(length - part))

    # --- a part of a step ------------------------------------------------------------------------------
    def _here(self, forward: np.ndarray | None) -> _Place:
        """The present point and its direction along ``forward``, by default to higher loads."""
        weights = self._problem.weights
        normal, slope = (
            (np.zeros_like(weights), 1.0) if forward is None else (weights * forward, 0.0)
        )
        du, dload, stability = self._iterations.direction(normal, slope)
        length = np.sqrt(self._dot(du, du))
        if not (np.isfinite(length) and length > 0):
            raise SolveFailed("the loads do not move the beam: there is no path to follow")
        return _Place(self._problem.load, du / length, dload / length, stability)

    def _arc(self, here: _Place, size: float) -> PathCondition:
        """The condition of a plane normal to the path (Riks)."""
        normal = self._problem.weights * here.du
        return PathCondition(normal, 0.0, size, size * here.du, size * here.slope)

    @staticmethod
    def _to_load(here: _Place, arc: PathCondition, begin: float, load_step: float) -> PathCondition:
        """The condition of a bound of the load in that direction."""
        change = begin + np.copysign(load_step, arc.dload) - here.load
        return PathCondition(0 * arc.normal, 1.0, change, change / here.slope * here.du, change)

    def _go(self, condition: PathCondition) -> None:
        """Meet a condition, from the mark."""
        turned = self._problem.turned()
        off = self._iterations.solve(condition) - condition.du
        if self._dot(off, off) > _AWAY**2 * self._dot(condition.du, condition.du):
            raise SolveFailed(
                "Newton's method found an equilibrium far from the tangent of the path"
            )
        self._problem.check_turned(turned)

    def _part(self, here: _Place, condition: PathCondition):
        """The point at its end, the first singular point on the way, and the completed fraction."""
        self._go(condition)
        there = self._here(here.du)
        if self._dot(here.du, there.du) < _TURN:
            raise SolveFailed("the path turns by more than 60 degrees")
        if there.stability.negative == here.stability.negative:
            return there, None, 1.0
        first, last = _SEARCHES
        try:
            return self._singular(here, there, condition, first)
        except SolveFailed:
            return self._singular(here, there, replace(condition, small=last.small), last)

    def _singular(self, here: _Place, there: _Place, condition: PathCondition, search: _Search):
        """:meth:`_part` to a first singular point."""
        near, behind, load = self._bracket(here, condition, search)
        crossed = self._at(here, condition, (1 + search.same) * behind).stability.negative
        # Not past the next point.
        for off in (search.off, search.off / 8, search.off / 64):
            end = _beyond(behind, off)
            after = self._at(here, condition, end)
            if after.stability.negative == crossed:
                break
        if load is None:
            return after, None, end
        before = self._at(here, condition, (1 - search.off) * near)
        kind = "limit" if before.slope * after.slope < 0 else "bifurcation"
        at = self._at(here, condition, behind)
        point = self._point(kind, load, abs(after.stability.negative - here.stability.negative), at)
        if kind == "limit" and after.stability.negative == there.stability.negative:
            end = 1.0
        return self._at(here, condition, end), point, end

    def _at(self, here: _Place, condition: PathCondition, fraction: float) -> _Place:
        """Go to a fraction of a condition."""
        self._start.restore()
        if fraction:
            self._go(condition.part(fraction))
        return self._here(here.du)

    def _bracket(self, here: _Place, condition: PathCondition, search: _Search):
        """Fractions before and behind the first change of sign of an eigenvalue, and the load
        there; None for the load if no eigenvalue is zero there, but pivots of an unsymmetric
        stiffness alone.
        """
        seen: dict[float, tuple[float, float]] = {}

        def nearest(fraction: float) -> float:
            if fraction in seen:
                return seen[fraction][0]
            place = self._at(here, condition, fraction)
            (value, *_), _ = place.stability.nearest(1)
            value = (
                abs(value) if place.stability.negative == here.stability.negative else -abs(value)
            )
            seen[fraction] = (value, place.load)
            return value

        if nearest(1.0) > 0.0:
            raise SolveFailed("a singular point is at the end of the step")
        scipy.optimize.brentq(nearest, 0.0, 1.0, xtol=1e-12, rtol=search.close)
        behind = min(fraction for fraction, (value, _) in seen.items() if value < 0)
        near = max(fraction for fraction in seen if fraction < behind)
        (a, first), (b, second) = seen[near], seen[behind]
        if max(abs(a), abs(b)) > search.zero * max(abs(value) for value, _ in seen.values()):
            return near, behind, None
        return near, behind, first + (second - first) * a / (a - b)

    def _point(self, kind: str, load: float, crossing: int, at: _Place) -> SingularPoint:
        _, vectors = at.stability.nearest(max(1, crossing))
        problem = self._problem
        free = problem.by_node(problem.free)[:, :6].ravel()
        modes = tuple(modes_of(vectors, free, problem.space))
        equilibrium = tuple(f.copy(deepcopy=True) for f in problem.functions)
        time = float(problem.motion.time)
        return SingularPoint(kind, load, modes, *equilibrium[:2], time, equilibrium, at.du)

    def _dot(self, a: np.ndarray, b: np.ndarray) -> float:
        """a·W b."""
        return self._problem.comm.allreduce(float(self._problem.weights @ (a * b)))


def _beyond(fraction: float, off: float) -> float:
    """A little more, in few binary digits, so that results do not depend on the last ones."""
    end = (1 + off) * fraction
    unit = 2.0 ** (np.floor(np.log2(end)) + np.ceil(np.log2(off)))
    return min(1.0, float(np.ceil(end / unit) * unit))
