"""Whole steps by the compiled executor of lists of operations."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager, suppress

from firedrake import Function

from fdgeom.operations import Operation
from fdgeom.solvers.compiled import CannotCompile, NoCompiler
from fdgeom.steppers.compiled.fused import CompiledSteps

# So many steps at the most go by before Ctrl-C is heard.
_CHUNK = 256


class ListSteps(CompiledSteps):
    """The operations of a step in compiled code; CannotCompile if they are not local, on one rank.

    ``time()`` is the present time. Their compiled adjoint is that of other compiled steps, which
    ``others()`` makes when they are first needed.
    """

    def __init__(
        self, operations: Sequence[Operation], live: Iterable[Function],
        time: Callable[[], float], others: Callable[[], CompiledSteps],
    ) -> None:  # fmt: skip
        # Inside of a function: methods can be read without the compiler.
        from fdgeom import compile as compiler

        try:
            self._executor = compiler.Executor(operations, live=live)
        except compiler.CannotCompile as error:
            raise CannotCompile(str(error)) from error
        if self.unit.couples:
            raise CannotCompile("a solve couples neighbouring nodes")
        self._time, self._make_others = time, others
        self._others: CompiledSteps | None = None
        self._is_recorded = False

    @property
    def unit(self):
        """The compiled unit."""
        return self._executor.unit

    @property
    def is_ready(self) -> bool:
        return self.unit.is_ready

    def make_ready(self) -> None:
        from fdgeom import compile as compiler

        try:
            self.unit.make_ready()
        except compiler.NoCompiler as error:
            raise NoCompiler(str(error)) from error

    def advance(self, steps, dt):
        if self._is_recorded:
            return self._for_adjoint().advance(steps, dt)
        return self._executor.advance(min(steps, _CHUNK), self._time(), dt)

    def _for_adjoint(self) -> CompiledSteps:
        if self._others is None:
            self._others = self._make_others()
        return self._others

    def prepare_adjoint(self):
        # If there is none, `sweep` says why.
        with suppress(CannotCompile):
            self._for_adjoint()

    def sweep(self, seeded, wanted, running=None):
        return self._for_adjoint().sweep(seeded, wanted, running)

    @contextmanager
    def leaving(self, trail):
        self._is_recorded = True
        try:
            with self._for_adjoint().leaving(trail):
                yield
        finally:
            self._is_recorded = False

    def stats(self):
        found = self._executor.stats()
        if self._others is None:
            return found
        other = self._others.stats()
        return {name: found[name] + other[name] for name in found}
