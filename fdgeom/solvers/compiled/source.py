"""The C++ text of a program of local solves and updates."""

from __future__ import annotations

from importlib.resources import files

from fdgeom.solvers.compiled.kernel import Kernel
from fdgeom.solvers.compiled.problem import CellProblem, NodeProblem, pieces
from fdgeom.solvers.compiled.tables import Tables

_NODE_COORDINATES = "const T xy[2] = {0.0, 1.0};"


def header(name: str) -> str:
    """A header file of this package."""
    return files("fdgeom.solvers.compiled").joinpath(name).read_text()


def node_solve(number: int, problem: NodeProblem, guess, tables: Tables) -> str:
    """The problem's struct and the phase that solves it at all nodes."""
    n, unknown = problem.size, problem.unknown
    solved = pieces(unknown)
    nodal = [k for part in problem.parts for k in (part.residual, part.jacobian) if k]
    fields = _unique(f for k in nodal for f in k.coefficients if f is not unknown)
    weights = [part.weight for part in problem.parts]
    members = [f"T b[{n}];"] if problem.explicit else []
    members += [f"T f{tables.field(f)}[{_block(f)}];" for f in (*fields, *weights)]
    loads = [f"node_load<{n}>(d.b, X.B[{number}], i, n);"] if problem.explicit else []
    loads += [_node_load(f"d.f{tables.field(f)}", f, tables) for f in (*fields, *weights)]
    stores, start = [], 0
    for first, piece in zip(guess, solved, strict=True):
        loads.append(_node_load(f"u + {start}", first, tables))
        stores.append(
            f"node_store<{_block(piece)}>(X.F[{tables.field(piece)}], i, last, u + {start});"
        )
        start += _block(piece)
    store = " ".join(stores)

    start = "d.b[k]" if problem.explicit else "T(0.0)"
    residual = [f"for (int k = 0; k < {n}; ++k) R[k] = {start};", _NODE_COORDINATES]
    jacobian = [f"for (int k = 0; k < {n * n}; ++k) J[k] = 0.0;", _NODE_COORDINATES]
    for part in problem.parts:
        w = f"d.f{tables.field(part.weight)}[0]"
        for out, kernel, size, lines in (
            ("R", part.residual, n, residual),
            ("J", part.jacobian, n * n, jacobian),
        ):
            if kernel is not None:
                call = _call("r", kernel, tables, lambda f: _member(f, unknown, tables))
                lines.append(
                    f"{{ T r[{size}]; for (int k = 0; k < {size}; ++k) r[k] = 0.0; {call}"
                    f" for (int k = 0; k < {size}; ++k) {out}[k] += {w} * r[k]; }}"
                )
    text = _struct(number, problem, members, loads, residual, jacobian)
    space = tables.space(solved[0])
    body = []
    if problem.explicit:
        text += _explicit(number, problem, tables)
        body += [
            f"set_zero(X.B[{number}], X.nodes[{space}].total, {n});",
            f"for (long c = 0; c < X.cells; c += lanes<E{number}>::count) explicit{number}<E{number}>(X, c);",
        ]
    total, where = f"X.nodes[{space}].total", f"X.tol[{number}], X.report[{number}]"
    reach = f"X.nodes[{space}].first, X.nodes[{space}].last, {total}"
    solve = [
        f"save_essential<P{number}>(X, X.essential[{number}], {total});",
        f"const int bad = solve_range<P{number}>(X, {reach}, {where});",
        f"return bad ? bad : solve_essential<P{number}>(X, X.essential[{number}], {total}, {where});",
    ]
    norm = [f"return residual_square<P{number}>(X, {reach}, X.essential + {number});"]
    text = text.replace("@STORE@", store) + _function(f"int solve{number}", solve)
    text += _function(f"int explicit_terms{number}", [*body, "return 0;"])
    text += _function(f"double norm{number}", [f"explicit_terms{number}(X);", *norm])
    return text + _phase(number, [f"explicit_terms{number}(X);", f"return solve{number}(X);"])


def cell_solve(number: int, problem: CellProblem, guess, tables: Tables) -> str:
    """The problem's struct and the phase that solves it in all cells."""
    unknown = problem.unknown
    fields = _unique(f for k in problem.kernels for f in k.coefficients if f is not unknown)
    x = tables.coordinates
    members = [f"T f{tables.field(f)}[{_width(f, tables)}];" for f in (*fields, x)]
    loads = [_cell_load(f"d.f{tables.field(f)}", f, tables) for f in (*fields, x)]
    loads.append(_cell_load("u", guess[0], tables))

    def call(out, kernel):
        return _call(
            out, kernel, tables, lambda f: _member(f, unknown, tables), f"d.f{tables.field(x)}"
        )

    n = problem.size
    residual = [f"for (int k = 0; k < {n}; ++k) R[k] = 0.0;", call("R", problem.residual)]
    jacobian = [f"for (int k = 0; k < {n * n}; ++k) J[k] = 0.0;", call("J", problem.jacobian)]
    space = tables.space(unknown)
    store = (
        f"cell_store<{tables.arity(unknown)}, {_block(unknown)}>"
        f"(X.F[{tables.field(unknown)}], X.M[{space}], i, last, u);"
    )
    text = _struct(number, problem, members, loads, residual, jacobian).replace("@STORE@", store)
    body = [
        f"return solve_range<P{number}>(X, 0, X.cells, X.cells, X.tol[{number}], X.report[{number}]);"
    ]
    norm = f"return residual_square<P{number}>(X, 0, X.cells, X.cells, nullptr);"
    return text + _function(f"double norm{number}", [norm]) + _phase(number, body)


