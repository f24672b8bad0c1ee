"""Solves along one chain in lists of operations: the same values as through PETSc."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import ufl
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    VectorFunctionSpace,
    atan,
    cos,
    dx,
    exp,
    inner,
    sin,
    split,
)
from verification.beams import uneven_mesh
from ways import PETScExecutor

from fdgeom.compile import CompiledExecutor
from fdgeom.errors import CannotCompile
from fdgeom.operations import (
    Attempt,
    Cotangents,
    Map,
    Prescribed,
    Solve,
    reverse,
)


def differences(build, steps=5, dt=0.1):
    """How much each Function that a list writes differs from that of PETSc's executor."""
    ours, theirs = build(), build()
    one, other = CompiledExecutor(ours), PETScExecutor(theirs)
    assert one.advance(steps, 0.0, dt) == (steps, None)
    assert other.advance(steps, 0.0, dt) == (steps, None)
    found = []
    for a, b in zip(ours, theirs, strict=True):
        for f, g in zip(a.writes, b.writes, strict=True):
            for part, exact in zip(f.subfunctions, g.subfunctions, strict=True):
                exact = exact.dat.data_ro
                found.append(np.abs(part.dat.data_ro - exact).max() / max(1.0, np.abs(exact).max()))
    return found


def variation(space):
    return Function(space, name="test")


def wave(cells=21):
    """A midpoint step of a nonlinear wave equation whose left end is moved, the right one held."""
    mesh = uneven_mesh(cells)
    W = VectorFunctionSpace(mesh, "CG", 1, dim=2)
    (x,), dt, t = SpatialCoordinate(mesh), Constant(1.0), Constant(0.0)
    u, test, state, given = Function(W, name="u"), variation(W), Function(W), Function(W)
    state.interpolate(ufl.as_vector([exp(-9 * (x - 0.5) ** 2), sin(x)]))
    mean, rate = (u + state) / 2, (u - state) / dt
    work = (rate[0] - mean[1]) * test[0] + (rate[1] + sin(mean[0])) * test[1]
    work = (work + mean[0].dx(0) * test[1].dx(0)) * dx(degree=2)
    ends = np.array([0, 2 * np.argmax(mesh.coordinates.dat.data_ro)])
    timed = {"dt": dt, "clock": t}
    return [
        Map(values={given: ufl.as_vector([sin(t), 0.0 * t])}, **timed),
        Solve(
            work=work, unknown=u, test=test, guess=state, name="the wave",
            prescribed=[Prescribed(ends[:1], given), Prescribed(ends[1:])], **timed,
        ),
        Map(values={state: u}, **timed),
    ]  # fmt: skip


@pytest.mark.parametrize("cells", [1, 7, 8, 21])
def test_prescribed_values_and_the_time(cells):
    assert max(differences(lambda: wave(cells))) < 1e-13


def mixed():
    """A bar in displacement and force, which has values in cells, with a cubic law."""
    mesh = uneven_mesh(13)
    V, Q = FunctionSpace(mesh, "CG", 1), FunctionSpace(mesh, "DG", 0)
    w, test = Function(V * Q, name="w"), variation(V * Q)
    (u, s), (v, r) = split(w), split(test)
    (x,) = SpatialCoordinate(mesh)
    work = (s * v.dx(0) - cos(3 * x) * v + (u.dx(0) - s - s**3) * r) * dx(degree=3)
    old = Function(V * Q)
    return [
        Solve(
            work=work, unknown=w, test=test, name="the bar", prescribed=[Prescribed(np.array([0]))]
        ),
        Map(values={old.subfunctions[0]: w.subfunctions[0] / 2}),
    ]


def test_unknowns_in_cells():
    assert max(differences(mixed)) < 1e-12


def of_degree(degree, mirrored):
    """The wave in functions of a higher degree; the nodes of mirrored cells run from right to left."""
    mesh = uneven_mesh(9)
    if mirrored:
        mesh.coordinates.dat.data_wo[...] = 1.0 - mesh.coordinates.dat.data_ro
    V = FunctionSpace(mesh, "CG", degree)
    (x,), dt, n = SpatialCoordinate(mesh), Constant(1.0), V.dof_dset.size
    w, test = Function(V * V, name="w"), variation(V * V)
    q, p, given = Function(V), Function(V), Function(V)
    q.interpolate(exp(-9 * (x - 0.5) ** 2))
    given.interpolate(x)
    (u, v), (a, b) = split(w), split(test)
    work = ((u - q) / dt - (v + p) / 2) * a * dx
    work += ((v - p) / dt + sin((u + q) / 2)) * b * dx(degree=2 * degree)
    work += (u + q).dx(0) / 2 * b.dx(0) * dx
    return [
        Solve(
            work=work, unknown=w, test=test, name="the wave", dt=dt,
            prescribed=[Prescribed(np.array([0, n - 1]), given), Prescribed(np.array([1]), part=1)],
        ),
        Map(values={q: w.subfunctions[0], p: w.subfunctions[1] + 0 * q}),
    ]  # fmt: skip


