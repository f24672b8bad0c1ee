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
from fdgeom.solvers.numerics import Numerics
from fdgeom.solvers.settled import Settled
from fdgeom.steppers.alpha.motion_stepper import MotionStepper, put_given
from fdgeom.steppers.solve import Solve
from fdgeom.systems.motion.second_order import SecondOrderSystem

Pair = tuple[Expr, Expr]
#: Arrays of the parts of a function, one for each part of its space.
Arrays = list[np.ndarray]


class TwoAccelerations(MotionStepper):
    """Base of the methods whose unknown is a pair of fields, both of the space of q."""

    moves = SecondOrderSystem

    def _setup(self) -> None:
        system = self.system
        if system.constraint is not None:
            name = type(self).__name__
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
        dofs = [] if system.given is None else system.given.dofs * 2
        self._essential = [GivenValues(k, d) for k, d in enumerate(dofs)]
        self._solve = Solve(
            "the accelerations",
            self._unknown,
            self._h,
            residual,
            {},
            [],
            essential=self._essential,
            options=self._options(),
            numerics=_of_everything,
        )
        self._start_motion()

    def substeps(self):
        return [(self._solve, 1.0)]

    def uncompilable(self):
        return f"{type(self).__name__} is not made of implicit substeps"

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
        solver = self._solve.solver  # which sets h where it is made
        self._h.assign(dt)
        self._prepare(t, dt)
        solver.solve()
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


def _of_everything(residual: Form, unknown: Function) -> Numerics:
    return Numerics(defaults(residual, unknown, local=False), Settled(), kept=True)
