"""Whole steps in compiled code, where every solve of a method is local."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any

from firedrake import Form, Function
from mpi4py import MPI

from fdgeom.operations import Assignments
from fdgeom.solvers import Snapshot, SolveFailed, key
from fdgeom.solvers.compiled import REASONS, CannotCompile, Program, Unit, pieces
from fdgeom.solvers.derived import all_constants, is_real
from fdgeom.solvers.linked import add_linked
from fdgeom.solvers.links import is_of_chains
from fdgeom.solvers.reverse import Memory, Sweep, Trail
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
    def leaving(self, trail: Trail) -> Iterator[None]:
        """Context in which steps leave a trail, which a :meth:`sweep` follows back."""
        raise NotImplementedError

    @abstractmethod
    def stats(self) -> dict[str, int]:
        """Solves and Newton iterations (of the node that took most) so far."""


class FusedSteps(CompiledSteps):
    """The steps of a method compiled to one unit: solves, updates, and the exchange of ghosts."""

    # `sequence` has the solves of one step and their fractions of it; `live` are the functions that
    # the user may change between two calls, `snapshot` is of these, saved before each call of
    # `advance`. `tolerances(solve)` gives rtol, atol, stol and the limit of iterations; `clocks`
    # hold the time, which compiled steps do not set. Raises CannotCompile with the reason if a
    # solve is not local, or a condition changes in time.
    def __init__(
        self, sequence: Sequence, live, snapshot: Snapshot, tolerances, clocks: Sequence = ()
    ) -> None:
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
                phases[id(solve)] = self._with_turns(solve, self._add(solve, tolerances(solve)))
            for phase, constant in phases[id(solve)]:
                self._sequence.append((phase, constant, fraction))
                self._names.append(solve.name)
        self._units: dict[bool, tuple[Unit, object]] = {}
        self._trail: Trail | None = None
        self._memory = Memory()

    def _add(self, solve: SolveOf, tolerances) -> list[tuple]:
        self._check(solve)
        linked, residual = solve.linked is not None, solve.residual
        if not linked:
            residual = in_terms(residual, solve.unknown, self._moving)
        if any(is_real(c) for c in residual.coefficients()):
            raise CannotCompile(f"{solve.name}: a coefficient is a number of a Real space")
        if linked:
            return self._add_linked(solve, tolerances)
        before = self._add_updates(solve.preparations)
        number = self._program.add_solve(
            residual,
            solve.unknown,
            guess=tuple(solve.guess.values()),
            essential=solve.essential,
            tolerances=(*tolerances, 0, solve.more),
        )
        updates = self._add_updates(solve.assignments)
        return [(phase, solve.dt) for phase in (*before, number, *updates)]

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

    def _add_updates(self, groups: Sequence[Assignments]) -> list[int]:
        return [self._program.add_update(in_assignments(g, self._moving)) for g in groups]

    def _add_linked(self, solve: SolveOf, tolerances) -> list[tuple]:
        phases = add_linked(self._program, solve.linked.equations, (*tolerances, 0, solve.more))
        phases += [self._program.add_update(group) for group in solve.linked.assignments]
        return [(phase, solve.dt) for phase in phases]

    def _check(self, solve: SolveOf) -> None:
        why = solve.uncompilable or solve.not_local
        if any(e.target is not None for e in solve.essential):
            why = why or "a motion is prescribed as a function of time"
        elif solve.essential and len(solve.unknown.function_space()) > 1:
            why = why or "an unknown of several parts has given values"
        read = all_constants(solve.residual)
        if any(clock is constant for clock in self._clocks for constant in read):
            why = why or "a coefficient is a function of the time"
        if why:
            raise CannotCompile(f"{solve.name}: {why}")

    def _unit(self, chain: bool = True):
        """The unit and its plan; one layout for all runs: results do not depend on pieces."""
        if chain not in self._units:
            unit = Unit(self._program, chain=chain, live=self._live)
            self._units[chain] = unit, unit.plan(self._sequence)
        return self._units[chain]

    @property
    def is_ready(self) -> bool:
        return bool(self._units)

    def make_ready(self) -> None:
        self._unit()

    def advance(self, steps: int, dt: float) -> tuple[int, SolveFailed | None]:
        unit, plan = self._unit()
        steps = min(steps, _CHUNK)
        unit.begin()
        take = unit.advance if self._trail is None else self._trail.advance
        reason, done, move = take(steps, plan, dt)
        if not reason:
            unit.end()
            return steps, None
        if unit.blocks:
            # Once more step by step, to find out in which one.
            self._snapshot.restore()
            unit.begin()
            reason, done, move = unit.advance(steps, plan, dt, blocked=False)
        why = self._reason(unit, reason, move)
        # The unit does the same again to the last digit, so these steps go well.
        self._snapshot.restore()
        if done:
            unit.begin()
            unit.advance(done, plan, dt)
            unit.end()
        return done, why

    def sweep(self, seeded, wanted, running=None, *, tangents=False):
        if tangents:
            raise CannotCompile("tangents of steps of this kind")
        if any(phase.data is not None for phase in self._program.phases):
            raise CannotCompile("the way back through solves of linked nodes is not compiled")
        read = () if running is None else running.coefficients()
        known = {key(f) for f in (*self._program.tables.functions, *read)}
        name = frozenset(known & seeded), frozenset(known & wanted), id(running)
        unit, _ = self._unit()
        return self._kept_sweep(
            name,
            running,
            lambda: Sweep(unit, self._sequence, *name[:2], self._memory, running),
        )

    @contextmanager
    def leaving(self, trail):
        self._trail = trail
        try:
            yield
        finally:
            self._trail = None

    def _reason(self, unit: Unit, reason: int, move: int) -> SolveFailed:
        # Ranks on which all went well name no move.
        move = unit.comm.allreduce(move, op=MPI.MAX)
        phase = self._sequence[move][0] if move >= 0 else -1
        if phase in self._checks:
            turns, before = self._checks[phase]
            unit.end()
            try:
                turns.check(turns.relative(before))
            except SolveFailed as failure:
                return failure
        words = REASONS.get(reason, f"code {reason}")
        where = unit.place_of_failure(phase) if phase >= 0 else None
        found = [w for w in unit.comm.allgather(where) if w]
        name = f"the local solve for {self._names[move]}" if move >= 0 else "a local solve"
        where = f" at {found[0]}" if found else ""
        return SolveFailed(f"{name} stopped with {words}{where}")

    def stats(self) -> dict[str, int]:
        reports = [
            report
            for unit, _ in self._units.values()
            for report, phase in zip(unit.reports, self._program.phases, strict=False)
            if phase.solved
        ]
        return {
            "solves": sum(r.solves for r in reports),
            "newton_iterations": sum(r.iterations for r in reports),
        }


def tolerances_of(options) -> tuple[float, float, float, int]:
    """The tolerances among PETSc options."""
    return (
        float(options.get("snes_rtol", 1e-13)),
        float(options.get("snes_atol", 1e-50)),
        float(options.get("snes_stol", 1e-14)),
        int(options.get("snes_max_it", 25)),
    )
