"""Properties that methods rely on hold for all states and coefficients, or are asked again."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    TestFunction,
    VectorFunctionSpace,
    as_vector,
    conditional,
    diff,
    dot,
    dx,
    exp,
    gt,
    inner,
    ln,
    lt,
    max_value,
    sqrt,
    variable,
)
from verification.small_systems import canonical, pairing, states

import fdgeom as fg


# --- δh/δz --------------------------------------------------------------------------------------
def chain(energy):
    """Two fields on a ring with lumped masses, and an energy density of them."""
    V = FunctionSpace(PeriodicIntervalMesh(8, 2.0), "CG", 1)
    q, p = Function(V), Function(V)
    (x,) = SpatialCoordinate(V.mesh())
    q.interpolate(0.1 * x * (2 - x))
    return fg.HamiltonianSystem(q, p, energy(q, p), measure=dx(scheme="KMV", degree=1))


LUMPED = dx(scheme="KMV", degree=1)


def test_a_term_that_is_switched_on_later():
    """With k = 0 the density's derivative is right; with k = 4 it lacks the gradient's share."""
    k = Constant(0.0)

    def system(k):
        return chain(lambda q, p: 0.5 * (p**2 + q**2 + k * q.dx(0) ** 2) * LUMPED)

    one, other = system(k), system(Constant(4.0))
    steppers = [fg.ImplicitMidpoint(s, 0.01) for s in (one, other)]
    k.assign(4.0)
    for stepper in steppers:
        stepper.advance(5)
    # Solves of units, five in a row.
    assert np.abs(one.q.dat.data_ro - other.q.dat.data_ro).max() < 1e-13


def test_a_term_that_a_state_far_away_switches_on():
    """Beyond q = 3 the energy has a gradient, and no motion near the start says so."""

    def density(q, p):
        return 0.5 * (p**2 + conditional(gt(q, 3.0), q.dx(0) ** 2, 0.0)) * LUMPED

    assert chain(density).forms.density_gradient is None
    smooth = chain(lambda q, p: 0.5 * (p**2 + exp(-((q - 9) ** 2)) * q.dx(0) ** 2) * LUMPED)
    assert smooth.forms.density_gradient is None


def test_a_coefficient_that_varies_later():
    """A full and a lumped quadrature agree of a constant density alone."""
    V = FunctionSpace(IntervalMesh(4, 1.0), "CG", 1)
    q, p, k = Function(V), Function(V), Function(V)
    q.assign(1.0)
    system = fg.HamiltonianSystem(q, p, 0.5 * (p**2 + k * q**2) * dx, measure=LUMPED)
    assert system.forms.density_gradient is None


def test_what_is_right_stays_pointwise():
    z = states((0.3, 0.4))
    k, f = Constant(2.0), Function(FunctionSpace(z.function_space().mesh(), "DG", 0)).assign(1.0)
    for energy in (
        (k * dot(z, z) + f * z[0] ** 4) * dx,
        sqrt(1 + f * dot(z, z)) * dx,
        (conditional(gt(z[0], k), z[0] ** 2, abs(z[1])) - k * exp(-z[0])) * dx,
    ):
        system = fg.PoissonSystem(z, energy, canonical, pairing)
        assert system.forms.density_gradient is not None
        assert fg.ImplicitMidpoint(system, 0.01).is_compiled
    both = chain(lambda q, p: (0.5 * p**2 + k * abs(q) ** 3) * LUMPED)
    assert both.forms.density_gradient is not None


def test_a_given_gradient_that_reads_another_coefficient():
    z, k, c = states((0.3, 0.4)), Constant(2.0), Constant(2.0)
    system = fg.PoissonSystem(
        z, 0.5 * k * dot(z, z) * dx, canonical, pairing, gradient=lambda z: c * z
    )
    stepper = fg.ImplicitMidpoint(system, 0.01)
    stepper.advance(1)
    before = z.dat.data_ro.copy()
    k.assign(3.0)
    with pytest.raises(ValueError, match=r"^gradient: with the present values of the coeff"):
        stepper.advance(1)
    assert np.array_equal(z.dat.data_ro, before)
    c.assign(3.0)
    stepper.advance(1)


def test_a_given_gradient_that_reads_the_state_itself():
    z = states((0.3, 0.4))
    with pytest.raises(ValueError, match=r"^gradient must be a function of its arguments alone"):
        fg.PoissonSystem(z, 0.5 * dot(z, z) * dx, canonical, pairing, gradient=lambda y: z)


def test_a_given_gradient_that_is_right_near_the_start_alone():
    z = states((0.3, 0.4))

    def gradient(z):
        return as_vector([conditional(gt(z[0], 2.0), 0.0, z[0]), z[1]])

    with pytest.raises(ValueError, match=r"^gradient: it is not the δh/δz"):
        fg.PoissonSystem(z, 0.5 * dot(z, z) * dx, canonical, pairing, gradient=gradient)


# --- pieces of an energy ------------------------------------------------------------------------
def test_pieces_that_sum_at_one_state_alone():
    z = states((0.3, 0.4))
    system = fg.PoissonSystem(z, 0.5 * dot(z, z) * dx, canonical, pairing)
    # Both are right at the start, q = 0.3 and p = 0.4.
    for wrong in (0.5 * z[0] * 0.3 * dx, 0.5 * conditional(gt(z[0], 2), 0, z[0] ** 2) * dx):
        with pytest.raises(ValueError, match=r"^energies must sum to the energy of the system, at"):
            fg.Splitting(system, 0.1, energies=[0.5 * z[1] ** 2 * dx, wrong])


def test_pieces_that_sum_for_one_value_alone():
    z, k, c = states((0.3, 0.4)), Constant(2.0), Constant(2.0)
    system = fg.PoissonSystem(z, 0.5 * (z[1] ** 2 + k * z[0] ** 2) * dx, canonical, pairing)
    pieces = [0.5 * z[1] ** 2 * dx, 0.5 * c * z[0] ** 2 * dx]
    stepper = fg.Splitting(system, 0.1, energies=pieces)
    stepper.advance(1)
    k.assign(3.0)
    with pytest.raises(ValueError, match=r"for the values that coefficients have now"):
        stepper.advance(1)
    c.assign(3.0)
    stepper.advance(1)


# --- energies that are not defined everywhere ----------------------------------------------------
def populations(energy, start=(0.0, 0.0), **more):
    """Lotka and Volterra's bracket, with a state that is still to be set."""
    z = states(start)
    u, v = z
    system = fg.PoissonSystem(
        z, energy(u, v) * dx, lambda a, b: u * v * canonical_density(a, b) * dx, pairing, **more
    )
    return system


