"""What a function on the tape reads and gives: a state and coefficients, put in place and back."""

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
    """Base of what blocks on a tape replay and differentiate.

    ``views`` are what is changed, as its owner has it: perhaps parts of mixed Functions. ``state``
    are these, mixed Functions as a whole, ``inputs`` beside them the other Functions that are
    read, and ``fields`` follow these.
    """

    #: Whether data that change before each step are functions of time.
    samples = False

    def __init__(self, views: Sequence[Function], coefficients: Coefficients) -> None:
        self.views, self._coefficients = list(views), coefficients
        self.state = wholes(self.views)
        self.inputs = wholes([*self.state, *coefficients.functions])
        self.fields = [f for f in coefficients.fields if not keys([f]) & keys(self.inputs)]
        #: What pyadjoint knew the state by after it was last on the tape, and its values.
        self.seen: dict[int, tuple] = {}
        #: The ids of views that are controls by themselves.
        self.joined: set[int] = set()
        #: What it last began from when a tape took it again.
        self.shelf = Shelf()

    def constants(self) -> list[np.ndarray]:
        """The values of the Constants that are read."""
        return [np.array(c.dat.data_ro) for c in self._coefficients.constants]

    def set_constants(self, values: Sequence[np.ndarray]) -> None:
        """Put them in place."""
        for constant, value in zip(self._coefficients.constants, values, strict=True):
            constant.dat.data[...] = value

    @contextmanager
    def holding(self, inputs: Sequence[Function], more: Sequence[Function] = ()) -> Iterator[None]:
        """Context in which the inputs, and what follows them, have these values; and back.

        ``more`` gets its own values back too.
        """
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
        """Make what follows the inputs anew, unless these are what is there."""
        if any(value is not f for f, value in zip(self.inputs, inputs, strict=True)):
            self._coefficients.renew()

    def snapshots(self) -> tuple:
        """By what it is seen afterwards what somebody has set since then; by nothing in general."""
        return ()

    def reached_by(self, wanted: Sequence[Function]) -> set[int]:
        """The keys of these data and of all fields that follow them."""
        return self._coefficients.reached_by(wanted)

    def touched_by(self, functions: Sequence[Function]) -> list[Function]:
        """Which of :attr:`views` are, or are parts of, these."""
        touched = keys(functions)
        return [view for view in self.views if keys([view]) & touched]

    def data(self, functions: Sequence[Function]) -> list[Function]:
        """Those that are no state."""
        own = keys(self.state)
        return [f for f in functions if not keys([f]) & own]

    @property
    def outputs(self) -> list[Function]:
        """The state, and the fields, made anew."""
        return [*self.state, *self.fields]


def wholes(functions: Sequence[Function]) -> list[Function]:
    """Each once; in place of a view of a part of a mixed Function the whole."""
    found: dict[int, Function] = {}
    for f in functions:
        whole = whole_of(f)
        found.setdefault(key(parts(whole)[0]), whole)
    return list(found.values())


def whole_of(function: Function) -> Function:
    """The mixed Function that this is a view of a part of; else itself."""
    if function._ad_floating_active and function._ad_outputs:
        return function._ad_outputs[0]
    return function
