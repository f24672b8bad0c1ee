"""Functionals on interval meshes as scalar programs: sums over nodes and over points of cells."""

from collections.abc import Sequence

import numpy as np
import ufl
from firedrake import Constant, Function, FunctionSpace
from ufl import classes as c

from fdgeom.compile.differentiate import gradient
from fdgeom.compile.from_ufl import Scalars
from fdgeom.compile.layout import AT_NODES, Layout, Part, basis_at, parts_of
from fdgeom.compile.program import ScalarProgram
from fdgeom.compile.terms import Term, cell_lengths, nodal_weight, rule_of
from fdgeom.errors import CannotCompile
from fdgeom.forms import is_real
from fdgeom.operations import parts

#: Scaled integrands, as nodes of a program: (scale, integrand).
Works = list[tuple[int, int]]


class Functionals:
    """Converts expressions and functionals on the places of a layout to scalar programs."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def at_places(self, program: ScalarProgram, kind: tuple) -> Scalars:
        """Conversion of expressions of the values of one place."""

        def terminal(e, derivatives: int) -> np.ndarray:
            if isinstance(e, c.SpatialCoordinate):
                self.layout.check_mesh_of(e)
                e = self.layout.coordinates_at(kind) or e
            if derivatives:
                raise CannotCompile(
                    "derivatives in space, where only values of one place are known"
                )
            if isinstance(e, Constant) or (isinstance(e, Function) and is_real(e)):
                return _array(constant_values(program, e), e)
            if isinstance(e, Function):
                found = self.of_kind(e, kind)
                if len(found) < len(parts(e)):
                    raise CannotCompile(
                        f"{e.name()} has other nodes than the functions it is used with"
                    )
                return _array([x for part in found for x in values_of(program, part)], e)
            raise CannotCompile(f"{type(e).__name__} at single places")

        return Scalars(program, terminal)

    def of_kind(self, f: Function, kind: tuple) -> list[Part]:
        """The parts of a Function at the places of a kind."""
        return [part for part in self.layout.parts_of(f) if part.kind == kind]

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


class Point:
    """UFL terminals at a point of a cell."""

    def __init__(
        self, program: ScalarProgram, layout: Layout, x: float, length: int, facet: int | None,
        of_links: bool = False,
    ) -> None:  # fmt: skip
        self._program, self._layout, self._x, self._facet = program, layout, x, facet
        self._length, self._of_links = length, of_links

    def __call__(self, e, derivatives: int) -> np.ndarray:
        p, shape = self._program, e.ufl_shape + derivatives * (1,)
        if isinstance(e, c.SpatialCoordinate):
            self._layout.check_mesh_of(e)
            e = self._layout.mesh.coordinates
        if isinstance(e, Constant) or (isinstance(e, Function) and is_real(e)):
            values = constant_values(p, e)
            return _array([p.zero] * len(values) if derivatives else values, e, shape)
        if isinstance(e, Function):
            found = [
                self._value(own, k, derivatives)
                for own in map(parts_of, parts(e))
                for k in range(own[0].size)
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
            known = self._layout.alike(part, component, of_links=self._of_links)
            value = p.const(0.0 if derivatives else known or 0.0)
            given = derivatives or known is not None
            return value if given else p.input(("value", part, "C", component))
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


def values_of(program: ScalarProgram, part: Part, side: str = "C") -> list[int]:
    return [program.input(("value", part, side, k)) for k in range(part.size)]


def constant_values(program: ScalarProgram, e) -> list[int]:
    """The values of a Constant or of a number of a Real space."""
    if isinstance(e, Function) and len(parts(e)) > 1:
        raise CannotCompile(f"{e.name()} has a number of a Real space beside other values")
    size = int(np.prod(e.ufl_shape, dtype=int))
    return [program.input(("constant", e, k)) for k in range(size)]


def _array(values: Sequence[int], e, shape: tuple | None = None) -> np.ndarray:
    return np.array(values, dtype=object).reshape(e.ufl_shape if shape is None else shape)


def slopes_of(program: ScalarProgram, works: Works, inputs: Sequence[int]) -> list[int]:
    """Σ scale ∂integrand/∂input."""
    total = [program.zero] * len(inputs)
    for scale, integrand in works:
        by = gradient(program, integrand, inputs)
        total = [
            program.add(t, program.mul(scale, by[x])) for t, x in zip(total, inputs, strict=True)
        ]
    return total
