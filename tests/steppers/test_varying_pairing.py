"""A pairing that depends on the state: taken where the bracket is, by every method."""

import numpy as np
import pytest
from firedrake import Function, VectorFunctionSpace, as_vector, cross, dot, dx, inner, ln, split
from verification.small_systems import START, canonical, states

import fdgeom as fg

#: Lotka–Volterra from (4, 2) at t = 10, with ten digits.
EXPECTED = (0.620627496, 5.561492615)


def lotka_volterra(known=False):
    """u' = u(v-2), v' = v(1-u) in the metric ρ(a·b): δh/δz is ∇h/ρ, so the bracket has ρ²."""
    z = states((4.0, 2.0))
    u, v = z[0], z[1]
    energy = (u - ln(u) + v - 2 * ln(v)) * dx

    def weight(z):
        return 1 + 0.2 * z[0] + 0.1 * z[0] * z[1]

    rho = weight(z)
    options = {}
    if known:
        options["gradient"] = lambda z: as_vector([1 - 1 / z[0], 1 - 2 / z[1]]) / weight(z)
    return fg.PoissonSystem(
        z,
        energy,
        lambda a, b: rho**2 * u * v * (a[0] * b[1] - a[1] * b[0]) * dx,
        lambda a, b: rho * inner(a, b) * dx,
        **options,
    )


def in_two_parts():
    """The same as two parts, with metrics that depend on either."""
    space = VectorFunctionSpace(fg.copies(1), "DG", 0, dim=1)
    z = Function(space * space, name="z")
    for part, value in zip(z.subfunctions, (4.0, 2.0), strict=True):
        part.dat.data_wo[...] = value
    (u,), (v,) = (list(part) for part in split(z))
    first, second = 1 + 0.2 * v, 1 + 0.1 * u * v

    def bracket(a, b):
        (a_u, a_v), (b_u, b_v) = split(a), split(b)
        return first * second * u * v * (dot(a_u, b_v) - dot(a_v, b_u)) * dx

    def pairing(a, b):
        (a_u, a_v), (b_u, b_v) = split(a), split(b)
        return (first * dot(a_u, b_u) + second * dot(a_v, b_v)) * dx

    return fg.PoissonSystem(z, (u - ln(u) + v - 2 * ln(v)) * dx, bracket, pairing, names=("u", "v"))


S, M, D = fg.SymmetricPoissonIntegrator, fg.ImplicitMidpoint, fg.DiscreteGradient
CASES = {
    "midpoint": (M, lotka_volterra, 2, (200, 400, 800)),
    "midpoint, gradient known": (M, lambda: lotka_volterra(True), 2, (200, 400, 800)),
    "discrete gradient": (D, lotka_volterra, 2, (100, 200, 400)),
    "discrete gradient, gradient known": (D, lambda: lotka_volterra(True), 2, (100, 200, 400)),
    "trapezoidal, gradient known": (
        fg.HamelFieldIntegrator, lambda: lotka_volterra(True), 2, (200, 400, 800)),
    "Gauss–Legendre": (fg.GaussLegendre(2), lotka_volterra, 4, (40, 60, 80)),
    "Runge–Kutta": (fg.RungeKutta4, lambda: lotka_volterra(True), 4, (400, 600, 800)),
    "composed": (fg.Composition(M), lambda: lotka_volterra(True), 4, (60, 80, 120)),
    "in parts, symmetric": (S, in_two_parts, 2, (100, 200, 400)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_order(name):
    cls, make, order, steps = CASES[name]
    system = make()
    start = [np.array(part.dat.data_ro) for part in system.parts]
    stepper, errors = cls(system, 1.0), []
    for n in steps:
        for part, value in zip(system.parts, start, strict=True):
            part.dat.data_wo[...] = value
        stepper.dt = 10 / n
        stepper.advance(n)
        found = np.concatenate([part.dat.data_ro.ravel() for part in system.parts])
        errors.append(np.abs(found - EXPECTED).max())
    errors = np.array(errors)
    seen = np.log(errors[:-1] / errors[1:]) / np.log(np.array(steps[1:]) / steps[:-1])
    # Three points, not yet in their limit.
    assert seen[-1] == pytest.approx(order, abs=0.2), (errors, seen)


@pytest.mark.parametrize("known", [False, True])
def test_discrete_gradient_keeps_the_energy(known):
    system = lotka_volterra(known)
    energy = system.energy()
    D(system, 0.1).advance(100)
    # Round-off of a hundred steps.
    assert system.energy() == pytest.approx(energy, abs=1e-12)


def in_a_metric(z, bracket):
    rho = 1 + z[0] ** 2 + 0.3 * z[1]
    return fg.PoissonSystem(
        z, inner(z, z) * dx, lambda a, b: bracket(rho, a, b), lambda a, b: rho * inner(a, b) * dx
    )


def test_jacobi_identity():
    """The bracket of the rigid body, whose gradients ρ divides; a·Jb is no bracket of such gradients."""
    y, z = states(START), states((0.2, 0.3, -0.1, 0.4))
    rigid_body = in_a_metric(y, lambda rho, a, b: -(rho**2) * dot(y, cross(a, b)) * dx)
    assert rigid_body.antisymmetry_defect() < 1e-14
    assert rigid_body.jacobi_defect() < 1e-13
    assert in_a_metric(z, lambda rho, a, b: canonical(a, b)).jacobi_defect() > 0.1


def test_parts_that_a_pairing_couples():
    space = VectorFunctionSpace(fg.copies(1), "DG", 0, dim=1)
    z = Function(space * space, name="z")

    def bracket(a, b):
        (a_q, a_p), (b_q, b_p) = split(a), split(b)
        return (dot(a_q, b_p) - dot(a_p, b_q)) * dx

    def pairing(a, b):
        (a_q, a_p), (b_q, b_p) = split(a), split(b)
        return (inner(a, b) + 0.5 * dot(a_q, b_p) + 0.5 * dot(a_p, b_q)) * dx

    system = fg.PoissonSystem(z, inner(z, z) * dx, bracket, pairing, names=("q", "p"))
    for cls in (fg.PoissonIntegrator, fg.HamelFieldIntegrator, S):
        with pytest.raises(ValueError, match="the pairing couples 'q' with another one"):
            cls(system, 0.1)
    M(system, 0.1).advance()
