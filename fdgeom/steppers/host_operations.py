"""Operations of steps that Python performs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firedrake import Function

from fdgeom.forms import copy_into
from fdgeom.operations import Copy, HostOperation, Operation
from fdgeom.solvers import pieces
from fdgeom.systems.motion.nodal_unknown import NodalUnknown


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenMotion(HostOperation):
    """Evaluates the given motion of degrees of freedom, and prescribes their increment."""

    # Given values at a few nodes, by kernels of DirichletBC.
    unknown: NodalUnknown
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
    def derivative_as(self) -> Sequence[Operation]:
        return [Copy(source=None, target=f) for f in self.writes]


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenAccelerations(HostOperation):
    """Evaluates the given accelerations, and copies them part by part."""

    held: Any
    targets: Sequence[Function]

    @property
    def reads(self) -> list[Function]:
        return []

    @property
    def writes(self) -> list[Function]:
        return [*self.targets, self.held.increment, self.held.v, self.held.a]

    def run(self) -> None:
        self.held.update()
        for target, part in zip(self.targets, pieces(self.held.a), strict=True):
            copy_into(target, part)


@dataclass(frozen=True, kw_only=True, eq=False)
class PutGiven(HostOperation):
    """Sets the given configuration and velocity."""

    held: Any

    @property
    def reads(self) -> list[Function]:
        return []

    @property
    def writes(self) -> list[Function]:
        return [f for f, _ in self.held.fixed()]

    def run(self) -> None:
        self.held.put()

    @property
    def derivative_as(self) -> Sequence[Operation]:
        return [Copy(source=None, target=f, rows=dofs) for f, dofs in self.held.fixed()]


@dataclass(frozen=True, kw_only=True, eq=False)
class TurnsBefore(HostOperation):
    """Stores the relative rotations of cells, for :class:`TurnCheck`."""

    #: `fdgeom.beams.rod.turns.Turns`.
    turns: Any

    @property
    def reads(self) -> list[Function]:
        return [self.turns.orientation]

    @property
    def writes(self) -> list[Function]:
        return []

    def run(self) -> None:
        self.__dict__["found"] = self.turns.relative()

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
    def derivative_as(self) -> Sequence[Operation]:
        return []
