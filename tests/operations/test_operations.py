"""Operations: wrong arguments, and flows that are merged."""

from __future__ import annotations

import numpy as np
import pytest
from firedrake import Constant, Function, FunctionSpace, TestFunction, as_vector, dx, inner

import fdgeom as fg
from fdgeom.operations import (
    Assemble,
    Attempt,
    Copy,
    Flow,
    Map,
    Prescribed,
    Solve,
    flattened,
    merged,
)


def test_refusals():
    x, y = (Function(FunctionSpace(fg.copies(1), "DG", 0), name=n) for n in "xy")
    with pytest.raises(ValueError, match="values is empty"):
        Map(values={})
    with pytest.raises(ValueError, match="shape"):
        Map(values={x: as_vector([x, x])})
    with pytest.raises(ValueError, match="one test function"):
        Solve(work=inner(x, x) * dx, unknown=x)
    with pytest.raises(ValueError, match="contain the unknown"):
        Solve(work=inner(x, TestFunction(x.function_space())) * dx, unknown=y)
    solves = [
        Solve(work=(x - c) * TestFunction(x.function_space()) * dx, unknown=x) for c in (1, 2)
    ]
    with pytest.raises(ValueError, match="same unknown"):
        Flow(tuple(solves))
    with pytest.raises(ValueError, match="must not be empty"):
        Flow(())
    with pytest.raises(TypeError, match="must be operations"):
        Flow((x,))


def test_refused_solves():
    space = FunctionSpace(fg.copies(1), "DG", 0)
    x, y = (Function(space, name=n) for n in "xy")
    work = (x - y) * TestFunction(space) * dx
    with pytest.raises(ValueError, match="contain the test function 'y'"):
        Solve(work=inner(x, x) * dx, unknown=x, test=y)
    with pytest.raises(ValueError, match="choose must be"):
        Solve(work=work, unknown=x, choose="best")
    with pytest.raises(ValueError, match="two guesses"):
        Solve(work=work, unknown=x, attempts=[Attempt(guess=y)], choose="smaller residual")
    with pytest.raises(ValueError, match="guesses of their own"):
        Solve(work=work, unknown=x, guess=y, attempts=[Attempt(guess=y)])
    with pytest.raises(TypeError, match="must be Attempts"):
        Solve(work=work, unknown=x, attempts=[y])
    with pytest.raises(ValueError, match="guess must not be the unknown 'x'; leave guess out"):
        Solve(work=work, unknown=x, guess=x)
    with pytest.raises(ValueError, match="prescribed must not be the unknown"):
        Solve(work=work, unknown=x, prescribed=[Prescribed(np.array([0]), x)])
    with pytest.raises(ValueError, match="part must be a part of the unknown 'x', not 1"):
        Solve(work=work, unknown=x, prescribed=[Prescribed(np.array([0]), part=1)])


def test_forms_on_two_meshes_are_refused():
    spaces = [FunctionSpace(fg.copies(n), "DG", 0) for n in (1, 2)]
    x, y = (Function(space, name=n) for space, n in zip(spaces, "xy", strict=True))
    work, mesh = (x - y) * TestFunction(spaces[0]), spaces[0].mesh()
    with pytest.raises(ValueError, match="work is integrated over one mesh and holds Functions of"):
        Solve(work=work * dx(domain=mesh), unknown=x)
    with pytest.raises(ValueError, match="work is integrated over several meshes"):
        Assemble(work=x**2 * dx + y**2 * dx, by={x: Function(spaces[0])})
    with pytest.raises(ValueError, match="work holds Functions of several meshes"):
        Assemble(work=x * y, by={x: Function(spaces[0])})
    with pytest.raises(ValueError, match="target for 'x' must be a Function of the same space"):
        Assemble(work=x**2 * dx, by={x: Function(spaces[1])})


def test_steps_with_wrong_flows_are_refused():
    """The unknown of a solve belongs to it alone, in all flows of a step."""

    class Twice(fg.Stepper):
        moves = fg.HamiltonianSystem
        order = 1

        def flows(self):
            q, p = self.system.parts
            new, w = Function(p.function_space(), name="new"), TestFunction(p.function_space())
            return [fg.Flow([Solve(work=(new - f) * w * dx, unknown=new)]) for f in (q, p)]

    space = FunctionSpace(fg.copies(1), "DG", 0)
    q, p = Function(space), Function(space)
    with pytest.raises(ValueError, match="same unknown 'new'"):
        Twice(fg.HamiltonianSystem(q, p, (p**2 + q**2) * dx), 0.1)


@pytest.mark.parametrize("mistake", ["is read before it is written", "is written and not read"])
def test_functions_that_no_step_keeps_are_refused(mistake):
    """A Function is carried from step to step, or read by users, if functions() returns it."""

    class Forgetful(fg.Stepper):
        moves = fg.HamiltonianSystem
        order = 1
        returned = False

        def flows(self):
            (q, p), dt = self.system.parts, Constant(0.0)
            self.own = Function(p.function_space(), name="own")
            before = q - dt * self.own if "before" in mistake else q
            drift = fg.Map(values={q: before + dt * p}, dt=dt)
            return [fg.Flow([drift, fg.Map(values={self.own: q**2})])]

        def functions(self):
            return {"own": self.own} if self.returned else {}

    def stepper(**options):
        space = FunctionSpace(fg.copies(1), "DG", 0)
        q, p = Function(space).assign(1.0), Function(space).assign(2.0)
        return Forgetful(fg.HamiltonianSystem(q, p, (p**2 + q**2) * dx), 0.5, **options)

    with pytest.raises(ValueError, match=f"flows: 'own' {mistake}.* return it from the functions"):
        stepper()
    Forgetful.returned = True
    # q = 2, then 3, or 3 - 4/2.
    own = 9.0 if "not read" in mistake else 1.0
    for compiled in (True, False):
        made = stepper(compiled=compiled)
        made.advance(2)
        assert made.own.dat.data_ro == pytest.approx([own], rel=1e-15)


def test_equal_exact_flows_are_merged():
    """Half a flow, twice, is one flow; others stay."""
    x, dt = Function(FunctionSpace(fg.copies(1), "DG", 0)), Constant(0.0)
    drift = Flow((Map(values={x: x + dt}, dt=dt),), exact=True)
    kick = Flow((Map(values={x: 2 * x}),))
    found = merged([drift.scaled(0.5), drift.scaled(0.25), kick, kick, drift])
    assert [flow.fraction for flow in found] == [0.75, 1.0, 1.0, 1.0]
    assert [op.fraction for op in flattened(found)] == [0.75, 1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="another Function"):
        Copy(source=x, target=x)
