"""One implicit substep of a Poisson system: some parts of the state move, the others wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from firedrake import Constant, Form, Function
from ufl.algorithms import replace
from ufl.core.expr import Expr

from fdgeom.forms import flatten, tidy
from fdgeom.solvers.data import Field, Number
from fdgeom.solvers.held_snes import HeldSNES, defaults
from fdgeom.solvers.options import merge
from fdgeom.solvers.pointwise import PointwiseUpdate
from fdgeom.solvers.structure import is_local
from fdgeom.systems.poisson.poisson import PoissonSystem
from fdgeom.systems.poisson.stage import Stage


@dataclass(frozen=True)
class Rule:
    """How a substep goes: its residual, and how far the new value lies beyond the stage.

    Attributes
    ----------
    residual : callable
        ``residual(system, stage, dt)`` gives the form.
    reach : float
        new = old + reach (stage - old): 2 where the stage is the mean of the two, 1 where it is the
        new value. So it says what a stage is given where the new value is prescribed.
    stage : callable, optional
        ``stage(system, active)`` makes the unknown; that of ``system.stage`` if not given.
    """

    residual: Callable[[PoissonSystem, Stage, Expr], Form]
    reach: float
    stage: Callable[[PoissonSystem, Sequence[int]], Stage] = lambda system, active: system.stage(
        active
    )


def _change(system: PoissonSystem, stage: Stage) -> tuple[Expr, ...]:
    return tuple(new - old for new, old in zip(stage.state, system.parts, strict=True))


def defining(system: PoissonSystem, stage: Stage) -> Form:
    """What determines the unknowns of a stage beside the state.

    ⟨b, w⟩ = dh(z)[w] where the gradient b is one, and the conditions of auxiliary functions.
    """
    if stage.gradient_test is None:
        return stage.conditions
    w = stage.gradient_test
    slope = system.energy_derivative(w, stage.state, stage.auxiliary)
    return system.pairing(w, stage.gradient, at=stage.state) - slope + stage.conditions


def _midpoint(system, stage, dt):
    # The stage is the midpoint: ⟨w, z_m - z⁰⟩ = Δt/2 {w, h}(z_m).
    flow = system.bracket(stage.test, stage.gradient, at=stage.state)
    flow += system.forcing(stage.test, stage.gradient, dt)
    return (
        system.pairing(stage.test, _change(system, stage), at=stage.state)
        - 0.5 * dt * flow
        + defining(system, stage)
    )


def _trapezoidal(system, stage, dt):
    # The stage is the new value: ⟨w, z¹ - z⁰⟩ = Δt/2 ({w, h}(z¹) + {w, h}(z⁰)).
    if stage.auxiliary:
        raise ValueError(
            "system: the trapezoidal rule does not treat auxiliary functions; take ImplicitMidpoint"
        )
    if stage.gradient_test is not None:
        raise ValueError("system: the trapezoidal rule needs a pointwise variational derivative")
    held = [system.frozen_gradient(k) for k in range(len(system.parts))]
    if any(b is None for b in held):
        known = system.gradient(system.parts)
        held = [g if b is None else b for b, g in zip(held, known, strict=True)]
    new = system.bracket(stage.test, stage.gradient, at=stage.state)
    old = system.bracket(stage.test, tuple(held))
    middle = tuple((a + b) / 2 for a, b in zip(stage.gradient, held, strict=True))
    old += 2 * system.forcing(stage.test, middle, dt)
    mean = tuple((a + b) / 2 for a, b in zip(system.parts, stage.state, strict=True))
    change = system.pairing(stage.test, _change(system, stage), at=mean)
    return change - 0.5 * dt * (new + old)


#: Implicit midpoint.
MIDPOINT = Rule(_midpoint, reach=2.0)
#: Trapezoidal mean of the flow.
TRAPEZOIDAL = Rule(_trapezoidal, reach=1.0)


class Solve:
    """One solve of a step in an unknown of its own, and the pointwise assignments that follow it.

    Parameters
    ----------
    name : str
        What to call it in an error.
    stage : Stage
        The unknown (and whether its gradient is an unknown too).
    dt : Constant
        The symbol in the residual and the assignments for how far the solve moves.
    residual : Form
        What is to vanish.
    guess : dict
        First guess of the unknown's parts: for each the function to copy.
    assignments : list of dict
        Groups of functions and the expressions that they get after the solve.
    options : SolveOptions
        The user's PETSc options.
    exact : bool
        Whether two such solves, one after another, are the same as one for the sum of the times.
    """

    #: What solves.
    snes: type[HeldSNES] = HeldSNES

    def __init__(
        self,
        name: str,
        stage: Stage,
        dt: Constant,
        residual: Form,
        guess: Mapping[Function, Function],
        assignments: Sequence[Mapping[Function, Expr]],
        *,
        options: SolveOptions,
        exact: bool = False,
    ) -> None:
        self.name = name
        self.stage = stage
        self.dt = dt
        self._dt = Number(dt)
        self.residual = residual
        self.guess = dict(guess)
        self.assignments = list(assignments)
        #: Groups of assignments before the solve, of compiled steps alone.
        self.preparations: list[Mapping[Function, Expr]] = []
        #: Newton updates beyond convergence, of compiled steps alone.
        self.more = 0
        self.options = options
        self.exact = exact
        if options.told:
            _ = self.solver  # so that an unknown option is refused now

    @cached_property
    def solver(self) -> HeldSNES:
        """The SNES, made when it is first needed."""
        self._dt.set(1.0)
        options, prefix, given = self.options(self._defaults())
        return self.snes(
            self.residual,
            self.stage.unknown,
            essential=self.stage.essential,
            options=options,
            prefix=prefix,
            given=given,
            name=self.name,
        )

    def _defaults(self) -> dict:
        """PETSc options under those of the user."""
        unknown = self.stage.unknown
        return defaults(self.residual, unknown, is_local(self.residual, unknown))

    @cached_property
    def _copies(self) -> list[tuple[Field, Field]]:
        return [(Field(target), Field(source)) for target, source in self.guess.items()]

    @cached_property
    def _updates(self) -> list[PointwiseUpdate]:
        return [PointwiseUpdate(group) for group in self.assignments]

    def take(self, dt: float) -> None:
        """Move by ``dt`` through PETSc SNES."""
        solver = self.solver
        self._dt.set(dt)
        for target, source in self._copies:
            target.array[...] = source.array
            target.written()
        solver.solve()
        for update in self._updates:
            update.apply()


class Substep(Solve):
    """Moves the parts ``active`` of a Poisson system by one implicit rule.

    Parameters
    ----------
    system : PoissonSystem
        What is moved.
    active : sequence of int
        The parts that move.
    rule : Rule
        How.
    options
        As for a :class:`Solve`.
    companions : dict
        Keyword arguments for ``system.companions`` (how the configuration follows).
    """

    def __init__(
        self,
        system: PoissonSystem,
        active: Sequence[int],
        rule: Rule,
        *,
        options: SolveOptions,
        companions: Mapping,
    ) -> None:
        dt = Constant(0.0, name="dt")
        stage = rule.stage(system, active).reaching(rule.reach)
        super().__init__(
            " and ".join(system.names[k] for k in active),
            stage,
            dt,
            tidy(rule.residual(system, stage, dt)),
            system.start_values(stage),
            _assignments(system, stage, rule.reach, dt, companions),
            options=options,
        )

    @property
    def carried(self) -> list[Function]:
        """Parts of the unknown that begin with what the last solve has left there."""
        guessed = {id(part) for f in self.guess for part in f.subfunctions}
        return [f for f in self.stage.unknown.subfunctions if id(f) not in guessed]


def _assignments(system, stage, reach: float, dt, companions) -> list[dict[Function, Expr]]:
    """What writes the new parts, and the fields that move with them, after the solve."""
    pieces = stage.unknown.subfunctions if len(stage.unknown.function_space()) > 1 else ()
    plain = {stage.unknown: flatten(pieces)} if pieces else {}
    new = {}
    for k in stage.active:
        old = system.parts[k]
        new[k] = old + reach * (replace(stage.state[k], plain) - old)
    followers = system.companions(stage.active, new, dt=dt, **companions)
    groups = [
        {system.parts[k]: value} for k, value in new.items() if system.parts[k] not in followers
    ]
    return [*groups, followers] if followers else groups


@dataclass(frozen=True)
class SolveOptions:
    """The user's PETSc options for one solve of a stepper.

    Attributes
    ----------
    given : dict
        Options of the stepper.
    prefix : str
        Its prefix.
    name, names
        Name of the solve, and of all solves of the stepper.
    """

    given: Mapping
    prefix: str
    name: str
    names: tuple[str, ...]

    def __call__(self, base: Mapping) -> tuple[dict, str, dict]:
        """Options over those of ``base``, the prefix, and what of them the user wrote."""
        return merge(base, self.given, self.prefix, self.name, self.names)

    @property
    def told(self) -> bool:
        """Whether the user has said anything to this solve."""
        return bool(self({})[2])


def options_for(stepper, name: str, names: Sequence[str]) -> SolveOptions:
    """The user's options for a solve of a stepper."""
    return SolveOptions(stepper._given, stepper._prefix, name, tuple(names))
