"""Base class of steppers of second-order motions, with accelerations consistent with the state."""

from functools import cached_property

from firedrake import Function, SpatialCoordinate

from fdgeom.data import Snapshot, key
from fdgeom.operations import Copy, Map, Operation, parts
from fdgeom.operations.dependent import Sources, dependent_of, read_in
from fdgeom.steppers.stepper import Stepper
from fdgeom.systems.motion.accelerations import Accelerations
from fdgeom.systems.motion.motion import check_new_configuration


class MotionStepper(Stepper):
    """Base of steppers that carry the accelerations of a :class:`Motion` from step to step."""

    # The accelerations are solved for at the start, and when configuration, velocity or time have
    # been set between two steps. When a coefficient has changed they are solved for too, with a -
    # v̇ unchanged: so the order stays, however often coefficients change.
    def _start_motion(self) -> None:
        """Check that the motion can start, and find its accelerations."""
        system = self.system
        system.check_start()
        self._accelerations = Accelerations(system, compiled=self._code.why_not is None)
        self._known = Snapshot([*system.configuration, system.v], [system.time])
        self._carried = Snapshot([system.acceleration, system.algorithmic])
        self._starts: dict[tuple, list[Operation]] = {}
        self._read = Sources(SpatialCoordinate(system.mesh), *self._given())
        found = self._beginning()
        self._perform(found)
        self._read.take()
        self.started(found)

    def _given(self) -> list:
        """The coefficients that a user may change, and that are not made from others that may."""
        in_time = {key(f) for f in self.system.model.given_in_time()}
        return [
            c
            for c in self.system.model.coefficients()
            if not (isinstance(c, Function) and key(c) in in_time)
            and ((made := dependent_of(c)) is None or not made.follows_a_user)
        ]

    @property
    def fallbacks(self):
        return super().fallbacks | self._accelerations.fallbacks

    # --- before steps ------------------------------------------------------------------------------
    def remembered(self):
        return self._known, self._carried, self._read.snapshot

    def start(self, modified=None):
        modified = modified or frozenset()
        carried = modified.intersection(self._carried.keys()) | self._carried.changed_keys()
        own = modified.intersection(self._known.keys()) or not self._known.holds()
        if own:
            check_new_configuration(self.system, self._known)
        jump = modified.intersection(self._read.snapshot.keys()) | self._changed()
        if jump:
            if not own:
                self._check_at_rest(jump & self._changed_before)
            if self.samples_coefficients:
                # These count as functions of time.
                jump -= self._changed_before
        # A method that carries nothing moves the state, and leaves its own v̇ beside an old a.
        if carried and not (
            own and carried.isdisjoint(map(key, self.system.algorithmic.subfunctions))
        ):
            return self._again if jump else self._after_accelerations()
        if own:
            return self._beginning()
        return self._again if jump else []

    def _changed(self) -> set[int]:
        """The keys of coefficients that have changed since the last look."""
        return self._read.snapshot.changed_keys() if self._read.changed() else set()

    @property
    def _changed_before(self) -> set[int]:
        """The keys of coefficients that changed before the last step."""
        names, clock = self._read.snapshot.keys(), self.clock
        if self.steps - clock.last_change != 1:
            return set()
        return {names[k] for k in clock.changed if k < len(names)}

    def _check_at_rest(self, twice: set[int]) -> None:
        """Raise ``ValueError`` if a value held at rest reads coefficients that changed twice in a row."""
        held = self.system.held
        if twice and held is not None and twice.intersection(map(key, read_in(*held.at_rest))):
            raise ValueError(
                "bcs: the value of a DirichletBC was changed before two steps in a row, and counts as "
                "at rest between them; for a motion give a function of the time, as in "
                "bcs=lambda t: DirichletBC(space, 0.1*sin(t), 1)"
            )

    def begins(self, operations):
        return operations is self._starts.get(self._name_of_beginning())

    def started(self, operations):
        if operations:
            self.finished()
        if changed := self._changed():
            names = self._read.snapshot.keys()
            self.clock = self.clock.after_change(k for k, x in enumerate(names) if x in changed)
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
                *self._after_beginning(),
            ]
        return self._starts[name]

    @cached_property
    def _again(self) -> list[Operation]:
        """The operations that solve for the accelerations after a change of coefficients."""
        system, held = self.system, self.system.held
        pairs = zip(parts(system.algorithmic), parts(system.acceleration), strict=True)
        off, on = zip(*(({a: a - true}, {a: a + true}) for a, true in pairs), strict=True)
        return [
            # A value that is held at rest has moved at once.
            *([] if held is None or held.varies else [held.putting()]),
            *(Map(values=values) for values in off),
            *self._accelerations.operations(),
            *(Map(values=values) for values in on),
            *self._after_accelerations(),
        ]

    def _after_beginning(self) -> list[Operation]:
        """Further operations of a method at a start."""
        return self._after_accelerations()

    def _after_accelerations(self) -> list[Operation]:
        """The operations of a method after the accelerations have changed."""
        return []

    # --- after steps -------------------------------------------------------------------------------
    def finished(self):
        for snapshot in (self._known, self._carried):
            snapshot.take()

    def restored(self):
        self.finished()
        self._read.take()

    def forget_coefficients(self):
        self._read.forget()
