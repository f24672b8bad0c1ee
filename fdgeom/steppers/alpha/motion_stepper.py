"""What the steppers of a second-order motion share: accelerations that belong to the state."""

from fdgeom.forms import copy_into
from fdgeom.solvers import Deed, Snapshot, key, pieces
from fdgeom.steppers.stepper import Stepper
from fdgeom.systems.motion.accelerations import Accelerations


class MotionStepper(Stepper):
    """Base of steppers that carry the accelerations of a :class:`Motion` from step to step.

    At the start, and when somebody has set the configuration, the velocity or the time between two
    steps, the accelerations are solved for.
    """

    is_its_solves = True

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
        self._beginnings: dict[float, list] = {}
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

    @property
    def fallbacks(self):
        return super().fallbacks | self._start.fallbacks

    def _begun(self) -> None:
        """What else a method does at a start."""

    def _begun_deeds(self) -> list:
        """The same, for derivatives."""
        return []

    def _accelerations_set(self) -> None:
        """What a method does when somebody has set the accelerations too."""

    def _set_deeds(self) -> list:
        """The same, for derivatives."""
        return []

    def _remember(self) -> None:
        self._known.take()
        self._carried.take()
        self.mark = self.t, None

    def _enter(self) -> None:
        entrance = self.mark[1] or self.entrance()
        if entrance == "accelerations":
            self._accelerations_set()
        elif entrance == "begin":
            with self._snapshot.kept():
                self._begin()

    # --- derivatives -------------------------------------------------------------------------------
    def remembered(self):
        return self._known, self._carried

    def entrance(self, touched=()):
        system, names = self.system, {key(f) for g in touched for f in g.subfunctions}
        carried = [*system.acceleration.subfunctions, *system.algorithmic.subfunctions]
        if any(key(f) in names for f in carried) or not self._carried.holds():
            return "accelerations"
        if touched or self.mark[0] != self.t or not self._known.holds():
            return "begin"
        return None

    def openings(self, entrance):
        if entrance == "begin":
            if self.dt not in self._beginnings:
                self._beginnings[self.dt] = self._beginning()
            return self._beginnings[self.dt]
        found = self._set_deeds() if entrance == "accelerations" else []
        clock = self.clock
        return found if clock.dt == clock.last_dt else [*found, *self._dt_deeds()]

    def _dt_deeds(self) -> list:
        """What the next step does where Δt has changed."""
        return []

    def _beginning(self) -> list:
        """What :meth:`_begin` does with this Δt."""
        system, held = self.system, self.system.held
        first = [] if held is None else [Deed(held.put, fixed=held.fixed())]
        pairs = zip(pieces(system.algorithmic), pieces(system.acceleration), strict=True)
        same = [{a: rate} for a, rate in pairs]
        return [*first, self._start.deed(), *same, *self._begun_deeds()]

    def _leave(self) -> None:
        self._remember()

    def _taken_up(self) -> None:
        self._remember()
