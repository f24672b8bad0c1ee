"""C++ text of programs of local solves and updates."""

import re
from collections.abc import Sequence

from fdgeom.solvers.compiled.kernel import Kernel
from fdgeom.solvers.compiled.problem import CellProblem, NodeProblem, pieces
from fdgeom.solvers.compiled.structs import header
from fdgeom.solvers.compiled.tables import Tables

NODE_COORDINATES = "const T xy[2] = {0.0, 1.0};"


def node_solve(number: int, problem: NodeProblem, guess, tables: Tables) -> str:
    """The struct of the problem and the phase that solves it at all nodes."""
    space = tables.space(pieces(problem.unknown)[0])
    solve = [
        f"explicit_terms{number}(X);",
        f"return solve_nodes<P{number}>(X, span, X.nodes[{space}], frozen, most);",
    ]
    reach = f"X.nodes[{space}].first, X.nodes[{space}].last, X.nodes[{space}].total"
    norm = f"return residual_square<P{number}>(X, {reach}, X.essential + {number});"
    text = node_problem(number, problem, guess, tables)
    return text + phase_text(number, solve, [f"explicit_terms{number}(X);", norm])


def node_problem(number: int, problem: NodeProblem, guess, tables: Tables) -> str:
    """The struct of the problem, and the function that adds the cells' contributions."""
    n, unknown = problem.size, problem.unknown
    solved = pieces(unknown)
    nodal = [k for part in problem.parts for k in (part.residual, part.jacobian) if k]
    fields = each_once(f for k in nodal for f in k.coefficients if f is not unknown)
    weights = [part.weight for part in problem.parts]
    members = [f"T b[{n}];"] if problem.explicit else []
    members += [f"T f{tables.field(f)}[{block_of(f)}];" for f in (*fields, *weights)]
    loads = [node_load(f"d.f{tables.field(f)}", f, tables) for f in (*fields, *weights)]
    guesses, stores, start = [], [], 0
    for first, piece in zip(guess, solved, strict=True):
        guesses.append(node_load(f"u + {start}", first, tables))
        stores.append(
            f"node_store<{block_of(piece)}>(X.F[{tables.field(piece)}], i, last, u + {start});"
        )
        start += block_of(piece)

    start = "d.b[k]" if problem.explicit else "T(0.0)"
    residual = [f"for (int k = 0; k < {n}; ++k) R[k] = {start};", NODE_COORDINATES]
    jacobian = [f"for (int k = 0; k < {n * n}; ++k) J[k] = 0.0;", NODE_COORDINATES]
    for part in problem.parts:
        w = f"d.f{tables.field(part.weight)}[0]"
        for out, kernel, size, lines in (
            ("R", part.residual, n, residual),
            ("J", part.jacobian, n * n, jacobian),
        ):
            if kernel is not None:
                call = kernel_call("r", kernel, tables, lambda f: member_name(f, unknown, tables))
                lines.append(
                    f"{{ T r[{size}]; for (int k = 0; k < {size}; ++k) r[k] = 0.0; {call}"
                    f" for (int k = 0; k < {size}; ++k) {out}[k] += {w} * r[k]; }}"
                )
    more = _explicit(problem, tables) if problem.explicit else ""
    if problem.frozen:
        more += _at_zero(problem, tables)
    space = tables.space(solved[0])
    body = []
    if problem.explicit:
        body += [
            "#ifndef FDGEOM_CHAIN",
            f"const Field b = X.B[{number}];",
            f"std::memset(b.p, 0, b.count * {n} * sizeof(double));",
            f"for (long c = 0; c < X.cells; c += lanes<P{number}::Explicit>::count) {{",
            f"  P{number}::Explicit A[{width_of(unknown, tables)}];",
            f"  P{number}::explicit_terms(X, c, A);",
            f"  cell_add<{tables.arity(unknown)}, {block_of(unknown)}>(b, X.M[{space}], c, X.cells, A);",
            "}",
            "#endif",
        ]
    text = _struct(number, problem, members, loads, guesses, stores, residual, jacobian, more)
    return text + function_text(f"void explicit_terms{number}", [*body, "(void)X;"])


def cell_solve(number: int, problem: CellProblem, guess, tables: Tables) -> str:
    """The struct of the problem and the phase that solves it in all cells."""
    unknown = problem.unknown
    fields = each_once(f for k in problem.kernels for f in k.coefficients if f is not unknown)
    x = tables.coordinates
    members = [f"T f{tables.field(f)}[{width_of(f, tables)}];" for f in (*fields, x)]
    loads = [cell_load(f"d.f{tables.field(f)}", f, tables) for f in (*fields, x)]
    guesses = [cell_load("u", guess[0], tables)]

    def call(out, kernel):
        return kernel_call(
            out, kernel, tables, lambda f: member_name(f, unknown, tables), f"d.f{tables.field(x)}"
        )

    n = problem.size
    residual = [f"for (int k = 0; k < {n}; ++k) R[k] = 0.0;", call("R", problem.residual)]
    jacobian = [f"for (int k = 0; k < {n * n}; ++k) J[k] = 0.0;", call("J", problem.jacobian)]
    space = tables.space(unknown)
    store = (
        f"cell_store<{tables.arity(unknown)}, {block_of(unknown)}>"
        f"(X.F[{tables.field(unknown)}], X.M[{space}], i, last, u);"
    )
    text = _struct(number, problem, members, loads, guesses, [store], residual, jacobian)
    norm = f"return residual_square<P{number}>(X, 0, X.cells, X.cells, nullptr);"
    return text + phase_text(number, [f"return solve_cells<P{number}>(X, span, most);"], [norm])


