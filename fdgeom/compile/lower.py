"""Operations as scalar programs: what a cell gives to its nodes, and what is done at a node or in a cell.

A functional is a sum over nodes, weight · (function of the values of the node), and over cells. Inputs of
the programs are

- ``("value", part, side, component)``: the value of a `Part` at the place itself ("C") or at the two nodes
  of a cell ("A", "B");
- ``("constant", constant, component)``: of a Constant, or of a Function of a Real space;
- ``("b", k)``: the k-th sum of what the two cells of a node give to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import ufl
from firedrake import Constant, Form, Function
from ufl import classes as c
from ufl.algorithms import expand_derivatives, extract_coefficients
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom.compile.chain import ChainProgram, lower_chain
from fdgeom.compile.differentiate import gradient
from fdgeom.compile.from_ufl import Scalars
from fdgeom.compile.layout import (
    AT_NODES,
    IN_CELLS,
    Layout,
    Part,
    basis_at,
    part_like,
    parts_of,
    pieces,
)
from fdgeom.compile.program import CannotCompile, ScalarProgram
from fdgeom.compile.terms import Term, cell_lengths, nodal_weight, rule_of, terms_of
from fdgeom.operations import Assemble, Check, Copy, Map, Operation, Solve
from fdgeom.solvers.derived import is_real

#: Programs of more operations take too long to compile.
_OPERATIONS = 8000
#: Scaled integrands, as nodes of a program: (scale, integrand).
Works = list[tuple[int, int]]


@dataclass
class Hold:
    """Prescribed components of the unknown of a solve."""

    #: 1 at the prescribed degrees of freedom.
    mask: Part
    dofs: np.ndarray
    #: For each unknown: the inputs of its mask and of its value; None for those of other parts.
    inputs: list[tuple[int, int] | None]


@dataclass
class LocalProgram:
    """An operation as scalar programs."""

    op: Operation
    #: Whether it is done at the nodes, else in the cells.
    at_nodes: bool
    #: What each cell gives to its nodes and to itself.
    cell: ScalarProgram = field(default_factory=ScalarProgram)
    #: What is done at one place: outputs from inputs, from ``b``, and from the unknowns of a solve.
    place: ScalarProgram = field(default_factory=ScalarProgram)
    #: For each ``b`` what a cell gives to its first and to its second node, nodes of ``cell``.
    gathered: list[tuple[int, int]] = field(default_factory=list)
    #: Values that are written at the place, and in the cell: (part, component, node).
    stores: list[tuple[Part, int, int]] = field(default_factory=list)
    cell_stores: list[tuple[Part, int, int]] = field(default_factory=list)
    #: Of a solve: the unknowns, the residual and the first guess, nodes of ``place``.
    unknowns: list[int] = field(default_factory=list)
    residual: list[int] = field(default_factory=list)
    guess: list[int] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    #: Of a check: the value, a node of ``place``.
    check: int | None = None

    def gather(self, pair: tuple[int, int]) -> int:
        """The sum of what the two cells of a node give to it, at the node."""
        if pair == (self.cell.zero, self.cell.zero):
            return self.place.zero
        if pair not in self.gathered:
            self.gathered.append(pair)
        return self.place.input(("b", self.gathered.index(pair)))


class Lowering:
    """Converts operations on the places of a layout to scalar programs."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def __call__(self, op: Operation) -> list[LocalProgram] | list[ChainProgram]:
        """The programs of an operation, for different places; CannotCompile names what is not supported."""
        for f in (*op.reads, *op.writes):
            if not is_real(f):
                for part in parts_of(f):
                    self.layout.dofs(part)
        if isinstance(op, Map):
            found = [self._map(op, kind) for kind in _kinds(op.values)]
        elif isinstance(op, Copy):
            found = [self._copy(op, kind) for kind in _kinds([op.target])]
        elif isinstance(op, Check):
            found = [self._check(op)]
        elif isinstance(op, Assemble):
            found = [self._assemble(op)]
        elif isinstance(op, Solve):
            if couples(op):
                return [lower_chain(self, op)]
            found = [self._solve(op)]
        else:
            raise CannotCompile(f"{type(op).__name__} is an operation of Python")
        longest = max(len(program.ops) for made in found for program in (made.cell, made.place))
        if longest > 4 * _OPERATIONS:
            raise CannotCompile(f"{_name(op)} takes {longest} operations a place")
        return found

    # --- operations at single places -----------------------------------------------------------
    def _map(self, op: Map, kind: tuple) -> LocalProgram:
        """The assignments at the places of one kind."""
        made = LocalProgram(op, kind[0])
        scalars = self._at_places(made.place, kind)
        for f, e in op.values.items():
            parts = _of_kind(f, kind)
            if not parts:
                continue
            nodes = list(scalars(expand_derivatives(ufl.as_ufl(e))).reshape(-1))
            if sum(part.size for part in parts) != len(nodes):
                raise CannotCompile(f"{f.name()}: values at nodes and in cells together")
            for part in parts:
                own, nodes = nodes[: part.size], nodes[part.size :]
                made.stores += [(part, k, node) for k, node in enumerate(own)]
        return made

    def _copy(self, op: Copy, kind: tuple) -> LocalProgram:
        """The copies at the places of one kind."""
        every = _written(op.target)
        sources = [None] * len(every) if op.source is None else parts_of(op.source)
        made = LocalProgram(op, kind[0])
        p = made.place
        if op.rows is not None and len(pieces(op.target)) > 1:
            raise CannotCompile(f"a copy of rows of {op.target.name()}, a mixed function")
        for target, source in zip(every, sources, strict=True):
            if source and (source.kind, source.size) != (target.kind, target.size):
                raise CannotCompile(f"a copy of {source.name} to the nodes of {target.name}")
            if target.kind != kind:
                continue
            old = _values(p, target)
            new = [p.zero] * target.size if source is None else _values(p, source)
            if op.adds:
                new = [p.add(a, b) for a, b in zip(old, new, strict=True)]
            if op.rows is not None:
                mask = _values(p, part_like(target, self._marked(op.target, op.rows)))
                new = [
                    p.select(p.compare(">", m, p.const(0.5)), a, b)
                    for m, a, b in zip(mask, new, old, strict=True)
                ]
            made.stores += [(target, k, node) for k, node in enumerate(new)]
        return made

    def _check(self, op: Check) -> LocalProgram:
        value = expand_derivatives(op.value)
        parts = [part for f in op.reads if not is_real(f) for part in parts_of(f)]
        at_nodes = all(part.nodal for part in parts) and not _differentiates(value)
        made = LocalProgram(op, at_nodes)
        if at_nodes:
            made.check = self._at_places(made.place, AT_NODES).scalar(value)
        else:
            # In cells an expression is evaluated at the midpoint.
            length = self._length(made.place)
            at = Point(made.place, self.layout, 0.5, length, None)
            made.check = Scalars(made.place, at).scalar(value)
        return made

    @staticmethod
    def _marked(function: Function, dofs: np.ndarray) -> Function:
        """A Function of the same space that is 1 at some degrees of freedom and 0 elsewhere."""
        mask = Function(function.function_space(), name=f"rows of {function.name()}")
        mask.dat.data_wo.reshape(-1)[dofs] = 1.0
        return mask

    # --- functionals ---------------------------------------------------------------------------
    def _at_places(self, program: ScalarProgram, kind: tuple) -> Scalars:
        """Conversion of expressions of the values of one place."""

        def terminal(e, derivatives: int) -> np.ndarray:
            if isinstance(e, c.SpatialCoordinate) and kind == AT_NODES:
                e = self.layout.mesh.coordinates
            if derivatives:
                raise CannotCompile(
                    "derivatives in space, where only values of one place are known"
                )
            if isinstance(e, Constant) or (isinstance(e, Function) and is_real(e)):
                return _array(_constant(program, e), e)
            if isinstance(e, Function):
                parts = _of_kind(e, kind)
                if len(parts) < len(pieces(e)):
                    raise CannotCompile(
                        f"{e.name()} has other nodes than the functions it is used with"
                    )
                return _array([x for part in parts for x in _values(program, part)], e)
            raise CannotCompile(f"{type(e).__name__} at single places")

        return Scalars(program, terminal)

    def _nodal_works(self, program: ScalarProgram, terms: Sequence[Term]) -> Works:
        """The sums over nodes of nodal terms, one for each weight."""
        scalars, groups = self._at_places(program, AT_NODES), {}
        for term in terms:
            groups.setdefault(term.measure, []).append(term)
        found: dict[int, int] = {}
        for measure, own in groups.items():
            # Scaled to the first, so that the same function under other measures is the same node.
            total = program.zero
            for term in own:
                share = program.const(term.number / own[0].number)
                total = program.add(total, program.mul(share, scalars.scalar(term.rest)))
            key = ("weight", *measure[:3], str(measure[3]), own[0].number)
            weight = self.layout.made_once(
                key, lambda own=own: nodal_weight(self.layout.mesh, own[0])
            )
            (scale,) = _values(program, parts_of(weight)[0])
            found[total] = program.add(found.get(total, program.zero), scale)
        return [(scale, total) for total, scale in found.items()]

    def _length(self, program: ScalarProgram) -> int:
        """The length of a cell."""
        mesh = self.layout.mesh
        lengths = self.layout.made_once("lengths", lambda: cell_lengths(mesh))
        return _values(program, parts_of(lengths)[0])[0]

    def cell_works(self, program: ScalarProgram, terms: Sequence[Term]) -> Works:
        """The sums over the points of a cell."""
        mesh, found, length = self.layout.mesh, {}, self._length(program)
        if terms and len(self.layout.links):
            raise CannotCompile("the mesh has cells that link chains")
        for term in terms:
            kind, i = term.integral.integral_type(), term.integral
            if kind == "cell" and i.subdomain_id() in ("everywhere", "otherwise"):
                points = [
                    (x, None, program.mul(program.const(w), length))
                    for x, w in zip(*rule_of(i), strict=True)
                ]
            elif kind == "exterior_facet":
                key = ("end", str(i.subdomain_id()))
                one = Term(i, 1.0, ufl.as_ufl(1.0), ufl.as_ufl(1.0))
                ends = self.layout.made_once(key, lambda one=one: nodal_weight(mesh, one))
                (part,) = parts_of(ends)
                points = [
                    (float(facet), facet, program.input(("value", part, side, 0)))
                    for facet, side in enumerate("AB")
                ]
            else:
                raise CannotCompile(f"{term}, over a part of the mesh")
            integrand = term.number * term.geometry * term.rest
            for x, facet, scale in points:
                at = Point(program, self.layout, x, length, facet)
                value = Scalars(program, at).scalar(integrand)
                found[scale] = program.add(found.get(scale, program.zero), value)
        return list(found.items())

    def _split(self, made: LocalProgram, work) -> tuple[Works, Works]:
        """A functional as sums over places and over cells."""
        if not isinstance(work, Form):
            kind = AT_NODES if made.at_nodes else IN_CELLS
            value = self._at_places(made.place, kind).scalar(expand_derivatives(work))
            return [(made.place.one, value)], []
        terms = terms_of(work)
        if not made.at_nodes:
            return [], self.cell_works(made.cell, terms)
        nodal = [t for t in terms if t.is_nodal()]
        others = [t for t in terms if not t.is_nodal()]
        return self._nodal_works(made.place, nodal), self.cell_works(made.cell, others)

    # --- assemblies ----------------------------------------------------------------------------
    def _assemble(self, op: Assemble) -> LocalProgram:
        if any(is_real(f) for f in op.by):
            raise CannotCompile("a derivative by a number of a Real space")
        targets = {f: _written(t) for f, t in op.by.items()}
        by = {f: parts_of(f) for f in op.by}
        kinds = [part.nodal for parts in by.values() for part in parts]
        made = LocalProgram(op, any(kinds))
        if not isinstance(op.work, Form) and len(set(kinds)) > 1:
            raise CannotCompile("a sum over nodes and cells at once")
        nodes, cells = self._split(made, op.work)
        for f, parts in by.items():
            for part, target in zip(parts, targets[f], strict=True):
                adds = op.by[f] in op.adds
                self._derivative(made, nodes, cells, part, target, op.work, adds)
        return made

    def _derivative(self, made, nodes: Works, cells: Works, part, target, work, adds: bool) -> None:
        """The stores of the derivative by one part."""
        at_place = part.nodal or not isinstance(work, Form)
        if at_place:
            program, stores = made.place, made.stores
            slopes = _slopes(program, nodes, _values(program, part))
            if part.nodal:
                pairs = self._sides(made, cells, part)
                slopes = [
                    program.add(s, made.gather(p)) for s, p in zip(slopes, pairs, strict=True)
                ]
        else:
            program, stores = made.cell, made.cell_stores
            slopes = _slopes(program, cells, _values(program, part))
        if adds:
            old = _values(program, target)
            slopes = [program.add(s, x) for s, x in zip(slopes, old, strict=True)]
        stores += [(target, k, s) for k, s in enumerate(slopes)]

    def _sides(self, made: LocalProgram, cells: Works, part: Part) -> list[tuple[int, int]]:
        """The derivatives of the sums over cells by the values at the two nodes."""
        both = [_slopes(made.cell, cells, _values(made.cell, part, side)) for side in "AB"]
        return list(zip(*both, strict=True))

    # --- solves --------------------------------------------------------------------------------
    def _solve(self, op: Solve) -> LocalProgram:
        unknowns, tests = _written(op.unknown), parts_of(op.test)
        made = LocalProgram(op, unknowns[0].nodal)
        nodes, cells = self._split(made, op.work)
        if not made.at_nodes:
            made.place, made.cell, nodes, cells = made.cell, made.place, cells, []
        p = made.place
        made.unknowns = [x for part in unknowns for x in _values(p, part)]
        made.residual = self._residual(made, nodes, cells, tests, op)
        if len(op.attempts) > 1:
            raise CannotCompile(f"{_name(op)} is attempted from several guesses")
        start = op.attempts[0].guess if op.attempts else op.guess or op.unknown
        own = start.dat is op.unknown.dat
        made.guess = [x for part in parts_of(start) for x in _values(p, part)]
        if own:
            made.guess = [p.input(("start", *p.ops[x][1][1:])) for x in made.guess]
        made.holds = [self._hold(p, op, prescribed, unknowns) for prescribed in op.prescribed]
        pairs = [(part, k) for part in unknowns for k in range(part.size)]
        made.stores = [(part, k, u) for (part, k), u in zip(pairs, made.unknowns, strict=True)]
        return made

    def _residual(
        self, made: LocalProgram, nodes: Works, cells: Works, tests, op: Solve
    ) -> list[int]:
        """The derivatives by the test function, divided by the weight if there is only one."""
        p = made.place
        inputs = [x for part in tests for x in _values(p, part)]
        right = [p.zero] * len(inputs)
        if op.source is not None:
            right = [p.neg(x) for part in parts_of(op.source) for x in _values(p, part)]
        if cells:
            pairs = [pair for part in tests for pair in self._sides(made, cells, part)]
            right = [p.add(x, made.gather(pair)) for x, pair in zip(right, pairs, strict=True)]
        if len(nodes) != 1:
            slopes = _slopes(p, nodes, inputs)
            return [p.add(s, b) for s, b in zip(slopes, right, strict=True)]
        ((scale, integrand),) = nodes
        slopes, inverse = gradient(p, integrand, inputs), p.inv(scale)
        return [p.add(slopes[x], p.mul(inverse, b)) for x, b in zip(inputs, right, strict=True)]

    def _hold(self, p: ScalarProgram, op: Solve, prescribed, unknowns: Sequence[Part]) -> Hold:
        """The mask and the values of prescribed degrees of freedom."""
        (mask,) = parts_of(self._marked(pieces(op.unknown)[prescribed.part], prescribed.dofs))
        inputs: list[tuple[int, int] | None] = []
        for number, part in enumerate(unknowns):
            if number != prescribed.part:
                inputs += [None] * part.size
                continue
            value = [p.zero] * part.size
            if prescribed.value is not None:
                value = _values(p, parts_of(prescribed.value)[0])
            inputs += list(zip(_values(p, mask), value, strict=True))
        return Hold(mask, np.asarray(prescribed.dofs), inputs)


