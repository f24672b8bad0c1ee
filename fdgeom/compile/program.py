"""`ScalarProgram`: scalar operations of one place, each computed once."""

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
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

_METHODS = {
    "+": "add", "*": "mul", "/": "div", "inv": "inv", "pow": "power", "atan2": "atan2",
    "select": "select", "!": "negated",
}  # fmt: skip


class ScalarProgram:
    """Scalar operations, numbered so that every operand comes before its use."""

    def __init__(self) -> None:
        #: (operation, operands...): ("const", number), ("in", key), ("+", a, b), ("*", a, b) with a
        #: number first, ("inv", a), ("pow", a, b), ("atan2", a, b), (function, a), ("select", c, a, b)
        #: and comparisons.
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
        made = self.zero
        for x, c in terms.items():
            term = x if c == 1.0 else self._make("*", self.const(c), x)
            made = term if made == self.zero else self._make("+", made, term)
        self._linear.setdefault(made, terms)
        return made

    def combination(self, pairs: Iterable[tuple[float, int]]) -> int:
        """Σ c·x of inputs, in normal form if there are at most two."""
        terms: dict[int, float] = {}
        for c, x in pairs:
            terms[x] = terms.get(x, 0.0) + c
        return self._combination(terms)

    def _joined(self, a: int, b: int) -> dict[int, float] | None:
        left, right = self._linear.get(a), self._linear.get(b)
        if left is None or right is None or len(left.keys() | right.keys()) > 2:
            return None
        return {x: left.get(x, 0.0) + right.get(x, 0.0) for x in (*left, *right)}

    def _split(self, a: int) -> tuple[float, int]:
        """c and x with a = c x."""
        op = self.ops[a]
        number = self._values.get(op[1]) if op[0] == "*" else None
        return (1.0, a) if number is None else (number, op[2])

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
        terms = self._joined(a, b)
        if terms is not None:
            return self._combination(terms)
        (c, x), (d, y) = self._split(a), self._split(b)
        return self.scaled(c + d, x) if x == y else self._make("+", min(a, b), max(a, b))

    def sub(self, a: int, b: int) -> int:
        """a - b."""
        return self.zero if a == b else self.add(a, self.neg(b))

    def neg(self, a: int) -> int:
        """-a."""
        return self.scaled(-1.0, a)

    def mul(self, a: int, b: int) -> int:
        """a b."""
        x, y = self._values.get(a), self._values.get(b)
        if x is not None and y is not None:
            return self.const(x * y)
        for number, other in ((x, b), (y, a)):
            if number is not None:
                return self.scaled(number, other)
        (c, x), (d, y) = self._split(a), self._split(b)
        if (x, y) != (a, b):
            return self.scaled(c * d, self.mul(x, y))
        cancelled = self._cancelled(a, b)
        if cancelled is not None:
            return cancelled
        return self._make("*", min(a, b), max(a, b))

    def chain(self, a: int, b: int) -> int:
        """a b of slopes: zero where a condition makes one of them zero, though the other is no number."""
        (c, x), (d, y) = self._split(a), self._split(b)
        for one, other in ((x, y), (y, x)):
            op = self.ops[one]
            if op[0] == "select" and self.zero in op[2:]:
                cases = (z if z == self.zero else self.chain(z, other) for z in op[2:])
                return self.scaled(c * d, self.select(op[1], *cases))
        return self.mul(a, b)

    def scaled(self, x: float, b: int) -> int:
        """x b."""
        if (y := self.value(b)) is not None:
            return self.const(x * y)
        if x == 0.0:
            return self.zero
        if x == 1.0:
            return b
        terms = {k: x * c for k, c in self._linear.get(b, {}).items()}
        # -(c x + d y) shares the bracket.
        if terms and (x != -1.0 or len(terms) == 1 or 1.0 in terms.values()):
            return self._combination(terms)
        c, y = self._split(b)
        op = self.ops[y]
        if x * c == -1.0 and op[0] == "+" and -1.0 in (self._split(z)[0] for z in op[1:]):
            return self._make("+", *sorted(self.neg(z) for z in op[1:]))
        made = y if x * c == 1.0 else self._make("*", self.const(x * c), y)
        if terms:
            self._linear.setdefault(made, terms)
        return made

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
        c, y = self._split(a)
        if y != a:
            return self.scaled(1.0 / c, self.inv(y))
        return self._make("inv", a)

    def div(self, a: int, b: int) -> int:
        """a / b."""
        return self.mul(a, self.inv(b))

    def squares(self, a: int, b: int) -> int:
        """a² + b²."""
        return self.add(self.mul(a, a), self.mul(b, b))

    def power(self, a: int, b: int) -> int:
        """aᵇ; of numbers it stays a power where its value is not finite."""
        x, y = self._values.get(a), self._values.get(b)
        if x is not None and y is not None:
            with suppress(ValueError, OverflowError):
                return self.const(math.pow(x, y))
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
        for one, other in ((x, b), (y, a)):
            if one is not None and sign in ("&&", "||"):
                return other if bool(one) == (sign == "&&") else self.const(one)
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

    def made(self, kind: str, *operands: int) -> int:
        """An operation of nodes, by its name."""
        if kind in _METHODS:
            return getattr(self, _METHODS[kind])(*operands)
        return (self.compare if kind in COMPARISONS else self.function)(kind, *operands)

    def replaced(self, outputs: Sequence[int], nodes: Mapping[int, int]) -> list[int]:
        """The outputs with other nodes in the place of some."""
        made = dict(nodes)
        for node in self.needed(outputs):
            op = self.ops[node]
            if node in made:
                continue
            operands = [made[a] for a in self.operands(node)]
            same = operands == list(self.operands(node))
            made[node] = node if same else self.made(op[0], *operands)
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
        kind, *operands = self.ops[node]
        if kind in ("const", "in", *COMPARISONS):
            return []
        return list(zip(operands, _SLOPES[kind](self, node, *operands), strict=True))