def canonical_density(a, b):
    return a[0] * b[1] - a[1] * b[0]


def lotka_volterra(u, v):
    return u - ln(u) + v - 2 * ln(v)


def test_pieces_with_logarithms_before_the_state_is_set():
    system = populations(lotka_volterra)
    u, v = system.state
    for pieces in (
        [(u - ln(u)) * dx, (v - 2 * ln(v)) * dx],  # the terms of the energy
        [(u + v) * dx, -ln(u * v**2) * dx],  # equal for positive u and v
    ):
        stepper = fg.Splitting(system, 0.1, energies=pieces)
        system.state.dat.data[:] = (1.0, 2.5)
        stepper.advance(2)
        assert np.isfinite(system.energy())
        system.state.assign(0.0)
    with pytest.raises(ValueError, match=r"^energies must sum to the energy of the system, at"):
        fg.Splitting(system, 0.1, energies=[(u - ln(u)) * dx, (v - 3 * ln(v)) * dx])


@pytest.mark.parametrize(
    "energy",
    [
        lotka_volterra,
        lambda u, v: u - ln(-u) + v**2,
        lambda u, v: 1 / u + v**2,
        lambda u, v: sqrt(u) + v**2,
        lambda u, v: sqrt(1 - u**2) + v**2,
        lambda u, v: conditional(gt(u, 0), sqrt(u), 2 * sqrt(-u)) + v**2,
    ],
)
def test_a_derivative_is_found_where_it_is_defined(energy):
    """Whatever the state is when the system is made: zero here, at the edge of the domain."""
    assert populations(energy).forms.density_gradient is not None

    def gradient(z):
        z = variable(z)
        return diff(energy(*z), z)

    populations(energy, gradient=gradient)
    with pytest.raises(ValueError, match=r"^gradient: it is not the δh/δz"):
        populations(energy, gradient=lambda z: gradient(z) + 1e-6 * z)


