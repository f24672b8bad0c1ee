"""Terms of forms on interval meshes: their quadrature, and what depends on the values of one node alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import FIAT
import numpy as np
import ufl
from finat.quadrature import make_quadrature
from firedrake import Form, Function, FunctionSpace, TestFunction, assemble
from firedrake.assemble import get_assembler
from ufl import classes as c
from ufl.algorithms import extract_coefficients, extract_type
from ufl.algorithms.apply_integral_scaling import compute_integrand_scaling_factor
from ufl.algorithms.estimate_degrees import estimate_total_polynomial_degree
from ufl.checks import is_cellwise_constant
from ufl.corealg.traversal import unique_pre_traversal

from fdgeom.errors import CannotCompile
from fdgeom.forms import simplify
from fdgeom.operations.dependent import Dependent, assembled

#: Round-off of the tabulation of functions at nodes.
ROUND_OFF = 1e-14
#: More points would make more code than the cache holds.
_POINTS = 6
# A product that would expand into more terms stays one term.
_MANY = 256
_NOT_POLYNOMIAL = (
    c.MathFunction, c.BesselFunction, c.Atan2, c.Abs, c.Conditional, c.MinValue, c.MaxValue,
)  # fmt: skip


@dataclass(frozen=True)
class Term:
    """One term of a form: ∫ number · geometry · rest over the measure of an integral."""

    integral: c.Integral
    number: float
    #: The product of the factors that are geometric quantities, except the coordinate.
    geometry: c.Expr
    rest: c.Expr

    def form(self) -> Form:
        """The term as a form of its own."""
        integrand = self.number * self.geometry * self.rest
        return Form([self.integral.reconstruct(integrand=integrand)])

    @property
    def measure(self) -> tuple:
        """The measure and the geometry, for comparisons."""
        i = self.integral
        return i.integral_type(), str(i.subdomain_id()), _text(i.metadata()), self.geometry

    def is_pointwise(self) -> bool:
        """Whether it is a function of values at a point alone, apart from its geometry."""
        found = extract_type(self.rest, c.GeometricQuantity)
        return all(isinstance(e, c.SpatialCoordinate) for e in found) and not any(
            isinstance(e, (c.Grad, c.ReferenceGrad)) for e in unique_pre_traversal(self.rest)
        )

    def __str__(self) -> str:
        kind = self.integral.integral_type()
        where = {"cell": "the cells", "exterior_facet": "the boundary", "interior_facet": "facets"}
        names = sorted({f.name() for f in extract_coefficients(self.rest)}) or ["numbers"]
        return f"the integral over {where.get(kind, kind)} of {', '.join(names)}"


def terms_of(form: Form) -> list[Term]:
    """All terms of a form."""
    return [
        Term(integral, *_sorted(factors))
        for integral in _integrals(form)
        for factors in _summands(integral.integrand())
    ]


def whole_integrals(form: Form) -> list[Term]:
    """The integrals of a form, each as one term."""
    one = ufl.as_ufl(1.0)
    return [Term(i, 1.0, one, i.integrand()) for i in _integrals(form)]


def _integrals(form: Form) -> list[c.Integral]:
    """The integrals of a form, with Firedrake's quadrature where the integrand is no polynomial."""
    # Firedrake takes one degree for the sum of the integrals over a measure. Polynomials keep their own,
    # which costs fewer points.
    integrals = simplify(form).integrals()
    degrees: dict[tuple, int] = {}
    for i in integrals:
        if _is_estimated(i):
            degrees[_sum_key(i)] = max(degrees.get(_sum_key(i), 0), degree_of(i))
    return [_with_degree(i, degrees.get(_sum_key(i), 0)) for i in integrals]


def _with_degree(i: c.Integral, degree: int) -> c.Integral:
    """An integral with a higher degree, if the own one is estimated and not exact."""
    if not _is_estimated(i) or degree == degree_of(i) or _is_polynomial(i):
        return i
    return i.reconstruct(metadata={**i.metadata(), "quadrature_degree": degree})


def _sum_key(i: c.Integral) -> tuple:
    """The key of the integrals that Firedrake adds up."""
    return i.ufl_domain(), i.integral_type(), str(i.subdomain_id()), _text(i.metadata())


def _text(metadata: dict) -> str:
    return str(sorted(map(str, metadata.items())))


def _is_estimated(integral: c.Integral) -> bool:
    """Whether the degree of the quadrature is estimated, not given."""
    return integral.metadata().get("quadrature_degree", -1) in ("auto", -1, None)


def _is_polynomial(integral: c.Integral) -> bool:
    """Whether an integrand is a polynomial in each cell, judged by its operators."""
    if not integral.ufl_domain().is_piecewise_linear_simplex_domain():
        return False
    for e in unique_pre_traversal(integral.integrand()):
        if isinstance(e, c.Division):
            varies = e.ufl_operands[1:]
        elif isinstance(e, c.Power):
            varies = () if _is_whole(e.ufl_operands[1]) else e.ufl_operands
        else:
            varies = e.ufl_operands if isinstance(e, _NOT_POLYNOMIAL) else ()
        if not all(map(is_cellwise_constant, varies)):
            return False
    return True


