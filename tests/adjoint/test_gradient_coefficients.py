"""Gradients by what beams are made of: material, loads, strain at rest; with running objectives."""

import numpy as np
import pytest
from derivable import CELLS, Run
from firedrake import (
    Function,
    FunctionSpace,
    SpatialCoordinate,
    as_matrix,
    as_vector,
    assemble,
    dx,
    inner,
    split,
)
from firedrake.adjoint import Control, ReducedFunctional, continue_annotation, pause_annotation
from verification.beams import INERTIA, STIFFNESS, set_smooth, uneven_mesh

import fdgeom as fg

STEPS = 4


@pytest.fixture(scope="module")
def made_of_functions():
    """A run of a beam with a modulus, a density, a tip load and a curvature at rest that are Functions."""
    mesh = uneven_mesh(CELLS)
    (s,) = SpatialCoordinate(mesh)
    numbers = FunctionSpace(mesh, "R", 0)
    data = {
        "modulus": Function(FunctionSpace(mesh, "CG", 1)).interpolate(10 + s),
        "density": Function(numbers).assign(3.0),
        "tip": Function(numbers).assign(0.3),
        "curvature": Function(FunctionSpace(mesh, "DG", 0)).assign(0.2),
    }
    section = fg.Section.rectangle(
        0.5, 0.6, density=data["density"], youngs_modulus=data["modulus"], poisson_ratio=0.3
    )
    beam = fg.Beam(
        mesh,
        section,
        loads=fg.Load(force=as_vector([0, 0, data["tip"]]), at="right"),
        reference_strain=as_vector([data["curvature"], 0, 0, 0, 0, 0]),
    )
    return Run(fg.PoissonIntegrator(set_smooth(beam), 1e-2)), data


def differences(run, f, direction, value):
    """The derivative of ``value()`` by a Function, by differences of fourth order."""
    here, h = np.array(f.dat.data_ro), 1e-3 * np.abs(f.dat.data_ro).max()

    def at(size):
        run.again()
        f.dat.data_wo[...] = here + size * direction
        return value()

    found = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    f.dat.data_wo[...] = here
    run.again()
    return found


@pytest.mark.parametrize("name", ["modulus", "density", "tip", "curvature"])
def test_by_data(made_of_functions, name, rng):
    """Through interpolated, inverted and Real data; the energies read them too."""
    run, data = made_of_functions
    stepper, beam, f = run.stepper, run.stepper.system, data[name]
    running = inner(beam.momentum, beam.momentum) * dx(degree=2)
    last = beam.energies()["potential_energy"] + beam.energies()["kinetic_energy"]
    last += inner(beam.position, beam.position) * dx(degree=2)
    direction = rng.uniform(0.5, 1.0, f.dat.data_ro.shape)

    def value():
        total = 0.0
        for _ in range(STEPS):
            stepper.advance(1)
            total += stepper.dt * assemble(running)
        return total + assemble(last)

    expected = differences(run, f, direction, value)
    run.again()
    number, (found,) = fg.gradient(stepper, STEPS, last, [f], running=running)
    assert stepper.replay.why_not_compiled is None
    run.again()
    assert number == pytest.approx(value(), rel=1e-13)
    along, size = (found.dat.data_ro * direction).sum(), np.abs(found.dat.data_ro).sum()
    # The differences lose digits where the functional hardly depends on it.
    assert along == pytest.approx(expected, abs=1e-7 * size + 1e-11 * abs(number))
    run.again()


def bowed(mesh, number):
    """A beam whose shape at rest, an arc, is made of a Function."""
    number.assign(0.1)
    (s,) = SpatialCoordinate(mesh)
    shape = as_vector([s, number * s**2, 0.0]), as_vector([1.0, 0.0, 0.1 * s, number * s])
    return set_smooth(fg.Beam(mesh, fg.Section(STIFFNESS, INERTIA), reference_shape=shape))


