"""The adjoint of one step: the transposed phases in reverse order."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

import ufl
from firedrake import Constant, Form, Function
from ufl.algorithms import replace
from ufl.core.expr import Expr

from fdgeom.forms import flatten, is_zero, slope_by
from fdgeom.solvers.compiled.problem import NodeProblem, pieces
from fdgeom.solvers.compiled.program import Phase, Program
from fdgeom.solvers.compiled.refused import CannotCompile
from fdgeom.solvers.data import key
from fdgeom.solvers.reverse.adjoint_program import AdjointProgram
from fdgeom.solvers.reverse.node_pull import NodePull
from fdgeom.solvers.reverse.running import Running


@dataclass(frozen=True)
class Back:
    """One adjoint phase, with its Δt and the number of the forward move that it belongs to."""

    phase: int
    dt: Constant | None
    fraction: float
    move: int


class ReversedStep:
    """The cotangents before a step from those after it."""

    # moves: (phase, Constant of its Δt, fraction of the step) in order; seeded: keys of functions with
    # a cotangent after the step; wanted: keys of coefficients whose cotangents are needed.
    def __init__(
        self,
        program: Program,
        moves: Sequence[tuple],
        seeded: Set[int],
        wanted: Set[int],
        running: Form | None = None,
    ) -> None:
        self._forward, self._moves = program.phases, list(moves)
        self._wanted = set(wanted)
        self._moving = {key(f) for phase in program.phases for f in phase.written}
        self._made: dict = {}
        self._multipliers: dict[int, Function] = {}
        self._running = None if running is None else Running(running, self._is_active)
        #: Cotangents and their functions, by the functions' keys.
        self.bars: dict[int, Function] = {}
        self.functions: dict[int, Function] = {}
        #: Keys of functions whose cotangents may be nonzero after a step.
        self.after = (set(seeded) & self._moving) | self._wanted
        while True:
            reached = self.after | self._walk(None)
            if reached == self.after:
                break
            self.after = reached
        self.program = AdjointProgram(program.mesh)
        self.backs: list[Back] = []
        self._known: dict[tuple, list[int]] = {}
        #: The phases whose reports hold the sums of the running functional.
        self.totals: list[int] = []
        #: Keys of functions whose cotangents may be nonzero before the step.
        self.alive = self._walk(self.program)

    # --- one step, from its end --------------------------------------------------------------------
    def _walk(self, program: AdjointProgram | None) -> set[int]:
        """The keys with nonzero cotangents before the step; adds adjoint phases to ``program`` if given."""
        alive = set(self.after)
        if self._running is not None:
            self._add_running(alive, program)
        for move in reversed(range(len(self._moves))):
            number, dt, fraction = self._moves[move]
            take = self._solve if self._forward[number].solved else self._update
            before = set(alive)
            name = number, frozenset(before)
            if program is None:
                take(number, alive, None)
                continue
            if name not in self._known:
                first = len(program.phases)
                take(number, alive, program)
                self._known[name] = list(range(first, len(program.phases)))
            else:
                take(number, alive, None)
            self.backs += [Back(k, dt, fraction, move) for k in self._known[name]]
        if program is not None:
            for k, bar in self.bars.items():
                if k in self.after - alive:
                    self.backs.append(Back(program.add_zero(bar), None, 0.0, 0))
        return alive

    def _add_running(self, alive: set[int], program) -> None:
        """f̄ += ∂/∂f of the running functional of the state after the step."""
        first = 0 if program is None else len(program.phases)
        for f, slope in self._running.slopes:
            if program is not None:
                program.add_gather(slope, self._bar(key(f), f), key(f) in alive)
            alive.add(key(f))
        for _, pull in self._running.nodes:
            self._add_pull(pull, alive, program)
        if program is None:
            return
        if self._running.cells is not None:
            self.totals.append(program.add_total(self._running.cells))
        for f, pull in self._running.nodes:
            self.totals.append(program.add_node_total(pull, f))
        end = len(self._moves)
        self.backs += [Back(k, None, 0.0, end) for k in range(first, len(program.phases))]

    def _update(self, number: int, alive: set[int], program) -> None:
        """Cotangents of the functions that assignments read, from those of the overwritten targets."""
        assignments = self._forward[number].assignments
        targets = [t for t in assignments if key(t) in alive]
        if not targets:
            return
        pull = self._pull_of(number, tuple(key(t) for t in targets))
        for t in targets:
            alive.discard(key(t))
        self._add_pull(pull, alive, program)

    def _pull_of(self, number: int, targets: tuple[int, ...]) -> NodePull:
        """The derivatives of Σ t̄·e by the functions that the expressions e contain."""
        name = number, targets
        if name not in self._made:
            work = [
                ufl.inner(ufl.as_ufl(e), self._bar(key(t), t))
                for t, e in self._forward[number].assignments.items()
                if key(t) in targets
            ]
            self._made[name] = NodePull(sum(work[1:], work[0]), self._is_active)
        return self._made[name]

    def _add_pull(self, pull: NodePull, alive: set[int], program) -> None:
        if program is not None and pull.functions:
            program.add_pull(
                pull, [(f, self._bar(key(f), f), key(f) in alive) for f in pull.functions]
            )
        alive |= {key(f) for f in pull.functions}

    def _solve(self, number: int, alive: set[int], program) -> None:
        """c̄ -= (∂R/∂c)ᵀ λ for all coefficients c, with (∂R/∂u)ᵀ λ = ū."""
        phase = self._forward[number]
        solved = phase.solved
        if not any(key(f) in alive for f in solved):
            return
        if phase.essential and phase.guess == phase.solved:
            raise CannotCompile("the reverse sweep does not support prescribed degrees of freedom")
        pull, gathered = self._slopes_of_solve(number)
        old = self._old(phase)
        if program is not None:
            bars = [self._bar(key(f), f) if key(f) in alive else None for f in solved]
            if old is not None and key(old) not in alive:
                program.add_zero(self._bar(key(old), old))
            program.add_adjoint(
                phase, bars, self._multiplier(phase), old and self._bar(key(old), old)
            )
        alive -= {key(f) for f in solved}
        if old is not None:
            alive.add(key(old))
        if pull is not None:
            self._add_pull(pull, alive, program)
        for f, form in gathered:
            if program is not None:
                program.add_gather(form, self._bar(key(f), f), key(f) in alive)
            alive.add(key(f))

    def _old(self, phase: Phase) -> Function | None:
        """The function that supplies the prescribed degrees of freedom of a solve."""
        return phase.essential[0].old if phase.essential else None

    def _slopes_of_solve(self, number: int) -> tuple[NodePull | None, list]:
        """The derivatives of -λ·R by its coefficients: at the nodes of the unknown, and as forms."""
        if number not in self._made:
            phase = self._forward[number]
            problem, unknown = phase.problem, phase.problem.unknown
            multipliers = self._multiplier(phase)
            is_mixed = len(unknown.function_space()) > 1
            flat = flatten(multipliers) if is_mixed else multipliers[0]
            plain = {unknown: flatten(pieces(unknown))} if is_mixed else {}
            pull, form = None, problem.form
            if isinstance(problem, NodeProblem) and problem.parts:
                work = [
                    part.weight * replace(part.expression, _with(part.expression, flat) | plain)
                    for part in problem.parts
                ]
                pull = NodePull(
                    -sum(work[1:], work[0]),
                    lambda f: self._is_active(f) and f not in phase.solved,
                )
            self._made[number] = pull, self._forms(form, flat, phase.solved)
        return self._made[number]

    def _forms(self, form: Form, multiplier: Expr, solved) -> list[tuple[Function, Form]]:
        if is_zero(form):
            return []
        (test,) = form.arguments()
        work, made = -replace(form, {test: multiplier}), []
        for f in form.coefficients():
            if self._is_active(f) and f not in solved:
                slope = slope_by(work, f)
                if slope is not None:
                    made.append((f, slope))
        return made

    def _is_active(self, f: Function) -> bool:
        return key(f) in self._moving or key(f) in self._wanted

    # --- what it works on --------------------------------------------------------------------------
    def _bar(self, k: int, function: Function | None = None) -> Function:
        if k not in self.bars:
            self.bars[k] = Function(
                function.function_space(), name=f"cotangent of {function.name()}"
            )
            self.functions[k] = function
        return self.bars[k]

    def _multiplier(self, phase: Phase) -> tuple[Function, ...]:
        found = []
        for f in phase.solved:
            if key(f) not in self._multipliers:
                self._multipliers[key(f)] = Function(f.function_space(), name="multiplier")
            found.append(self._multipliers[key(f)])
        return tuple(found)


def _with(expression: Expr, flat: Expr) -> dict:
    return dict.fromkeys(ufl.algorithms.extract_arguments(expression), flat)
