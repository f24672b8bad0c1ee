"""Lists on general meshes: nodes found through maps, kernels in cells, unknowns of whole cells."""

from __future__ import annotations

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    TestFunction,
    UnitCubeMesh,
    UnitSquareMesh,
    VectorFunctionSpace,
    assemble,
    conditional,
    ds,
    dx,
    grad,
    inner,
    lt,
    sin,
)
from verification.beams import SOFT, set_smooth, uneven_mesh
from ways import PETScExecutor, take_steps

import fdgeom as fg
from fdgeom import measures
from fdgeom.compile import CompiledExecutor, CompiledTrajectory
from fdgeom.compile.map_layout import MapLayout
from fdgeom.errors import CannotCompile
from fdgeom.operations import Assemble, Check, Map, Solve, Tangents, linearise

MESHES = {
    "triangles": lambda: UnitSquareMesh(5, 3),
    "quadrilaterals": lambda: UnitSquareMesh(5, 3, quadrilateral=True),
    "tetrahedra": lambda: UnitCubeMesh(2, 3, 1),
}


def random(space, name, seed=1):
    f = Function(space, name=name)
    for part in f.subfunctions:
        values = np.random.default_rng(seed).uniform(0.5, 1.5, part.dat.data_ro.shape)
        part.dat.data_wo[...] = values
    return f


def run_both(operations, written, dt=0.1):
    """The values that compiled code and PETSc give to some Functions, from the same start."""
    start = [np.array(f.dat.data_ro) for f in written]
    found = []
    for executor in (CompiledExecutor(operations), PETScExecutor(operations)):
        for f, values in zip(written, start, strict=True):
            f.dat.data_wo[...] = values
        if isinstance(executor, CompiledExecutor):
            assert isinstance(executor.unit.layout, MapLayout)
            assert executor.advance(1, 0.0, dt) == (1, None)
        else:
            executor.step(0.0, dt)
        found.append([np.array(f.dat.data_ro) for f in written])
    return zip(*found, strict=True)


@pytest.mark.parametrize("name", MESHES)
def test_forms_are_assembled_as_by_firedrake(name):
    """By a nodal and by a cellwise field, set and added, with the length and a Constant in the form."""
    mesh = MESHES[name]()
    u = random(VectorFunctionSpace(mesh, "CG", 2, dim=2), "u")
    k, dt, c = random(FunctionSpace(mesh, "DG", 0), "k", 2), Constant(0.0), Constant(0.7)
    work = dt * k * (c + inner(u, u)) * inner(grad(u), grad(u)) * dx(degree=4)
    targets = {f: random(f.function_space(), f"by {f.name()}", 3) for f in (u, k)}
    added = Assemble(work=work, by=targets, adds=[targets[k]], dt=dt)
    for found, expected in run_both([added], list(targets.values())):
        assert np.abs(found - expected).max() <= 1e-13 * np.abs(expected).max()


@pytest.mark.parametrize("family", ["CG", "DG"])
def test_solves_of_nodes_and_of_cells(family):
    """A lumped mass, and the full mass of linear functions in cells, both nonlinear."""
    mesh = UnitSquareMesh(5, 3)
    space = VectorFunctionSpace(mesh, family, 1, dim=2)
    u, test, g = (random(space, name, k) for k, name in enumerate("utg"))
    x = SpatialCoordinate(mesh)
    measure = dx(scheme="KMV", degree=1) if family == "CG" else dx(degree=4)
    cubic = (1 + 0.1 * x[0] + inner(u, u)) * u
    work = inner(cubic, test) * measure - inner(g, test) * (1 + x[1]) * dx(degree=4)
    for found, expected in run_both([Solve(work=work, test=test, unknown=u, name="u")], [u]):
        assert np.abs(found - expected).max() <= 1e-12
    residual = assemble(Solve(work=work, test=test, unknown=u, name="u").residual)
    assert np.abs(residual.dat.data_ro).max() <= 1e-14


