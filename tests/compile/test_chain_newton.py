"""Compiled chains: their equations are PETSc's, and so are their solutions."""

import gc

import numpy as np
import pytest
from firedrake import (
    Constant,
    DirichletBC,
    EquationBC,
    Function,
    FunctionSpace,
    IntervalMesh,
    NonlinearVariationalProblem,
    NonlinearVariationalSolver,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    TestFunctions,
    UnitSquareMesh,
    VectorFunctionSpace,
    as_vector,
    assemble,
    conditional,
    derivative,
    ds,
    dx,
    exp,
    gt,
    inner,
    sin,
    split,
    sqrt,
)
from firedrake import TestFunction as Test
from firedrake.exceptions import ConvergenceError
from petsc4py import PETSc
from verification.beams import uneven_mesh

from fdgeom import measures
from fdgeom.compile.executor import newton_of
from fdgeom.errors import CannotCompile
from fdgeom.execution import HeldSNES, Numerics
from fdgeom.operations import Prescribed

NEWTON = {"snes_type": "python", "snes_python_type": "fdgeom.ChainNewton", "mat_type": "matfree"}
LU = {
    "snes_linesearch_type": "basic",
    "mat_type": "matfree",
    "ksp_type": "gmres",
    "ksp_rtol": 1e-13,
    "pc_type": "python",
    "pc_python_type": "fdgeom.ChainLU",
}
# Newton's method squares what is left of the residual: its last update leaves round-off.
TIGHT = {"snes_rtol": 1e-10, "snes_atol": 1e-50, "snes_stol": 1e-10}


def string(cells, boundary=False):
    """A nonlinear string on an elastic bed: all kinds of terms, on cells of different lengths."""
    mesh = uneven_mesh(cells)
    space = VectorFunctionSpace(mesh, "CG", 1, dim=2)
    (s,) = SpatialCoordinate(mesh)
    u, w = Function(space, name="u"), Test(space)
    u.interpolate(as_vector([s + 0.1 * sin(5 * s), 0.2 * s**2]))
    k = Function(FunctionSpace(mesh, "DG", 0)).interpolate(2 + s)
    f = Function(space).interpolate(as_vector([sin(s), -1 - s]))
    c = Constant(0.3)
    slope, h = u.dx(0), measures.cell_length(mesh)
    stretch = sqrt(inner(slope, slope))
    form = k * (stretch - 1) / stretch * inner(slope, w.dx(0)) * measures.midpoint(mesh)
    # A choice between numbers has a condition of the unknowns, and no slope.
    firm = conditional(gt(u[0], 0.01), 1.0, 0.8)
    bed = as_vector(
        [firm * c * u[0] ** 3, exp(-u[1]) * u[1] + conditional(gt(u[0], 0.7), u[0] ** 2, u[0])]
    )
    form += (inner(bed - f, w) + c * h * inner(u.dx(0), w)) * measures.vertex(mesh)
    form += s * inner(u, u) * w[1] * measures.gauss(mesh, 3)
    form += c * u[1] * w[1] * ds(1) + inner(u, w) * h * ds(2)
    bcs = [DirichletBC(space.sub(0), 0.1, 1), DirichletBC(space, (1.5, 0.1), 2)] if boundary else []
    return form, u, bcs


def tied(cells, boundary=False):
    """A string of given stretch: a multiplier in each cell, with no entry on the diagonal."""
    mesh = uneven_mesh(cells)
    space = VectorFunctionSpace(mesh, "CG", 1, dim=2) * FunctionSpace(mesh, "DG", 0)
    z = Function(space, name="z")
    (u, force), (w, nu) = split(z), TestFunctions(space)
    (s,) = SpatialCoordinate(mesh)
    z.subfunctions[0].interpolate(as_vector([s, 0.3 * sin(s)]))
    z.subfunctions[1].interpolate(1 + s)
    middle = measures.midpoint(mesh)
    form = inner(u - as_vector([s, 0.2 * s]), w) * measures.vertex(mesh)
    form += force * inner(u.dx(0), w.dx(0)) * middle
    form += 0.5 * (inner(u.dx(0), u.dx(0)) - 1.1) * nu * middle
    bcs = [DirichletBC(space.sub(0), (0.0, 0.0), 1)] if boundary else []
    return form, z, bcs


CASES = {"string": string, "tied": tied}


def flat(function):
    return np.concatenate([f.dat.data_ro.ravel() for f in function.subfunctions])