def update(number: int, targets, kernel: Kernel, tables: Tables) -> str:
    """The phase that assigns expressions to functions, node by node, ghosts included."""
    loads = [
        f"T f{tables.field(f)}[{block_of(f)}]; " + node_load(f"f{tables.field(f)}", f, tables)
        for f in each_once(kernel.coefficients)
    ]
    size = sum(block_of(t) for t in targets)
    call = kernel_call("A", kernel, tables, lambda f: f"f{tables.field(f)}")
    stores, start = [], 0
    for t in targets:
        stores.append(f"node_store<{block_of(t)}>(X.F[{tables.field(t)}], i, n, A + {start});")
        start += block_of(t)
    number_type = "vec" if kernel.vectorises else "double"
    lines = "\n      ".join(
        [*loads, f"T A[{size}]; for (int k = 0; k < {size}; ++k) A[k] = 0.0;", NODE_COORDINATES]
        + [call, *stores]
    )
    body = [
        f"typedef {number_type} T;",
        f"const long n = X.nodes[{tables.space(targets[0])}].total;",
        "const long end = end_of(span, 0, n);",
        f"for (long i = begin_of(span, 0); i < end; i += lanes<T>::count) {{\n      {lines}\n    }}",
        "return 0;",
    ]
    return (
        phase_text(number, body, ["return 0.0;"])
        + f"static bool freeze{number}(const Context &, Frozen &) {{ return false; }}\n"
    )


def turn_check(number: int, before, orientation, soft: bool, tables: Tables) -> str:
    """The phase that fails where the two ends of a cell rotate too far; a NaN counts as too far."""
    size = width_of(orientation, tables)
    bound = "all_le(vec(least_cosine), change)" + soft * " && all_le(vec(least_cosine), state)"
    body = [
        "const long n = X.cells, end = end_of(span, 0, n);",
        "for (long i = begin_of(span, 0); i < end; i += W) {",
        f"  vec p[{size}], q[{size}], change, state;",
        f"  {cell_load('p', before, tables)}",
        f"  {cell_load('q', orientation, tables)}",
        "  half_cosines(p, p + 4, q, q + 4, change, state);",
        "#ifdef FDGEOM_GAPS",
        "  const vec there = load(X.there + i, (vec *)0);",
        "  change = 1.0 - where(there, 1.0 - change); state = 1.0 - where(there, 1.0 - state);",
        "#endif",
        f"  if (!({bound})) return too_far;",
        "}",
        "return 0;",
    ]
    return (
        phase_text(number, body, ["return 0.0;"])
        + f"static bool freeze{number}(const Context &, Frozen &) {{ return false; }}\n"
    )


def program(kernels, phases: list[str], more: Sequence[str] = ()) -> str:
    """The whole C++ text: headers (``more`` too), kernels, phases, and the loop over steps."""
    numbers = range(len(phases))
    seen = {k.name: k.code for k in kernels}
    frozen = [int(n) for text in phases for n in re.findall(r"// frozen: (\d+)", text)]
    return "\n".join(
        [
            f"#define FDGEOM_LARGEST {max(frozen, default=1)}",
            header("simd.hpp"),
            header("loops.hpp"),
            header("copy.hpp"),
            *more,
            "namespace {",
            *seen.values(),
            *phases,
            _cases(
                "int phase(int k, const Context &X, Span span, const Frozen &frozen, int &most)",
                (f"phase{k}(X, span, frozen, most)" for k in numbers),
            ),
            _cases("double norm(int k, const Context &X)", (f"norm{k}(X)" for k in numbers)),
            _cases(
                "bool freeze(int k, const Context &X, Frozen &frozen)",
                (f"freeze{k}(X, frozen)" for k in numbers),
            ),
            "}  // namespace",
            header("advance.hpp"),
        ]
    )


# --- pieces ----------------------------------------------------------------------------------------
def each_once(functions):
    return list(dict.fromkeys(functions))


def block_of(f) -> int:
    return f.function_space().block_size


def width_of(f, tables: Tables) -> int:
    return block_of(f) * tables.arity(f)


def member_name(f, unknown, tables: Tables) -> str:
    return "u" if f is unknown else f"d.f{tables.field(f)}"


def node_load(name: str, f, tables: Tables) -> str:
    return f"node_load<{block_of(f)}>({name}, X.F[{tables.field(f)}], i, n);"


