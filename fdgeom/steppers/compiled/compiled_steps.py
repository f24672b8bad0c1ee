"""Whole steps in compiled code."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from typing import Any

from firedrake import Form

from fdgeom.errors import CannotCompile
from fdgeom.solvers import SolveFailed

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
