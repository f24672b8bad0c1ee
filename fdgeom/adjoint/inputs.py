"""Inputs and outputs of blocks on the tape: state, coefficients and dependent fields."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from firedrake import Function

from fdgeom.adjoint.coefficients import Coefficients
from fdgeom.adjoint.shelf import Shelf
from fdgeom.adjoint.values import Kept, keys, parts
from fdgeom.interrupt import shielded
from fdgeom.solvers import key
from fdgeom.solvers.derived import MadeOnce


class Inputs:
    """Base class of the functions that blocks on a tape replay and differentiate."""

    #: Whether data that change before each step count as functions of time.
    samples = False

    def __init__(self, views: Sequence[Function], coefficients: Coefficients) -> None:
        #: The functions that are changed, as their owner has them: some are parts of mixed Functions.
        self.views, self._coefficients = list(views), coefficients
        #: The same with mixed Functions in place of their parts.
        self.state = wholes(self.views)
        #: The state and the other Functions that are read.
        self.inputs = wholes([*self.state, *coefficients.functions])
        #: Dependent fields of the inputs.
        self.fields = [f for f in coefficients.fields if not keys([f]) & keys(self.inputs)]
        #: The block variables of the state after the last block on the tape, and its values then.
        self.seen: dict[int, tuple] = {}
        #: The ids of views that are controls themselves.
        self.joined: set[int] = set()
        #: The inputs of the last replays.
        self.shelf = Shelf()

    def constants(self) -> list[np.ndarray]:
        """The values of the Constants that are read."""
        return [np.array(c.dat.data_ro) for c in self._coefficients.constants]

    def set_constants(self, values: Sequence[np.ndarray]) -> None:
        """Set the Constants to these values."""
        for constant, value in zip(self._coefficients.constants, values, strict=True):
            constant.dat.data[...] = value

    @contextmanager
    def holding(self, inputs: Sequence[Function], more: Sequence[Function] = ()) -> Iterator[None]:
        """Context in which the inputs have these values; restores them, dependent fields and ``more``."""
        with MadeOnce.replayed():
            yield from self._holding(inputs, more)

    def _holding(self, inputs, more) -> Iterator[None]:
        self._coefficients.refresh()
        held = [*self.inputs, *self.fields, *more]
        live = Kept(list({key(part): part for f in held for part in parts(f)}.values()))
        constants = self.constants()
        try:
            for f, value in zip(self.inputs, inputs, strict=True):
                if value is not f:
                    for part, new in zip(parts(f), parts(value), strict=True):
                        part.dat.data_wo[...] = new.dat.data_ro
            yield
        finally:
            with shielded():
                live.restore()
                self.set_constants(constants)
                self._coefficients.accept()

    def renew(self, inputs: Sequence[Function]) -> None:
        """Recompute dependent fields, unless the inputs are the live Functions."""
        if any(value is not f for f, value in zip(self.inputs, inputs, strict=True)):
            self._coefficients.renew()

    def snapshots(self) -> tuple:
        """The snapshots that detect values set since then; none in general."""
        return ()

    def reached_by(self, wanted: Sequence[Function]) -> set[int]:
        """The keys of data and of all fields that depend on them."""
        return self._coefficients.reached_by(wanted)

    def touched_by(self, functions: Sequence[Function]) -> list[Function]:
        """The :attr:`views` that are these functions or parts of them."""
        touched = keys(functions)
        return [view for view in self.views if keys([view]) & touched]

    def data(self, functions: Sequence[Function]) -> list[Function]:
        """The functions that are not part of the state."""
        own = keys(self.state)
        return [f for f in functions if not keys([f]) & own]

    @property
    def outputs(self) -> list[Function]:
        """The state and the dependent fields."""
        return [*self.state, *self.fields]


def wholes(functions: Sequence[Function]) -> list[Function]:
    """The functions, each once, with mixed Functions in place of their parts."""
    found: dict[int, Function] = {}
    for f in functions:
        whole = whole_of(f)
        found.setdefault(key(parts(whole)[0]), whole)
    return list(found.values())


def whole_of(function: Function) -> Function:
    """The mixed Function that a function is a part of; else the function itself."""
    if function._ad_floating_active and function._ad_outputs:
        return function._ad_outputs[0]
    return function
