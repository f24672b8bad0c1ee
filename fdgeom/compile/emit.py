"""C++ text of operations: a struct of scalar functions for each, as `fields.hpp` says.

Loops, Newton's method and elimination are templates in `cpp`; only what differs between two operations is
written here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fdgeom.compile.chain import ChainProgram, Update
from fdgeom.compile.differentiate import carried, jacobian, same_everywhere, solution
from fdgeom.compile.layout import AT_NODES, Layout, Part, parts_of
from fdgeom.compile.lower import LocalProgram
from fdgeom.compile.program import COMPARISONS, FUNCTIONS, ScalarProgram
from fdgeom.compile.tree import TreeOfChains
from fdgeom.errors import CannotCompile
from fdgeom.operations import ConvergenceTest, Operation

#: Elimination is written out for so many unknowns at the most.
_WRITTEN_OUT = 8
#: Functions that are compiled once for all places that call them.
_OWN = "__attribute__((noinline))"
#: Constants of all units: Constants and Functions of Real spaces, in the order of their numbers.
Constants = list


@dataclass
class Code:
    """The struct of an operation."""

    #: Its body, the same for operations that differ in their fields alone.
    text: str
    #: The parts that it reads and writes, in the order of their numbers in the text.
    ins: list[Part]
    outs: list[Part]
    solves: bool = False
    chord: bool = False
    #: The kinds of places whose ghosts do not have all that their values are computed from.
    ghosts: Sequence[tuple] = ()
    #: The convergence test of a solve along chains.
    test: ConvergenceTest | None = None
    #: Where chains meet or are several.
    tree: TreeOfChains | None = None
    #: On a general mesh: the number of places, the kinds of nodes of the maps in the order of their
    #: numbers in the text, how many numbers cells give to a node, and whether the places are cells.
    places: int | None = None
    maps: Sequence = ()
    given: int = 0
    in_cells: bool = False


class Writer:
    """The functions of a struct, and the parts that they read and write."""

    # constants: gets those that the functions read.
    def __init__(self, op: Operation, constants: Constants, layout: Layout) -> None:
        self._op, self._constants, self._layout = op, constants, layout
        self._ins: list[Part] = []
        self._outs: list[Part] = []
        self._neighbours: set[Part] = set()
        self._functions: list[str] = []
        # How values of the second node of a cell are found: in a link they are a block further on.
        self._beside = "next"

    def _load(self, key: Sequence) -> str:
        """An input in C++."""
        kind = key[0]
        if kind == "b":
            return f"b[{key[1]}]"
        if kind == "constant":
            return f"lanes({self._constant(*key[1:])})"
        _, part, side, component = key
        place = f"(F[{self._number(self._ins, part)}], k, {component}, {part.size})"
        if side == "B":
            self._neighbours.add(part)
        return f"{self._beside if side == 'B' else 'at'}{place}"

    def _constant(self, constant, component: int) -> str:
        if constant is self._op.dt:
            return "X.dt"
        if any(constant is clock for clock in self._op.clocks):
            return "X.time"
        known = [c is constant for c in self._constants]
        if True not in known:
            self._constants.append(constant)
            known.append(True)
        return f"X.C[{known.index(True)}][{component}]"

    @staticmethod
    def _number(parts: list[Part], part: Part) -> int:
        if part not in parts:
            parts.append(part)
        return parts.index(part)

    def _function(
        self, name: str, arguments: str, lines: Sequence[str], how: str = "FDGEOM_INLINE"
    ) -> None:
        arguments = ", ".join(filter(None, ["const Run &X, Fields F, Outs G, long k", arguments]))
        body = "\n    ".join(["(void)X; (void)F; (void)G; (void)k;", *lines])
        self._functions.append(f"  static {how} {name}({arguments}) {{\n    {body}\n  }}")

    def _text(
        self, sizes: Mapping[str, int], flags: Mapping[str, bool], arrays: Sequence[str] = ()
    ) -> str:
        """The body of the struct: its constants and functions."""
        sizes = {**sizes, "ins": len(self._ins), "outs": len(self._outs)}
        in_sizes = ", ".join(str(part.size) for part in self._ins) or "0"
        return "\n".join(
            [
                f"  static constexpr int {', '.join(f'{k} = {v}' for k, v in sizes.items())};",
                f"  static constexpr bool {', '.join(f'{k} = {v:d}' for k, v in flags.items())};",
                f"  static constexpr int in_sizes[] = {{{in_sizes}}};",
                *arrays,
                *self._functions,
            ]
        )

    def _lines(
        self, program: ScalarProgram, outputs, known: Mapping[int, str] | None = None
    ) -> list[str]:
        return statements(program, outputs, self._load, known)

    def _stores(self, stores, program: ScalarProgram, known=None) -> list[str]:
        # All are read before any is written.
        lines = self._lines(
            program, [(f"const raw o{i}", node) for i, (_, _, node) in enumerate(stores)], known
        )
        written = []
        for i, (part, component, _) in enumerate(stores):
            number = self._number(self._outs, part)
            lines.append(f"at(G[{number}], k, {component}, {part.size}) = o{i};")
            written.append((number, part))
        for number, part in dict.fromkeys(written):
            counts = "node_counts" if part.nodal else "counts"
            lines.append(f"pad(G[{number}], k, X.{counts}[k], {part.size});")
        return lines


class LocalWriter(Writer):
    """The struct of an operation at single places."""

    def __init__(self, local: LocalProgram, constants: Constants, layout: Layout) -> None:
        super().__init__(local.op, constants, layout)
        self._local = local
        self._unknowns = {x: f"u[{k}]" for k, x in enumerate(local.unknowns)}
        self._flags = {"affine": False, "chord": False}
        self._sizes = {"n": max(len(local.unknowns), 1), "nb": max(len(local.gathered), 1), "nw": 1}

    def code(self) -> Code:
        """The struct."""
        m = self._local
        if m.gathered or m.cell_stores:
            self._cells(m, m.cell, "cell", [(a, b) for a, b, _, _ in m.gathered], m.cell_stores)
        zero = m.link.zero
        linked = m.link_stores or any(x != zero for _, _, *given in m.gathered for x in given)
        if linked:
            self._beside = "after"
            self._cells(m, m.link, "link", [(a, b) for _, _, a, b in m.gathered], m.link_stores)
        if m.unknowns:
            self._solve(m)
        if m.check is not None:
            lines = self._lines(m.place, [("const raw value", m.check)])
            self._function("raw value", "const raw *b", ["(void)b;", *lines, "return value;"])
            self._functions.append(f"  static double limit() {{ return {float(m.op.limit)!r}; }}")
            if m.sufficient is not None:
                lines = self._lines(m.place, [("const raw value", m.sufficient)])
                self._function("raw sufficient", "", [*lines, "return value;"])
        else:
            arguments = "const raw *b, const raw *u"
            self._function("void store", arguments, self._stores(m.stores, m.place))
        flags = {
            "at_nodes": m.at_nodes, "gathers": bool(m.gathered), "in_cells": bool(m.cell_stores),
            "links": bool(linked),
            "solves": bool(m.unknowns), "checks": m.check is not None,
            "skips": m.sufficient is not None, **self._flags,
        }  # fmt: skip
        text = self._text(self._sizes, flags)
        for part in self._neighbours.intersection(self._outs):
            raise CannotCompile(f"{part.name} is read at neighbouring nodes and written at once")
        ghosts = [AT_NODES] if m.at_nodes and (m.gathered or m.unknowns) else []
        return Code(text, self._ins, self._outs, bool(m.unknowns), self._flags["chord"], ghosts)

    # --- inputs and outputs ----------------------------------------------------------------------
    def _lines(
        self, program: ScalarProgram, outputs, known: Mapping[int, str] | None = None
    ) -> list[str]:
        if program is self._local.place:
            known = {**self._unknowns, **(known or {})}
        return super()._lines(program, outputs, known)

    # --- cells -----------------------------------------------------------------------------------
    def _cells(self, m: LocalProgram, program: ScalarProgram, name: str, gathered, stores) -> None:
        """What cells give to their nodes, and the values that are written in them."""
        if m.gathered:
            pairs = [(f"ra[{i}]", a) for i, (a, _) in enumerate(gathered)]
            pairs += [(f"rb[{i}]", b) for i, (_, b) in enumerate(gathered)]
            self._function(f"void {name}", "raw *ra, raw *rb", self._lines(program, pairs))
        if m.cell_stores:
            self._function(f"void {name}_stores", "", self._stores(stores, program))

    # --- solves ----------------------------------------------------------------------------------
    def _solve(self, m: LocalProgram) -> None:
        p, n = m.place, len(m.unknowns)
        entries = jacobian(p, m.residual, m.unknowns)
        changing = p.depending(m.unknowns)
        linear = not any(e in changing for e in entries.values())
        linear = linear and not p.asks(m.residual, changing)
        fixed = {x for e in entries.values() for x in p.needed([e])} - changing
        inputs = [p.ops[x][1] for x in fixed if p.ops[x][0] == "in"]
        self._flags["affine"] = linear and n <= _WRITTEN_OUT
        self._flags["chord"] = (
            not linear
            and n <= _WRITTEN_OUT
            and all(key[0] == "constant" and key[1] not in m.op.clocks for key in inputs)
        )
        # Numbers that do not depend on the unknowns are computed before the iteration.
        needed = p.needed(m.residual)
        used = {a for x in needed if x in changing for a in p.operands(x)} | set(m.residual)
        used = p.numbers_of(used)
        before = [x for x in needed if x in used - changing and p.ops[x][0] != "const"]
        self._sizes["nw"] = max(len(before), 1)
        known = {x: f"w[{i}]" for i, x in enumerate(before)}
        J = [(f"J[{i * n + j}]", entries.get((i, j), p.zero)) for i in range(n) for j in range(n)]
        R = [(f"R[{i}]", r) for i, r in enumerate(m.residual)]
        self._function(
            "void prepare",
            "const raw *b, raw *w",
            self._lines(p, [(w, x) for x, w in known.items()]),
        )
        self._function(
            "void residual", "const raw *w, const raw *u, raw *R", self._lines(p, R, known)
        )
        self._function(
            "void tangent",
            "const raw *w, const raw *b, const raw *u, raw *J",
            self._lines(p, J, known),
        )
        self._guess(m)
        if self._flags["chord"]:
            zero = p.replaced([e for _, e in J], dict.fromkeys(m.unknowns, p.zero))
            pairs = [(name, e) for (name, _), e in zip(J, zero, strict=True)]
            self._function("void tangent_at_zero", "raw *J", self._lines(p, pairs))
        if self._flags["affine"]:
            at_zero = p.replaced(m.residual, dict.fromkeys(m.unknowns, p.zero))
            x = solution(p, entries, n, at_zero)
            pairs = [(f"R[{i}]", r) for i, r in enumerate(at_zero)]
            pairs += [(f"u[{i}]", p.neg(value)) for i, value in enumerate(x)]
            self._function("void solution", "const raw *b, raw *R, raw *u", self._lines(p, pairs))

    def _guess(self, m: LocalProgram) -> None:
        """The first guess of the unknowns, and prescribed ones."""
        p = m.place
        # Linear equations need none.
        guess = [p.zero] * len(m.unknowns) if self._flags["affine"] else m.guess
        pairs = [(f"u[{k}]", x) for k, x in enumerate(guess)]
        self._function("void guess", "raw *u", self._lines(p, pairs))
        self._flags["held"] = bool(m.held)
        if m.held:
            pairs = [(f"u[{k}]", x) for k, x, _ in m.held]
            pairs += [(f"m[{k}]", free) for k, _, free in m.held]
            self._function("void hold", "raw *u, raw *m", self._lines(p, pairs))


class ChainWriter(Writer):
    """The struct of a solve along chains, as `chain_unknowns.hpp` describes it."""

    def __init__(self, chain: ChainProgram, constants: Constants, layout: Layout) -> None:
        super().__init__(chain.op, constants, layout)
        self._chain = chain
        self._sizes: dict[str, int] = {
            "n": len(chain.unknowns), "chain_unknowns": chain.in_chains,
            "link_entries": len(chain.link_tangent),
        }  # fmt: skip

    def code(self) -> Code:
        """The struct."""
        m = self._chain
        n = m.in_chains
        slots = [
            f"{{{self._number(self._outs, u.part)}, {u.component}, {u.part.size}}}"
            for u in m.unknowns
        ]
        held = [self._field(u.held) for u in m.unknowns]
        source = [self._field(u.source) for u in m.unknowns]
        self._starts()
        residual = [(f"r[{i}]", x) for i, x in enumerate(m.residual)]
        pairs = [(i, j) for i in range(2 * n) for j in range(2 * n)]
        pattern = {(i % n, j % n) for i, j in m.tangent} if m.local else set()
        if m.local:  # the matrices of the two nodes
            pairs = [(i, j) for i, j in pairs if (i < n) == (j < n)]
        tangent = [
            (f"J[{k}]", m.tangent.get((i, j), m.cell.zero))
            for k, (i, j) in enumerate(pairs)
            if not m.local or (i % n, j % n) in pattern
        ]
        self._of_cells("tangent", [*residual, *tangent], "raw *r, raw *J")
        self._of_cells("residual", residual, "raw *r")
        if m.meets:
            self._of_links()
        if m.local:
            self._solve_node(pattern)
        of, of_size = self._norm_of()
        flags = {
            "chain": True, "affine": m.affine, "update": isinstance(m.op, Update),
            "transposed": m.op.source is not None,
            "restricted": any(u.held or not u.part.nodal for u in m.unknowns),
            "chooses": len(m.guesses) == 2 and m.op.choose != "first",
            "small": m.small, "meets": m.meets, "local": m.local,
            "damps": any(a.damped for _, a in m.attempts),
        }  # fmt: skip
        sizes = self._sizes | {"of": of, "of_size": of_size}
        attempts = [
            f"{{{start}, {int(a.must_contract)}, {int(a.damped)}, {a.max_it}}}"
            for start, a in m.attempts
        ]
        arrays = [
            f"  static constexpr Slot unknown[] = {{{', '.join(slots)}}};",
            f"  static constexpr bool in_cell[] = {{{_listed(not u.part.nodal for u in m.unknowns)}}};",
            f"  static constexpr int held[] = {{{_listed(held)}}}, source[] = {{{_listed(source)}}};",
            f"  static constexpr Attempt attempts[] = {{{', '.join(attempts)}}};",
        ]
        text = self._text(sizes, flags, arrays)
        ghosts = list(dict.fromkeys(u.part.kind for u in m.unknowns))
        tree = None if m.small else TreeOfChains(self._layout, m)
        return Code(text, self._ins, self._outs, True, ghosts=ghosts, test=m.test, tree=tree)

    def _field(self, part: Part | None) -> int:
        return -1 if part is None else self._number(self._ins, part)

    def _norm_of(self) -> tuple[int, int]:
        """The field that ConvergenceTest.of is, and its components."""
        of = self._chain.test.of
        if of is None or (self._chain.affine and not isinstance(self._op, Update)):
            return -1, 1
        part, *_ = parts_of(of)
        # Without it an iteration may not end at round-off; then the step goes through SNES.
        return (self._number(self._ins, part), part.size) if part.nodal else (-1, 1)

    def _load(self, key: Sequence) -> str:
        """The unknown has the values of the present iterate; all others are read where the step begins."""
        if key[0] == "value" and any(u.part == key[1] for u in self._chain.unknowns):
            _, part, side, component = key
            place = f"(G[{self._number(self._outs, part)}], k, {component}, {part.size})"
            return f"{self._beside if side == 'B' else 'at'}{place}"
        return super()._load(key)

    def _starts(self) -> None:
        """The guesses: all are read before any is written."""
        m, cases = self._chain, []
        for number, guess in enumerate(m.guesses):
            stores = [(u.part, u.component, x) for u, x in zip(m.unknowns, guess, strict=True)]
            body = "\n      ".join(self._stores(stores, m.cell))
            cases.append(f"if (which == {number}) {{\n      {body}\n    }}")
        self._function("void start", "int which", ["(void)which;", *cases])

    def _of_cells(self, name: str, outputs, arguments: str) -> None:
        """What is computed once, at each node, and in each cell with the values of its nodes."""
        p, nodes = self._chain.cell, [x for _, x in outputs]
        pairs, same = carried(p, nodes), same_everywhere(p, nodes)
        once = {x: f"s[{k}]" for k, x in enumerate(same)}
        known = {x: f"a[{k}]" for k, (x, _) in enumerate(pairs)}
        known |= {y: f"b[{k}]" for k, (_, y) in enumerate(pairs)}
        constants = [(f"s[{k}]", x) for k, x in enumerate(same)]
        values = [(f"a[{k}]", x) for k, (x, _) in enumerate(pairs)]
        self._function(f"void {name}_once", "raw *s", self._lines(p, constants))
        self._function(
            f"void {name}_node", "const raw *s, raw *a", self._lines(p, values, once), _OWN
        )
        self._function(
            f"void {name}_cell",
            f"const raw *s, const raw *a, const raw *b, {arguments}",
            self._lines(p, outputs, once | known),
            _OWN,
        )
        self._sizes |= {f"{name}_same": max(len(same), 1), f"{name}_carried": max(len(pairs), 1)}

    def _solve_node(self, pattern: set[tuple[int, int]]) -> None:
        """The solution of equations whose matrix has only some entries."""
        n, p = self._chain.in_chains, ScalarProgram()
        entries = {(i, j): p.input(("D", i * n + j)) for i, j in pattern}
        right = [p.input(("r", i)) for i in range(n)]
        # Without entries nothing calls it.
        found = solution(p, entries, n, right) if pattern else []
        outputs = [(f"x[{i}]", x) for i, x in enumerate(found)]
        lines = statements(p, outputs, lambda key: f"{key[0]}[{key[1]}]")
        self._function("void solve_node", "const raw *D, const raw *r, raw *x", lines)
        couples = _listed((i, j) in pattern for i in range(n) for j in range(n))
        self._functions.append(f"  static constexpr bool couples[] = {{{couples}}};")

    def _of_links(self) -> None:
        """Residual, and the entries of the tangent that are not zero, of links."""
        m, self._beside = self._chain, "after"
        residual = [(f"r[{i}]", x) for i, x in enumerate(m.link_residual)]
        tangent = [
            (f"J[{k}]", m.link_tangent[entry]) for k, entry in enumerate(sorted(m.link_tangent))
        ]
        for name, outputs, arguments in (
            ("tangent", [*residual, *tangent], "raw *r, raw *J"),
            ("residual", residual, "raw *r"),
        ):
            lines = self._lines(m.link, outputs)
            self._function(f"void link_{name}", arguments, lines, _OWN)


def statements(
    program: ScalarProgram,
    outputs: Sequence[tuple[str, int]],
    load: Callable[[Sequence], str],
    known: Mapping[int, str] | None = None,
) -> list[str]:
    """The lines of a function body that evaluates nodes of a program and stores them."""
    # outputs: (where to store, node). load(key): C++ of an input. known: C++ of nodes computed before.
    # A value is computed where it is first needed, so that few values live at a time.
    lines: list[str] = []
    names: dict[int, str] = dict(known or {})
    for target, node in outputs:
        stack = [node]
        while stack:
            top = stack[-1]
            missing = [a for a in program.operands(top) if a not in names]
            if top in names or not missing:
                stack.pop()
                if top not in names:
                    _evaluate(program, top, names, lines, load)
            else:
                stack.extend(reversed(missing))
        lines.append(f"{target} = {names[node]};")
    return lines


def _listed(values) -> str:
    return ", ".join(str(int(v)) for v in values)


#: Operations in C++; others are written between their operands, or are functions.
_TEXTS = {
    "inv": "1.0 / {}", "select": "choose({}, {}, {})", "!": "~{}", "&&": "{} & {}", "||": "{} | {}"
}  # fmt: skip


def _evaluate(
    program: ScalarProgram, node: int, names: dict[int, str], lines: list[str], load
) -> None:
    kind, *operands = program.ops[node]
    if kind == "const":
        text = f"lanes({operands[0]!r})"
    elif kind == "in":
        text = load(operands[0])
    elif kind in FUNCTIONS or kind in ("pow", "atan2"):
        text = f"{kind}({', '.join(names[a] for a in operands)})"
    else:
        text = _TEXTS.get(kind, f"{{}} {kind} {{}}").format(*(names[a] for a in operands))
    names[node] = f"t{node}"
    lines.append(f"const {'lane_mask' if kind in COMPARISONS else 'raw'} t{node} = {text};")


def unit_text(headers: Sequence[str], codes: Sequence[str]) -> str:
    """The text of a unit: headers, structs, and the functions that find the struct of a call."""
    structs = "\n".join(f"struct Op{k} : Nothing {{\n{text}\n}};" for k, text in enumerate(codes))
    # A last entry is null, so that tables are never empty.
    works, inverses = (
        ", ".join([*(f"{name}<Op{k}>" for k in range(len(codes))), "nullptr"])
        for name in ("work", "invert")
    )
    return f"""{"".join(headers)}
namespace {{
{structs}
int unit(const Run &X, const Call &call, Report &report, long step, long begin, long end, int &most) {{
  static constexpr decltype(&unit) ways[] = {{{works}}};
  return ways[call.op](X, call, report, step, begin, end, most);
}}
void invert(const Run &X, const Call &call) {{
  static constexpr void (*ways[])(const Run &, double *) = {{{inverses}}};
  ways[call.op](X, call.inverse);
}}
}}
"""
