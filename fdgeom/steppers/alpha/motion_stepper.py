"""Base class of steppers of second-order motions, with accelerations consistent with the state."""

from functools import cached_property

from firedrake import Function, SpatialCoordinate

from fdgeom.forms import copy_into
from fdgeom.operations import Map
from fdgeom.operations import parts as pieces
from fdgeom.solvers import Snapshot, key
from fdgeom.solvers.derived import Sources, derived_of
from fdgeom.steppers.stepper import Stepper
from fdgeom.systems.motion.accelerations import Accelerations


class MotionStepper(Stepper):
    """Base of steppers that carry the accelerations of a :class:`Motion` from step to step."""

    # The accelerations are solved for at the start, and when configuration, velocity or time have
    # been set between two steps. When a coefficient has changed they are solved for too, with a -
    # v̇ unchanged: so the order stays, however often coefficients change.
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
        self._read = Sources(SpatialCoordinate(system.mesh), *self._given())
        # No coefficient has changed yet.
        self.mark = self.t, -2
        self._begin()
        self._read.take()

    def _given(self) -> list:
        """The coefficients that a user may change."""
        in_time = {key(f) for f in self.system.given_in_time()}
        return [
            c
            for c in self.system.coefficients()
            if derived_of(c) is None and not (isinstance(c, Function) and key(c) in in_time)
        ]

    def _begin(self) -> None:
        """Solve for the accelerations of the configuration and velocity, at this time."""
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
        """Further actions of a method at a start."""

    def _begun_operations(self) -> list:
        """The operations of :meth:`_begun`, for derivatives."""
        return []

    def _accelerations_set(self) -> None:
        """Actions of a method after the accelerations have been set too."""

    def _set_operations(self) -> list:
        """The operations of :meth:`_accelerations_set`, for derivatives."""
        return []

    def _remember(self) -> None:
        self._known.take()
        self._carried.take()
        self.mark = self.t, self.mark[1]

    def _enter(self) -> None:
        entrance = self.entrance()
        if entrance == "accelerations":
            self._accelerations_set()
        elif entrance is not None:
            with self._snapshot.kept():
                self._begin() if entrance == "begin" else self._solve_again()
        if self._read.changed():
            self.mark = self.mark[0], self.steps
            self._read.take()

    def _solve_again(self) -> None:
        """Solve for the accelerations after a change of coefficients."""
        a, true = self.system.algorithmic, self.system.acceleration
        a.assign(a - true)
        self._start.solve()
        a.assign(a + true)
        self._accelerations_set()

    # --- derivatives -------------------------------------------------------------------------------
    def remembered(self):
        return self._known, self._carried, self._read

    def entrance(self, touched=frozenset()):
        system = self.system
        if touched & _keys(system.acceleration, system.algorithmic) or not self._carried.holds():
            return "accelerations"
        own = _keys(*system.configuration, system.v)
        if touched & own or self.mark[0] != self.t or not self._known.holds():
            return "begin"
        sampled = self.samples_coefficients and self.steps - self.mark[1] <= 1
        if not sampled and (touched.intersection(self._read.keys()) or self._read.changed()):
            return "coefficients"
        return None

    def openings(self, entrance):
        if entrance == "begin":
            if self.dt not in self._beginnings:
                self._beginnings[self.dt] = self._beginning()
            return self._beginnings[self.dt]
        found = self._again if entrance == "coefficients" else []
        found = [*found, *(self._set_operations() if entrance else [])]
        clock = self.clock
        return found if clock.dt == clock.last_dt else [*found, *self._dt_operations()]

    @cached_property
    def _again(self) -> list:
        """The operations of :meth:`_solve_again`, for derivatives."""
        system = self.system
        pairs = list(zip(pieces(system.algorithmic), pieces(system.acceleration), strict=True))
        off = [Map(values={a: a - true}) for a, true in pairs]
        on = [Map(values={a: a + true}) for a, true in pairs]
        return [*off, *self._start.operations(), *on]

    def _dt_operations(self) -> list:
        """The operations before the next step after a change of Δt."""
        return []

    def _beginning(self) -> list:
        """The operations of :meth:`_begin` with this Δt."""
        system, held = self.system, self.system.held
        first = [] if held is None else [held.putting()]
        pairs = zip(pieces(system.algorithmic), pieces(system.acceleration), strict=True)
        same = [Map(values={a: rate}) for a, rate in pairs]
        return [*first, *self._start.operations(), *same, *self._begun_operations()]

    def _leave(self) -> None:
        self._remember()

    def _taken_up(self) -> None:
        self._remember()
        # What a script sets now are the coefficients that the accelerations belong to.
        self.mark = self.t, self.steps
        self._read.take()


def _keys(*functions: Function) -> set[int]:
    return {key(part) for f in functions for part in f.subfunctions}
