"""`ScalarProgram`: scalar operations of one place, each computed once."""

import math
import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress

#: Functions of one argument, by their names in C++.
FUNCTIONS = {
    "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos, "tan": math.tan, "exp": math.exp,
    "log": math.log, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "erf": math.erf, "fabs": abs,
}  # fmt: skip
_COMPARED = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne, "&&": lambda a, b: a and b, "||": lambda a, b: a or b,
}  # fmt: skip
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=", "&&", "||", "!")


class ScalarProgram:
    """Scalar operations, numbered so that every operand comes before its use."""

    def __init__(self) -> None:
        #: (operation, operands...): ("const", number), ("in", key), ("+", a, b), ("-", a, b),
        #: ("*", a, b), ("inv", a), ("neg", a), ("pow", a, b), ("atan2", a, b), (function, a),
        #: ("select", c, a, b) and comparisons.
        self.ops: list[tuple] = []
        self._operands: list[Sequence[int]] = []
        self._known: dict[tuple, int] = {}
        self._values: dict[int, float] = {}
        # Linear combinations of at most two inputs have a normal form, and x (1/x) cancels: so the end
        # values f ∓ (h/2) f' of a field that is linear in a cell become the nodal values.
        self._linear: dict[int, dict[int, float]] = {}
        self.zero, self.one = self.const(0.0), self.const(1.0)

    def _make(self, *op) -> int:
        found = self._known.get(op)
        if found is None:
            found = self._known[op] = len(self.ops)
            self.ops.append(op)
            self._operands.append(() if op[0] in ("const", "in") else op[1:])
        return found

    def find(self, op: tuple) -> int | None:
        """The node of an operation; None if the program does not contain it."""
        return self._known.get(op)

    # --- leaves ------------------------------------------------------------------------------------
    def const(self, value: float) -> int:
        """A number."""
        value = float(value) + 0.0
        made = self._make("const", value)
        self._values[made] = value
        return made

    def input(self, key) -> int:
        """An input."""
        made = self._make("in", key)
        self._linear.setdefault(made, {made: 1.0})
        return made

    def value(self, node: int) -> float | None:
        """The value of a node that is a number; None for other nodes."""
        return self._values.get(node)

    def _combination(self, terms: dict[int, float]) -> int:
        """Σ c·x of one or two inputs."""
        terms = {x: c for x, c in sorted(terms.items()) if c != 0.0}
        if not terms:
            return self.zero
        made = None
        for x, c in terms.items():
            if made is None:
                made = x if c == 1.0 else self._make("*", self.const(c), x)
            elif abs(c) == 1.0:
                made = self._make("+" if c > 0 else "-", made, x)
            else:
                made = self._make("+", made, self._make("*", self.const(c), x))
        self._linear.setdefault(made, terms)
        return made

    def combination(self, pairs: Iterable[tuple[float, int]]) -> int:
        """Σ c·x of inputs, in normal form if there are at most two."""
        terms: dict[int, float] = {}
        for c, x in pairs:
            terms[x] = terms.get(x, 0.0) + c
        return self._combination(terms)

    def _joined(self, a: int, b: int, sign: float) -> dict[int, float] | None:
        left, right = self._linear.get(a), self._linear.get(b)
        if left is None or right is None or len(left.keys() | right.keys()) > 2:
            return None
        return {x: left.get(x, 0.0) + sign * right.get(x, 0.0) for x in (*left, *right)}

    # --- operations --------------------------------------------------------------------------------
    def add(self, a: int, b: int) -> int:
        """a + b."""
        x, y = self._values.get(a), self._values.get(b)
        if x is not None and y is not None:
            return self.const(x + y)
        if x == 0.0:
            return b
        if y == 0.0:
            return a
        terms = self._joined(a, b, 1.0)
        if terms is not None:
            return self._combination(terms)
        if self.ops[b][0] == "neg":
            return self.sub(a, self.ops[b][1])
        if self.ops[a][0] == "neg":
            return self.sub(b, self.ops[a][1])
        if a == b:
            return self.mul(self.const(2.0), a)
        return self._make("+", min(a, b), max(a, b))

    def sub(self, a: int, b: int) -> int:
        """a - b."""
        x, y = self._values.get(a), self._values.get(b)
        if x is not None and y is not None:
            return self.const(x - y)
        if a == b:
            return self.zero
        if x == 0.0:
            return self.neg(b)
        if y == 0.0:
            return a
        terms = self._joined(a, b, -1.0)
        if terms is not None:
            return self._combination(terms)
        if self.ops[b][0] == "neg":
            return self.add(a, self.ops[b][1])
        return self._make("-", a, b)

    def neg(self, a: int) -> int:
        """-a."""
        x = self.value(a)
        if x is not None:
            return self.const(-x)
        op = self.ops[a]
        if op[0] == "neg":
            return op[1]
        if op[0] == "-":
            return self.sub(op[2], op[1])
        if op[0] == "*" and self.value(op[1]) is not None:
            return self.mul(self.const(-self.value(op[1])), op[2])
        return self._make("neg", a)

    def mul(self, a: int, b: int) -> int:
        """a b."""
        x, y = self._values.get(a), self._values.get(b)
        if x is not None and y is not None:
            return self.const(x * y)
        if y is not None:
            a, b, x, y = b, a, y, x
        if x is not None:
            return self._scaled(x, b)
        for one, other in ((a, b), (b, a)):
            if self.ops[one][0] == "neg":
                return self.neg(self.mul(self.ops[one][1], other))
        for one, other in ((a, b), (b, a)):
            op = self.ops[one]
            if op[0] == "*" and self.value(op[1]) is not None:
                return self._scaled(self.value(op[1]), self.mul(op[2], other))
        cancelled = self._cancelled(a, b)
        if cancelled is not None:
            return cancelled
        return self._make("*", min(a, b), max(a, b))

    def chain(self, a: int, b: int) -> int:
        """a b of slopes: zero where a condition makes one of them zero, though the other is no number."""
        for one, other in ((a, b), (b, a)):
            op = self.ops[one]
            if op[0] == "neg":
                return self.neg(self.chain(op[1], other))
            if op[0] == "*" and self.value(op[1]) is not None:
                return self._scaled(self.value(op[1]), self.chain(op[2], other))
            if op[0] == "select" and self.zero in op[2:]:
                cases = (x if x == self.zero else self.chain(x, other) for x in op[2:])
                return self.select(op[1], *cases)
        return self.mul(a, b)

    def _scaled(self, x: float, b: int) -> int:
        if (y := self.value(b)) is not None:
            return self.const(x * y)
        if x == 0.0:
            return self.zero
        if x == 1.0:
            return b
        if x == -1.0 and len(self._linear.get(b, ())) != 2:
            return self.neg(b)
        terms = self._linear.get(b)
        if terms is not None:
            return self._combination({k: x * c for k, c in terms.items()})
        op = self.ops[b]
        if op[0] == "*" and self.value(op[1]) is not None:
            return self._scaled(x * self.value(op[1]), op[2])
        if op[0] == "neg":
            return self._scaled(-x, op[1])
        return self._make("*", self.const(x), b)

    def _cancelled(self, a: int, b: int) -> int | None:
        """a b, if one of them contains the inverse of a factor of the other; else None."""
        left, right = self._factors(a), self._factors(b)
        for x in left:
            for y in right:
                if ("inv", x) == self.ops[y] or ("inv", y) == self.ops[x]:
                    left.remove(x)
                    right.remove(y)
                    made = self.one
                    for factor in (*left, *right):
                        made = self.mul(made, factor)
                    return made
        return None

    def _factors(self, a: int) -> list[int]:
        op = self.ops[a]
        return [op[1], op[2]] if op[0] == "*" else [a]

    def inv(self, a: int) -> int:
        """1/a."""
        x = self.value(a)
        if x:
            return self.const(1.0 / x)
        op = self.ops[a]
        if op[0] == "inv":
            return op[1]
        if op[0] == "neg":
            return self.neg(self.inv(op[1]))
        if op[0] == "*" and self.value(op[1]) is not None:
            return self._scaled(1.0 / self.value(op[1]), self.inv(op[2]))
        return self._make("inv", a)

    def div(self, a: int, b: int) -> int:
        """a / b."""
        return self.mul(a, self.inv(b))

    def power(self, a: int, b: int) -> int:
        """aᵇ."""
        x, y = self._values.get(a), self._values.get(b)
        if x is not None and y is not None:
            return self.const(x**y)
        if y is not None and y == int(y) and 0 < abs(y) <= 8:
            made, square, n = self.one, a, int(abs(y))
            while n:
                if n & 1:
                    made = self.mul(made, square)
                n >>= 1
                square = self.mul(square, square) if n else square
            return made if y > 0 else self.inv(made)
        if y == 0.5:
            return self.function("sqrt", a)
        if y == -0.5:
            return self.inv(self.function("sqrt", a))
        return self._make("pow", a, b)

    def function(self, name: str, a: int) -> int:
        """One of `FUNCTIONS`; it stays a function where its value is not finite."""
        x = self.value(a)
        if x is not None:
            with suppress(ValueError, OverflowError):
                return self.const(FUNCTIONS[name](x))
        return self._make(name, a)

    def atan2(self, a: int, b: int) -> int:
        """The angle of the point (b, a)."""
        x, y = self._values.get(a), self._values.get(b)
        if x is not None and y is not None:
            return self.const(math.atan2(x, y))
        return self._make("atan2", a, b)

    def compare(self, sign: str, a: int, b: int) -> int:
        """A comparison, or "&&", "||" of two; for use in :meth:`select`."""
        x, y = self._values.get(a), self._values.get(b)
        if x is not None and y is not None:
            return self.const(float(_COMPARED[sign](x, y)))
        return self._make(sign, a, b)

    def negated(self, condition: int) -> int:
        """The negation of a condition."""
        x = self.value(condition)
        return self._make("!", condition) if x is None else self.const(float(not x))

    def select(self, condition: int, a: int, b: int) -> int:
        """a if the condition holds, else b."""
        x = self.value(condition)
        if x is not None:
            return a if x else b
        return a if a == b else self._make("select", condition, a, b)

    def replaced(self, outputs: Sequence[int], nodes: Mapping[int, int]) -> list[int]:
        """The outputs with other nodes in the place of some."""
        made = dict(nodes)
        methods = {
            "+": self.add, "-": self.sub, "*": self.mul, "neg": self.neg, "inv": self.inv,
            "pow": self.power, "atan2": self.atan2, "select": self.select, "!": self.negated,
        }  # fmt: skip
        for node in self.needed(outputs):
            op = self.ops[node]
            if node in made:
                continue
            operands = [made[a] for a in self.operands(node)]
            if operands == list(self.operands(node)):
                made[node] = node
            elif op[0] in methods:
                made[node] = methods[op[0]](*operands)
            elif op[0] in COMPARISONS:
                made[node] = self.compare(op[0], *operands)
            else:
                made[node] = self.function(op[0], *operands)
        return [made[x] for x in outputs]

    # --- structure ---------------------------------------------------------------------------------------
    def operands(self, node: int) -> Sequence[int]:
        """The operands of a node."""
        return self._operands[node]

    def needed(self, outputs: Iterable[int]) -> list[int]:
        """The nodes that the outputs depend on, in order."""
        seen: set[int] = set()
        stack = list(outputs)
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack.extend(self._operands[node])
        return sorted(seen)

    def numbers_of(self, nodes: Iterable[int]) -> set[int]:
        """The nodes, with the numbers that they compare in place of comparisons, which cannot be stored."""
        found, stack = set(), list(nodes)
        while stack:
            node = stack.pop()
            if self.ops[node][0] in COMPARISONS:
                stack.extend(self.operands(node))
            else:
                found.add(node)
        return found

    def depending(self, inputs: Iterable[int]) -> set[int]:
        """The nodes that depend on some of the inputs."""
        found = set(inputs)
        for node, operands in enumerate(self._operands):
            if not found.isdisjoint(operands):
                found.add(node)
        return found

    def asks(self, outputs: Iterable[int], changing: Set[int]) -> bool:
        """Whether a condition on values in ``changing`` decides about outputs, unseen by derivatives."""
        ops = (self.ops[x] for x in self.needed(outputs))
        return any(op[0] == "select" and op[1] in changing for op in ops)

    def partials(self, node: int) -> list[tuple[int, int]]:
        """The partial derivatives of an operation, as (operand, derivative)."""
        op = self.ops[node]
        kind = op[0]
        if kind in ("const", "in", *COMPARISONS):
            return []
        a = op[1]
        if kind == "+":
            return [(a, self.one), (op[2], self.one)]
        if kind == "-":
            return [(a, self.one), (op[2], self.const(-1.0))]
        if kind == "*":
            b = op[2]
            return [(a, self.mul(self.const(2.0), a))] if a == b else [(a, b), (b, a)]
        if kind == "neg":
            return [(a, self.const(-1.0))]
        if kind == "inv":
            return [(a, self.neg(self.mul(node, node)))]
        if kind == "select":
            one, zero = self.one, self.zero
            return [
                (op[2], self.select(op[1], one, zero)),
                (op[3], self.select(op[1], zero, one)),
            ]
        if kind == "pow":
            return self._partials_of_power(node, a, op[2])
        if kind == "atan2":
            b = op[2]
            scale = self.inv(self.add(self.mul(a, a), self.mul(b, b)))
            return [(a, self.mul(b, scale)), (b, self.neg(self.mul(a, scale)))]
        return [(a, self._slope(kind, node, a))]

    def _partials_of_power(self, node: int, a: int, b: int) -> list[tuple[int, int]]:
        found = [(a, self.mul(b, self.power(a, self.sub(b, self.one))))]
        if self.value(b) is None:
            found.append((b, self.mul(node, self.function("log", a))))
        return found

    def _slope(self, kind: str, node: int, a: int) -> int:
        square = self.mul(a, a)
        if kind == "sqrt":
            return self.mul(self.const(0.5), self.inv(node))
        if kind == "sin":
            return self.function("cos", a)
        if kind == "cos":
            return self.neg(self.function("sin", a))
        if kind == "tan":
            return self.add(self.one, self.mul(node, node))
        if kind == "exp":
            return node
        if kind == "log":
            return self.inv(a)
        if kind in ("asin", "acos"):
            slope = self.inv(self.function("sqrt", self.sub(self.one, square)))
            return slope if kind == "asin" else self.neg(slope)
        if kind == "atan":
            return self.inv(self.add(self.one, square))
        if kind in ("sinh", "cosh"):
            return self.function("cosh" if kind == "sinh" else "sinh", a)
        if kind == "tanh":
            return self.sub(self.one, self.mul(node, node))
        if kind == "erf":
            bell = self.function("exp", self.neg(square))
            return self.mul(self.const(2 / math.sqrt(math.pi)), bell)
        if kind == "fabs":
            positive, negative = (self.compare(sign, a, self.zero) for sign in "><")
            return self.select(
                positive, self.one, self.select(negative, self.const(-1.0), self.zero)
            )
        raise ValueError(f"no derivative of {kind}")
