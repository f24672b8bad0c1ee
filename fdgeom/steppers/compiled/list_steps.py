"""Whole steps by the compiled executor of lists of operations."""

from collections.abc import Iterator, Set
from contextlib import contextmanager

from firedrake import Form

from fdgeom.errors import CannotCompile, SolveFailed
from fdgeom.solvers import Number
from fdgeom.steppers.compiled.list_sweep import ListSweep
from fdgeom.steppers.host_operations import PrescribeMotion

# So many steps at the most go by before Ctrl-C is heard.
_CHUNK = 256
# So many reverse sweeps are kept.
_MANY = 8


class ListSteps:
    """The operations of a step in compiled code; CannotCompile with the reason if there are none."""

    # A step along a chain whose Newton iteration fails is repeated through PETSc SNES, which decides
    # whether the step fails, and why; the stepper's `fallbacks` counts such steps.
    def __init__(self, stepper) -> None:
        #: Reverse sweeps, or why there are none, by their arguments.
        self._sweeps: dict[tuple, tuple] = {}
        # Inside of a function: methods can be read without the compiler.
        from fdgeom import compile as compiler

        self._stepper, live = stepper, stepper._moving()
        self._executor = compiler.CompiledExecutor(stepper.operations, live=live, singly=True)
        self._given = [
            op for op in stepper.operations if isinstance(op, PrescribeMotion) and op.is_set
        ]
        self._times = [Number(c) for c in {c for op in stepper.operations for c in op.clocks}]
        self._sweep: ListSweep | None = None
        self._spare: list = []

    @property
    def unit(self):
        """The compiled unit."""
        return self._executor.unit

    @property
    def is_ready(self) -> bool:
        """Whether the code has been compiled."""
        return self.unit.is_ready

    def make_ready(self) -> None:
        """Compile the code."""
        self.unit.make_ready()

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

    def sweep(
        self,
        seeded: Set[int],
        wanted: Set[int],
        running: Form | None = None,
        *,
        tangents: bool = False,
    ) -> ListSweep:
        """The compiled reverse sweep through these steps; raises `CannotCompile` with the reason."""
        # seeded: keys of the functions that have a cotangent after steps; wanted: keys of the coefficients
        # whose cotangents are wanted; running: a functional that is evaluated after each step; tangents:
        # whether the steps propagate tangents, too.
        kept, name = self._sweeps, (frozenset(seeded), frozenset(wanted), id(running), tangents)
        if name not in kept:
            while len(kept) >= _MANY:
                del kept[next(iter(kept))]
            layout, found = self.unit.layout, None
            try:
                found = ListSweep(
                    self._stepper, layout, self._spare, seeded, wanted, running, tangents=tangents
                )
            except CannotCompile as why:
                found = why
            # With the functional, so that no other one gets its number.
            kept[name] = running, found
        _, found = kept[name]
        if isinstance(found, CannotCompile):
            raise found
        return found

    @contextmanager
    def leaving(self, trail: ListSweep) -> Iterator[None]:
        """Context in which steps are stored, which a :meth:`sweep` follows back."""
        self._sweep = trail
        try:
            yield
        finally:
            self._sweep = None

    def stats(self) -> dict[str, int]:
        """Solves and Newton iterations (of the node that took most) so far."""
        swept = [sweep for _, sweep in self._sweeps.values() if isinstance(sweep, ListSweep)]
        every = [self._executor.stats(), *(sweep.trajectory.forward.stats() for sweep in swept)]
        return {name: sum(found[name] for found in every) for name in every[0]}
