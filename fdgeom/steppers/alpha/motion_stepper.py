"""Base class of steppers of second-order motions, with accelerations consistent with the state."""

from firedrake import Function, SpatialCoordinate

from fdgeom.data import Snapshot, key
from fdgeom.operations import Copy, Map, Operation, parts
from fdgeom.operations.dependent import Sources, dependent_of
from fdgeom.steppers.stepper import Stepper
from fdgeom.systems.motion.accelerations import Accelerations


class LastSteps:
    """The time after the last steps, and the step before which a coefficient was last another.

    As a snapshot it has no functions.
    """

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper
        #: As in a Snapshot.
        self.known_by: dict[int, tuple] = {}
        self.time, self.changed_before = stepper.t, -2

    def take(self) -> None:
        """Note the present time."""
        self.time = self._stepper.t

    def keys(self) -> list[int]:
        """Stand for the two numbers."""
        return [id(self), id(self.known_by)]

    def values(self) -> list:
        """The two numbers."""
        return [self.time, self.changed_before]

    def remember(self, values: list, of=None) -> None:
        """Replace the numbers by those of :meth:`values`."""
        self.time, self.changed_before = values

    def changed_keys(self) -> set[int]:
        """Empty: the numbers are no Functions."""
        return set()


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
        self._accelerations = Accelerations(system, compiled=self._wanted)
        self._known = Snapshot([*system.configuration, system.v])
        self._carried = Snapshot([system.acceleration, system.algorithmic])
        self._starts: dict[tuple, list[Operation]] = {}
        self._read = Sources(SpatialCoordinate(system.mesh), *self._given())
        self._last = LastSteps(self)
        found = self._beginning()
        self._perform(found)
        self._read.take()
        self.started(found)

    def _given(self) -> list:
        """The coefficients of the accelerations that a user may change."""
        in_time = {key(f) for f in self.system.given_in_time()}
        return [
            c
            for c in self._accelerations.coefficients()
            if dependent_of(c) is None and not (isinstance(c, Function) and key(c) in in_time)
        ]

    @property
    def fallbacks(self):
        return super().fallbacks | self._accelerations.fallbacks

    # --- before steps ------------------------------------------------------------------------------
    def remembered(self):
        return self._known, self._carried, self._read, self._last

    def start(self, modified=None):
        modified = modified or frozenset()
        if modified.intersection(self._carried.keys()) or not self._carried.holds():
            return self.after_accelerations()
        own = modified.intersection(self._known.keys())
        if own or self._last.time != self.t or not self._known.holds():
            return self._beginning()
        sampled = self.samples_coefficients and self.steps - self._last.changed_before <= 1
        if not sampled and (modified.intersection(self._read.keys()) or self._read.changed()):
            return self._again()
        return []

    def begins(self, operations):
        return operations is self._starts.get(self._name_of_beginning())

    def started(self, operations):
        if self.begins(operations):
            self.finished()
        if self._read.changed():
            self._last.changed_before = self.steps
            self._read.take()

    def _name_of_beginning(self) -> tuple:
        return "begin", self.dt

    def _beginning(self) -> list[Operation]:
        """The operations that solve for the accelerations of the configuration and the velocity."""
        name = self._name_of_beginning()
        if name not in self._starts:
            system, held = self.system, self.system.held
            self._starts[name] = [
                *([] if held is None else [held.putting()]),
                *self._accelerations.operations(),
                Copy(source=system.acceleration, target=system.algorithmic),
                *self.after_beginning(),
            ]
        return self._starts[name]

    def _again(self) -> list[Operation]:
        """The operations that solve for the accelerations after a change of coefficients."""
        name = ("again",)
        if name not in self._starts:
            system = self.system
            pairs = zip(parts(system.algorithmic), parts(system.acceleration), strict=True)
            off, on = zip(*(({a: a - true}, {a: a + true}) for a, true in pairs), strict=True)
            self._starts[name] = [
                *(Map(values=values) for values in off),
                *self._accelerations.operations(),
                *(Map(values=values) for values in on),
                *self.after_accelerations(),
            ]
        return self._starts[name]

    def after_beginning(self) -> list[Operation]:
        """Further operations of a method at a start."""
        return self.after_accelerations()

    def after_accelerations(self) -> list[Operation]:
        """The operations of a method after the accelerations have changed."""
        return []

    # --- after steps -------------------------------------------------------------------------------
    def finished(self):
        for snapshot in (self._known, self._carried, self._last):
            snapshot.take()

    def restored(self):
        self.finished()
        # What a script sets now are the coefficients that the accelerations belong to.
        self._last.changed_before = self.steps
        self._read.take()
