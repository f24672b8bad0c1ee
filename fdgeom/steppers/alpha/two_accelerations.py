"""Steps that solve for two fields like the acceleration at once, as the fourth-order methods do."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from firedrake import Constant, Form, Function, MixedFunctionSpace, TestFunctions, split
from ufl.core.expr import Expr

from fdgeom.execution import Numerics, defaults
from fdgeom.forms import flatten
from fdgeom.operations import (
    EPSILON,
    ConvergenceTest,
    Copy,
    Flow,
    Performed,
    Prescribed,
    Solve,
    parts,
    with_assignments,
)
from fdgeom.steppers.alpha.motion_stepper import MotionStepper
from fdgeom.systems.motion.second_order import SecondOrderSystem

Pair = tuple[Expr, Expr]


class TwoAccelerations(MotionStepper):
    """Base of the methods whose unknown is a pair of fields, both of the space of q."""

    moves = SecondOrderSystem

    def _setup(self) -> None:
        system = self.system
        if system.constraint is not None:
            name = type(self).__name__
            raise ValueError(f"system: {name} takes no constraint; use GeneralizedAlpha")
        self._check_system()
        self._start_motion()

    def flows(self):
        space, h = self.system.space, Constant(self.dt, name="dt")
        n = self._parts = len(space)
        pieces = [space.sub(k) for k in range(n)] if n > 1 else [space]
        whole = MixedFunctionSpace(pieces * 2)
        unknown, first = Function(whole, name="accelerations"), Function(whole, name="first guess")
        residual = self._residual(h, self._pair(split(unknown)), self._pair(TestFunctions(whole)))
        held = self.system.held
        dofs = [] if held is None else held.dofs * 2
        given = Function(whole, name="given accelerations").subfunctions
        timed = {"dt": h, "clock": self.system.model.clocks}
        solve = Solve(
            work=residual,
            unknown=unknown,
            guess=first,
            prescribed=[Prescribed(d, given[k], k) for k, d in enumerate(dofs)],
            options=self.solve_options(),
            numerics=self._numerics,
            name="the accelerations",
            **timed,
        )
        guesses, found = self._pairs(first.subfunctions), self._pairs(unknown.subfunctions)
        operations = with_assignments(
            solve,
            [
                self._new_state(h, *state, *pair)
                for state, pair in zip(self._states(), found, strict=True)
            ],
            before=[
                dict(zip(pair, self._guess(h, *state), strict=True))
                for state, pair in zip(self._states(), guesses, strict=True)
            ],
        )
        if self.system.model.given_in_time():
            clock, given_values = self.system.model.clocks, []
            # Of the middle and of the end of the step.
            for at, targets in ((0.5, given[:n]), (1.0, given[n:])):
                given_values.append(Performed(do=held.update, operations=[], clock=clock, at=at))
                pairs = zip(parts(held.a), targets, strict=True)
                given_values += [Copy(source=a, target=target) for a, target in pairs]
            operations = [*given_values, *operations, held.putting(clock=clock)]
        return [Flow(operations)]

    def _numerics(self, residual: Form, unknown: Function) -> Numerics:
        """Newton's method ends at round-off of q over dt², also near rest."""
        test = ConvergenceTest(self.system.q, unnoticed=EPSILON / self.dt**2)
        return replace(of_everything(residual, unknown), converged=test)

    def underivable(self):
        if self.system.model.given_in_time():
            return "boundary values move: take GeneralizedAlpha"
        return None

    def uncompilable(self):
        return f"{type(self).__name__} is not made of implicit substeps"

    # --- what a method says ----------------------------------------------------------------------
    def _check_system(self) -> None:
        """Raise an error if the method cannot move this system."""

    @abstractmethod
    def _residual(self, h: Constant, unknowns: Pair, tests: Pair) -> Form:
        """The residual of both unknowns."""

    def _beside(self) -> tuple[Function, ...]:
        """Functions that the method reads and writes beside the system's q, v and accelerations."""
        return ()

    @abstractmethod
    def _guess(self, h: Constant, *state: Expr) -> Pair:
        """First guesses of the two fields, from a part of q, v, accelerations, carried fields."""

    @abstractmethod
    def _new_state(self, h: Constant, *state_and_fields: Function) -> dict[Function, Expr]:
        """The new state of that part, from the two fields."""

    # --- parts of the space of q -----------------------------------------------------------------
    def _states(self) -> list[tuple[Function, ...]]:
        system = self.system
        state = system.q, system.v, system.acceleration, system.algorithmic, *self._beside()
        return list(zip(*(parts(f) for f in state), strict=True))

    def _pairs(self, parts: Sequence[Function]) -> list[tuple[Function, Function]]:
        return list(zip(parts[: self._parts], parts[self._parts :], strict=True))

    def _pair(self, parts: Sequence[Expr]) -> Pair:
        n = self._parts
        return (flatten(parts[:n]), flatten(parts[n:])) if n > 1 else tuple(parts)


def of_everything(residual: Form, unknown: Function) -> Numerics:
    """Coupled equations, whose matrix is factorised again only if it changes."""
    return Numerics(defaults(residual, unknown, local=False), ConvergenceTest(), reuse_matrix=True)
