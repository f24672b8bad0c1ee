"""What the steppers of a second-order motion share: accelerations that belong to the state."""

from __future__ import annotations

from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.forms import copy_into
from fdgeom.solvers.data import Snapshot, fields
from fdgeom.steppers.alpha.start import MotionStart
from fdgeom.steppers.stepper import Stepper
from fdgeom.systems.motion.motion import Motion


class MotionStepper(Stepper):
    """Base of steppers that carry the accelerations of a :class:`Motion` from step to step.

    At the start, and when somebody has set the configuration, the velocity or the time between two
    steps, the accelerations are solved for.
    """

    def _form_of(self, system):
        # A beam is a motion in configuration form.
        return getattr(system, "motion", system)

    def _start_motion(self, start=None) -> None:
        """Check that the motion can start, and find its accelerations (by ``start``)."""
        system = self.system
        system.check_start()
        self._start = start or MotionStart(system)
        self._known = Snapshot([*system.configuration, system.v])
        self._carried = Snapshot([system.acceleration, system.algorithmic])
        self._begin()

    def _begin(self) -> None:
        """Find the accelerations that belong to the configuration and velocity, at this time."""
        system = self.system
        system.set_time(self.t)
        if system.given is not None:
            put_given(system)
        self._start.solve_acceleration()
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


def put_given(system: Motion) -> None:
    """Set the given displacements and velocities in the state."""
    if isinstance(system, RodMotion):
        system.given.put()
        return
    system.given.update()
    given, (q,) = system.given, system.configuration
    for target, source in ((q, given.q), (system.v, given.v)):
        for t, s, dofs in zip(fields(target), fields(source), given.dofs, strict=True):
            t.array.reshape(-1)[dofs] = s.array.reshape(-1)[dofs]
            t.written()
