"""Values of one node that a cell computes and passes on to the next cell."""

from collections.abc import Sequence

from fdgeom.solvers.chain.graph import Graph

_OTHER = {"A": "B", "B": "A"}


def of_one_node(graph: Graph, side: str) -> set[int]:
    """The graph's nodes that depend on values at the first ("A") or the second end ("B") alone."""
    found: set[int] = set()
    plain = _of_constants(graph)
    for node, op in enumerate(graph.ops):
        if op[0] == "in":
            if op[1][0] == "value" and op[1][2] == side:
                found.add(node)
        elif node not in plain and all(a in plain or a in found for a in graph.operands(node)):
            found.add(node)
    return found


def _of_constants(graph: Graph) -> set[int]:
    found = set()
    for node, op in enumerate(graph.ops):
        if op[0] == "in":
            if op[1][0] == "constant":
                found.add(node)
        elif all(a in found for a in graph.operands(node)):
            found.add(node)
    return found


def same_everywhere(graph: Graph, outputs: Sequence[int]) -> list[int]:
    """The operations that depend on constants alone and that other operations or the outputs use."""
    plain, needed = _of_constants(graph), graph.needed(outputs)
    used = {a for node in needed if node not in plain for a in graph.operands(node)}
    used |= set(outputs)
    return [n for n in needed if n in plain & used and graph.ops[n][0] not in ("const", "in")]


def carried(graph: Graph, outputs: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of graph nodes: a value that a cell needs of its first end, and the same value of its second."""
    # A cell has computed the second value of a pair, which is the first value of the next cell.
    needed = graph.needed(outputs)
    there, first = set(needed), of_one_node(graph, "A")
    mirror: dict[int, int] = {}
    known = {op: node for node, op in enumerate(graph.ops)}
    mixed = {a for node in needed if node not in first for a in graph.operands(node)} | set(outputs)
    for node in needed:
        op = graph.ops[node]
        if op[0] == "in":
            if op[1][0] == "value" and op[1][2] in _OTHER:
                key = ("value", op[1][1], _OTHER[op[1][2]], op[1][3])
                found = known.get(("in", key))
            else:
                found = node if op[1][0] == "constant" else None
        elif op[0] == "const":
            found = node
        else:
            operands = [mirror.get(a) for a in op[1:]]
            found = None
            if None not in operands:
                found = known.get((op[0], *operands))
                if found is None and op[0] in ("+", "*"):
                    found = known.get((op[0], *reversed(operands)))
        if found is not None:
            mirror[node] = found
    return [
        (node, mirror[node])
        for node in needed
        if node in first
        and node in mixed
        and graph.ops[node][0] != "in"
        and mirror.get(node) in there
    ]
