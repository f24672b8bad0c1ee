"""Blocks of pyadjoint's tape for steps and other changes of a state."""

import warnings
import weakref
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from checkpoint_schedules import SingleMemoryStorageSchedule
from firedrake import Function
from firedrake.adjoint_utils.blocks import FunctionMergeBlock
from firedrake.adjoint_utils.checkpointing import disk_checkpointing, maybe_disk_checkpoint
from pyadjoint.block_variable import BlockVariable
from pyadjoint.overloaded_type import FloatingType
from pyadjoint.tape import get_working_tape, stop_annotating

from fdgeom.adjoint.replay import ChangeReplay, Replay, whole_of
from fdgeom.adjoint.state_variable import StateVariable
from fdgeom.adjoint.steps import Origin, StepReplay
from fdgeom.adjoint.values import Kept, Vectors, cotangent_of, keys, parts
from fdgeom.solvers import key
from fdgeom.solvers.petsc_messages import REVERSE_SWEEP
from fdgeom.taping import PreparedBlock

#: The block variables of dependent fields that blocks have recomputed.
_FOLLOWING: weakref.WeakSet = weakref.WeakSet()
NO_PLACES = (
    "gradients by the coordinates of a mesh are not there: fdgeom's steps and equilibria read them, and "
    "only their values. Take such gradients by finite differences of whole runs"
)


