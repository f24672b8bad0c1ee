"""C++ text of the adjoint of a step of a chain."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
import ufl
from firedrake import Function, FunctionSpace
from ufl.algorithms import expand_derivatives

from fdgeom.errors import CannotCompile
from fdgeom.solvers.chain.cells import CellEquations, Component
from fdgeom.solvers.chain.emission import statements
from fdgeom.solvers.chain.graph import Graph
from fdgeom.solvers.chain.parts import part_of
from fdgeom.solvers.chain.scalars import Scalars
from fdgeom.solvers.chain.slopes import slopes_of
from fdgeom.solvers.chain.source import Loads, kept_cell_class
from fdgeom.solvers.chain.steps import at_nodes
from fdgeom.solvers.compiled.nodes import pieces
from fdgeom.solvers.compiled.tables import Tables
from fdgeom.solvers.data import key


class Pulled:
    """Cotangents as expressions and as C++ text."""

    # unknown has values at nodes; length holds those of the cells; active: keys of the functions that
    # have cotangents.
    def __init__(
        self, unknown: Function, tables: Tables, length: Function, active: Set[int]
    ) -> None:
        self._unknown, self._tables, self._length = unknown, tables, length
        self._loads, self._active = Loads(tables, length), active
        #: Functions and their cotangents; nodal cotangents and their contributions from cells.
        self.bars: dict[Function, Function] = {}
        self.changes: dict[Function, Function] = {}
        #: ū, λ, and a mask of one copy of each unknown, where ū enters the equations.
        self.bar, self.multiplier, self.share = (
            _like(unknown, what) for what in ("cotangent of", "multiplier of", "share of")
        )
        #: 1 in the last cell of a piece.
        self.last = Function(FunctionSpace(tables.mesh, "DG", 0), name="last cells")
        for f in (self.multiplier, self.share, self.last):
            tables.field(f)

    def _bar(self, f: Function) -> Function:
        if f not in self.bars:
            self.bars[f] = _like(f, "cotangent of")
            self._tables.field(self.bars[f])
        return self.bars[f]

    # --- at the nodes ------------------------------------------------------------------------------
    def assigned(self, name: str, assignments: Mapping, *, solved: bool = False) -> str:
        """The C++ function of the adjoint of assignments; ``solved``: also by the unknown of the step."""
        graph, inputs = Graph(), {}

        def terminal(e, derivatives: int) -> np.ndarray:
            found = at_nodes(graph, e, derivatives)
            if isinstance(e, Function):
                for part in map(part_of, pieces(e)):
                    inputs[part.function] = _values(graph, part.function)
            return found

        scalars, work = Scalars(graph, terminal), graph.zero
        for f, expression in assignments.items():
            if not part_of(f).nodal:
                raise CannotCompile(
                    "the reverse sweep does not support updates of functions of cells"
                )
            values = scalars(expand_derivatives(ufl.as_ufl(expression))).reshape(-1)
            for value, bar in zip(values, _values(graph, self._bar(f)), strict=True):
                work = graph.add(work, graph.mul(value, bar))
        every = [node for nodes in inputs.values() for node in nodes]
        slopes, outputs = slopes_of(graph, work, every), {}

        def slopes_by(f: Function) -> list[int]:
            zeros = [graph.zero] * f.function_space().block_size
            return [slopes[x] for x in inputs[f]] if f in inputs else zeros

        if solved:
            shares = _values(graph, self.share)
            found = slopes_by(self._unknown)
            outputs[self.bar] = [graph.mul(a, b) for a, b in zip(shares, found, strict=True)]
            outputs[self.multiplier] = [graph.zero] * len(found)
        for f in dict.fromkeys((*assignments, *inputs)):
            if f is self._unknown or key(f) not in self._active:
                continue
            found = slopes_by(f)
            if f not in assignments:
                old = _values(graph, self._bar(f))
                found = [graph.add(a, b) for a, b in zip(old, found, strict=True)]
            outputs[self._bar(f)] = found
        flat = [(f, k, node) for f, nodes in outputs.items() for k, node in enumerate(nodes)]
        # All are read before any is written.
        named = [(f"const vec o{i}", node) for i, (_, _, node) in enumerate(flat)]
        lines = statements(graph, named, self._loads)
        lines += [
            f"{self._loads(('value', f, 'C', k))} = o{i}.v;" for i, (f, k, _) in enumerate(flat)
        ]
        return _loop(name, "k <= X.m", lines)

    # --- in the cells ------------------------------------------------------------------------------
    def _component(self, component: Component) -> Component:
        return replace(component, part=replace(component.part, function=self.multiplier))

    def components(self, equations: CellEquations) -> list[Component]:
        """The unknowns of a block: the components of λ."""
        return [self._component(c) for c in equations.components]

    def cell(self, equations: CellEquations, name: str) -> str:
        """The class of a cell of (∂F/∂u)ᵀ λ = ū, with its share of ū as the right-hand side."""
        # Of the two cells of a piece that meet at a node, the second one contributes ū.
        graph, residual = equations.graph, []
        for side in "AB":
            sign = graph.const(-1.0)
            if side == "B":
                sign = graph.neg(graph.input(("value", self.last, "C", 0)))
            for c in equations.components:
                bar = graph.input(("value", self.bar, side, c.component))
                residual.append(graph.mul(sign, bar))
        moved = replace(equations, residual=residual, components=self.components(equations))
        return kept_cell_class(moved, self._tables, self._length, name, transposed=True)

    def through(self, equations: CellEquations, name: str) -> str:
        """The C++ function of (∂F/∂c)ᵀ λ: subtracted from cotangents in cells, collected for nodes."""
        graph, n, work = equations.graph, equations.size, equations.graph.zero
        for row, value in enumerate(equations.residual):
            side, component = "AB"[row // n], equations.components[row % n].component
            multiplier = graph.input(("value", self.multiplier, side, component))
            work = graph.add(work, graph.mul(value, multiplier))
        read = []
        for node in graph.needed([work]):
            kind, *rest = graph.ops[node]
            if kind == "in" and rest[0][0] == "value":
                _, f, side, component = rest[0]
                if key(f) in self._active and f is not self._unknown:
                    read.append((node, f, side, component))
        slopes = slopes_of(graph, work, [node for node, *_ in read])
        outputs, lines = [], []
        for node, f, side, component in read:
            if slopes[node] == graph.zero:
                continue
            bar, size, i = self._bar(f), f.function_space().block_size, len(outputs)
            outputs.append((f"const vec o{i}", slopes[node]))
            sign, target = "-", bar
            if side != "C":
                sign, target = "+", self.changes.setdefault(bar, _like(f, "change of"))
            place = f"(k + {int(side == 'B')}) * {size} + {component}"
            lines.append(
                f"X.F[{self._loads.number(target)}][{place}] {sign}= choose(there, o{i}, vec(0.0));"
            )
        lines = [
            "const lane_mask there = has_cell(X, k);",
            *statements(graph, outputs, self._loads),
            *lines,
        ]
        return _loop(name, "k < X.m", lines)

    def clear(self, name: str) -> str:
        """The C++ function that sets the contributions to nodes to zero."""
        lines = [
            f"for (long j = 0; j < (X.m + 1) * {change.function_space().block_size}; ++j) "
            f"X.F[{self._loads.number(change)}][j] = 0.0;"
            for change in self.changes.values()
        ]
        return _loop(name, "false", [], lines)


def _like(f: Function, what: str) -> Function:
    return Function(f.function_space(), name=f"{what} {f.name()}")


def _values(graph: Graph, f: Function) -> list[int]:
    return [graph.input(("value", f, "C", k)) for k in range(f.function_space().block_size)]


def _loop(name: str, condition: str, lines: Sequence[str], before: Sequence[str] = ()) -> str:
    join = "\n    "
    return f"""
static __attribute__((noinline)) void {name}(const Chain &X) {{
  {join.join(before)}
  for (long k = 0; {condition}; ++k) {{
    {join.join(lines)}
  }}
}}
"""
