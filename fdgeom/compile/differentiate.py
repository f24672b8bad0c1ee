"""Derivatives of scalar programs, solutions of linear equations in them, and values shared by cells."""

import heapq
from collections.abc import Callable, Sequence, Set

from fdgeom.compile.program import ScalarProgram

Entries = dict[tuple[int, int], int]
#: Scaled integrands, as nodes of a program: (scale, integrand).
Works = list[tuple[int, int]]


def gradient(program: ScalarProgram, total: int, inputs: Sequence[int]) -> dict[int, int]:
    """The derivatives of a node by inputs, by reverse differentiation."""
    there = program.depending(inputs)
    found: dict[int, int] = {total: program.one}
    for node in reversed(program.needed([total])):
        if node not in there or node not in found:
            continue
        for operand, slope in program.partials(node):
            if operand in there:
                more = program.chain(found[node], slope)
                found[operand] = program.add(found.get(operand, program.zero), more)
    return {x: found.get(x, program.zero) for x in inputs}


def slopes_of(program: ScalarProgram, works: Works, inputs: Sequence[int]) -> list[int]:
    """Σ scale ∂integrand/∂input."""
    total = [program.zero] * len(inputs)
    for scale, integrand in works:
        by = gradient(program, integrand, inputs)
        total = [
            program.add(t, program.mul(scale, by[x])) for t, x in zip(total, inputs, strict=True)
        ]
    return total


def jacobian(
    program: ScalarProgram,
    outputs: Sequence[int],
    inputs: Sequence[int],
    first: Sequence[set[int]] = (),
) -> Entries:
    """The nonzero entries ∂output/∂input by (output, input), added to the program."""
    # Every operation is a vertex, with partial derivatives on the edges from its operands. Eliminating
    # a vertex joins each edge into it with each edge out of it, the cheapest vertex first (Markowitz):
    # so derivatives are multiplied at bottlenecks that all paths pass (the relative pose of two
    # nodes, a strain). first: sets of vertices of one node of the mesh, eliminated before the others if
    # only their own set uses them. An input that is a number has no derivatives.
    numbers = {x: k for k, x in enumerate(inputs) if program.value(x) is None}
    into, out = _edges(program, outputs, list(numbers))
    every = {v for v in into if not isinstance(v, tuple)}
    for kind in first:
        inside = {v for v in every & kind if all(t in kind for t in out.get(v, ()))}
        _eliminate(program, into, out, inside)
        every -= inside
    _eliminate(program, into, out, every)
    return {
        (i, numbers[x]): slope
        for i in range(len(outputs))
        for x, slope in into.get(("out", i), {}).items()
        if slope != program.zero
    }


def operations(program: ScalarProgram, outputs: Sequence[int]) -> int:
    """The number of operations that the outputs take; a change of sign costs none."""
    ops = (program.ops[node] for node in program.needed(outputs))
    minus = program.const(-1.0)
    return sum(op[0] not in ("const", "in") and op[:2] != ("*", minus) for op in ops)


def _edges(program: ScalarProgram, outputs, inputs):
    """The edges into each vertex, with derivatives, and the edges out of it."""
    leaves = set(inputs)
    # A vertex that depends on inputs only through a condition has zero derivatives.
    active = set(leaves)
    into: dict = {}
    out: dict = {}
    for node in program.needed(outputs):
        if node in leaves:
            continue
        for operand, slope in program.partials(node):
            if operand in active and slope != program.zero:
                active.add(node)
                edges = into.setdefault(node, {})
                edges[operand] = program.add(edges.get(operand, program.zero), slope)
    for i, node in enumerate(outputs):
        if node in active:
            into["out", i] = {node: program.one}
    for target, edges in into.items():
        for source in edges:
            out.setdefault(source, {})[target] = None
    return into, out


def _eliminate(program: ScalarProgram, into, out, vertices: set[int]) -> None:
    def cost(v) -> tuple:
        # The number of edges that are made; among equals the last in the program is next.
        return len(into[v]) * len(out.get(v, ())), -v

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
                more = program.chain(slope, inner)
                edges[source] = program.add(edges.get(source, program.zero), more)
                out[source][target] = None
            touched.add(target)
        for source in sources:
            del out[source][v]
            touched.add(source)
        for u in touched:
            if u in left:
                heapq.heappush(heap, (cost(u), u))


def solution(
    program: ScalarProgram, entries: Entries, size: int, right: Sequence[int]
) -> list[int]:
    """x with A x = right, by elimination without row exchanges, which knows the entries that are zero."""
    A = [[entries.get((i, j), program.zero) for j in range(size)] for i in range(size)]
    x, inverses = list(right), []
    for k in range(size):
        inverses.append(program.inv(A[k][k]))
        for i in range(k + 1, size):
            if A[i][k] == program.zero:
                continue
            factor = program.mul(A[i][k], inverses[k])
            for j in range(k + 1, size):
                A[i][j] = program.sub(A[i][j], program.mul(factor, A[k][j]))
            x[i] = program.sub(x[i], program.mul(factor, x[k]))
    for k in reversed(range(size)):
        for j in range(k + 1, size):
            x[k] = program.sub(x[k], program.mul(A[k][j], x[j]))
        x[k] = program.mul(x[k], inverses[k])
    return x


def of_one_node(program: ScalarProgram, side: str, nodes: Sequence[int]) -> set[int]:
    """The nodes that depend on values at the first ("A") or the second end ("B") alone.

    ``nodes`` are in order, with all that they depend on.
    """

    def is_leaf(x: tuple) -> bool:
        return _is_constant(x) or (x[0] == "value" and x[2] == side)

    return _made_of(program, nodes, is_leaf) - _made_of(program, nodes, _is_constant)


def _is_constant(x: tuple) -> bool:
    return x[0] == "constant"


def _made_of(
    program: ScalarProgram, nodes: Sequence[int], is_leaf: Callable[[tuple], bool]
) -> set[int]:
    """The nodes that depend on some inputs alone."""
    found: set[int] = set()
    for node in nodes:
        op = program.ops[node]
        if is_leaf(op[1]) if op[0] == "in" else all(a in found for a in program.operands(node)):
            found.add(node)
    return found


def used_outside(program: ScalarProgram, outputs: Sequence[int], inside: Set[int]) -> list[int]:
    """The operations in a set that others, or the outputs, use: they are computed before these."""
    needed = program.needed(outputs)
    used = {a for node in needed if node not in inside for a in program.operands(node)}
    used = program.numbers_of(used | set(outputs))
    return [n for n in needed if n in inside & used and program.ops[n][0] not in ("const", "in")]


def same_everywhere(program: ScalarProgram, outputs: Sequence[int]) -> list[int]:
    """The operations that depend on constants alone and that other operations or the outputs use."""
    plain = _made_of(program, program.needed(outputs), _is_constant)
    return used_outside(program, outputs, plain)


def carried(program: ScalarProgram, outputs: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of values: one that a cell needs of its first end, and the same one of its second end."""
    # A cell has computed the second value of a pair, which is the first value of the next cell.
    needed = program.needed(outputs)
    first = of_one_node(program, "A", needed)
    of_first = used_outside(program, outputs, first)
    inputs = [(n, program.ops[n][1]) for n in needed if n in first and program.ops[n][0] == "in"]
    other = {n: program.input((*key[:2], "B", *key[3:])) for n, key in inputs}
    pairs = zip(of_first, program.replaced(of_first, other), strict=True)
    there = set(needed)
    return [(node, same) for node, same in pairs if same in there]
