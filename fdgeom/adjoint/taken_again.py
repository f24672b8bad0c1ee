"""Some steps of a stepper, from given values of all that they read: taken again."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from firedrake import Function

from fdgeom.adjoint.coefficients import Coefficients
from fdgeom.adjoint.deeds import forms_of
from fdgeom.adjoint.inputs import Inputs
from fdgeom.adjoint.origin import Origin
from fdgeom.adjoint.values import Kept, keys
from fdgeom.adjoint.way_back import WayBack
from fdgeom.clock import Clock
from fdgeom.interrupt import shielded
from fdgeom.solvers import Strides

#: So many bytes of states are kept; of more, some are taken again.
MEMORY = 2**29


class TakenAgain(Inputs):
    """Steps of one stepper as a function of what they read: taken again from given values of it.

    Parameters
    ----------
    stepper : Stepper
        What takes them.

    Attributes
    ----------
    state : list of Function
        What steps change: those of mixed spaces as a whole.
    inputs : list of Function
        These, and the other Functions that steps read.
    fields : list of Function
        What follows these.

    Raises
    ------
    NotImplementedError
        If derivatives of these steps are not there.
    """

    def __init__(self, stepper) -> None:
        why = stepper.underivable() or stepper.system.underivable()
        if why:
            raise NotImplementedError(
                f"gradients through {type(stepper).__name__}.advance() of a "
                f"{type(stepper.system).__name__} are not there: {why}. Call it inside 'with "
                "firedrake.adjoint.stop_annotating():' (its result then counts as given data), and "
                "take the gradient of what it does by finite differences of whole runs"
            )
        self._stepper, system = stepper, stepper.system
        solves = list({id(solve): solve for solve, _ in stepper.sequence}.values())
        unknowns = keys(solve.unknown for solve in solves)
        moving = (*stepper._moving(), *system.followers().values())
        self._carried = [f for f in moving if keys([f]) <= unknowns]
        written = [f for solve in solves for f in solve.written]
        more = keys(written) | keys(e.target for s in solves for e in s.essential if e.target)
        more |= keys(system.given_in_time())
        #: What is done after the last step.
        self._closings = [*stepper.closings(), *system.closings()]
        made = [form for deed in self._closings for form in forms_of(deed)]
        own = keys(moving) | unknowns | more
        super().__init__(
            [f for f in moving if not keys([f]) <= unknowns],
            Coefficients(solves, own, system.clocks, made),
        )
        #: All that the steps change and read again.
        self._moving = [*self.state, *self._carried]

    # --- where they begin ------------------------------------------------------------------------
    def origin(self, touched: Sequence[Function]) -> Origin:
        """The present one; ``touched`` of :attr:`views` are set, to whatever."""
        stepper, system = self._stepper, self._stepper.system
        set_now = [f for snapshot in system.remembered() for f in snapshot.changed_parts()]
        touched = self.touched_by([*touched, *set_now])
        entrance = stepper.entrance(touched)
        openings = [*system.openings(touched), *stepper.openings(entrance)]
        stepper.enter_by(entrance)
        return Origin(
            stepper.clock,
            self.constants(),
            Kept(self._carried),
            touched,
            [snapshot.values() for snapshot in system.remembered()],
            openings,
            entrance,
        )

    @contextmanager
    def at(self, origin: Origin, inputs: Sequence[Function]) -> Iterator[None]:
        """Context in which the stepper stands there; afterwards it is again where it was."""
        stepper, system = self._stepper, self._stepper.system
        snapshots = [*system.remembered(), *stepper.remembered()]
        clock, remembered = stepper.clock, [s.values() for s in snapshots]
        mark = stepper.mark
        try:
            with self.holding(inputs, self._carried):
                origin.carried.restore()
                self.set_constants(origin.constants)
                self._set_clock(origin.clock)
                self.renew(inputs)
                # All agrees, but for what is set.
                self._agree()
                for snapshot, values in zip(system.remembered(), origin.remembered, strict=True):
                    snapshot.remember(values, of=origin.touched)
                stepper.enter_by(origin.entrance)
                yield
        finally:
            with shielded():
                self._set_clock(clock)
                for snapshot, values in zip(snapshots, remembered, strict=True):
                    snapshot.remember(values)
                stepper.mark = mark

    def _agree(self) -> None:
        """Take all that is there for what steps have left."""
        self._stepper.system.agree()
        for snapshot in self._stepper.remembered():
            snapshot.take()
        self._stepper.mark = self._stepper.t, None

    def _set_clock(self, clock: Clock) -> None:
        self._stepper._clock = clock
        self._stepper.system.set_time(clock.t)

    # --- taken again -----------------------------------------------------------------------------
    def run(self, steps: int, way: WayBack | None = None) -> None:
        """Take steps from where the stepper stands; ``way`` can follow them back."""
        with nullcontext() if way is None else way.taken:
            self._stepper._advance(steps)
        self._coefficients.refresh()

    def run_each(self, steps: int, each: Callable[[], float]) -> float:
        """The same, and add up what ``each()`` gives after each step."""
        total = 0.0
        for _ in range(steps):
            self._stepper._advance(1)
            total += each()
        return total

    def _open(self) -> None:
        """Do what is done before the first step."""
        stepper = self._stepper
        stepper.system.prepare()
        stepper._enter()
        clock = stepper.clock
        if clock.dt != clock.last_dt:
            stepper._change_dt(clock.dt / clock.last_dt)
            stepper._clock = clock.begun()
        self._agree()

    def _backwards(self, steps: int) -> Iterator[Clock]:
        """Stand before each step, the last one first.

        Those between the states that are kept are made again, by the same steps to the last bit.
        """
        moving = self._moving
        comm = self._stepper.system.mesh.comm
        strides = Strides.fitting(steps, Kept(moving).nbytes, self._memory, comm)
        kept = []
        for number in range(strides.last + 1):
            kept.append((Kept(moving), self._stepper.clock))
            if number < strides.last:
                self._stepper._advance(strides.stride)
        for number, _, some in strides.backwards():
            values, self._stepper._clock = kept[number]
            values.restore()
            self._agree()
            inner = []
            for k in range(some):
                inner.append((Kept(moving), self._stepper.clock))
                if k + 1 < some:
                    self._stepper._advance(1)
            for values, clock in reversed(inner):
                values.restore()
                yield clock

    @property
    def _memory(self) -> int:
        return MEMORY

    @property
    def name(self) -> str:
        """What takes the steps."""
        return type(self._stepper).__name__

    def title(self, steps: int) -> str:
        """What is done, in words."""
        return f"{steps} steps of {self.name}"
