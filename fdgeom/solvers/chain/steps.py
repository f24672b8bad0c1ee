"""The C++ text of whole steps: pointwise assignments, and the order of what a step does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import ufl
from firedrake import Constant, Function
from ufl.algorithms import expand_derivatives
from ufl.core.expr import Expr

from fdgeom.solvers.chain.cells import Point
from fdgeom.solvers.chain.emission import statements
from fdgeom.solvers.chain.graph import Graph
from fdgeom.solvers.chain.parts import AT_NODES, IN_CELLS, part_of, parts_of
from fdgeom.solvers.chain.scalars import Scalars
from fdgeom.solvers.chain.source import Loads
from fdgeom.solvers.compiled.problem import pieces
from fdgeom.solvers.compiled.refused import CannotCompile
from fdgeom.solvers.compiled.structs import header


@dataclass(frozen=True)
class Map:
    """Pointwise assignments: functions of nodes from others of nodes, or values in the middle of cells.

    Functions of degree 2 or more are assigned as what they are at one kind of nodes.
    """

    assignments: Mapping[Function, Expr]

    def text(self, name: str, loads: Loads) -> str:
        """The C++ function."""
        graph = Graph()
        targets = [part_of(f) for f in self.assignments]
        kinds = {t.kind for t in targets}
        if len(kinds) != 1:
            raise CannotCompile("an update of functions of nodes and of cells at once")
        (kind,) = kinds
        nodal = targets[0].nodal

        def terminal(e, derivatives: int) -> np.ndarray:
            return at_nodes(graph, e, derivatives, kind)

        if kind == IN_CELLS:
            mesh = targets[0].function.function_space().mesh()
            terminal = Point(graph, mesh, 0.5, None, None, {})
        scalars, outputs = Scalars(graph, terminal), []
        for part, expression in zip(targets, self.assignments.values(), strict=True):
            lowered = expand_derivatives(ufl.as_ufl(expression))
            for k, node in enumerate(scalars(lowered).reshape(-1)):
                outputs.append((loads(("value", part.function, "C", k)), node))
        # All are read before any is written.
        lines = statements(
            graph, [(f"vec o{k}", node) for k, (_, node) in enumerate(outputs)], loads
        )
        lines += [f"{target} = o{k}.v;" for k, (target, _) in enumerate(outputs)]
        body = "\n    ".join(lines)
        return f"""
static void {name}(const Chain &X) {{
  for (long k = 0; k < X.m + {int(nodal)}; ++k) {{
    {body}
  }}
}}
"""


def at_nodes(graph: Graph, e, derivatives: int, kind: tuple = AT_NODES) -> np.ndarray:
    """A terminal of assignments to functions of nodes, as inputs of a graph.

    ``kind``: that of the parts that are assigned to.
    """
    if derivatives:
        raise CannotCompile("derivatives in space in an update")
    if isinstance(e, Constant):
        keys = [("constant", e, k) for k in range(int(np.prod(e.ufl_shape, dtype=int)))]
    elif isinstance(e, Function):
        parts = [part for p in pieces(e) for part in parts_of(p) if part.kind == kind]
        if len(parts) != len(pieces(e)):
            raise CannotCompile(f"{e.name()} has other nodes than what an update writes")
        keys = [("value", p.function, "C", k) for p in parts for k in range(p.size)]
    else:
        raise CannotCompile(f"{type(e).__name__} in an update")
    made = np.empty(len(keys), dtype=object)
    made[:] = [graph.input(key) for key in keys]
    return made.reshape(e.ufl_shape)


@dataclass(frozen=True)
class TurnCheck:
    """The cosines of half the turns of cells from the ``old`` to the ``new`` quaternions of the nodes.

    See turns.hpp. ``cosines`` (DG0, 2) gets those of the change and of the new turns; what is less than
    that of 45 degrees is too far, of the new turns if ``soft``.
    """

    old: Function
    new: Expr
    cosines: Function
    soft: bool

    def text(self, loads: Loads) -> str:
        """The C++ function that finds whether some cell turns too far."""
        graph, mesh = Graph(), self.cosines.function_space().mesh()
        outputs = []
        for name, e in (("o", self.old), ("n", self.new)):
            lowered = expand_derivatives(ufl.as_ufl(e))
            for side, place in (("a", 0.0), ("b", 1.0)):
                nodes = Scalars(graph, Point(graph, mesh, place, None, None, {}))(lowered)
                outputs += [(f"{name}{side}[{k}]", x) for k, x in enumerate(nodes.reshape(-1))]
        body = "\n    ".join(statements(graph, outputs, loads))
        target = f"X.F[{loads.number(self.cosines)}]"
        state = f" && all_le(least, {target}[2 * k + 1])" if self.soft else ""
        return f"""{header("turns.hpp")}
