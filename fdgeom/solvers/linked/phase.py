"""Solves at nodes that links couple, as a phase of a compiled program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

import numpy as np
from firedrake import Form, Function
from ufl.core.expr import Expr

from fdgeom.solvers.chain.cells import alike_in, work_in_cell
from fdgeom.solvers.chain.emission import statements, template_text
from fdgeom.solvers.chain.graph import Graph
from fdgeom.solvers.chain.jacobian import jacobian
from fdgeom.solvers.chain.parts import part_of
from fdgeom.solvers.chain.slopes import slopes_of
from fdgeom.solvers.compiled import CannotCompile, Program
from fdgeom.solvers.compiled.expressions import expression_kernel
from fdgeom.solvers.compiled.problem import NodeProblem, local_problem
from fdgeom.solvers.compiled.program import Phase
from fdgeom.solvers.compiled.source import (
    NODE_COORDINATES,
    block_of,
    each_once,
    kernel_call,
    node_load,
    node_problem,
    phase_text,
)
from fdgeom.solvers.compiled.tables import Tables
from fdgeom.solvers.essential import EssentialValues
from fdgeom.solvers.linked.data import link_data
from fdgeom.solvers.links import links_of

_SIDES = ("A", "B")


@dataclass(frozen=True)
class Linked:
    """Equations of nodes, N(u) + Σ F λ + Σ f⁰ = 0, and conditions of the links between them, c(u) = 0."""

    #: N, nodal.
    residual: Form
    unknown: Function
    #: The first guess of u.
    guess: Function
    #: Stands for λ in `force`; DG0.
    multiplier: Function
    #: F λ and f⁰ in the links alone, with an argument of the space of u; they do not contain u.
    force: Form
    rest: Form
    #: c(u) in the links alone, with an argument of the space of λ.
    gap: Form
    #: DG0: the number of conditions of a link, and the end (0 or 1) that stores λ.
    conditions: Function
    owner: Function
    #: The field that u changes: an update ends the iteration if it is negligible beside this field.
    changed: Function
    #: Stands for λ in `finish`, at the nodes that store it.
    told: Function
    #: Assignments at the coupled nodes after the solve.
    finish: Mapping[Function, Expr]
    #: Prescribed degrees of freedom of u: they keep the values of the guess.
    essential: Sequence[EssentialValues]
    #: Whether N(u) = 0 is solved before, at all nodes.
    all_first: bool


def add_linked(program: Program, linked: Linked, tolerances) -> list[int]:
    """Add the phases of a solve; returns their numbers."""
    found, unknown = [], linked.unknown
    if linked.all_first:
        found.append(
            program.add_solve(
                linked.residual, unknown, guess=(linked.guess,), essential=linked.essential,
                tolerances=tolerances,
            )
        )  # fmt: skip
        problem = program.phases[found[0]].problem
    else:
        problem = local_problem(linked.residual, unknown, f"k{len(program.phases)}")
        program.kernels += problem.kernels
    if not isinstance(problem, NodeProblem) or problem.explicit is not None:
        raise CannotCompile("the equations of linked nodes are not nodal")
    number, tables = len(program.phases), program.tables
    guess = unknown if linked.all_first else linked.guess
    finish = expression_kernel(linked.finish, f"k{number}u")
    program.kernels.append(finish)
    text = node_problem(number, problem, (guess,), tables)
    text += _LinkSource(number, linked, tables).text(problem, finish)
    text += phase_text(number, [f"return solve_links<L{number}>(X, most);"], ["return 0.0;"])
    program.phases.append(
        Phase(
            text=text,
            written=(unknown, *linked.finish),
            solved=(unknown,),
            guess=(guess,),
            block=block_of(unknown),
            nodal=True,
            tolerances=tolerances,
            data=partial(
                link_data,
                tables=tables,
                unknown=unknown,
                essential=linked.essential,
                conditions=linked.conditions,
                owner=linked.owner,
            ),
            header=files("fdgeom.solvers.linked").joinpath("links.hpp").read_text(),
        )
    )
    return [*found, number]


class _LinkSource:
    """The C++ text of the equations of a link."""

    def __init__(self, number: int, linked: Linked, tables: Tables) -> None:
        self._number, self._linked, self._tables = number, linked, tables
        self._graph, mesh = Graph(), tables.mesh
        self._mesh = mesh
        forms = [linked.force, linked.rest, linked.gap]
        self._fixed = alike_in(np.flatnonzero(links_of(mesh)), forms)
        unknown, multiplier = linked.unknown, linked.multiplier
        self._size, self._rows = block_of(unknown), block_of(multiplier)
        part_of(unknown)
        self._u = self._inputs("value", unknown, _SIDES)
        self._lambda = self._inputs("value", multiplier, "C")

    def _inputs(self, role: str, function: Function, places: Sequence[str]) -> list[int]:
        size = block_of(function)
        return [self._graph.input((role, function, p, k)) for p in places for k in range(size)]

    def _equations(self, form: Form, like: Function, places: Sequence[str]) -> list[int]:
        """The coefficients of the argument of a form."""
        graph, test = self._graph, Function(like.function_space(), name="test function")
        total = work_in_cell(graph, form, self._mesh, test, self._fixed)
        inputs = self._inputs("test", test, places)
        found = slopes_of(graph, total, inputs)
        return [found[x] for x in inputs]

    def text(self, problem: NodeProblem, finish) -> str:
        """The class of a link: its forces, its conditions, and the assignments at its nodes."""
        graph, linked, n, m = self._graph, self._linked, self._size, self._rows
        pushes = self._equations(linked.force, linked.unknown, _SIDES)
        forces = []
        for i, push in enumerate(pushes):
            found = slopes_of(graph, push, self._lambda)
            forces += [(f"F[{i * m + k}]", found[x]) for k, x in enumerate(self._lambda)]
        starts = self._equations(linked.rest, linked.unknown, _SIDES)
        forces += [(f"start[{i}]", x) for i, x in enumerate(starts)]
        gaps = self._equations(linked.gap, linked.multiplier, "C")
        slopes = jacobian(graph, gaps, self._u)
        inner = [(f"c[{k}]", x) for k, x in enumerate(gaps)]
        inner += [
            (f"C[{k * 2 * n + j}]", slopes.get((k, j), graph.zero))
            for k in range(m)
            for j in range(2 * n)
        ]
        known, moving = graph.depending(self._lambda), graph.depending(self._u)
        if any(x in known or x in moving for _, x in forces) or any(x in known for _, x in inner):
            raise CannotCompile("the forces of links are not linear in the multipliers")
        affine = problem.affine and not any(x in moving for x in slopes.values())
        tables, unknown, changed = self._tables, linked.unknown, linked.changed
        join = "\n    ".join
        return f"""
