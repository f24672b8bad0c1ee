"""The C++ text of a compiled chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import ufl
from firedrake import Constant, Function
from ufl.algorithms import expand_derivatives
from ufl.core.expr import Expr

from fdgeom.solvers.chain.carried import carried, of_one_node, same_everywhere
from fdgeom.solvers.chain.cells import CellEquations, Part, part_of
from fdgeom.solvers.chain.emission import statements
from fdgeom.solvers.chain.graph import Graph
from fdgeom.solvers.chain.jacobian import jacobian
from fdgeom.solvers.chain.scalars import Scalars
from fdgeom.solvers.compiled.problem import pieces
from fdgeom.solvers.compiled.refused import CannotCompile
from fdgeom.solvers.compiled.tables import Tables

_HERE = Path(__file__).parent
_SIMD = _HERE.parent / "compiled" / "simd.hpp"


class Loads:
    """Where a kernel finds the values of functions and constants."""

    def __init__(self, tables: Tables, length: Function) -> None:
        self._tables, self._length = tables, length

    def __call__(self, key) -> str:
        kind = key[0]
        if kind == "length":
            return self._at(self._length, "C", 0)
        if kind == "constant":
            return f"(raw{{}} + X.C[{self._tables.constant(key[1])}][{key[2]}])"
        return self._at(*key[1:])

    def _at(self, function: Function, side: str, component: int) -> str:
        size = function.function_space().block_size
        place = f"(k + 1) * {size}" if side == "B" else f"k * {size}"
        return f"X.F[{self.number(function)}][{place} + {component}].v"

    def number(self, function: Function) -> int:
        """The number of a function."""
        return self._tables.field(function)


def cell_class(equations: CellEquations, loads: Loads) -> str:
    """The class Cell: residual and tangent of a cell, and how the unknown is moved."""
    n = equations.size
    graph = equations.graph
    ends = [of_one_node(graph, side) for side in "AB"]
    entries = jacobian(graph, equations.residual, equations.unknowns, ends)
    sides = ("ra", "rb")
    residual = [(f"{sides[i // n]}[{i % n}]", r) for i, r in enumerate(equations.residual)]
    blocks = {(0, 0): "A", (0, 1): "B", (1, 0): "C", (1, 1): "E"}
    tangent = [
        (f"{blocks[i // n, j // n]}[{i % n * n + j % n}]", node)
        for (i, j), node in sorted(entries.items())
    ]
    both = [*residual, *tangent]
    pairs = carried(graph, [node for _, node in both])
    before = {node: f"carry[{k}].v" for k, (node, _) in enumerate(pairs)}
    after = [(f"carry[{k}]", node) for k, (_, node) in enumerate(pairs)]
    for node in same_everywhere(graph, [node for _, node in both]):
        before[node] = f"carry[{len(before)}].v"
    first = statements(graph, [(place, node) for node, place in before.items()], loads)
    tangent_lines = statements(graph, [*both, *after], loads, before)
    alone = statements(graph, residual, loads)
    join = "\n    ".join
    return f"""
