"""What cannot be compiled goes through PETSc SNES by itself, and says why on request."""

import numpy as np
import pytest
from firedrake import (
    Function,
    FunctionSpace,
    TestFunction,
    TrialFunction,
    UnitSquareMesh,
    assemble,
    curl,
    div,
    dot,
    dx,
    inner,
    ln,
    split,
)
from firedrake import VectorFunctionSpace as Vectors

import fdgeom as fg
from fdgeom.errors import CannotCompile

A, B, C, NU, MU = -2.0, -1.0, -0.5, 1.0, 2.0


def lotka_volterra():
    """Three species, abc = -1 (Hairer, Lubich & Wanner, section VII.2.2): a bracket of many terms."""
    y = Function(Vectors(fg.copies(2), "DG", 0, dim=3), name="y")
    y.dat.data_wo[...] = [[1.0, 1.9, 0.5], [0.8, 0.7, 1.2]]

    def bracket(u, v):
        return (
            C * y[0] * y[1] * (u[0] * v[1] - u[1] * v[0])
            + B * C * y[0] * y[2] * (u[0] * v[2] - u[2] * v[0])
            - y[1] * y[2] * (u[1] * v[2] - u[2] * v[1])
        ) * dx

    energy = (A * B * y[0] + y[1] - A * y[2] + NU * ln(y[1]) - MU * ln(y[2])) * dx
    return fg.PoissonSystem(y, energy, bracket, lambda u, v: dot(u, v) * dx)


