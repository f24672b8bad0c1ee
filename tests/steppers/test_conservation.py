"""What is conserved to round-off over a thousand steps, and what is not."""

import numpy as np
import pytest
from claims import CLAIMS, SMALL, make
from firedrake import (
    Function,
    FunctionSpace,
    SpatialCoordinate,
    UnitIntervalMesh,
    conditional,
    cos,
    dx,
    lt,
    sin,
    split,
    sqrt,
)
from firedrake.assemble import get_assembler
from verification.beams import SOFT, set_smooth, uneven_mesh
from verification.hamiltonian_systems import double_pendulum
from verification.small_systems import korteweg_de_vries, pairing, periodic_state, wave

import fdgeom as fg

STEPS, DT = 1000, 0.05


def band(stepper, quantity, steps=STEPS):
    """Largest relative change of a quantity over some steps."""
    start = quantity()
    worst = 0.0
    for _ in range(steps):
        stepper.advance()
        worst = max(worst, abs(quantity() - start))
    return worst / abs(start)


def energy_of(system):
    return system.energy


def casimir_of(system):
    held = get_assembler(system.casimirs()["norm"])
    return held.assemble


# Claim: the systems to show it on, and the quantity.
SHOWN_ON = {
    "energy": (("lotka_volterra", "pendulum", "henon_heiles"), energy_of),
    "quadratic energy": (("rigid_body",), energy_of),
    "quadratic Casimirs": (("rigid_body",), casimir_of),
}


@pytest.mark.parametrize(
    ("name", "conserved", "system"),
    [
        (name, conserved, system)
        for name, claim in CLAIMS.items()
        for conserved in claim.conserves
        for system in SHOWN_ON[conserved][0]
    ],
)
def test_conserved(name, conserved, system, recorded):
    built = SMALL[system]()
    steps = STEPS if CLAIMS[name].order == 2 else 200
    stepper = make(CLAIMS[name], built, DT)
    # A thousand steps of round-off in solves that go to some 1e-15.
    off = band(stepper, SHOWN_ON[conserved][1](built[0]), steps)
    assert off < 1e-12
    words = f"{system.replace('_', ' ')}, {steps} steps"
    recorded.defect(name, conserved, words, claimed=True, measured=off, bound=1e-12)


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("ImplicitMidpoint", "lotka_volterra"),
        ("ImplicitMidpoint", "pendulum"),
        ("ImplicitMidpoint", "nonseparable"),
        ("Splitting", "nonseparable"),
    ],
)
def test_not_conserved(name, system, recorded):
    """The energy of a general system: not by symplectic methods, though its error is bounded."""
    built = SMALL[system]()
    stepper = make(CLAIMS[name], built, DT)
    first = band(stepper, built[0].energy, 400)
    assert 1e-7 < first < 1e-2
    words = f"{system.replace('_', ' ')}, 400 steps"
    recorded.defect(name, "energy", words, claimed=False, measured=first, bound=1e-7)
    assert band(stepper, built[0].energy, 400) < 3 * first


def test_splitting_keeps_the_casimir_but_not_the_energy():
    built = SMALL["rigid_body"]()
    assert band(make(CLAIMS["Splitting"], built, DT), built[0].energy, 100) > 1e-7


@pytest.mark.parametrize("name", [n for n, c in CLAIMS.items() if n != "Splitting"])
def test_energy_of_a_beam(name, recorded):
    """Quadratic in the state, so kept by the midpoint rule and what reduces to it, only."""
    claim = CLAIMS[name]
    beam = set_smooth(fg.Beam(uneven_mesh(8), SOFT))
    steps = STEPS if name in ("DiscreteGradient", "ImplicitMidpoint") else 50
    defect = band(claim.stepper(beam, 0.01), beam.energy, steps)
    kept = {"energy", "quadratic energy"} & set(claim.conserves)
    assert defect < 1e-12 if kept else defect > 1e-10
    recorded.defect(
        name, "energy", f"a free beam of 8 cells, {steps} steps", claimed=bool(kept),
        measured=defect, bound=1e-12 if kept else 1e-10,
    )  # fmt: skip


@pytest.mark.parametrize("build", [wave, korteweg_de_vries])
def test_discrete_gradient_of_a_field(build):
    """The variational derivative is an unknown of the solve; the energy is kept all the same."""
    system = build()
    stepper = fg.DiscreteGradient(system, 0.02)
    # Two coupled solves of one block each go to some 1e-14.
    assert band(stepper, system.energy, 200) < 1e-12