struct Cell {{
  // Values of the node between two cells, from the one to the other.
  struct Carry {{ vec values[{max(len(before), 1)}]; }};
  static void begin(const Chain &X, Carry &carried) {{
    constexpr long k = 0;
    vec *const carry = carried.values;
    (void)carry;
    {join(first)}
  }}
  static __attribute__((noinline)) void tangent(
      const Chain &X, long k, Carry &carried, vec *A, vec *B, vec *C, vec *E, vec *ra, vec *rb) {{
    vec *const carry = carried.values;
    (void)carry;
    {join(tangent_lines)}
  }}
  static __attribute__((noinline)) void residual(const Chain &X, long k, vec *ra, vec *rb) {{
    {join(alone)}
  }}
{_moves(equations.parts, loads)}
}};
"""


def _moves(parts: Sequence[Part], loads: Loads) -> str:
    """How the unknown is moved, kept, put back and held, and its norm."""
    add, save, restore, hold, norm, start = [], [], [], [], [], 0
    for part in parts:
        number, size = loads.number(part.function), part.size
        for i in range(size):
            value, at = f"X.F[{number}][k * {size} + {i}]", start + i
            line = f"{value} -= x[{at}]; u[{at}] = {value};"
            there = "" if part.nodal else "if (k < X.m) "
            add.append(line if part.nodal else f"if (k < X.m) {{ {line} }} else u[{at}] = 0.0;")
            save.append(f"{there}X.saved[k * N + {at}] = {value};")
            restore.append(f"{there}{value} = X.saved[k * N + {at}];")
            free = f"less(vec(0.5), X.free_[k * N + {at}])"
            hold.append(f"{there}{value} = choose({free}, {value}, X.given[k * N + {at}]);")
        if part.nodal:
            norm.append(
                f"{{ const double a = norm_of(X, X.F[{number}], {size}); square += a * a; }}"
            )
        start += size
    join, every = "\n    ".join, "for (long k = 0; k <= X.m; ++k)"
    return f"""
  static FDGEOM_INLINE void add(const Chain &X, long k, const vec *x, vec *u) {{
    {join(add)}
  }}
  static void save(const Chain &X) {{
    {every} {{
    {join(save)}
    }}
  }}
  static void restore(const Chain &X) {{
    {every} {{
    {join(restore)}
    }}
  }}
  static void hold(const Chain &X) {{
    {every} {{
    if (!X.special[k]) continue;
    {join(hold)}
    }}
  }}
  static double norm(const Chain &X) {{
    double square = 0.0;
    {join(norm)}
    return std::sqrt(square);
  }}"""


@dataclass(frozen=True)
class Map:
    """Pointwise assignments: functions of nodes, or of cells, from others of the same kind."""

    assignments: Mapping[Function, Expr]

    def text(self, name: str, loads: Loads) -> str:
        """The C++ function."""
        graph = Graph()
        targets = [part_of(f) for f in self.assignments]
        kinds = {t.nodal for t in targets}
        if len(kinds) != 1:
            raise CannotCompile("an update of functions of nodes and of cells at once")
        (nodal,) = kinds

        def terminal(e, derivatives: int) -> np.ndarray:
            if derivatives:
                raise CannotCompile("derivatives in space in an update")
            if isinstance(e, Constant):
                keys = [("constant", e, k) for k in range(int(np.prod(e.ufl_shape, dtype=int)))]
            elif isinstance(e, Function):
                parts = [part_of(p) for p in pieces(e)]
                if any(p.nodal != nodal for p in parts):
                    raise CannotCompile(
                        f"{e.name()} has other nodes than {targets[0].function.name()}"
                    )
                keys = [("value", p.function, "C", k) for p in parts for k in range(p.size)]
            else:
                raise CannotCompile(f"{type(e).__name__} in an update")
            made = np.empty(len(keys), dtype=object)
            made[:] = [graph.input(key) for key in keys]
            return made.reshape(e.ufl_shape)

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


def given_from(function: Function, loads: Loads) -> str:
    """The lines that take given values of the unknown's first components from a function."""
    size = function.function_space().block_size
    values = f"X.F[{loads.number(function)}]"
    return (
        "for (long k = 0; k <= X.m; ++k) if (X.special[k])\n"
        f"      for (int i = 0; i < {size}; ++i) X.given[k * N + i] = {values}[k * {size} + i];"
    )


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
    other : int or None
        A map that makes the other guess.
    """

    given: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]
    attempt: str = ""
    other: int | None = None

    def text(self, follow: str = "") -> str:
        """The C++ class; ``follow`` takes over the given values."""
        given, before, after = (
            " ".join(f"map{k}(X);" for k in group)
            for group in (self.given, self.before, self.after)
        )
        other = (
            "" if self.other is None else f"Cell::restore(X); map{self.other}(X); Cell::hold(X);"
        )
        return f"""
struct Step {{
  static void other(Chain &X) {{ {other} }}
  static int solve(Chain &X, const Test &t, long &iterations) {{
    {_ATTEMPTS[self.attempt]}
  }}
  static int take(Chain &X, const Test &t, long &iterations) {{
    {given} {follow}
    {before} Cell::hold(X);
    Cell::save(X);
    const int reason = solve(X, t, iterations);
    if (reason != converged) {{ Cell::restore(X); return reason; }}
    {after}
    return reason;
  }}
}};
extern "C" int fdgeom_chain_advance(Chain *X, const Test *t, long steps, double begin, double dt,
                                    double *clock, double share, long *done, long *iterations) {{
  return advance<Step>(*X, *t, steps, begin, dt, clock, share, done, iterations);
}}
"""


# Which guesses are tried, until one leads to a solution.
_ATTEMPTS = {
    "": "return newton<Cell>(X, t, iterations);",
    "smaller": """
    evaluate<Cell>(X, nullptr);
    const double first = X.residual;
    other(X);
    evaluate<Cell>(X, nullptr);
    const bool is_smaller = X.residual <= first;
    if (!is_smaller) Cell::restore(X);
    const int reason = newton<Cell>(X, t, iterations);
    if (reason == converged) return reason;
    if (is_smaller) Cell::restore(X); else other(X);
    return newton<Cell>(X, t, iterations) == converged ? converged : reason;""",
    "contracting": """
    Test whole = t, guarded = t;
    whole.contracting = 0; guarded.contracting = 1;
    const int reason = newton<Cell>(X, guarded, iterations);
    if (reason == converged) return reason;
    other(X);
    if (newton<Cell>(X, whole, iterations) == converged) return converged;
    Cell::restore(X);
    return newton<Cell>(X, whole, iterations) == converged ? converged : reason;""",
}


def program(size: int, cell: str, maps: Sequence[str], step: str) -> str:
    """The whole unit."""
    parts = [
        _SIMD.read_text(),
        f"#include <utility>\nnamespace {{ constexpr int N = {size}; }}\n",
        (_HERE / "chain.hpp").read_text(),
        (_HERE / "newton.hpp").read_text(),
        cell,
        *maps,
        step,
        _ENTRIES,
    ]
    return "\n".join(parts)


_ENTRIES = """
extern "C" {
int fdgeom_chain_linearise(Chain *X) { return linearise<Cell>(*X); }
void fdgeom_chain_evaluate(Chain *X, int keep) { evaluate<Cell>(*X, keep ? X->rhs : nullptr); }
void fdgeom_chain_update(Chain *X) { update<Cell>(*X); }
void fdgeom_chain_apply(Chain *X) { apply(*X); }
int fdgeom_chain_newton(Chain *X, const Test *t, long *iterations) {
  return newton<Cell>(*X, *t, *iterations);
}
}
"""
