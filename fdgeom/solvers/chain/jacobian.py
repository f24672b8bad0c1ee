"""Jacobians of graphs: derivatives of outputs by inputs."""

import heapq
from collections.abc import Callable, Sequence

from fdgeom.solvers.chain.graph import Graph

Entries = dict[tuple[int, int], int]


def _edges_made(v: int, into, out, plain: set[int]) -> int:
    return len(into[v]) * len(out.get(v, ()))


def _products_made(v: int, into, out, plain: set[int]) -> int:
    """The number of products that the elimination of a vertex makes, without those of factors ±1."""
    before, after = into[v], out.get(v, ())
    plain_before = sum(slope in plain for slope in before.values())
    plain_after = sum(into[target][v] in plain for target in after)
    return len(before) * len(after) - plain_before * plain_after


# Costs of the elimination of a vertex; the cheapest is next, among equals the last in the graph.
_ORDERS: Sequence[Callable[..., int]] = (_edges_made, _products_made)


def jacobian(
    graph: Graph, outputs: Sequence[int], inputs: Sequence[int], first: Sequence[set[int]] = ()
) -> Entries:
    """The nonzero entries ∂output/∂input by (output, input), added to the graph."""
    # Every operation is a vertex, with partial derivatives on the edges from its operands. Eliminating
    # a vertex joins each edge into it with each edge out of it, the cheapest vertex first (Markowitz):
    # so derivatives are multiplied at bottlenecks that all paths pass (the relative pose of two
    # nodes, a strain). No order is best for all graphs; the one with the fewest operations is taken.
    # first: sets of vertices of one node of the mesh, eliminated before the others if only their own
    # set uses them. An input that is a number has no derivatives.
    tried = [_by(graph, outputs, inputs, first, order) for order in _ORDERS]
    return min(tried, key=lambda entries: operations(graph, [*outputs, *entries.values()]))


def operations(graph: Graph, outputs: Sequence[int]) -> int:
    """The number of operations that the outputs take."""
    return sum(graph.ops[node][0] not in ("const", "in") for node in graph.needed(outputs))


def _by(graph: Graph, outputs, inputs, first, order) -> Entries:
    numbers = {x: k for k, x in enumerate(inputs) if graph.value(x) is None}
    into, out = _edges(graph, outputs, list(numbers))
    every = {v for v in into if not isinstance(v, tuple)}
    for kind in first:
        inside = {v for v in every & kind if all(t in kind for t in out.get(v, ()))}
        _eliminate(graph, into, out, inside, order)
        every -= inside
    _eliminate(graph, into, out, every, order)
    return {
        (i, numbers[x]): slope
        for i in range(len(outputs))
        for x, slope in into.get(("out", i), {}).items()
        if slope != graph.zero
    }


def _edges(graph: Graph, outputs, inputs):
    """The edges into each vertex, with derivatives, and the edges out of it."""
    leaves = set(inputs)
    # A vertex that depends on inputs only through a condition has zero derivatives.
    active = set(leaves)
    into: dict = {}
    out: dict = {}
    for node in graph.needed(outputs):
        if node in leaves:
            continue
        for operand, slope in graph.partials(node):
            if operand in active and slope != graph.zero:
                active.add(node)
                edges = into.setdefault(node, {})
                known = edges.get(operand)
                edges[operand] = slope if known is None else graph.add(known, slope)
    for i, node in enumerate(outputs):
        if node in active:
            into["out", i] = {node: graph.one}
    for target, edges in into.items():
        for source in edges:
            out.setdefault(source, {})[target] = None
    return into, out


def _eliminate(graph: Graph, into, out, vertices: set[int], order) -> None:
    plain = {graph.one, graph.const(-1.0)}

    def cost(v) -> tuple:
        return order(v, into, out, plain), -v

    heap = [(cost(v), v) for v in vertices]
    heapq.heapify(heap)
    left = set(vertices)
    while heap:
        price, v = heapq.heappop(heap)
        if v not in left:
            continue
        now = cost(v)
        if now > price:
            heapq.heappush(heap, (now, v))
            continue
        left.discard(v)
        touched = set()
        sources, targets = into.pop(v), out.pop(v, {})
        for target in targets:
            edges = into[target]
            slope = edges.pop(v)
            for source, inner in sources.items():
                more = graph.mul(slope, inner)
                known = edges.get(source)
                edges[source] = more if known is None else graph.add(known, more)
                out[source][target] = None
            touched.add(target)
        for source in sources:
            del out[source][v]
            touched.add(source)
        for u in touched:
            if u in left:
                heapq.heappush(heap, (cost(u), u))
