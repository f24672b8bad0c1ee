"""C++ text of whole steps: nodal assignments and the order of operations in a step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import ufl
from firedrake import Constant, Function
from ufl.algorithms import expand_derivatives
from ufl.core.expr import Expr

from fdgeom.errors import CannotCompile
from fdgeom.solvers.chain.cells import Point
from fdgeom.solvers.chain.emission import statements
from fdgeom.solvers.chain.graph import Graph
from fdgeom.solvers.chain.parts import AT_NODES, IN_CELLS, part_of, parts_of
from fdgeom.solvers.chain.scalars import Scalars
from fdgeom.solvers.chain.source import Loads, header
from fdgeom.solvers.compiled.nodes import pieces


@dataclass(frozen=True)
class Map:
    """Nodal assignments from other functions of the nodes, or assignments of values at cell midpoints."""

    #: Functions of degree 2 or more occur here as views of one kind of their nodes.
    assignments: Mapping[Function, Expr]

    def text(self, name: str, loads: Loads) -> str:
        """The C++ function."""
        graph = Graph()
        targets = [part_of(f) for f in self.assignments]
        kinds = {t.kind for t in targets}
        if len(kinds) != 1:
            raise CannotCompile("an update changes functions of nodes and of cells together")
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
    """A terminal in assignments to parts of one ``kind``, as inputs of a graph."""
    if derivatives:
        raise CannotCompile("an update contains derivatives in space")
    if isinstance(e, Constant):
        keys = [("constant", e, k) for k in range(int(np.prod(e.ufl_shape, dtype=int)))]
    elif isinstance(e, Function):
        parts = [part for p in pieces(e) for part in parts_of(p) if part.kind == kind]
        if len(parts) != len(pieces(e)):
            raise CannotCompile(
                f"{e.name()} has other nodes than the function that an update changes"
            )
        keys = [("value", p.function, "C", k) for p in parts for k in range(p.size)]
    else:
        raise CannotCompile(f"updates do not support {type(e).__name__}")
    made = np.empty(len(keys), dtype=object)
    made[:] = [graph.input(key) for key in keys]
    return made.reshape(e.ufl_shape)


@dataclass(frozen=True)
class TurnCheck:
    """The cosines of half the rotations of cells from the ``old`` to the ``new`` quaternions of the nodes."""

    # See turns.hpp: cosines below that of 45 degrees are too far.
    old: Function
    new: Expr
    #: DG0 with two components: the cosines of the change, and of the new rotations.
    cosines: Function
    #: Whether the new rotations are checked too.
    soft: bool

    def text(self, loads: Loads) -> str:
        """The C++ function that checks whether some cell rotates too far."""
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
        return f"""{header("turns")}
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
    """A step: maps before the solve (by their numbers), the solve, and maps after it."""

    #: Maps that evaluate the prescribed degrees of freedom; they come first.
    given: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]
    #: How two guesses are tried, as in `Solve`: "", "smaller" or "contracting".
    attempt: str = ""
    #: Maps that make the second guess.
    other: Sequence[int] = ()
    #: Maps after each update of the unknown, for functions that depend on it.
    moved: Sequence[int] = ()
    #: Whether prescribed values are increments, evaluated again after each update; else they are the
    #: values of the unknown.
    relative: bool = False
    #: A check of rotations after the solve, before the last maps.
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

# The guesses of a solve, tried in order until one leads to a solution.
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
    if (reason == converged || reason == circling) return reason;
    if (is_smaller) restore(X); else other(X);
    return newton<Cell, Link, Step>(X, t, iterations) == converged ? converged : reason;""",
    "contracting": """
    Test whole = t, guarded = t;
    whole.contracting = 0; guarded.contracting = 1;
    const int reason = newton<Cell, Link, Step>(X, guarded, iterations);
    if (reason == converged) return reason;
    other(X);
    const int second = newton<Cell, Link, Step>(X, whole, iterations);
    if (second == converged || second == circling) return second;
    restore(X);
    return newton<Cell, Link, Step>(X, whole, iterations) == converged ? converged : reason;""",
}
