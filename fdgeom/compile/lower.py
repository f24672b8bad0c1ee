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
from firedrake import Constant, Form, Function, FunctionSpace
from ufl import classes as c
from ufl.algorithms import expand_derivatives, extract_coefficients
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom.compile.chain import ChainProgram, Update, lower_chain
from fdgeom.compile.differentiate import Works, gradient, slopes_of
from fdgeom.compile.from_ufl import Point, Scalars, constant_values, values_of
from fdgeom.compile.layout import AT_NODES, IN_CELLS, Layout, Part, marked, parts_of
from fdgeom.compile.program import ScalarProgram
from fdgeom.compile.terms import Term, cell_lengths, nodal_weight, rule_of, terms_of
from fdgeom.errors import CannotCompile
from fdgeom.forms import is_real
from fdgeom.operations import Assemble, Check, Copy, Map, Operation, Solve, parts

#: Programs of more operations take too long to compile.
_OPERATIONS = 8000


@dataclass
class LocalProgram:
    """An operation as scalar programs."""

    op: Operation
    #: Whether it is done at the nodes, else in the cells.
    at_nodes: bool
    #: What each cell gives to its nodes and to itself.
    cell: ScalarProgram = field(default_factory=ScalarProgram)
    #: The same for a cell that links chains, and its scaled integrands.
    link: ScalarProgram = field(default_factory=ScalarProgram)
    link_works: Works = field(default_factory=list)
    #: What is done at one place: outputs from inputs, from ``b``, and from the unknowns of a solve.
    place: ScalarProgram = field(default_factory=ScalarProgram)
    #: For each ``b`` what a cell gives to its first and to its second node, nodes of ``cell``, and what
    #: a link gives, nodes of ``link``.
    gathered: list[tuple[int, int, int, int]] = field(default_factory=list)
    #: Values that are written at the place, and in the cell: (part, component, node).
    stores: list[tuple[Part, int, int]] = field(default_factory=list)
    cell_stores: list[tuple[Part, int, int]] = field(default_factory=list)
    link_stores: list[tuple[Part, int, int]] = field(default_factory=list)
    #: Of a solve: the unknowns, the residual and the first guess, nodes of ``place``.
    unknowns: list[int] = field(default_factory=list)
    residual: list[int] = field(default_factory=list)
    guess: list[int] = field(default_factory=list)
    #: Prescribed unknowns: their numbers, and nodes of ``place`` for their values and for 0 where they are
    #: prescribed, 1 elsewhere.
    held: list[tuple[int, int, int]] = field(default_factory=list)
    #: Parts that are 1 at prescribed degrees of freedom, and these.
    masks: list[tuple[Part, np.ndarray]] = field(default_factory=list)
    #: Of a check: the value, and what is negative where that is not needed; nodes of ``place``.
    check: int | None = None
    sufficient: int | None = None

    def gather(self, given: tuple[int, int, int, int]) -> int:
        """The sum of what the cells of a node give to it, at the node."""
        zero = self.cell.zero, self.link.zero
        if given == (zero[0], zero[0], zero[1], zero[1]):
            return self.place.zero
        if given not in self.gathered:
            self.gathered.append(given)
        return self.place.input(("b", self.gathered.index(given)))


