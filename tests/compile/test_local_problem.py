"""Compiled solves of residuals that couple only the unknowns of one node or one cell, also by LocalNewton."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    DirichletBC,
    Function,
    FunctionSpace,
    IntervalMesh,
    NonlinearVariationalProblem,
    NonlinearVariationalSolver,
    SpatialCoordinate,
    TestFunction,
    UnitSquareMesh,
    VectorFunctionSpace,
    as_vector,
    assemble,
    cos,
    dx,
    exp,
    inner,
    sin,
)

from fdgeom import measures
from fdgeom.compile import CompiledExecutor
from fdgeom.operations import Solve

LENGTH, CELLS = 1.7, 11


def uneven_mesh():
    """Cells of different lengths, so that no weight is right by accident."""
    mesh = IntervalMesh(CELLS, LENGTH)
    (s,) = SpatialCoordinate(mesh)
    mesh.coordinates.interpolate(as_vector([s + 0.1 * sin(3 * s)]))
    return mesh


def spectral(mesh, family, degree, dim=2):
    from finat.ufl import FiniteElement

    element = FiniteElement(family, mesh.ufl_cell(), degree, variant="spectral")
    return VectorFunctionSpace(mesh, element, dim=dim)


def nodal_residual(mesh, space, measure):
    """Coefficients, a constant, the coordinate, an end term and a cellwise explicit term."""
    (s,) = SpatialCoordinate(mesh)
    u, w = Function(space), TestFunction(space)
    f = Function(space).interpolate(as_vector([1 + s, sin(s)]))
    k = Function(FunctionSpace(mesh, "DG", 0)).interpolate(2 + s)
    c = Constant(0.3)
    cubic = as_vector([u[0] ** 3 + u[0] + c * u[1], u[1] + 0.1 * u[0] * u[1] + s * u[1]])
    end = 0.7 * measures.cell_length(mesh) * inner(cubic - f, w) * measures.ends(mesh)
    explicit = inner(k * f.dx(0), w.dx(0)) * dx
    return inner(cubic - f, w) * measure + end - explicit, u


def compiled_solve(residual, unknown):
    """The failure of a compiled solve from the present value of the unknown, and its iterations."""
    executor = CompiledExecutor([Solve(work=residual, unknown=unknown, name="u")])
    _, failure = executor.advance(1, 0.0, 1.0)
    return failure, executor.stats()["newton_iterations"]


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_gauss_lobatto_residuals_are_local_and_solved(degree):
    mesh = uneven_mesh()
    space = spectral(mesh, "CG", degree)
    residual, u = nodal_residual(mesh, space, measures.gauss_lobatto(mesh, degree + 1))
    rng = np.random.default_rng(degree)
    u.dat.data_wo[...] = rng.uniform(-1, 1, u.dat.data_ro.shape)
    with assemble(residual).dat.vec_ro as vec:
        wanted = vec.norm()
    assert compiled_solve(residual, u)[0] is None
    with assemble(residual).dat.vec_ro as vec:
        assert vec.norm() <= 1e-12 * wanted


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_discontinuous_residuals_are_local_and_solved(degree):
    """With a gradient of a continuous coefficient at the Gauss points, as the strain of a beam."""
    mesh = uneven_mesh()
    space = spectral(mesh, "DG", degree)
    (s,) = SpatialCoordinate(mesh)
    v = Function(spectral(mesh, "CG", degree + 1)).interpolate(as_vector([sin(s), exp(-s)]))
    u, w = Function(space), TestFunction(space)
    residual = inner(u + 0.1 * as_vector([u[0] * u[1], u[1] ** 2]) - v.dx(0) - 0.3 * u[0] * v, w)
    residual = residual * measures.gauss(mesh, degree + 1)
    with assemble(residual).dat.vec_ro as vec:
        start = vec.norm()
    assert compiled_solve(residual, u)[0] is None
    with assemble(residual).dat.vec_ro as vec:
        assert vec.norm() <= 1e-12 * start


def test_an_explicit_term_with_another_quadrature_is_assembled_by_it():
    """∫ f w with the full quadrature is not lumped just because f lives on the same nodes."""
    mesh = uneven_mesh()
    space = spectral(mesh, "CG", 1)
    (s,) = SpatialCoordinate(mesh)
    u, w = Function(space), TestFunction(space)
    f = Function(space).interpolate(as_vector([s**2, 1 - s]))
    residual = inner(u, w) * measures.vertex(mesh) - inner(f, w) * dx
    assert compiled_solve(residual, u)[0] is None
    mass = np.zeros((CELLS + 1, CELLS + 1))
    lumped = np.zeros(CELLS + 1)
    x = mesh.coordinates.dat.data_ro
    for k, h in enumerate(np.diff(x)):
        mass[k : k + 2, k : k + 2] += h / 6 * np.array([[2, 1], [1, 2]])
        lumped[k : k + 2] += h / 2
    # Two additions and one division a node.
    np.testing.assert_allclose(u.dat.data_ro, mass @ f.dat.data_ro / lumped[:, None], rtol=1e-13)


def test_the_degree_of_a_sum():
    """Firedrake takes one degree for the sum of integrals, here of the larger estimate."""
    mesh = uneven_mesh()
    space = spectral(mesh, "DG", 0)
    (s,) = SpatialCoordinate(mesh)
    q = Function(FunctionSpace(mesh, "CG", 1)).interpolate(3 * s)
    u, w = Function(space), TestFunction(space)
    both = as_vector([sin(8 * q), 0.0]), as_vector([0.0, q**3 * exp(q)])
    apart = inner(u, w) * dx - sum(inner(f, w) * dx for f in (*both, as_vector([cos(8 * q), 0.0])))
    assert compiled_solve(apart, u)[0] is None
    # The rounding of sums of six terms of one size.
    assert np.abs(assemble(apart).dat.data_ro).max() < 1e-14 * np.abs(u.dat.data_ro).max()


def test_blocks_that_need_pivoting_are_solved():
    """[[0, 1], [1, 0]] has no LU without exchanging rows."""
    mesh = uneven_mesh()
    space = spectral(mesh, "DG", 0)
    u, w = Function(space), TestFunction(space)
    f = Function(space).interpolate(as_vector([1.0, 2.0]))
    residual = inner(as_vector([u[1], u[0]]) - f, w) * dx(degree=0)
    assert compiled_solve(residual, u)[0] is None
    np.testing.assert_allclose(u.dat.data_ro, np.tile([2.0, 1.0], (CELLS, 1)), rtol=1e-15)


@pytest.mark.parametrize(("bad", "words"), [(np.nan, "not finite"), (0.0, "singular")])
def test_a_singular_block_and_a_nan_are_noticed_and_placed(bad, words):
    """In spite of fast arithmetic, at the one node that has it."""
    mesh = uneven_mesh()
    space = spectral(mesh, "DG", 0)
    u, w = Function(space), TestFunction(space)
    k = Function(FunctionSpace(mesh, "DG", 0)).assign(1.0)
    k.dat.data_wo[7] = bad
    before = u.dat.data_ro.copy()
    residual = inner(k * u - as_vector([1.0, 1.0]), w) * dx(degree=0)
    failure, _ = compiled_solve(residual, u)
    assert words in str(failure)
    middle = mesh.coordinates.dat.data_ro[7:9].mean()
    assert f"{middle:.6g}" in str(failure)
    assert np.array_equal(u.dat.data_ro[7], before[7])


@pytest.mark.parametrize("case", ["near zero", "far from zero", "singular at zero"])
def test_a_jacobian_of_the_unknown_alone(case):
    """Then all nodes share its value at zero, unless that serves badly."""
    mesh = uneven_mesh()
    space = spectral(mesh, "CG", 1, dim=3)
    (s,) = SpatialCoordinate(mesh)
    u, w = Function(space), TestFunction(space)
    size, linear = {
        "near zero": (1e-3, 2.0), "far from zero": (50.0, 2.0), "singular at zero": (1.0, 0.0)
    }[case]  # fmt: skip
    f = Function(space).interpolate(size * as_vector([1 + s, 2 - s, 3.0]))
    u.dat.data_wo[...] = size if linear and size < 1 else np.cbrt(size)
    cubes = as_vector([u[k] ** 3 + Constant(linear) * u[k] for k in range(3)])
    residual = inner(cubes - f, w) * measures.vertex(mesh)
    failure, iterations = compiled_solve(residual, u)
    assert failure is None
    # One real root: Cardano's formula for u³ + p u = q.
    p, q = linear, f.dat.data_ro
    root = np.sqrt(q**2 / 4 + p**3 / 27)
    exact = np.cbrt(q / 2 + root) + np.cbrt(q / 2 - root)
    # Cancellation of the two roots near zero: u ≈ q/p there.
    if case == "near zero":
        exact = q / p - (q / p) ** 3 / p + 3 * (q / p) ** 5 / p**2
    # The residual falls by 1e-13 from about its own size.
    np.testing.assert_allclose(u.dat.data_ro, exact, rtol=1e-12)
    assert iterations <= 12


LOCAL = {"snes_type": "python", "snes_python_type": "fdgeom.LocalNewton", "mat_type": "matfree"}


@pytest.mark.parametrize("boundary", [False, True])
def test_local_newton_solves_a_variational_problem_like_newtonls(boundary):
    mesh = uneven_mesh()
    space = spectral(mesh, "CG", 1)
    residual, u = nodal_residual(mesh, space, measures.vertex(mesh))
    bcs = [DirichletBC(space.sub(1), 2.5, 1), DirichletBC(space, (0.5, 0.1), 2)] if boundary else []
    problem = NonlinearVariationalProblem(residual, u, bcs=bcs)
    tight = {"snes_rtol": 1e-13, "snes_linesearch_type": "basic"}
    solver = NonlinearVariationalSolver(problem, solver_parameters={**LOCAL, **tight})
    history = []
    NonlinearVariationalSolver(problem, solver_parameters=tight).solve()
    wanted = u.dat.data_ro.copy()
    u.assign(0)
    solver.solve()
    # Both to round-off of a well conditioned problem.
    np.testing.assert_allclose(u.dat.data_ro, wanted, rtol=1e-12, atol=1e-13)
    u.assign(0)
    solver.snes.setMonitor(lambda snes, k, norm: history.append(norm))
    solver.solve()
    np.testing.assert_allclose(u.dat.data_ro, wanted, rtol=1e-12, atol=1e-13)
    u.assign(0)
    other = NonlinearVariationalSolver(problem, solver_parameters=tight)
    plain = []
    other.snes.setMonitor(lambda snes, k, norm: plain.append(norm))
    other.solve()
    # The monitored norms are those of Newton's method for all nodes, but for round-off at the end.
    shared = min(len(history), len(plain)) - 1
    assert shared >= 3
    np.testing.assert_allclose(history[:shared], plain[:shared], rtol=1e-9, atol=1e-13)


def test_local_newton_refuses_what_is_not_local():
    mesh = uneven_mesh()
    space = spectral(mesh, "CG", 1)
    u, w = Function(space), TestFunction(space)
    residual = inner(u, w) * measures.vertex(mesh) + inner(u.dx(0), w.dx(0)) * dx
    solver = NonlinearVariationalSolver(
        NonlinearVariationalProblem(residual, u), solver_parameters=LOCAL
    )
    with pytest.raises(Exception) as caught:  # noqa: PT011 (petsc4py may wrap it)
        solver.solve()
    chain, error = [], caught.value
    while error is not None:
        chain.append(error)
        error = error.__cause__ or error.__context__
    assert "neighbouring nodes" in " ".join(map(str, chain))


def test_local_newton_reports_divergence_and_leaves_the_unknown():
    from firedrake.exceptions import ConvergenceError

    mesh = UnitSquareMesh(2, 2)
    space = FunctionSpace(mesh, "DG", 0)
    u, w = Function(space).assign(0.3), TestFunction(space)
    problem = NonlinearVariationalProblem((u**2 + 1) * w * dx(degree=0), u)
    solver = NonlinearVariationalSolver(problem, solver_parameters={**LOCAL, "snes_max_it": 7})
    with pytest.raises(ConvergenceError):
        solver.solve()
    assert solver.snes.getConvergedReason() < 0
    assert np.all(u.dat.data_ro == 0.3)


def test_no_compiler_is_a_clear_error(monkeypatch):
    from pyop2 import compilation

    def fail(*args, **kwargs):
        raise compilation.CompilationError("mpicxx: not found")

    mesh = uneven_mesh()
    residual, u = nodal_residual(mesh, spectral(mesh, "CG", 1), measures.vertex(mesh))
    monkeypatch.setattr(compilation, "make_so", fail)
    with pytest.raises(RuntimeError, match="compiled=False"):
        compiled_solve(residual, u)
