"""Operations on general meshes: scalar programs at nodes, and TSFC's kernels in cells.

Terms of a functional whose quadrature has its points at the nodes are functions of the values of one node;
all others are differentiated as forms, and their kernels compute what each cell gives to its nodes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import loopy
from firedrake import (
    CellVolume,
    Constant,
    Form,
    Function,
    FunctionSpace,
    SpatialCoordinate,
    assemble,
    derivative,
    dx,
)
from firedrake.tsfc_interface import compile_form
from tsfc import kernel_args
from tsfc.ufl_utils import extract_firedrake_constants
from ufl import classes as c
from ufl.algorithms import extract_coefficients, extract_type

from fdgeom.compile.differentiate import Works
from fdgeom.compile.layout import Part
from fdgeom.compile.lower import LocalProgram, Lowering, fields_of, name_of, start_of
from fdgeom.compile.map_layout import Nodes
from fdgeom.compile.terms import (
    ROUND_OFF,
    Term,
    degree_of,
    has_points_at_nodes,
    terms_of,
    with_integrand,
)
from fdgeom.errors import CannotCompile
from fdgeom.forms import is_real, simplify, slope_by
from fdgeom.operations import Assemble, Check, Operation, Solve, parts

#: More unknowns of a cell, or longer kernels, take too long to compile.
_UNKNOWNS, _LETTERS = 40, 400_000
_KNOWN = (
    kernel_args.OutputKernelArg,
    kernel_args.CoordinatesKernelArg,
    kernel_args.CoefficientKernelArg,
    kernel_args.ConstantKernelArg,
)


@dataclass(frozen=True)
class Kernel:
    """One cell kernel: ``name<T>(A, coords, w..., c...)`` adds to A."""

    name: str
    #: The C++ function template.
    code: str
    #: The arguments w, in order: Functions that are not mixed.
    coefficients: tuple[Function, ...]
    #: The arguments c, in order.
    constants: tuple[Constant, ...]
    #: Whether the code has no branches, so that T may be a vector of cells.
    vectorises: bool


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

    def _program(self, op: Operation, kind: tuple) -> MapProgram:
        return MapProgram(op, False, nodes=kind[2])

    def _check_in_cells(self, op: Check, value) -> MapProgram:
        mesh = self.layout.mesh
        one = Function(FunctionSpace(mesh, "DG", 0), name="one")
        (part,) = self.layout.parts_of(one)
        made = self._program(op, part.kind)
        midpoint = one * value / CellVolume(mesh) * dx(degree=0, domain=mesh)
        (made.check,) = self._sums(made, midpoint, one, 0, part)
        return made

    # --- functionals ----------------------------------------------------------------------------
    def _is_collocated(self, term: Term, kind: tuple) -> bool:
        integral = term.integral
        if integral.integral_type() not in ("cell", "exterior_facet"):
            return False
        measure = kind, *term.measure[:3], degree_of(integral)
        space, layout = self.space_of(kind), self.layout
        if not layout.made_once(
            ("collocated", *measure), lambda: has_points_at_nodes(integral, space)
        ):
            return False
        if not extract_type(term.rest, c.SpatialCoordinate):
            return True
        x = layout.coordinates_at(kind)
        return layout.made_once(("placed", *measure), lambda: _has_place_of_nodes(integral, x))

    def _split(self, made: LocalProgram, work, kind: tuple) -> tuple[Works, Form | None]:
        if not isinstance(work, Form):
            return super()._split(made, work, kind)
        nodal, others = self._parted(terms_of(work), kind)
        return self.nodal_works(made.place, nodal, kind), _form_of(others)

    def _assembled(self, op: Assemble) -> list[LocalProgram]:
        if not isinstance(op.work, Form):
            return super()._assembled(op)
        found = [self._assemble(op, kind, []) for kind in self._kinds(fields_of(op.by))]
        return [*found, *self._by_numbers(op, [f for f in op.by if is_real(f)])]

    def _by_numbers(self, op: Assemble, numbers: Sequence[Function]) -> list[MapProgram]:
        """What the nodes of each kind, and what the cells give to the derivatives of a form by numbers."""
        terms, found = terms_of(op.work), []
        terms = [t for t in terms if set(numbers) & set(extract_coefficients(t.rest))]
        for kind in self._kinds(fields_of(op.reads)):
            nodal, terms = self._parted(terms, kind)
            if nodal:
                made = self._program(op, kind)
                works = self.nodal_works(made.place, nodal, kind)
                for f in numbers:
                    made.stores += self._by_number(op, f, made.place, works, kind)
                found.append(made)
        if terms:
            (cell,) = self.layout.parts_of(Function(FunctionSpace(self.layout.mesh, "DG", 0)))
            made, cells = self._program(op, cell.kind), _form_of(terms)
            for f in numbers:
                target = self.layout.summands(op.by[f], cell.kind)
                slopes = self._sums(made, cells, f, 0, target)
                made.stores += self._sets(op, f, made.place, target, slopes)
            found.append(made)
        return found

    def _sums(
        self, made: MapProgram, cells: Form | None, f: Function, number: int, part: Part
    ) -> list[int]:
        # Those of parts at other nodes are zero here.
        residual = slope_by(cells, f) if cells else None
        kernels = {} if residual is None else cell_kernels(residual, f"sums{len(made.sums)}")
        if number in kernels and part.nodes == made.nodes:
            return made.add(kernels[number], part.size)
        return [made.place.zero] * part.size

    # --- solves --------------------------------------------------------------------------------
    def _solve(self, op: Solve) -> LocalProgram | CellProgram:
        kind, *more = self._kinds([op.unknown])
        if more:
            raise CannotCompile(f"{name_of(op)} has unknowns at several kinds of nodes")
        both = {op.test, op.unknown}
        others = self._parted(terms_of(op.work), kind)[1] if isinstance(op.work, Form) else []
        for term in others:
            if both <= set(extract_coefficients(term.rest)):
                return self._in_cells(op, term)
        made = self._program(op, kind)
        return self._solved(made, *self._split(made, op.work, kind))

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
        )  # fmt: skip
        if made.size > _UNKNOWNS:
            raise CannotCompile(f"{name_of(op)} has {made.size} unknowns a cell")
        return made


def _has_place_of_nodes(integral: c.Integral, x: Function) -> bool:
    # In DG0 all points have the value of the midpoint, at the seam of a periodic mesh a node two places.
    place = SpatialCoordinate(x.function_space().mesh())
    gap = assemble(with_integrand(integral, (x - place) ** 2))
    return gap <= ROUND_OFF**2 * assemble(with_integrand(integral, 1 + place**2))


def _form_of(terms: Sequence[Term]) -> Form | None:
    return sum((term.form() for term in terms), Form([])) if terms else None


def _read_by(made) -> set[Part]:
    """The parts that a program reads."""
    if isinstance(made, CellProgram):
        return set()
    ops = [made.place.ops[n] for n in made.place.needed([node for _, _, node in made.stores])]
    return {op[1][1] for op in ops if op[0] == "in" and op[1][0] == "value"}


# --- kernels of TSFC as C++ templates, for one cell or for several cells at once ------------------
def cell_kernels(form: Form, name: str) -> dict[int, Kernel]:
    """The kernels of a linear form of cell integrals, by the part of its argument's space."""
    return {k.indices[0]: _kernel(form, k.kinfo, f"{name}_{k.indices[0]}") for k in _compiled(form)}


