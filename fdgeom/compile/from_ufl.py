"""UFL expressions as scalar operations."""

from collections.abc import Callable
from functools import partial

import numpy as np
import ufl
from ufl import classes as c
from ufl.core.multiindex import FixedIndex

from fdgeom.compile.program import ScalarProgram
from fdgeom.errors import CannotCompile

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

    # terminal(expression, derivatives) returns the array of a terminal, or of its gradient with so many
    # axes; it raises CannotCompile.
    def __init__(
        self, program: ScalarProgram, terminal: Callable[[ufl.core.expr.Expr, int], np.ndarray]
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
        if isinstance(e, c.Grad):
            depth = 0
            while isinstance(e, c.Grad):
                (e,), depth = e.ufl_operands, depth + 1
            return self._terminal(e, depth)
        if not e.ufl_operands:
            return self._terminal(e, 0)
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
