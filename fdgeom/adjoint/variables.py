"""Block variables of pyadjoint's tape, for Functions that runs read and change."""

import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from checkpoint_schedules import SingleMemoryStorageSchedule
from firedrake import Function
from firedrake.adjoint_utils.blocks import FunctionMergeBlock
from firedrake.adjoint_utils.checkpointing import disk_checkpointing
from pyadjoint.block_variable import BlockVariable
from pyadjoint.overloaded_type import FloatingType
from pyadjoint.tape import get_working_tape, stop_annotating

from fdgeom.adjoint.lists import Kept, keys, parts
from fdgeom.adjoint.replay import Replay
from fdgeom.compat import checkpoint_schedule, known_variable, merge_into_whole, whole_of

#: The block variables of dependent fields that blocks have recomputed.
FOLLOWING: weakref.WeakSet = weakref.WeakSet()


class StateVariable(BlockVariable):
    """A block variable that saves values as arrays, and converts them to a Function only on demand."""

    # Making a Function takes longer than hundreds of steps of a small system, and a run in many blocks
    # that is only recorded needs none. The new variable becomes that of the Function.
    def __init__(self, output: Function) -> None:
        self._kept: Kept | None = None
        self._made = None
        super().__init__(output)
        # As for all Functions.
        self.floating_type = True
        output.block_variable = self

    def keep(self, values: Kept, *, instead: bool = False) -> None:
        """Save the values of the variable, ``instead`` of those of a Function that it has already."""
        if self._made is None or instead:
            self._kept = values

    @property
    def _checkpoint(self):
        if self._kept is not None:
            with stop_annotating():
                self._made = self._kept.copied_to(Function(self.output.function_space()))
            self._kept = None
        return self._made

    @_checkpoint.setter
    def _checkpoint(self, value) -> None:
        self._kept, self._made = None, value

    def save_output(self, overwrite: bool = True) -> None:
        if overwrite or self._kept is None:
            super().save_output(overwrite)


@dataclass
class Known:
    """The block variable of a Function at the time of a snapshot, and its values if no block has them."""

    variable: BlockVariable | None = None
    values: Kept | None = None
    #: Whether the Function counts as a function of time.
    sampled: bool = False
    #: Keys of its parts that the snapshot does not hold, or that count as set.
    without: Set[int] = frozenset()
    block: Callable = lambda: None


def known(snapshot, function: Function) -> Known:
    found = snapshot.known_by.get(id(function), Known())
    block = found.block()
    here = block is not None and block.tape == id(get_working_tape())
    return found if here else Known()


def touched(replay: Replay) -> list[Function]:
    """The parts of the state that a control or an operation on the tape has set since the last steps."""
    return views_set(replay, lambda f: _last(replay, f)[0])


def views_set(replay: Replay, last: Callable) -> list[Function]:
    """The views whose block variable, or that of their mixed Function, is not ``last(function)``."""
    found = [view for view in replay.views if is_set(view, last(view))]
    wholes = {id(whole_of(view)) for view in found}
    more = [f for f in replay.state if is_set(f, last(f)) and id(f) not in wholes]
    return list({id(f): f for f in (*found, *replay.views_of(keys(more)))}.values())


def keys_set(replay: Replay, snapshot) -> set[int]:
    """The keys of the state that an operation on the tape has set since a snapshot was taken."""
    found = keys(views_set(replay, lambda f: known(snapshot, f).variable))
    return found.union(*(known(snapshot, f).without for f in replay.state))


def is_set(function: Function, last: BlockVariable | None) -> bool:
    """Whether a Function has been set since it had the block variable ``last``."""
    variable = known_variable(function)
    if variable is None or variable is last:
        return False
    # A part that was only read has a new variable too, made from the whole.
    return not _is_read(function)


def _is_read(function: Function) -> bool:
    read = function.block.get_outputs() if function.block is not None else ()
    return any(known_variable(function) is output for output in read)


def places(replay: Replay) -> list[BlockVariable]:
    """The block variables of mesh coordinates, and of meshes whose coordinates were set."""
    meshes = [part.function_space().mesh() for f in replay.inputs for part in parts(f)]
    found = []
    for mesh in {id(mesh): mesh for mesh in meshes}.values():
        found.append(mesh.coordinates.block_variable)
        moved = known_variable(mesh)
        if moved is not None and moved.creation_timestep != -1:
            found.append(moved)
    return found


def join(view: Function) -> bool:
    """Make a mixed Function depend on a part of it that is a control; returns whether it does."""
    # Both existed before the recording, so pyadjoint does not know that one is part of the other.
    whole, own = whole_of(view), known_variable(view)
    if whole is view or own is None or own.creation_timestep != -1:
        return False
    above = known_variable(whole)
    if above is None or above.creation_timestep == -1:
        with FloatingType.stop_floating(view):
            merge_into_whole(view)
    return True