def test_a_metric_of_a_density_that_is_still_to_be_set():
    z = states((0.0, 0.0))
    density = z[1]

    def metric(a, b):
        return density * dot(a, b) * dx

    system = fg.PoissonSystem(z, 0.5 * dot(z, z) * dx, canonical, metric)
    stepper = fg.ImplicitMidpoint(system, 0.01)
    z.dat.data[:] = (0.3, 2.0)
    stepper.advance(1)


def test_what_cannot_be_decided_at_first_is_asked_again():
    """ln(v - 50) is not defined at any state that is tried before v is set."""
    z = states((0.0, 0.0))
    u, v = z
    system = fg.PoissonSystem(z, (u**2 + ln((v - 50) ** 3)) * dx, canonical, pairing)
    right, wrong = ([u**2 * dx, k * ln(v - 50) * dx] for k in (3, 4))
    steppers = [fg.Splitting(system, 0.01, energies=pieces) for pieces in (right, wrong)]
    z.dat.data[:] = (0.3, 60.0)
    steppers[0].advance(1)
    with pytest.raises(ValueError, match=r"^energies must sum to the energy of the system"):
        steppers[1].advance(1)


def test_equal_cases_that_are_written_in_two_ways():
    """Conditions that exclude one another are no independent ones."""
    z = states((0.3, 0.4))
    q, p = z
    energy = (0.5 * p**2 + max_value(q, 0) ** 2 + abs(q) ** 3) * dx
    slopes = (
        lambda z: as_vector([conditional(gt(z[0], 0), 2 * z[0], 0) + 3 * z[0] * abs(z[0]), z[1]]),
        lambda z: as_vector([conditional(lt(z[0], 0), 0, 2 * z[0]) + 3 * z[0] * abs(z[0]), z[1]]),
    )
    for slope in slopes:
        system = fg.PoissonSystem(z, energy, canonical, pairing, gradient=slope)
    pieces = [0.5 * p**2 * dx, (conditional(lt(q, 0), 0, q) ** 2 + q**2 * abs(q)) * dx]
    stepper = fg.Splitting(system, 0.1, energies=pieces)
    stepper.advance(1)


# --- a velocity node by node --------------------------------------------------------------------
def test_a_mass_that_varies_later():
    V = VectorFunctionSpace(IntervalMesh(4, 1.0), "CG", 1, dim=2)
    q, p = Function(V), Function(V)
    mass = Function(FunctionSpace(V.mesh(), "CG", 1)).assign(2.0)
    multiplier = Function(FunctionSpace(V.mesh(), "CG", 1))
    (x,) = SpatialCoordinate(V.mesh())
    q.interpolate(as_vector([1.0 + 0 * x, 0.0]))
    p.interpolate(as_vector([0.0 * x, 1.0]))

    def made():
        return fg.ConstrainedSystem(
            q, p, dot(p, p) / (2 * mass) * LUMPED, 0.5 * q[1] ** 2 * LUMPED,
            lambda l: l * (dot(q, q) - 1) * LUMPED, multiplier, measure=LUMPED,
        )  # fmt: skip

    system = made()
    stepper = fg.RATTLE(system, 0.01)
    stepper.advance(2)
    mass.interpolate(2 + x)
    with pytest.raises(ValueError, match=r"^kinetic: δT/δp is no pointwise expression"):
        stepper.advance(1)
    with pytest.raises(ValueError, match=r"^kinetic: δT/δp is no pointwise expression"):
        made()


# --- brackets and pairings ----------------------------------------------------------------------
@pytest.mark.parametrize("entry", [0.3, 1e-6])
def test_a_bracket_that_is_not_antisymmetric(entry):
    z = states((0.3, 0.4))

    def bracket(a, b):
        return (a[0] * b[1] - a[1] * b[0] + entry * z[0] * a[0] * b[0]) * dx

    system = fg.PoissonSystem(z, 0.5 * dot(z, z) * dx, bracket, pairing)
    with pytest.raises(ValueError, match=r"^bracket must be antisymmetric"):
        fg.DiscreteGradient(system, 0.1)


def test_a_bracket_made_of_numbers_that_change():
    z, J = states((0.3, 0.4)), Constant([[0.0, 1.0], [-1.0, 0.0]])
    system = fg.PoissonSystem(z, 0.5 * dot(z, z) * dx, lambda a, b: dot(a, J * b) * dx, pairing)
    stepper = fg.ImplicitMidpoint(system, 0.1)
    stepper.advance(1)
    J.assign([[0.0, 2.0], [-2.0, 0.0]])
    stepper.advance(1)
    J.assign([[0.1, 1.0], [-1.0, 0.0]])
    with pytest.raises(ValueError, match=r"^bracket must be antisymmetric"):
        stepper.advance(1)


