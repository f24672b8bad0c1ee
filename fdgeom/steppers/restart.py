"""Actions before and after some steps, of methods that carry fields from step to step."""

from collections.abc import Set
from typing import ClassVar

from fdgeom.solvers import Snapshot
from fdgeom.solvers.derived import Sources


class Restart:
    """The part of :class:`Stepper` for methods that carry fields; by default there are none.

    For authors: ``closings``, ``entrance``, ``mark``, ``openings``, ``remembered``,
    ``samples_coefficients``.
    """

    #: Whether a coefficient that changes before one step after another is a function of time: with its
    #: value at the end of the step, as methods want it whose equations hold there and nowhere else.
    samples_coefficients: ClassVar[bool] = False

    def _enter(self) -> None:
        """Actions before the first of some steps, such as updates after changes by hand."""

    def _leave(self) -> None:
        """Actions after the last of some steps, also if one has failed."""

    #: The time of the last steps, and the number of steps before which a coefficient was last another.
    mark: tuple[float, int] = (float("nan"), 0)

    def remembered(self) -> tuple[Snapshot | Sources, ...]:
        """The snapshots by which :meth:`_enter` detects changes by hand."""
        return ()

    def entrance(self, touched: Set[int] = frozenset()) -> str | None:
        """The action of :meth:`_enter`, as a name; fields with the keys ``touched`` count as set."""
        return None

    def openings(self, entrance: str | None) -> list:
        """The operations of :meth:`_enter`, and those before the next step if Δt has changed.

        As :meth:`fdgeom.systems.system.System.openings`, for derivatives.
        """
        return []

    def closings(self) -> list:
        """The operations of :meth:`_leave`, in the same form."""
        return []

    def _taken_up(self) -> None:
        """Actions after the state and the carried fields have been read from a checkpoint."""

    def _change_dt(self, ratio: float) -> None:
        """Rescale carried fields before a step that is ``ratio`` times as long as the one before."""

    def _carried_for(self, dt: float) -> float:
        """The step length to which the carried fields belong after a step of ``dt``."""
        return dt
