"""Replay of runs from given values of their inputs, with derivatives."""

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from firedrake import Constant, Function

from fdgeom.adjoint.coefficients import Coefficients
from fdgeom.adjoint.lists import Derivatives, OperationList
from fdgeom.adjoint.values import Kept, Vectors, keys, parts
from fdgeom.compat import whole_of
from fdgeom.data import key
from fdgeom.execution.options import REVERSE_SWEEP
from fdgeom.interrupt import shielded
from fdgeom.operations import Operation, each_part
from fdgeom.operations.dependent import MadeOnce


class Replay:
    """A run as a function of its inputs: it can be repeated and differentiated.

    Subclasses say how it begins (:meth:`origin`, :meth:`at`), how it runs, and its operations.
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
    def given(self, more: Sequence[Function | Constant] = ()) -> Kept:
        """The present values of the Constants that are read, and of ``more``."""
        return Kept([*self._coefficients.constants, *more])

    @contextmanager
    def holding(self, inputs: Sequence[Function], more: Sequence[Function] = ()) -> Iterator[None]:
        """Context in which the inputs have these values; restores them, dependent fields and ``more``."""
        with MadeOnce.replayed():
            self._coefficients.refresh()
            live = self.given(each_part([*self.inputs, *self.fields, *more]))
            try:
                for f, value in zip(self.inputs, inputs, strict=True):
                    if value is not f:
                        for part, new in zip(parts(f), parts(value), strict=True):
                            part.dat.data_wo[...] = new.dat.data_ro
                yield
            finally:
                with shielded():
                    live.restore()
                    for dependent in self._coefficients.dependents:
                        dependent.accept()

    def renew(self, inputs: Sequence[Function]) -> None:
        """Recompute dependent fields, unless the inputs are the live Functions."""
        if any(value is not f for f, value in zip(self.inputs, inputs, strict=True)):
            for dependent in self._coefficients.dependents:
                dependent.renew()

    def snapshots(self) -> tuple:
        """The snapshots that detect values set since then; none in general."""
        return ()

    def reached_by(self, wanted: Sequence[Function]) -> set[int]:
        """The keys of data and of all fields that depend on them."""
        return self._coefficients.reached_by(wanted)

    def views_of(self, wanted: Set[int]) -> list[Function]:
        """The :attr:`views` with some of these keys."""
        return [view for view in self.views if keys([view]) & wanted]

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

    def _operations_of(self, origin, steps, reached: set[int]) -> OperationList:
        """The operations of the run, where their values are known."""
        raise NotImplementedError

    # The next two are called inside `at`. wanted: data that derivatives are taken by.
    @REVERSE_SWEEP
    def pull(self, origin, steps, d: Derivatives, wanted: Sequence[Function]) -> None:
        """The cotangents of all inputs in place of those of the outputs.

        With tangents, those of all inputs, also the derivative along these: cotangents and rates.
        """
        self._reverse_list(self._operations_of(origin, steps, self.reached_by(wanted)), d)

    def push(self, origin, steps, tangents: Vectors, wanted: Sequence[Function]) -> None:
        """The tangents of the outputs in place of those of all inputs."""
        self._tangents(self._operations_of(origin, steps, self.reached_by(wanted)), tangents)

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

    def origin(self, touched: Sequence = ()) -> Kept:
        """The start: the present values of the Constants."""
        return self.given()

    @contextmanager
    def at(self, origin: Kept, inputs: Sequence[Function], *left) -> Iterator[None]:
        snapshots = self.snapshots()
        remembered = [snapshot.values() for snapshot in snapshots]
        with self.holding(inputs, [f for op in self._operations for f in op.writes]):
            origin.restore()
            self.renew(inputs)
            try:
                yield
            finally:
                for snapshot, values in zip(snapshots, remembered, strict=True):
                    snapshot.remember(values)

    def run(self, steps: None) -> None:
        self._do()
        self._coefficients.refresh()

    def _operations_of(self, origin, steps, reached):
        return self._list(self._operations, reached)


def wholes(functions: Sequence[Function]) -> list[Function]:
    """The functions, each once, with mixed Functions in place of their parts."""
    found: dict[int, Function] = {}
    for f in functions:
        whole = whole_of(f)
        found.setdefault(key(parts(whole)[0]), whole)
    return list(found.values())
