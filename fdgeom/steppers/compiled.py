"""Whole steps in compiled code, by the executor of lists of operations."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from fdgeom.data import Number
from fdgeom.errors import SolveFailed
from fdgeom.execution import Executor
from fdgeom.execution.options import Fallbacks
from fdgeom.systems.motion.nodal_unknown import PrescribeMotion

# So many steps at the most go by before Ctrl-C is heard.
_CHUNK = 256


class ListSteps:
    """The operations of a step in compiled code; CannotCompile with the reason if there are none."""

    # A step whose Newton iteration fails is repeated through PETSc SNES, which decides
    # whether the step fails, and why; the stepper's `fallbacks` counts such steps.
    def __init__(
        self, stepper, through_petsc: Callable[[float, float], None], fallbacks: Fallbacks
    ) -> None:
        # Inside of a function: methods can be read without the compiler.
        from fdgeom import compile as compiler

        self._stepper, live = stepper, stepper.state_functions
        self._fallbacks = fallbacks
        self._executor = compiler.CompiledExecutor(stepper.operations, live=live, singly=True)
        #: The compiled unit.
        self.unit = self._executor.unit
        self._given = [
            op for op in stepper.operations if isinstance(op, PrescribeMotion) and op.is_set
        ]
        self._times = [Number(c) for c in {c for op in stepper.operations for c in op.clocks}]
        #: Compiled steps, and one step through PETSc.
        self._calls: tuple[Callable, Callable] = (self._executor.advance, through_petsc)
        #: Solves and iterations of recorded steps.
        self._recorded: Counter[str] = Counter()

    def advance(self, steps: int, dt: float) -> tuple[int, SolveFailed | None]:
        """Take up to ``steps`` steps, few enough for Ctrl-C.

        Returns how many were taken, and the failure after the last good one, if any.
        """
        clock, steps = self._stepper.clock, min(steps, _CHUNK)
        for op in self._given:
            op.run()
            # Values that a user has set are reached in one step.
            steps = 1 if op.moves else steps
        if self.unit.at is not None:
            # Coefficients that are functions of the time are evaluated anew for each step.
            steps = 1
            for time in self._times:
                time.set(clock.t + self.unit.at * dt)
        take, through_petsc = self._calls
        self._executor.finite = None
        done, failure = take(steps, clock.begin, dt, clock.steps - clock.first)
        if failure is None or failure.words is None:
            return done, failure
        if not done:
            with self._fallbacks.through_petsc(failure.words, failure):
                through_petsc(clock.t, dt)
        return max(done, 1), None

    @property
    def finite(self) -> bool | None:
        """Whether all values on this rank are finite after the last steps; None if not known."""
        return self._executor.finite

    @contextmanager
    def recorded_by(self, trajectory, petsc: Executor) -> Iterator[None]:
        """Context in which a trajectory takes the steps, whose operations ``petsc`` performs too."""
        before, calls = trajectory.forward.stats(), self._calls
        self._calls = trajectory.take, partial(trajectory.take_through, petsc)
        try:
            yield
        finally:
            self._calls = calls
            for name, number in trajectory.forward.stats().items():
                self._recorded[name] += number - before[name]

    def stats(self) -> dict[str, int]:
        """Solves and Newton iterations (of the node that took most) so far."""
        own = self._executor.stats()
        return {name: number + self._recorded[name] for name, number in own.items()}