@pytest.mark.parametrize(("degree", "mirrored"), [(2, False), (3, True)])
def test_functions_of_higher_degree(degree, mirrored):
    assert max(differences(lambda: of_degree(degree, mirrored))) < 1e-12


def linear():
    """A linear solve, whose matrix varies along the chain; from whatever value."""
    mesh = uneven_mesh(30)
    V = FunctionSpace(mesh, "CG", 1)
    (x,), u, test = SpatialCoordinate(mesh), Function(V, name="u"), variation(V)
    data = Function(V).interpolate(cos(5 * x))
    u.assign(3.0)
    work = ((1 + x) * u.dx(0) * test.dx(0) + (u - data) * test) * dx(degree=2)
    return [Solve(work=work, unknown=u, test=test, name="u"), Map(values={data: data + u})]


def test_linear_solves():
    assert max(differences(linear)) < 1e-12


def adjoint():
    """The adjoint of the wave's solve: a transposed solve and what it gives to the data."""
    step = wave()
    solve = step[1]
    state, active = solve.guess, [solve.unknown, solve.guess, solve.prescribed[0].value]
    solve.unknown.assign(state)
    cotangents = Cotangents(active)
    cotangents.add([solve.unknown])
    (x,) = SpatialCoordinate(state.function_space().mesh())
    cotangents[solve.unknown].interpolate(ufl.as_vector([cos(x), x]))
    return reverse([solve], cotangents)


def test_transposed_solves():
    assert max(differences(adjoint, steps=1)) < 1e-12


def steep(attempts, choose="first"):
    """An equation whose whole Newton steps diverge from far away: each node pulled by atan(5u)."""

    def build():
        mesh = uneven_mesh(12)
        V = VectorFunctionSpace(mesh, "CG", 1, dim=2)
        u, test, far, near = (Function(V, name=n) for n in ("u", "test", "far", "near"))
        (x,) = SpatialCoordinate(mesh)
        far.interpolate(ufl.as_vector([3.0 + x, -4.0]))
        near.interpolate(ufl.as_vector([0.1 * x, 0.0 * x]))
        guesses = {"far": far, "near": near}
        pull = ufl.as_vector([atan(5 * c) - 0.1 for c in u])
        work = inner(pull, test) * dx(degree=1, scheme="KMV")
        work += 1e-2 * (inner(u.dx(0), test.dx(0)) + inner(u, test)) * dx(degree=2)
        made = [Attempt(guess=guesses[name], **how) for name, how in attempts]
        return [Solve(work=work, unknown=u, test=test, attempts=made, choose=choose, name="u")]

    return build


def solved(build):
    ours = build()
    executor = CompiledExecutor(ours)
    done, failure = executor.advance(1, 0.0, 1.0)
    (op,) = ours
    return SimpleNamespace(
        done=done, failure=failure, u=np.array(op.unknown.dat.data_ro), stats=executor.stats()
    )


def test_attempts_follow_one_another():
    """Far away whole steps diverge, damped ones arrive; near the root both do."""
    near = solved(steep([("near", {})]))
    assert near.done == 1
    failed = solved(steep([("far", {})]))
    assert failed.done == 0
    assert "the solve for u" in str(failed.failure)
    assert "the node at" in str(failed.failure)
    assert np.all(failed.u == 0.0)
    for attempts in (
        [("far", {"must_contract": True}), ("near", {})],
        [("far", {}), ("far", {"damped": True, "max_it": 200})],
    ):
        found = solved(steep(attempts))
        assert found.done == 1
        assert np.abs(found.u - near.u).max() < 1e-13
        assert found.stats["newton_iterations"] > near.stats["newton_iterations"]


def test_the_guess_with_the_smaller_residual_is_first():
    near = solved(steep([("near", {}), ("far", {})]))
    chosen = solved(steep([("far", {}), ("near", {})], "smaller residual"))
    assert np.array_equal(near.u, chosen.u)
    assert near.stats == chosen.stats


def test_many_unknowns_are_refused():
    """A sentence tells why."""
    mesh = IntervalMesh(4, 1.0)
    V = VectorFunctionSpace(mesh, "CG", 1, dim=30)
    u = Function(V, name="u")
    test = variation(V)
    solve = Solve(
        work=inner(u.dx(0), test.dx(0)) * dx + inner(u, test) * dx, unknown=u, test=test, name="u"
    )
    with pytest.raises(CannotCompile, match="30 unknowns a node, more than 24"):
        CompiledExecutor([solve])
