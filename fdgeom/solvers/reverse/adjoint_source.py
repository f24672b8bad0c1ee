"""C++ text of the adjoint phases of local problems; see `adjoint.hpp`."""

from collections.abc import Sequence

from firedrake import Function

from fdgeom.solvers.compiled.kernel import Kernel
from fdgeom.solvers.compiled.problem import CellProblem, NodeProblem, pieces
from fdgeom.solvers.compiled.source import (
    NODE_COORDINATES,
    block_of,
    cell_load,
    each_once,
    kernel_call,
    lanes_type,
    member_name,
    node_load,
    phase_text,
    width_of,
)
from fdgeom.solvers.compiled.tables import Tables

Bars = Sequence[Function | None]


def node_adjoint(
    number: int, problem: NodeProblem, bars: Bars, multipliers: Sequence[Function], tables: Tables
) -> str:
    """Jᵀ λ = ū at all nodes; a cotangent of None is zero."""
    n, unknown, solved = problem.size, problem.unknown, pieces(problem.unknown)
    parts = [part for part in problem.parts if part.jacobian is not None]
    kernels = [part.jacobian for part in parts]
    fields = each_once(f for k in kernels for f in k.coefficients if f is not unknown)
    fields = each_once((*fields, *(part.weight for part in parts)))
    members = [f"T f{tables.field(f)}[{block_of(f)}];" for f in fields]
    loads = [node_load(f"d.f{tables.field(f)}", f, tables) for f in fields]
    right, stores, start = [], [], 0
    for piece, bar, multiplier in zip(solved, bars, multipliers, strict=True):
        size = block_of(piece)
        loads.append(node_load(f"d.u + {start}", piece, tables))
        right.append(
            _zeros("b", start, size) if bar is None else node_load(f"b + {start}", bar, tables)
        )
        stores.append(f"node_store<{size}>(X.F[{tables.field(multiplier)}], i, last, x + {start});")
        start += size
    lines = [f"for (int k = 0; k < {n * n}; ++k) J[k] = 0.0;", NODE_COORDINATES]
    for part in parts:
        call = kernel_call("r", part.jacobian, tables, lambda f: member_name(f, unknown, tables))
        lines.append(
            f"{{ T r[{n * n}]; for (int k = 0; k < {n * n}; ++k) r[k] = 0.0; {call}"
            f" for (int k = 0; k < {n * n}; ++k) J[k] += d.f{tables.field(part.weight)}[0] * r[k]; }}"
        )
    text = _struct(number, n, kernels, members, loads, right, stores, lines)
    space = tables.space(multipliers[0])
    return text + _phase(number, f"return adjoint_nodes<P{number}>(X, span, X.nodes[{space}]);")


def cell_adjoint(
    number: int, problem: CellProblem, bar: Function, multiplier: Function, tables: Tables
) -> str:
    """Jᵀ λ = ū in all cells."""
    n, unknown, x = problem.size, problem.unknown, tables.coordinates
    kernel = problem.jacobian
    fields = each_once((*(f for f in kernel.coefficients if f is not unknown), x))
    members = [f"T f{tables.field(f)}[{width_of(f, tables)}];" for f in fields]
    loads = [cell_load(f"d.f{tables.field(f)}", f, tables) for f in fields]
    loads.append(cell_load("d.u", unknown, tables))
    store = (
        f"cell_store<{tables.arity(unknown)}, {block_of(unknown)}>"
        f"(X.F[{tables.field(multiplier)}], X.M[{tables.space(multiplier)}], i, last, x);"
    )
    call = kernel_call(
        "J",
        kernel,
        tables,
        lambda f: member_name(f, unknown, tables),
        f"d.f{tables.field(x)}",
    )
    lines = [f"for (int k = 0; k < {n * n}; ++k) J[k] = 0.0;", call]
    right = [cell_load("b", bar, tables)]
    text = _struct(number, n, [kernel], members, loads, right, [store], lines)
    return text + _phase(number, f"return adjoint_cells<P{number}>(X, span);")


def gather(number: int, kernel: Kernel, bar: Function, adds: bool, tables: Tables) -> str:
    """The phase that sums a kernel over the cells around each node into a cotangent, set or added to."""
    block, space = block_of(bar), tables.space(bar)
    arity, width = tables.arity(bar), width_of(bar, tables)
    lines = _cell_terms(kernel, width, tables)
    text = f"""
struct P{number} {{
  typedef {lanes_type(kernel.vectorises)} Number;
  static constexpr int number = {number}, size = {block}, cell_nodes = {arity};
  static constexpr bool adds = {"true" if adds else "false"};
  template <class T> struct Data {{ T b[{block}]; }};
  template <class T> static inline void explicit_terms(const Context &X, long c, T *A) {{
      const long n = X.cells;
      (void)n;
      {lines}
  }}
  template <class T> static inline void load_bar(const Context &X, long i, long n, T *w) {{
      {node_load("w", bar, tables)}
  }}
  template <class T> static inline void store(const Context &X, long i, long last, const T *w) {{
      node_store<{block}>(X.F[{tables.field(bar)}], i, last, w);
  }}
}};
"""
    body = [
        "#ifndef FDGEOM_CHAIN",
        f"const Field b = X.B[{number}];",
        f"std::memset(b.p, 0, b.count * {block} * sizeof(double));",
        f"for (long c = 0; c < X.cells; c += lanes<P{number}::Number>::count) {{",
        f"  P{number}::Number A[{width}];",
        f"  P{number}::explicit_terms(X, c, A);",
        f"  cell_add<{arity}, {block}>(b, X.M[{space}], c, X.cells, A);",
        "}",
        "#endif",
        f"return gather_nodes<P{number}>(X, span, X.nodes[{space}]);",
    ]
    return text + _phase(number, *body)


