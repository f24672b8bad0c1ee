"""What a method is made by, what it carries from step to step, and when it looks after that."""

from __future__ import annotations

from firedrake import Function


class Carrying:
    """What a stepper carries from step to step beside its system: nothing, unless it says so.

    What :meth:`functions` names is part of the state: a checkpoint holds it, and a step that fails
    or is cut puts it back.
    """

    def functions(self) -> dict[str, Function]:
        """What the method carries from step to step beside the system's functions, by name.

        Checkpoints hold it, and a step that fails puts it back.
        """
        return {}

    def parameters(self) -> dict[str, object]:
        """What makes the method beside its class and Δt, by name: a checkpoint says so.

        Numbers, strings, arrays, forms.
        """
        return {}

    def _enter(self) -> None:
        """What a method does before the first of some steps: look at what has been set by hand."""

    def _leave(self) -> None:
        """What a method does after the last of some steps, also if one has failed."""

    def _taken_up(self) -> None:
        """What a method does when the state and what it carries have been read from a checkpoint."""

    def _change_dt(self, ratio: float) -> None:
        """What a method does before a step that is ``ratio`` times as long as the one before."""

    def _carried_for(self, dt: float) -> float:
        """For which length of a step that is right which a method carries after one of ``dt``."""
        return dt
