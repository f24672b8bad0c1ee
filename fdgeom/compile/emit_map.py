"""C++ text of operations on general meshes: kernels of TSFC between maps and scalar programs."""

from collections.abc import Sequence

from firedrake import Constant, Function

from fdgeom.compile.emit import Code, Constants, LocalWriter, Writer
from fdgeom.compile.layout import Part
from fdgeom.compile.lower_map import CellProgram, Kernel, MapProgram, Sum
from fdgeom.compile.map_layout import MapLayout, Nodes
from fdgeom.forms import is_real


class _MapWriter(Writer):
    """The arguments of kernels."""

    def __init__(self, made, constants: Constants, layout: MapLayout) -> None:
        super().__init__(made, constants, layout)
        self._maps: list[Nodes] = []

    def _map(self, nodes: Nodes) -> tuple[int, int]:
        """The number of a map, and how many nodes it gives a cell."""
        if nodes not in self._maps:
            self._maps.append(nodes)
        return self._maps.index(nodes), self._layout.map_of(nodes).shape[1]

    def _gathered(self, part: Part) -> tuple[str, str, int]:
        """The arguments of a call that gathers the values of a part in cells, and how many these are."""
        number, arity = self._map(part.nodes)
        field = self._number(self._ins, part)
        return f"<{arity}, {part.size}>", f"F[{field}], X.maps[{number}]", arity * part.size

    def _parts_read(self, kernel: Kernel, but: Part | None = None) -> list[Part]:
        """The parts that a kernel reads, the coordinates first."""
        read = [self._layout.mesh.coordinates, *kernel.coefficients]
        parts = [part for f in read if not is_real(f) for part in self._layout.parts_of(f)]
        return [part for part in dict.fromkeys(parts) if part != but]

    def _call(self, kernel: Kernel, names: dict[Part, str]) -> list[str]:
        """The lines that call a kernel, which adds to A; ``names`` has the arrays of parts."""
        lines, arguments = [], ["A", names[self._layout.parts_of(self._layout.mesh.coordinates)[0]]]
        for k, f in enumerate(kernel.coefficients):
            if is_real(f):
                lines.append(self._declared(f, "T", f"r{k}"))
                arguments.append(f"r{k}")
            else:
                arguments.append(names[self._layout.parts_of(f)[0]])
        for k, constant in enumerate(kernel.constants):
            lines.append(self._declared(constant, "double", f"c{k}"))
            arguments.append(f"c{k}")
        return [*lines, f"{kernel.name}<T>({', '.join(arguments)});"]

    def _declared(self, thing: Constant | Function, kind: str, name: str) -> str:
        """The declaration of the values of a Constant or of a number of a Real space."""
        size = thing.dat.data_ro.size
        values = ", ".join(self._constant(thing, k) for k in range(size))
        return f"const {kind} {name}[{size}] = {{{values}}};"


class NodeWriter(_MapWriter, LocalWriter):
    """The struct of an operation at nodes."""

    def __init__(self, made: MapProgram, constants: Constants, layout: MapLayout) -> None:
        super().__init__(made, constants, layout)
        self._sizes["nb"] = max(made.given, 1)
        self._flags["sums"] = bool(made.sums)

    def code(self) -> Code:
        m = self._local
        if m.sums:
            self._functions += [s.kernel.code for s in m.sums]
            lines = [f"{{\n      {self._sum(s)}\n    }}" for s in m.sums]
            text = "\n    ".join(["(void)X; (void)F;", *lines])
            self._functions.append(
                f"  static void sum_cells(const Run &X, Fields F, double *sums) {{\n    {text}\n  }}"
            )
        found = super().code()
        found.places, found.maps, found.given = m.nodes.node_set.total_size, self._maps, m.given
        shared = (m.sums or m.unknowns) and not m.nodes.in_cells
        found.ghosts = [(False, 0, m.nodes)] if shared else []
        return found

    def _sum(self, s: Sum) -> str:
        """The loop over cells of a kernel."""
        kind = "vec" if s.kernel.vectorises else "double"
        parts = self._parts_read(s.kernel)
        names = {part: f"w{k}" for k, part in enumerate(parts)}
        lines = []
        for part, name in names.items():
            sizes, where, many = self._gathered(part)
            lines.append(f"T {name}[{many}]; gather_cells{sizes}({name}, {where}, c, X.cells);")
        number, arity = self._map(self._local.nodes)
        many = arity * s.size
        lines.append(f"T A[{many}]; for (int i = 0; i < {many}; ++i) A[i] = 0.0;")
        lines += self._call(s.kernel, names)
        where = f"sums, {s.first}, {self._local.given}, X.maps[{number}]"
        lines.append(f"add_to_nodes<{arity}, {s.size}>({where}, c, X.cells, A);")
        body = "\n        ".join(lines)
        return (
            f"typedef {kind} T;\n      for (long c = 0; c < X.cells; c += lanes_of<T>::count) {{\n"
            f"        {body}\n      }}"
        )


