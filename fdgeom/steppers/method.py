"""Base class of all methods: solves of a step, and fields carried from step to step."""

from abc import ABC, abstractmethod
from collections.abc import Set
from typing import ClassVar

from firedrake import Function

from fdgeom.solvers import Snapshot
from fdgeom.solvers.derived import Sources
from fdgeom.steppers.solve import Solve


class Method(ABC):
    """What the subclasses of :class:`Stepper` say; all but the first three things have defaults.

    ``moves`` says which class of systems, ``order`` how well, and :meth:`substeps` by which solves.
    From that a stepper takes its steps, through PETSc SNES or in compiled code, counts its solves and
    reads the user's options. What :meth:`functions` names is part of the state: a checkpoint holds
    it, and a step that fails or is cut puts it back.
    """

    #: The class of systems that the method moves, and what to call them in an error.
    moves: ClassVar[type]
    needs: ClassVar[str] = ""
    #: Order of convergence in time.
    order: ClassVar[int]
    #: Whether a step with -dt undoes a step with dt.
    symmetric: ClassVar[bool] = False
    #: Whether the step is a symplectic (Poisson) map, and on what.
    symplectic: ClassVar[bool] = False
    #: What is conserved to round-off.
    conserves: ClassVar[tuple[str, ...]] = ()
    #: Whether a step is its solves and no more, as derivatives take it.
    is_its_solves: ClassVar[bool] = False

    #: Whether a coefficient that changes before one step after another is a function of time: with its
    #: value at the end of the step, as methods want it whose equations hold there and nowhere else.
    samples_coefficients: ClassVar[bool] = False

    # --- what it is made of ----------------------------------------------------------------------
    @abstractmethod
    def substeps(self) -> list[tuple[Solve, float]]:
        """The solves of one step, in order, with their fractions of it; they are made here.

        One solve may stand in several places. Called once, when the stepper is made: the result is
        ``sequence``.
        """

    def _form_of(self, system):
        """What is moved, for methods that move another form of a system than what they are given."""
        return system

    def _setup(self) -> None:
        """What a method checks and makes before its solves."""
        self.system.check_start()

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

    def _moving(self) -> tuple[Function, ...]:
        """The functions that a step changes and that make the state."""
        return (*self.system.functions().values(), *self.functions().values())

    # --- what others may do with it --------------------------------------------------------------
    def flows(self) -> tuple[Solve, Solve] | None:
        """The two flows of a method that takes half of the first, the second and half of the first.

        None if the method is not made so. Each is symmetric by itself, the system's time is told
        before it, and it passes with the second one.
        """
        if [f for _, f in self.sequence] != [0.5, 1.0, 0.5]:
            return None
        (first, _), (second, _), (last, _) = self.sequence
        return (first, second) if first is last else None

    def uncomposable(self) -> str | None:
        """Why compositions of these steps would not have the order they claim; None if they have."""
        return None

    def uncompilable(self) -> str | None:
        """Why steps cannot be compiled, where that is known before forms are looked at."""
        return None

    def underivable(self) -> str | None:
        """Why derivatives of its steps are not there; None if they are."""
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
        """What a method tells the system before the solves of a step: the time at its end."""
        self.system.set_time(t + dt)

    def _after_solves(self, t: float, dt: float) -> None:
        """What it tells the system after them, also where one has failed."""

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
        """What a method does before the first of some steps: look at what has been set by hand."""

    def _leave(self) -> None:
        """What a method does after the last of some steps, also if one has failed."""

    #: The time of the last steps, and the number of steps before which a coefficient was last another.
    mark: tuple[float, int] = (float("nan"), 0)

    def remembered(self) -> tuple[Snapshot | Sources, ...]:
        """By what :meth:`_enter` sees what was set by hand."""
        return ()

    def entrance(self, touched: Set[int] = frozenset()) -> str | None:
        """What :meth:`_enter` does, in a word; what has these keys counts as set, though it is not now."""
        return None

    def openings(self, entrance: str | None) -> list:
        """What :meth:`_enter` then changes, and what the next step does where Δt has changed.

        As :meth:`fdgeom.systems.system.System.openings`, for derivatives.
        """
        return []

    def closings(self) -> list:
        """What :meth:`_leave` changes, in the same way."""
        return []

    def _taken_up(self) -> None:
        """What a method does when the state and what it carries have been read from a checkpoint."""

    def _change_dt(self, ratio: float) -> None:
        """What a method does before a step that is ``ratio`` times as long as the one before."""

    def _carried_for(self, dt: float) -> float:
        """For which length of a step that is right which a method carries after one of ``dt``."""
        return dt
