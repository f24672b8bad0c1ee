"""C++ text of compiled chains."""

from collections.abc import Sequence
from pathlib import Path

from firedrake import Constant, Function

from fdgeom.solvers.chain.carried import carried, of_one_node, same_everywhere
from fdgeom.solvers.chain.cells import CellEquations, Component
from fdgeom.solvers.chain.emission import statements
from fdgeom.solvers.chain.jacobian import jacobian
from fdgeom.solvers.chain.kept_text import Names, kept_text
from fdgeom.solvers.compiled.tables import Tables

_HERE = Path(__file__).parent
_HEADERS = ("blocks", "fronts", "between", "alone", "chain", "newton")
_SIMD = _HERE.parent / "compiled" / "simd.hpp"


def header(name: str) -> str:
    """The text of a header file of this package."""
    return (_HERE / f"{name}.hpp").read_text()


class Loads:
    """C++ expressions for the values of functions and constants in a kernel."""

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


def kept_cell_class(
    equations: CellEquations,
    tables: Tables,
    length: Function,
    name: str,
    following: Function | None = None,
    change: Function | None = None,
    border: Constant | None = None,
    *,
    transposed: bool = False,
) -> str:
    """The text of :func:`cell_class`, from disk if it is there."""

    def describe(names: Names) -> list:
        components = [
            (names(c.function), c.component, c.number, c.block, c.part.nodal)
            for c in equations.components
        ]
        outputs = equations.unknowns, equations.residual, equations.slopes
        others = [names(thing) for thing in (length, following, change, border)]
        return [name, components, *outputs, others, transposed]

    def make() -> str:
        loads = Loads(tables, length)
        return cell_class(equations, loads, name, following, change, border, transposed=transposed)

    return kept_text(equations.graph, tables, describe, make)


