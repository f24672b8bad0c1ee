"""Block variables of Functions that steps change."""

from firedrake import Function
from pyadjoint.block_variable import BlockVariable
from pyadjoint.tape import stop_annotating

from fdgeom.adjoint.values import Kept


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

    def keep(self, values: Kept) -> None:
        """Save the values of the variable, unless it has a Function already."""
        if self._made is None:
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
