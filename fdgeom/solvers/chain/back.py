"""Cotangents taken back through a step of a chain: its transposed equations, and what they read."""

import ctypes
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
import ufl
from firedrake import Form, Function, FunctionSpace
from ufl.algorithms import expand_derivatives

from fdgeom.solvers.chain.cells import CellEquations, cell_equations
from fdgeom.solvers.chain.emission import statements
from fdgeom.solvers.chain.graph import Graph
from fdgeom.solvers.chain.layout import PieceLayout, address, topology_of
from fdgeom.solvers.chain.lengths import put_lasts, put_lengths
from fdgeom.solvers.chain.library import load
from fdgeom.solvers.chain.net import NetData
from fdgeom.solvers.chain.parts import part_of
from fdgeom.solvers.chain.scalars import Scalars
from fdgeom.solvers.chain.slopes import slopes_of
from fdgeom.solvers.chain.source import NO_LINK, Loads, cell_class, program
from fdgeom.solvers.chain.steps import Map, at_nodes
from fdgeom.solvers.chain.structs import Meeting
from fdgeom.solvers.compiled.problem import pieces
from fdgeom.solvers.compiled.refused import CannotCompile
from fdgeom.solvers.compiled.tables import Tables
from fdgeom.solvers.data import key


class ChainBack:
    """The way back through one step: assignments to nodes after the solve of F(u; c) = 0.

    With the cotangents of what a step writes, ē, and those of all that it reads, c̄,

        ū = (∂e/∂u)ᵀ ē,    c̄ += (∂e/∂c)ᵀ ē,    (∂F/∂u)ᵀ λ = ū,    c̄ -= (∂F/∂c)ᵀ λ.

    The matrix is that of the chain with its blocks transposed, made and eliminated as that one is.

    Parameters
    ----------
    residual : Form
        F.
    unknown : Function
        u.
    essential : sequence
        Given degrees of freedom of u, by numbers that depend on nothing.
    assignments : dict
        Functions of nodes and what a step gives them, by u and by what there is before the step.
    wanted : set of int
        Keys of the other functions by which derivatives are taken.
    prepared : dict
        Functions of nodes that a step sets before the solve, for itself alone, by what there is.

    Attributes
    ----------
    bars : dict
        Functions c and their cotangents.

    Raises
    ------
    CannotCompile
        If the step is not of this kind; says why.
    """

    def __init__(
        self,
        residual: Form,
        unknown: Function,
        essential: Sequence,
        assignments: Mapping[Function, ufl.core.expr.Expr],
        wanted: Set[int],
        prepared: Mapping[Function, ufl.core.expr.Expr],
    ) -> None:
        mesh = pieces(unknown)[0].function_space().mesh()
        if mesh.comm.size > 1:
            raise CannotCompile("the way back through chains on several ranks")
        tables = self._tables = Tables(mesh)
        if len(topology_of(tables).links):
            raise CannotCompile("the way back through chains with links between them")
        if any(getattr(e, "old", None) is not None or e.target is not None for e in essential):
            raise CannotCompile("the way back through given values that are no numbers")
        self._active = {key(f) for f in (*assignments, *prepared)} | set(wanted)
        length = Function(FunctionSpace(mesh, "DG", 0), name="length of the cells")
        last = Function(length.function_space(), name="last cells")
        equations = cell_equations(residual, unknown)
        if not all(part.nodal for part in equations.parts):
            raise CannotCompile("the way back through unknowns in cells")
        for f in residual.coefficients():
            for piece in pieces(f):
                part_of(piece)
        self.bars: dict[Function, Function] = {}
        self._sources = [part.function for part in equations.parts]
        self._unknown_bars = {f: _like(f, "cotangent of") for f in self._sources}
        self._multipliers = {f: _like(f, "multiplier of") for f in self._sources}
        if len(self._multipliers) > 1:
            raise CannotCompile("the way back through unknowns of several parts")
        tables.field(mesh.coordinates)
        loads = Loads(tables, length)
        for f in (length, last, *self._multipliers.values()):
            tables.field(f)
        prepare = (
            Map(prepared).text("prepare", loads) if prepared else _loop("prepare", "false", [])
        )
        after = self._pulled("after", assignments, loads, self._sources)
        before = self._pulled("before", prepared, loads)
        cell = self._cell(equations, last, loads)
        through, changes = self._through(equations, loads)
        here = "\n  ".join(
            f"take_from(*X, *q, {loads.number(change)}, {loads.number(bar)}, "
            f"{bar.function_space().block_size});"
            for change, bar in changes
        )
        entry = f"""
extern "C" int fdgeom_chain_back(Net *X, const Meeting *q) {{
  each(*X, prepare);
  each(*X, after);
  if (!linearise<Cell, Link>(*X)) return 0;
  update<Cell, Link>(*X);
  if (!std::isfinite(X->update)) return 0;
  each(*X, through);
  {here}
  each(*X, before);
  return 1;
}}
"""
        text = program(
            equations.size,
            [cell, NO_LINK],
            [prepare, after, before, through, entry],
            also=("back",),
        )
        library = self._library = load(text, mesh.comm)
        library.fdgeom_chain_back.restype = ctypes.c_int
        library.fdgeom_chain_back.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.layout = PieceLayout(tables, library.fdgeom_chain_width())
        components = [self._component(c) for c in equations.components]
        (whole,) = self._multipliers.values()
        self._data = NetData(self.layout, [components] * 2, essential, whole, tables, False)
        self._pointer = ctypes.byref(self._data.net)
        self._meet(mesh)
        put_lengths(length)
        put_lasts(last)
        made = {*self._multipliers.values(), *self._unknown_bars.values(), length, last}
        made |= {change for change, _ in changes}
        made |= {*self.bars.values(), *prepared}
        self.reads = [f for f in tables.functions if f not in made]
        own = list(self.bars.values())
        self._incoming = self.layout.copies([*self.reads, *own])
        self._outgoing = self.layout.copies(own, out=True)
        self._fixed = self.layout.copies([length, last])

    # --- what is compiled --------------------------------------------------------------------------
    def _bar(self, f: Function) -> Function:
        if f not in self.bars:
            self.bars[f] = _like(f, "cotangent of")
        return self.bars[f]

    def _pulled(
        self, name: str, assignments: Mapping, loads: Loads, sources: Sequence[Function] = ()
    ) -> str:
        """The lines that take cotangents back through assignments; ``sources`` are the unknown."""
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
                raise CannotCompile("the way back through updates of functions of cells")
            values = scalars(expand_derivatives(ufl.as_ufl(expression))).reshape(-1)
            for value, bar in zip(values, _values(graph, self._bar(f)), strict=True):
                work = graph.add(work, graph.mul(value, bar))
        every = [node for nodes in inputs.values() for node in nodes]
        slopes, outputs = slopes_of(graph, work, every), {}
        for f in sources:
            found = [slopes[x] for x in inputs[f]] if f in inputs else _zeros(graph, f)
            outputs[self._unknown_bars[f]] = found
            outputs[self._multipliers[f]] = _zeros(graph, f)
        for f in dict.fromkeys((*assignments, *inputs)):
            if f in self._sources or key(f) not in self._active:
                continue
            found = [slopes[x] for x in inputs[f]] if f in inputs else _zeros(graph, f)
            if f not in assignments:
                old = _values(graph, self._bar(f))
                found = [graph.add(a, b) for a, b in zip(old, found, strict=True)]
            outputs[self._bar(f)] = found
        flat = [(f, k, node) for f, nodes in outputs.items() for k, node in enumerate(nodes)]
        lines = statements(
            graph, [(f"const vec o{i}", node) for i, (_, _, node) in enumerate(flat)], loads
        )
        lines += [f"{loads(('value', f, 'C', k))} = o{i}.v;" for i, (f, k, _) in enumerate(flat)]
        return _loop(name, "k <= X.m", lines)

    def _component(self, component):
        part = component.part
        return replace(component, part=replace(part, function=self._multipliers[part.function]))

    def _cell(self, equations: CellEquations, last: Function, loads: Loads) -> str:
        """The transposed equations of a cell; the first of the two cells at a node leaves it ū."""
        graph, residual = equations.graph, []
        for side in "AB":
            share = graph.const(-1.0)
            if side == "B":
                share = graph.neg(graph.input(("value", last, "C", 0)))
            for c in equations.components:
                bar = graph.input(("value", self._unknown_bars[c.function], side, c.component))
                residual.append(graph.mul(share, bar))
        moved = [self._component(c) for c in equations.components]
        return cell_class(
            replace(equations, residual=residual, components=moved), loads, transposed=True
        )

    def _through(self, equations: CellEquations, loads: Loads) -> tuple[str, list[tuple]]:
        """The lines that give (∂F/∂c)ᵀ λ, and where nodes get theirs first, with the cotangents."""
        graph, n, work = equations.graph, equations.size, equations.graph.zero
        for row, value in enumerate(equations.residual):
            c = equations.components[row % n]
            name = "value", self._multipliers[c.function], "AB"[row // n], c.component
            work = graph.add(work, graph.mul(value, graph.input(name)))
        read = [
            (node, graph.ops[node][1])
            for node in graph.needed([work])
            if graph.ops[node][0] == "in" and graph.ops[node][1][0] == "value"
        ]
        read = [
            (node, name[1:]) for node, name in read
            if key(name[1]) in self._active and name[1] not in self._sources
        ]  # fmt: skip
        slopes = slopes_of(graph, work, [node for node, _ in read])
        outputs, lines, changes = [], [], {}
        for node, (f, side, component) in read:
            if slopes[node] == graph.zero:
                continue
            bar, size, i = self._bar(f), f.function_space().block_size, len(outputs)
            outputs.append((f"const vec o{i}", slopes[node]))
            sign, target = "-", bar
            if side != "C":
                sign, target = "+", changes.setdefault(bar, _like(f, "change of"))
            place = f"(k + {int(side == 'B')}) * {size} + {component}"
            lines.append(
                f"X.F[{loads.number(target)}][{place}] {sign}= choose(there, o{i}, vec(0.0));"
            )
        lines = [
            "const lane_mask there = has_cell(X, k);",
            *statements(graph, outputs, loads),
            *lines,
        ]
        clear = [
            f"for (long j = 0; j < (X.m + 1) * {bar.function_space().block_size}; ++j) "
            f"X.F[{loads.number(change)}][j] = 0.0;"
            for bar, change in changes.items()
        ]
        return _loop("through", "k < X.m", lines, clear), [(d, bar) for bar, d in changes.items()]

    # --- data --------------------------------------------------------------------------------------
    def _meet(self, mesh) -> None:
        layout, nodes = self.layout, mesh.coordinates
        ends = np.array([layout.ends(nodes, g) for g in range(len(layout.groups))])
        known, ids = np.unique(ends, return_inverse=True)
        ids = np.ascontiguousarray(ids.reshape(ends.shape), dtype=np.int32)
        sums = np.zeros(len(known) * max(f.block for f in layout.fields))
        self._kept = ids, sums
        self._meeting = Meeting(address(ids), len(known), address(sums))

    def begin(self) -> None:
        """Make the present values of all that is read known here, and the cotangents."""
        for copies in (self._fixed, self._incoming):
            self._library.fdgeom_chain_in(copies.made, copies.number)

    def end(self) -> None:
        """Give the cotangents to Firedrake."""
        self._library.fdgeom_chain_out(self._outgoing.made, self._outgoing.number)
        for bar in self.bars.values():
            self.layout.fields[self._tables.field(bar)].written()

    def arrays(self, function: Function) -> list[np.ndarray]:
        """The values of a function here, group by group."""
        return [self.layout.array(function, g) for g in range(len(self.layout.groups))]

    def step(self) -> bool:
        """Take the cotangents back through a step; False if its matrix is singular."""
        return bool(self._library.fdgeom_chain_back(self._pointer, ctypes.byref(self._meeting)))


def _like(f: Function, what: str) -> Function:
    return Function(f.function_space(), name=f"{what} {f.name()}")


def _values(graph: Graph, f: Function) -> list[int]:
    return [graph.input(("value", f, "C", k)) for k in range(f.function_space().block_size)]


def _zeros(graph: Graph, f: Function) -> list[int]:
    return [graph.zero] * f.function_space().block_size


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
