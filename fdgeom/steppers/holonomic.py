"""Base class of the methods for holonomic constraints: solves of saddle points."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from firedrake import Constant, Form, Function, TestFunction, TestFunctions, split
from ufl.core.expr import Expr

from fdgeom.data import key
from fdgeom.execution import Numerics, saddle
from fdgeom.operations import Flow, Solve, each_part, parts, with_assignments
from fdgeom.operations.dependent import Sources, in_replay
from fdgeom.steppers.stepper import Stepper


class HolonomicStepper(Stepper):
    """Base of the methods whose step is a few solves, one after another."""

    #: Names of the solves.
    solves: ClassVar[tuple[str, ...]]

    def _setup(self) -> None:
        super()._setup()
        forms = () if self.system.constraint is None else self.system.constraint.forms()
        data = Sources(*forms)
        #: What decides whether the configuration is on the constraint, q among it.
        self._of_constraint = {*map(key, (*each_part(data.functions), *data.constants))}
        #: What is saved after steps, so that changes by hand are seen.
        self._known = Sources(*self._watched(), *forms)
        self._known.take()

    def _watched(self) -> Sequence[Expr]:
        """What else than the constraint :meth:`start` looks at."""
        return ()

    def start(self, modified=None):
        changed = self._known.changed() and self._known.snapshot.changed_keys()
        if changed and not in_replay() and not changed.isdisjoint(self._of_constraint):
            # What moves the constraint may be small in a step, and as fast as q in all steps.
            moved = changed.isdisjoint(map(key, parts(self.system.q)))
            try:
                self.system.constraint.check_configuration(loosely=not moved)
            except ValueError as off:
                if not moved:
                    raise
                raise ValueError(
                    "constraint: its data have changed, so that q does not fulfil g(q) = 0 any more, "
                    f"and {type(self).__name__} has no ∂g/∂t for a constraint that moves; set q and "
                    "the velocity for the new one"
                ) from off
        return []

    def started(self, operations):
        if operations:
            self._save()

    def finished(self):
        self._save()

    def forget_coefficients(self):
        self._known.forget()

    def _save(self) -> None:
        # A replay puts back only what is remembered.
        if not in_replay() or self.remembered():
            self._known.take()

    def _unknown(self, name: str):
        """An unknown like (q̇, λ), its parts, and the tests that go with them."""
        system = self.system
        if system.constraint is None:
            unknown = Function(system.space, name=name)
            return unknown, (unknown, None), (TestFunction(system.space), None)
        space = system.space * system.constraint.space
        unknown = Function(space, name=name)
        return unknown, split(unknown), TestFunctions(space)

    def _solve(
        self,
        name: str,
        unknown: Function,
        dt: Constant,
        residual: Form,
        guess: Sequence[Function],
        assignments: Sequence[Mapping[Function, Expr]],
        numerics: Callable[[Form, Function], Numerics] = saddle,
    ) -> Flow:
        """A solve, with first guesses of the parts of its unknown, and assignments after it."""
        solve = Solve(
            work=residual,
            unknown=unknown,
            prescribed=self.system.fixed,
            dt=dt,
            options=self.solve_options(name, self.solves),
            numerics=numerics,
            name=name,
        )
        guesses = dict(zip(parts(unknown), guess, strict=True))
        return Flow(with_assignments(solve, assignments, guess=guesses))
