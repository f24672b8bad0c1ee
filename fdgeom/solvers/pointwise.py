"""Updates that act at each node by itself, compiled from their UFL expressions."""

from __future__ import annotations

from collections.abc import Mapping

from firedrake import Function
from ufl.core.expr import Expr

from fdgeom.solvers.compiled.unit import Program, Unit


class PointwiseUpdate:
    """Assign expressions to functions, node by node, all at once.

    Parameters
    ----------
    assignments : dict of Function to UFL expression
        Targets and what they get. All functions, on both sides, must have the same nodes (a target
        may occur in the expressions: the old value is meant); no derivatives in space. Firedrake
        Constants may be changed between two calls.

    Raises
    ------
    ValueError
        If an expression has the wrong shape, an argument, or functions with other nodes.

    Notes
    -----
    The expressions are compiled once (TSFC's kernel for one node in a loop over all nodes, ghosts
    included), so :meth:`apply` costs microseconds and nothing needs to be communicated after it.
    """

    def __init__(self, assignments: Mapping[Function, Expr]) -> None:
        if not assignments:
            raise ValueError("assignments must not be empty")
        program = Program(next(iter(assignments)).function_space().mesh())
        self._phase = program.add_update(assignments)
        self._unit = Unit(program)

    def apply(self) -> None:
        """Do the assignments."""
        self._unit.begin()
        self._unit.solve(self._phase)
        self._unit.end()
