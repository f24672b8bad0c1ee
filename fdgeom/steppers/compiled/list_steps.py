"""Whole steps by the compiled executor of lists of operations."""

from collections.abc import Iterator
from contextlib import contextmanager

from fdgeom.steppers.compiled.compiled_steps import CompiledSteps
from fdgeom.steppers.compiled.list_sweep import ListSweep

# So many steps at the most go by before Ctrl-C is heard.
_CHUNK = 256


class ListSteps(CompiledSteps):
    """The operations of a step in compiled code; CannotCompile with the reason if there are none."""

    # A step along a chain whose Newton iteration fails is repeated through PETSc SNES, which decides
    # whether the step fails, and why; the stepper's `fallbacks` counts such steps.
    def __init__(self, stepper) -> None:
        super().__init__()
        # Inside of a function: methods can be read without the compiler.
        from fdgeom import compile as compiler

        self._stepper, live = stepper, stepper._moving()
        self._executor = compiler.Executor(stepper.operations, live=live)
        self._sweep: ListSweep | None = None
        self._spare: list = []

    @property
    def unit(self):
        """The compiled unit."""
        return self._executor.unit

    @property
    def is_ready(self) -> bool:
        return self.unit.is_ready

    def make_ready(self) -> None:
        self.unit.make_ready()

    def advance(self, steps, dt):
        clock, steps = self._stepper.clock, min(steps, _CHUNK)
        take = self._executor.advance if self._sweep is None else self._sweep.trajectory.take
        done, failure = take(steps, clock.begin, dt, clock.steps - clock.first)
        if failure is None or failure.words is None:
            return done, failure
        if not done:
            with self._stepper._fallbacks.through_petsc(failure.words, failure.remedy or ""):
                self._step_through_petsc(clock.t, dt)
        return max(done, 1), None

    def _step_through_petsc(self, t: float, dt: float) -> None:
        if self._sweep is None:
            self._stepper._step(t, dt)
        else:
            self._sweep.trajectory.take_through(self._sweep.petsc, t, dt)

    def sweep(self, seeded, wanted, running=None, *, tangents=False):
        name = frozenset(seeded), frozenset(wanted), id(running), tangents
        return self._kept_sweep(
            name,
            running,
            lambda: ListSweep(
                self._stepper,
                self.unit.layout,
                self._spare,
                seeded,
                wanted,
                running,
                tangents=tangents,
            ),
        )

    @contextmanager
    def leaving(self, trail: ListSweep) -> Iterator[None]:
        self._sweep = trail
        try:
            yield
        finally:
            self._sweep = None

    def stats(self):
        swept = [sweep for _, sweep in self._sweeps.values() if isinstance(sweep, ListSweep)]
        every = [self._executor.stats(), *(sweep.trajectory.forward.stats() for sweep in swept)]
        return {name: sum(found[name] for found in every) for name in every[0]}
