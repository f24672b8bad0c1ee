"""Replay of runs from given values of their inputs, with derivatives."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from firedrake import Function

from fdgeom.adjoint.coefficients import Coefficients
from fdgeom.adjoint.lists import Derivatives, OperationList
from fdgeom.adjoint.values import Kept, Vectors, keys, parts
from fdgeom.compat import whole_of
from fdgeom.data import key
from fdgeom.interrupt import shielded
from fdgeom.operations import Operation, each_part
from fdgeom.operations.dependent import MadeOnce

#: The lists of a run: before its steps, of a step, and after the steps; None without steps.
Lists = tuple[OperationList, OperationList | None, OperationList | None]


class Replay:
    """A run as a function of its inputs: it can be repeated and differentiated.

    A run is a list of operations, then any number of equal steps and another list. Subclasses say how
    it begins (:meth:`origin`, :meth:`at`), how it runs and what its lists are.
    """

    #: Whether data that change before each step count as functions of time.
    samples = False
    #: The name of the run in messages.
    name = "a run"

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
        #: A time step of a tape, and the inputs of its blocks at their last replays, by their ids;
        #: checkpoint schedules drop these too early.
        self.checkpoints: tuple[int, dict[int, list]] = -1, {}
        self._runs: dict = {}
        self._made: dict[tuple, tuple] = {}

    # --- inputs ----------------------------------------------------------------------------------
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
            self._coefficients.refresh()
            live, constants = Kept(each_part([*self.inputs, *self.fields, *more])), self.constants()
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

    # --- a run -----------------------------------------------------------------------------------
    def title(self, steps) -> str:
        """The name of a block of the run in messages."""
        return self.name

    def origin(self, touched: Sequence = ()) -> Any:
        """The present start of a run; ``touched`` are for each snapshot the keys that count as set."""
        raise NotImplementedError

    def at(self, origin, inputs: Sequence[Function], *left) -> AbstractContextManager[None]:
        """Context at the start with these inputs; restores all values and snapshots afterwards."""
        raise NotImplementedError

    def run(self, steps) -> None:
        """Run steps (or whatever the argument means for the subclass) from the present state."""
        raise NotImplementedError

    def _lists(self, origin, steps, reached: set[int]) -> Lists:
        """The lists of the run, at its start or, without steps, where their values are known."""
        return self._list((), reached), None, None

    # The next three are called inside `at`. wanted: data that derivatives are taken by.
    def pull(
        self,
        origin,
        steps,
        cotangents: Vectors,
        wanted: Sequence[Function],
        after_each: Callable[[Vectors], None] | None = None,
    ) -> None:
        """The cotangents of all inputs from those of the outputs.

        ``after_each(cotangents)`` adds cotangents after each step, at the state there.
        """
        self._reverse(origin, steps, Derivatives(cotangents), self.reached_by(wanted), after_each)

    def pull_rates(
        self,
        origin,
        steps,
        cotangents: Vectors,
        rates: Vectors,
        tangents: Vectors,
        wanted: Sequence[Function],
    ) -> None:
        """:meth:`pull`, and its derivative along tangents of all inputs: cotangents and their rates."""
        derivatives = Derivatives(cotangents, rates, tangents)
        self._reverse(origin, steps, derivatives, self.reached_by(wanted))

    def push(self, origin, steps, tangents: Vectors, wanted: Sequence[Function]) -> None:
        """The tangents of the outputs from those of all inputs."""
        reached = self.reached_by(wanted)
        start, step, end = self._lists(origin, steps, reached)
        before = Kept(self._changed(start, step))
        self._tangents(start, tangents)
        if step is not None and end is not None:
            before.restore()
            self._open()
            self._push_steps(steps, step, tangents, reached)
            self._tangents(end, tangents)

    def _reverse(self, origin, steps, d: Derivatives, reached: set[int], after_each=None) -> None:
        start, step, end = self._lists(origin, steps, reached)
        before = Kept(self._changed(start, step))
        given = None if d.tangents is None else d.tangents.copy()
        if step is not None and end is not None:
            if d.tangents is not None:
                self._tangents(start, d.tangents)
                before.restore()
            self._open()
            self._reverse_steps(steps, step, end, d, reached, after_each)
            before.restore()
            self._rewind(origin)
        d.tangents = given
        self._reverse_list(start, d)

    def _rewind(self, origin) -> None:
        """Set the time back to that of the start, which the operations there read."""

    def _open(self) -> None:
        """Run the operations before the first step as the run itself does."""

    def _push_steps(self, steps, step: OperationList, tangents: Vectors, reached) -> None:
        """Take the steps, and replace the tangents before them by those after them."""

    def _reverse_steps(
        self, steps, step: OperationList, end: OperationList, d: Derivatives, reached, after_each
    ) -> None:
        """Replace the cotangents after the last list by those before the steps."""

    @staticmethod
    def _tangents(operations: OperationList, tangents: Vectors) -> None:
        """Perform operations, and set the tangents after them."""
        operations.places.put(tangents)
        operations.linearised.step(0.0, 0.0)
        operations.places.get(tangents)

    @staticmethod
    def _reverse_list(
        operations: OperationList,
        d: Derivatives,
        at: tuple[float, float] = (0.0, 0.0),
        after: Callable[[], None] | None = None,
        seeds: set[int] | None = None,
        *,
        placed: bool = False,
    ) -> None:
        """Perform operations, and replace the cotangents after them by those before them."""
        # after() is called once they have been performed. placed: the tangents are in place.
        trajectory = operations.trajectory(
            d.keys() if seeds is None else seeds, second=d.tangents is not None
        )
        if d.tangents is not None and not placed:
            operations.places.put(d.tangents)
        trajectory.advance(*at)
        if after is not None:
            after()
        trajectory.load(d)
        trajectory.pull()
        trajectory.store(d)

    def _changed(self, start: OperationList, step: OperationList | None) -> list[Function]:
        """The functions that the lists change."""
        return each_part([*start.targets, *(() if step is None else step.targets)])

    def _list(
        self, operations: Sequence[Operation], reached: set[int], *, first: bool = True
    ) -> OperationList:
        """Operations beside the steps; before the ``first`` ones dependent fields are updated."""
        name = tuple(map(id, operations)), frozenset(reached), first
        if name not in self._made:
            fields = self._coefficients.updates(reached) if first else []
            active = reached | keys(self.state)
            # The cache keeps the operations alive, so that no other one gets the id of one.
            found = OperationList([*fields, *operations], active, self._runs)
            self._made[name] = found, operations
        return self._made[name][0]


class ChangeReplay(Replay):
    """A change of a system outside steps, as a function of its inputs."""

    # do() makes the change; `operations` are the same for derivatives.
    def __init__(
        self, name: str, do: Callable[[], None], operations: Sequence[Operation], system
    ) -> None:
        views = list(system.functions().values())
        super().__init__(views, Coefficients(operations, keys(views), system.clocks))
        self.name, self._do, self._operations, self._system = name, do, tuple(operations), system

    def snapshots(self) -> tuple:
        return self._system.consistency.snapshots

    def origin(self, touched: Sequence = ()) -> list:
        """The start: the present values of the Constants."""
        return self.constants()

    @contextmanager
    def at(self, origin: list, inputs: Sequence[Function], *left) -> Iterator[None]:
        snapshots = self.snapshots()
        remembered = [snapshot.values() for snapshot in snapshots]
        with self.holding(inputs, [f for op in self._operations for f in op.writes]):
            self.set_constants(origin)
            self.renew(inputs)
            try:
                yield
            finally:
                for snapshot, values in zip(snapshots, remembered, strict=True):
                    snapshot.remember(values)

    def run(self, steps: None) -> None:
        self._do()
        self._coefficients.refresh()

    def _lists(self, origin, steps, reached):
        return self._list(self._operations, reached), None, None


def wholes(functions: Sequence[Function]) -> list[Function]:
    """The functions, each once, with mixed Functions in place of their parts."""
    found: dict[int, Function] = {}
    for f in functions:
        whole = whole_of(f)
        found.setdefault(key(parts(whole)[0]), whole)
    return list(found.values())
