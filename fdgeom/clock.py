"""The clock of a stepper."""

from collections.abc import Iterable
from typing import NamedTuple

from firedrake import Constant

from fdgeom.messages import refuse_number


class Time(Constant):
    """The time in forms; a symbol without a value where a user's function is called with it."""

    def __init__(self) -> None:
        super().__init__(0.0, name="time")

    def evaluate(self, *args, **kwargs):
        """Refuse ``float`` of the symbol in a user's function; else return its value."""
        refuse_number(
            "the time t is a symbol, not a number: use UFL's functions, such as sin(t), cos(t) and "
            "conditional(lt(t, 1), t, 1), not those of math and NumPy"
        )
        return super().evaluate(*args, **kwargs)


class Clock(NamedTuple):
    """Time of a stepper and number of its steps: t = begin + (steps - first) Δt, without drift."""

    #: Time at which the present Δt was set.
    begin: float
    dt: float
    #: Δt of the last step, or of its last piece; the fields that a method carries belong to it.
    last_dt: float
    #: Number of steps taken at `begin`.
    first: int = 0
    steps: int = 0
    #: `steps` when coefficients were last found to be others (-2 for never), and which: their numbers
    #: in the order in which the stepper tracks them.
    last_change: int = -2
    changed: tuple[int, ...] = ()

    @property
    def t(self) -> float:
        """The time."""
        return self.begin + (self.steps - self.first) * self.dt

    def after(self, steps: int, last_dt: float | None = None) -> "Clock":
        """The clock so many steps later."""
        begin, dt, _, first, before, last_change, changed = self
        last_dt = dt if last_dt is None else last_dt
        # Not by `_replace`, which takes three times as long.
        return Clock(begin, dt, last_dt, first, before + steps, last_change, changed)

    def set_to(self, t: float) -> "Clock":
        """The clock at another time, after the same number of steps."""
        return self._replace(begin=t, first=self.steps)

    def with_dt(self, dt: float) -> "Clock":
        """The clock with another step from here on."""
        return self if dt == self.dt else self._replace(begin=self.t, first=self.steps, dt=dt)

    def begun(self) -> "Clock":
        """The clock after the carried fields have been made for the present Δt."""
        return self._replace(last_dt=self.dt)

    def after_change(self, changed: Iterable[int]) -> "Clock":
        """The clock where coefficients with these numbers are others than before the last step."""
        before = self.changed if self.last_change == self.steps else ()
        return self._replace(last_change=self.steps, changed=tuple(sorted({*before, *changed})))
