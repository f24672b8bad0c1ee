"""What every stepper is: a map from one state to the next, taken safely and counted."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

from fdgeom.errors import StepFailed
from fdgeom.solvers.data import Snapshot
from fdgeom.solvers.held import SolveFailed
from fdgeom.solvers.options import check_parameters


class Stepper(ABC):
    """A time stepper: holds its solvers and advances a system in place.

    Parameters
    ----------
    system : object
        What is moved; each method says what it needs of it.
    dt : float
        Time step.
    solver_parameters : dict, optional
        PETSc options of the solves, as everywhere in Firedrake.
    options_prefix : str, optional
        Prefix under which the command line is read; it wins over ``solver_parameters``.

    Raises
    ------
    TypeError, ValueError
        If the system lacks what the method needs, ``dt`` is not positive, or an option is unknown.
    """

    #: Order of convergence in time.
    order: ClassVar[int]
    #: Whether a step with -dt undoes a step with dt.
    symmetric: ClassVar[bool] = False
    #: Whether the step is a symplectic (Poisson) map, and on what.
    symplectic: ClassVar[bool] = False
    #: What is conserved to round-off.
    conserves: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        system,
        dt: float,
        *,
        solver_parameters: dict | None = None,
        options_prefix: str | None = None,
    ) -> None:
        self.system = system
        self._dt = _positive("dt", dt)
        self._given, self._prefix = check_parameters(solver_parameters, options_prefix)
        self._setup()
        self._snapshot = Snapshot(system.functions().values())
        #: Time, and number of steps taken.
        self.t: float = 0.0
        self.steps: int = 0

    @property
    def dt(self) -> float:
        """Time step."""
        return self._dt

    @dt.setter
    def dt(self, value: float) -> None:
        self._dt = _positive("dt", value)

    @abstractmethod
    def _setup(self) -> None:
        """Check the system; build forms and solvers."""

    @abstractmethod
    def _step(self, t: float, dt: float) -> None:
        """Move the system from ``t`` by ``dt`` (which compositions make negative)."""

    def advance(self, steps: int = 1) -> None:
        """Take ``steps`` steps.

        Raises
        ------
        StepFailed
            If a step cannot be taken; the state is then the one before that step.
        """
        if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
            raise ValueError(f"steps must be a whole number that is not negative, not {steps!r}")
        if not steps:
            return
        self.system.prepare()
        for _ in range(steps):
            self._snapshot.take()
            try:
                self._step(self.t, self._dt)
            except SolveFailed as failure:
                self._snapshot.restore()
                raise StepFailed(str(failure), t=self.t, step=self.steps) from failure
            self.steps += 1
            self.t += self._dt

    def run(self, until: float | None = None, **options):
        """Advance to a time with monitors and output; see :func:`fdgeom.run`."""
        from fdgeom.recording import run

        return run(self, until, **options)

    def solver_stats(self) -> dict[str, int]:
        """Steps, solves, Newton and Krylov iterations since the stepper was made."""
        return {"steps": self.steps, **self._count()}

    def _count(self) -> dict[str, int]:
        return {}

    def __repr__(self) -> str:
        name, system = type(self).__name__, type(self.system).__name__
        return f"<{name}, order {self.order}, of {system}: t = {self.t:g}, dt = {self.dt:g}>"


def _positive(name: str, value) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {value!r}") from None
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a positive number, not {value!r}")
    return number