static bool turns_too_far(const Chain &X) {{
  const vec least = least_cosine;
  bool fine = true;
  for (long k = 0; k < X.m; ++k) {{
    vec oa[4], ob[4], na[4], nb[4], change, state;
    {body}
    half_cosines(oa, ob, na, nb, change, state);
    const lane_mask there = has_cell(X, k);
    {target}[2 * k] = choose(there, change, vec(1.0));
    {target}[2 * k + 1] = choose(there, state, vec(1.0));
    fine = fine && all_le(least, {target}[2 * k]){state};
  }}
  return !fine;
}}
"""


@dataclass(frozen=True)
class Step:
    """A step: maps before the solve, by their numbers, the solve, maps after it.

    Attributes
    ----------
    given : sequence of int
        Maps that evaluate the given degrees of freedom; they come first.
    before, after : sequence of int
        Maps.
    attempt : {"", "smaller", "contracting"}
        How two guesses are tried, as `Solve` says.
    other : sequence of int
        Maps that make the other guess.
    moved : sequence of int
        Maps after each update of the unknown, for what follows it.
    relative : bool
        Whether the given degrees of freedom are what those of the unknown move by, evaluated anew
        after each update; else they are what the unknown is.
    turns : TurnCheck, optional
        Of the cells of a beam, before the maps after the solve.
    """

    given: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]
    attempt: str = ""
    other: Sequence[int] = ()
    moved: Sequence[int] = ()
    relative: bool = False
    turns: TurnCheck | None = None

    def text(self, loads: Loads) -> str:
        """The C++ class."""
        check = "" if self.turns is None else _CHECK
        given, before, after, moved, other = (
            " ".join(f"each(X, map{k});" for k in group)
            for group in (self.given, self.before, self.after, self.moved, self.other)
        )
        given += " each(X, Cell::follow, Link::follow);" if self.given else ""
        hold = "" if self.relative else "each(X, Cell::hold, Link::hold);"
        moved += f" {given}" if self.relative else ""
        other = f"restore(X); {other} hold(X);" if other else ""
        return f"""{"" if self.turns is None else self.turns.text(loads)}
struct Step {{
  static void hold(Net &X) {{ {hold} }}
  static void moved(Net &X) {{ {moved} }}
  static void save(Net &X) {{ each(X, Cell::save, Link::save); }}
  static void restore(Net &X) {{ each(X, Cell::restore, Link::restore); }}
  static void other(Net &X) {{ {other} }}
  static int solve(Net &X, const Test &t, long &iterations) {{
    {_ATTEMPTS[self.attempt]}
  }}
  static void begin(Net &X) {{
    {given}
    {before} hold(X);
    save(X);
  }}
  static int take(Net &X, const Test &t, long &iterations) {{
    begin(X);
    const int reason = solve(X, t, iterations);
    if (reason != converged) {{ restore(X); return reason; }}
    {check}
    {after}
    return reason;
  }}
}};
extern "C" int fdgeom_chain_advance(Net *X, const Test *t, long steps, const double *times, double *clock,
                                    const Kept *kept, long *done, long *iterations) {{
  return advance<Step>(*X, *t, steps, times, clock, kept, done, iterations);
}}
"""


_CHECK = """
    double far = 0.0;
    each(X, [&far](const Chain &Y) { far += turns_too_far(Y); }, [](const Chain &) {});
    sum_over(X.ranks, &far, 1);
    if (far > 0.0) { restore(X); return too_far; }"""

# Which guesses are tried, until one leads to a solution.
_ATTEMPTS = {
    "": "return newton<Cell, Link, Step>(X, t, iterations);",
    "smaller": """
    evaluate<Cell, Link>(X);
    const double first = X.residual;
    other(X);
    evaluate<Cell, Link>(X);
    const bool is_smaller = X.residual <= first;
    if (!is_smaller) restore(X);
    const int reason = newton<Cell, Link, Step>(X, t, iterations);
    if (reason == converged) return reason;
    if (is_smaller) restore(X); else other(X);
    return newton<Cell, Link, Step>(X, t, iterations) == converged ? converged : reason;""",
    "contracting": """
    Test whole = t, guarded = t;
    whole.contracting = 0; guarded.contracting = 1;
    const int reason = newton<Cell, Link, Step>(X, guarded, iterations);
    if (reason == converged) return reason;
    other(X);
    if (newton<Cell, Link, Step>(X, whole, iterations) == converged) return converged;
    restore(X);
    return newton<Cell, Link, Step>(X, whole, iterations) == converged ? converged : reason;""",
}
