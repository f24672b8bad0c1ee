"""The rolling ball of Liu et al. from the machinery for Chaplygin systems, and its motion."""

import numpy as np
import pytest
import sympy as sp
from chaplygin_systems import HALF, ball, d, phi, psi, theta, with_added_terms, x, y
from firedrake import Function, FunctionSpace, VectorFunctionSpace, as_vector
from verification.nonholonomic_systems import BALL_MOMENTA, BALL_VELOCITY, ball_rates

import fdgeom as fg

R = sp.Rational


def is_zero(expression):
    return sp.simplify(expression) == 0


def in_full(expression):
    return sp.expand_trig(sp.sympify(expression).doit())


@pytest.fixture(scope="module")
def rolling():
    return ball()


@pytest.fixture(scope="module")
def free(rolling):
    return with_added_terms(rolling)


def test_embedded_lagrangian(rolling):
    """Equation (13)."""
    expected = HALF * (
        R(7, 5) * d(theta) ** 2
        + d(phi) ** 2 * sp.sin(theta) ** 2
        + R(2, 5) * (d(phi) ** 2 + d(psi) ** 2 + 2 * d(phi) * d(psi) * sp.cos(theta))
    )
    assert is_zero(rolling.embedded_lagrangian - expected)


def test_forces(rolling):
    """Equation (15)."""
    spin = d(psi) + d(phi) * sp.cos(theta)
    expected = {
        psi: 0,
        theta: -spin * d(phi) * sp.sin(theta),
        phi: spin * d(theta) * sp.sin(theta),
    }
    for q, force in rolling.forces.items():
        assert is_zero(force - expected[q])


def test_equations(rolling):
    """Left sides (14), the third with 2/5 ψ̇ cosθ where the paper prints 4/5."""
    expected = {
        psi: R(2, 5) * d(d(psi) + d(phi) * sp.cos(theta)),
        theta: R(7, 5) * d(theta, 2)
        - (d(phi) ** 2 * sp.sin(theta) * sp.cos(theta) - R(2, 5) * d(phi) * d(psi) * sp.sin(theta)),
        phi: d(d(phi) * sp.sin(theta) ** 2 + R(2, 5) * (d(phi) + d(psi) * sp.cos(theta))),
    }
    for q, left in expected.items():
        assert is_zero(rolling.euler(q) - left)
        assert is_zero(rolling.equation(q) - (left - rolling.forces[q]))
    printed = expected[phi] + R(2, 5) * d(d(psi) * sp.cos(theta))
    assert not is_zero(rolling.euler(phi) - printed)


def test_conditions_fail_as_it_stands(rolling):
    failing = rolling.failing_conditions()
    assert {(c.number, c.pair) for c in failing} == {
        (2, ("psi", "theta")),
        (2, ("psi", "phi")),
        (2, ("theta", "phi")),
        (2, ("phi", "phi")),
        (3, ("psi", "theta")),
        (3, ("psi", "phi")),
        (3, ("theta", "phi")),
    }
    named = {(c.number, c.pair): c for c in failing}
    first = named[2, ("psi", "phi")]
    assert str(first) == (
        "condition 2 for psi and phi: ∂Φ_psi/∂phi' + ∂Φ_phi/∂psi' = d/dt(∂Φ_psi/∂phi'' + ∂Φ_phi/∂psi'')"
    )
    # By hand: Φ_ψ = 0, and ∂Φ_φ/∂ψ̇ = θ̇ sinθ.
    assert is_zero(first.defect - d(theta) * sp.sin(theta))
    assert is_zero(named[2, ("phi", "phi")].defect - d(theta) * sp.sin(2 * theta))
    with pytest.raises(ValueError, match=r"so they have no L' .*: condition 2 for psi and"):
        rolling.lagrangian()


def test_added_terms(rolling, free):
    """Φ' of the paper, which satisfies all conditions."""
    spin = d(psi) + d(phi) * sp.cos(theta)
    expected = {
        psi: -d(spin),
        theta: -spin * d(phi) * sp.sin(theta),
        phi: -d(spin * sp.cos(theta)),
    }
    for q, force in free.forces.items():
        assert is_zero(in_full(force - expected[q]))
    assert free.failing_conditions() == ()
    assert all(c.holds and c.defect == 0 for c in free.helmholtz_conditions)
    # Three coordinates: three pairs for the first and third condition, six for the second.
    assert len(free.helmholtz_conditions) == 12
    # The motion is the same.
    for q, acceleration in rolling.accelerations.items():
        assert is_zero(in_full(acceleration - free.accelerations[q]))