class Lowering:
    """Converts operations on the places of a layout to scalar programs."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def __call__(self, op: Operation) -> list[LocalProgram] | list[ChainProgram]:
        """The programs of an operation, for different places; CannotCompile names what is not supported."""
        for f in (*op.reads, *op.writes):
            if not is_real(f):
                for part in self.layout.parts_of(f):
                    self.layout.dofs(part)
        if isinstance(op, Map):
            found = [self._map(op, kind) for kind in self._kinds(op.values)]
        elif isinstance(op, Copy):
            found = [self._copy(op, kind) for kind in self._kinds([op.target])]
        elif isinstance(op, Check):
            found = [self._check(op)]
        elif isinstance(op, Assemble):
            found = self._assembled(op)
        elif isinstance(op, Solve):
            if self.couples(op) or isinstance(op, Update):
                return [lower_chain(self, op)]
            found = [self._solve(op)]
        else:
            why = getattr(op, "why_not_compiled", "")
            raise CannotCompile(why or f"{type(op).__name__} is an operation of Python")
        local = [made for made in found if isinstance(made, LocalProgram)]
        programs = [p for made in local for p in (made.cell, made.link, made.place)]
        longest = max((len(program.ops) for program in programs), default=0)
        if longest > 4 * _OPERATIONS:
            raise CannotCompile(f"{name_of(op)} takes {longest} operations a place")
        return found

    def _written(self, f: Function) -> list[Part]:
        if is_real(f):
            raise CannotCompile(f"{f.name()}, a number of a Real space, is computed")
        return self.layout.parts_of(f)

    def _kinds(self, functions) -> list[tuple]:
        """The kinds of the places of Functions that are written."""
        return list(dict.fromkeys(part.kind for f in functions for part in self._written(f)))

    def couples(self, op: Solve) -> bool:
        """Whether a solve couples the unknowns of neighbouring nodes, or of nodes and cells."""
        kinds = self._kinds([op.unknown])
        if kinds != [AT_NODES]:
            return len(kinds) > 1
        both = {op.test, op.unknown}
        others = self._parted(terms_of(op.work), AT_NODES)[1] if isinstance(op.work, Form) else []
        return any(both <= set(extract_coefficients(t.rest)) for t in others)

    def _program(self, op: Operation, kind: tuple) -> LocalProgram:
        """An empty program of the places of a kind."""
        return LocalProgram(op, kind[0])

    def at_places(self, program: ScalarProgram, kind: tuple) -> Scalars:
        """Conversion of expressions of the values of one place."""

        def terminal(e, derivatives: int) -> list[int]:
            if isinstance(e, c.SpatialCoordinate):
                self.layout.check_mesh_of(e)
                e = self.layout.coordinates_at(kind) or e
            if derivatives:
                raise CannotCompile(
                    "derivatives in space, where only values of one place are known"
                )
            if isinstance(e, Constant) or (isinstance(e, Function) and is_real(e)):
                return constant_values(program, e)
            if isinstance(e, Function):
                found = self.of_kind(e, kind)
                if len(found) < len(parts(e)):
                    raise CannotCompile(
                        f"{e.name()} has other nodes than the functions it is used with"
                    )
                return [x for part in found for x in values_of(program, part)]
            raise CannotCompile(f"{type(e).__name__} at single places")

        return Scalars(program, terminal)

    def of_kind(self, f: Function, kind: tuple) -> list[Part]:
        """The parts of a Function at the places of a kind."""
        return [part for part in self.layout.parts_of(f) if part.kind == kind]

    # --- operations at single places -----------------------------------------------------------
    def _map(self, op: Map, kind: tuple) -> LocalProgram:
        """The assignments at the places of one kind."""
        made = self._program(op, kind)
        scalars = self.at_places(made.place, kind)
        for f, e in op.values.items():
            parts = self.of_kind(f, kind)
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
        every = self._written(op.target)
        sources = [None] * len(every) if op.source is None else self.layout.parts_of(op.source)
        made = self._program(op, kind)
        p = made.place
        if op.rows is not None and len(parts(op.target)) > 1:
            raise CannotCompile(f"a copy of rows of {op.target.name()}, a mixed function")
        for target, source in zip(every, sources, strict=True):
            if source and (source.kind, source.size) != (target.kind, target.size):
                raise CannotCompile(f"a copy of {source.name} to the nodes of {target.name}")
            if target.kind != kind:
                continue
            old = values_of(p, target)
            new = [p.zero] * target.size if source is None else values_of(p, source)
            if op.adds:
                new = [p.add(a, b) for a, b in zip(old, new, strict=True)]
            if op.rows is not None:
                mask = values_of(p, self.layout.part_like(target, marked(op.target, op.rows)))
                new = [
                    p.select(p.compare(">", m, p.const(0.5)), a, b)
                    for m, a, b in zip(mask, new, old, strict=True)
                ]
            made.stores += [(target, k, node) for k, node in enumerate(new)]
        return made

    def _check(self, op: Check) -> LocalProgram:
        kinds, value = self._kinds(fields_of(op.reads)), expand_derivatives(op.value)
        # In the cells of chains it may read the place of the midpoint.
        if len(kinds) == 1 and kinds != [IN_CELLS] and not differentiates(value):
            made = self._program(op, kinds[0])
            made.check = self.at_places(made.place, kinds[0]).scalar(value)
            return made
        return self._check_in_cells(op, value)

    def _check_in_cells(self, op: Check, value) -> LocalProgram:
        """A check of an expression at the midpoints of cells."""
        made = LocalProgram(op, False)
        at = Point(made.place, self.layout, 0.5, self.length(made.place), None)
        made.check = Scalars(made.place, at).scalar(value)
        if op.sufficient is not None:
            enough = expand_derivatives(op.sufficient)
            made.sufficient = self.at_places(made.place, AT_NODES).scalar(enough)
        return made

    # --- functionals ----------------------------------------------------------------------------
    def nodal_works(
        self, program: ScalarProgram, terms: Sequence[Term], kind: tuple = AT_NODES
    ) -> Works:
        """The sums over nodes of nodal terms, one for each weight."""
        scalars, groups = self.at_places(program, kind), {}
        for term in terms:
            groups.setdefault(term.measure, []).append(term)
        found: dict[int, int] = {}
        for measure, own in groups.items():
            # Scaled to the first, so that the same function under other measures is the same node.
            total = program.zero
            for term in own:
                share = program.const(term.number / own[0].number)
                total = program.add(total, program.mul(share, scalars.scalar(term.rest)))
            key = ("weight", kind, *measure[:3], str(measure[3]), own[0].number)
            weight = self.layout.made_once(
                key, lambda own=own: nodal_weight(self.space_of(kind), own[0])
            )
            (scale,) = values_of(program, self.layout.parts_of(weight)[0])
            found[total] = program.add(found.get(total, program.zero), scale)
        return [(scale, total) for total, scale in found.items()]

    def space_of(self, kind: tuple) -> FunctionSpace:
        """The space of one value at each place of a kind."""
        return FunctionSpace(self.layout.mesh, *self.layout.element_of(kind))

    def length(self, program: ScalarProgram) -> int:
        """The length of a cell."""
        mesh = self.layout.mesh
        lengths = self.layout.made_once("lengths", lambda: cell_lengths(mesh))
        return values_of(program, parts_of(lengths)[0])[0]

    def cell_works(
        self, program: ScalarProgram, terms: Sequence[Term], *, of_links: bool = False
    ) -> Works:
        """The sums over the points of a cell of the chains, or of one that links chains."""
        found, length = {}, self.length(program)
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
                ends = self.layout.made_once(
                    key, lambda one=one: nodal_weight(self.space_of(AT_NODES), one)
                )
                (part,) = parts_of(ends)
                points = [
                    (float(facet), facet, program.input(("value", part, side, 0)))
                    for facet, side in enumerate("AB")
                ]
            else:
                raise CannotCompile(f"{term}, over a part of the mesh")
            integrand = term.number * term.geometry * term.rest
            for x, facet, scale in points:
                at = Point(program, self.layout, x, length, facet, of_links)
                value = Scalars(program, at).scalar(integrand)
                found[scale] = program.add(found.get(scale, program.zero), value)
        return list(found.items())

    def _split(self, made: LocalProgram, work, kind: tuple | None = None) -> tuple[Works, Works]:
        """A functional as sums over places (of one kind) and over cells."""
        if not isinstance(work, Form):
            kind = kind or (AT_NODES if made.at_nodes else IN_CELLS)
            value = self.at_places(made.place, kind).scalar(expand_derivatives(work))
            return [(made.place.one, value)], []
        nodal, others = [], terms_of(work)
        if made.at_nodes:
            nodal, others = self._parted(others, AT_NODES)
        if self.layout.has_links:
            made.link_works = self.cell_works(made.link, others, of_links=True)
        return self.nodal_works(made.place, nodal), self.cell_works(made.cell, others)

    def _parted(self, terms: Sequence[Term], kind: tuple) -> tuple[list[Term], list[Term]]:
        """The terms that are functions of the values of one node of a kind, and the others."""
        found: tuple[list[Term], list[Term]] = [], []
        for term in terms:
            read = fields_of(extract_coefficients(term.rest))
            nodal = (
                term.is_pointwise()
                and all(part.kind == kind for f in read for part in self.layout.parts_of(f))
                and self._is_collocated(term, kind)
            )
            found[not nodal].append(term)
        return found

    def _is_collocated(self, term: Term, kind: tuple) -> bool:
        """Whether the points of the quadrature of a term are nodes of a kind."""
        integral = term.integral
        if integral.integral_type() == "exterior_facet":
            return True
        return integral.integral_type() == "cell" and set(rule_of(integral)[0]) <= {0.0, 1.0}

    def _assembled(self, op: Assemble) -> list[LocalProgram]:
        """A sum over nodes has a program for each kind of them, a form one for all."""
        numbers = [f for f in op.by if is_real(f)]
        if isinstance(op.work, Form):
            return [self._assemble(op, None, numbers)]
        kinds = self._kinds(fields_of(op.by) or fields_of(op.reads))
        return [self._assemble(op, kind, [] if k else numbers) for k, kind in enumerate(kinds)]

    def _assemble(
        self, op: Assemble, kind: tuple | None, numbers: Sequence[Function]
    ) -> LocalProgram:
        """The derivatives by numbers, and by the parts of Functions at places of a kind (None: of all)."""
        nodal = any(part.nodal for f in fields_of(op.by) for part in self.layout.parts_of(f))
        made = self._program(op, kind or (AT_NODES if nodal else IN_CELLS))
        nodes, cells = self._split(made, op.work, kind)
        where = self._where(made, nodes, cells, kind)
        for f in fields_of(op.by):
            targets = self._written(op.by[f])
            for k, (part, target) in enumerate(zip(self.layout.parts_of(f), targets, strict=True)):
                if kind not in (None, part.kind):
                    continue
                for program, stores, works, at in where:
                    if at[0] == part.nodal:
                        slopes = slopes_of(program, works, values_of(program, part))
                        if program is made.place:
                            sums = self._sums(made, cells, f, k, part)
                            slopes = [program.add(s, b) for s, b in zip(slopes, sums, strict=True)]
                        stores += self._sets(op, f, program, target, slopes)
        for f in numbers:
            for program, stores, works, at in where:
                if works:
                    stores += self._by_number(op, f, program, works, at)
        return made

    def _where(self, made: LocalProgram, nodes: Works, cells, kind: tuple | None) -> list[tuple]:
        """Programs of a functional with their stores, their integrands and the kind of their places."""
        if kind is not None:
            return [(made.place, made.stores, nodes, kind)]
        found = [(made.place, made.stores, nodes, AT_NODES)] if made.at_nodes else []
        found.append((made.cell, made.cell_stores, cells, IN_CELLS))
        if self.layout.has_links:
            found.append((made.link, made.link_stores, made.link_works, IN_CELLS))
        return found

    def _by_number(
        self, op: Assemble, number: Function, program: ScalarProgram, works: Works, kind: tuple
    ) -> list[tuple[Part, int, int]]:
        """The stores of what each place of a kind gives to the derivative by a number."""
        slopes = slopes_of(program, works, constant_values(program, number))
        target = self.layout.summands(op.by[number], kind)
        return self._sets(op, number, program, target, slopes)

    @staticmethod
    def _sets(
        op: Assemble, f: Function, program: ScalarProgram, target: Part, slopes: Sequence[int]
    ) -> list[tuple[Part, int, int]]:
        """The stores of derivatives by a Function, which are added to old values or replace them."""
        if op.by[f] in op.adds:
            old = values_of(program, target)
            slopes = [program.add(s, x) for s, x in zip(slopes, old, strict=True)]
        return [(target, k, s) for k, s in enumerate(slopes)]

    def _sums(self, made: LocalProgram, cells, f: Function, number: int, part: Part) -> list[int]:
        """What the cells of a node give to the derivatives by a Function, of its part with this number."""
        # By its values at the first and at the second node of a cell or link.
        given = [
            slopes_of(program, works, values_of(program, part, side))
            for program, works in ((made.cell, cells), (made.link, made.link_works))
            for side in "AB"
        ]
        return [made.gather(sides) for sides in zip(*given, strict=True)]

    # --- solves --------------------------------------------------------------------------------
    def _solve(self, op: Solve) -> LocalProgram:
        unknowns = self._written(op.unknown)
        made = LocalProgram(op, unknowns[0].nodal)
        nodes, cells = self._split(made, op.work)
        if not made.at_nodes:
            if made.link_works:
                raise CannotCompile(f"{name_of(op)} is solved in cells that link chains")
            made.place, made.cell, nodes, cells = made.cell, made.place, cells, []
        return self._solved(made, nodes, cells)

    def _solved(self, made: LocalProgram, nodes: Works, cells) -> LocalProgram:
        """A solve at each place, of a functional that is a sum over places and one over cells."""
        op, p = made.op, made.place
        unknowns, tests = self._written(op.unknown), self.layout.parts_of(op.test)
        made.unknowns = [x for part in unknowns for x in values_of(p, part)]
        made.residual = self._residual(made, nodes, cells, tests, op)
        start = start_of(op)
        own = start.dat is op.unknown.dat
        made.guess = [x for part in self.layout.parts_of(start) for x in values_of(p, part)]
        if own:
            made.guess = [p.input(("start", *p.ops[x][1][1:])) for x in made.guess]
        self._hold(made, unknowns)
        pairs = [(part, k) for part in unknowns for k in range(part.size)]
        made.stores = [(part, k, u) for (part, k), u in zip(pairs, made.unknowns, strict=True)]
        return made

    def _residual(self, made: LocalProgram, nodes: Works, cells, tests, op: Solve) -> list[int]:
        """The derivatives by the test function, divided by the weight if there is only one."""
        p = made.place
        inputs = [x for part in tests for x in values_of(p, part)]
        right = [p.zero] * len(inputs)
        if op.source is not None:
            right = [
                p.neg(x) for part in self.layout.parts_of(op.source) for x in values_of(p, part)
            ]
        if cells or made.link_works:
            sums = [
                b for k, part in enumerate(tests) for b in self._sums(made, cells, op.test, k, part)
            ]
            right = [p.add(x, b) for x, b in zip(right, sums, strict=True)]
        if len(nodes) != 1:
            slopes = slopes_of(p, nodes, inputs)
            return [p.add(s, b) for s, b in zip(slopes, right, strict=True)]
        ((scale, integrand),) = nodes
        slopes, inverse = gradient(p, integrand, inputs), p.inv(scale)
        return [p.add(slopes[x], p.mul(inverse, b)) for x, b in zip(inputs, right, strict=True)]

    def _hold(self, made: LocalProgram, unknowns: Sequence[Part]) -> None:
        """The values of prescribed unknowns, and where they are prescribed."""
        op, p = made.op, made.place
        found: dict[int, tuple[int, int]] = {}
        first = np.cumsum([0, *(part.size for part in unknowns)])
        for q in op.prescribed:
            (mask,) = self.layout.parts_of(marked(parts(op.unknown)[q.part], q.dofs))
            values = [p.zero] * mask.size
            if q.value is not None:
                values = values_of(p, self.layout.parts_of(q.value)[0])
            for k, m, value in zip(range(mask.size), values_of(p, mask), values, strict=True):
                number, chosen = int(first[q.part]) + k, p.compare(">", m, p.const(0.5))
                x, free = found.get(number, (made.unknowns[number], p.one))
                found[number] = p.select(chosen, value, x), p.select(chosen, p.zero, free)
            made.masks.append((mask, np.asarray(q.dofs)))
        made.held = [(number, *nodes) for number, nodes in found.items()]


def differentiates(e) -> bool:
    return any(isinstance(x, c.Grad | c.CellVolume) for x in unique_pre_traversal(e))


def name_of(op: Operation) -> str:
    return getattr(op, "name", "") or f"a {type(op).__name__}"


def start_of(op: Solve) -> Function:
    """The first guess of a solve, which may be the unknown."""
    if len(op.attempts) > 1:
        raise CannotCompile(f"{name_of(op)} is attempted from several guesses")
    return op.attempts[0].guess if op.attempts else op.guess or op.unknown


def fields_of(functions) -> list[Function]:
    """The Functions that are no numbers of Real spaces."""
    return [f for f in functions if not is_real(f)]
