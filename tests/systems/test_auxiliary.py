"""Functions that an elliptic form determines from the state; the Euler equations by their vorticity."""

import re
from itertools import pairwise

import numpy as np
import pytest
from firedrake import (
    Constant,
    DirichletBC,
    Function,
    FunctionSpace,
    PeriodicRectangleMesh,
    SpatialCoordinate,
    TestFunction,
    assemble,
    cos,
    dx,
    grad,
    inner,
    pi,
    sin,
)

import fdgeom as fg
from fdgeom.systems.poisson.checks import riesz

WIND = 0.8


def vorticity(x, y, t=0.0):
    """Two modes of -Δψ = 5ψ in a channel: at rest among themselves, carried along by the wind."""
    x = x - Constant(WIND) * Constant(t)
    return 5 * (cos(x) * sin(2 * y) + Constant(0.5) * cos(2 * x + 1) * sin(y))


def jacobian(omega):
    return lambda a, b: omega * (a.dx(0) * b.dx(1) - a.dx(1) * b.dx(0)) * dx


def pairing(a, b):
    return a * b * dx


def channel(cells=8):
    """ω_t + u·∇ω = 0 in a channel of length 2π between walls, u = (ψ_y, -ψ_x), ψ = ψ' + Uy."""
    mesh = PeriodicRectangleMesh(2 * cells, cells, 2 * pi, pi, direction="x")
    V = FunctionSpace(mesh, "CG", 1)
    x, y = SpatialCoordinate(mesh)
    omega, psi, phi = Function(V, name="omega"), Function(V, name="psi"), TestFunction(V)
    omega.interpolate(vorticity(x, y))
    poisson = inner(grad(psi), grad(phi)) * dx - omega * phi * dx
    system = fg.PoissonSystem(
        omega,
        (0.5 * omega * psi + Constant(WIND) * y * omega) * dx,
        jacobian(omega),
        pairing,
        names=("omega",),
        casimirs={"enstrophy": 0.5 * omega**2 * dx, "circulation": omega * dx},
        auxiliary={psi: (poisson, DirichletBC(V, 0, "on_boundary"))},
    )
    return system, psi


def test_a_question_for_coefficients_solves_nothing():
    system, psi = channel(2)
    psi.assign(0.0)
    (wind,) = system.model.coefficients()
    assert float(wind) == WIND
    assert not psi.dat.data_ro.any()


def error(system, t):
    x, y = SpatialCoordinate(system.mesh)
    gap = vorticity(x, y, t) - system.state
    return np.sqrt(assemble(gap**2 * dx(degree=6)))


@pytest.mark.parametrize("stepper", [fg.ImplicitMidpoint, fg.DiscreteGradient])
def test_energy_and_enstrophy(stepper):
    system, psi = channel()
    rng = np.random.default_rng(3)
    system.state.dat.data_wo[...] += rng.uniform(-1, 1, system.state.dat.data_ro.shape)
    history = stepper(system, 0.1).run(
        until=5.0, monitors=[fg.Energy(), fg.Casimir()], progress=False
    )
    for name in ("energy", "enstrophy", "circulation"):
        # Fifty solves, each to some 1e-15 of the vorticity.
        scale = history["enstrophy"][0]
        assert np.ptp(history[name]) < 1e-12 * scale
    # The flow is not at rest, and psi is that of the last state.
    assert error(system, 0.0) > 1
    phi = TestFunction(psi.function_space())
    rest = assemble(inner(grad(psi), grad(phi)) * dx - system.state * phi * dx)
    DirichletBC(psi.function_space(), 0, "on_boundary").zero(rest)
    assert np.abs(rest.dat.data_ro).max() < 1e-13


def test_order_in_space_and_time():
    """Against the exact solution, a shape that is carried along."""
    errors = []
    for cells in (8, 16, 32):
        system, _ = channel(cells)
        fg.ImplicitMidpoint(system, 0.8 / cells).advance(cells)
        errors.append(error(system, 0.8))
    rates = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert rates == pytest.approx(2, abs=0.2)
    # In time alone, on one mesh: the differences of solutions with halved steps.
    ends = []
    for steps in (8, 16, 32, 64):
        system, _ = channel(8)
        fg.ImplicitMidpoint(system, 0.8 / steps).advance(steps)
        ends.append(np.array(system.state.dat.data_ro))
    gaps = np.array([np.abs(b - a).max() for a, b in pairwise(ends)])
    assert np.log2(gaps[:-1] / gaps[1:]) == pytest.approx(2, abs=0.2)


