"""Whole steps in compiled code, where the one solve of a method couples neighbours on a chain."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace as with_changes

import numpy as np
from firedrake import Constant, Function, VectorFunctionSpace
from ufl.algorithms import extract_coefficients, replace
from ufl.classes import Expr

from fdgeom.operations import ConvergenceTest
from fdgeom.solvers import Number, SolveFailed, key
from fdgeom.solvers.chain import (
    REASONS,
    TOO_FAR,
    ChainBack,
    ChainSweep,
    ChainTrail,
    ChainUnit,
    Step,
    Test,
    TurnCheck,
    check_chain,
    parts_of,
)
from fdgeom.solvers.compiled import CannotCompile, pieces
from fdgeom.solvers.derived import all_constants, constants_behind
from fdgeom.solvers.essential import GivenValues
from fdgeom.steppers.compiled.compiled_steps import CompiledSteps
from fdgeom.steppers.compiled.solves_of import SolveOf, solves_of

# So many steps at the most go by before Ctrl-C is heard.
_CHUNK = 64


class ChainSteps(CompiledSteps):
    """The steps of a stepper of one solve, as a compiled chain; raises `CannotCompile` with the
    reason if the solve is not that of a chain.
    """

    # A step whose Newton iteration fails is repeated through PETSc SNES, which decides whether the
    # step fails, and why; the stepper's `fallbacks` counts such steps.
    def __init__(self, stepper) -> None:
        super().__init__()
        sequence = solves_of(stepper.step_flows, stepper.system.turns)
        if len(sequence) != 1:
            raise CannotCompile("the step is made of several solves")
        self._stepper = stepper
        ((self._solve, self._fraction),) = sequence
        self._share = self._solve.share
        self._check(stepper.system.clocks)
        self._given = [e for e in self._solve.essential if isinstance(e, GivenValues)]
        self._maps, self._step = _step(self._solve)
        self._dt: Number = Number(self._solve.dt)
        self._unit: ChainUnit | None = None
        self._trail: ChainTrail | None = None
        self._solves = self._iterations = 0

    def _check(self, clocks: Sequence[Constant]) -> None:
        solve = self._solve
        check_chain(solve.unknown, shared=True)
        why = solve.uncompilable
        if any(e.target is not None for e in solve.essential):
            why = why or "a motion is prescribed as a function of time"
        if solve.is_run and solve.attempt is None:
            why = why or "it is solved in a way of its own"
        if why:
            raise CannotCompile(f"{solve.name}: {why}")
        things = [
            solve.residual,
            *_expressions(solve.preparations),
            *_expressions(solve.assignments),
            *_expressions(_following(solve)),
        ]
        known = {id(c) for c in all_constants(*things)}
        read = [c for c in clocks if id(c) in known]
        behind = {id(c) for c in constants_behind(*things)}
        # Coefficients that follow the time are made anew for every step, in Python.
        self._singly = len(read) > 1 or any(id(c) in behind for c in read)
        self._clock = read[0] if read and not self._singly else None
        if self._share is None and (self._singly or read):
            raise CannotCompile(f"{solve.name}: a coefficient is a function of the time")

    @property
    def is_ready(self) -> bool:
        return self._unit is not None

    def make_ready(self) -> None:
        solve = self._solve
        live = {p for f in self._stepper._moving() for p in pieces(f)}
        made = {f for group in solve.preparations for f in group}
        following, private = solve.following, [f for f in made if f not in live]
        if solve.turns is not None:
            turns, new = solve.turns, _at_once(solve.assignments)
            mesh = turns.orientation.function_space().mesh()
            cosines = Function(VectorFunctionSpace(mesh, "DG", 0, dim=2), name="cosines of turns")
            check = TurnCheck(turns.orientation, new[turns.orientation], cosines, turns.soft)
            self._step = with_changes(self._step, turns=check)
            private.append(cosines)
        self._unit = ChainUnit(
            solve.residual,
            solve.unknown,
            essential=solve.essential,
            maps=self._maps,
            step=self._step,
            private=private,
            following=None if following is None else following.values,
        )
        self._test = self._make_test()

    def _make_test(self) -> Test:
        numerics = self._solve.numerics()
        options = self._solve.options.over(numerics.options)[0]
        linear = str(options.get("snes_type")) == "ksponly"
        test = Test(
            kind=2 if linear else 0,
            max_it=int(options.get("snes_max_it", 50)),
            rtol=float(options.get("snes_rtol", 1e-8)),
            atol=float(options.get("snes_atol", 1e-50)),
            stol=float(options.get("snes_stol", 1e-8)),
            positions=-1,
            contracting=0,
        )
        ends = numerics.converged
        if ends is not None and not linear:
            if not isinstance(ends, ConvergenceTest):
                raise CannotCompile(f"{self._solve.name}: a test of convergence of its own")
            test.kind = 1
            test.unnoticed, test.small, test.left = ends.unnoticed, ends.small, ends.left
            test.last = -1.0 if ends.last is None else ends.last
            test.circles = ends.notices_circles
            if ends.of is not None:
                test.positions = self._unit.number(ends.of)
        return test

    def advance(self, steps: int, dt: float) -> tuple[int, SolveFailed | None]:
        unit, test, steps = self._unit, self._test, min(steps, _CHUNK)
        self._dt.set(self._fraction * dt)
        if self._singly:
            steps = 1
            self._stepper.system.set_time(self._stepper.t + self._share * dt)
        if self._solve.essential and self._solve.following is None:
            self._solve.put_given()
            # Values given by hand since are reached in one step.
            steps = 1 if any(np.any(e.values()) for e in self._given) else steps
        unit.begin()
        unit.take_unknown()
        done, trail, why = 0, self._trail, "given values that a step changes"
        if trail is not None:
            trail.begin(test, dt, self._clock)
        if unit.hold():
            times = self._times(steps, dt)
            if trail is None:
                reason, done, iterations = unit.advance(test, steps, times, self._clock)
            else:
                reason, done, iterations = trail.advance(steps, times)
            why = REASONS.get(reason, f"code {reason}")
            self._solves += done
            self._iterations += iterations
            unit.end()
            if reason == TOO_FAR and not done:
                # Its equations are solved: another iteration would find the same.
                cosines = self._step.turns.cosines
                unit.give(cosines)
                self._solve.turns.refuse(*_in_cells(cosines).T)
        if not done:
            with self._stepper._fallbacks.through_petsc(why, self._solve.remedy()):
                self._step_through_petsc(dt)
            done = 1
        return done, None

    def _times(self, steps: int, dt: float) -> np.ndarray | None:
        """The times at which the solves of the coming steps are evaluated."""
        if self._clock is None:
            return None
        return self._stepper.t + np.arange(steps) * dt + self._share * dt

    def _step_through_petsc(self, dt: float) -> None:
        begin, trail, unit = self._stepper.t, self._trail, self._unit
        if trail is not None:
            trail.before()
        self._stepper._step(begin, dt)
        if trail is not None:
            unit.begin()
            unit.take_unknown()
            trail.after_another(begin + (self._share or 0.0) * dt)

    def sweep(self, seeded, wanted, running=None, *, tangents=False):
        if tangents:
            raise CannotCompile("tangents of steps of this kind")
        if running is not None:
            raise CannotCompile("a running functional of steps that are solved as a chain")
        if self._singly:
            raise CannotCompile("coefficients that follow the time")
        if any(key(part.function) in seeded for part in self._unit.parts):
            raise CannotCompile("a cotangent of the unknown of a step")
        name = frozenset(wanted)
        return self._kept_sweep(name, None, lambda: self._sweep(name))

    def _sweep(self, wanted: frozenset[int]) -> ChainSweep:
        solve, moving = self._solve, {key(f) for f in self._stepper._moving() for f in pieces(f)}
        given, chosen, _ = _following(solve) or ({}, {}, {})
        assignments, prepared = _at_once(solve.assignments), _at_once(solve.preparations)
        read = {f for e in assignments.values() for f in extract_coefficients(e)}
        read |= set(solve.residual.coefficients())
        # The guess is forgotten.
        prepared = {f: e for f, e in prepared.items() if f in read}
        back = ChainBack(
            solve.residual,
            solve.unknown,
            solve.essential,
            assignments,
            wanted | moving,
            prepared,
            given,
            chosen,
        )
        return ChainSweep(self._unit, back, self._dt, self._fraction)

    @contextmanager
    def leaving(self, trail: ChainTrail) -> Iterator[None]:
        self._trail = trail
        try:
            yield
        finally:
            self._trail = None

    def stats(self) -> dict[str, int]:
        return {"solves": self._solves, "newton_iterations": self._iterations}


def _in_cells(function: Function) -> np.ndarray:
    """The values of a DG0 function in this rank's cells, in the order of the maps to nodes."""
    return function.dat.data_ro[function.function_space().cell_node_map().values[:, 0]]


