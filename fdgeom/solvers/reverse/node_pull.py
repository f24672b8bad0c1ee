"""Gradients of scalars at one node, as kernels, by reverse differentiation of scalar operations."""

from collections.abc import Callable, Sequence

import numpy as np
from firedrake import Constant, Function
from ufl.algorithms import expand_derivatives
from ufl.algorithms.remove_complex_nodes import remove_complex_nodes
from ufl.core.expr import Expr

from fdgeom.solvers.chain.emission import statements, template_text
from fdgeom.solvers.chain.graph import COMPARISONS, Graph
from fdgeom.solvers.chain.scalars import Scalars
from fdgeom.solvers.chain.slopes import slopes_of
from fdgeom.solvers.compiled.collocation import has_nodal_values
from fdgeom.solvers.compiled.kernel import Kernel
from fdgeom.solvers.compiled.refused import CannotCompile


class NodePull:
    """The gradient of a scalar expression of nodal values."""

    def __init__(self, work: Expr, is_active: Callable[[Function], bool]) -> None:
        self._graph, self._inputs = Graph(), {}
        graph = self._graph
        root = self._root = Scalars(graph, self._terminal).scalar(
            remove_complex_nodes(expand_derivatives(work))
        )

        own = {
            f: nodes
            for f, nodes in self._inputs.items()
            if isinstance(f, Function) and is_active(f)
        }
        slopes = slopes_of(graph, root, [node for nodes in own.values() for node in nodes])
        found = {f: [slopes[node] for node in nodes] for f, nodes in own.items()}
        self._slopes = {
            f: nodes for f, nodes in found.items() if any(n != graph.zero for n in nodes)
        }
        self.functions = list(self._slopes)

    def _terminal(self, e, derivatives: int) -> np.ndarray:
        if derivatives or not isinstance(e, Function | Constant):
            raise CannotCompile(f"updates at nodes do not support {type(e).__name__}")
        if isinstance(e, Function) and not has_nodal_values(e.function_space()):
            raise CannotCompile(f"the degrees of freedom of {e.name()} are not values at nodes")
        if e not in self._inputs:
            size = int(np.prod(e.ufl_shape, dtype=int))
            self._inputs[e] = [self._graph.input((e, k)) for k in range(size)]
        found = np.empty(len(self._inputs[e]), dtype=object)
        found[:] = self._inputs[e]
        return found.reshape(e.ufl_shape)

    def value_kernel(self, name: str) -> Kernel:
        """The kernel of the scalar itself."""
        return self._kernel(name, [self._root])

    def kernel(self, name: str, bars: Sequence[tuple[Function, Function, bool]]) -> Kernel:
        """The kernel of derivatives; ``bars`` are (function, its cotangent, whether to add to that)."""
        graph, outputs = self._graph, []
        for f, bar, adds in bars:
            old = self._terminal(bar, 0).reshape(-1)
            slopes = self._slopes[f]
            outputs += (
                [graph.add(a, b) for a, b in zip(old, slopes, strict=True)] if adds else slopes
            )
        return self._kernel(name, outputs)

    def _kernel(self, name: str, outputs: Sequence[int]) -> Kernel:
        graph = self._graph
        used = {graph.ops[n][1][0] for n in graph.needed(outputs) if graph.ops[n][0] == "in"}
        functions = [e for e in self._inputs if isinstance(e, Function) and e in used]
        constants = [e for e in self._inputs if isinstance(e, Constant) and e in used]
        places = {f: f"w_{k}" for k, f in enumerate(functions)}
        places |= {c: f"c_{k}" for k, c in enumerate(constants)}
        lines = statements(
            graph,
            [(f"A[{k}]", node) for k, node in enumerate(outputs)],
            lambda key: f"{places[key[0]]}[{key[1]}]",
            text=template_text,
        )
        arguments = ["T *__restrict__ A", "T const *__restrict__ coords"]
        arguments += [f"T const *__restrict__ {places[f]}" for f in functions]
        arguments += [f"double const *__restrict__ {places[c]}" for c in constants]
        text = "\n  ".join(lines)
        return Kernel(
            name=name,
            code=f"template <class T> static FDGEOM_INLINE void {name}({', '.join(arguments)})\n"
            f"{{\n  {text}\n}}\n",
            coefficients=tuple(functions),
            constants=tuple(constants),
            vectorises=not any(graph.ops[n][0] in COMPARISONS for n in graph.needed(outputs)),
        )
