"""What the methods for holonomic constraints share: a sequence of solves, each for a saddle point."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from firedrake import Constant, Form, Function
from ufl.core.expr import Expr

from fdgeom.forms import tidy
from fdgeom.solvers.essential import EssentialValues
from fdgeom.solvers.saddle import SaddleSolver
from fdgeom.steppers.refusal import wrong_system
from fdgeom.steppers.stepper import Stepper
from fdgeom.steppers.substep import Solve, options_for
from fdgeom.systems.poisson.stage import Stage


class SaddleSolve(SaddleSolver, Solve):
    """A solve for a motion and its multiplier."""


class HolonomicStepper(Stepper):
    """Base of the methods whose step is a few solves, one after another."""

    #: The class of systems that the method moves, and what to call the solves.
    moves: ClassVar[type]
    solves: ClassVar[tuple[str, ...]]

    @abstractmethod
    def _sequence(self) -> list[Solve]:
        """The solves of a step, in order."""

    def _setup(self) -> None:
        if not isinstance(self.system, self.moves):
            article = "a" if self.moves.__name__[0] not in "AEIOU" else "an"
            needs = f"{article} {self.moves.__name__}"
            raise wrong_system(type(self).__name__, needs, self.system)
        self.system.check_start()
        self._held = self._sequence()

    def _solve(
        self,
        name: str,
        unknown: Function,
        dt: Constant,
        residual: Form,
        guess: Mapping[Function, Function],
        assignments: Sequence[Mapping[Function, Expr]],
        essential: Sequence[EssentialValues] = (),
        kind: type[Solve] = SaddleSolve,
    ) -> Solve:
        stage = Stage(unknown, (), (), (), (), essential=tuple(essential))
        return kind(
            name,
            stage,
            dt,
            tidy(residual),
            guess,
            assignments,
            options=options_for(self, name, self.solves),
        )

    def _step(self, t: float, dt: float) -> None:
        self.system.set_time(t + dt)
        for solve in self._held:
            solve.take(dt)

    def substeps(self):
        return [(solve, 1.0) for solve in self._held]

    def _solvers(self):
        return [s.__dict__["solver"] for s in self._held if "solver" in s.__dict__]
