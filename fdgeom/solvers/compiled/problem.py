"""Local problems: residuals that couple only the unknowns of one node, or of one cell."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import ufl
from firedrake import (
    Form,
    Function,
    SpatialCoordinate,
    TestFunction,
    VectorFunctionSpace,
    derivative,
    dx,
)
from firedrake.assemble import get_assembler
from ufl.algorithms import extract_coefficients
from ufl.algorithms import replace as put
from ufl.core.expr import Expr

from fdgeom.errors import CannotCompile
from fdgeom.forms import is_affine, is_zero, simplify
from fdgeom.solvers.compiled.collocation import is_collocated, scalar_space
from fdgeom.solvers.compiled.kernel import Kernel, cell_kernel
from fdgeom.solvers.compiled.rods import without_links
from fdgeom.solvers.compiled.terms import Term, terms_of, total
from fdgeom.solvers.derived import Derived, sampled
from fdgeom.solvers.one_node import one_node_mesh, one_node_space


@dataclass(frozen=True)
class Weighted:
    """A part of a nodal residual: a weight at the node times a function of the nodal values."""

    weight: Function
    #: The function of the nodal values, times the residual's argument.
    expression: Expr
    residual: Kernel
    jacobian: Kernel | None


@dataclass(frozen=True)
class NodeProblem:
    """At each node Σ_k W_k f_k(u) + b = 0, with b assembled from the cells."""

    unknown: Function
    #: Whether all f_k are of first degree in u.
    affine: bool
    parts: tuple[Weighted, ...]
    #: The cell kernel of b, which does not contain u; None if b = 0.
    explicit: Kernel | None
    #: The form of b.
    form: Form

    @property
    def size(self) -> int:
        return sum(piece.function_space().block_size for piece in pieces(self.unknown))

    @property
    def frozen(self) -> bool:
        """Whether the Jacobian is a weight times a function of u and constants alone."""
        implicit = [p.jacobian for p in self.parts if p.jacobian is not None]
        return len(implicit) == 1 and set(implicit[0].coefficients) <= {self.unknown}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        nodal = [k for p in self.parts for k in (p.residual, p.jacobian) if k is not None]
        return (*nodal, *([self.explicit] if self.explicit else []))


@dataclass(frozen=True)
class CellProblem:
    """In each cell R(u) = 0 for all values of u in the cell; u is discontinuous."""

    unknown: Function
    #: Whether R is of first degree in u.
    affine: bool
    residual: Kernel
    jacobian: Kernel
    #: The form of R.
    form: Form

    @property
    def size(self) -> int:
        space = self.unknown.function_space()
        return space.block_size * space.cell_node_map().arity

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return (self.residual, self.jacobian)


def pieces(function: Function) -> tuple[Function, ...]:
    """The parts of a mixed function, or the function itself."""
    return function.subfunctions if len(function.function_space()) > 1 else (function,)


def local_problem(
    residual: Form, unknown: Function, name: str, inside: Function | None = None
) -> NodeProblem | CellProblem:
    """The local problem of a residual, with its kernels; ``CannotCompile`` if the residual is not local."""
    space = unknown.function_space()
    residual = simplify(residual)
    terms = terms_of(residual)
    nodal = [t for t in terms if is_nodal(t, unknown)]
    others = [t for t in terms if t not in nodal]
    implicit = [t for t in others if t.contains(unknown)]
    if not implicit:
        if others and len(space) > 1:
            raise CannotCompile(f"this term, of a mixed space, is not nodal: {others[0]}")
        return _node_problem(residual, unknown, nodal, others, name, inside)
    if len(space) > 1:
        raise CannotCompile(f"this term couples more than one node's unknowns: {implicit[0]}")
    if any(len(dofs) for dim, entities in _entity_dofs(space).items() if dim != _top(space)
           for dofs in entities.values()):  # fmt: skip
        raise CannotCompile(f"this term couples the unknowns of neighbouring nodes: {implicit[0]}")
    for term in terms:
        if term.integral.integral_type() != "cell":
            raise CannotCompile(f"this term is not inside the cells: {term}")
    return CellProblem(
        unknown=unknown,
        affine=is_affine(residual, unknown),
        residual=cell_kernel(residual, f"{name}r"),
        jacobian=cell_kernel(derivative(residual, unknown), f"{name}j"),
        form=residual,
    )


def _entity_dofs(space):
    return space.finat_element.entity_dofs()


def _top(space) -> int:
    return max(_entity_dofs(space))


def is_nodal(term: Term, unknown: Function) -> bool:
    """Whether a term, with a quadrature at the nodes, is a function of the values at each node."""
    nodes = pieces(unknown)[0].function_space().node_set
    functions = [p for f in extract_coefficients(term.rest) for p in pieces(f)]
    return (
        not term.has_derivatives()
        and not term.is_geometric()
        and all(p.function_space().node_set is nodes for p in functions)
        and is_collocated(pieces(unknown)[0].function_space(), term.integral)
    )


def _node_problem(residual, unknown, nodal, others, name, inside) -> NodeProblem:
    explicit, form = None, sum((t.form() for t in others), Form([]))
    if inside is not None:
        form = without_links(form, inside)
    if others:
        for term in others:
            if term.integral.integral_type() != "cell":
                raise CannotCompile(f"this term is neither nodal nor inside the cells: {term}")
        explicit = cell_kernel(form, f"{name}e")
    problem = NodeProblem(
        unknown=unknown,
        affine=is_affine(residual, unknown),
        parts=tuple(_weighted(unknown, nodal, name)),
        explicit=explicit,
        form=form,
    )
    return problem


def _weighted(unknown: Function, terms: Sequence[Term], name: str):
    """Collect terms of equal measure and weight, then weights of equal functions."""
    groups: dict[tuple, list[Term]] = {}
    for term in terms:
        integral = term.integral
        key = (
            integral.integral_type(),
            str(integral.subdomain_id()),
            str(sorted(map(str, integral.metadata().items()))),
            term.geometry,
        )
        groups.setdefault(key, []).append(term)
    functions: dict[str, tuple[Form, Expr, list[Term]]] = {}
    here = _Substitution(unknown)
    for group in groups.values():
        # Scaled by the first term, so that equal functions under other measures have one signature.
        expression = total([(t.number / group[0].number) * t.rest for t in group])
        form = here.form(expression)
        functions.setdefault(form.signature(), (form, expression, []))[2].append(group[0])
    for number, (form, expression, measured) in enumerate(functions.values()):
        jacobian = simplify(derivative(form, here.unknown))
        yield Weighted(
            weight=nodal_weight(unknown, measured),
            expression=here.of_functions(expression),
            residual=here.kernel(form, f"{name}f{number}"),
            jacobian=None if is_zero(jacobian) else here.kernel(jacobian, f"{name}g{number}"),
        )


class _Substitution:
    """Maps functions of a space's nodes to DG0 functions on a mesh of one cell, which stands for one node."""

    def __init__(self, unknown: Function) -> None:
        self._space = pieces(unknown)[0].function_space()
        self._shape = unknown.ufl_shape
        self._originals: dict[Function, Function] = {}
        self._stand_ins: dict[Function, Function] = {}
        self._coordinate: Function | None = None
        self.unknown = self._stand_in(unknown)

    def _stand_in(self, function: Function) -> Function:
        if function not in self._stand_ins:
            there = Function(one_node_space(function.ufl_shape))
            self._stand_ins[function], self._originals[there] = there, function
        return self._stand_ins[function]

    def form(self, rest) -> Form:
        test = TestFunction(one_node_space(self._shape))
        mapping = {f: self._stand_in(f) for f in extract_coefficients(rest)}
        mapping |= dict.fromkeys(ufl.algorithms.extract_arguments(rest), test)
        x = SpatialCoordinate(self._space.mesh())
        if x in set(ufl.corealg.traversal.unique_pre_traversal(rest)):
            mapping[x] = self._stand_in(self._coordinates())
        return simplify(put(rest, mapping) * dx(degree=0, domain=one_node_mesh()))

    def of_functions(self, expression: Expr) -> Expr:
        """The expression with a function in place of the spatial coordinate."""
        x = SpatialCoordinate(self._space.mesh())
        found = x in set(ufl.corealg.traversal.unique_pre_traversal(expression))
        return put(expression, {x: self._coordinates()}) if found else expression

    def kernel(self, form: Form, name: str) -> Kernel:
        kernel = cell_kernel(form, name)
        return replace(kernel, coefficients=tuple(self._originals[c] for c in kernel.coefficients))

    def _coordinates(self) -> Function:
        if self._coordinate is None:
            mesh, element = self._space.mesh(), scalar_space(self._space).ufl_element()
            space = VectorFunctionSpace(mesh, element, dim=mesh.geometric_dimension)
            self._coordinate = sampled("x", SpatialCoordinate(mesh), space, private=True)
        return self._coordinate


def nodal_weight(unknown: Function, terms: Sequence[Term]) -> Function:
    """Σ ∫ weight φ_i over the measures of the terms, as a nodal field, ghosts included."""
    space = scalar_space(pieces(unknown)[0].function_space())
    test = TestFunction(space)
    form = Form([t.integral.reconstruct(integrand=t.number * t.geometry * test) for t in terms])
    weight, assembler = Function(space, name="weight"), get_assembler(form)

    def make() -> None:
        with assembler.assemble().dat.vec_ro as source, weight.dat.vec_wo as target:
            source.copy(target)
        np.asarray(weight.dat.data_ro_with_halos)  # fetches the ghosts

    Derived([weight], [form], make, private=True)
    return weight
