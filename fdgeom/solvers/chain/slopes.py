"""Gradients of one node of a graph."""

from collections.abc import Sequence

from fdgeom.solvers.chain.graph import Graph


def slopes_of(graph: Graph, total: int, inputs: Sequence[int]) -> dict[int, int]:
    """The derivatives of a node by inputs, by reverse differentiation."""
    there = graph.depending(inputs)
    found: dict[int, int] = {total: graph.one}
    for node in reversed(graph.needed([total])):
        if node not in there or node not in found:
            continue
        for operand, slope in graph.partials(node):
            if operand in there:
                more = graph.mul(found[node], slope)
                known = found.get(operand)
                found[operand] = more if known is None else graph.add(known, more)
    return {x: found.get(x, graph.zero) for x in inputs}