def _is_whole(exponent: c.Expr) -> bool:
    return isinstance(exponent, c.RealValue) and float(exponent) in range(100)


def _summands(e) -> Iterator[tuple]:
    """The summands of an integrand, each as its factors; products of sums are expanded."""
    if isinstance(e, c.Sum):
        for operand in e.ufl_operands:
            yield from _summands(operand)
    elif isinstance(e, c.Product):
        left, right = (list(_summands(operand)) for operand in e.ufl_operands)
        if len(left) * len(right) > _MANY:
            yield (e,)
            return
        for one in left:
            for other in right:
                yield one + other
    elif isinstance(e, c.Division):
        a, b = e.ufl_operands
        for left in _summands(a):
            yield (*left, 1 / b)
    else:
        yield (e,)


def _sorted(factors: Sequence) -> tuple:
    """The product of the numbers among some factors, of the geometric quantities, and of the rest."""
    number, geometry, rest = 1.0, ufl.as_ufl(1.0), ufl.as_ufl(1.0)
    for factor in factors:
        if isinstance(factor, c.ScalarValue):
            number *= float(factor)
        elif _is_geometry(factor):
            geometry = geometry * factor
        else:
            rest = rest * factor
    return number, geometry, rest


def _is_geometry(e) -> bool:
    """Whether an expression contains only numbers and geometric quantities other than the coordinate."""
    terminals = [x for x in unique_pre_traversal(e) if not x.ufl_operands]
    return all(
        isinstance(x, (c.ScalarValue, c.GeometricQuantity))
        and not isinstance(x, c.SpatialCoordinate)
        for x in terminals
    )


def degree_of(integral: c.Integral) -> int | tuple[int, ...]:
    """The degree of the quadrature of an integral."""
    if not _is_estimated(integral):
        return integral.metadata()["quadrature_degree"]
    degree = estimate_total_polynomial_degree(integral.integrand())
    degree = max(degree) if isinstance(degree, tuple) else degree
    # Firedrake adds the degree of the measure to estimates alone.
    return degree + compute_integrand_scaling_factor(integral)[1]


def with_integrand(integral: c.Integral, integrand: c.Expr) -> Form:
    """Another integrand under the quadrature of an integral."""
    metadata = {**integral.metadata(), "quadrature_degree": degree_of(integral)}
    return Form([integral.reconstruct(integrand=integrand, metadata=metadata)])


def has_points_at_nodes(integral: c.Integral, space: FunctionSpace) -> bool:
    """Whether the points of an integral's quadrature are the nodes of a scalar space."""
    # Only at nodes is the square of a function the interpolant of its squares. That the mass matrix
    # is diagonal says less: that of Legendre's points is, under any exact quadrature.
    u, squares = Function(space), Function(space)
    u.dat.data_wo[:] = np.random.default_rng(0).uniform(1.0, 2.0, u.dat.data_ro.shape)
    squares.dat.data_wo[:] = u.dat.data_ro**2
    gap = assemble(with_integrand(integral, (u * u - squares) ** 2))
    return gap <= ROUND_OFF**2 * assemble(with_integrand(integral, squares**2))


def rule_of(integral: c.Integral) -> tuple[list[float], list[float]]:
    """Points in (0, 1) and weights of the quadrature of an integral over cells."""
    metadata, degree = integral.metadata(), degree_of(integral)
    scheme = metadata.get("quadrature_rule", metadata.get("scheme", "default"))
    if not isinstance(scheme, str):
        raise CannotCompile("a quadrature rule that is no name")
    scheme = "default" if scheme == "auto" else scheme
    rule = make_quadrature(FIAT.ufc_simplex(1), degree, scheme=scheme)
    points, weights = np.asarray(rule.point_set.points)[:, 0], np.asarray(rule.weights)
    if len(points) > _POINTS:
        raise CannotCompile(f"a quadrature of {len(points)} points a cell, more than {_POINTS}")
    # Rounded, so that points at nodes and in the middle are exact.
    return [float(np.round(2 * x, 14) / 2) for x in points], [float(w) for w in weights]


def nodal_weight(space, term: Term) -> Function:
    """Σ ∫ number · geometry · φ_i over the measure of a term, as a function of the nodes of a space."""
    test = TestFunction(space)
    form = with_integrand(term.integral, term.number * term.geometry * test)
    return assembled(Function(space, name="weight"), form, get_assembler(form).assemble)


def cell_lengths(mesh) -> Function:
    """The lengths of the cells, as a DG0 function."""
    lengths = Function(FunctionSpace(mesh, "DG", 0), name="length")
    # Firedrake fetches the values of ghosts.
    cells = lengths.cell_node_map().values[:, 0]
    ends = mesh.coordinates.cell_node_map().values

    def make() -> None:
        x = mesh.coordinates.dat.data_ro_with_halos.reshape(-1)[ends]
        lengths.dat.data_wo[cells] = np.abs(x[:, 1] - x[:, 0])

    Dependent([lengths], [ufl.SpatialCoordinate(mesh)], make, private=True)
    return lengths
