"""Prescribed (essential) degrees of freedom of unknowns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from firedrake import Form, Function
from ufl.classes import Expr

from fdgeom.data import Field
from fdgeom.operations.copy import Copy
from fdgeom.operations.map import Map
from fdgeom.operations.operation import HostOperation, Operation
from fdgeom.operations.solve import Prescribed, Solve


def dofs_of(bc) -> np.ndarray:
    """The local scalar degrees of freedom of a DirichletBC, numbered in the whole vector space."""
    space = bc.function_space()
    component = space.component
    block = (space if component is None else space.parent).block_size
    held = np.arange(block) if component is None else np.array([component])
    return (block * np.asarray(bc.nodes)[:, None] + held[None, :]).ravel()


@dataclass(frozen=True)
class EssentialValues:
    """Prescribed degrees of freedom of an unknown: (1 - share) old + share target."""

    #: Index of the subspace of the unknown.
    part: int
    #: Local scalar degrees of freedom, ghosts included.
    dofs: np.ndarray
    old: Function
    #: The prescribed new values; None for zero.
    target: Function | None = None
    #: 1 if the unknown is the new value, 0.5 if it is the mean of old and new; see `Stage.reaching`.
    share: float = 1.0
    #: The expression of ``target`` in the time.
    motion: Expr | None = None

    def at_share(self, share: float) -> "EssentialValues":
        """The same degrees of freedom for an unknown at this share of the way to ``target``."""
        return replace(self, share=share)

    def values(self) -> np.ndarray:
        """The prescribed values now, in the order of ``dofs``."""
        old, target = self._fields
        if target is not None and self.share == 1.0:
            return target.at(self.dofs)
        before = (1 - self.share) * old.at(self.dofs)
        return before if target is None else before + self.share * target.at(self.dofs)

    @cached_property
    def _fields(self) -> tuple[Field, Field | None]:
        return Field(self.old), None if self.target is None else Field(self.target)


class GivenValues:
    """Prescribed degrees of freedom of a part of an unknown whose values a caller sets in ``now``."""

    target = None
    #: Whether :meth:`values` is to be called before each solve.
    varies = False

    def __init__(self, part: int, dofs: np.ndarray) -> None:
        self.part, self.dofs, self.now = part, dofs, 0.0

    def at_share(self, share: float) -> "GivenValues":
        """Itself: the values are those of the unknown at any share."""
        return self

    def values(self) -> np.ndarray | float:
        """The prescribed values now."""
        return self.now


@dataclass(frozen=True, kw_only=True, eq=False)
class PrescribedNumbers(HostOperation):
    """Evaluates prescribed values of a solve, such as those of a DirichletBC, which may change."""

    essential: GivenValues
    value: Function
    why_not_compiled = "values of boundary conditions are evaluated in Python before each solve"

    @property
    def reads(self) -> list[Function]:
        return []

    @property
    def writes(self) -> list[Function]:
        return [self.value]

    def run(self) -> None:
        flat = self.value.dat.data_wo_with_halos.reshape(-1)
        flat[self.essential.dofs] = self.essential.values()

    @property
    def derivative_as(self) -> Sequence[Operation]:
        return [Copy(source=None, target=self.value)]


def prescribed(
    essential: Sequence[EssentialValues | GivenValues], unknown: Function, **timed
) -> tuple[list[Operation], list[Prescribed]]:
    """Essential values as those of an operation, and the assignments that compute them before it.

    The latter evaluate a motion at the end of the step.
    """
    maps: list[Operation] = []
    found = []
    for e in essential:
        value = None
        # Numbers (`GivenValues`) depend on nothing.
        if isinstance(e, EssentialValues) and (e.target is not None or e.share != 1.0):
            value = Function(unknown.subfunctions[e.part].function_space(), name="prescribed")
            mean = (1 - e.share) * e.old
            new = mean if e.target is None else mean + e.share * e.target
            if e.motion is not None:
                maps.append(Map(values={e.target: e.motion}, **{**timed, "at": 1.0}))
            maps.append(Map(values={value: new}, **timed))
        elif isinstance(e, GivenValues) and e.varies:
            value = Function(unknown.subfunctions[e.part].function_space(), name="prescribed")
            maps.append(PrescribedNumbers(essential=e, value=value))
        found.append(Prescribed(e.dofs, value, e.part))
    return maps, found


def solve_operations(
    residual: Form,
    unknown: Function,
    essential: Sequence[EssentialValues | GivenValues] = (),
    find: Callable[[], None] | None = None,
) -> list[Operation]:
    """A solve as operations, with the values of prescribed degrees of freedom before it."""
    maps, given = prescribed(essential, unknown)
    return [*maps, Solve(work=residual, unknown=unknown, prescribed=given, find=find)]