#: The derivatives of operations by their operands: from the program, the node and the operands.
_SLOPES: dict[str, Callable[..., tuple[int, ...]]] = {
    "+": lambda p, f, a, b: (p.one, p.one),
    "*": lambda p, f, a, b: (b, a),
    "inv": lambda p, f, a: (p.neg(p.mul(f, f)),),
    "pow": lambda p, f, a, b: (
        p.mul(b, p.power(a, p.sub(b, p.one))),
        p.mul(f, p.function("log", a)) if p.value(b) is None else p.zero,
    ),
    "atan2": lambda p, f, a, b: (p.div(b, p.squares(a, b)), p.neg(p.div(a, p.squares(a, b)))),
    "select": lambda p, f, c, a, b: (p.zero, p.select(c, p.one, p.zero), p.select(c, p.zero, p.one)),
    "sqrt": lambda p, f, a: (p.div(p.const(0.5), f),),
    "sin": lambda p, f, a: (p.function("cos", a),),
    "cos": lambda p, f, a: (p.neg(p.function("sin", a)),),
    "tan": lambda p, f, a: (p.squares(p.one, f),),
    "exp": lambda p, f, a: (f,),
    "log": lambda p, f, a: (p.inv(a),),
    "asin": lambda p, f, a: (p.power(p.sub(p.one, p.mul(a, a)), p.const(-0.5)),),
    "acos": lambda p, f, a: (p.neg(p.power(p.sub(p.one, p.mul(a, a)), p.const(-0.5))),),
    "atan": lambda p, f, a: (p.inv(p.squares(p.one, a)),),
    "sinh": lambda p, f, a: (p.function("cosh", a),),
    "cosh": lambda p, f, a: (p.function("sinh", a),),
    "tanh": lambda p, f, a: (p.sub(p.one, p.mul(f, f)),),
    "erf": lambda p, f, a: (
        p.scaled(2 / math.sqrt(math.pi), p.function("exp", p.neg(p.mul(a, a)))),
    ),
    "fabs": lambda p, f, a: (
        p.select(
            p.compare(">", a, p.zero), p.one,
            p.select(p.compare("<", a, p.zero), p.const(-1.0), p.zero),
        ),
    ),
}  # fmt: skip