def test_misprinted_term_is_refused(rolling):
    """E_φ(L̃) cosθ, as printed, does not vanish along the motion."""
    with pytest.raises(ValueError, match=r"^terms\[phi\(t\)\] does not vanish along the motion"):
        rolling.adding({phi: -R(5, 2) * rolling.euler(phi) * sp.cos(theta)})


def test_what_vanishes_on_one_side_alone_is_no_zero():
    """A free particle; |x| - x is zero for x > 0, and max(0, x - 5) for x < 5."""
    energy = (d(x) ** 2 + d(y) ** 2 + d(psi) ** 2) / 2
    free = fg.ChaplyginSystem(energy, [x, y], {psi: 0 * d(y)})
    for force in (sp.Abs(x) - x, sp.Max(0, x - 5), sp.sign(y) - 1):
        with pytest.raises(ValueError, match=r"does not vanish along the motion"):
            free.adding({x: force})
    assert free.adding({x: sp.Abs(x) ** 2 - x**2}).failing_conditions() == ()
    kinked = fg.ChaplyginSystem(energy, [x, y], {psi: (sp.Abs(x) - x) / 2 * d(y)})
    assert len(kinked.failing_conditions()) == 3


def test_parameters_with_names_of_arguments():
    base = sp.Symbol("base")
    with pytest.raises(ValueError, match="the parameter base has the name of an argument"):
        fg.ChaplyginSystem(base * (d(x) ** 2 + d(y) ** 2), [x], {y: x * d(x)})


def test_lagrangian_and_hamiltonian(free):
    """Equations (17) and (18)."""
    lagrangian = R(7, 10) * (
        d(psi) ** 2 + d(theta) ** 2 + d(phi) ** 2 + 2 * d(phi) * d(psi) * sp.cos(theta)
    )
    assert is_zero(free.lagrangian() - lagrangian)
    a, b, c = free.momenta
    assert [p.name for p in free.momenta] == ["p_psi", "p_theta", "p_phi"]
    hamiltonian = (
        R(5, 14)
        / sp.sin(theta) ** 2
        * (a**2 + c**2 + b**2 * sp.sin(theta) ** 2 - 2 * a * c * sp.cos(theta))
    )
    assert is_zero(free.hamiltonian() - hamiltonian)


def test_ball_with_parameters():
    """Mass, radius, moment of inertia and a torque: L' and the numbers given to H'."""
    m, r, moment, k = sp.symbols("m r J k", positive=True)
    system = with_added_terms(ball(m, r, moment, -k * sp.cos(theta)), m, r, moment)
    assert system.parameters == ("J", "k", "m", "r")
    turning = d(psi) ** 2 + d(theta) ** 2 + d(phi) ** 2 + 2 * d(phi) * d(psi) * sp.cos(theta)
    expected = HALF * (moment + m * r**2) * turning + k * sp.cos(theta)
    assert is_zero(system.lagrangian() - expected)
    q, p = angles(3)
    # A value for each copy: the density is constant on unit cells.
    torques = Function(FunctionSpace(q.function_space().mesh(), "DG", 0))
    torques.dat.data_wo[...] = (0.0, 1.0, 2.0)
    hamiltonian = system.hamiltonian_system(q, p, m=1, r=1.0, J=0.4, k=torques)
    energy = 9.404761904761905
    assert hamiltonian.energy() == pytest.approx(3 * energy - 3 * np.cos(np.pi / 3), rel=1e-14)
    with pytest.raises(ValueError, match=r"^a value is needed for the parameter J: J=\.\.\."):
        system.hamiltonian_system(q, p, m=1, r=1, k=1)
    with pytest.raises(ValueError, match=r"^g is no parameter of this system; it has J, k, m, r"):
        system.hamiltonian_system(q, p, m=1, r=1, k=1, J=1, g=1)
    with pytest.raises(TypeError, match=r"^m must be a number or UFL"):
        system.hamiltonian_system(q, p, m="heavy", r=1, k=1, J=1)


