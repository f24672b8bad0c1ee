"""C++ text of graphs of scalar operations."""

from collections.abc import Callable, Mapping, Sequence

from fdgeom.solvers.chain.graph import COMPARISONS, FUNCTIONS, Graph

_SIGNS = {"<": "less({0}, {1})", "<=": "less_equal({0}, {1})", ">": "less({1}, {0})",
          ">=": "less_equal({1}, {0})", "==": "equal({0}, {1})", "!=": "no(equal({0}, {1}))",
          "&&": "both({0}, {1})", "||": "either({0}, {1})"}  # fmt: skip


def statements(
    graph: Graph,
    outputs: Sequence[tuple[str, int]],
    load: Callable[[object], str],
    known: Mapping[int, str] | None = None,
    text: Callable[[tuple, Mapping[int, str], Callable], tuple[str, str]] | None = None,
) -> list[str]:
    """The lines of a function body that evaluates nodes of a graph and stores them."""
    # outputs: (where to store, node). load(key): C++ of an input. known: C++ of nodes computed before.
    # text(op, names, load): an operation and its type in C++, by default for SIMD lanes of chains.
    # A value is computed where it is first needed, so that few values live at a time. Their type is
    # the compiler's own vector: with a class compilation takes twice as long.
    lines: list[str] = []
    names: dict[int, str] = dict(known or {})
    for target, node in outputs:
        _evaluate(graph, node, names, lines, load, text or _text)
        lines.append(f"{target} = {names[node]};")
    return lines


def _evaluate(graph: Graph, node: int, names: dict[int, str], lines: list[str], load, text) -> None:
    stack = [node]
    while stack:
        top = stack[-1]
        if top in names:
            stack.pop()
            continue
        missing = [a for a in graph.operands(top) if a not in names]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        op = graph.ops[top]
        if op[0] == "const":
            names[top] = f"({float(op[1])!r})"
            continue
        value, kind = text(op, names, load)
        names[top] = f"t{top}"
        lines.append(f"const {kind} t{top} = {value};")


def _text(op: tuple, names: dict[int, str], load) -> tuple[str, str]:
    kind = op[0]
    if kind == "in":
        return load(op[1]), "raw"
    operands = [names[a] for a in op[1:]]
    if kind in ("+", "-", "*"):
        return f"{operands[0]} {kind} {operands[1]}", "raw"
    if kind == "neg":
        return f"-{operands[0]}", "raw"
    if kind == "inv":
        return f"1.0 / {operands[0]}", "raw"
    if kind == "select":
        return f"choose({', '.join(operands)}).v", "raw"
    if kind in _SIGNS:
        return _SIGNS[kind].format(*operands), "lane_mask"
    if kind == "!":
        return f"no({operands[0]})", "lane_mask"
    if kind in ("pow", "atan2") or kind in FUNCTIONS:
        return f"{kind}({', '.join(f'vec({x})' for x in operands)}).v", "raw"
    raise ValueError(f"no C++ for {kind}")


def template_text(op: tuple, names: Mapping[int, str], load) -> tuple[str, str]:
    """An operation on numbers of a template type T, and its type in C++."""
    kind = op[0]
    if kind == "in":
        return load(op[1]), "T"
    one, *others = (names[a] for a in op[1:])
    if kind == "neg":
        return f"-{one}", "T"
    if kind == "inv":
        return f"1.0 / {one}", "T"
    if kind == "!":
        return f"!{one}", "bool"
    if kind == "select":
        return f"{one} ? T({others[0]}) : T({others[1]})", "T"
    if kind in ("pow", "atan2") or kind in FUNCTIONS:
        return f"{kind}({', '.join(f'T({x})' for x in (one, *others))})", "T"
    return f"{one} {kind} {others[0]}", "bool" if kind in COMPARISONS else "T"
