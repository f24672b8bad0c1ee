"""UFL expressions as scalar operations, with their terminals at points of cells of chains."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import ufl
from firedrake import Constant, Function
from ufl import classes as c
from ufl.core.multiindex import FixedIndex

from fdgeom.compile.layout import Layout, Part, basis_at, parts_of
from fdgeom.compile.program import ScalarProgram
from fdgeom.errors import CannotCompile
from fdgeom.forms import is_real
from fdgeom.operations import parts

#: Operations of scalar operands, and their names in programs.
_OPERATIONS = {
    c.Sum: "+", c.Product: "*", c.Division: "/", c.Power: "pow", c.Atan2: "atan2",
    c.Conditional: "select", c.LT: "<", c.LE: "<=", c.GT: ">", c.GE: ">=", c.EQ: "==", c.NE: "!=",
    c.AndCondition: "&&", c.OrCondition: "||", c.NotCondition: "!", c.Sqrt: "sqrt", c.Exp: "exp",
    c.Ln: "log", c.Cos: "cos", c.Sin: "sin", c.Tan: "tan", c.Cosh: "cosh", c.Sinh: "sinh",
    c.Tanh: "tanh", c.Acos: "acos", c.Asin: "asin", c.Atan: "atan", c.Erf: "erf", c.Abs: "fabs",
}  # fmt: skip
_NO_VALUES = (c.MultiIndex, c.Label)
_SAME = (c.Variable, c.Conj, c.Real)


class Scalars:
    """Converts expressions into nodes of a program: arrays with their shape, then an axis per free index."""

    # terminal(expression, derivatives) returns the components of a terminal, or of its derivative along
    # a chain of this order; it raises CannotCompile.
    def __init__(
        self, program: ScalarProgram, terminal: Callable[[ufl.core.expr.Expr, int], Sequence[int]]
    ):
        self._program, self._terminal = program, terminal
        self._found: dict = {}
        self._add = np.frompyfunc(program.add, 2, 1)

    def scalar(self, expression) -> int:
        """The node of a scalar expression."""
        return self(expression)[()]

    def __call__(self, expression) -> np.ndarray:
        # Deep expressions exceed Python's recursion limit.
        stack = [expression]
        while stack:
            e = stack[-1]
            if e in self._found:
                stack.pop()
                continue
            missing = [] if self._is_leaf(e) else [
                o for o in e.ufl_operands
                if not isinstance(o, _NO_VALUES) and o not in self._found
            ]  # fmt: skip
            if missing:
                stack.extend(missing)
                continue
            self._found[e] = np.asarray(self._evaluate(e), dtype=object)
            stack.pop()
        return self._found[expression]

    @staticmethod
    def _is_leaf(e) -> bool:
        return not e.ufl_operands or isinstance(e, c.Grad)

    def _evaluate(self, e):
        g = self._program
        if isinstance(e, c.Zero):
            return np.full(e.ufl_shape + e.ufl_index_dimensions, g.zero, dtype=object)
        if isinstance(e, c.ScalarValue):
            return g.const(float(e))
        if isinstance(e, (c.Identity, c.PermutationSymbol)):
            entries = [g.const(float(e[index])) for index in np.ndindex(e.ufl_shape)]
            return np.array(entries, dtype=object).reshape(e.ufl_shape)
        depth = 0
        while isinstance(e, c.Grad):
            (e,), depth = e.ufl_operands, depth + 1
        if depth or not e.ufl_operands:
            shape = e.ufl_shape + depth * (1,)
            return np.array(self._terminal(e, depth), dtype=object).reshape(shape)
        values = [self._found.get(o) for o in e.ufl_operands]
        return self._operation(e, values)

    def _operation(self, e, values):
        if type(e) in _OPERATIONS:
            made = partial(self._program.made, _OPERATIONS[type(e)])
            return np.frompyfunc(made, len(values), 1)(*self._aligned(e, values))
        if isinstance(e, (c.MaxValue, c.MinValue)):
            is_first = (ufl.gt if isinstance(e, c.MaxValue) else ufl.lt)(*e.ufl_operands)
            return self(ufl.conditional(is_first, *e.ufl_operands))
        if isinstance(e, _SAME):
            return values[0]
        if isinstance(e, c.Indexed):
            return self._indexed(e, values[0])
        if isinstance(e, c.IndexSum):
            return self._index_sum(e, values[0])
        if isinstance(e, c.ComponentTensor):
            return self._component_tensor(e, values[0])
        if isinstance(e, c.ListTensor):
            return np.stack(values)
        raise CannotCompile(f"the operation {type(e).__name__} on a chain")

    @staticmethod
    def _aligned(e, values):
        """The operands, each with all axes of the result and one axis for each of its free indices."""
        free, rank = getattr(e, "ufl_free_indices", ()), len(e.ufl_shape)
        for operand, value in zip(e.ufl_operands, values, strict=True):
            mine = getattr(operand, "ufl_free_indices", ())
            own = value.ndim - len(mine)
            shape = list(value.shape[:own]) or [1] * rank
            shape += [1] * len(free)
            for k, index in enumerate(mine):
                shape[rank + free.index(index)] = value.shape[own + k]
            yield np.reshape(value, shape)

    @staticmethod
    def _indexed(e, value):
        tensor, multiindex = e.ufl_operands
        rank = len(tensor.ufl_shape)
        labels = [None] * rank + list(tensor.ufl_free_indices)
        where: list = [slice(None)] * value.ndim
        for axis, index in enumerate(multiindex.indices()):
            if isinstance(index, FixedIndex):
                where[axis] = int(index)
            else:
                labels[axis] = index.count()
        value = value[tuple(where)]
        labels = [x for x, w in zip(labels, where, strict=True) if isinstance(w, slice)]
        for label in set(labels):
            while labels.count(label) > 1:
                a = labels.index(label)
                b = labels.index(label, a + 1)
                value = np.diagonal(value, axis1=a, axis2=b)
                labels = [x for k, x in enumerate(labels) if k not in (a, b)] + [label]
        return np.transpose(value, [labels.index(x) for x in e.ufl_free_indices])

    def _index_sum(self, e, value):
        summand, index = e.ufl_operands
        axis = len(summand.ufl_shape) + summand.ufl_free_indices.index(index[0].count())
        return self._add.reduce(value, axis=axis)

    @staticmethod
    def _component_tensor(e, value):
        inner, multiindex = e.ufl_operands
        free = list(inner.ufl_free_indices)
        taken = [i.count() for i in multiindex.indices()]
        rest = [x for x in free if x not in taken]
        return np.transpose(value, [free.index(x) for x in (*taken, *rest)])


class Point:
    """UFL terminals at a point of a cell of a chain."""

    def __init__(
        self, program: ScalarProgram, layout: Layout, x: float, length: int, facet: int | None,
        of_links: bool = False,
    ) -> None:  # fmt: skip
        self._program, self._layout, self._x, self._facet = program, layout, x, facet
        self._length, self._of_links = length, of_links

    def __call__(self, e, derivatives: int) -> list[int]:
        p = self._program
        if isinstance(e, c.SpatialCoordinate):
            self._layout.check_mesh_of(e)
            e = self._layout.mesh.coordinates
        if isinstance(e, Constant) or (isinstance(e, Function) and is_real(e)):
            values = constant_values(p, e)
            return [p.zero] * len(values) if derivatives else values
        if isinstance(e, Function):
            return [
                self._value(own, k, derivatives)
                for own in map(parts_of, parts(e))
                for k in range(own[0].size)
            ]
        if isinstance(e, c.CellVolume | c.Circumradius) and not derivatives:
            scale = 1.0 if isinstance(e, c.CellVolume) else 0.5
            return [p.mul(p.const(scale), self._length)]
        if isinstance(e, c.FacetNormal) and self._facet is not None and not derivatives:
            return [p.const(2.0 * self._facet - 1.0)]
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