def angles(number=1):
    space = VectorFunctionSpace(fg.copies(number), "DG", 0, dim=3)
    q, p = Function(space, name="q"), Function(space, name="p")
    q.dat.data_wo[...] = (0, np.pi / 3, 0)
    p.dat.data_wo[...] = BALL_MOMENTA
    return q, p


@pytest.mark.parametrize(
    ("method", "order", "steps"),
    [
        (fg.ImplicitMidpoint, 2, (200, 400, 800)),
        (fg.GeneratingFunction4, 4, (100, 150, 200)),
        (fg.RungeKutta4, 4, (200, 300, 400)),
    ],
)
def test_motion(free, method, order, steps):
    """From the generated UFL: p_ψ and p_φ at round-off, and the centre's velocity, which is constant."""
    q, p = angles()
    system = free.hamiltonian_system(q, p)
    assert system.energy() == pytest.approx(9.404761904761905, rel=1e-15)
    velocity = Function(VectorFunctionSpace(system.mesh, "DG", 0, dim=2))
    rule = as_vector([free.as_ufl(d(u), q, p) for u in (x, y)])
    velocity.interpolate(rule)
    assert velocity.dat.data_ro[0] == pytest.approx(BALL_VELOCITY, abs=1e-9)
    stepper, errors = method(system, 1.0), []
    assert stepper.is_compiled
    for n in steps:
        q.dat.data_wo[...], p.dat.data_wo[...] = (0, np.pi / 3, 0), BALL_MOMENTA
        stepper.dt = 1.0 / n
        stepper.advance(n)
        a, _, c = p.dat.data_ro[0]
        # Round-off of some hundred additions to 1.
        assert abs(a - 1) < 1e-13
        assert abs(c) < 1e-13
        velocity.interpolate(rule)
        errors.append(np.abs(velocity.dat.data_ro[0] - BALL_VELOCITY).max())
    rates = -np.diff(np.log(errors)) / np.diff(np.log(steps))
    assert rates[-1] == pytest.approx(order, abs=0.2)


@pytest.mark.parametrize(
    ("method", "order"), [(fg.ImplicitMidpoint, 2), (fg.GeneratingFunction4, 4)]
)
def test_energy_error(free, method, order):
    """The largest error of H' over the first second falls with the order of the method."""
    q, p = angles()
    system = free.hamiltonian_system(q, p)
    stepper, errors = method(system, 1.0), []
    for n in (200, 300, 400):
        q.dat.data_wo[...], p.dat.data_wo[...] = (0, np.pi / 3, 0), BALL_MOMENTA
        stepper.dt = 1.0 / n
        worst = 0.0
        for _ in range(n):
            stepper.advance()
            worst = max(worst, abs(system.energy() - 9.404761904761905))
        errors.append(worst)
    rates = -np.diff(np.log(errors)) / np.diff(np.log((200, 300, 400)))
    assert rates == pytest.approx(order, abs=0.2)


def test_accelerations_against_the_canonical_equations(rolling):
    """θ̈ from Chaplygin's equations and from H', as numbers."""
    place, momenta = (0.3, 1.1, -0.4), (0.9, 0.2, -0.5)
    rates = ball_rates(place, momenta)
    values = dict(zip((psi, theta, phi), place, strict=True))
    speeds = {d(q): u for q, u in zip((psi, theta, phi), rates, strict=True)}
    found = [float(e.xreplace(speeds | values)) for e in rolling.accelerations.values()]
    s, step = place[1], 1e-6
    a, _, c = momenta

    def energy(angle):
        return 5 / 14 * (a * a + c * c - 2 * a * c * np.cos(angle)) / np.sin(angle) ** 2

    force = -(energy(s + step) - energy(s - step)) / (2 * step)
    assert found[1] == pytest.approx(5 / 7 * force, abs=1e-8)
    # ψ̇ and φ̇ follow θ with constant momenta.
    ahead, behind = (ball_rates((0, s + e, 0), momenta) for e in (step, -step))
    slopes = (ahead - behind) / (2 * step) * rates[1]
    assert found[0] == pytest.approx(slopes[0], abs=1e-8)
    assert found[2] == pytest.approx(slopes[2], abs=1e-8)
