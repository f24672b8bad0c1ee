"""Solves at the nodes of beams coupled by joints."""

from collections.abc import Callable
from dataclasses import dataclass

from firedrake import Constant, Form, Function, dot
from ufl.core.expr import Expr

from fdgeom.beams.rod.numerics import exact_numerics
from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.execution.options import SolveOptions
from fdgeom.operations import Assignments, Flow, Solve, with_assignments
from fdgeom.systems.motion.nodal_unknown import NodalUnknown


@dataclass(frozen=True)
class JoinedNodes:
    """Data that the solves of a step share."""

    system: RodMotion
    #: ``at_nodes(density)``: the form of a density that is lumped at the nodes.
    at_nodes: Callable[[Expr], Form]
    #: ``in_space(displacement)``: the same with its translation in the space frame.
    in_space: Callable[[Expr], Expr]


@dataclass(frozen=True)
class Joined:
    """A solve for u at all nodes, with impulses of the joints."""

    #: ``gap(u)`` is zero without the impulses of joints and the half kick of their springs.
    gap: Callable[[Expr], Expr]
    #: ``condition(u, nu)``: the form of the conditions of the joints.
    condition: Callable[[Expr, Expr], Form]
    #: ``at_joints(u, impulse)``: assignments at the nodes of joints.
    at_joints: Callable[[Expr, Expr], Assignments]
    #: The function that u changes.
    changed: Function
    #: ``moved(u, momentum)``: assignments at all nodes; only those at the joints if not given.
    moved: Callable[[Expr, Expr], Assignments] | None = None
    #: ``before(u)``: the momentum for that.
    before: Callable[[Expr], Expr] | None = None


def joined_solve(
    name: str, joined: Joined, nodes: JoinedNodes, dt: Constant, options: SolveOptions
) -> Flow:
    """The solve for all nodes and multipliers at once."""
    system, joints, g = nodes.system, nodes.system.constraint, nodes.system.configuration
    moved = joined.moved

    def springs(test: Expr) -> Form:
        return 0.5 * dt * system.spring_work(g, system.v, nodes.in_space(test))

    unknown = NodalUnknown(system)
    whole, u, impulse = unknown.function, unknown.vector, unknown.multiplier
    residual = nodes.at_nodes(dot(joined.gap(u), unknown.test))
    residual += joints.slope(impulse, nodes.in_space(unknown.test), g)
    residual += springs(unknown.test)
    residual += joined.condition(u, unknown.nu)
    solve = Solve(
        work=residual,
        unknown=whole,
        guess=Function(whole.function_space(), name="zero"),
        prescribed=unknown.prescribed,
        dt=dt,
        clock=system.clocks,
        at=0.5,
        options=options,
        numerics=lambda residual, function: exact_numerics(joined.changed),
        name=name,
    )
    after = joined.at_joints(u, impulse) if moved is None else moved(u, joined.before(u))
    return Flow(with_assignments(solve, [after]))
