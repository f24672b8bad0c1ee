"""Operations on general meshes: scalar programs at nodes, and TSFC's kernels in cells.

Terms of a functional whose quadrature has its points at the nodes are functions of the values of one node;
all others are differentiated as forms, and their kernels compute what each cell gives to its nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from firedrake import (
    CellVolume,
    Form,
    Function,
    FunctionSpace,
    assemble,
    derivative,
    dx,
)
from ufl import classes as c
from ufl.algorithms import expand_derivatives, extract_coefficients

from fdgeom.compile.from_tsfc import Kernel, cell_kernels, matrix_kernel
from fdgeom.compile.functionals import slopes_of, values_of
from fdgeom.compile.layout import Part
from fdgeom.compile.lower import (
    LocalProgram,
    Lowering,
    differentiates,
    fields_of,
    name_of,
    start_of,
)
from fdgeom.compile.map_layout import Nodes
from fdgeom.compile.terms import Term, degree_of, terms_of, with_integrand
from fdgeom.errors import CannotCompile
from fdgeom.forms import is_affine, is_real, simplify, slope_by
from fdgeom.operations import Assemble, Check, Map, Operation, Solve

# Round-off of the tabulation of functions at nodes.
_ROUND_OFF = 1e-14
#: More unknowns of a cell take too long to compile.
_UNKNOWNS = 40


@dataclass(frozen=True)
class Sum:
    """What cells give to the nodes of a kind: numbers of the list ``b`` from ``first`` on."""

    kernel: Kernel
    first: int
    size: int


@dataclass
class MapProgram(LocalProgram):
    """An operation at the nodes of a kind."""

    nodes: Nodes | None = None
    sums: list[Sum] = field(default_factory=list)
    #: How many numbers the cells give to a node.
    given: int = 0

    def add(self, kernel: Kernel, size: int) -> list[int]:
        """The sums of what a kernel computes, at the node."""
        first, self.given = self.given, self.given + size
        self.sums.append(Sum(kernel, first, size))
        return [self.place.input(("b", k)) for k in range(first, self.given)]


@dataclass
class CellProgram:
    """A solve in each cell for all values that a discontinuous function has there."""

    op: Solve
    unknown: Part
    guess: Part
    #: The right-hand side of a transposed solve.
    source: Part | None
    residual: Kernel
    tangent: Kernel
    affine: bool

    @property
    def size(self) -> int:
        """The number of unknowns of a cell."""
        space = self.op.unknown.function_space()
        return space.block_size * space.cell_node_map().arity


class MapLowering(Lowering):
    """Converts operations on the places of a `MapLayout`."""

    def __call__(self, op: Operation) -> list:
        found = super().__call__(op)
        written: set[Part] = set()
        for made in found:
            if written & _read_by(made):
                raise CannotCompile(f"{name_of(op)} reads what it writes at other nodes")
            written |= {part for part, _, _ in getattr(made, "stores", ())}
        return found

    def couples(self, op: Solve) -> bool:
        return False

    def space_of(self, kind: tuple) -> FunctionSpace:
        return kind[2].space(self.layout.mesh)

    def coordinates_at(self, kind: tuple) -> Function:
        return self.layout.coordinates_at(kind[2])

    def _map(self, op: Map, kind: tuple) -> MapProgram:
        made = super()._map(op, kind)
        return MapProgram(**vars(made), nodes=kind[2])

    def _copy(self, op, kind: tuple) -> MapProgram:
        made = super()._copy(op, kind)
        return MapProgram(**vars(made), nodes=kind[2])

    def _check(self, op: Check) -> MapProgram:
        kinds, value = self._kinds(fields_of(op.reads)), expand_derivatives(op.value)
        if len(kinds) == 1 and not differentiates(value):
            made = MapProgram(op, False, nodes=kinds[0][2])
            made.check = self.at_places(made.place, kinds[0]).scalar(value)
            return made
        # In cells an expression is evaluated at the midpoint.
        mesh = self.layout.mesh
        one = Function(FunctionSpace(mesh, "DG", 0), name="one")
        (part,) = self.layout.parts_of(one)
        made = MapProgram(op, False, nodes=part.nodes)
        midpoint = one * value / CellVolume(mesh) * dx(degree=0, domain=mesh)
        (made.check,) = self._sums(made, midpoint, one)
        return made

    # --- functionals ----------------------------------------------------------------------------
    def _parted(self, work: Form, kind: tuple) -> tuple[list[Term], list[Term]]:
        """The terms of a form that are functions of the values of one node of a kind, and the others."""
        terms = terms_of(work)
        nodal = [term for term in terms if self._is_nodal(term, kind)]
        return nodal, [term for term in terms if term not in nodal]

    def _is_nodal(self, term: Term, kind: tuple) -> bool:
        return (
            term.is_pointwise()
            and all(
                part.kind == kind
                for f in fields_of(extract_coefficients(term.rest))
                for part in self.layout.parts_of(f)
            )
            and self._is_collocated(kind, term)
        )

    def _is_collocated(self, kind: tuple, term: Term) -> bool:
        """Whether the points of the quadrature of a term are nodes."""
        integral = term.integral
        if integral.integral_type() not in ("cell", "exterior_facet"):
            return False
        key = "collocated", kind, *term.measure[:3], degree_of(integral)
        space = self.space_of(kind)
        return self.layout.made_once(key, lambda: _has_points_at_nodes(integral, space))

    def _assembled(self, op: Assemble) -> list[MapProgram]:
        """The derivatives by functions of each kind of nodes."""
        numbers = [f for f in op.by if is_real(f)]
        if isinstance(op.work, Form):
            found = [self._assembled_at(op, kind) for kind in self._kinds(fields_of(op.by))]
            return [*found, *(self._by_numbers(op, numbers) if numbers else [])]
        kinds = self._kinds(fields_of(op.by) or fields_of(op.reads))
        return [
            self._assembled_at(op, kind, numbers if k == 0 else []) for k, kind in enumerate(kinds)
        ]

    def _by_numbers(self, op: Assemble, numbers: Sequence[Function]) -> list[MapProgram]:
        """What the nodes of each kind, and what the cells give to the derivatives of a form by numbers."""
        terms, found = terms_of(op.work), []
        terms = [t for t in terms if set(numbers) & set(extract_coefficients(t.rest))]
        for kind in self._kinds(fields_of(op.reads)):
            nodal = [t for t in terms if self._is_nodal(t, kind)]
            terms = [t for t in terms if t not in nodal]
            if nodal:
                made = MapProgram(op, False, nodes=kind[2])
                works = self.nodal_works(made.place, nodal, kind)
                for f in numbers:
                    target, adds = self.layout.summands(op.by[f], kind), op.by[f] in op.adds
                    made.stores += self._by_number(made.place, works, f, target, adds)
                found.append(made)
        if terms:
            found.append(self._by_numbers_in_cells(op, numbers, _form_of(terms)))
        return found

    def _by_numbers_in_cells(self, op: Assemble, numbers, cells: Form) -> MapProgram:
        """What each cell gives to the derivatives of a form by numbers."""
        (cell,) = self.layout.parts_of(Function(FunctionSpace(self.layout.mesh, "DG", 0)))
        made = MapProgram(op, False, nodes=cell.nodes)
        p = made.place
        for f in numbers:
            residual = slope_by(cells, f)
            target, adds = self.layout.summands(op.by[f], cell.kind), op.by[f] in op.adds
            slopes = [p.zero] * target.size
            if residual is not None:
                kernel = cell_kernels(residual, f"sums{len(made.sums)}")[0]
                slopes = made.add(kernel, target.size)
            if adds:
                old = values_of(p, target)
                slopes = [p.add(s, x) for s, x in zip(slopes, old, strict=True)]
            made.stores += [(target, k, s) for k, s in enumerate(slopes)]
        return made

    def _assembled_at(
        self, op: Assemble, kind: tuple, numbers: Sequence[Function] = ()
    ) -> MapProgram:
        made = MapProgram(op, False, nodes=kind[2])
        p, cells = made.place, None
        if isinstance(op.work, Form):
            nodal, others = self._parted(op.work, kind)
            nodes, cells = self.nodal_works(p, nodal, kind), _form_of(others)
        else:
            nodes, _ = self._split(made, op.work, kind)
        for f in fields_of(op.by):
            parts = self.layout.parts_of(f)
            if all(part.kind != kind for part in parts):
                continue
            sums = self._sums(made, cells, f) if cells else []
            for part, target in zip(parts, self._written(op.by[f]), strict=True):
                slopes = slopes_of(p, nodes, values_of(p, part)) if part.kind == kind else []
                own, sums = sums[: part.size], sums[part.size :]
                if part.kind != kind:
                    continue
                if own:
                    slopes = [p.add(s, b) for s, b in zip(slopes, own, strict=True)]
                if op.by[f] in op.adds:
                    old = values_of(p, target)
                    slopes = [p.add(s, x) for s, x in zip(slopes, old, strict=True)]
                made.stores += [(target, k, s) for k, s in enumerate(slopes)]
        for f in numbers:
            target, adds = self.layout.summands(op.by[f], kind), op.by[f] in op.adds
            made.stores += self._by_number(p, nodes, f, target, adds)
        return made

    def _sums(self, made: MapProgram, cells: Form | None, f: Function) -> list[int]:
        """What cells give to the derivatives by a Function; those by parts at other nodes are zero here."""
        parts = self.layout.parts_of(f)
        residual = slope_by(cells, f)
        kernels = {} if residual is None else cell_kernels(residual, f"sums{len(made.sums)}")
        found = []
        for number, part in enumerate(parts):
            here = number in kernels and part.nodes == made.nodes
            found += made.add(kernels[number], part.size) if here else [made.place.zero] * part.size
        return found

    # --- solves --------------------------------------------------------------------------------
    def _solve(self, op: Solve) -> MapProgram | CellProgram:
        kinds = self._kinds([op.unknown])
        if len(kinds) > 1:
            raise CannotCompile(f"{name_of(op)} has unknowns at several kinds of nodes")
        if not isinstance(op.work, Form):
            made = MapProgram(op, False, nodes=kinds[0][2])
            nodes, _ = self._split(made, op.work, kinds[0])
            return self._solved(made, nodes, None)
        nodal, others = self._parted(op.work, kinds[0])
        both = {op.test, op.unknown}
        implicit = [t for t in others if both <= set(extract_coefficients(t.rest))]
        if implicit:
            return self._in_cells(op, implicit[0])
        made = MapProgram(op, False, nodes=kinds[0][2])
        nodes = self.nodal_works(made.place, nodal, kinds[0])
        return self._solved(made, nodes, _form_of(others))

    def _in_cells(self, op: Solve, term: Term) -> CellProgram:
        """A solve in each cell; CannotCompile if a term couples unknowns of several cells."""
        space = op.unknown.function_space()
        if len(space) > 1:
            raise CannotCompile(f"this term couples more than one node's unknowns: {term}")
        if not self.layout.parts_of(op.unknown)[0].nodes.in_cells:
            raise CannotCompile(f"this term couples the unknowns of neighbouring nodes: {term}")
        if op.prescribed:
            raise CannotCompile(f"{name_of(op)} has prescribed values in cells")
        residual = slope_by(op.work, op.test)
        (unknown,), (guess,) = (self.layout.parts_of(f) for f in (op.unknown, start_of(op)))
        made = CellProgram(
            op=op, unknown=unknown, guess=guess,
            source=None if op.source is None else self.layout.parts_of(op.source)[0],
            residual=cell_kernels(residual, "residual_of")[0],
            tangent=matrix_kernel(simplify(derivative(residual, op.unknown)), "tangent_of"),
            affine=is_affine(residual, op.unknown),
        )  # fmt: skip
        if made.size > _UNKNOWNS:
            raise CannotCompile(f"{name_of(op)} has {made.size} unknowns a cell")
        return made


def _has_points_at_nodes(integral: c.Integral, space: FunctionSpace) -> bool:
    # Only at nodes is the square of a function the interpolant of its squares. That the mass matrix
    # is diagonal says less: that of Legendre's points is, under any exact quadrature.
    u, squares = Function(space), Function(space)
    u.dat.data_wo[:] = np.random.default_rng(0).uniform(1.0, 2.0, u.dat.data_ro.shape)
    squares.dat.data_wo[:] = u.dat.data_ro**2
    gap = assemble(with_integrand(integral, (u * u - squares) ** 2))
    return gap <= _ROUND_OFF**2 * assemble(with_integrand(integral, squares**2))


def _form_of(terms: Sequence[Term]) -> Form | None:
    return sum((term.form() for term in terms), Form([])) if terms else None


def _read_by(made) -> set[Part]:
    """The parts that a program reads."""
    if isinstance(made, CellProgram):
        return set()
    ops = [made.place.ops[n] for n in made.place.needed([node for _, _, node in made.stores])]
    return {op[1][1] for op in ops if op[0] == "in" and op[1][0] == "value"}
