"""The mean value identity of a discrete gradient, where its quadrature cannot see the function."""

import numpy as np
import pytest
from firedrake import (
    Function,
    FunctionSpace,
    SpatialCoordinate,
    UnitIntervalMesh,
    VectorFunctionSpace,
    atan,
    cos,
    dot,
    dx,
    exp,
    ln,
    sqrt,
)
from verification.beams import STIFFNESS, set_smooth, uneven_mesh
from verification.rod_cases import SEPARATE

import fdgeom as fg

COPIES = fg.copies(40)


def start():
    """Positions and velocities of many copies: some of them meet any place in a step."""
    z = Function(VectorFunctionSpace(COPIES, "DG", 0, dim=2))
    z.dat.data[:, 0], z.dat.data[:, 1] = np.linspace(0.6, 1.4, 40), 0.3
    return z


# Potentials without a case or a modulus in them, and steps that fall beside or over the steep place.
POTENTIALS = {
    "kink": (lambda q: sqrt(q**2), 0.1),
    "rounded kink": (lambda q: q**2 / 2 + 0.02 * ln(1 + exp(100 * (q - 0.5))), 0.3),
    "jump": (lambda q: q**2 / 2 + 0.02 * atan(3e3 * (q - 0.5)), 0.1),
    "bump": (lambda q: q**2 / 2 + 0.02 * exp(-((100 * (q - 0.5)) ** 2)), 0.1),
}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", POTENTIALS)
def test_energy_where_the_slope_is_steep(name, compiled):
    """Each copy keeps its energy to round-off, in every step that does not fail.

    Without a correction the kink leaves 4e-3, the rounded one 2e-9.
    """
    potential, dt = POTENTIALS[name]
    z = start()
    q, p = z
    density = p**2 / 2 + potential(q)
    system = fg.PoissonSystem(
        z, density * dx, lambda a, b: (a[0] * b[1] - a[1] * b[0]) * dx, lambda a, b: dot(a, b) * dx
    )
    stepper = fg.DiscreteGradient(system, dt, compiled=compiled)
    held = Function(FunctionSpace(COPIES, "DG", 0))

    def energies():
        return np.array(held.interpolate(density).dat.data_ro)

    before, steps = energies(), 60
    for _ in range(steps):
        stepper.advance(1)
    # Newton's rtol of 1e-13 of values of the size 1, in so many steps.
    assert np.abs(energies() - before).max() < steps * 1e-13


def test_compiled_code_takes_the_newton_iterations_of_petsc():
    """The tangent at the guess, where no step is known yet, holds in both ways: far from the jump the
    potential is that of an oscillator, and two iterations a step are enough.
    """
    potential, dt = POTENTIALS["jump"]
    iterations = []
    for compiled in (True, False):
        z = start()
        z.dat.data[:, 0] += 0.4
        q, p = z
        density = p**2 / 2 + potential(q)
        system = fg.PoissonSystem(
            z,
            density * dx,
            lambda a, b: (a[0] * b[1] - a[1] * b[0]) * dx,
            lambda a, b: dot(a, b) * dx,
        )
        stepper = fg.DiscreteGradient(system, dt, compiled=compiled)
        stepper.advance(5)
        iterations.append(stepper.solver_stats()["newton_iterations"])
    assert iterations == [10, 10]


def test_a_law_whose_kink_shows_in_no_node_of_its_form():
    """EnergyMomentum with a section that resists pressure less than tension, √(ε²) in place of |ε|."""

    class Limp(fg.SectionLaw):
        def energy(self, strain, stiffness):
            softer = 1 + 0.8 * strain[3] / sqrt(strain[3] ** 2 + 1e-24)
            return 0.5 * dot(strain, stiffness * strain) + 10 * softer * strain[3] ** 2

    beam = fg.Beam(uneven_mesh(5), fg.Section(STIFFNESS, SEPARATE), law=Limp(),
                   strain_measure="directors")  # fmt: skip
    set_smooth(beam, size=0.5)
    stepper = fg.EnergyMomentum(beam, 0.05)
    stepper.advance()
    energy = beam.energy()
    stepper.advance(40)
    assert beam.energy() == pytest.approx(energy, rel=1e-10)


def test_one_quadrature_for_a_field_that_varies_in_its_cell():
    """The mean slope of a cosine holds quotients, for which more points would be taken than for it."""
    mesh = UnitIntervalMesh(1)
    V, (x,) = FunctionSpace(mesh, "CG", 1), SpatialCoordinate(mesh)
    q, p = Function(V).interpolate(4 * x), Function(V)
    system = fg.HamiltonianSystem(q, p, (p**2 / 2 + q**4 / 4 + 1 - cos(q)) * dx)
    stepper, before = fg.DiscreteGradient(system, 0.1), system.energy()
    stepper.advance(20)
    assert abs(q.dat.data_ro - (0, 4)).max() > 0.5
    # Round-off of Newton's method in twenty steps.
    assert system.energy() == pytest.approx(before, rel=1e-13)
