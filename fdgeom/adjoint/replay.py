"""Replay of runs from given values of their inputs, with derivatives."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from firedrake import Constant, Function

from fdgeom.adjoint.coefficients import Coefficients
from fdgeom.adjoint.lists import Derivatives, Kept, OperationList, Vectors, keys, parts
from fdgeom.compat import whole_of
from fdgeom.data import Snapshot, key
from fdgeom.execution.options import REVERSE_SWEEP
from fdgeom.interrupt import shielded
from fdgeom.operations import Operation
from fdgeom.operations.dependent import MadeOnce, snapshot_of


@dataclass
class Origin:
    """The start of a run, beside the values of the inputs."""

    #: Constants, and initial guesses of iterations.
    given: Kept
    #: Keys of functions that count as set, perhaps to the values that they had already.
    counts_as_set: Set[int] = frozenset()
    #: The result, for runs that keep it.
    found: Kept | None = None


class Replay:
    """A run as a function of its inputs: it can be repeated and differentiated.

    Subclasses say how it begins, how it runs, and its operations.
    """

    #: Whether data that change before each step count as functions of time.
    samples = False
    #: The keys that a run saves anew in its snapshots; None: all of them.
    saves: Set[int] | None = None
    #: The name of the run in messages.
    name = "a run"

    # more: Functions and Constants beside the inputs that a run begins with. changed: other Functions
    # that it changes.
    def __init__(
        self,
        views: Sequence[Function],
        coefficients: Coefficients,
        more: Sequence[Function | Constant] = (),
        changed: Sequence[Function] = (),
    ) -> None:
        self._begins_with, self._changed = [*coefficients.constants, *more], changed
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
        self._made: dict[str, dict[Any, tuple]] = {}

    # --- inputs ----------------------------------------------------------------------------------
    def snapshots(self) -> tuple:
        """The snapshots that detect values set since then; none in general."""
        return ()

    def others(self) -> list[Snapshot]:
        """The other snapshots that a run takes."""
        return []

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
        self._standing = Origin(Kept(self._begins_with))
        return self._standing

    @cached_property
    def _live(self) -> Snapshot:
        """The values outside of :meth:`at`."""
        functions = *self.inputs, *self.fields, *self._changed
        return snapshot_of([*functions, *self._begins_with])

    @contextmanager
    def at(
        self,
        origin: Any,
        inputs: Sequence[Function],
        left: Mapping[tuple[int, int], np.ndarray] = MappingProxyType({}),
    ) -> Iterator[None]:
        """Context at the start with these inputs; restores all values and snapshots afterwards.

        ``left`` are other values of snapshots, by their number and the key of the part.
        """
        dependents = self._coefficients.dependents
        remembered = [(s, s.values()) for s in (*self.snapshots(), *self.others())]
        with MadeOnce.replayed():
            dependents.refresh()
            made = [dependent.made.values() for dependent in dependents]
            self._live.take()
            try:
                self._standing = origin
                origin.given.restore()
                pairs = zip(self.inputs, inputs, strict=True)
                given = [(f, value) for f, value in pairs if value is not f]
                for f, value in given:
                    for part, new in zip(parts(f), parts(value), strict=True):
                        part.dat.data_wo[...] = new.dat.data_ro
                self._stand(origin)
                for dependent in dependents if given else ():
                    dependent.renew()
                self._set_snapshots(origin, left)
                yield
            finally:
                with shielded():
                    self._live.restore()
                    for dependent, values in zip(dependents, made, strict=True):
                        dependent.accept(values)
                    for snapshot, values in remembered:
                        snapshot.remember(values)

    def _stand(self, origin: Any) -> None:
        """Go to a start, except for inputs and Constants."""

    def _set_snapshots(self, origin: Any, left: Mapping[tuple[int, int], np.ndarray]) -> None:
        """Set the values that the snapshots have at a start."""

    def run(self, steps) -> None:
        """Run steps (or whatever the argument means for the subclass) from the present state."""
        raise NotImplementedError

    def completed(self, origin) -> int:
        """The number of steps that a failed run has completed; none in general."""
        return 0

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
        trajectory, places = operations.trajectory(
            d.keys() if seeds is None else seeds, second=d.tangents is not None
        )
        if d.tangents is not None and not placed:
            operations.places.put(d.tangents)
        trajectory.advance(*at)
        if after is not None:
            after()
        d.put(places)
        trajectory.pull()
        d.get(places)

    def _list(self, operations: Sequence[Operation], reached: set[int]) -> OperationList:
        """Operations beside the steps, after the updates of dependent fields."""

        def make() -> OperationList:
            every = [*self._coefficients.updates(reached), *operations]
            return OperationList(every, reached | keys(self.state), self._runs)

        name = tuple(map(id, operations)), frozenset(reached)
        return self.once("lists", name, make, alive=operations)

    def once(
        self, kind: str, name: Any, make: Callable, *, alive: Any = None, most: int = 0
    ) -> Any:
        """The cached result of ``make()``; ``most``, if positive, limits the number of one kind."""
        # alive: objects whose ids are in the name, so that no other ones get these ids.
        made = self._made.setdefault(kind, {})
        if name not in made:
            while 0 < most <= len(made):
                del made[next(iter(made))]
            made[name] = make(), alive
        return made[name][0]


class ChangeReplay(Replay):
    """A change of a system outside steps, or of dependent fields alone, as a function of its inputs."""

    # do() makes the change; `operations` are the same for derivatives, without those of dependent fields.
    # read: dependent fields that change.
    def __init__(
        self, name: str, do: Callable[[], None], operations: Sequence[Operation], system, read=()
    ) -> None:
        state = (*system.functions().values(), *system.consistency.followers().values())
        views = list(state) if operations else []
        clocks = system.model.clocks
        written = [f for op in operations for f in op.writes]
        found = Coefficients(operations, keys(views), clocks, read)
        super().__init__(views, found, clocks, written)
        self.name, self._do, self._operations, self._system = name, do, tuple(operations), system

    @property
    def outputs(self):
        # Unchanged fields would count as set before the next steps.
        written = keys(self._changed)
        return [*(f for f in self.state if keys([f]) & written), *self.fields]

    def snapshots(self) -> tuple:
        return self._system.consistency.snapshots if self._operations else ()

    def run(self, steps: None) -> None:
        self._do()
        self._coefficients.dependents.refresh()

    def _operations_of(self, origin, steps, reached):
        return self._list(self._operations, reached)


def wholes(functions: Sequence[Function]) -> list[Function]:
    """The functions, each once, with mixed Functions in place of their parts."""
    found: dict[int, Function] = {}
    for f in functions:
        whole = whole_of(f)
        found.setdefault(key(parts(whole)[0]), whole)
    return list(found.values())
