"""The unknown of a generalized-α step: an increment of the configuration, and a multiplier."""

from __future__ import annotations

import numpy as np
import ufl
from firedrake import Function, TestFunction, TestFunctions, VectorFunctionSpace, split
from ufl.core.expr import Expr

from fdgeom.solvers.compiled import scalar_space
from fdgeom.solvers.data import Field, fields
from fdgeom.systems.motion.motion import Motion


class AlphaUnknown:
    """The increment D and the scaled multiplier Λ as one unknown.

    Where both have one value in a cell (DG0) they are one vector there, so that the equations are
    seen to be local; else they are the parts of a mixed function.

    Parameters
    ----------
    system : Motion
        What moves.

    Attributes
    ----------
    function : Function
        What the solver solves for.
    D, test : expressions
        The increment and its test function.
    multiplier, nu : expressions or None
        Λ and its test function, where there is a constraint.
    increment, multiplier_values : list of fields
        Their values.
    """

    def __init__(self, system: Motion) -> None:
        self._system, self._constraint = system, system.constraint
        self.is_one_vector = _in_cells(system)
        self.multiplier = self.nu = None
        self.multiplier_values = []
        if self._constraint is None:
            self.function = self._moved = Function(system.space, name="increment")
            self.D, self.test = self.function, TestFunction(system.space)
            self.increment = list(fields(self.function))
        elif self.is_one_vector:
            self._join()
        else:
            space = system.space * self._constraint.space
            self.function = Function(space, name="increment")
            self.D, self.multiplier = split(self.function)
            self.test, self.nu = TestFunctions(space)
            self._moved = self.function.subfunctions[0]
            *self.increment, last = fields(self.function)
            self.multiplier_values = [last]

    def _join(self) -> None:
        shapes = [self._system.space.value_shape, self._constraint.space.value_shape]
        sizes = [_size(s) for s in shapes]
        element = scalar_space(self._system.space).ufl_element()
        space = VectorFunctionSpace(self._system.mesh, element, dim=sum(sizes))
        self.function = Function(space, name="increment")
        self.D, self.multiplier = _cut(self.function, shapes)
        self.test, self.nu = _cut(TestFunction(space), shapes)
        whole = Field(self.function)
        self.increment = [_Columns(whole, 0, shapes[0])]
        self.multiplier_values = [_Columns(whole, sizes[0], shapes[1])]
        self._moved = Function(self._system.space, name="increment")

    def moved(self) -> Function:
        """D as a function of the space of the velocity."""
        if self._constraint is not None and self.is_one_vector:
            (target,), (source,) = fields(self._moved), self.increment
            target.array[...] = source.array
            target.written(ghosts_too=True)
        return self._moved


class _Columns:
    """Some components of a field of vectors, used like a field."""

    def __init__(self, whole: Field, start: int, shape: tuple[int, ...]) -> None:
        self._whole = whole
        columns = whole.array[:, start : start + _size(shape)]
        self.array = columns if shape else columns[:, 0]

    def update_ghosts(self) -> None:
        self._whole.update_ghosts()

    def written(self, ghosts_too: bool = False) -> None:
        self._whole.written(ghosts_too)


def _in_cells(system: Motion) -> bool:
    """Whether all unknowns have one value in each cell, scalars or vectors, and none is given."""
    if system.given is not None:
        return False
    spaces = [system.space]
    if system.constraint is not None:
        spaces.append(system.constraint.space)
    return all(
        len(V) == 1 and len(V.value_shape) <= 1 and V.cell_node_map().arity == 1 for V in spaces
    )


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=int))


def _cut(vector: Expr, shapes) -> list[Expr]:
    """Scalars and vectors, one after another in a vector."""
    found, start = [], 0
    for shape in shapes:
        entries = [vector[start + k] for k in range(_size(shape))]
        found.append(ufl.as_vector(entries) if shape else entries[0])
        start += len(entries)
    return found