def pinned(mesh, number):
    """One with heavy ends, of an inertia made of it that couples what is held and what is free."""
    number.assign(2.0)
    section = fg.Section(STIFFNESS, number * as_matrix(INERTIA.tolist()))
    beam = set_smooth(fg.Beam(mesh, section, left="pinned", end_weight=0.7))
    beam.velocity.dat.data_wo[mesh.coordinates.dat.data_ro.argmin(), 3:] = 0.0
    return beam


@pytest.mark.parametrize(
    ("make", "method"),
    [
        (bowed, fg.PoissonIntegrator),
        (bowed, fg.GeneralizedAlpha),
        (pinned, fg.VariationalIntegrator),
    ],
    ids=lambda thing: thing.__name__,
)
def test_by_what_fields_are_summed_up_of(make, method):
    mesh = uneven_mesh(CELLS)
    f = Function(FunctionSpace(mesh, "R", 0))
    beam = make(mesh, f)
    run = Run(method(beam, 1e-2))
    last = inner(beam.position, beam.position) * dx(degree=2)
    last += inner(beam.velocity, beam.velocity) * dx(degree=2)

    def value():
        run.stepper.advance(STEPS)
        return assemble(last)

    expected = differences(run, f, np.ones(1), value)
    number, (found,) = fg.gradient(run.stepper, STEPS, last, [f])
    run.again()
    assert number == pytest.approx(value(), rel=1e-13)
    assert found.dat.data_ro[0] == pytest.approx(expected, rel=1e-7)


def test_on_the_tape(made_of_functions):
    """The stiffness follows the modulus on the tape, where the objective reads it too."""
    run, data = made_of_functions
    stepper, beam, modulus = run.stepper, run.stepper.system, data["modulus"]
    run.again()
    _, (expected,) = fg.gradient(stepper, STEPS, beam.energies()["potential_energy"], [modulus])
    run.again()
    continue_annotation()
    stepper.advance(STEPS)
    value = assemble(beam.energies()["potential_energy"])
    pause_annotation()
    reduced = ReducedFunctional(value, Control(modulus))
    size = np.abs(expected.dat.data_ro).max()
    assert np.abs(reduced.derivative().dat.data_ro - expected.dat.data_ro).max() <= 1e-13 * size
    other = Function(modulus.function_space()).assign(2 * modulus)
    found = reduced(other)
    run.again()
    modulus.assign(other)
    stepper.advance(STEPS)
    assert found == pytest.approx(assemble(beam.energies()["potential_energy"]), rel=1e-13)


@pytest.mark.parametrize("method", [fg.PoissonIntegrator, fg.GeneralizedAlpha])
def test_by_a_mixed_function_with_a_number(method):
    """A field and a number in one Function, compiled as far as possible and through PETSc."""
    mesh = uneven_mesh(CELLS)
    (x,), space = SpatialCoordinate(mesh), FunctionSpace(mesh, "CG", 1)
    mixed = Function(space * FunctionSpace(mesh, "R", 0))
    field, number = mixed.subfunctions
    factor, size = split(mixed)

    def start(compiled, value):
        field.interpolate(1 + x)
        number.assign(value)
        q, v = Function(space, name="q").interpolate(1 + x), Function(space).interpolate(x)
        if method is fg.PoissonIntegrator:
            energy = 0.5 * (v**2 + size * factor * q**2) * dx
            system = fg.HamiltonianSystem(q, v, energy)
        else:
            system = fg.SecondOrderSystem(
                lambda q, v, a, t, w: (inner(a, w) + size * factor * q * w) * dx, q, v
            )
        return method(system, 0.1, compiled=compiled), q

    def run(value):
        stepper, q = start(False, value)
        stepper.advance(3)
        return assemble(q**2 * dx)

    h = 1e-2
    expected = (8 * (run(0.7 + h) - run(0.7 - h)) - (run(0.7 + 2 * h) - run(0.7 - 2 * h))) / (
        12 * h
    )
    for compiled in (None, False):
        stepper, q = start(compiled, 0.7)
        _, (bar,) = fg.gradient(stepper, 3, q**2 * dx, [mixed])
        # Five-point differences with h = 1e-2.
        assert bar.subfunctions[1].dat.data_ro[0] == pytest.approx(expected, rel=1e-7)