def matrix_kernel(form: Form, name: str) -> Kernel:
    """The kernel of a bilinear form of cell integrals, of spaces that are not mixed."""
    (found,) = _compiled(form)
    return _kernel(form, found.kinfo, name)


def _compiled(form: Form):
    """What TSFC makes of a form; CannotCompile if it has several kernels of a part."""
    found = compile_form(form, "form")
    if len({k.indices for k in found}) != len(found):
        raise CannotCompile("a form of several kinds of integrals")
    return found


def _kernel(form: Form, info, name: str) -> Kernel:
    if info.integral_type != "cell" or info.subdomain_id != ("otherwise",):
        raise CannotCompile(
            f"a {info.integral_type} integral over the subdomain {info.subdomain_id}"
        )
    for argument in info.arguments:
        if not isinstance(argument, _KNOWN):
            kind = type(argument).__name__
            raise CannotCompile(f"a kernel argument of type {kind} is not supported")
    coefficients = form.coefficients()
    constants = extract_firedrake_constants(form)
    text = loopy.generate_code_v2(info.kernel.code).device_code()
    if len(text) > _LETTERS:
        raise CannotCompile("the form makes a kernel that is too long")
    return Kernel(
        name=name,
        code=_template(text, info.kernel.name, name),
        coefficients=tuple(
            parts(coefficients[k])[i] for k, numbers in info.coefficient_numbers for i in numbers
        ),
        constants=tuple(constants[k] for k in info.constant_numbers),
        vectorises=not re.search(r"\?|\bif\b|\bint32_t t\d", text),
    )


def _template(text: str, given: str, name: str) -> str:
    """The kernel with numbers of type T instead of double, except in constants and tables."""
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#include"))
    text = re.sub(r"\bdouble\b", "T", text)
    # Tables are the same for all cells.
    text = re.sub(
        r"^(\s*)(?:static )?(?:T const|const T|T) (t\d+\[[^=;]*\] = \{)",
        r"\1const double \2",
        text,
        flags=re.M,
    )
    text = re.sub(r"\bT const \*__restrict__ (c_\d+)", r"double const *__restrict__ \1", text)
    return text.replace(
        f"void {given}(", f"template <class T> static FDGEOM_INLINE void {name}(", 1
    )