struct L{self._number} {{
  typedef P{self._number} Problem;
  static constexpr int number = {self._number}, conditions = {m}, space = {tables.space(unknown)};
  static constexpr int changed = {tables.field(changed)}, changed_size = {block_of(changed)};
  static constexpr bool affine = {str(affine).lower()};
  static void forces(const Context &X, long c, long a, long b, double *F, double *start) {{
    typedef double T;
    {join(self._lines(forces))}
  }}
  static void gaps(const Context &X, long l, long a, long b, const double *ua, const double *ub,
                   double *c, double *C) {{
    typedef double T;
    {join(self._lines(inner, cell="l"))}
  }}
  static void finish(const Context &X, long i, const double *told) {{
    typedef double T;
    const long n = X.nodes[{tables.space(unknown)}].total;
    (void)told;
    {join(self._finish(finish))}
  }}
}};
"""

    def _lines(self, outputs: list[tuple[str, int]], cell: str = "c") -> list[str]:
        tables = self._tables

        def at(function: Function, place: str, component: int) -> str:
            field = f"X.F[{tables.field(function)}]"
            return f"{field}.p[{component} * {field}.stride + {place}]"

        def load(key) -> str:
            if key[0] == "length":
                return f"({at(tables.coordinates, 'b', 0)} - {at(tables.coordinates, 'a', 0)})"
            if key[0] == "constant":
                return f"X.C[{tables.constant(key[1])}][{key[2]}]"
            _, function, side, component = key
            if function is self._linked.unknown:
                return f"u{side.lower()}[{component}]"
            return at(function, cell if side == "C" else side.lower(), component)

        return statements(self._graph, outputs, load, text=template_text)

    def _finish(self, kernel) -> list[str]:
        tables, told, targets = self._tables, self._linked.told, list(self._linked.finish)
        size, start = sum(map(block_of, targets)), 0
        lines = [
            f"T f{tables.field(f)}[{block_of(f)}]; " + node_load(f"f{tables.field(f)}", f, tables)
            for f in each_once(kernel.coefficients)
            if f is not told
        ]
        lines += [f"T A[{size}]; for (int k = 0; k < {size}; ++k) A[k] = 0.0;", NODE_COORDINATES]

        def name(f: Function) -> str:
            return "told" if f is told else f"f{tables.field(f)}"

        lines.append(kernel_call("A", kernel, tables, name))
        for t in targets:
            field = f"X.F[{tables.field(t)}]"
            lines.append(f"node_store<{block_of(t)}>({field}, i, i + 1, A + {start});")
            start += block_of(t)
        return lines