class Point:
    """UFL terminals at a point of a cell."""

    def __init__(
        self, program: ScalarProgram, layout: Layout, x: float, length: int, facet: int | None
    ) -> None:
        self._program, self._layout, self._x, self._facet = program, layout, x, facet
        self._length = length

    def __call__(self, e, derivatives: int) -> np.ndarray:
        p, shape = self._program, e.ufl_shape + derivatives * (1,)
        if isinstance(e, c.SpatialCoordinate):
            e = self._layout.mesh.coordinates
        if isinstance(e, Constant) or (isinstance(e, Function) and is_real(e)):
            values = _constant(p, e)
            return _array([p.zero] * len(values) if derivatives else values, e, shape)
        if isinstance(e, Function):
            found = [
                self._value(parts, k, derivatives)
                for parts in map(parts_of, pieces(e))
                for k in range(parts[0].size)
            ]
            return _array(found, e, shape)
        if isinstance(e, c.CellVolume | c.Circumradius) and not derivatives:
            scale = 1.0 if isinstance(e, c.CellVolume) else 0.5
            return _array([p.mul(p.const(scale), self._length)], e, shape)
        if isinstance(e, c.FacetNormal) and self._facet is not None and not derivatives:
            return _array([p.const(2.0 * self._facet - 1.0)], e, shape)
        raise CannotCompile(f"{type(e).__name__} in a cell")

    def _value(self, parts: Sequence[Part], component: int, derivatives: int) -> int:
        p, (part, *inner) = self._program, parts
        if inner:
            return self._of_degree(part, inner, component, derivatives)
        if not part.nodal:
            return p.zero if derivatives else p.input(("value", part, "C", component))
        if derivatives > 1:
            return p.zero
        a, b = (p.input(("value", part, side, component)) for side in "AB")
        if derivatives:
            return p.mul(p.combination([(-1.0, a), (1.0, b)]), p.inv(self._length))
        return p.combination([(1.0 - self._x, a), (self._x, b)])

    def _of_degree(
        self, ends: Part, inner: Sequence[Part], component: int, derivatives: int
    ) -> int:
        """A function of degree 2 or more, as a combination of its nodal values."""
        p = self._program
        keys = [(ends, "A"), *((part, "C") for part in inner), (ends, "B")]
        basis = basis_at(ends.function, self._x, derivatives)
        found = p.combination(
            [
                (number, p.input(("value", part, side, component)))
                for number, (part, side) in zip(basis, keys, strict=True)
            ]
        )
        for _ in range(derivatives):
            found = p.mul(found, p.inv(self._length))
        return found


