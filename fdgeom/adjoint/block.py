"""Steps, and what else finds a state, on pyadjoint's tape."""

import warnings
import weakref
from collections.abc import Sequence

import numpy as np
from firedrake import Function
from firedrake.adjoint_utils.blocks import FunctionMergeBlock
from firedrake.adjoint_utils.checkpointing import disk_checkpointing, maybe_disk_checkpoint
from pyadjoint.block_variable import BlockVariable
from pyadjoint.overloaded_type import FloatingType
from pyadjoint.tape import get_working_tape, stop_annotating

from fdgeom.adjoint.deed_passage import DeedPassage
from fdgeom.adjoint.inputs import whole_of
from fdgeom.adjoint.passage import Passage
from fdgeom.adjoint.state_variable import StateVariable
from fdgeom.adjoint.values import Kept, Vectors, cotangent_of, keys, parts
from fdgeom.taping import PreparedBlock

#: What pyadjoint knows the fields by that blocks have made anew.
_FOLLOWING: weakref.WeakSet = weakref.WeakSet()


class AdvanceBlock(PreparedBlock):
    """Some steps of a stepper.

    Depends on the state and on every Function that the steps read, and gives the state: replayed by
    the same steps, to the last bit; its derivatives are those of the steps, solve by solve.

    Parameters
    ----------
    passage : Passage
        The steps as a function.
    steps : int
        How many; of other passages what their ``run`` takes.
    """

    def __init__(self, passage: Passage, steps: int) -> None:
        super().__init__()
        self._passage, self._steps = passage, steps
        self._touched = _touched(passage)
        for f in passage.fields:
            _refuse_assigned(f)
        for f in passage.state:
            _meet_others(passage, f, self._touched)
        for f in passage.inputs:
            _meet(passage, f)
            known = f._block_variable() or _given(f)  # a Function knows it weakly
            self.add_dependency(known.output, no_duplicates=True)
        self._inputs = tuple(passage.inputs)
        self._timestep = get_working_tape().latest_timestep

    def take(self) -> None:
        """Take the steps, and add what they give to the tape."""
        with stop_annotating():
            self._origin = self._passage.origin(self._touched)
            self._passage.run(self._steps)
        get_working_tape().add_block(self)
        for f in self._passage.outputs:
            self.add_output(StateVariable(f))
        _FOLLOWING.update(f.block_variable for f in self._passage.fields)
        self._passage.seen = {
            id(f): (weakref.ref(f.block_variable), Kept([f])) for f in self._passage.outputs
        } | {
            id(f): (weakref.ref(f._block_variable()), None)
            for f in self._passage.views
            if f._block_variable() is not None and whole_of(f) is not f
        }

    def __str__(self) -> str:
        return self._passage.title(self._steps)

    # --- again -----------------------------------------------------------------------------------
    def prepare_recompute_component(self, inputs, relevant_outputs):
        self._passage.shelf.put(self._timestep, self, inputs)
        with self._passage.at(self._origin, inputs):
            self._passage.run(self._steps)
            return [f.copy(deepcopy=True) for f in self._passage.outputs]

    def recompute_component(self, inputs, block_variable, idx, prepared):
        return maybe_disk_checkpoint(prepared[idx])

    def _at(self, inputs):
        """What the steps began from: a schedule drops the inputs of steps that it takes again."""
        kept = self._passage.shelf.of(self)
        found = []
        for k, (variable, value) in enumerate(zip(self.get_dependencies(), inputs, strict=True)):
            if variable.checkpoint is None and kept is None:
                raise RuntimeError(
                    f"the schedule of checkpoints keeps nothing that {self} began from, and does not "
                    "take them again before it asks for their derivative: choose another schedule"
                )
            found.append(value if variable.checkpoint is not None else kept[k])
        return self._passage.at(self._origin, found)

    # --- derivatives -----------------------------------------------------------------------------
    def prepare_evaluate_adj(self, inputs, adj_inputs, relevant_dependencies):
        wanted = [self._inputs[k] for k, _ in relevant_dependencies]
        bars = Vectors()
        for f, value in zip(self._passage.outputs, adj_inputs, strict=True):
            bars.add_all(f, value)
        with self._at(inputs):
            self._passage.pull(self._origin, self._steps, bars, self._passage.data(wanted))
        return {
            k: bars.read_all(self._inputs[k], cotangent_of(self._inputs[k]))
            for k, _ in relevant_dependencies
        }

    def prepare_evaluate_tlm(self, inputs, tlm_inputs, relevant_outputs):
        tangents = Vectors()
        given = [(f, v) for f, v in zip(self._inputs, tlm_inputs, strict=True) if v is not None]
        for f, value in given:
            tangents.add_all(f, value)
        wanted = self._passage.data([f for f, _ in given])
        with self._at(inputs):
            self._passage.push(self._origin, self._steps, tangents, wanted)
        return [tangents.read_all(f, Function(f.function_space())) for f in self._passage.outputs]

    def prepare_evaluate_hessian(self, inputs, hessian_inputs, adj_inputs, relevant_dependencies):
        bars, rates, tangents = Vectors(), Vectors(), Vectors()
        for f, bar, rate in zip(self._passage.outputs, adj_inputs, hessian_inputs, strict=True):
            bars.add_all(f, bar)
            rates.add_all(f, rate)
        dependencies = self.get_dependencies()
        moved = [
            f for f, v in zip(self._inputs, dependencies, strict=True) if v.tlm_value is not None
        ]
        for f, variable in zip(self._inputs, dependencies, strict=True):
            tangents.add_all(f, variable.tlm_value)
        asked = [self._inputs[k] for k, _ in relevant_dependencies]
        wanted = self._passage.data(list({id(f): f for f in (*asked, *moved)}.values()))
        with self._at(inputs):
            self._passage.pull_rates(self._origin, self._steps, bars, rates, tangents, wanted)
        return {
            k: rates.read_all(self._inputs[k], cotangent_of(self._inputs[k]))
            for k, _ in relevant_dependencies
        }


