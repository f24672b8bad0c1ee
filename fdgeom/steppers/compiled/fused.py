"""Whole steps in compiled code, where solves are local or couple the nodes of joints alone."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any

from firedrake import Form, Function

from fdgeom.solvers import Snapshot, SolveFailed, key
from fdgeom.solvers.compiled import REASONS, CannotCompile, Program, Unit, pieces
from fdgeom.solvers.derived import all_constants, is_real
from fdgeom.solvers.linked import add_linked
from fdgeom.solvers.links import is_of_chains
from fdgeom.solvers.spread import in_assignments, in_terms
from fdgeom.steppers.compiled.solves_of import SolveOf

# So many steps at the most go by before Ctrl-C is heard, or are repeated to come back to the last
# good state after a failure.
_CHUNK = 256
# So many ways back are kept.
_MANY = 8


class CompiledSteps(ABC):
    """Whole steps of a method in compiled code."""

    def __init__(self) -> None:
        #: Reverse sweeps, or why there are none, by their arguments.
        self._sweeps: dict[Any, tuple] = {}

    @property
    @abstractmethod
    def is_ready(self) -> bool:
        """Whether the code has been compiled."""

    @abstractmethod
    def make_ready(self) -> None:
        """Compile the code; raises whatever stops that."""

    @abstractmethod
    def advance(self, steps: int, dt: float) -> tuple[int, SolveFailed | None]:
        """Take up to ``steps`` steps, few enough for Ctrl-C; returns how many were taken and the
        failure after the last good one, if any.
        """

    def sweep(
        self,
        seeded: Set[int],
        wanted: Set[int],
        running: Form | None = None,
        *,
        tangents: bool = False,
    ) -> Any:
        """The compiled reverse sweep through these steps; raises `CannotCompile` with the reason."""
        # `seeded`: keys of the functions that have a cotangent after steps; `wanted`: keys of the
        # coefficients whose cotangents are wanted; `running`: a functional evaluated after each
        # step; `tangents`: whether the steps propagate tangents, too.
        raise CannotCompile("the way back through steps of this kind is not compiled")

    def _kept_sweep(self, name, running: Form | None, make: Callable[[], Any]) -> Any:
        """What ``make`` returns for a name, or the CannotCompile that it raises, kept for the next call."""
        kept = self._sweeps
        if name not in kept:
            while len(kept) >= _MANY:
                del kept[next(iter(kept))]
            try:
                found = make()
            except CannotCompile as why:
                found = why
            # With the functional, so that no other one gets its number.
            kept[name] = running, found
        _, found = kept[name]
        if isinstance(found, CannotCompile):
            raise found
        return found

    @contextmanager
    def leaving(self, trail: Any) -> Iterator[None]:
        """Context in which steps leave a trail, which a :meth:`sweep` follows back."""
        raise NotImplementedError

    @abstractmethod
    def stats(self) -> dict[str, int]:
        """Solves and Newton iterations (of the node that took most) so far."""


class FusedSteps(CompiledSteps):
    """The steps of a method compiled to one unit: solves of nodes and of those of joints, and updates."""

    # `sequence` has the solves of one step and their fractions of it; `live` are the functions that
    # the user may change between two calls, `snapshot` is of these, saved before each call of
    # `advance`. `clocks` hold the time, which compiled steps do not set. Raises CannotCompile with the
    # reason if a solve is another one, or a coefficient changes in time.
    def __init__(self, sequence: Sequence, live, snapshot: Snapshot, clocks: Sequence = ()) -> None:
        super().__init__()
        mesh = sequence[0][0].unknown.subfunctions[0].function_space().mesh()
        self._program = Program(mesh, side_by_side=mesh.comm.size == 1 and is_of_chains(mesh))
        self._live, self._snapshot = tuple(live), snapshot
        self._moving = {key(p) for f in self._live for p in pieces(f)}
        phases: dict[int, list[tuple]] = {}
        self._checks: dict[int, tuple] = {}
        self._sequence, self._names = [], []
        self._clocks = tuple(clocks)
        for solve, fraction in sequence:
            if id(solve) not in phases:
                phases[id(solve)] = self._with_turns(solve, self._add(solve))
            for phase, constant in phases[id(solve)]:
                self._sequence.append((phase, constant, fraction))
                self._names.append(solve.name)
        self._made: tuple[Unit, Any] | None = None

    def _add(self, solve: SolveOf) -> list[tuple]:
        self._check(solve)
        tolerances = (*_tolerances_of(solve.options.over({})[0]), 0, solve.more)
        if solve.linked is not None:
            if any(is_real(c) for c in solve.residual.coefficients()):
                raise CannotCompile(f"{solve.name}: a coefficient is a number of a Real space")
            phases = add_linked(self._program, solve.linked.equations, tolerances)
            phases += [self._program.add_update(group) for group in solve.linked.assignments]
        else:
            number = self._program.add_solve(
                in_terms(solve.residual, solve.unknown, self._moving),
                solve.unknown,
                guess=tuple(solve.guess.values()),
                essential=solve.essential,
                tolerances=tolerances,
            )
            before, after = (
                [self._program.add_update(in_assignments(g, self._moving)) for g in groups]
                for groups in (solve.preparations, solve.assignments)
            )
            phases = [*before, number, *after]
        return [(phase, solve.dt) for phase in phases]

    def _with_turns(self, solve: SolveOf, phases: list[tuple]) -> list[tuple]:
        """Phases between a copy of the orientation and a check of the rotation of cells."""
        turns = solve.turns
        if turns is None:
            return phases
        before = Function(turns.orientation.function_space(), name="orientation before")
        first = self._program.add_update({before: turns.orientation})
        check = self._program.add_turn_check(before, turns.orientation, turns.soft)
        self._checks[check] = turns, before
        return [(first, solve.dt), *phases, (check, solve.dt)]

    def _check(self, solve: SolveOf) -> None:
        why = solve.uncompilable
        if any(e.target is not None for e in solve.essential):
            why = why or "a motion is prescribed as a function of time"
        elif solve.essential and len(solve.unknown.function_space()) > 1:
            why = why or "an unknown of several parts has given values"
        read = all_constants(solve.residual)
        if any(clock is constant for clock in self._clocks for constant in read):
            why = why or "a coefficient is a function of the time"
        if why:
            raise CannotCompile(f"{solve.name}: {why}")

    def _unit(self) -> tuple[Unit, Any]:
        """The unit and its plan."""
        if self._made is None:
            unit = Unit(self._program, chain=True, live=self._live)
            self._made = unit, unit.plan(self._sequence)
        return self._made

    @property
    def is_ready(self) -> bool:
        return self._made is not None

    def make_ready(self) -> None:
        self._unit()

    def advance(self, steps: int, dt: float) -> tuple[int, SolveFailed | None]:
        unit, plan = self._unit()
        steps = min(steps, _CHUNK)
        unit.begin()
        reason, done, move = unit.advance(steps, plan, dt)
        if not reason:
            unit.end()
            return steps, None
        why = self._reason(unit, reason, move)
        # The unit does the same again to the last digit, so these steps go well.
        self._snapshot.restore()
        if done:
            unit.begin()
            unit.advance(done, plan, dt)
            unit.end()
        return done, why

    def _reason(self, unit: Unit, reason: int, move: int) -> SolveFailed:
        phase = self._sequence[move][0]
        if phase in self._checks:
            turns, before = self._checks[phase]
            unit.end()
            try:
                turns.check(turns.relative(before))
            except SolveFailed as failure:
                return failure
        words, where = REASONS.get(reason, f"code {reason}"), unit.place_of_failure(phase)
        where = f" at {where}" if where else ""
        return SolveFailed(f"the local solve for {self._names[move]} stopped with {words}{where}")

    def stats(self) -> dict[str, int]:
        reports = [] if self._made is None else self._made[0].reports
        own = [r for r, p in zip(reports, self._program.phases, strict=False) if p.solved]
        return {
            "solves": sum(r.solves for r in own),
            "newton_iterations": sum(r.iterations for r in own),
        }


def _tolerances_of(options) -> tuple[float, float, float, int]:
    """The tolerances among PETSc options."""
    return (
        float(options.get("snes_rtol", 1e-13)),
        float(options.get("snes_atol", 1e-50)),
        float(options.get("snes_stol", 1e-14)),
        int(options.get("snes_max_it", 25)),
    )