def _differentiates(e) -> bool:
    return any(isinstance(x, c.Grad | c.CellVolume) for x in unique_pre_traversal(e))


def couples(op: Solve) -> bool:
    """Whether a solve couples the unknowns of neighbouring nodes, or of nodes and cells."""
    kinds = _kinds([op.unknown])
    if kinds != [AT_NODES]:
        return len(kinds) > 1
    both = {op.test, op.unknown}
    terms = terms_of(op.work) if isinstance(op.work, Form) else []
    return any(
        {op.test, op.unknown} <= both & set(extract_coefficients(t.rest)) and not t.is_nodal()
        for t in terms
    )


def _name(op: Operation) -> str:
    return getattr(op, "name", "") or f"a {type(op).__name__}"


def _written(f: Function) -> list[Part]:
    if is_real(f):
        raise CannotCompile(f"{f.name()}, a number of a Real space, is computed")
    return parts_of(f)


def _kinds(functions) -> list[tuple]:
    """The kinds of the places of Functions that are written."""
    return list(dict.fromkeys(part.kind for f in functions for part in _written(f)))


def _of_kind(f: Function, kind: tuple) -> list[Part]:
    return [part for part in parts_of(f) if part.kind == kind]


def _values(program: ScalarProgram, part: Part, side: str = "C") -> list[int]:
    return [program.input(("value", part, side, k)) for k in range(part.size)]


def _constant(program: ScalarProgram, e) -> list[int]:
    size = int(np.prod(e.ufl_shape, dtype=int))
    return [program.input(("constant", e, k)) for k in range(size)]


def _array(values: Sequence[int], e, shape: tuple | None = None) -> np.ndarray:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made.reshape(e.ufl_shape if shape is None else shape)


def _slopes(program: ScalarProgram, works: Works, inputs: Sequence[int]) -> list[int]:
    """Σ scale ∂integrand/∂input."""
    total = [program.zero] * len(inputs)
    for scale, integrand in works:
        by = gradient(program, integrand, inputs)
        total = [
            program.add(t, program.mul(scale, by[x])) for t, x in zip(total, inputs, strict=True)
        ]
    return total