def warn_of_reading(replay: Replay) -> None:
    """Warn if a part of a mixed Function is a control and was read between time steps."""
    # With SingleMemoryStorageSchedule Firedrake itself gives a wrong gradient after a replay.
    if not isinstance(checkpoint_schedule(), SingleMemoryStorageSchedule):
        return
    for view in replay.views:
        if id(view) in replay.joined and _is_read(view):
            replay.joined.discard(id(view))
            warnings.warn(
                f"{view.name()}, a part of a mixed Function, is a control and was read between time "
                "steps: with SingleMemoryStorageSchedule gradients are wrong after a replay, as they "
                "are of Firedrake alone. Take another schedule, or make another Function the control "
                f"and assign that to {view.name()}",
                stacklevel=6,
            )


def given(function: Function) -> BlockVariable:
    """A new block variable of a Function unknown to pyadjoint; its present values are given data."""
    if disk_checkpointing():
        return function.create_block_variable()
    variable = StateVariable(function)
    variable.keep(Kept([function]))
    return variable


def meet_others(replay: Replay, whole: Function, touched: Sequence[Function]) -> None:
    """Replace the variable of a mixed Function some of whose other parts changed outside the recording."""
    # Parts set on the tape have been merged by pyadjoint with the former variable of the whole.
    own = [view for view in touched if whole_of(view) is whole and view is not whole]
    if not own or len(own) == len(parts(whole)):
        return
    beneath = _beneath(replay, known_variable(whole))
    last, left = _last(replay, whole)
    with stop_annotating():
        if beneath is last:
            known = left.copied_to(Function(whole.function_space()))
        else:
            known = beneath.saved_output
    same = all(
        np.array_equal(a.dat.data_ro, b.dat.data_ro, equal_nan=True)
        for a, b in zip(parts(known), parts(whole), strict=True)
        if not keys([b]) & keys(own)
    )
    if whole.function_space().comm.allreduce(int(not same)):
        _warn_of_change(whole)
        whole.create_block_variable()
        for view in own:
            with FloatingType.stop_floating(view):
                merge_into_whole(view)


def _beneath(replay: Replay, variable: BlockVariable) -> BlockVariable:
    """The variable of a mixed Function after the last steps, before parts of it were set."""
    for step in reversed(get_working_tape().timesteps):
        for block in reversed(step):
            if getattr(block, "replay", None) is replay:
                return variable
            if isinstance(block, FunctionMergeBlock) and block.get_outputs()[0] is variable:
                variable = block.get_dependencies()[1]
    return variable


def _last(replay: Replay, function: Function) -> tuple:
    """The variable of a function of the state after the last steps, and its values then."""
    variable, values = replay.seen.get(id(function), (lambda: None, None))
    return variable(), values


def refuse_assigned(field: Function) -> None:
    """Raise ``NotImplementedError`` if a dependent field was set on the tape."""
    variable = known_variable(field)
    if variable is None or variable.creation_timestep == -1:
        return
    if variable not in FOLLOWING:
        raise NotImplementedError(
            f"{field.name()} is computed from other Functions, and was set where pyadjoint records: "
            "gradients by its values are not available; set the Functions that it is computed from"
        )


def meet(replay: Replay, function: Function) -> None:
    """Replace the variable of a Function that changed outside the recording, with a warning."""
    variable = known_variable(function)
    if variable is None:
        return
    last, left = _last(replay, function)
    if variable is last:
        same = not left.differs()
    else:
        with stop_annotating():
            saved = variable.saved_output
        same = all(
            np.array_equal(a.dat.data_ro, b.dat.data_ro, equal_nan=True)
            for a, b in zip(parts(saved), parts(function), strict=True)
        )
    if function.function_space().comm.allreduce(int(not same)):
        _warn_of_change(function)
        function.create_block_variable()
    elif variable is last and not disk_checkpointing():
        variable.keep(left)


@contextmanager
def given_after_failure(replay: Replay) -> Iterator[None]:
    """If a run fails, what its completed steps have changed counts as given data at once."""
    # Not for steps of steppers, whose completed steps are a block.
    try:
        yield
    except BaseException:  # Ctrl-C, too, leaves the completed steps
        for f in replay.outputs:
            meet(replay, f)
        raise


def _warn_of_change(function: Function) -> None:
    warnings.warn(
        f"{function.name()} was changed where pyadjoint did not record: what it holds now counts "
        "as given data",
        stacklevel=7,
    )
