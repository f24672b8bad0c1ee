"""Steppers for canonical systems: published numbers, traits, two paths, refusals."""

import numpy as np
import pytest
from firedrake import Function, FunctionSpace, SpatialCoordinate, UnitIntervalMesh, dx
from firedrake.assemble import get_assembler
from verification import small_systems
from verification.beams import SOFT, uneven_mesh
from verification.hamiltonian_systems import (
    DOUBLE_PENDULUM_AT_10,
    double_pendulum,
    henon_heiles,
    kepler,
    kepler_energy,
    mixed,
    pendulum,
    put,
    ring_wave,
    rows,
)
from ways import check_way, number_of_solves

import fdgeom as fg

E, V, R, G = fg.SymplecticEuler, fg.StormerVerlet, fg.RungeKutta4, fg.GeneratingFunction4
QUADRATIC = ("quadratic energy", "quadratic Casimirs")


@pytest.mark.parametrize(
    ("cls", "order", "symmetric", "symplectic", "conserves"),
    [
        (E, 1, False, True, ()),
        (V, 2, True, True, ()),
        (R, 4, False, False, ()),
        (G, 4, True, True, ()),
        *((fg.GaussLegendre(s), 2 * s, True, True, QUADRATIC) for s in (1, 2, 3, 4)),
        (fg.Composition(V, 8), 8, True, True, ()),
        (fg.Composition(V, 4, "blanes-moan"), 4, True, True, ()),
    ],
)
def test_traits(cls, order, symmetric, symplectic, conserves):
    assert (cls.order, cls.symmetric, cls.symplectic) == (order, symmetric, symplectic)
    assert cls.conserves == conserves


def test_class_of_stages_is_made_once():
    assert fg.GaussLegendre(2) is fg.GaussLegendre(stages=2)
    assert fg.GaussLegendre(3).__name__ == "GaussLegendre3"


# --- Kepler, e = 0.6 ------------------------------------------------------------------------------
def energy_errors(stepper, steps):
    """|ΔH| after every step."""
    start = kepler_energy(rows(stepper.system))
    errors = np.empty(steps)
    for k in range(steps):
        stepper.advance()
        errors[k] = abs(kepler_energy(rows(stepper.system)) - start)[0]
    return errors


@pytest.mark.parametrize(
    ("steps", "periods", "published"),
    [(200, 100, 3.676e-3), (400, 10, 9.153e-4), (800, 10, 2.286e-4)],
)
def test_verlet_on_kepler(steps, periods, published):
    """The energy error of the first period is that of a hundred: no drift."""
    errors = energy_errors(V(kepler(), 2 * np.pi / steps), periods * steps)
    # Four digits are published.
    assert errors[:steps].max() == pytest.approx(published, rel=2e-4)
    # Later periods meet the pericentre between two steps elsewhere: at most a thousandth more.
    assert errors.max() == pytest.approx(published, rel=1e-3)


def test_runge_kutta_on_kepler_drifts():
    """ΔH = -5.20e-6 after 50 periods of 400 steps; half of it after half the time."""
    system = kepler()
    stepper = R(system, 2 * np.pi / 400)
    drift = []
    for _ in range(2):
        stepper.advance(25 * 400)
        drift.append(kepler_energy(rows(system))[0] + 0.5)
    assert drift[1] == pytest.approx(-5.20e-6, rel=1e-3)
    assert drift[0] == pytest.approx(drift[1] / 2, rel=0.01)


@pytest.mark.parametrize("cls", [E, V, G, fg.GaussLegendre(2), fg.Composition(V, 8)])
def test_angular_momentum_of_kepler(cls):
    """L = .8 is bilinear in q and p: kept by all symplectic methods here to round-off."""
    system = kepler()
    cls(system, 2 * np.pi / 200).advance(400)
    x, y, u, v = rows(system)[0]
    # Four hundred steps through the pericentre of round-off 1e-16 each, in solves of some 1e-15.
    assert x * v - y * u == pytest.approx(0.8, abs=1e-12)


