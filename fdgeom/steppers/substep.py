"""One implicit substep of a Poisson system: some parts of the state move, the others are frozen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from firedrake import Constant, Form, Function
from ufl.algorithms import replace
from ufl.core.expr import Expr

from fdgeom.execution import plain
from fdgeom.execution.options import SolveOptions
from fdgeom.forms import flatten
from fdgeom.operations import Operation, Solve, prescribed, with_assignments
from fdgeom.systems.poisson.poisson import PoissonSystem, Stage


@dataclass(frozen=True)
class Rule:
    """A rule for a substep: its residual, and ``reach`` in new = old + reach (stage - old), 2 where
    the stage is the mean of the two, 1 where it is the new value.
    """

    residual: Callable[[PoissonSystem, Stage, Expr], Form]
    reach: float
    stage: Callable[[PoissonSystem, Sequence[int]], Stage] = lambda system, active: system.stage(
        active
    )


def _change(system: PoissonSystem, stage: Stage) -> tuple[Expr, ...]:
    return tuple(new - old for new, old in zip(stage.state, system.parts, strict=True))


def defining(system: PoissonSystem, stage: Stage) -> Form:
    """The equations of the unknowns of a stage beside the state: ⟨b, w⟩ = dh(z)[w] where the
    gradient b is one, and the conditions of auxiliary functions.
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
    present = [system.frozen_gradient(k) for k in range(len(system.parts))]
    if any(b is None for b in present):
        known = system.gradient(system.parts)
        present = [g if b is None else b for b, g in zip(present, known, strict=True)]
    new = system.bracket(stage.test, stage.gradient, at=stage.state)
    old = system.bracket(stage.test, tuple(present))
    middle = tuple((a + b) / 2 for a, b in zip(stage.gradient, present, strict=True))
    old += 2 * system.forcing(stage.test, middle, dt)
    mean = tuple((a + b) / 2 for a, b in zip(system.parts, stage.state, strict=True))
    change = system.pairing(stage.test, _change(system, stage), at=mean)
    return change - 0.5 * dt * (new + old)


#: Implicit midpoint.
MIDPOINT = Rule(_midpoint, reach=2.0)
#: Trapezoidal mean of the flow.
TRAPEZOIDAL = Rule(_trapezoidal, reach=1.0)


def substep(
    system: PoissonSystem,
    active: Sequence[int],
    rule: Rule,
    *,
    options: SolveOptions,
    companions: Mapping,
) -> tuple[list[Operation], list[Function]]:
    """One implicit step of the parts ``active`` of a Poisson system, by a rule, and the parts of its
    unknown whose guess is the result of the last solve; ``companions`` are options of
    ``system.companions``.
    """
    dt = Constant(0.0, name="dt")
    stage = rule.stage(system, active).reaching(rule.reach)
    # Symmetric, so that methods of second order stay so where coefficients change in time.
    timed = {"dt": dt, "clock": system.clocks or None, "at": 0.5}
    maps, given = prescribed(stage.essential, stage.unknown, **timed)
    solve = Solve(
        work=rule.residual(system, stage, dt),
        unknown=stage.unknown,
        prescribed=given,
        options=options,
        numerics=plain,
        name=" and ".join(system.names[k] for k in active),
        **timed,
    )
    guess = system.start_values(stage)
    groups = _assignments(system, stage, rule.reach, dt, companions)
    guessed = {id(part) for f in guess for part in f.subfunctions}
    carried = [f for f in stage.unknown.subfunctions if id(f) not in guessed]
    return [*maps, *with_assignments(solve, groups, guess=guess)], carried


def _assignments(system, stage, reach: float, dt, companions) -> list[dict[Function, Expr]]:
    """Assignments after the solve: the new parts, and the fields that move with them."""
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