def take_on_tape(stepper, steps: int) -> None:
    """Take steps, and put them on the working tape."""
    with stop_annotating():
        passage = passage_of(stepper)
    put_on_tape(passage, steps)


def record_deeds(name: str, do, deeds, system) -> None:
    """Do something that changes a system, and put it on the working tape."""
    with stop_annotating():
        passage = DeedPassage(name, do, deeds, system)
    put_on_tape(passage, None)


def put_on_tape(passage, steps) -> None:
    """Do what a passage does, and put it on the working tape."""
    with stop_annotating():
        for view in passage.views:
            _join(view)
    AdvanceBlock(passage, steps).take()


def passage_of(stepper) -> Passage:
    """The steps of a stepper as a function; made once."""
    if stepper.passage is None:
        stepper.passage = Passage(stepper)
    return stepper.passage


def _touched(passage: Passage) -> list[Function]:
    """The parts of the state that something on the tape, or a control, has set since the last steps."""

    def is_set(f: Function) -> bool:
        variable = f._block_variable()
        if variable is None or variable is _last(passage, f)[0]:
            return False
        # A part that was only read has been made of the whole.
        read = f.block.get_outputs() if f.block is not None else ()
        return not any(variable is output for output in read)

    found = [view for view in passage.views if is_set(view)]
    wholes = {id(whole_of(view)) for view in found}
    more = [f for f in passage.state if is_set(f) and id(f) not in wholes]
    return list({id(f): f for f in (*found, *passage.touched_by(more))}.values())


def _join(view: Function) -> None:
    """Let the whole of a mixed Function follow a part of it that has been made a control.

    Both have been there before anything was recorded, so pyadjoint does not know that they are one.
    """
    whole, own = whole_of(view), view._block_variable()
    if whole is view or own is None or own.creation_timestep != -1:
        return
    above = whole._block_variable()
    if above is None or above.creation_timestep == -1:
        with FloatingType.stop_floating(view):
            view._ad_annotate_output_block()


def _given(function: Function) -> BlockVariable:
    """What pyadjoint knows a Function by that it has not met: what it holds is given."""
    if disk_checkpointing():
        return function.create_block_variable()
    variable = StateVariable(function)
    variable.keep(Kept([function]))
    return variable


def _meet_others(passage: Passage, whole: Function, touched: Sequence[Function]) -> None:
    """Begin anew with the parts of a mixed Function that were changed where nothing was recorded.

    Where other parts were set on the tape pyadjoint has joined them with what it knew the whole by.
    """
    own = [view for view in touched if whole_of(view) is whole and view is not whole]
    if not own or len(own) == len(parts(whole)):
        return
    beneath = _beneath(passage, whole._block_variable())
    last, left = _last(passage, whole)
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


def _beneath(passage: Passage, variable: BlockVariable) -> BlockVariable:
    """What pyadjoint knew a mixed Function by after the last steps, before parts of it were set."""
    for step in reversed(get_working_tape().timesteps):
        for block in reversed(step):
            if isinstance(block, AdvanceBlock) and block._passage is passage:
                return variable
            if isinstance(block, FunctionMergeBlock) and block.get_outputs()[0] is variable:
                variable = block.get_dependencies()[1]
    return variable


def _last(passage: Passage, function: Function) -> tuple:
    """What pyadjoint knew a function of the state by after the last steps, and its values then."""
    variable, values = passage.seen.get(id(function), (lambda: None, None))
    return variable(), values


def _refuse_assigned(field: Function) -> None:
    """Raise ``NotImplementedError`` if a field that follows others was set on the tape."""
    variable = field._block_variable()
    if variable is None or variable.creation_timestep == -1:
        return
    if variable not in _FOLLOWING:
        raise NotImplementedError(
            f"{field.name()} follows what it is made of, and was set where pyadjoint records: gradients "
            "by its values are not there; set the Functions that it is made of"
        )


def _meet(passage: Passage, function: Function) -> None:
    """Begin anew with a Function that was changed where nothing was recorded, and say so."""
    variable = function._block_variable()
    if variable is None:
        return
    last, left = _last(passage, function)
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