def test_a_bracket_that_loses_its_symmetry_far_away():
    z = states((0.3, 0.4))

    def bracket(a, b):
        return (a[0] * b[1] - conditional(gt(z[0], 5), 0.5, 1.0) * a[1] * b[0]) * dx

    system = fg.PoissonSystem(z, 0.5 * dot(z, z) * dx, bracket, pairing)
    with pytest.raises(ValueError, match=r"^bracket must be antisymmetric"):
        fg.ImplicitMidpoint(system, 0.1)


def test_a_pairing_that_couples_later():
    """Parts that move in turn must not be tied together, whatever the coefficient was at first."""
    mesh = fg.copies(1)
    V = FunctionSpace(mesh, "DG", 0)
    z, c = Function(V * V), Constant(0.0)
    z.assign(1.0)

    def metric(a, b):
        return (a[0] * b[0] + a[1] * b[1] + c * (a[0] * b[1] + a[1] * b[0])) * dx

    system = fg.PoissonSystem(z, 0.5 * dot(z, z) * dx, canonical, metric)
    stepper = fg.PoissonIntegrator(system, 0.1)
    stepper.advance(1)
    c.assign(0.4)
    with pytest.raises(ValueError, match=r"^system: PoissonIntegrator moves .* pairing couples"):
        stepper.advance(1)


@pytest.mark.parametrize(
    "metric",
    [lambda a, b: (inner(a, b) + 0.2 * a[0] * b[1]) * dx, lambda a, b: -inner(a, b) * dx],
)
def test_a_pairing_that_is_no_metric(metric):
    z = states((0.3, 0.4))
    system = fg.PoissonSystem(z, 0.5 * dot(z, z) * dx, canonical, metric)
    with pytest.raises(ValueError, match=r"^pairing must be symmetric and positive"):
        fg.ImplicitMidpoint(system, 0.1)


def test_a_mass_that_turns_negative():
    z, m = states((0.3, 0.4)), Constant(1.0)
    system = fg.PoissonSystem(z, 0.5 * dot(z, z) * dx, canonical, lambda a, b: m * inner(a, b) * dx)
    stepper = fg.ImplicitMidpoint(system, 0.1)
    stepper.advance(1)
    m.assign(-1.0)
    with pytest.raises(ValueError, match=r"^pairing must be symmetric and positive"):
        stepper.advance(1)


# --- masses of second-order systems, functions in an energy -------------------------------------
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_negative_mass(sign):
    """Of an oscillator m a + q = 0 the mass must be positive, also when it has changed."""
    V = FunctionSpace(fg.copies(2), "DG", 0)
    q, v, m = Function(V), Function(V), Constant(sign)
    system = fg.SecondOrderSystem(lambda q, v, a, t, w: (m * a + q) * w * dx, q, v)
    if sign < 0:
        with pytest.raises(ValueError, match=r"^residual must be a positive mass times a"):
            fg.GeneralizedAlpha(system, 0.1)
        return
    stepper = fg.GeneralizedAlpha(system, 0.1)
    stepper.advance(1)
    m.assign(2.0)
    stepper.advance(1)
    m.assign(-1.0)
    with pytest.raises(ValueError, match=r"^residual must be a positive mass times a"):
        stepper.advance(1)


def test_auxiliary_functions_that_the_state_or_the_energy_lacks():
    V = FunctionSpace(IntervalMesh(3, 1.0), "CG", 1)
    z, psi, phi = Function(V, name="z"), Function(V, name="psi"), TestFunction(V)

    def made(form, energy):
        return fg.PoissonSystem(
            z,
            energy * dx,
            lambda a, b: (a.dx(0) * b - a * b.dx(0)) * dx,
            pairing,
            auxiliary={psi: form * dx},
        )

    with pytest.raises(ValueError, match=r"^auxiliary\[psi\] must depend on the state"):
        made((psi - 1) * phi, z**2 + psi * z)
    with pytest.raises(ValueError, match=r"^auxiliary: psi must occur in the energy"):
        made((psi - z) * phi, z**2)
    made((psi - z) * phi, z**2 + psi * z)
