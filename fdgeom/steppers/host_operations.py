"""Operations of steps that Python performs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import ufl
from firedrake import Function

from fdgeom.operations import Check, Copy, HostOperation, Map, Operation


@dataclass(frozen=True, kw_only=True, eq=False)
class PrescribeMotion(HostOperation):
    """Evaluates the given motion of degrees of freedom, and prescribes their increment."""

    # Given values at a few nodes, by kernels of DirichletBC.
    #: `fdgeom.systems.motion.nodal_unknown.NodalUnknown`, and the motion's `Held`.
    unknown: Any
    held: Any

    @property
    def reads(self) -> list[Function]:
        return []

    @property
    def writes(self) -> list[Function]:
        held = self.held
        return [held.increment, held.v, held.a, self.unknown.values]

    def run(self) -> None:
        self.held.update()
        self.unknown.hold(self.held.increment)

    @property
    def compiled_as(self) -> Sequence[Operation] | None:
        held, unknown = self.held, self.unknown
        if not held.varies:
            return []
        given = held.assignments(self.clocks[0])
        if given is None:
            return None
        maps = [
            given,
            *unknown.assignments(unknown.values, [held.increment], unknown.no_multiplier),
        ]
        return [Map(values=values, **self._timed()) for values in maps]

    @property
    def derivative_as(self) -> Sequence[Operation]:
        return [Copy(source=None, target=f) for f in self.writes]

    @property
    def is_set(self) -> bool:
        """Whether the values are constant and must be set before compiled steps."""
        return not self.held.varies and self.held.assignments(self.clocks[0]) is None

    @property
    def moves(self) -> bool:
        """Whether the increment is not zero on some rank."""
        increment = self.held.increment
        found = any(np.any(f.dat.data_ro) for f in increment.subfunctions)
        return any(increment.comm.allgather(found))


@dataclass(frozen=True, kw_only=True, eq=False)
class TurnsBefore(HostOperation):
    """Stores the rotations of nodes, for :class:`TurnCheck`."""

    #: `fdgeom.beams.rod.turns.Turns`.
    turns: Any

    @cached_property
    def orientation(self) -> Function:
        """The orientation before the assignments, in compiled code."""
        return Function(self.turns.orientation.function_space(), name="orientation before")

    @property
    def reads(self) -> list[Function]:
        return [self.turns.orientation]

    @property
    def writes(self) -> list[Function]:
        return []

    def run(self) -> None:
        self.__dict__["found"] = self.turns.values()

    @property
    def compiled_as(self) -> Sequence[Operation] | None:
        before = cast(TurnsBefore, self.original).orientation
        return [Copy(source=self.turns.orientation, target=before)]

    @property
    def derivative_as(self) -> Sequence[Operation]:
        return []


@dataclass(frozen=True, kw_only=True, eq=False)
class TurnCheck(HostOperation):
    """Fails the step where a cell has turned too far; its sentence needs the place and the angle."""

    turns: Any
    before: TurnsBefore

    @property
    def reads(self) -> list[Function]:
        return [self.turns.orientation]

    @property
    def writes(self) -> list[Function]:
        return []

    def run(self) -> None:
        self.turns.check(self.before.__dict__["found"])

    @property
    def compiled_as(self) -> Sequence[Operation] | None:
        message = "the two ends of a cell turn too far against one another in a step"
        before, least = self.before.orientation, self.turns.least
        # The angles at both ends bound the change of that between them.
        small = float(np.cos(np.arccos(least) / 2)) - ufl.dot(self.turns.orientation, before)
        return [
            Check(value=-cosine, limit=-least, message=message, sufficient=enough)
            for cosine, enough in zip(self.turns.cosines(before), (small, None), strict=False)
        ]

    def explain(self) -> None:
        self.turns.check(self.before.orientation.dat.data_ro_with_halos)

    @property
    def derivative_as(self) -> Sequence[Operation]:
        return []