def test_discrete_gradient_in_large_steps():
    """A double pendulum: eight points alone leave 1.5e-5."""
    system = double_pendulum()
    # Of an energy that is the small difference of two large ones.
    assert band(fg.DiscreteGradient(system, 0.1), system.energy, 200) < 1e-11


@pytest.mark.parametrize("family", ["CG", "DG"])
def test_discrete_gradient_by_one_quadrature(family):
    """Pendulums of angles that vary in the cells: cos q is no polynomial there."""
    V = FunctionSpace(UnitIntervalMesh(4), family, 1)
    (x,) = SpatialCoordinate(V.mesh())
    q, p = Function(V).interpolate(1 + x), Function(V).interpolate(0.3 * x)
    system = fg.HamiltonianSystem(q, p, (0.5 * p**2 + 1 - cos(q)) * dx)
    assert band(fg.DiscreteGradient(system, 0.5), system.energy, 50) < 1e-12


def test_discrete_gradient_of_an_energy_with_a_kink():
    """Balls of many heights on an elastic floor: each a parabola above it and one below."""
    V = FunctionSpace(fg.copies(20), "DG", 0)
    q, p = Function(V), Function(V)
    q.dat.data_wo[:] = np.linspace(0.3, 1.7, 20)
    floor = 40.0 * conditional(lt(q, 0), q**2, 0.0)
    system = fg.HamiltonianSystem(q, p, (0.5 * p**2 + q + floor) * dx)
    # A polynomial on each side is none.
    assert system.forms.energy_degree is None
    # The sum of the balls' energies: each step meets the kink at another place.
    assert band(fg.DiscreteGradient(system, 0.05), system.energy, steps=400) < 1e-12
    assert q.dat.data_ro.min() < 0.3


def test_discrete_gradient_of_a_field_that_is_no_polynomial():
    """A string of constant tension, in steps past the fastest wave."""
    z = periodic_state(8, 2, lambda x: (2 * sin(x), cos(2 * x)))
    u, p = split(z)

    def bracket(a, b):
        (a_u, a_p), (b_u, b_p) = split(a), split(b)
        return (a_u * b_p - a_p * b_u) * dx

    energy = (0.5 * p**2 + sqrt(1 + u.dx(0) ** 2)) * dx
    system = fg.PoissonSystem(z, energy, bracket, pairing)
    assert band(fg.DiscreteGradient(system, 0.7), system.energy, 30) < 1e-12


def test_wave_against_matrices():
    """One step of the midpoint rule with the mass and stiffness matrices of a ring."""
    system = wave(8)
    u, p = (np.array(part.dat.data_ro) for part in system.parts)
    x = np.argsort(_ring_coordinates(system))
    h, dt, n = 2 * np.pi / 8, 0.1, 8
    ring = np.roll(np.eye(n), 1, axis=0) + np.roll(np.eye(n), -1, axis=0)
    mass, stiffness = h / 6 * (4 * np.eye(n) + ring), (2 * np.eye(n) - ring) / h
    A = np.block([[np.zeros((n, n)), mass], [-stiffness, np.zeros((n, n))]])
    M = np.kron(np.eye(2), mass)
    z = np.concatenate([u[x], p[x]])
    expected = np.linalg.solve(M - dt / 2 * A, (M + dt / 2 * A) @ z)
    fg.ImplicitMidpoint(system, dt).advance()
    got = np.concatenate([part.dat.data_ro[x] for part in system.parts])
    assert got == pytest.approx(expected, abs=1e-12)


def _ring_coordinates(system):
    """Angle of each node, found from a function that is one to one on the ring."""
    (x,) = SpatialCoordinate(system.mesh)
    V = system.parts[0].function_space()
    c, s = (Function(V).interpolate(f(x)).dat.data_ro for f in (cos, sin))
    return np.arctan2(s, c)


def test_mass_of_korteweg_de_vries():
    system = korteweg_de_vries()
    mass = get_assembler(system.casimirs()["mass"])
    start = mass.assemble()
    fg.ImplicitMidpoint(system, 0.02).advance(20)
    assert mass.assemble() == pytest.approx(start, rel=1e-13)
