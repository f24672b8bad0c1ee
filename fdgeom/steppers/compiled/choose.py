"""The compiled steps of a stepper."""

from fdgeom.errors import CannotCompile
from fdgeom.steppers.compiled.chain_steps import ChainSteps
from fdgeom.steppers.compiled.compiled_steps import CompiledSteps
from fdgeom.steppers.compiled.list_steps import ListSteps
from fdgeom.steppers.compiled.solves_of import solves_of


def compiled_steps(stepper, *, along_chains: bool) -> CompiledSteps:
    """Whole steps of a list of operations, or by the solves of its flows, those ``along_chains`` alone;
    ``CannotCompile`` with the reason if there are none.
    """
    try:
        return ListSteps(stepper)
    except CannotCompile as error:
        why = error
    if along_chains:
        return ChainSteps(stepper)
    if stepper.system.mesh.ufl_cell().cellname != "interval":
        # What a method says of its solve tells more than the first operation that is not supported.
        said = (
            solve.uncompilable for solve, _ in solves_of(stepper.step_flows, stepper.system.turns)
        )
        raise CannotCompile(next(filter(None, said), str(why))) from why
    try:
        return ChainSteps(stepper)
    except CannotCompile as chain:
        raise CannotCompile(f"{why}; along a chain: {chain}") from why