# --- others ---------------------------------------------------------------------------------------
def test_midpoint_on_the_double_pendulum():
    system = double_pendulum()
    assert system.energy() == pytest.approx(-40.2181791754, abs=1e-10)
    start, stepper = rows(system), fg.ImplicitMidpoint(system, 1.0)
    for dt, published in ((0.02, 3.09e-2), (0.01, 7.55e-3)):
        put(system, start)
        stepper.dt = dt
        stepper.advance(round(10 / dt))
        error = np.linalg.norm(rows(system)[0, :2] - DOUBLE_PENDULUM_AT_10)
        assert error == pytest.approx(published, rel=2e-3)  # three digits are published


def test_gauss_on_the_double_pendulum():
    """The reference to its last digit, by order six."""
    system = double_pendulum()
    fg.GaussLegendre(3)(system, 0.01).advance(1000)
    assert rows(system)[0, :2] == pytest.approx(DOUBLE_PENDULUM_AT_10, abs=1e-8)


@pytest.mark.parametrize("stages", [2, 3])
def test_gauss_on_the_rigid_body(stages):
    """Energy and Casimir, both quadratic, to round-off, though the bracket is not constant."""
    system, _ = small_systems.rigid_body()
    casimir = get_assembler(system.casimirs()["norm"])
    start = system.energy(), casimir.assemble()
    assert start[0] == pytest.approx(0.6471252793138, abs=1e-13)
    fg.GaussLegendre(stages)(system, 0.02).advance(500)
    assert (system.energy(), casimir.assemble()) == pytest.approx(start, abs=1e-13)
    reference = (0.40706613659, 0.28300742681, 0.86844916766)
    # Errors of some dt⁴/700 and dt⁶.
    tolerance = {2: 1e-8, 3: 2e-11}[stages]
    assert system.state.dat.data_ro[0] == pytest.approx(reference, abs=tolerance)


METHODS = {
    "Euler": E,
    "Verlet": V,
    "Runge-Kutta": R,
    "generating function": G,
    "Gauss 2": fg.GaussLegendre(2),
    "composed to 8": fg.Composition(V, 8),
    "Blanes and Moan": fg.Composition(V, 4, "blanes-moan"),
}


@pytest.mark.parametrize("name", METHODS)
def test_two_paths(name):
    """Compiled steps and PETSc SNES, from the same forms: the same to round-off."""
    build = henon_heiles if name in ("Verlet", "composed to 8", "Blanes and Moan") else mixed
    start = np.random.default_rng(1).uniform(-0.4, 0.4, (11, 4))
    ends = []
    for compiled in (True, False):
        system = build(start)
        stepper = METHODS[name](system, 0.1, compiled=compiled)
        stepper.advance(3)
        stepper.advance(9)
        check_way(stepper, compiled)
        if name != "composed to 8":  # compiled, its neighbouring kicks are joined
            assert stepper.solver_stats()["solves"] == 12 * number_of_solves(stepper)
        ends.append(rows(system))
    assert np.abs(ends[0] - ends[1]).max() < 1e-12
    assert np.abs(ends[0] - start).max() > 0.1


@pytest.mark.parametrize("name", METHODS)
def test_symmetry(name):
    """Back with -dt: to the start where the method is symmetric, and only there."""
    build = henon_heiles if name in ("Verlet", "composed to 8", "Blanes and Moan") else mixed
    system = build()
    start, stepper = rows(system), METHODS[name](system, 0.1)
    stepper.advance()
    stepper.clock = stepper.clock.with_dt(-stepper.dt)  # which the public attribute refuses
    stepper.advance()
    back = np.abs(rows(system) - start).max()
    # A step with an error of order five that is not undone leaves some dt⁵/100.
    assert back < 1e-14 if stepper.symmetric else back > 1e-8


def test_the_two_euler_methods_are_adjoint():
    system = mixed()
    start = rows(system)
    E(system, 0.1).advance()
    stepper = E(system, 0.1, first="q")
    stepper.clock = stepper.clock.with_dt(-0.1)
    stepper.advance()
    assert np.abs(rows(system) - start).max() < 1e-14


