"""Scalar programs: values, derivatives by differences, elimination by NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import ufl
from firedrake import Constant, as_matrix, as_vector, conditional, dot, inner, max_value, sqrt
from ufl.algorithms import expand_derivatives

from fdgeom.compile.differentiate import gradient, jacobian, solution
from fdgeom.compile.from_ufl import Scalars
from fdgeom.compile.program import FUNCTIONS, ScalarProgram
from fdgeom.errors import CannotCompile

_OPERATORS = {
    "+": lambda a, b: a + b, "*": lambda a, b: a * b,
    "inv": lambda a: 1 / a, "pow": lambda a, b: a**b, "atan2": math.atan2,
    "select": lambda c, a, b: a if c else b, "!": lambda a: not a, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "&&": lambda a, b: a and b,
    "||": lambda a, b: a or b, **FUNCTIONS,
}  # fmt: skip


def evaluate(program, outputs, values):
    """The outputs for the values of inputs by their keys."""
    found = {}
    for node in program.needed(outputs):
        op = program.ops[node]
        if op[0] == "const":
            found[node] = op[1]
        elif op[0] == "in":
            found[node] = values[op[1]]
        else:
            found[node] = _OPERATORS[op[0]](*(found[a] for a in op[1:]))
    return np.array([found[x] for x in outputs], dtype=float)


def of_ufl(expression, inputs):
    """A program of an expression of vectors (Constants), and its outputs."""
    program = ScalarProgram()

    def terminal(e, derivatives):
        assert not derivatives
        names = [(inputs.index(e), k) for k in range(int(np.prod(e.ufl_shape, dtype=int)))]
        made = np.empty(len(names), dtype=object)
        made[:] = [program.input(name) for name in names]
        return made.reshape(e.ufl_shape)

    nodes = Scalars(program, terminal)(expand_derivatives(ufl.as_ufl(expression)))
    return program, list(nodes.reshape(-1))


x, y = Constant((0.3, -0.7, 1.1)), Constant((0.9, 0.4, -0.2))
X, Y = np.array([0.3, -0.7, 1.1]), np.array([0.9, 0.4, -0.2])
EXPRESSIONS = {
    "products": (dot(x, y) * ufl.cross(x, y), lambda: X @ Y * np.cross(X, Y)),
    "functions": (
        as_vector([ufl.sin(x[0]) * ufl.exp(y[1]), sqrt(dot(x, x)), ufl.atan2(x[1], y[0])]),
        lambda: [np.sin(X[0]) * np.exp(Y[1]), np.linalg.norm(X), np.arctan2(X[1], Y[0])],
    ),
    "quotients": (x / (1 + dot(y, y)) ** 1.5, lambda: X / (1 + Y @ Y) ** 1.5),
    "conditions": (
        as_vector([conditional(ufl.And(x[0] > 0, y[2] < 0), x[1], y[1]), max_value(x[2], y[2])]),
        lambda: [X[1], X[2]],
    ),
    "contractions": (
        as_matrix([[x[0], y[1]], [2, x[2]]]) * as_vector([y[0], inner(x, y)]),
        lambda: np.array([[X[0], Y[1]], [2, X[2]]]) @ [Y[0], X @ Y],
    ),
}


def values_at(point):
    return {(k, i): point[3 * k + i] for k in range(2) for i in range(3)}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_values_of_expressions(name):
    expression, expected = EXPRESSIONS[name]
    program, outputs = of_ufl(expression, [x, y])
    found = evaluate(program, outputs, values_at([*X, *Y]))
    assert np.allclose(found, np.ravel(expected()), rtol=1e-14)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_derivatives_equal_differences(name):
    """Forward (Jacobian) and reverse (gradient) against central differences."""
    program, outputs = of_ufl(EXPRESSIONS[name][0], [x, y])
    point = np.array([*X, *Y])
    inputs = [program.input(key) for key in values_at(point)]

    def at(p):
        return evaluate(program, outputs, values_at(p))

    steps = 1e-6 * np.eye(6)
    expected = np.transpose([(at(point + h) - at(point - h)) / 2e-6 for h in steps])
    entries = jacobian(program, outputs, inputs)
    forward = np.zeros(expected.shape)
    for (i, j), node in entries.items():
        forward[i, j] = evaluate(program, [node], values_at(point))[0]
    assert np.abs(forward - expected).max() < 1e-8
    for row, output in zip(expected, outputs, strict=True):
        slopes = gradient(program, output, inputs)
        found = evaluate(program, [slopes[i] for i in inputs], values_at(point))
        assert np.abs(found - row).max() < 1e-8


def test_written_out_elimination():
    """Of a matrix with zeros, against NumPy."""
    rng = np.random.default_rng(4)
    A = rng.uniform(-1, 1, (5, 5)) * (rng.uniform(size=(5, 5)) < 0.6) + 3 * np.eye(5)
    b = rng.uniform(-1, 1, 5)
    program = ScalarProgram()
    entries = {(i, j): program.input((i, j)) for i, j in zip(*np.nonzero(A), strict=True)}
    right = [program.input(("b", i)) for i in range(5)]
    values = {(i, j): A[i, j] for i, j in entries} | {("b", i): b[i] for i in range(5)}
    found = evaluate(program, solution(program, entries, 5, right), values)
    assert np.allclose(found, np.linalg.solve(A, b), rtol=1e-13)


def test_equal_operations_are_one():
    program, outputs = of_ufl(as_vector([x[0] * y[1] + 1, y[1] * x[0] + 1]), [x, y])
    assert outputs[0] == outputs[1]
    assert len([op for op in program.ops if op[0] == "*"]) == 1


def test_other_inputs_in_place_of_some():
    program, (output,) = of_ufl(ufl.sin(x[0] * y[0]) + x[1], [x, y])
    (new,) = program.replaced([output], {program.input((0, 0)): program.zero})
    assert new == program.input((0, 1))


def test_unknown_operations_are_refused():
    with pytest.raises(CannotCompile, match="BesselJ"):
        of_ufl(ufl.bessel_J(1, x[0]), [x, y])


def test_values_that_are_not_finite_stay_operations():
    """1/0, log 0 and roots of -1 are left to the arithmetic of C++; other constants are folded."""
    program = ScalarProgram()
    # A complex number, and a quotient by zero.
    roots = (program.power(program.const(x), program.const(y)) for x, y in ((-1, 1.5), (0, -0.75)))
    for node in (program.inv(program.zero), program.function("log", program.zero), *roots):
        assert program.value(node) is None
    assert program.value(program.function("log", program.one)) == 0.0