def total(number: int, kernel: Kernel, tables: Tables) -> str:
    """The phase that sums the value of a kernel over all cells."""
    text = f"""
struct P{number} {{
  typedef {lanes_type(kernel.vectorises)} Number;
  static constexpr int number = {number};
  template <class T> static inline void terms(const Context &X, long c, T *A) {{
      const long n = X.cells;
      (void)n;
      {_cell_terms(kernel, 1, tables)}
  }}
}};
"""
    return text + _phase(number, f"return sum_cells<P{number}>(X, span);")


def node_total(number: int, kernel: Kernel, function: Function, tables: Tables) -> str:
    """The phase that sums the value of a kernel over the nodes of a function that this rank owns."""
    loads = [
        f"T f{tables.field(f)}[{block_of(f)}]; " + node_load(f"f{tables.field(f)}", f, tables)
        for f in each_once(kernel.coefficients)
    ]
    call = kernel_call("A", kernel, tables, lambda f: f"f{tables.field(f)}")
    return _phase(
        number,
        f"typedef {lanes_type(kernel.vectorises)} T;",
        f"const Range &own = X.nodes[{tables.space(function)}];",
        "const long n = own.total, first = begin_of(span, own.first);",
        "const long last = end_of(span, own.first, own.last);",
        "double sum = 0.0;",
        "for (long i = first; i < last; i += lanes<T>::count) {",
        *(f"  {line}" for line in (*loads, "T A[1];", NODE_COORDINATES, call)),
        "  for (long l = 0; l < lanes<T>::count && i + l < last; ++l) sum += get(A[0], l);",
        "}",
        f"X.report[{number}].sum += sum;",
        "return 0;",
    )


def _cell_terms(kernel: Kernel, width: int, tables: Tables) -> str:
    """The lines that evaluate a kernel in the cell c."""
    x = tables.coordinates
    loads = [
        f"T f{tables.field(f)}[{width_of(f, tables)}]; "
        + cell_load(f"f{tables.field(f)}", f, tables, "c")
        for f in each_once((*kernel.coefficients, x))
    ]
    call = kernel_call("A", kernel, tables, lambda f: f"f{tables.field(f)}", f"f{tables.field(x)}")
    return "\n      ".join([*loads, f"for (int k = 0; k < {width}; ++k) A[k] = 0.0;", call])


def zero(number: int, bar: Function, tables: Tables) -> str:
    """The phase that sets a cotangent to zero, ghosts included."""
    block = block_of(bar)
    return _phase(
        number,
        f"const long n = X.nodes[{tables.space(bar)}].total, end = end_of(span, 0, n);",
        f"vec A[{block}];",
        f"for (int k = 0; k < {block}; ++k) A[k] = 0.0;",
        "for (long i = begin_of(span, 0); i < end; i += lanes<vec>::count)",
        f"  node_store<{block}>(X.F[{tables.field(bar)}], i, n, A);",
        "return 0;",
    )


def _zeros(name: str, start: int, size: int) -> str:
    return f"for (int k = {start}; k < {start + size}; ++k) {name}[k] = 0.0;"


def _struct(number: int, size: int, kernels, members, loads, right, stores, jacobian) -> str:
    join = "\n      ".join
    return f"""
struct P{number} {{
  typedef {lanes_type(all(k.vectorises for k in kernels))} Number;
  static constexpr int number = {number}, size = {size};
  template <class T> struct Data {{ const Context *X; T u[{size}]; {" ".join(members)} }};
  template <class T> static inline void load(const Context &X, long i, long n, Data<T> &d) {{
      d.X = &X;
      {join(loads)}
  }}
  template <class T> static inline void right(const Context &X, long i, long n, T *b) {{
      {join(right)}
  }}
  template <class T> static inline void store(const Context &X, long i, long last, const T *x) {{
      {join(stores)}
  }}
  template <class T> static FDGEOM_INLINE void jacobian(const Data<T> &d, const T *u, T *J) {{
      const Context &X = *d.X; (void)X;
      {join(jacobian)}
  }}
}};
"""


def _phase(number: int, *body: str) -> str:
    return (
        phase_text(number, list(body), ["return 0.0;"])
        + f"static bool freeze{number}(const Context &, Frozen &) {{ return false; }}\n"
    )
