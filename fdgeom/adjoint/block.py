"""Blocks of pyadjoint's tape for steps and other changes of a state."""

import weakref
from collections.abc import Callable, Sequence, Set
from dataclasses import replace

import numpy as np
from firedrake import Function
from firedrake.adjoint_utils.checkpointing import maybe_disk_checkpoint
from pyadjoint import Block
from pyadjoint.tape import get_working_tape, stop_annotating

from fdgeom.adjoint import variables
from fdgeom.adjoint.coefficients import refuse_set
from fdgeom.adjoint.lists import Derivatives, Kept, Vectors, cotangent_of, keys, parts
from fdgeom.adjoint.replay import ChangeReplay, Replay
from fdgeom.adjoint.steps import StepReplay
from fdgeom.compat import known_variable, whole_of
from fdgeom.data import key
from fdgeom.operations.dependent import dependent_of, refresh

NO_PLACES = (
    "gradients by the coordinates of a mesh are not available: fdgeom's steps and equilibria read only "
    "their values. Take such gradients by finite differences of whole runs"
)


class ReplayBlock(Block):
    """A block that replays steps of a stepper bit by bit, and differentiates them."""

    # The block depends on the state and on all Functions that the steps read. `steps` is the number of
    # steps, or, for other replays, the argument of their `run`.
    def __init__(self, replay: Replay, steps: int) -> None:
        super().__init__()
        self.replay, self._steps = replay, steps
        #: The id of its tape.
        self.tape = id(get_working_tape())
        variables.warn_of_reading(replay)
        touched = variables.touched(replay)
        #: For each snapshot: keys of the state that an operation on the tape has set since then.
        self._set = [variables.keys_set(replay, snapshot) for snapshot in replay.snapshots()]
        for f in replay.fields:
            variables.refuse_assigned(f)
            refuse_set(f)
        for f in replay.state:
            variables.meet_others(replay, f, touched)
        for f in replay.inputs:
            variables.meet(replay, f)
            # A Function has a weak reference to it.
            known = known_variable(f) or variables.given(f)
            self.add_dependency(known.output, no_duplicates=True)
        self._inputs = tuple(replay.inputs)
        self._add_left(replay)
        self._read = len(self._dependencies)
        # Coordinates are dependencies so that derivatives by them are refused.
        self._dependencies += variables.places(replay)
        self._timestep = get_working_tape().latest_timestep

    def _add_left(self, replay: Replay) -> None:
        """Depend on the values before they were set on the tape, with which replays compare."""
        # The number of the snapshot, the Function, and the keys of parts that do not count.
        self._left: list[tuple[int, Function, Set[int]]] = []
        for n, snapshot in enumerate(replay.snapshots()):
            for f in replay.inputs:
                known = variables.known(snapshot, f)
                variable = known.variable
                if variable is None or variable is known_variable(f):
                    continue
                if known.values is not None:
                    # What set a part has saved the whole with it.
                    variable.keep(known.values, instead=True)
                tape = get_working_tape()
                tape.add_to_checkpointable_state(variable, variable.last_use)
                variable.last_use = tape.latest_timestep
                self._dependencies.append(variable)
                self._left.append((n, f, known.without))

    def _set_of_data(self, *, all_of_them: bool = False) -> list[set[int]]:
        """For each snapshot the keys of data that an operation on the tape has set since then."""
        # Data that count as functions of time are left out, unless all_of_them.
        data = self.replay.data(self.replay.inputs)
        known = [[(f, variables.known(s, f)) for f in data] for s in self.replay.snapshots()]
        return [
            keys(
                f
                for f, k in found
                if (all_of_them or not k.sampled) and variables.is_set(f, k.variable)
            )
            for found in known
        ]

    def take(self) -> None:
        """Run the steps and add their block to the tape; if one fails, the block has the completed ones."""
        replay, failure = self.replay, None
        with stop_annotating():
            both = zip(self._set, self._set_of_data(), strict=True)
            self._origin = replay.origin([state | data for state, data in both])
            sampled = set()
            if self._steps == 1 and replay.samples:
                sampled.update(*self._set_of_data(all_of_them=True))
            try:
                replay.run(self._steps)
            except BaseException as why:  # Ctrl-C, too, leaves the completed steps
                self._steps, failure = replay.completed(self._origin), why
                if not self._steps:
                    raise
        get_working_tape().add_block(self)
        for f in replay.outputs:
            self.add_output(variables.StateVariable(f))
        variables.FOLLOWING.update(f.block_variable for f in replay.fields)
        replay.seen = {
            id(f): (weakref.ref(f.block_variable), Kept([f])) for f in replay.outputs
        } | {
            id(f): (weakref.ref(known_variable(f)), None)
            for f in replay.views
            if known_variable(f) is not None and whole_of(f) is not f
        }
        for snapshot, was_set in zip(replay.snapshots(), self._set, strict=True):
            kept = set() if replay.saves is None else was_set - replay.saves
            self._note(snapshot, sampled, kept)
        if failure is not None:
            raise failure

    def _note(self, snapshot, sampled: Set[int], kept: Set[int]) -> None:
        """Save with a snapshot the block variables of the Functions whose values it holds now."""
        # kept: what was set before the run and counts as set after it.
        names, changed = set(snapshot.keys()), snapshot.changed_keys() | kept
        for f in (*self.replay.inputs, *self.replay.views):
            own, variable = keys([f]) & names, known_variable(f)
            if own - changed and variable is not None:
                values = self.replay.seen.get(id(f), (None, None))[1]
                snapshot.known_by[id(f)] = variables.Known(
                    variable, values, bool(own & sampled), own & changed, weakref.ref(self)
                )

    def __str__(self) -> str:
        return self.replay.title(self._steps)

    # --- again -----------------------------------------------------------------------------------
    def prepare_recompute_component(self, inputs, relevant_outputs):
        if self.replay.checkpoints[0] != self._timestep:
            self.replay.checkpoints = self._timestep, {}
        self.replay.checkpoints[1][id(self)] = inputs[: self._read]
        with self._begun(inputs):
            self.replay.run(self._steps)
            return [f.copy(deepcopy=True) for f in self.replay.outputs]

    def recompute_component(self, inputs, block_variable, idx, prepared):
        return maybe_disk_checkpoint(prepared[idx])

    def _at(self, inputs):
        """Context at the start of the steps, also where a schedule has dropped the checkpoints of inputs."""
        kept = self.replay.checkpoints[1].get(id(self))
        found = []
        read = self.get_dependencies()[: self._read]
        for k, (variable, value) in enumerate(zip(read, inputs, strict=False)):
            if variable.checkpoint is None and kept is None:
                raise RuntimeError(
                    f"the checkpoint schedule stores no initial values of {self}, and does not replay "
                    "these steps before it asks for their derivative: choose another schedule"
                )
            found.append(value if variable.checkpoint is not None else kept[k])
        return self._begun(found)

    def _begun(self, values):
        """Context of the replay in which the dependencies of the block have these values."""
        left = {
            (n, key(part)): np.array(value.dat.data_ro_with_halos)
            for (n, f, without), whole in zip(
                self._left, values[len(self._inputs) : self._read], strict=True
            )
            for part, value in zip(parts(f), parts(whole), strict=True)
            if key(part) not in without
        }
        return self.replay.at(self._origin, values[: len(self._inputs)], left)

    # --- derivatives, all computed at once by the methods `prepare_...` ---------------------------
    def evaluate_adj_component(self, *arguments):
        *_, idx, prepared = arguments
        return prepared.get(idx)

    def evaluate_hessian_component(self, *arguments):
        *_, idx, _, prepared = arguments
        return prepared.get(idx)

    def evaluate_tlm_component(self, inputs, tlm_inputs, block_variable, idx, prepared=None):
        return prepared[idx]

    def prepare_evaluate_adj(self, inputs, adj_inputs, relevant_dependencies):
        d = Derivatives()
        for f, value in zip(self.replay.outputs, adj_inputs, strict=True):
            d.cotangents.add_all(f, value)
        return self._pull(inputs, relevant_dependencies, d)

    def _pull(self, inputs, dependencies: list, d: Derivatives, moved=()) -> dict:
        """The derivatives by inputs, or their rates along the tangents of the ``moved`` ones."""
        asked = {k: self._inputs[k] for k, _ in self._of_inputs(dependencies)}
        by = list({id(f): f for f in (*asked.values(), *moved)}.values())
        with self._at(inputs):
            self.replay.pull(self._origin_for(by), self._steps, d, self.replay.data(by))
        found = d.cotangents if d.tangents is None else d.rates
        return {k: found.read_all(f, cotangent_of(f)) for k, f in asked.items()}

    def _origin_for(self, functions: Sequence[Function]):
        """The start of the steps, with those jumps only that matter for derivatives by these functions."""
        if not self._origin.counts_as_set:
            return self._origin
        return replace(self._origin, counts_as_set=self._origin.counts_as_set & keys(functions))

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
            self.replay.push(origin, self._steps, tangents, self.replay.data(moved))
        return [tangents.read_all(f, Function(f.function_space())) for f in self.replay.outputs]

    def prepare_evaluate_hessian(self, inputs, hessian_inputs, adj_inputs, relevant_dependencies):
        tangents, moved = Vectors(), []
        d = Derivatives(tangents=tangents)
        for f, bar, rate in zip(self.replay.outputs, adj_inputs, hessian_inputs, strict=True):
            d.cotangents.add_all(f, bar)
            d.rates.add_all(f, rate)
        for f, variable in zip(self._inputs, self.get_dependencies(), strict=False):
            if variable.tlm_value is not None:
                tangents.add_all(f, variable.tlm_value)
                moved.append(f)
        return self._pull(inputs, relevant_dependencies, d, moved)


def take_on_tape(stepper, steps: int) -> None:
    """Run steps of a stepper and put them on the working tape."""
    put_on_tape(lambda: replay_of(stepper), steps)


def record_change(name: str, do, operations, system) -> None:
    """Run operations that change a system and put them on the working tape."""
    put_on_tape(lambda: ChangeReplay(name, do, operations, system), None)


def record_fields(fields: Sequence[Function], system) -> None:
    """Bring dependent fields up to date and put that on the working tape."""
    replays, name = dependent_of(fields[0]).replays, tuple(map(id, fields))

    def make() -> Replay:
        if name not in replays:
            replays[name] = ChangeReplay(
                "the update of fields", lambda: refresh(*fields), (), system, fields
            )
        return replays[name]

    put_on_tape(make, None)


def put_on_tape(make: Callable[[], Replay], steps) -> None:
    """Run a replay and put it on the working tape."""
    with stop_annotating():
        replay = make()
        for view in replay.views:
            if variables.join(view):
                replay.joined.add(id(view))
    ReplayBlock(replay, steps).take()


def replay_of(stepper) -> StepReplay:
    """The replay of a stepper's steps, made once."""
    if stepper.replay is None:
        stepper.replay = StepReplay(stepper)
    return stepper.replay
