"""Gradients by data of a field that follows the time: the natural strain of a muscle or tendon."""

import pytest
from firedrake import Function, FunctionSpace, IntervalMesh, as_vector, assemble, dx, sin
from firedrake.adjoint import (
    Control,
    ReducedFunctional,
    continue_annotation,
    get_working_tape,
    pause_annotation,
)

import fdgeom as fg

SECTION = fg.Section.rectangle(0.02, 0.01, density=1000.0, youngs_modulus=1e6, poisson_ratio=0.3)
METHODS = {
    "GeneralizedAlpha": (fg.GeneralizedAlpha, 1e-2, None),
    "EnergyMomentum": (fg.EnergyMomentum, 1e-2, "directors"),
    "PoissonIntegrator": (fg.PoissonIntegrator, 1e-4, None),
}


def made(name, amplitude):
    """A beam that bends itself by A sin(t + A), nonlinear in A, and its stepper."""
    method, dt, measure = METHODS[name]
    mesh = IntervalMesh(3, 1.0)
    A = Function(FunctionSpace(mesh, "R", 0)).assign(amplitude)
    options = {} if measure is None else {"strain_measure": measure}
    beam = fg.Beam(
        mesh,
        SECTION,
        left="clamped",
        reference_strain=lambda t: as_vector([0, A * sin(3 * t + A), 0, 0, 0, 0]),
        **options,
    )
    return beam, A, method(beam, dt)


def objective(beam):
    """The elastic energy reads the natural strain of the present time."""
    return 1e3 * beam.position[2] ** 2 * dx + beam.energies()["potential_energy"]


@pytest.mark.parametrize("name", METHODS)
def test_gradient(name):
    """Equal to central differences, whose error is of the order h² = 1e-8."""

    def value(amplitude):
        beam, _, stepper = made(name, amplitude)
        stepper.advance(7)
        return assemble(objective(beam))

    beam, A, stepper = made(name, 0.5)
    _, (found,) = fg.gradient(stepper, 7, objective(beam), [A])
    h = 1e-4
    wanted = (value(0.5 + h) - value(0.5 - h)) / (2 * h)
    assert found.dat.data_ro[0] == pytest.approx(wanted, rel=1e-6)


def test_running_gradient_and_tape():
    """A sum over all steps, by `fdgeom.gradient` and by blocks of one step on the tape; the Hessian."""

    def total(beam, stepper):
        found = 0.0
        for _ in range(4):
            stepper.advance()
            found += assemble(beam.position[2] ** 2 * dx)
        return found

    def value(amplitude):
        beam, _, stepper = made("GeneralizedAlpha", amplitude)
        return total(beam, stepper)

    beam, A, stepper = made("GeneralizedAlpha", 0.5)
    running = beam.position[2] ** 2 * dx
    nothing = 0.0 * running
    _, (found,) = fg.gradient(stepper, 4, nothing, [A], running=running)
    beam, A, stepper = made("GeneralizedAlpha", 0.5)
    continue_annotation()
    J = total(beam, stepper)
    pause_annotation()
    reduced = ReducedFunctional(J, Control(A))
    first = reduced.derivative().dat.data_ro[0]
    second = reduced.hessian(Function(A.function_space()).assign(1.0)).dat.data_ro[0]
    get_working_tape().clear_tape()
    h = 1e-3
    low, mid, high = (value(0.5 + k * h) for k in (-1, 0, 1))
    assert found.dat.data_ro[0] == pytest.approx(1e-2 * first, rel=1e-10)
    # Errors of the differences are of the order h² = 1e-6.
    assert first == pytest.approx((high - low) / (2 * h), rel=1e-5)
    assert second == pytest.approx((high - 2 * mid + low) / h**2, rel=1e-4)
