"""Gradients by a density that is given cell by cell, against differences of runs."""

import numpy as np
import pytest
from derivable import Run, holding
from firedrake import Function, FunctionSpace, IntervalMesh, as_vector, assemble, dx, inner
from firedrake.adjoint import Control, ReducedFunctional, continue_annotation, pause_annotation
from verification.beams import set_smooth, uneven_mesh

import fdgeom as fg

CELLS, STEPS = 3, 4
VALUES = np.array([1.0, 3.0, 2.0])


def density_on(mesh):
    field = Function(FunctionSpace(mesh, "DG", 0))
    field.dat.data_wo[...] = VALUES
    return field


def section(density):
    return fg.Section.rectangle(0.5, 0.6, density=density, youngs_modulus=10.0, poisson_ratio=0.3)


def differences(at):
    """d/dε at(ε) at zero, of fourth order; at(0) stands afterwards."""
    h = 1e-3
    found = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    at(0.0)
    return found


@pytest.mark.parametrize(
    "method",
    [fg.PoissonIntegrator, fg.GeneralizedAlpha, fg.EnergyMomentum, fg.VariationalIntegrator],
    ids=lambda m: m.__name__,
)
def test_steps(method, rng):
    mesh = uneven_mesh(CELLS)
    density = density_on(mesh)
    beam = set_smooth(fg.Beam(mesh, section(density)))
    run = Run(method(beam, 4e-3))  # short: no cell turns by 90 degrees
    last = inner(beam.position, beam.position) * dx(degree=2)
    last += inner(beam.velocity, beam.velocity) * dx(degree=2)
    direction = rng.uniform(0.5, 1.0, CELLS)

    def at(size):
        run.again()
        density.dat.data_wo[...] = VALUES + size * direction
        run.stepper.advance(STEPS)
        return assemble(last)

    expected = differences(at)
    run.again()
    number, (found,) = fg.gradient(run.stepper, STEPS, last, [density])
    assert number == pytest.approx(at(0.0), rel=1e-13)
    # What differences of fourth order leave.
    assert found.dat.data_ro @ direction == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("kind", ["statics", "modes"])
def test_at_rest(kind, rng):
    mesh = IntervalMesh(CELLS, 1.0)
    density = density_on(mesh)
    loads = fg.Gravity((0, 0, -0.1)) if kind == "statics" else ()
    beam = fg.Beam(mesh, section(density), left="clamped", loads=loads)
    statics = fg.StaticEquilibrium(beam)
    direction = rng.uniform(0.5, 1.0, CELLS)

    def result():
        if kind == "modes":
            return fg.VibrationModes(beam, 2).eigenvalue(0)
        statics.solve()
        return assemble(beam.position[2] * dx)

    def at(size):
        density.dat.data_wo[...] = VALUES + size * direction
        return result()

    expected = differences(at)
    given = holding(density, VALUES)
    continue_annotation()
    density.assign(given)
    value = result()
    pause_annotation()
    assert value == pytest.approx(at(0.0), rel=1e-10)
    slope = ReducedFunctional(value, Control(given)).derivative().dat.data_ro @ direction
    # Of the size of what Newton's iteration leaves in the differences, divided by their step.
    assert slope == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("taped", [False, True])
@pytest.mark.parametrize(
    "method",
    [fg.PoissonIntegrator, fg.GeneralizedAlpha, fg.EnergyMomentum],
    ids=lambda m: m.__name__,
)
def test_kinetic_energy_of_a_beam(method, taped):
    """A free rod at the velocity v: ½ ρ A L v², by ρ, whatever field of the beam its form reads."""
    mesh = IntervalMesh(4, 1.0)
    density = Function(FunctionSpace(mesh, "R", 0)).assign(3.0)
    beam = fg.Beam(mesh, section(density))
    stepper = method(beam, 1e-3)
    moving = as_vector([0, 0, 0, 0, 0, 2.0])
    energy = beam.energies()["kinetic_energy"]
    if taped:
        continue_annotation()
    beam.velocity.interpolate(moving)
    beam.project()
    if taped:
        stepper.advance(3)
        value = assemble(energy)
        pause_annotation()
        slope = ReducedFunctional(value, Control(density)).derivative()
    else:
        value, (slope,) = fg.gradient(stepper, 3, energy, [density])
    # Cross-section .5 × .6, ½ v² = 2. PoissonIntegrator begins with the momentum: ½ p²/m.
    sign = -1 if method is fg.PoissonIntegrator and not taped else 1
    assert value == pytest.approx(2 * 3.0 * 0.3, rel=1e-13)
    assert slope.dat.data_ro[0] == pytest.approx(sign * 2 * 0.3, rel=1e-11)


def test_fields_for_output_are_no_objectives():
    """Strain and stress that the output draws are computed from the state, which no step knows."""
    beam = fg.Beam(IntervalMesh(4, 1.0), section(1.0), left="clamped")
    stepper = fg.GeneralizedAlpha(beam, 1e-3)
    moment = stepper.system.output.fields()["moment"]
    with pytest.raises(NotImplementedError, match="the objective reads stress, a field that is"):
        fg.gradient(stepper, 2, inner(moment, moment) * dx, [beam.velocity])