def _expressions(groups) -> list[Expr]:
    return [e for group in groups for e in group.values()]


def _following(solve: SolveOf) -> list[dict]:
    found = solve.following
    return [] if found is None else [dict(found.given), dict(found.prepared), dict(found.finished)]


def _step(solve: SolveOf) -> tuple[list[dict], Step]:
    """The maps of a step, and their order."""
    maps: list[dict] = []

    def numbered(*groups) -> range:
        first = len(maps)
        maps.extend(alike for group in groups if group for alike in _alike(group))
        return range(first, len(maps))

    given, prepared, finished = _following(solve) or ({}, {}, {})
    guess = {part: source for part, source in solve.guess.items() if part is not source}
    return maps, Step(
        given=numbered(given),
        before=numbered(*solve.preparations, prepared, guess),
        after=numbered(*solve.assignments, finished),
        attempt=solve.attempt or "",
        other=numbered({solve.unknown: solve.other}) if solve.attempt else (),
    )


def _alike(group: dict) -> list[dict]:
    """Assignments to functions of nodes, and those to functions of cells."""
    kinds: dict[tuple, dict] = {}
    for function, expression in group.items():
        for part in parts_of(function):
            kinds.setdefault(part.kind, {})[part.function] = expression
    return list(kinds.values())


def _at_once(groups: Sequence[dict]) -> dict[Function, Expr]:
    """Groups of assignments as one, in terms of the values before all of them."""
    found: dict[Function, Expr] = {}
    for group in groups:
        found |= {f: replace(e, found) for f, e in group.items()}
    return found
