"""The equations of one cell, from a residual on an interval mesh."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import FIAT
import numpy as np
from finat.quadrature import make_quadrature
from firedrake import Constant, Form, Function, TestFunction, assemble, ds
from ufl import classes as c
from ufl.algorithms import extract_coefficients
from ufl.algorithms.estimate_degrees import estimate_total_polynomial_degree

from fdgeom.errors import CannotCompile
from fdgeom.forms import scalar_space, simplify
from fdgeom.solvers.chain.graph import Graph
from fdgeom.solvers.chain.jacobian import operations
from fdgeom.solvers.chain.parts import Part, parts_of, values_at
from fdgeom.solvers.chain.ranks import largest_of_all
from fdgeom.solvers.chain.scalars import Scalars
from fdgeom.solvers.chain.slopes import slopes_of
from fdgeom.solvers.compiled.nodes import pieces
from fdgeom.solvers.derived import derived_of, is_private

#: More points would make more code than the cache holds.
_POINTS = 6
#: Equations of more operations take too long to compile.
_OPERATIONS = 8000
_SIDES = ("A", "B")


@dataclass(frozen=True)
class Component:
    """A scalar component of the unknown."""

    part: Part
    #: Its number in the part, and among all components of the unknown.
    component: int
    number: int

    @property
    def function(self) -> Function:
        """The function of the part."""
        return self.part.function

    @property
    def block(self) -> int:
        """Number of components of the part at one place."""
        return self.part.size


@dataclass
class CellEquations:
    """Contributions of a cell to the equations of its two blocks: a node and the cell to its right."""

    #: The graph that the numbers below refer to.
    graph: Graph
    #: Parts of the unknown: first those with values at nodes, then those with values in cells.
    parts: list[Part]
    #: The unknowns of a block; components that the equations do not contain are left out.
    components: list[Component]
    #: Graph inputs of the first block, then of the second one; the residual in the same order.
    unknowns: list[int]
    residual: list[int]
    #: Outputs whose derivatives by the unknowns form the tangent: the residual, or others.
    slopes: list[int]

    @property
    def size(self) -> int:
        """Number of unknowns in a block."""
        return len(self.components)


#: Components of functions of cells that have one value in all cells, with the value.
Fixed = Mapping[tuple[Function, int], float]


class Point:
    """UFL terminals at a point of a cell, as inputs of a graph."""

    def __init__(
        self, graph: Graph, mesh, place: float, test, facet: int | None, fixed: Fixed
    ) -> None:
        self._graph, self._mesh, self._place, self._fixed = graph, mesh, place, fixed
        self._test, self._facet = test, facet
        self.length = graph.input(("length",))

    def __call__(self, e, derivatives: int) -> np.ndarray:
        shape = e.ufl_shape + derivatives * (1,)
        if isinstance(e, c.SpatialCoordinate) and not derivatives:
            return self._field(self._mesh.coordinates, None, 0, shape)
        if isinstance(e, c.CellVolume | c.Circumradius) and not derivatives:
            scale = 1.0 if isinstance(e, c.CellVolume) else 0.5
            return _array([self._graph.mul(self._graph.const(scale), self.length)], shape)
        if isinstance(e, c.FacetNormal) and self._facet is not None and not derivatives:
            return _array([self._graph.const(2.0 * self._facet - 1.0)], shape)
        if isinstance(e, c.FacetArea) and not derivatives:
            return _array([self._graph.one], shape)
        if isinstance(e, Constant):
            if derivatives:
                return _array([self._graph.zero] * int(np.prod(shape)), shape)
            size = int(np.prod(e.ufl_shape, dtype=int))
            return _array([self._graph.input(("constant", e, k)) for k in range(size)], shape)
        if isinstance(e, c.Argument):
            return self._field(self._test, "test", derivatives, shape)
        if isinstance(e, Function):
            return self._field(e, None, derivatives, shape)
        raise CannotCompile(f"chains do not support {type(e).__name__}")

    def _field(self, function: Function, role, derivatives: int, shape) -> np.ndarray:
        values = []
        for piece in pieces(function):
            if piece.function_space().mesh().topology is not self._mesh.topology:
                raise CannotCompile(f"{function.name()} is on another mesh")
            parts = parts_of(piece)
            for k in range(parts[0].size):
                if len(parts) == 1:
                    values.append(self._value(parts[0], k, role, derivatives))
                else:
                    values.append(self._sum(parts, k, role, derivatives))
        return _array(values, shape)

    def _sum(self, parts: Sequence[Part], component: int, role, derivatives: int) -> int:
        """A function of degree 2 or more, as a combination of its nodal values."""
        g, kind, terms = self._graph, role or "value", []
        basis = values_at(parts, self._place, derivatives)
        for part, numbers in zip(parts, basis, strict=True):
            sides = _SIDES if part.nodal else "C"
            for side, number in zip(sides, numbers, strict=True):
                terms.append((number, g.input((kind, part.function, side, component))))
        made = g.combination(terms)
        for _ in range(derivatives):
            made = g.mul(made, g.inv(self.length))
        return made

    def _value(self, part: Part, component: int, role, derivatives: int) -> int:
        g, kind = self._graph, role or "value"
        if not part.nodal:
            known = 0.0 if derivatives else self._fixed.get((part.function, component))
            if known is not None:
                return g.const(known)
            return g.input((kind, part.function, "C", component))
        if derivatives > 1:
            return g.zero
        a, b = (g.input((kind, part.function, side, component)) for side in _SIDES)
        if derivatives:
            return g.mul(g.combination([(-1.0, a), (1.0, b)]), g.inv(self.length))
        return g.combination([(1.0 - self._place, a), (self._place, b)])


def _array(values, shape) -> np.ndarray:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made.reshape(shape)


def cell_equations(
    residual: Form,
    unknown: Function,
    fixed: Fixed | None = None,
    also: Sequence[Component] = (),
    tangent: Form | None = None,
) -> CellEquations:
    """The equations of a cell of F(u; w); ``CannotCompile`` names a term that a chain does not support."""
    # fixed: components of functions of cells with one value in all cells, for a mesh with several
    # types of cells. also: components that count as unknowns even if the equations lack them.
    # tangent: linear in u, replaces the derivative of F in Newton's method.
    mesh = unknown.subfunctions[0].function_space().mesh()
    parts = [part for piece in pieces(unknown) for part in parts_of(piece)]
    stand_in = Function(unknown.function_space(), name="test function")
    graph, totals = Graph(), []
    for form in [residual] if tangent is None else [residual, tangent]:
        totals.append(work_in_cell(graph, form, mesh, stand_in, fixed or {}))
    if (length := operations(graph, totals)) > _OPERATIONS:
        raise CannotCompile(f"a cell has {length} operations, more than {_OPERATIONS}")
    tests = [part for piece in pieces(stand_in) for part in parts_of(piece)]
    return _sorted(graph, totals, parts, tests, fixed is None, {c.number for c in also})


def work_in_cell(graph: Graph, form: Form, mesh, test: Function, fixed: Fixed) -> int:
    """A form with one argument in a cell, as a node of the graph; ``test`` replaces the argument."""
    total = graph.zero
    for integral in simplify(form).integrals():
        total = _add(graph, total, integral, mesh, test, fixed)
    return total


def alike_in(cells: np.ndarray, forms: Sequence[Form]) -> dict[tuple[Function, int], float]:
    """Components of internal, unchanging DG0 functions that are 0, or 1, in all of ``cells`` of all ranks."""
    found = {}
    for f in {f: None for form in forms for f in extract_coefficients(form)}:
        space = f.function_space()
        still = is_private(f) and derived_of(f) is None and len(space) == 1
        if not still or space.cell_node_map().arity != 1:
            continue
        numbers = space.cell_node_map().values[cells, 0]
        values = f.dat.data_ro_with_halos.reshape(-1, space.block_size)[numbers]
        largest = largest_of_all(space.comm, values.max(axis=0, initial=-np.inf))
        least = -largest_of_all(space.comm, (-values).max(axis=0, initial=-np.inf))
        for k in np.flatnonzero((least == largest) & np.isin(least, (0.0, 1.0))):
            found[f, int(k)] = float(least[k])
    return found


def _add(graph: Graph, total: int, integral, mesh, test, fixed: Fixed) -> int:
    kind = integral.integral_type()
    if kind == "cell":
        if integral.subdomain_id() not in ("everywhere", "otherwise"):
            raise CannotCompile(
                f"chains do not support integrals over the subdomain {integral.subdomain_id()}"
            )
        points, weights = rule_of(integral)
        for x, weight in zip(points, weights, strict=True):
            at = Point(graph, mesh, x, test, None, fixed)
            scale = graph.mul(graph.const(weight), at.length)
            total = graph.add(total, _scaled(graph, at, integral, scale))
        return total
    if kind == "exterior_facet":
        ends = _end_weights(mesh, integral.subdomain_id())
        for facet, side in enumerate(_SIDES):
            at = Point(graph, mesh, float(facet), test, facet, fixed)
            scale = graph.input(("value", ends, side, 0))
            total = graph.add(total, _scaled(graph, at, integral, scale))
        return total
    raise CannotCompile(f"chains do not support integrals over {kind.replace('_', ' ')}s")


def _scaled(graph: Graph, at: Point, integral, scale: int) -> int:
    return graph.mul(scale, Scalars(graph, at).scalar(integral.integrand()))


def rule_of(integral) -> tuple[list[float], list[float]]:
    """Points in (0, 1) and weights of the quadrature of an integral over cells."""
    metadata = integral.metadata()
    degree = metadata.get("quadrature_degree", -1)
    if degree in ("auto", -1, None):
        degree = estimate_total_polynomial_degree(integral.integrand())
        degree = max(degree) if isinstance(degree, tuple) else degree
    scheme = metadata.get("quadrature_rule", metadata.get("scheme", "default"))
    if not isinstance(scheme, str):
        raise CannotCompile("chains support only quadrature rules given by name")
    rule = make_quadrature(
        FIAT.ufc_simplex(1), degree, scheme="default" if scheme == "auto" else scheme
    )
    points, weights = np.asarray(rule.point_set.points)[:, 0], np.asarray(rule.weights)
    if len(points) > _POINTS:
        raise CannotCompile(
            f"the quadrature has {len(points)} points in a cell, more than {_POINTS}"
        )
    # Rounded, so that points at nodes and in the middle are exact.
    return [float(np.round(2 * x, 14) / 2) for x in points], [float(w) for w in weights]


def _end_weights(mesh, subdomain) -> Function:
    """A function that is 1 at the ends of the mesh that belong to a subdomain, 0 elsewhere."""
    space = scalar_space(mesh.coordinates.function_space())
    measure = ds(domain=mesh) if subdomain == "everywhere" else ds(subdomain, domain=mesh)
    made = Function(space, name="ends")
    made.dat.data_wo[...] = assemble(TestFunction(space) * measure).dat.data_ro
    return made


def _sorted(
    graph: Graph,
    totals: list[int],
    parts: list[Part],
    tests: list[Part],
    keep_all: bool,
    also: set[int],
) -> CellEquations:
    nodal = [k for k, p in enumerate(parts) if p.nodal]
    cellwise = [k for k, p in enumerate(parts) if not p.nodal]
    order = nodal + cellwise

    def inputs(role: str, which: list[Part]) -> list[int | None]:
        made: list[int | None] = []
        for side in _SIDES:
            for k in order:
                p = which[k]
                place = side if p.nodal else "C"
                for component in range(p.size):
                    # The cell value of the second block belongs to the next cell.
                    there = p.nodal or side == "A"
                    key = (role, p.function, place, component)
                    made.append(graph.input(key) if there else None)
        return made

    found = []
    for total in totals:
        virtual = inputs("test", tests)
        works = slopes_of(graph, total, [x for x in virtual if x is not None])
        found.append([graph.zero if x is None else works[x] for x in virtual])
    residual, slopes = found[0], found[-1]
    unknowns = [graph.zero if x is None else x for x in inputs("value", parts)]
    pairs = [(parts[k], c) for k in order for c in range(parts[k].size)]
    components = [Component(part, c, n) for n, (part, c) in enumerate(pairs)]
    n, known = len(components), set(graph.needed([*residual, *slopes]))

    # Links contain some components of a node, chains contain others.
    def is_used(k: int) -> bool:
        rows = k, k + n
        there = any(outputs[x] != graph.zero for outputs in (residual, slopes) for x in rows)
        return there or any(unknowns[x] in known and unknowns[x] != graph.zero for x in rows)

    used = [k for k in range(n) if keep_all or k in also or is_used(k)]
    both = [k + side * n for side in range(2) for k in used]
    return CellEquations(
        graph=graph,
        parts=[parts[k] for k in order],
        components=[components[k] for k in used],
        unknowns=[unknowns[k] for k in both],
        residual=[residual[k] for k in both],
        slopes=[slopes[k] for k in both],
    )