def cell_class(
    equations: CellEquations,
    loads: Loads,
    name: str = "Cell",
    following: Function | None = None,
    change: Function | None = None,
    border: Constant | None = None,
    *,
    transposed: bool = False,
) -> str:
    """The C++ class of a cell: residual, tangent (or its transpose) and updates of the unknown."""
    # following: values of the prescribed components, if these are the first of the unknown. change:
    # a function of the unknown's space that receives each update. border: a number by which the
    # residual is differentiated too.
    n = equations.size
    graph = equations.graph
    ends = [of_one_node(graph, side) for side in "AB"]
    entries = jacobian(graph, equations.slopes, equations.unknowns, ends)
    if transposed:
        entries = {(j, i): node for (i, j), node in entries.items()}
    sides = ("ra", "rb")
    residual = [(f"{sides[i // n]}[{i % n}]", r) for i, r in enumerate(equations.residual)]
    blocks = {(0, 0): "A", (0, 1): "B", (1, 0): "C", (1, 1): "E"}
    coupled = sorted((2 * (i // n) + j // n) * n * n + i % n * n + j % n for i, j in entries)
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
    by_number = "" if border is None else _slope(equations, loads, border)
    join = "\n    ".join
    return f"""
// Entries of the four blocks that are not always zero.
namespace {{ constexpr int coupled_{name}[] = {{{", ".join(map(str, coupled or [0]))}}}; }}
struct {name} {{
  static constexpr bool there = true;
  static int coupled(const int **which) {{ *which = coupled_{name}; return {len(coupled)}; }}
  static constexpr int n = {n};
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
{by_number}
{_moves(equations.components, loads, change)}
  static void follow(const Chain &X) {{
    {_follow(equations.components, loads, following)}
  }}
}};
"""


def _slope(equations: CellEquations, loads: Loads, number: Constant) -> str:
    """The C++ function of the derivative of the residual by a number."""
    graph, n = equations.graph, equations.size
    entries = jacobian(graph, equations.residual, [graph.input(("constant", number, 0))])
    outputs = [
        (f"{'rb' if i >= n else 'ra'}[{i % n}]", entries.get((i, 0), graph.zero))
        for i in range(2 * n)
    ]
    lines = "\n    ".join(statements(graph, outputs, loads))
    return f"""
  static __attribute__((noinline)) void slope(const Chain &X, long k, vec *ra, vec *rb) {{
    {lines}
  }}"""


def _moves(components: Sequence[Component], loads: Loads, change: Function | None) -> str:
    """The C++ functions that update, save, restore, prescribe and read the unknown."""
    n, lines = len(components), {name: [] for name in ("add", "save", "restore", "hold", "values")}
    for at, c in enumerate(components):
        value = f"X.F[{loads.number(c.function)}][k * {c.block} + {c.component}]"
        place = f"k * {n} + {at}"
        free = f"less(vec(0.5), X.free_[{place}])"
        noted = ""
        if change is not None:
            noted = f" X.F[{loads.number(change)}][k * {c.block} + {c.component}] = -x[{at}];"
        for name, line in (
            ("add", f"{value} -= x[{at}]; u[{at}] = {value};{noted}"),
            ("save", f"X.saved[{place}] = {value};"),
            ("restore", f"{value} = X.saved[{place}];"),
            ("hold", f"{value} = choose({free}, {value}, X.given[{place}]);"),
            ("values", f"u[{at}] = {value};"),
        ):
            if not c.part.nodal:
                line = f"if (k < X.m) {{ {line} }}"
                line += f" else u[{at}] = 0.0;" if name in ("add", "values") else ""
            lines[name].append(line)
    body = {name: "\n    ".join(group) for name, group in lines.items()}
    every = "for (long k = 0; k <= X.m; ++k)"
    return f"""
  static FDGEOM_INLINE void add(const Chain &X, long k, const vec *x, vec *u) {{
    {body["add"]}
  }}
  static void values(const Chain &X, long k, vec *u) {{
    {body["values"]}
  }}
  static void save(const Chain &X) {{
    {every} {{
    {body["save"]}
    }}
  }}
  static void restore(const Chain &X) {{
    {every} {{
    {body["restore"]}
    }}
  }}
  static void hold(const Chain &X) {{
    {every} {{
    if (!X.special[k]) continue;
    {body["hold"]}
    }}
  }}"""


def _follow(components: Sequence[Component], loads: Loads, function: Function | None) -> str:
    """The lines that read prescribed values from a function."""
    if function is None:
        return ""
    n, size = len(components), function.function_space().block_size
    values = f"X.F[{loads.number(function)}]"
    lines = [
        f"X.given[k * {n} + {at}] = {values}[k * {size} + {c.number}];"
        for at, c in enumerate(components)
        if c.number < size
    ]
    every = "for (long k = 0; k <= X.m; ++k) if (X.special[k]) {\n      "
    return every + "\n      ".join(lines) + "\n    }"


#: The class of a link for chains without links.
NO_LINK = """
struct Link {
  static constexpr bool there = false;
  static constexpr int n = 1;
  static int coupled(const int **) { return 0; }
  static void save(const Chain &) {}
  static void restore(const Chain &) {}
  static void hold(const Chain &) {}
  static void follow(const Chain &) {}
};
"""


def program(
    size: int,
    cells: Sequence[str],
    rest: Sequence[str],
    *,
    relative: bool = False,
    bordered: bool = False,
    also: Sequence[str] = (),
) -> str:
    """The text of the whole unit."""
    # relative: prescribed numbers are increments of the prescribed unknowns. bordered: a number is
    # solved for too, by a step. also: headers after the others.
    headers = (*_HEADERS, *(["border"] if bordered else []), *also)
    parts = [
        _SIMD.read_text(),
        f"#include <utility>\nnamespace {{ constexpr int N = {size}; }}\n",
        f"namespace {{ constexpr bool RELATIVE = {str(relative).lower()}; }}\n",
        f"namespace {{ constexpr bool LINKED = {str(NO_LINK not in cells).lower()}; }}\n",
        *map(header, headers),
        *cells,
        *rest,
        _ENTRIES,
        _OF_BORDER if bordered else "",
    ]
    return "\n".join(parts)


_ENTRIES = """
extern "C" {
int fdgeom_chain_linearise(Net *X) { return linearise<Cell, Link>(*X); }
void fdgeom_chain_evaluate(Net *X) { evaluate<Cell, Link>(*X); }
void fdgeom_chain_update(Net *X) { update<Cell, Link>(*X); }
void fdgeom_chain_apply(Net *X) { apply<Link>(*X); }
long fdgeom_chain_alone() { return sizeof(Alone) / sizeof(double); }
int fdgeom_chain_coupled(const int **which) { return Link::coupled(which); }
int fdgeom_chain_newton(Net *X, const Test *t, long *iterations) {
  return newton<Cell, Link>(*X, *t, *iterations);
}
}
"""

_OF_BORDER = """
extern "C" {
int fdgeom_chain_stand(Net *X) { Step::begin(*X); return condense<Cell, Link>(*X, false); }
int fdgeom_chain_slope(Net *X) {
  if (!factorise_between(X->between)) return 0;
  solve_slope<Cell, Link>(*X);
  return 1;
}
int fdgeom_chain_bordered(Net *X, const Test *t, Border *b, double ahead, long *iterations) {
  Step::begin(*X);
  const int reason = newton_bordered<Cell, Link, Step>(*X, *t, *b, ahead, *iterations);
  if (reason != converged) Step::restore(*X);
  return reason;
}
}
"""
