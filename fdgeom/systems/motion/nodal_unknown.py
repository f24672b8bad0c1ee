"""The unknown of solves for a motion: an increment (or velocity, acceleration) and multipliers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import ufl
from firedrake import Function, TestFunction, VectorFunctionSpace, split
from ufl.core.expr import Expr

from fdgeom.data import Field, fields
from fdgeom.forms import flatten
from fdgeom.operations import (
    Copy,
    HostOperation,
    Map,
    Operation,
    Prescribed,
    parts,
)
from fdgeom.systems.motion.motion import Motion


def _joins(motion: Motion) -> bool:
    """Whether solves use one vector of increment and multiplier at each node."""
    spaces = motion.space, motion.constraint.space
    along_chain = motion.traits.is_chain and spaces[0].node_set is spaces[1].node_set
    return along_chain or (
        motion.held is None
        and all(
            len(V) == 1 and len(V.value_shape) <= 1 and V.cell_node_map().arity == 1 for V in spaces
        )
    )


class NodalUnknown:
    """A vector of the motion's space and the multiplier of its conditions as one unknown: joined at
    each node along chains of nodes, and where all unknowns are DG0, scalars or vectors, and none is
    given; else the parts of a mixed function.
    """

    # Joined, equations of cells are recognised as local, and those along rods have a narrow band.
    # tests: makes the test function of a space; a Function where a solve is to take the work as it is.
    def __init__(
        self, motion: Motion, name: str = "increment", *, tests: Callable = TestFunction
    ) -> None:
        condition, whole = motion.constraint, motion.space
        self._has_multiplier = condition is not None
        self._shapes = [whole.value_shape]
        self.is_joined = condition is not None and _joins(motion)
        if self.is_joined:
            self._shapes.append(condition.space.value_shape)
            element = whole.ufl_element()
            scalar = element.sub_elements[0] if whole.value_shape else element
            whole = VectorFunctionSpace(motion.mesh, scalar, dim=sum(map(_size, self._shapes)))
        elif self._has_multiplier:
            whole = whole * condition.space
        self.function, self.whole_test = Function(whole, name=name), tests(whole)
        self.vector, self.multiplier = self._divided(self.function)
        self.test, self.nu = self._divided(self.whole_test)
        self._fields: dict[Function, tuple[Field, ...]] = {}
        self._held = [] if motion.held is None else motion.held.dofs
        self._idle = [] if condition is None else condition.idle

    def hold(self, values: Function) -> None:
        """Set the held degrees of freedom of the vector to those of a function."""
        places = zip(self._fields_of(self.values), self._fields_of(values), strict=False)
        for given, dofs, (place, part) in zip(self.prescribed, self._held, places, strict=False):
            place.array.reshape(-1)[given.dofs] = part.at(dofs)
            place.written(ghosts_too=True)

    def _fields_of(self, function: Function) -> tuple[Field, ...]:
        if function not in self._fields:
            self._fields[function] = fields(function)
        return self._fields[function]

    @cached_property
    def values(self) -> Function:
        """A function like the unknown with the values that :meth:`hold` has set; zero elsewhere."""
        return Function(self.function.function_space(), name="given values")

    @cached_property
    def prescribed(self) -> list[Prescribed]:
        """The degrees of freedom that are given: those of the vector, then multipliers of nothing."""
        own = parts(self.values) if self._held else []
        held = enumerate(self._held)
        found = [Prescribed(self._number(dofs), own[k], k) for k, dofs in held]
        if len(self._idle):
            idle = self._number(self._idle, 1)
            found.append(Prescribed(idle, part=0 if self.is_joined else 1))
        return found

    # --- for assignments -------------------------------------------------------------------------
    @property
    def parts(self) -> list[Expr]:
        """The parts of the vector's space, each at nodes of its own."""
        if self.is_joined:
            return [self.vector]
        found = parts(self.function)
        return list(found if self.multiplier is None else found[:-1])

    @property
    def multiplier_part(self) -> Expr | None:
        """The multiplier, at nodes of its own."""
        joined = self.is_joined or self.multiplier is None
        return self.multiplier if joined else self.function.subfunctions[-1]

    @property
    def no_multiplier(self) -> Expr | None:
        """A multiplier of zero, for :meth:`assignments`."""
        return None if self.multiplier is None else 0 * self.multiplier

    def assignments(
        self, function: Function, vector: Sequence[Expr], multiplier: Expr | None
    ) -> list[dict[Function, Expr]]:
        """Assignments to a function like the unknown: a group for each part of the vector, and one
        more where the multiplier has nodes of its own.
        """
        if self.is_joined:
            return [{function: flatten([*vector, multiplier])}]
        values = [*vector] if multiplier is None else [*vector, multiplier]
        return [{f: value} for f, value in zip(parts(function), values, strict=True)]

    def without_increment(self, guess: Function) -> Expr:
        """A guess with a zero vector; the multiplier stays."""
        vector, *rest = self.cut(guess)
        return flatten([0 * vector, *rest])

    # --- one vector a node -----------------------------------------------------------------------
    def _divided(self, whole: Function) -> Sequence[Any]:
        """Vector and multiplier of a Function or an argument; None for the multiplier without one."""
        if self.is_joined:
            return self.cut(whole)
        return split(whole) if self._has_multiplier else (whole, None)

    def cut(self, whole: Expr) -> list[Expr]:
        """Scalars and vectors, one after another in a vector."""
        found, start = [], 0
        for shape in self._shapes:
            entries = [whole[start + k] for k in range(_size(shape))]
            found.append(ufl.as_vector(entries) if shape else entries[0])
            start += len(entries)
        return found

    def _number(self, dofs: np.ndarray, part: int = 0) -> np.ndarray:
        """Degrees of freedom of the vector or the multiplier among those of the unknown."""
        if not self.is_joined:
            return dofs
        sizes = [_size(shape) for shape in self._shapes]
        return sum(sizes) * (dofs // sizes[part]) + sum(sizes[:part]) + dofs % sizes[part]


@dataclass(frozen=True, kw_only=True, eq=False)
class PrescribeMotion(HostOperation):
    """Evaluates the given motion of degrees of freedom, and prescribes their increment."""

    # Given values at a few nodes, by kernels of DirichletBC.
    unknown: NodalUnknown
    #: The motion's `Held`.
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


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=int))
