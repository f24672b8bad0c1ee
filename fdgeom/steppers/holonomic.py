"""Base class of the methods for holonomic constraints: solves of saddle points."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from firedrake import Constant, Form, Function, TestFunction, TestFunctions, split
from ufl.core.expr import Expr

from fdgeom.data import key
from fdgeom.execution import Numerics, saddle
from fdgeom.operations import Flow, Solve, parts, with_assignments
from fdgeom.operations.dependent import Sources, in_replay
from fdgeom.steppers.stepper import Stepper


class HolonomicStepper(Stepper):
    """Base of the methods whose step is a few solves, one after another."""

    #: Names of the solves.
    solves: ClassVar[tuple[str, ...]]

    def _setup(self) -> None:
        super()._setup()
        constraint = self.system.constraint
        #: What decides whether the configuration is on the constraint, q among it.
        self._constraint_data = Sources() if constraint is None else Sources(*constraint.forms())
        self._constraint_data.take()
        #: What is saved after steps, so that changes by hand are seen, and what of it has changed.
        self._watched: list[Sources] = [self._constraint_data]
        self._changed: list[Sources] = []

    def start(self, modified=None):
        self._changed = [watched for watched in self._watched if watched.changed()]
        if self._constraint_data in self._changed and not in_replay():
            # What moves the constraint may be small in a step, and as fast as q in all steps.
            own = map(key, parts(self.system.q))
            moved = self._constraint_data.snapshot.changed_keys().isdisjoint(own)
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
        return super().start(modified)

    def started(self, operations):
        super().started(operations)
        self._save(self._changed)

    def finished(self):
        super().finished()
        self._save(self._watched)

    def _save(self, watched: Sequence[Sources]) -> None:
        for data in watched:
            # A replay does not put back that of the constraint.
            if not (data is self._constraint_data and in_replay()):
                data.take()

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