def exact(y, end):
    """The same equations by SciPy, to 1e-12."""
    from scipy.integrate import solve_ivp

    def rate(t, y):
        u, v, w = y
        matrix = [
            [0, C * u * v, B * C * u * w],
            [-C * u * v, 0, -v * w],
            [-B * C * u * w, v * w, 0],
        ]
        return np.array(matrix) @ [A * B, 1 + NU / v, -A - MU / w]

    return solve_ivp(rate, (0, end), y, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


@pytest.mark.parametrize("stages", [3, 4])
def test_many_stages_of_three_components(stages):
    """Of order 2s: an error far below that of two stages, by steps that are compiled or not."""
    system = lotka_volterra()
    start = system.state.dat.data_ro.copy()
    stepper = fg.GaussLegendre(stages)(system, 0.1)
    stepper.advance(5)
    found = system.state.dat.data_ro.copy()
    wanted = [exact(y, 0.5) for y in start]
    # h^(2s+1) for h = 0.1, and some.
    np.testing.assert_allclose(found, wanted, atol={3: 1e-7, 4: 1e-9}[stages])
    system.state.dat.data_wo[...] = start
    other = fg.GaussLegendre(stages)(system, 0.1, compiled=False)
    other.advance(5)
    np.testing.assert_allclose(system.state.dat.data_ro, found, rtol=1e-12)


def matrices(*forms):
    return [assemble(f, mat_type="aij").petscmat.convert("dense").getDenseArray() for f in forms]


def values(*functions):
    return [np.array(f.dat.data_ro).ravel() for f in functions]


def test_part_by_part_on_edge_elements():
    """Maxwell's equations: E in N1curl and B in DG0, each by the midpoint rule, as matrices do it."""
    mesh = UnitSquareMesh(2, 2)
    V, W = FunctionSpace(mesh, "N1curl", 1), FunctionSpace(mesh, "DG", 0)
    state = Function(V * W)
    E, B = split(state)
    rng = np.random.default_rng(1)
    for part in state.subfunctions:
        part.dat.data_wo[...] = rng.uniform(-1, 1, part.dat.data_ro.shape)

    def bracket(a, b):
        (e, b1), (f, b2) = split(a), split(b)
        return (curl(e) * b2 - curl(f) * b1) * dx

    system = fg.PoissonSystem(
        state,
        0.5 * (inner(E, E) + B**2) * dx,
        bracket,
        lambda a, b: inner(a, b) * dx,
        names=("E", "B"),
    )
    M, N, C = matrices(
        inner(TrialFunction(V), TestFunction(V)) * dx,
        TrialFunction(W) * TestFunction(W) * dx,
        curl(TrialFunction(V)) * TestFunction(W) * dx,
    )
    e, b = values(*state.subfunctions)
    stepper = fg.PoissonIntegrator(system, 0.05)
    assert not stepper.is_compiled
    assert "neighbouring" in stepper.why_not_compiled or "nodes" in stepper.why_not_compiled
    stepper.advance(3)
    for _ in range(3):
        b = b - 0.05 * np.linalg.solve(N, C @ e)
        e = e + 0.05 * np.linalg.solve(M, C.T @ b)
    found = values(*state.subfunctions)
    np.testing.assert_allclose(found[0], e, atol=1e-12)
    np.testing.assert_allclose(found[1], b, atol=1e-12)


def test_verlet_on_face_elements():
    """ü = grad div u in RT, by leapfrog with matrices."""
    mesh = UnitSquareMesh(2, 2)
    V = FunctionSpace(mesh, "RT", 1)
    q, p = Function(V), Function(V)
    rng = np.random.default_rng(2)
    q.dat.data_wo[...], p.dat.data_wo[...] = rng.uniform(-1, 1, (2, V.dim()))
    system = fg.HamiltonianSystem(q, p, energy=0.5 * (inner(p, p) + div(q) ** 2) * dx)
    u, w = TrialFunction(V), TestFunction(V)
    M, K = matrices(inner(u, w) * dx, div(u) * div(w) * dx)
    x, v = values(q, p)
    stepper = fg.StormerVerlet(system, 0.02)
    assert not stepper.is_compiled
    stepper.advance(3)
    for _ in range(3):
        v = v - 0.01 * np.linalg.solve(M, K @ x)
        x = x + 0.02 * v
        v = v - 0.01 * np.linalg.solve(M, K @ x)
    np.testing.assert_allclose(values(q, p), [x, v], atol=1e-11)


def oscillator():
    space = FunctionSpace(fg.copies(2), "DG", 0)
    q, p = Function(space).assign(1.0), Function(space)
    return fg.HamiltonianSystem(q, p, energy=(p**2 / 2 + q**2 / 2) * dx)


@pytest.mark.parametrize("where", ["executor.Unit", "unit.load"])
def test_any_failure_of_the_compilation(where, monkeypatch):
    """When the stepper is made (analysis) or at its first step (the compiler)."""

    def fail(*arguments, **options):
        raise RecursionError("too deep")

    monkeypatch.setattr(f"fdgeom.compile.{where}", fail)
    system = oscillator()

    def taken():
        stepper = fg.StormerVerlet(system, 0.1)
        stepper.advance(2)
        return stepper

    with pytest.warns(UserWarning, match="too deep"):
        stepper = taken()
    assert not stepper.is_compiled
    assert stepper.steps == 2
    assert "RecursionError: too deep" in stepper.why_not_compiled
    x, v = 1.0, 0.0
    for _ in range(2):
        v -= 0.05 * x
        x += 0.1 * v
        v -= 0.05 * x
    np.testing.assert_allclose(system.q.dat.data_ro, x, rtol=1e-14)
    with pytest.raises(ValueError, match="too deep"):
        fg.StormerVerlet(system, 0.1, compiled=True).advance()


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_what_is_no_failure_of_the_compilation(error, monkeypatch):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("fdgeom.compile.executor.Unit", fail)
    with pytest.raises(error):
        fg.StormerVerlet(oscillator(), 0.1)


def test_reasons():
    system = oscillator()
    assert fg.StormerVerlet(system, 0.1).why_not_compiled is None
    assert "compiled=False" in fg.StormerVerlet(system, 0.1, compiled=False).why_not_compiled
    watched = fg.StormerVerlet(system, 0.1, solver_parameters={"snes_monitor": None})
    assert "snes_monitor" in watched.why_not_compiled
    space = FunctionSpace(UnitSquareMesh(1, 1), "CG", 1)
    q, p = Function(space), Function(space)
    field = fg.HamiltonianSystem(q, p, energy=(p**2 + q**2) / 2 * dx)
    with pytest.raises(ValueError, match="cannot be compiled") as caught:
        fg.StormerVerlet(field, 0.1, compiled=True)
    # A sentence, with names of functions and no UFL.
    assert isinstance(caught.value.__cause__, CannotCompile)
    assert not any(word in str(caught.value) for word in ("v_0", "({", "w_", "Coefficient"))
