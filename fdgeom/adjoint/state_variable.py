"""What pyadjoint knows a Function by that steps have changed."""

from firedrake import Function
from pyadjoint.block_variable import BlockVariable
from pyadjoint.tape import stop_annotating

from fdgeom.adjoint.values import Kept


class StateVariable(BlockVariable):
    """Keeps values as arrays, and makes the Function of them that pyadjoint keeps when that is asked for.

    So of what steps change, and of what they read that pyadjoint has not met.

    To make one takes longer than hundreds of steps of a small system, and a run in many blocks that
    is only recorded asks for none.

    The Function is known by this from now on.
    """

    def __init__(self, output: Function) -> None:
        self._kept: Kept | None = None
        self._made = None
        super().__init__(output)
        # As of all Functions.
        self.floating_type = True
        output.block_variable = self

    def keep(self, values: Kept) -> None:
        """These are what it holds, unless something is kept already."""
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
