"""Whole steps in compiled code, where the one solve of a method couples neighbours on a chain."""

from collections.abc import Sequence

from firedrake import Constant
from ufl.classes import Expr

from fdgeom.solvers import Number, Settled
from fdgeom.solvers.chain import ChainUnit, Step, Test, check_chain, part_of
from fdgeom.solvers.compiled import CannotCompile, pieces
from fdgeom.solvers.derived import all_constants, constants_behind
from fdgeom.steppers.fused import CompiledSteps
from fdgeom.steppers.solve import Solve

# So many steps at the most go by before Ctrl-C is heard.
_CHUNK = 64


class ChainSteps(CompiledSteps):
    """The steps of a method of one solve, as a compiled chain.

    A step whose Newton iteration fails there is taken through PETSc SNES, which says whether it can
    be taken at all, and why not.

    Parameters
    ----------
    stepper : Stepper
        Whose steps.
    share : float
        At what part of a step the solve is told the time.

    Raises
    ------
    CannotCompile
        If the solve is not that of a chain; says why.
    """

    def __init__(self, stepper, share: float) -> None:
        if len(stepper.sequence) != 1:
            raise CannotCompile("the step is made of several solves")
        self._stepper, self._share = stepper, share
        ((self._solve, self._fraction),) = stepper.sequence
        self._check(stepper.system.clocks)
        self._maps, self._step = _step(self._solve)
        self._dt: Number = Number(self._solve.dt)
        self._unit: ChainUnit | None = None
        self._solves = self._iterations = 0

    def _check(self, clocks: Sequence[Constant]) -> None:
        solve = self._solve
        check_chain(solve.unknown, shared=True)
        if any(e.target is not None for e in solve.essential):
            raise CannotCompile(f"{solve.name}: a motion is prescribed as a function of time")
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

    @property
    def is_ready(self) -> bool:
        return self._unit is not None

    def make_ready(self) -> None:
        solve = self._solve
        live = {p for f in self._stepper._moving() for p in pieces(f)}
        made = {f for group in solve.preparations for f in group}
        following = solve.following
        self._unit = ChainUnit(
            solve.residual,
            solve.unknown,
            essential=solve.essential,
            maps=self._maps,
            step=self._step,
            private=[f for f in made if f not in live],
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
        settled = numerics.converged
        if settled is not None and not linear:
            if not isinstance(settled, Settled):
                raise CannotCompile(f"{self._solve.name}: a test of convergence of its own")
            test.kind = 1
            test.unnoticed, test.small, test.left = settled.unnoticed, settled.small, settled.left
            test.last = -1.0 if settled.last is None else settled.last
            if settled.of is not None:
                test.positions = self._unit.number(settled.of)
        return test

    def advance(self, steps: int, dt: float) -> tuple[int, str | None]:
        unit, test, steps = self._unit, self._test, min(steps, _CHUNK)
        self._dt.set(self._fraction * dt)
        if self._singly:
            steps = 1
            self._stepper.system.set_time(self._stepper.t + self._share * dt)
        unit.begin()
        unit.take_unknown()
        done = 0
        if unit.hold():
            now = self._stepper.t
            _, done, iterations = unit.advance(test, steps, now, dt, self._clock, self._share)
            self._solves += done
            self._iterations += iterations
            unit.end()
        if not done:
            self._stepper._step(self._stepper.t, dt)
            done = 1
        return done, None

    def stats(self) -> dict[str, int]:
        return {"solves": self._solves, "newton_iterations": self._iterations}


def _expressions(groups) -> list[Expr]:
    return [e for group in groups for e in group.values()]


def _following(solve: Solve) -> list[dict]:
    found = solve.following
    return [] if found is None else [dict(found.given), dict(found.prepared), dict(found.finished)]


def _step(solve: Solve) -> tuple[list[dict], Step]:
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
        other=numbered(solve.other)[0] if solve.attempt else None,
    )


def _alike(group: dict) -> list[dict]:
    """Assignments to functions of nodes, and those to functions of cells."""
    parts: dict[bool, dict] = {}
    for function, expression in group.items():
        parts.setdefault(part_of(function).nodal, {})[function] = expression
    return list(parts.values())
