"""C++ text of solves along chains: the struct that `chain_unknowns.hpp` describes."""

from collections.abc import Sequence

from fdgeom.compile.chain import ChainProgram, Update
from fdgeom.compile.differentiate import carried, same_everywhere, solution
from fdgeom.compile.emit import Code, Constants, Writer, statements
from fdgeom.compile.layout import Layout, Part, parts_of
from fdgeom.compile.program import ScalarProgram
from fdgeom.compile.tree import TreeOfChains

#: Functions that are compiled once for all places that call them.
_OWN = "__attribute__((noinline))"


class ChainWriter(Writer):
    """The struct of a solve along chains."""

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


def _listed(values) -> str:
    return ", ".join(str(int(v)) for v in values)