@pytest.mark.parametrize("cells", [1, 7, 16, 37])
@pytest.mark.parametrize("name", CASES)
def test_residual_and_update_are_those_of_assembled_matrices(name, cells):
    form, u, _ = CASES[name](cells)
    iteration = newton_of(form, u, [])
    iteration.begin()
    residual = assemble(form)
    norm = np.linalg.norm(flat(residual))
    assert iteration.run() == 0
    assert iteration.report.norm == pytest.approx(norm, rel=1e-13)
    jacobian = assemble(derivative(form, u), mat_type="aij").petscmat
    matrix = jacobian.convert("dense").getDenseArray()
    before, wanted = flat(u), np.linalg.solve(matrix, flat(residual))
    step = iteration.report.step
    # Equations with the factors of the last run: the same update.
    update = iteration.update()
    assert iteration.run(old=True, alone=True) == 0
    np.testing.assert_allclose(iteration.update(), update, atol=1e-12 * np.abs(update).max())
    iteration.set_update(update)
    iteration.run()
    size = iteration.norm(u)
    iteration.end()
    # Both by elimination in double precision.
    tolerance = 1e-15 * np.linalg.cond(matrix) * np.abs(wanted).max()
    np.testing.assert_allclose(before - flat(u), wanted, atol=tolerance)
    assert step == pytest.approx(np.linalg.norm(wanted), rel=1e-10)
    assert size == pytest.approx(np.linalg.norm(flat(u)), rel=1e-13)


@pytest.mark.parametrize("parameters", [NEWTON, LU], ids=["ChainNewton", "ChainLU"])
@pytest.mark.parametrize("name", CASES)
def test_variational_problems_are_solved_like_by_newtonls(name, parameters):
    form, u, bcs = CASES[name](23, boundary=True)
    start = u.copy(deepcopy=True)
    problem = NonlinearVariationalProblem(form, u, bcs=bcs)
    plain = {**TIGHT, "mat_type": "aij", "ksp_type": "preonly", "pc_type": "lu",
             "pc_factor_mat_solver_type": "mumps", "snes_linesearch_type": "basic"}  # fmt: skip
    solver = NonlinearVariationalSolver(problem, solver_parameters=plain)
    solver.solve()
    wanted, iterations = flat(u), solver.snes.getIterationNumber()
    u.assign(start)
    history = []
    solver = NonlinearVariationalSolver(problem, solver_parameters={**TIGHT, **parameters})
    solver.snes.setMonitor(lambda snes, k, norm: history.append(norm))
    solver.solve()
    # Round-off of well conditioned problems.
    np.testing.assert_allclose(flat(u), wanted, rtol=1e-11, atol=1e-12)
    # The last one may fall to round-off or not.
    assert abs(solver.snes.getIterationNumber() - iterations) <= 1
    assert len(history) == solver.snes.getIterationNumber() + 1
    assert history[-1] < 1e-9 * history[0]


def test_the_problem_is_found_after_the_collector_of_garbage():
    """petsc4py empties the dictionary of a PC when it collects a cycle with the last object for that PC."""
    form, u, _ = string(5)
    solver = HeldSNES(form, u, Numerics({**TIGHT, **LU}), essential=[])
    cycle = [solver.snes.getKSP().getPC()]
    cycle.append(cycle)
    del cycle
    gc.collect()
    solver.solve()
    assert solver.krylov_iterations == solver.newton_iterations > 0


def test_a_matrix_without_rows_is_refused_where_values_are_prescribed():
    form, u, _ = string(5)
    given = [Prescribed(np.array([0]))]
    with pytest.raises(ValueError, match="'mat_type' cannot be 'matfree' where values"):
        HeldSNES(form, u, Numerics({**TIGHT, **LU}), essential=given)


def test_a_preconditioner_of_no_problem_is_refused():
    """A PC that belongs to no solver of Firedrake has no residual."""
    matrix = PETSc.Mat().createDense((2, 2), array=np.eye(2), comm=PETSc.COMM_SELF)
    pc = PETSc.PC().create(PETSc.COMM_SELF)
    pc.setOperators(matrix)
    pc.setType("python")
    pc.setPythonType("fdgeom.ChainLU")
    with pytest.raises(PETSc.Error) as caught:
        pc.setUp()
    assert "ChainLU found no variational problem on this PC" in map(str, causes(caught.value))


