"""Steps that solve for two fields like the acceleration at once, as the fourth-order methods do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from firedrake import Constant, Form, Function, MixedFunctionSpace, TestFunctions, split
from ufl.core.expr import Expr

from fdgeom.forms import flatten, tidy
from fdgeom.solvers.data import fields
from fdgeom.solvers.essential import GivenValues
from fdgeom.solvers.held_snes import defaults
from fdgeom.solvers.kept_snes import KeptSNES
from fdgeom.steppers.alpha.motion_stepper import MotionStepper, put_given
from fdgeom.steppers.refusal import wrong_system
from fdgeom.steppers.substep import options_for
from fdgeom.systems.motion.second_order import SecondOrderSystem

Pair = tuple[Expr, Expr]
#: Arrays of the parts of a function, one for each part of its space.
Arrays = list[np.ndarray]


class TwoAccelerations(MotionStepper):
    """Base of the methods whose unknown is a pair of fields, both of the space of q."""

    def _setup(self) -> None:
        system, name = self.system, type(self).__name__
        if not isinstance(system, SecondOrderSystem):
            raise wrong_system(name, "a SecondOrderSystem", system)
        if system.constraint is not None:
            raise ValueError(f"system: {name} takes no constraint; use GeneralizedAlpha")
        self._check_system()
        space = system.space
        self._parts = len(space)
        pieces = [space.sub(k) for k in range(self._parts)] if self._parts > 1 else [space]
        unknown = MixedFunctionSpace(pieces * 2)
        self._unknown = Function(unknown, name="accelerations")
        self._h = Constant(self.dt, name="dt")
        unknowns, tests = self._pair(split(self._unknown)), self._pair(TestFunctions(unknown))
        residual = tidy(self._residual(self._h, unknowns, tests))
        base = defaults(residual, self._unknown, local=False)
        options, prefix, given = options_for(self, "", ())(base)
        dofs = [] if system.given is None else system.given.dofs * 2
        self._essential = [GivenValues(k, d) for k, d in enumerate(dofs)]
        self._solver = KeptSNES(
            residual,
            self._unknown,
            essential=self._essential,
            options=options,
            prefix=prefix,
            given=given,
            name="the accelerations",
        )
        self._start_motion()

    # --- what a method says ----------------------------------------------------------------------
    def _check_system(self) -> None:
        """Raise an error if the method cannot move this system."""

    @abstractmethod
    def _residual(self, h: Constant, unknowns: Pair, tests: Pair) -> Form:
        """What is to vanish."""

    @abstractmethod
    def _prepare(self, t: float, h: float) -> None:
        """Set the first guess and the given values of the unknown; the time is t + h after it."""

    @abstractmethod
    def _accept(self, h: float, first: Arrays, second: Arrays) -> None:
        """Write the new state, from the values of the two fields."""

    # --- stepping --------------------------------------------------------------------------------
    def _step(self, t: float, dt: float) -> None:
        self._h.assign(dt)
        self._prepare(t, dt)
        self._solver.solve()
        solution = self._arrays(self._unknown)
        self._accept(dt, solution[: self._parts], solution[self._parts :])
        if self._moves:
            put_given(self.system)

    @property
    def _moves(self) -> bool:
        given = self.system.given
        return given is not None and given.moves

    @staticmethod
    def _arrays(function: Function) -> Arrays:
        """The values, ghosts included and up to date."""
        parts = fields(function)
        for part in parts:
            part.update_ghosts()
        return [part.array for part in parts]

    @staticmethod
    def _write(function: Function, values: Arrays) -> None:
        for part, value in zip(fields(function), values, strict=True):
            part.array[...] = value
            part.written(ghosts_too=True)

    def _pair(self, parts: Sequence[Expr]) -> Pair:
        n = self._parts
        return (flatten(parts[:n]), flatten(parts[n:])) if n > 1 else tuple(parts)

    def _solvers(self):
        return [self._solver] if "_solver" in self.__dict__ else []