def update(number: int, targets, kernel: Kernel, tables: Tables) -> str:
    """The phase that assigns expressions to functions, node by node, ghosts included."""
    loads = [
        f"T f{tables.field(f)}[{_block(f)}]; " + _node_load(f"f{tables.field(f)}", f, tables)
        for f in _unique(kernel.coefficients)
    ]
    size = sum(_block(t) for t in targets)
    call = _call("A", kernel, tables, lambda f: f"f{tables.field(f)}")
    stores, start = [], 0
    for t in targets:
        stores.append(f"node_store<{_block(t)}>(X.F[{tables.field(t)}], i, n, A + {start});")
        start += _block(t)
    number_type = "vec" if kernel.vectorises else "double"
    lines = "\n      ".join(
        [*loads, f"T A[{size}]; for (int k = 0; k < {size}; ++k) A[k] = 0.0;", _NODE_COORDINATES]
        + [call, *stores]
    )
    body = [
        f"typedef {number_type} T;",
        f"const long n = X.nodes[{tables.space(targets[0])}].total;",
        f"for (long i = 0; i < n; i += lanes<T>::count) {{\n      {lines}\n    }}",
        "return 0;",
    ]
    return _function(f"double norm{number}", ["return 0.0;"]) + _phase(number, body)


def program(kernels, phases: list[str]) -> str:
    """The whole unit: kernels, phases, and the loop over steps."""
    cases = "\n".join(f"    case {k}: return phase{k}(X);" for k in range(len(phases)))
    norms = "\n".join(f"    case {k}: return norm{k}(X);" for k in range(len(phases)))
    seen = {k.name: k.code for k in kernels}
    return "\n".join(
        [
            header("simd.hpp"),
            header("loops.hpp"),
            header("exchange.hpp"),
            "namespace {",
            *seen.values(),
            *phases,
            "int phase(int k, const Context &X) {\n  switch (k) {\n"
            + cases
            + "\n  }\n  return -9;\n}",
            "double norm(int k, const Context &X) {\n  switch (k) {\n"
            + norms
            + "\n  }\n  return 0;\n}",
            "}  // namespace",
            header("advance.hpp"),
        ]
    )


# --- pieces ----------------------------------------------------------------------------------------
def _unique(functions):
    return list(dict.fromkeys(functions))


def _block(f) -> int:
    return f.function_space().block_size


def _width(f, tables: Tables) -> int:
    return _block(f) * tables.arity(f)


def _member(f, unknown, tables: Tables) -> str:
    return "u" if f is unknown else f"d.f{tables.field(f)}"


def _node_load(name: str, f, tables: Tables) -> str:
    return f"node_load<{_block(f)}>({name}, X.F[{tables.field(f)}], i, n);"


def _cell_load(name: str, f, tables: Tables, index: str = "i") -> str:
    where = f"X.F[{tables.field(f)}], X.M[{tables.space(f)}]"
    return f"cell_load<{tables.arity(f)}, {_block(f)}>({name}, {where}, {index}, n);"


def _call(out: str, kernel: Kernel, tables: Tables, name, coordinates: str = "xy") -> str:
    arguments = [out, coordinates, *(name(f) for f in kernel.coefficients)]
    arguments += [f"X.C[{tables.constant(c)}]" for c in kernel.constants]
    return f"{kernel.name}<T>({', '.join(arguments)});"


def _struct(number: int, problem, members, loads, residual, jacobian) -> str:
    number_type = "vec" if all(k.vectorises for k in problem.kernels) else "double"
    join = "\n      ".join
    return f"""
struct P{number} {{
  typedef {number_type} Number;
  static constexpr int size = {problem.size};
  static constexpr bool affine = {str(problem.affine).lower()};
  template <class T> struct Data {{ const Context *X; {" ".join(members)} }};
  template <class T> static inline void load(const Context &X, long i, long n, Data<T> &d, T *u) {{
      d.X = &X;
      {join(loads)}
  }}
  template <class T> static inline void store(const Context &X, long i, long last, const T *u) {{ @STORE@ }}
  template <class T> static inline void residual(const Data<T> &d, const T *u, T *R) {{
      const Context &X = *d.X; (void)X;
      {join(residual)}
  }}
  template <class T> static inline void jacobian(const Data<T> &d, const T *u, T *J) {{
      const Context &X = *d.X; (void)X;
      {join(jacobian)}
  }}
}};
"""


def _explicit(number: int, problem: NodeProblem, tables: Tables) -> str:
    """The cell loop's body that adds to b."""
    kernel, unknown = problem.explicit, problem.unknown
    x = tables.coordinates
    size = _width(unknown, tables)
    declare = [
        f"T f{tables.field(f)}[{_width(f, tables)}]; "
        + _cell_load(f"f{tables.field(f)}", f, tables, "c")
        for f in _unique((*kernel.coefficients, x))
    ]
    call = _call("A", kernel, tables, lambda f: f"f{tables.field(f)}", f"f{tables.field(x)}")
    lines = "\n      ".join(
        [*declare, f"T A[{size}]; for (int k = 0; k < {size}; ++k) A[k] = 0.0;", call]
    )
    return f"""
typedef {"vec" if kernel.vectorises else "double"} E{number};
template <class T> inline void explicit{number}(const Context &X, long c) {{
      const long n = X.cells;
      {lines}
      const int *map = X.M[{tables.space(unknown)}];
      cell_add<{tables.arity(unknown)}, {_block(unknown)}>(X.B[{number}], map, c, n, A);
}}
"""


def _phase(number: int, body: list[str]) -> str:
    return _function(f"int phase{number}", body)


def _function(name: str, body: list[str]) -> str:
    lines = "\n    ".join(body)
    return f"\n{name}(const Context &X) {{\n    {lines}\n}}\n"