class ReplayBlock(PreparedBlock):
    """A block that replays steps of a stepper bit by bit, and differentiates them."""

    # The block depends on the state and on all Functions that the steps read. `steps` is the number of
    # steps, or, for other replays, the argument of their `run`.
    def __init__(self, replay: Replay, steps: int) -> None:
        super().__init__()
        self._replay, self._steps = replay, steps
        #: The id of its tape.
        self.tape = id(get_working_tape())
        _warn_of_reading(replay)
        self._touched = _touched(replay)
        #: For each snapshot: keys of the state that an operation on the tape has set since then.
        self._set = [
            keys(_views_set(replay, lambda f, s=snapshot: _known(s, f).variable))
            for snapshot in replay.snapshots()
        ]
        for f in replay.fields:
            _refuse_assigned(f)
        for f in replay.state:
            _meet_others(replay, f, self._touched)
        for f in replay.inputs:
            _meet(replay, f)
            known = f._block_variable() or _given(f)  # a Function has a weak reference to it
            self.add_dependency(known.output, no_duplicates=True)
        self._inputs = tuple(replay.inputs)
        self._add_left(replay)
        self._read = len(self._dependencies)
        # Coordinates are dependencies so that derivatives by them are refused.
        self._dependencies += _places(replay)
        self._timestep = get_working_tape().latest_timestep

    def _add_left(self, replay: Replay) -> None:
        """Depend on the values before they were set on the tape, with which replays compare."""
        # Pairs of the number of the snapshot and the Function.
        self._left: list[tuple[int, Function]] = []
        for n, snapshot in enumerate(replay.snapshots()):
            for f in replay.inputs:
                known = _known(snapshot, f)
                variable = known.variable
                if variable is None or variable is f._block_variable():
                    continue
                if known.values is not None:
                    variable.keep(known.values)
                tape = get_working_tape()
                tape.add_to_checkpointable_state(variable, variable.last_use)
                variable.last_use = tape.latest_timestep
                self._dependencies.append(variable)
                self._left.append((n, f))

    def _set_of_data(self, *, all_of_them: bool = False) -> list[set[int]]:
        """For each snapshot the keys of data that an operation on the tape has set since then."""
        # Data that count as functions of time are left out, unless all_of_them.
        data = self._replay.data(self._replay.inputs)
        known = [[(f, _known(s, f)) for f in data] for s in self._replay.snapshots()]
        return [
            keys(f for f, k in found if (all_of_them or not k.sampled) and _is_set(f, k.variable))
            for found in known
        ]

    def take(self) -> None:
        """Run the steps, and add the block with its outputs to the tape."""
        replay = self._replay
        with stop_annotating():
            both = zip(self._set, self._set_of_data(), strict=True)
            self._origin = replay.origin([state | data for state, data in both])
            sampled = set()
            if self._steps == 1 and replay.samples:
                sampled.update(*self._set_of_data(all_of_them=True))
            replay.run(self._steps)
        get_working_tape().add_block(self)
        for f in replay.outputs:
            self.add_output(StateVariable(f))
        _FOLLOWING.update(f.block_variable for f in replay.fields)
        replay.seen = {
            id(f): (weakref.ref(f.block_variable), Kept([f])) for f in replay.outputs
        } | {
            id(f): (weakref.ref(f._block_variable()), None)
            for f in replay.views
            if f._block_variable() is not None and whole_of(f) is not f
        }
        for snapshot in replay.snapshots():
            self._note(snapshot, sampled)

    def _note(self, snapshot, sampled: Set[int]) -> None:
        """Save with a snapshot the block variables of the Functions whose values it holds now."""
        names, changed = set(snapshot.keys()), snapshot.changed_keys()
        for f in (*self._replay.inputs, *self._replay.views):
            own, variable = keys([f]) & names, f._block_variable()
            if own and not own & changed and variable is not None:
                values = self._replay.seen.get(id(f), (None, None))[1]
                snapshot.known_by[id(f)] = _Known(
                    variable, values, bool(own & sampled), weakref.ref(self)
                )

    def __str__(self) -> str:
        return self._replay.title(self._steps)

    # --- again -----------------------------------------------------------------------------------
    def prepare_recompute_component(self, inputs, relevant_outputs):
        self._replay.checkpoints.put(self._timestep, self, inputs[: self._read])
        with self._begun(inputs):
            self._replay.run(self._steps)
            return [f.copy(deepcopy=True) for f in self._replay.outputs]

    def recompute_component(self, inputs, block_variable, idx, prepared):
        return maybe_disk_checkpoint(prepared[idx])

    def _at(self, inputs):
        """Context at the start of the steps, also where a schedule has dropped the checkpoints of inputs."""
        kept = self._replay.checkpoints.of(self)
        found = []
        read = self.get_dependencies()[: self._read]
        for k, (variable, value) in enumerate(zip(read, inputs, strict=False)):
            if variable.checkpoint is None and kept is None:
                raise RuntimeError(
                    f"the schedule of checkpoints keeps nothing that {self} began from, and does not "
                    "take them again before it asks for their derivative: choose another schedule"
                )
            found.append(value if variable.checkpoint is not None else kept[k])
        return self._begun(found)

    def _begun(self, values):
        """Context of the replay in which the dependencies of the block have these values."""
        count = len(self._inputs)
        if not self._left:
            return self._replay.at(self._origin, values[:count])
        left = {
            (n, key(part)): np.array(value.dat.data_ro_with_halos)
            for (n, f), whole in zip(self._left, values[count : self._read], strict=True)
            for part, value in zip(parts(f), parts(whole), strict=True)
        }
        return self._replay.at(self._origin, values[:count], left)

    # --- derivatives -----------------------------------------------------------------------------
    @REVERSE_SWEEP
    def prepare_evaluate_adj(self, inputs, adj_inputs, relevant_dependencies):
        relevant_dependencies = self._of_inputs(relevant_dependencies)
        wanted = [self._inputs[k] for k, _ in relevant_dependencies]
        cotangents = Vectors()
        for f, value in zip(self._replay.outputs, adj_inputs, strict=True):
            cotangents.add_all(f, value)
        with self._at(inputs):
            origin = self._origin_for(wanted)
            self._replay.pull(origin, self._steps, cotangents, self._replay.data(wanted))
        return {
            k: cotangents.read_all(self._inputs[k], cotangent_of(self._inputs[k]))
            for k, _ in relevant_dependencies
        }

    def _origin_for(self, functions: Sequence[Function]):
        """The start of the steps, with those jumps only that matter for derivatives by these functions."""
        if not isinstance(self._origin, Origin):
            return self._origin
        return replace(self._origin, unseen=self._origin.unseen & keys(functions))

    def _of_inputs(self, dependencies: list) -> list:
        """The dependencies that have derivatives; earlier values and coordinates have none."""
        if any(d.is_control_dependent for k, d in dependencies if k >= self._read):
            raise NotImplementedError(NO_PLACES)
        return [(k, d) for k, d in dependencies if k < len(self._inputs)]

    def prepare_evaluate_tlm(self, inputs, tlm_inputs, relevant_outputs):
        if any(value is not None for value in tlm_inputs[self._read :]):
            raise NotImplementedError(NO_PLACES)
        tangents = Vectors()
        given = [(f, v) for f, v in zip(self._inputs, tlm_inputs, strict=False) if v is not None]
        for f, value in given:
            tangents.add_all(f, value)
        moved = [f for f, _ in given]
        with self._at(inputs):
            origin = self._origin_for(moved)
            self._replay.push(origin, self._steps, tangents, self._replay.data(moved))
        return [tangents.read_all(f, Function(f.function_space())) for f in self._replay.outputs]

    def prepare_evaluate_hessian(self, inputs, hessian_inputs, adj_inputs, relevant_dependencies):
        cotangents, rates, tangents = Vectors(), Vectors(), Vectors()
        for f, bar, rate in zip(self._replay.outputs, adj_inputs, hessian_inputs, strict=True):
            cotangents.add_all(f, bar)
            rates.add_all(f, rate)
        relevant_dependencies = self._of_inputs(relevant_dependencies)
        dependencies = self.get_dependencies()[: len(self._inputs)]
        moved = [
            f for f, v in zip(self._inputs, dependencies, strict=True) if v.tlm_value is not None
        ]
        for f, variable in zip(self._inputs, dependencies, strict=True):
            tangents.add_all(f, variable.tlm_value)
        asked = [self._inputs[k] for k, _ in relevant_dependencies]
        by = list({id(f): f for f in (*asked, *moved)}.values())
        with self._at(inputs):
            origin, wanted = self._origin_for(by), self._replay.data(by)
            self._replay.pull_rates(origin, self._steps, cotangents, rates, tangents, wanted)
        return {
            k: rates.read_all(self._inputs[k], cotangent_of(self._inputs[k]))
            for k, _ in relevant_dependencies
        }


