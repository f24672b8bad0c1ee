"""What the methods for constraints share: solves, each for a saddle point."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from firedrake import Constant, Form, Function
from ufl.core.expr import Expr

from fdgeom.forms import tidy
from fdgeom.solvers import Numerics
from fdgeom.solvers.numerics import saddle
from fdgeom.steppers.solve import Solve
from fdgeom.steppers.stepper import Stepper


class HolonomicStepper(Stepper):
    """Base of the methods whose step is a few solves, one after another."""

    #: What to call the solves.
    solves: ClassVar[tuple[str, ...]]

    def underivable(self):
        return None

    def _solve(
        self,
        name: str,
        unknown: Function,
        dt: Constant,
        residual: Form,
        guess: Mapping[Function, Function],
        assignments: Sequence[Mapping[Function, Expr]],
        numerics: Callable[[Form, Function], Numerics] = saddle,
    ) -> Solve:
        return Solve(
            name,
            unknown,
            dt,
            tidy(residual),
            guess,
            assignments,
            essential=self.system.fixed,
            options=self.solve_options(name, self.solves),
            numerics=numerics,
        )