def test_the_estimated_degree_of_general_quadrilaterals():
    """It has the degree of the measure, where the nodes are no points of the quadrature any more."""
    mesh = UnitSquareMesh(3, 2, quadrilateral=True)
    mesh.coordinates.dat.data_wo[...] += (
        random(mesh.coordinates.function_space(), "x").dat.data_ro / 9
    )
    space = FunctionSpace(mesh, "DQ", 1)
    u, test, f = (random(space, name, k) for k, name in enumerate("utf"))
    work = ((1 + f) * u - f**2) * test * dx
    for found, expected in run_both([Solve(work=work, test=test, unknown=u, name="u")], [u]):
        assert np.abs(found - expected).max() <= 1e-13


class Listed:
    """A solve in each cell, what cells give to nodes, and an assignment at nodes."""

    def __init__(self):
        self.mesh = mesh = UnitSquareMesh(3, 2)
        self.u, test = (random(FunctionSpace(mesh, "DG", 1), name) for name in ("u", "test"))
        self.q, force = (random(FunctionSpace(mesh, "CG", 1), name, 4) for name in ("q", "force"))
        u, q, full = self.u, self.q, dx(degree=4)
        self.operations = [
            Solve(work=((1 + u**2) * u - q * sin(q)) * test * full, test=test, unknown=u, name="u"),
            Assemble(work=u**2 * inner(grad(q), grad(q)) * dx, by={q: force}),
            Map(values={q: q + 0.1 * force}),
        ]
        self.start = np.array(q.dat.data_ro)
        self.along, self.bar = (f(np.arange(self.start.size)) for f in (np.sin, np.cos))

    def put(self, shift):
        self.q.dat.data_wo[...] = self.start + shift * self.along
        self.u.assign(1.0)

    def pulled(self, operations, seed, f):
        """The cotangent of a Function before the list, from that of another one after it."""
        trajectory = CompiledTrajectory(operations, [seed], [f], layout=MapLayout(self.mesh))
        trajectory.cotangents[seed].dat.data_wo[...] = self.bar
        take_steps(trajectory, 1, 0.0, 1.0)
        trajectory.pull()
        return np.array(trajectory.cotangents[f].dat.data_ro)

    def differences(self, value, h=1e-4):
        """The derivative of what ``value`` returns along the direction."""
        found = []
        for sign in (1, -1):
            self.put(sign * h)
            found.append(value())
        return (found[0] - found[1]) / (2 * h)


def test_derivatives_of_a_list():
    """Against differences of the list."""
    case = Listed()

    def run():
        assert CompiledExecutor(case.operations).advance(1, 0.0, 1.0) == (1, None)
        return case.bar @ case.q.dat.data_ro

    slope = case.differences(run)
    case.put(0)
    assert case.pulled(case.operations, case.q, case.q) @ case.along == pytest.approx(
        slope, rel=1e-6
    )


def test_second_derivatives_of_a_list():
    """The adjoint of the list with its tangents, against differences of gradients."""
    case = Listed()
    curve = case.differences(lambda: case.pulled(case.operations, case.q, case.q))
    dots = Tangents([f for op in case.operations for f in op.writes])
    dots[case.q].dat.data_wo[...] = case.along
    case.put(0)
    found = case.pulled(linearise(case.operations, dots), dots[case.q], case.q)
    assert np.abs(found - curve).max() <= 1e-6 * np.abs(curve).max()


def test_gradient_by_a_number():
    """Of an energy with terms of nodes and of cells: its differences, and through PETSc."""
    mesh = UnitSquareMesh(3, 3)
    space = FunctionSpace(mesh, "CG", 1)
    number = Function(FunctionSpace(mesh, "R", 0), name="number")
    nodes = dx(scheme="KMV", degree=1)

    def gradient(value, **options):
        number.assign(value)
        u, p = random(space, "u"), random(space, "p", 2)
        energy = 0.5 * p**2 * nodes + number * (
            u**4 * nodes + number * inner(grad(u), grad(u)) * dx
        )
        system = fg.HamiltonianSystem(u, p, energy, measure=nodes)
        stepper = fg.StormerVerlet(system, 0.02, **options)
        found, (bar,) = fg.gradient(stepper, 4, u**2 * dx, [number])
        assert (stepper.replay.why_not_compiled is None) == (not options)
        return found, float(bar.dat.data_ro[0])

    _, slope = gradient(1.2)
    assert slope == pytest.approx(gradient(1.2, compiled=False)[1], rel=1e-12)
    h = 1e-4
    difference = (gradient(1.2 + h)[0] - gradient(1.2 - h)[0]) / (2 * h)
    assert slope == pytest.approx(difference, rel=1e-6)