def cell_load(name: str, f, tables: Tables, index: str = "i") -> str:
    where = f"X.F[{tables.field(f)}], X.M[{tables.space(f)}]"
    return f"cell_load<{tables.arity(f)}, {block_of(f)}>({name}, {where}, {index}, n);"


def kernel_call(out: str, kernel: Kernel, tables: Tables, name, coordinates: str = "xy") -> str:
    arguments = [out, coordinates, *(name(f) for f in kernel.coefficients)]
    arguments += [f"X.C[{tables.constant(c)}]" for c in kernel.constants]
    return f"{kernel.name}<T>({', '.join(arguments)});"


def _struct(
    number: int, problem, members, loads, guesses, stores, residual, jacobian, more: str = ""
) -> str:
    number_type = lanes_type(all(k.vectorises for k in problem.kernels))
    explicit, frozen = getattr(problem, "explicit", None), getattr(problem, "frozen", False)
    arity = problem.unknown.function_space().cell_node_map().arity if explicit else 0
    join = "\n      ".join
    return f"""
struct P{number} {{
  typedef {number_type} Number;
  static constexpr int number = {number}, size = {problem.size}, cell_nodes = {arity};
  static constexpr bool affine = {_bool(problem.affine)}, frozen = {_bool(frozen)};
  template <class T> struct Data {{ const Context *X; {" ".join(members)} }};
  template <class T> static inline void load(const Context &X, long i, long n, Data<T> &d) {{
      d.X = &X;
      {join(loads)}
  }}
  template <class T> static inline void guess(const Context &X, long i, long n, T *u) {{
      {join(guesses)}
  }}
  template <class T> static inline void store(const Context &X, long i, long last, const T *u) {{
      {join(stores)}
  }}
  template <class T> static FDGEOM_INLINE void residual(const Data<T> &d, const T *u, T *R) {{
      const Context &X = *d.X; (void)X;
      {join(residual)}
  }}
  template <class T> static inline void jacobian(const Data<T> &d, const T *u, T *J) {{
      const Context &X = *d.X; (void)X;
      {join(jacobian)}
  }}{more}
}};
static bool freeze{number}(const Context &X, Frozen &frozen) {{ return freeze<P{number}>(X, frozen); }}
"""


def _explicit(problem: NodeProblem, tables: Tables) -> str:
    """The contribution of cells to b."""
    kernel, unknown = problem.explicit, problem.unknown
    x = tables.coordinates
    size = width_of(unknown, tables)
    declare = [
        f"T f{tables.field(f)}[{width_of(f, tables)}]; "
        + cell_load(f"f{tables.field(f)}", f, tables, "c")
        for f in each_once((*kernel.coefficients, x))
    ]
    call = kernel_call("A", kernel, tables, lambda f: f"f{tables.field(f)}", f"f{tables.field(x)}")
    lines = "\n      ".join([*declare, f"for (int k = 0; k < {size}; ++k) A[k] = 0.0;", call])
    return f"""
  typedef {lanes_type(kernel.vectorises)} Explicit;
  template <class T> static inline void explicit_terms(const Context &X, long c, T *A) {{
      const long n = X.cells;
      (void)n;
      {lines}
  }}"""


def _at_zero(problem: NodeProblem, tables: Tables) -> str:
    """The members of the struct that an iteration with a frozen Jacobian needs."""
    (part,) = (p for p in problem.parts if p.jacobian is not None)
    n, weight = problem.size, tables.field(part.weight)
    call = kernel_call("J", part.jacobian, tables, lambda f: "u")
    lines = "\n      ".join(
        [
            "typedef double T;",
            f"T u[{n}]; for (int k = 0; k < {n}; ++k) u[k] = 0.0;",
            f"for (int k = 0; k < {n * n}; ++k) J[k] = 0.0;",
            NODE_COORDINATES,
            call,
        ]
    )
    return f"""
  // frozen: {n * n}
  template <class T> static inline T weight(const Data<T> &d) {{ return d.f{weight}[0]; }}
  static inline void jacobian_at_zero(const Context &X, double *J) {{
      {lines}
  }}"""


def lanes_type(vectorises: bool) -> str:
    return "vec" if vectorises else "double"


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _cases(head: str, calls) -> str:
    cases = "".join(f"    case {k}: return {call};\n" for k, call in enumerate(calls))
    return f"{head} {{\n  switch (k) {{\n{cases}  }}\n  return {{}};\n}}"


def phase_text(number: int, body: list[str], norm: list[str]) -> str:
    arguments = "const Context &X, Span span, const Frozen &frozen, int &most"
    used = "(void)frozen; (void)most; (void)span;"
    return function_text(f"double norm{number}", ["(void)X;", *norm]) + function_text(
        f"int phase{number}", [used, *body], arguments
    )


def function_text(name: str, body: list[str], arguments: str = "const Context &X") -> str:
    lines = "\n    ".join(body)
    return f"\n{name}({arguments}) {{\n    {lines}\n}}\n"