def test_variational_derivative_is_the_streamfunction():
    system, psi = channel()
    y = SpatialCoordinate(system.mesh)[1]
    slope = Function(system.space)
    riesz(system, system.forms.energy_derivative(system.test), slope).solve()
    total = Function(psi.function_space()).interpolate(psi + Constant(WIND) * y)
    assert slope.dat.data_ro == pytest.approx(total.dat.data_ro, abs=1e-13)
    assert system.forms.energy_degree == 2
    assert system.forms.density_gradient is not None
    assert set(system.functions()) == {"omega", "psi"}
    assert system.antisymmetry_defect() < 1e-14


def general(energy, form, **options):
    mesh = PeriodicRectangleMesh(4, 2, 2 * pi, pi, direction="x")
    V = FunctionSpace(mesh, "CG", 1)
    x, y = SpatialCoordinate(mesh)
    z, psi, phi = Function(V, name="z"), Function(V, name="psi"), TestFunction(V)
    z.interpolate(1 + 0.3 * cos(x) * y)
    equations = {psi: (form(psi, z, phi), DirichletBC(V, Constant(0.2), "on_boundary"))}
    return fg.PoissonSystem(z, energy(psi, z), jacobian(z), pairing, auxiliary=equations, **options)


def test_derivative_by_way_of_the_adjoint():
    """An operator that is not symmetric and depends on the state, against differences."""
    system = general(
        lambda psi, z: (0.5 * z * psi + psi**4 / 4) * dx,
        lambda psi, z, phi: (
            ((1 + z**2) * inner(grad(psi), grad(phi)) + psi.dx(0) * phi + psi * phi) * dx
            - z**2 * phi * dx
        ),
    )
    assert system.forms.energy_degree is None
    w = Function(system.space)
    w.dat.data_wo[...] = np.random.default_rng(0).uniform(-1, 1, w.dat.data_ro.shape)
    system.consistency.agree()
    slope = assemble(system.forms.energy_derivative(w))
    start, values = np.array(system.state.dat.data_ro), []
    for e in (1e-4, -1e-4):
        system.state.dat.data_wo[...] = start + e * w.dat.data_ro
        values.append(system.energy())
    # Differences of second order in 1e-4.
    assert slope == pytest.approx((values[0] - values[1]) / 2e-4, rel=1e-6)
    assert abs(slope) > 0.1
    with pytest.raises(ValueError, match="needs an energy of second degree"):
        fg.DiscreteGradient(system, 0.1)
    # The midpoint rule takes it all the same.
    fg.ImplicitMidpoint(system, 0.01).advance()


def product(psi, z):
    return 0.5 * z * psi * dx


def elliptic(psi, z, phi):
    return (inner(grad(psi), grad(phi)) - z * phi) * dx


def test_a_wrong_gradient_is_refused():
    with pytest.raises(ValueError, match="^gradient: it is not the"):
        general(product, elliptic, gradient=lambda z: z)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (
            lambda psi, z, phi: psi**2 * phi * dx,
            "auxiliary: the forms must be of first degree in psi",
        ),
        (lambda psi, z, phi: z * phi * dx, "auxiliary: the forms must be of first degree in psi"),
        (lambda psi, z, phi: psi * z * dx, "auxiliary[psi] must have 1 argument, this form has 0"),
        (lambda psi, z, phi: (psi.dx(1).dx(1) - z) * phi * dx, "auxiliary: the form does not det"),
    ],
)
def test_refused_forms(form, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        general(product, form)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: fg.RungeKutta4(s, 0.1), "RungeKutta4 moves the state alone"),
        (lambda s: fg.GaussLegendre(2)(s, 0.1), "GaussLegendre2 moves the state alone"),
        (
            lambda s: fg.HamelFieldIntegrator(s, 0.1),
            "the trapezoidal rule does not treat auxiliary",
        ),
        (
            lambda s: fg.Splitting(s, 0.1, energies=[s.state * dx, s.state**2 * dx]),
            "with auxiliary functions the energy cannot be exchanged",
        ),
        (
            lambda s: fg.ImplicitMidpoint(s, 0.1, compiled=True),
            "values of boundary conditions are evaluated in Python",
        ),
    ],
)
def test_refused_steppers(make, message):
    with pytest.raises(ValueError, match=message):
        make(general(product, elliptic))