def test_a_check_in_cells_names_the_step():
    mesh = UnitSquareMesh(2, 2)
    (q,) = (random(FunctionSpace(mesh, "CG", 1), "q"),)
    executor = CompiledExecutor(
        [
            Map(values={q: 2 * q}),
            Check(value=inner(grad(q), grad(q)), limit=1e3, message="too steep"),
        ]
    )
    steps, failure = executor.advance(50, 0.0, 1.0)
    assert 0 < steps < 10
    assert str(failure) == "too steep"
    slopes = Function(FunctionSpace(mesh, "DG", 0)).interpolate(inner(grad(q), grad(q)))
    assert 250 < slopes.dat.data_ro.max() <= 1e3


@pytest.mark.parametrize("degree", [2, 3])
def test_beams_of_higher_degree(degree):
    """Strains inside the cells, which couple there, and momenta at Gauss–Lobatto points."""
    found = []
    for compiled in (True, False):
        beam = set_smooth(fg.Beam(uneven_mesh(5), SOFT, degree=degree))
        stepper = fg.SymmetricPoissonIntegrator(beam, 2e-3, compiled=compiled)
        stepper.advance(10)
        found.append([f.dat.data_ro.copy() for f in (beam.strain, beam.momentum, beam.position)])
    for one, other in zip(*found, strict=True):
        assert np.abs(one - other).max() <= 1e-12


def test_what_is_not_local_is_refused_with_the_term():
    mesh = UnitSquareMesh(2, 2)
    u, test = (random(FunctionSpace(mesh, "CG", 1), name) for name in ("u", "test"))
    mass = Solve(work=(u - 1) * test * dx, test=test, unknown=u, name="u")
    with pytest.raises(CannotCompile, match="neighbouring nodes: the integral over the cells"):
        CompiledExecutor([mass])


# --- coefficients that depend on the place -------------------------------------------------------------
DT = 0.1


def after_a_step(mesh, space, energy_of, measure):
    """q after one step of Störmer–Verlet from q = 1 at rest, for q̈ = -k q: 1 - Δt² k/2."""
    q, p = Function(space), Function(space)
    q.assign(1.0)
    system = fg.HamiltonianSystem(q, p, 0.5 * p**2 * measure + energy_of(q), measure=measure)
    stepper = fg.StormerVerlet(system, DT)
    # TSFC's kernels are those of cells.
    assert stepper.is_compiled or "facet" in stepper.why_not_compiled
    stepper.advance(1)
    return q.dat.data_ro


def test_places_in_cells():
    """DG0: the quadrature of a form has several places in a cell, and others on its facets."""
    mesh = UnitSquareMesh(4, 4)
    space = FunctionSpace(mesh, "DG", 0)
    x, _ = SpatialCoordinate(mesh)
    w = TestFunction(space)
    weight = assemble(w * dx).dat.data_ro
    for measure in (dx, ds(2)):
        found = after_a_step(mesh, space, lambda q, m=measure: 0.5 * (1 + x**2) * q**2 * m, dx)
        # Firedrake's own integrals.
        k = assemble((1 + x**2) * w * measure).dat.data_ro / weight
        assert found == pytest.approx(1 - 0.5 * DT**2 * k, rel=1e-13)


def test_the_seam_of_a_ring():
    """The node at the seam has the place 0 in one of its cells and 1 in the other."""
    mesh = PeriodicIntervalMesh(10, 1.0)
    space = FunctionSpace(mesh, "CG", 1)
    (x,) = SpatialCoordinate(mesh)
    at_nodes = measures.vertex(mesh)
    found = after_a_step(
        mesh,
        space,
        lambda q: 0.5 * conditional(lt(x, 0.45), 1.0, 4.0) * q**2 * at_nodes,
        at_nodes,
    )
    # One node has both; four and five of ten are on one side.
    k = np.sort((1 - found) / (0.5 * DT**2))
    assert k == pytest.approx(np.sort([2.5] + 4 * [1.0] + 5 * [4.0]), rel=1e-11)
