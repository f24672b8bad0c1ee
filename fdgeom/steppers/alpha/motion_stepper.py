"""What the steppers of a second-order motion share: accelerations that belong to the state."""

from __future__ import annotations

from fdgeom.forms import copy_into
from fdgeom.solvers import Snapshot
from fdgeom.steppers.stepper import Stepper
from fdgeom.systems.motion.accelerations import Accelerations


class MotionStepper(Stepper):
    """Base of steppers that carry the accelerations of a :class:`Motion` from step to step.

    At the start, and when somebody has set the configuration, the velocity or the time between two
    steps, the accelerations are solved for.
    """

    def _form_of(self, system):
        # A beam is a motion in configuration form.
        return getattr(system, "motion", system)

    def _start_motion(self) -> None:
        """Check that the motion can start, and find its accelerations."""
        system = self.system
        system.check_start()
        self._start = Accelerations(system, compiled=self._wanted)
        self._known = Snapshot([*system.configuration, system.v])
        self._carried = Snapshot([system.acceleration, system.algorithmic])
        self._begin()

    def _begin(self) -> None:
        """Find the accelerations that belong to the configuration and velocity, at this time."""
        system = self.system
        system.set_time(self.t)
        if system.held is not None:
            system.held.put()
        self._start.solve()
        copy_into(system.algorithmic, system.acceleration)
        self._begun()
        self._clock = self._clock.begun()
        self._remember()

    def _begun(self) -> None:
        """What else a method does at a start."""

    def _accelerations_set(self) -> None:
        """What a method does when somebody has set the accelerations too."""

    def _remember(self) -> None:
        self._known.take()
        self._carried.take()
        self._known_at = self.t

    def _enter(self) -> None:
        if not self._carried.holds():
            self._accelerations_set()
        elif self._known_at != self.t or not self._known.holds():
            with self._snapshot.kept():
                self._begin()

    def _leave(self) -> None:
        self._remember()

    def _taken_up(self) -> None:
        self._remember()
