"""Text that is kept on disk is that which would be made, and no other problem's."""

import json

import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    TestFunction,
    VectorFunctionSpace,
    dx,
    inner,
    sin,
)

from fdgeom.solvers.chain import kept_text, source
from fdgeom.solvers.chain.cells import cell_equations
from fdgeom.solvers.compiled.tables import Tables


class Problem:
    """A string, of two components, with two coefficients and two numbers."""

    def __init__(self):
        self.mesh = IntervalMesh(4, 1.0)
        V = VectorFunctionSpace(self.mesh, "CG", 1, dim=2)
        self.u, self.given, self.v = Function(V), Function(V), TestFunction(V)
        Q = FunctionSpace(self.mesh, "DG", 0)
        self.length, self.a, self.b = Function(Q), Function(Q), Function(Q)
        self.p, self.q = Constant(2.0), Constant(3.0)

    def text(self, residual, *, kept=True, follows=False, border=None, first=()):
        """Of the class of a cell, and the functions and constants that it reads."""
        tables = Tables(self.mesh)
        for f in (self.mesh.coordinates, *first):
            tables.field(f)
        equations = cell_equations(residual, self.u)
        following = self.given if follows else None
        if kept:
            text = source.kept_cell_class(
                equations, tables, self.length, "Cell", following, None, border
            )
        else:
            loads = source.Loads(tables, self.length)
            text = source.cell_class(equations, loads, "Cell", following, None, border)
        return text, tables.functions, tables.constants


def string(p, stiffness, number, literal=1.0, law=sin):
    u, v = p.u, p.v
    return (
        stiffness * inner(u.dx(0), v.dx(0)) + number * law(literal * u[0]) * v[1] + u[1] * v[0]
    ) * dx(degree=2)


@pytest.fixture(scope="module")
def problem():
    return Problem()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    place = tmp_path / "texts"
    monkeypatch.setattr(kept_text, "folder", lambda: place)
    return place


@pytest.fixture
def made(monkeypatch):
    """Counts the texts that are made."""
    calls, make = [], source.cell_class
    monkeypatch.setattr(source, "cell_class", lambda *a, **k: calls.append(1) or make(*a, **k))
    return calls


def test_made_once(problem, folder, made):
    residual = string(problem, problem.a, problem.p)
    found = [problem.text(residual, follows=True) for _ in range(3)]
    assert (len(made), len(list(folder.iterdir()))) == (1, 1)
    expected = problem.text(residual, kept=False, follows=True)
    assert found == [expected] * 3
    # Other objects of the same kind are what another process has; the second text was made above.
    other = Problem()
    text, functions, constants = other.text(string(other, other.a, other.p), follows=True)
    assert (len(made), text) == (2, expected[0])
    assert {other.a, other.given} <= set(functions)
    assert constants == [other.p]


def test_no_other_problem_s(problem, folder):
    p = problem
    cases = [
        (string(p, p.a, p.p), {}),
        (string(p, p.a, p.p, literal=1.0 + 2**-52), {}),
        (string(p, p.a, p.p, law=lambda x: x**3), {}),
        (string(p, p.a, p.p), {"follows": True}),
        (string(p, p.a, p.p), {"first": (p.a, p.b)}),
        (string(p, p.a, p.p), {"first": (p.b, p.a)}),
        (string(p, p.a, p.p), {"border": p.p}),
        (string(p, p.a, p.p), {"border": p.q}),
        (string(p, p.a, p.p * p.q), {}),
        (string(p, p.a * p.a, p.p), {}),
        (string(p, p.a * p.b, p.p), {}),
        (string(p, p.a, p.a), {}),
        (string(p, p.a, p.b), {}),
    ]
    for _ in range(2):
        for residual, how in cases:
            assert p.text(residual, **how) == p.text(residual, kept=False, **how)
    assert len(list(folder.iterdir())) == len(cases)


def test_order_of_coefficients(problem):
    """The same text for other functions in the same places, which get the same numbers."""
    p, found = problem, []
    for a, b in ((p.a, p.b), (p.b, p.a)):
        residual = string(p, a, p.p) + b**2 * p.u[0] * p.v[0] * dx(degree=2)
        found.append(p.text(residual))
        assert found[-1] == p.text(residual, kept=False)
    assert found[0][1] != found[1][1] or found[0][0] != found[1][0]


@pytest.mark.parametrize(
    "spoilt",
    ["", "{", "[]", "null", '{"text": 1, "taken": []}', '{"text": "", "taken": [99]}', b"\xff"],
)
def test_what_cannot_be_read_is_made_anew(problem, folder, made, spoilt):
    residual = string(problem, problem.a, problem.p)
    expected = problem.text(residual)
    (file,) = folder.iterdir()
    file.write_bytes(spoilt if isinstance(spoilt, bytes) else spoilt.encode())
    assert (problem.text(residual), len(made)) == (expected, 2)
    assert json.loads(file.read_text())["text"] == expected[0]


def test_no_place_to_keep_it(problem, folder):
    folder.write_text("a file in the place of the folder")
    residual = string(problem, problem.a, problem.p)
    assert problem.text(residual) == problem.text(residual, kept=False)
    assert folder.is_file()
