"""Solves at the nodes of beams coupled by joints, through PETSc or in compiled code."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from firedrake import Constant, Form, Function, TestFunction, dot
from ufl.core.expr import Expr

from fdgeom.beams.rod.rod_motion import RodMotion
from fdgeom.beams.rod.solve import exact_numerics
from fdgeom.forms import simplify
from fdgeom.operations import Assignments, Flow, Solve, with_assignments
from fdgeom.solvers import EssentialValues
from fdgeom.solvers.linked import Linked
from fdgeom.solvers.options import SolveOptions
from fdgeom.steppers.compiled.hints import AtLinks, hint
from fdgeom.systems.motion.nodal_unknown import NodalUnknown


@dataclass(frozen=True)
class JoinedNodes:
    """Data that the solves of a step share."""

    system: RodMotion
    #: ``at_nodes(density)``: the form of a density that is lumped at the nodes.
    at_nodes: Callable[[Expr], Form]
    #: ``in_space(displacement)``: the same with its translation in the space frame.
    in_space: Callable[[Expr], Expr]
    #: μ.
    momentum: Function
    #: Given degrees of freedom of a vector at the nodes.
    fixed: Sequence[EssentialValues]


@dataclass(frozen=True)
class Joined:
    """A solve for u at all nodes, with impulses of the joints."""

    #: ``gap(u)`` is zero without the impulses of joints and the half kick of their springs.
    gap: Callable[[Expr], Expr]
    #: ``condition(u, nu)``: the form of the conditions of the joints.
    condition: Callable[[Expr, Expr], Form]
    #: ``at_joints(u, impulse)``: assignments at the nodes of joints.
    at_joints: Callable[[Expr, Expr], Assignments]
    #: The function that u changes, and the initial guess of compiled steps.
    changed: Function
    guess: Function
    #: ``moved(u, momentum)``: assignments at all nodes; only those at the joints if not given.
    moved: Callable[[Expr, Expr], Assignments] | None = None
    #: ``before(u)``: the momentum for that.
    before: Callable[[Expr], Expr] | None = None


def joined_solve(
    name: str, joined: Joined, nodes: JoinedNodes, dt: Constant, options: SolveOptions
) -> Flow:
    """The solve: through PETSc for all nodes and multipliers at once, compiled for those of joints."""
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
    solve = hint(
        Solve(
            work=simplify(residual),
            unknown=whole,
            guess=Function(whole.function_space(), name="zero"),
            prescribed=unknown.prescribed,
            dt=dt,
            clock=system.clocks,
            at=0.5,
            options=options,
            numerics=lambda residual, function: exact_numerics(joined.changed),
            name=name,
        ),
        uncompilable=("joints couple the nodes of several ranks" if system.comm.size > 1 else None),
        linked=_at_links(name, joined, nodes, springs),
    )
    after = joined.at_joints(u, impulse) if moved is None else moved(u, joined.before(u))
    return Flow(with_assignments(solve, [after]))


def _at_links(name: str, joined: Joined, nodes: JoinedNodes, springs) -> AtLinks:
    """The solve with separate equations for nodes and for joints."""
    system, joints, moved = nodes.system, nodes.system.constraint, joined.moved
    own, test = Function(system.space, name=name), TestFunction(system.space)
    impulse = joints.of_cells("impulse")
    told = Function(system.multiplier.function_space(), name="impulse")
    equations = Linked(
        residual=simplify(nodes.at_nodes(dot(joined.gap(own), test))),
        unknown=own,
        guess=joined.guess,
        multiplier=impulse,
        force=joints.slope(impulse, nodes.in_space(test), system.configuration),
        rest=springs(test),
        gap=joined.condition(own, TestFunction(impulse.function_space())),
        conditions=joints.sizes,
        owner=joints.owner,
        changed=joined.changed,
        told=told,
        finish=joined.at_joints(own, told),
        essential=nodes.fixed,
        all_first=moved is not None,
    )
    return AtLinks(equations, [] if moved is None else [moved(own, nodes.momentum)])
