"""The compiled steps of a stepper."""

from fdgeom.solvers.compiled import CannotCompile
from fdgeom.steppers.compiled.chain_steps import ChainSteps
from fdgeom.steppers.compiled.fused import CompiledSteps, FusedSteps, tolerances_of
from fdgeom.steppers.compiled.list_steps import ListSteps
from fdgeom.steppers.compiled.solves_of import solves_of


def compiled_steps(stepper, *, along_chains: bool) -> CompiledSteps:
    """Whole steps of a list of operations, or by the solves of its flows, those ``along_chains`` alone;
    ``CannotCompile`` with the reason if there are none.
    """
    try:
        return ListSteps(stepper)
    except CannotCompile:
        return ChainSteps(stepper) if along_chains else _fused_steps(stepper)


def _fused_steps(stepper) -> CompiledSteps:
    """Compiled steps of local solves, or of one solve along a chain."""
    try:
        return FusedSteps(
            solves_of(stepper.step_flows, stepper.system.turns),
            stepper._moving(),
            stepper._snapshot,
            lambda solve: tolerances_of(solve.options.over({})[0]),
            stepper.system.clocks,
        )
    except CannotCompile as local:
        if stepper.system.mesh.ufl_cell().cellname != "interval":
            raise
        try:
            return ChainSteps(stepper)
        except CannotCompile as chain:
            raise CannotCompile(f"{local}; along a chain: {chain}") from local