def take_on_tape(stepper, steps: int) -> None:
    """Run steps of a stepper and put them on the working tape."""
    with stop_annotating():
        replay = replay_of(stepper)
    put_on_tape(replay, steps)


def record_change(name: str, do, operations, system) -> None:
    """Run operations that change a system and put them on the working tape."""
    with stop_annotating():
        replay = ChangeReplay(name, do, operations, system)
    put_on_tape(replay, None)


def put_on_tape(replay, steps) -> None:
    """Run a replay and put it on the working tape."""
    with stop_annotating():
        for view in replay.views:
            if _join(view):
                replay.joined.add(id(view))
    ReplayBlock(replay, steps).take()


def replay_of(stepper) -> StepReplay:
    """The replay of a stepper's steps, made once."""
    if stepper.replay is None:
        stepper.replay = StepReplay(stepper)
    return stepper.replay


@dataclass
class _Known:
    """The block variable of a Function at the time of a snapshot, and its values if no block has them."""

    variable: BlockVariable | None = None
    values: Kept | None = None
    #: Whether the Function counts as a function of time.
    sampled: bool = False
    block: Callable = lambda: None


def _known(snapshot, function: Function) -> _Known:
    found = snapshot.known_by.get(id(function), _Known())
    block = found.block()
    here = block is not None and block.tape == id(get_working_tape())
    return found if here else _Known()


def _touched(replay: Replay) -> list[Function]:
    """The parts of the state that a control or an operation on the tape has set since the last steps."""
    return _views_set(replay, lambda f: _last(replay, f)[0])


def _views_set(replay: Replay, last: Callable) -> list[Function]:
    """The views whose block variable, or that of their mixed Function, is not ``last(function)``."""
    found = [view for view in replay.views if _is_set(view, last(view))]
    wholes = {id(whole_of(view)) for view in found}
    more = [f for f in replay.state if _is_set(f, last(f)) and id(f) not in wholes]
    return list({id(f): f for f in (*found, *replay.touched_by(more))}.values())


def _is_set(function: Function, last: BlockVariable | None) -> bool:
    """Whether a Function has been set since it had the block variable ``last``."""
    variable = function._block_variable()
    if variable is None or variable is last:
        return False
    # A part that was only read has a new variable too, made from the whole.
    return not _is_read(function)