class CellWriter(_MapWriter):
    """The struct of a solve in each cell."""

    def __init__(self, made: CellProgram, constants: Constants, layout: MapLayout) -> None:
        super().__init__(made.op, constants, layout)
        self._made = made

    def code(self) -> Code:
        """The struct."""
        m = self._made
        n = m.size
        both = [*self._parts_read(m.residual, m.unknown), *self._parts_read(m.tangent, m.unknown)]
        parts = [*dict.fromkeys(both), *([m.source] if m.source else [])]
        places, lines, first = {}, [], 0
        for part in dict.fromkeys(parts):
            sizes, where, many = self._gathered(part)
            lines.append(f"gather_cells{sizes}(w + {first}, {where}, k * W, X.cells);")
            places[part], first = first, first + many
        self._functions += [m.residual.code, m.tangent.code]
        self._function("void prepare", "const raw *b, raw *w", ["(void)b;", *lines])
        minus = [f"R[i] -= w[{places[m.source]} + i];"] if m.source else []
        residual = self._evaluated(m.residual, places, first, n, "R", minus)
        self._function("void residual", "const raw *w, const raw *u, raw *R", residual)
        tangent = self._evaluated(m.tangent, places, first, n * n, "J", [])
        self._function("void tangent", "const raw *w, const raw *b, const raw *u, raw *J", tangent)
        sizes, where, _ = self._gathered(m.guess)
        guess = [f"gather_cells{sizes}(u, {where}, k * W, X.cells);"]
        self._function("void guess", "raw *u", guess)
        out = self._number(self._outs, m.unknown)
        number, arity = self._map(m.unknown.nodes)
        where = f"G[{out}], X.maps[{number}], k * W, X.cells, u"
        store = [f"(void)b; put_in_cells<{arity}, {m.unknown.size}>({where});"]
        self._function("void store", "const raw *b, const raw *u", store)
        sizes = {"n": n, "nb": 1, "nw": max(first, 1)}
        text = self._text(sizes, {"solves": True})
        return Code(
            text, self._ins, self._outs, solves=True, places=self._layout.cells, maps=self._maps,
            in_cells=True,
        )  # fmt: skip

    def _evaluated(
        self, kernel: Kernel, places: dict[Part, int], given: int, size: int, out: str,
        more: Sequence[str],
    ) -> list[str]:  # fmt: skip
        """The lines that evaluate a kernel in W cells."""
        n = self._made.size
        names = {part: f"(c + {first})" for part, first in places.items()}
        names[self._made.unknown] = "x"
        kind = "vec" if kernel.vectorises else "double"
        lines = [
            f"T c[{max(given, 1)}], x[{n}], A[{size}];",
            f"for (int i = 0; i < {given}; ++i) from_lanes(c[i], w[i], l);",
            f"for (int i = 0; i < {n}; ++i) from_lanes(x[i], u[i], l);",
            f"for (int i = 0; i < {size}; ++i) A[i] = 0.0;",
            *self._call(kernel, names),
            f"for (int i = 0; i < {size}; ++i) to_lanes({out}[i], A[i], l);",
        ]
        body = "\n      ".join(lines)
        return [
            f"typedef {kind} T;",
            f"for (int l = 0; l < W; l += lanes_of<T>::count) {{\n      {body}\n    }}",
            *(f"for (int i = 0; i < {size}; ++i) {line}" for line in more),
        ]
