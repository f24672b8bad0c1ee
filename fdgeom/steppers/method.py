"""Base class of all methods: solves of a step, and fields carried from step to step."""

from abc import ABC, abstractmethod
from collections.abc import Set
from typing import Any, ClassVar

from firedrake import Function

from fdgeom.solvers import Snapshot
from fdgeom.solvers.derived import Sources
from fdgeom.steppers.solve import Solve


class Method(ABC):
    """The part of :class:`Stepper` that a method defines; all but its first three items have
    defaults.

    ``moves`` is the class of systems, ``order`` the order of convergence, and :meth:`substeps`
    returns the solves of a step. From these a stepper takes its steps, through PETSc SNES or in
    compiled code, counts its solves and reads the user's options. The fields of :meth:`functions`
    are part of the state: a checkpoint stores them, and a failed or interrupted step restores them.

    For authors: ``closings``, ``entrance``, ``flows``, ``functions``, ``is_its_solves``,
    ``mark``, ``moves``, ``needs``, ``openings``, ``parameters``, ``remembered``,
    ``samples_coefficients``, ``sequence``, ``substeps``, ``uncompilable``, ``uncomposable``,
    ``underivable``.
    """

    #: The class of systems that the method moves, and what to call them in an error.
    moves: ClassVar[type[Any]]
    needs: ClassVar[str] = ""
    #: The system, and the solves of one step with their fractions of it.
    system: Any
    sequence: list[tuple[Solve, float]]
    #: Order of convergence in time.
    order: int
    #: Whether a step with -dt undoes a step with dt.
    symmetric: ClassVar[bool] = False
    #: Whether the step is a symplectic (Poisson) map, and on what.
    symplectic: ClassVar[bool] = False
    #: Quantities conserved to round-off.
    conserves: ClassVar[tuple[str, ...]] = ()
    #: Keys of papers, in citations.bib or given to ``petsctools.add_citation``.
    cites: ClassVar[tuple[str, ...]]
    #: Whether a step is its solves and no more, as derivatives take it.
    is_its_solves: ClassVar[bool] = False

    #: Whether a coefficient that changes before one step after another is a function of time: with its
    #: value at the end of the step, as methods want it whose equations hold there and nowhere else.
    samples_coefficients: ClassVar[bool] = False

    # --- what it is made of ----------------------------------------------------------------------
    @abstractmethod
    def substeps(self) -> list[tuple[Solve, float]]:
        """Make and return the solves of one step, in order, with their fractions of it.

        One solve may occur several times. Called once, when the stepper is made: the result is
        ``sequence``.
        """

    def _form_of(self, system):
        """The system in the form that the method integrates, if it is not the given one."""
        return system

    def _setup(self) -> None:
        """Checks and preparations before the solves are made."""
        self.system.check_start()

    def functions(self) -> dict[str, Function]:
        """Functions that the method carries from step to step beside the system's, by name.

        Checkpoints store them, and a failed step restores them.
        """
        return {}

    def parameters(self) -> dict[str, object]:
        """Parameters of the method beside its class and Δt, by name, for checkpoints.

        Numbers, strings, arrays, forms.
        """
        return {}

    def _moving(self) -> tuple[Function, ...]:
        """The functions that a step changes and that make the state."""
        return (*self.system.functions().values(), *self.functions().values())

    # --- what others may do with it --------------------------------------------------------------
    def flows(self) -> tuple[Solve, Solve] | None:
        """The two flows of a method that composes half of the first, the second and half of the
        first.

        None for other methods. Each flow is symmetric by itself; the system's time is set before it
        and advances with the second one.
        """
        if [f for _, f in self.sequence] != [0.5, 1.0, 0.5]:
            return None
        (first, _), (second, _), (last, _) = self.sequence
        return (first, second) if first is last else None

    def uncomposable(self) -> str | None:
        """The reason why compositions of these steps lose their order; None if they keep it."""
        return None

    def uncompilable(self) -> str | None:
        """The reason why steps cannot be compiled, if it is known before the forms."""
        return None

    def underivable(self) -> str | None:
        """The reason why its steps have no derivatives; None if they have."""
        more = f"{type(self).__name__} does more in a step than its solves say"
        return None if self.is_its_solves else more

    # --- a step through PETSc SNES ---------------------------------------------------------------
    def _step(self, t: float, dt: float) -> None:
        """Move the system from ``t`` by ``dt`` (which compositions make negative)."""
        self._before_solves(t, dt)
        try:
            for solve, fraction in self.sequence:
                solve.take(fraction * dt)
        finally:
            self._after_solves(t, dt)

    def _before_solves(self, t: float, dt: float) -> None:
        """Set the system's time before the solves of a step: the time at its end."""
        self.system.set_time(t + dt)

    def _after_solves(self, t: float, dt: float) -> None:
        """Set the system's time after the solves of a step, also if one has failed."""

    def _pass_time(self, sequence, timed: Solve, t: float, dt: float) -> None:
        """Take solves while time passes with one of them, by its fraction of the step each time."""
        system, now = self.system, t
        system.set_time(t)
        try:
            for solve, fraction in sequence:
                if solve is not timed:
                    solve.take(fraction * dt)
                    continue
                before, now = now, now + fraction * dt
                system.set_time(now)
                system.set_clock(0.5 * (before + now))
                solve.take(fraction * dt)
                system.set_clock(now)
        finally:
            system.set_time(t + dt)

    # --- round some steps ------------------------------------------------------------------------
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
        """The changes by :meth:`_enter`, and those of the next step if Δt has changed.

        As :meth:`fdgeom.systems.system.System.openings`, for derivatives.
        """
        return []

    def closings(self) -> list:
        """The changes by :meth:`_leave`, in the same form."""
        return []

    def _taken_up(self) -> None:
        """Actions after the state and the carried fields have been read from a checkpoint."""

    def _change_dt(self, ratio: float) -> None:
        """Rescale carried fields before a step that is ``ratio`` times as long as the one before."""

    def _carried_for(self, dt: float) -> float:
        """The step length to which the carried fields belong after a step of ``dt``."""
        return dt