def _is_read(function: Function) -> bool:
    read = function.block.get_outputs() if function.block is not None else ()
    return any(function._block_variable() is output for output in read)


def _places(replay: Replay) -> list[BlockVariable]:
    """The block variables of mesh coordinates, and of meshes whose coordinates were set."""
    meshes = [part.function_space().mesh() for f in replay.inputs for part in parts(f)]
    found = []
    for mesh in {id(mesh): mesh for mesh in meshes}.values():
        found.append(mesh.coordinates.block_variable)
        moved = mesh._block_variable()
        if moved is not None and moved.creation_timestep != -1:
            found.append(moved)
    return found


def _join(view: Function) -> bool:
    """Make a mixed Function depend on a part of it that is a control; returns whether it does."""
    # Both existed before the recording, so pyadjoint does not know that one is part of the other.
    whole, own = whole_of(view), view._block_variable()
    if whole is view or own is None or own.creation_timestep != -1:
        return False
    above = whole._block_variable()
    if above is None or above.creation_timestep == -1:
        with FloatingType.stop_floating(view):
            view._ad_annotate_output_block()
    return True


def _warn_of_reading(replay: Replay) -> None:
    """Warn if a part of a mixed Function is a control and was read between time steps."""
    # With SingleMemoryStorageSchedule Firedrake itself gives a wrong gradient after a replay.
    manager = get_working_tape()._checkpoint_manager
    if manager is None or not isinstance(manager._schedule, SingleMemoryStorageSchedule):
        return
    for view in replay.views:
        if id(view) in replay.joined and _is_read(view):
            replay.joined.discard(id(view))
            warnings.warn(
                f"{view.name()}, a part of a mixed Function, is a control and was read between time "
                "steps: with SingleMemoryStorageSchedule gradients are wrong after a replay, as they "
                "are of Firedrake alone. Take another schedule, or make another Function the control "
                f"and assign that to {view.name()}",
                stacklevel=5,
            )


def _given(function: Function) -> BlockVariable:
    """A new block variable of a Function unknown to pyadjoint; its present values are given data."""
    if disk_checkpointing():
        return function.create_block_variable()
    variable = StateVariable(function)
    variable.keep(Kept([function]))
    return variable


def _meet_others(replay: Replay, whole: Function, touched: Sequence[Function]) -> None:
    """Replace the variable of a mixed Function some of whose other parts changed outside the recording."""
    # Parts set on the tape have been merged by pyadjoint with the former variable of the whole.
    own = [view for view in touched if whole_of(view) is whole and view is not whole]
    if not own or len(own) == len(parts(whole)):
        return
    beneath = _beneath(replay, whole._block_variable())
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
                view._ad_annotate_output_block()


def _beneath(replay: Replay, variable: BlockVariable) -> BlockVariable:
    """The variable of a mixed Function after the last steps, before parts of it were set."""
    for step in reversed(get_working_tape().timesteps):
        for block in reversed(step):
            if isinstance(block, ReplayBlock) and block._replay is replay:
                return variable
            if isinstance(block, FunctionMergeBlock) and block.get_outputs()[0] is variable:
                variable = block.get_dependencies()[1]
    return variable


def _last(replay: Replay, function: Function) -> tuple:
    """The variable of a function of the state after the last steps, and its values then."""
    variable, values = replay.seen.get(id(function), (lambda: None, None))
    return variable(), values


def _refuse_assigned(field: Function) -> None:
    """Raise ``NotImplementedError`` if a dependent field was set on the tape."""
    variable = field._block_variable()
    if variable is None or variable.creation_timestep == -1:
        return
    if variable not in _FOLLOWING:
        raise NotImplementedError(
            f"{field.name()} follows what it is made of, and was set where pyadjoint records: gradients "
            "by its values are not there; set the Functions that it is made of"
        )


def _meet(replay: Replay, function: Function) -> None:
    """Replace the variable of a Function that changed outside the recording, with a warning."""
    variable = function._block_variable()
    if variable is None:
        return
    last, left = _last(replay, function)
    if variable is last:
        same = not left.differing()
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


def _warn_of_change(function: Function) -> None:
    warnings.warn(
        f"{function.name()} was changed where pyadjoint did not record: what it holds now counts "
        "as given data",
        stacklevel=5,
    )