def test_options_by_part():
    E(mixed(), 0.1, solver_parameters={"p_snes_rtol": 1e-12, "q_ksp_type": "preonly"})
    with pytest.raises(ValueError, match="p_snes_rtoll|snes_rtoll"):
        E(mixed(), 0.1, solver_parameters={"p_snes_rtoll": 1e-12}).advance()


# --- fields ---------------------------------------------------------------------------------------
def ring_matrices(cells):
    h = 2 * np.pi / cells
    ring = np.roll(np.eye(cells), 1, axis=0) + np.roll(np.eye(cells), -1, axis=0)
    return h, h / 6 * (4 * np.eye(cells) + ring), (2 * np.eye(cells) - ring) / h


def on_ring(system):
    """u and p in the order of the ring."""
    from firedrake import SpatialCoordinate, cos, sin

    (x,) = SpatialCoordinate(system.mesh)
    c, s = (Function(system.q.function_space()).interpolate(f(x)).dat.data_ro for f in (cos, sin))
    order = np.argsort(np.arctan2(s, c))
    return np.array(system.q.dat.data_ro[order]), np.array(system.p.dat.data_ro[order])


@pytest.mark.parametrize("lumped", [True, False])
def test_verlet_of_a_field(lumped):
    """u_tt = u_xx (- u³ if lumped) in CG1 against matrices; diagonal mass runs in compiled code."""
    n, dt = 12, 0.1
    measure = dx(scheme="KMV", degree=1) if lumped else dx
    system = ring_wave(n, 1.0 if lumped else 0.0, measure=measure)
    u, p = on_ring(system)
    h, mass, stiffness = ring_matrices(n)

    def force(u):
        return -stiffness @ u / h - u**3 if lumped else -np.linalg.solve(mass, stiffness @ u)

    for _ in range(10):
        p = p + dt / 2 * force(u)
        u = u + dt * p
        p = p + dt / 2 * force(u)
    stepper = V(system, dt)
    assert stepper.is_compiled is lumped
    stepper.advance(10)
    for got, expected in zip(on_ring(system), (u, p), strict=True):
        assert got == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("cls", [fg.GaussLegendre(2), R])
def test_field_with_the_gradient_as_an_unknown(cls):
    """The same wave as a Poisson system whose δh/δz is solved for, and as a canonical one."""
    ends = []
    for system in (small_systems.wave(8), ring_wave(8, 0.0)):
        start = system.energy()
        cls(system, 0.1).advance(10)
        ends.append([np.array(part.dat.data_ro) for part in system.parts])
        drift = abs(system.energy() - start)
        assert drift < 1e-13 if cls.symplectic else drift > 1e-8
    for a, b in zip(*ends, strict=True):
        assert a == pytest.approx(b, abs=1e-12)


def varying():
    """Its δh/δq varies in the cell, and the space has a value for each cell."""
    mesh = fg.copies(1)
    q, p = (Function(FunctionSpace(mesh, "DG", 0)) for _ in range(2))
    (x,) = SpatialCoordinate(mesh)
    return fg.HamiltonianSystem(q.assign(1.0), p, (p**2 / 2 + (1 + x) * q**2 / 2) * dx)