def test_the_preconditioner_is_an_inverse():
    """One iteration of a Krylov method, and values of coefficients that change are seen."""
    form, u, bcs = string(50, boundary=True)
    problem = NonlinearVariationalProblem(form, u, bcs=bcs)
    parameters = {**LU, "ksp_type": "gmres", "ksp_rtol": 1e-10, "snes_max_it": 30}
    solver = NonlinearVariationalSolver(problem, solver_parameters=parameters)
    solver.solve()
    assert solver.snes.getLinearSolveIterations() == solver.snes.getIterationNumber()
    for coefficient in form.coefficients():
        if coefficient.function_space().ufl_element().embedded_superdegree == 0:
            coefficient.assign(5.0)
    u.interpolate(as_vector([SpatialCoordinate(u.function_space().mesh())[0], 0.1]))
    solver.solve()
    assert solver.snes.getLinearSolveIterations() == solver.snes.getIterationNumber()


def causes(error):
    found = []
    while error is not None:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


@pytest.mark.parametrize("kind", ["plane", "discontinuous", "closed", "many points"])
def test_what_is_no_chain_is_refused(kind):
    lines = {"plane": UnitSquareMesh(2, 2), "closed": PeriodicIntervalMesh(3, 1.0)}
    mesh = lines.get(kind) or IntervalMesh(3, 1.0)
    space = FunctionSpace(mesh, "DG" if kind == "discontinuous" else "CG", 1)
    u = Function(space)
    measure = dx(degree=15) if kind == "many points" else dx
    words = {
        "plane": "interval",
        "discontinuous": "DG0",
        "closed": "straight",
        "many points": "points",
    }
    with pytest.raises(CannotCompile, match=words[kind]):
        newton_of((u**3 - 1) * Test(space) * measure, u, [])


def test_a_form_that_does_not_fit_is_an_error_of_the_solver():
    space = FunctionSpace(IntervalMesh(3, 1.0), "DG", 2)
    u = Function(space)
    problem = NonlinearVariationalProblem((u**3 - 1) * Test(space) * dx, u)
    with pytest.raises(Exception) as caught:  # noqa: PT011 (petsc4py may wrap it)
        NonlinearVariationalSolver(problem, solver_parameters=NEWTON).solve()
    assert any(isinstance(e, CannotCompile) for e in causes(caught.value)) or "DG0" in str(
        caught.value
    )


def test_divergence_is_told_and_leaves_the_unknown():
    mesh = IntervalMesh(5, 1.0)
    space = FunctionSpace(mesh, "CG", 1)
    u = Function(space).assign(0.3)
    problem = NonlinearVariationalProblem((u**2 + 1) * Test(space) * measures.vertex(mesh), u)
    parameters = {**NEWTON, "snes_max_it": 7}
    solver = NonlinearVariationalSolver(problem, solver_parameters=parameters)
    with pytest.raises(ConvergenceError):
        solver.solve()
    assert solver.snes.getConvergedReason() < 0
    assert np.all(u.dat.data_ro == 0.3)


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_singular_and_lost_equations_are_noticed(value):
    """A stiffness that vanishes in one cell of a string that nothing else holds; then a NaN there."""
    mesh = IntervalMesh(20, 1.0)
    space = FunctionSpace(mesh, "CG", 1)
    u, w = Function(space), Test(space)
    k = Function(FunctionSpace(mesh, "DG", 0)).assign(1.0)
    k.dat.data_wo[9:11] = value
    form = (k * u.dx(0) * w.dx(0) - w) * measures.midpoint(mesh)
    iteration = newton_of(form, u, [])
    iteration.begin()
    assert iteration.run() != 0


@pytest.mark.parametrize("given", ["form_compiler_parameters", "boundary conditions but"])
def test_what_a_problem_has_beside_its_form(given):
    """Other equations would be solved: those of another quadrature, or without an EquationBC."""
    space = FunctionSpace(IntervalMesh(8, 1.0), "CG", 1)
    u, v = Function(space), Test(space)
    form = (u.dx(0) * v.dx(0) + exp(4 * u) * v) * dx
    options = {"bcs": DirichletBC(space, 0, 1)}
    if given == "form_compiler_parameters":
        options["form_compiler_parameters"] = {"quadrature_degree": 1}
    else:
        options["bcs"] = EquationBC(u.dx(0) * v * ds(1) == 0, u, 1)
    problem = NonlinearVariationalProblem(form, u, **options)
    with pytest.raises(Exception) as caught:  # noqa: PT011 (petsc4py may wrap it)
        NonlinearVariationalSolver(problem, solver_parameters=NEWTON).solve()
    assert any(given in str(e) for e in causes(caught.value))