# --- refusals -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: V(mixed(), 0.1), ValueError, "system: StormerVerlet is explicit and needs a sep"),
        (lambda: fg.Composition(V, 8)(mixed(), 0.1), ValueError, "system: StormerVerletOrder8 is"),
        (lambda: V(double_pendulum(), 0.1), ValueError, "system: StormerVerlet is explicit and n"),
        (lambda: V(small_systems.pendulum(), 0.1), TypeError, "system: StormerVerlet needs a Ham"),
        (lambda: E(small_systems.rigid_body()[0], 0.1), TypeError, "system: SymplecticEuler need"),
        (lambda: G(small_systems.pendulum(), 0.1), TypeError, "system: GeneratingFunction4 needs"),
        (lambda: G(ring_wave(), 0.1), ValueError, "system: GeneratingFunction4 needs an energy w"),
        (lambda: G(varying(), 0.1), ValueError, "system: GeneratingFunction4 needs an energy who"),
        (lambda: R(None, 0.1), TypeError, "system: RungeKutta4 needs a PoissonSystem"),
        (lambda: R(beam(), 0.1), ValueError, "system: RungeKutta4 moves the state alone"),
        (lambda: fg.GaussLegendre(2)(beam(), 0.1), ValueError, "system: GaussLegendre2 moves the"),
        (lambda: fg.GaussLegendre(5), ValueError, "stages must be one of 1, 2, 3, 4"),
        (lambda: fg.GaussLegendre(2.0), ValueError, "stages must be one of 1, 2, 3, 4"),
        (lambda: V(pendulum(), 0.1, first="x"), ValueError, "first must be one of 'q', 'p'"),
        (lambda: V(pendulum(), 0.0), ValueError, "dt must be a positive number"),
        (lambda: V(pendulum((np.nan, 0.0)), 0.1), ValueError, "q holds values that are not fin"),
        (lambda: fg.Composition(V, 7), ValueError, "order must be one of 4, 6, 8"),
        (lambda: fg.Composition(V, 4, "ruth"), ValueError, "scheme must be one of ('suzuki', 'yo"),
        (lambda: fg.Composition(V, 6, "blanes-moan"), ValueError, "scheme must be one of ('kahan"),
        (lambda: fg.Composition(E), ValueError, "stepper_class must be symmetric and of order 2"),
        (lambda: blanes_moan_of_one_flow(), ValueError, "scheme: 'blanes-moan' needs a method of"),
    ],
)
def test_refused(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value).startswith(message)


def beam():
    return fg.Beam(uneven_mesh(8), SOFT)


def blanes_moan_of_one_flow():
    return fg.Composition(fg.ImplicitMidpoint, 4, "blanes-moan")(pendulum(), 0.1)


def test_the_refusal_says_what_would_do():
    with pytest.raises(ValueError, match=r"ImplicitMidpoint, GaussLegendre\(stages\) or Sympl"):
        V(mixed(), 0.1)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("cls", [V, R, E])
def test_explicit_step_that_fails(cls, compiled):
    """A planet at the centre: StepFailed with the state as before, no silent NaN."""
    system = kepler()
    stepper = cls(system, 0.1, compiled=compiled)
    put(system, np.zeros(4))
    with pytest.raises(fg.StepFailed):
        stepper.advance()
    assert np.array_equal(rows(system), np.zeros((1, 4)))
    assert stepper.steps == 0


def test_start_in_another_space():
    mesh = fg.copies(2)
    q, p = Function(FunctionSpace(mesh, "DG", 0)), Function(FunctionSpace(mesh, "DG", 1))
    with pytest.raises(ValueError, match="p must be in the function space of q"):
        fg.HamiltonianSystem(q, p, 0.5 * p**2 * dx)


def test_gauss_on_elements_without_values_at_nodes():
    """q̇ = p, ṗ = -q: a step multiplies q + ip by R(-ih), R(z) = (1 + z/2 + z²/12)/(1 - z/2 + z²/12)."""
    space, h = FunctionSpace(UnitIntervalMesh(2), "HER", 3), 0.3
    q, p = Function(space).assign(1.0), Function(space).assign(0.5)
    fg.GaussLegendre(2)(fg.HamiltonianSystem(q, p, 0.5 * (p**2 + q**2) * dx), h).advance(1)
    z = -1j * h
    exact = (1 + 0.5j) * (1 + z / 2 + z**2 / 12) / (1 - z / 2 + z**2 / 12)
    assert q.dat.data_ro == pytest.approx(exact.real, abs=1e-13)
    assert p.dat.data_ro == pytest.approx(exact.imag, abs=1e-13)
