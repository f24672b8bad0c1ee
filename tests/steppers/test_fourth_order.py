"""FourthOrderAlpha and HermiteSimpson on small systems: published numbers, orders, structure."""

import numpy as np
import pytest
from firedrake import (
    DirichletBC,
    Function,
    FunctionSpace,
    IntervalMesh,
    MixedFunctionSpace,
    SpatialCoordinate,
    VectorFunctionSpace,
    as_vector,
    conditional,
    cos,
    dot,
    dx,
    grad,
    inner,
    lt,
    sin,
    sqrt,
)
from verification.spring_systems import follow, matrices, oscillator, pendulum, state

import fdgeom as fg
from fdgeom.analysis import eigenvalues, spectral_radius

KAPPA = (1.0, 0.0, -1.5)
# |q error| of the oscillator ω = π, q = v = 1, at t = 1 after so many steps.
ERRORS = {
    8: (9.695053e-05, 1.132691e-04, 1.377492e-04),
    16: (6.158816e-06, 7.187747e-06, 8.731153e-06),
    32: (3.865298e-07, 4.509897e-07, 5.476796e-07),
    64: (2.418337e-08, 2.821453e-08, 3.426127e-08),
}
M, K = np.diag([1.0, 2.0]), np.array([[30.0, -5.0], [-5.0, 12.0]])
START = (1.0, -0.5), (0.3, 2.0)
FIRST_STEP = {
    1.0: ((0.87190973, -0.27485279), (-2.77856076, 2.47503006)),
    0.0: ((0.87193049, -0.27485579), (-2.77859345, 2.47503364)),
}
# q̈ = -sin q from q = v = 1: q at t = 4, and its error after 64 and 128 steps.
PENDULUM, PENDULUM_ERRORS = -1.2782114313080, {64: 7.820001e-8, 128: 4.890124e-9}


def orders(errors):
    errors = np.array(errors)
    return np.log2(errors[:-1] / errors[1:])


@pytest.mark.parametrize("column", range(3))
def test_published_errors(column):
    errors = []
    for steps, expected in ERRORS.items():
        system = oscillator()
        fg.FourthOrderAlpha(system, 1 / steps, KAPPA[column]).advance(steps)
        errors.append(np.abs(state(system)[:2, 0] + 1))
        # Half of the seventh printed digit, and a few roundings of states of size one.
        assert errors[-1][0] == pytest.approx(expected[column], rel=5.1e-7, abs=1e-14)
    assert orders(errors)[-1] == pytest.approx([4, 4], abs=0.01)


@pytest.mark.parametrize("kappa", FIRST_STEP)
def test_published_first_step(kappa):
    system = matrices(M, K, *START)
    fg.FourthOrderAlpha(system, 0.1, kappa).advance()
    assert state(system)[:2] == pytest.approx(np.array(FIRST_STEP[kappa]), abs=5.1e-9)  # as printed


def test_pendulum():
    for steps, expected in PENDULUM_ERRORS.items():
        system = pendulum()
        fg.HermiteSimpson(system, 4 / steps).advance(steps)
        # The reference has thirteen decimals.
        assert abs(state(system)[0, 0] - PENDULUM) == pytest.approx(expected, abs=1e-13)


def test_hermite_simpson_contains_the_parabola():
    """For a linear undamped system it is the scheme with κ = 0."""
    one, other = matrices(M, K, *START), matrices(M, K, *START)
    got = follow(fg.HermiteSimpson(one, 0.1), 100)
    expected = follow(fg.FourthOrderAlpha(other, 0.1, 0.0), 100)
    assert got == pytest.approx(expected, abs=3e-12)  # round-off of a hundred steps, a up to 40


def driven(q=0.3, v=-0.2):
    """q̈ + q̇/5 + q̇³/10 + sin q = f with the solution 0.3 cos t - 0.2 sin 2t + 0.2 sin t."""
    space = FunctionSpace(fg.copies(1), "DG", 0)

    def residual(q, v, a, t, test):
        def balance(q, v, a):
            return a + v / 5 + v**3 / 10 + sin(q)

        exact = (
            0.3 * cos(t) - 0.2 * sin(2 * t) + 0.2 * sin(t),
            -0.3 * sin(t) - 0.4 * cos(2 * t) + 0.2 * cos(t),
            -0.3 * cos(t) + 0.8 * sin(2 * t) - 0.2 * sin(t),
        )
        return (balance(q, v, a) - balance(*exact)) * test * dx

    return fg.SecondOrderSystem(residual, Function(space).assign(q), Function(space).assign(v))


def test_order_four_nonlinear_damped_and_forced(recorded):
    t, errors = 3.0, []
    exact = [
        0.3 * np.cos(t) - 0.2 * np.sin(2 * t) + 0.2 * np.sin(t),
        -0.3 * np.sin(t) - 0.4 * np.cos(2 * t) + 0.2 * np.cos(t),
        -0.3 * np.cos(t) + 0.8 * np.sin(2 * t) - 0.2 * np.sin(t),
    ]
    for steps in (10, 20, 40, 80):
        system = driven()
        fg.HermiteSimpson(system, t / steps).advance(steps)
        errors.append(np.abs(state(system)[:, 0] - exact))
    assert orders(errors)[-1] == pytest.approx([4, 4, 4], abs=0.15)
    for k, field in enumerate(("q", "v", "v̇")):
        recorded.order(
            "HermiteSimpson", f"a driven nonlinear oscillator, {field}", claimed=4,
            measured=orders(errors)[-1][k], steps=(10, 20, 40, 80), errors=np.array(errors)[:, k],
        )  # fmt: skip


@pytest.mark.parametrize("kappa", KAPPA)
def test_order_four_with_a_load_linear_in_time(kappa, recorded):
    """q̈ + 4 q = 1 + 2t from rest: q = ¼ + t/2 - cos(2t)/4 - sin(2t)/4."""
    errors = []
    for steps in (10, 20, 40):
        system = matrices(
            np.eye(1), 4 * np.eye(1), [0], [0], force=lambda t: as_vector([1 + 2 * t])
        )
        fg.FourthOrderAlpha(system, 2 / steps, kappa).advance(steps)
        exact = 1.25 - np.cos(4) / 4 - np.sin(4) / 4
        errors.append(abs(state(system)[0, 0] - exact))
    assert orders(errors)[-1] == pytest.approx(4, abs=0.05)
    words = f"an oscillator under a load that grows, κ = {kappa:.3g}"
    recorded.order(
        "FourthOrderAlpha", words, claimed=4, measured=orders(errors)[-1],
        steps=(10, 20, 40), errors=errors,
    )  # fmt: skip


# --- structure --------------------------------------------------------------------------------------
def reverse(system):
    system.v.assign(-system.v)


@pytest.mark.parametrize(
    "make",
    [lambda: fg.HermiteSimpson(pendulum(), 0.2), lambda: fg.FourthOrderAlpha(oscillator(), 0.2)],
)
def test_symmetric(make):
    stepper = make()
    start = state(stepper.system)
    stepper.advance(20)
    reverse(stepper.system)
    stepper.advance(20)
    reverse(stepper.system)
    assert state(stepper.system) == pytest.approx(start, abs=1e-12)  # round-off of forty steps


@pytest.mark.parametrize("kappa", KAPPA)
def test_symplectic(kappa):
    """The matrix of a step of two masses keeps dq ∧ M dv."""
    rows = []
    for unit in np.eye(4):
        system = matrices(M, K, unit[:2], unit[2:])
        fg.FourthOrderAlpha(system, 0.3, kappa).advance()
        rows.append(state(system)[:2].reshape(-1))
    step = np.array(rows).T
    two_form = np.block([[np.zeros((2, 2)), M], [-M, np.zeros((2, 2))]])
    assert step.T @ two_form @ step == pytest.approx(two_form, abs=1e-13)  # a few roundings


def test_momentum_of_a_free_body():
    K_free = np.array([[4.0, -4.0], [-4.0, 4.0]])
    system = matrices(M, K_free, *START)
    rows = follow(fg.FourthOrderAlpha(system, 0.4), 200)
    momentum = rows[:, 1] @ np.diag(M)
    assert np.ptp(momentum) < 1e-12  # round-off of two hundred steps


def test_amplification_is_the_step():
    omega, h = 3.0, 0.2
    for kappa in KAPPA:
        system = oscillator(omega, 0.7, -1.1)
        fg.FourthOrderAlpha(system, h, kappa).advance()
        got = state(system)[:2, 0] * [1, h]
        expected = fg.FourthOrderAlpha.amplification(kappa)(omega * h) @ [0.7, -1.1 * h]
        assert got == pytest.approx(expected, abs=1e-14)  # a few roundings


@pytest.mark.parametrize(
    ("kappa", "limit", "leading"),
    [(1.0, 3.201441, 1 / 240), (0.0, 12**0.5, 7 / 1440), (-1.5, np.inf, 17 / 2880)],
)
def test_stability_and_phase(kappa, limit, leading):
    method = fg.FourthOrderAlpha.amplification(kappa)
    inside = np.linspace(0, min(limit - 1e-4, 1e3), 2001)
    assert spectral_radius(method, inside).max() < 1 + 1e-7  # a nearly double root 1 or -1
    if np.isfinite(limit):
        assert spectral_radius(method, limit + 1e-4) > 1.001
    Omega = 0.1
    root = eigenvalues(method, Omega)[0]
    # cos θ - cos Ω, with a next term smaller by Ω²/3 or so.
    assert root.real - np.cos(Omega) == pytest.approx(leading * Omega**6, rel=5e-3)


# --- elsewhere than on one mass ---------------------------------------------------------------------
@pytest.mark.parametrize("make", [fg.HermiteSimpson, fg.FourthOrderAlpha])
def test_mixed_space(make):
    """q of two parts, coupled, beside the same system as one vector."""
    mesh = fg.copies(1)
    one = FunctionSpace(mesh, "DG", 0)
    q, v = (Function(MixedFunctionSpace([one, one])) for _ in range(2))
    for f, values in zip((q, v), START, strict=True):
        for part, value in zip(f.subfunctions, values, strict=True):
            part.assign(value)

    def residual(q, v, a, t, test):
        forces = [sum(K[i, j] * q[j] for j in range(2)) for i in range(2)]
        return sum((M[i, i] * a[i] + forces[i]) * test[i] for i in range(2)) * dx

    system, plain = fg.SecondOrderSystem(residual, q, v), matrices(M, K, *START)
    make(system, 0.1).advance(10)
    make(plain, 0.1).advance(10)
    got = [[part.dat.data_ro[0] for part in f.subfunctions] for f in (q, v)]
    assert np.array(got) == pytest.approx(state(plain)[:2], abs=1e-13)  # another order of pivots


def string(moving):
    """u_tt = u_xx with the solution cos(t) sin(x) + x (1 + sin 2t) on [0, 1], forced by the last term."""
    V = FunctionSpace(IntervalMesh(1, 1), "CG", 8)
    (x,) = SpatialCoordinate(V.mesh())
    rate = 1.0 if moving else 0.0
    u = Function(V).interpolate(sin(x) + x)
    v = Function(V).interpolate(2 * rate * x)

    def exact(t):
        return cos(t) * sin(x) + x * (1 + rate * sin(2 * t))

    def residual(u, v, a, t, w):
        load = -4 * rate * x * sin(2 * t)
        return ((a - load) * w + inner(grad(u), grad(w))) * dx

    def bcs(t):
        return [DirichletBC(V, exact(t), "on_boundary")]

    if not moving:

        def bcs(t):
            # cos(t) sin(1) at the right end: a load there instead, so that the ends stay.
            return [DirichletBC(V, 0, 1)]

        def residual(u, v, a, t, w):
            return (a * w + inner(grad(u), grad(w))) * dx

        u.interpolate(sin(np.pi * x / 2))
    return fg.SecondOrderSystem(residual, u, v, bcs=bcs), exact


def test_given_motion_of_the_ends():
    errors = []
    for steps in (16, 32, 64):
        system, exact = string(moving=True)
        stepper = fg.HermiteSimpson(system, 0.5 / steps)
        stepper.advance(steps)
        gap = Function(system.space).interpolate(exact(0.5)).dat.data_ro - system.q.dat.data_ro
        errors.append(np.abs(gap).max())
    # Polynomials of degree 8 leave an error in space of 1e-11.
    assert orders(errors)[-1] == pytest.approx(4, abs=0.2)


def test_a_held_end():
    """Standing wave sin(πx/2) cos(πt/2), held at the left and free at the right end."""
    found = []
    for steps in (32, 64, 128, 256):  # stable for the one element of degree 8 from 24 steps on
        system, _ = string(moving=False)
        fg.FourthOrderAlpha(system, 0.5 / steps).advance(steps)
        found.append(system.q.dat.data_ro.copy())
    (x,) = SpatialCoordinate(system.mesh)
    exact = Function(system.space).interpolate(sin(np.pi * x / 2) * np.cos(np.pi / 4))
    assert np.abs(found[-1] - exact.dat.data_ro).max() < 1e-8  # the error in space
    changes = np.abs(np.diff(found, axis=0)).max(axis=1)
    assert orders(changes)[-1] == pytest.approx(4, abs=0.1)


@pytest.mark.parametrize("make", [fg.HermiteSimpson, fg.FourthOrderAlpha])
def test_goes_on_from_a_copied_state(make):
    """All that a step needs is in the functions of the system."""
    system, copy = matrices(M, K, *START), matrices(M, K, *START)
    stepper, other = make(system, 0.1), make(copy, 0.1)
    stepper.advance(5)
    for name, f in copy.functions().items():
        f.dat.data_wo[...] = system.functions()[name].dat.data_ro
    stepper.advance(5)
    other.advance(5)
    assert state(copy) == pytest.approx(state(system), abs=1e-12)  # M⁻¹K a is found anew


def test_a_state_set_between_two_steps():
    system, other = pendulum(), pendulum(q=-0.4, v=0.9)
    stepper = fg.HermiteSimpson(system, 0.1)
    stepper.advance(3)
    system.q.assign(-0.4)
    system.v.assign(0.9)
    stepper.advance(3)
    fg.HermiteSimpson(other, 0.1).advance(3)
    assert state(system) == pytest.approx(state(other), abs=1e-14)  # the same steps


def test_a_first_step_that_is_very_short():
    """Newton's iteration ends at the round-off of each step, not at that of the first one."""
    found = []
    for first in (0.1, 1e-9):
        system = pendulum()
        stepper = fg.HermiteSimpson(system, first)
        stepper.advance(1)
        system.q.assign(1.0)
        system.v.assign(1.0)
        stepper.dt = 4 / 64
        stepper.advance(64)
        found.append(state(system)[0] - PENDULUM)
    assert found == pytest.approx([PENDULUM_ERRORS[64]] * 2, rel=1e-3)


def test_claims():
    hermite, fourth = fg.HermiteSimpson, fg.FourthOrderAlpha
    assert (hermite.order, hermite.symmetric, hermite.symplectic) == (4, True, False)
    assert (fourth.order, fourth.symmetric, fourth.symplectic) == (4, True, True)
    assert fourth.conserves == ("momenta of linear symmetries",)


# --- refusals ---------------------------------------------------------------------------------------
def plain(residual, bcs=()):
    V = VectorFunctionSpace(fg.copies(1), "DG", 0, dim=2)
    return fg.SecondOrderSystem(residual, Function(V), Function(V), bcs=bcs)


F, H = fg.FourthOrderAlpha, fg.HermiteSimpson


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: F(plain(lambda q, v, a, t, w: dot(a + v + q, w) * dx), 0.1), "velocity"),
        (
            lambda: F(plain(lambda q, v, a, t, w: dot(a + dot(q, q) * q, w) * dx), 0.1),
            "linear in q",
        ),
        (lambda: F(plain(lambda q, v, a, t, w: dot(a + t * q, w) * dx), 0.1), "linear in q"),
        (lambda: F(plain(lambda q, v, a, t, w: dot((2 + t) * a + q, w) * dx), 0.1), "linear in a"),
        (
            lambda: F(
                plain(lambda q, v, a, t, w: dot(a + q - sin(t) * as_vector([1, 0]), w) * dx), 0.1
            ),
            "load is not linear in time",
        ),
        (
            lambda: F(
                plain(lambda q, v, a, t, w: (dot(a + q, w) - conditional(lt(t, 1), 0, w[0])) * dx),
                0.1,
            ),
            "load is not linear in time",
        ),
        (lambda: F(string(moving=True)[0], 0.1), "load is not linear in time"),
        (lambda: F(oscillator(), 0.1, kappa=np.nan), "kappa must be a finite number"),
        (lambda: F(oscillator(), -0.1), "dt must be a positive number"),
        (lambda: H(oscillator(), 0.1, solver_parameters={"ksp_tpye": "cg"}), "ksp_tpye"),
        (lambda: H(plain(lambda q, v, a, t, w: (a[0] * w[0] + dot(q, w)) * dx), 0.1), "no acceler"),
    ],
)
def test_refused_values(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: F(3, 0.1), "FourthOrderAlpha needs a SecondOrderSystem, not int"),
        (lambda: H(oscillator().q, 0.1), "HermiteSimpson needs a SecondOrderSystem"),
        (lambda: F(oscillator(), 0.1, kappa="1"), "kappa must be a number"),
    ],
)
def test_refused_types(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_constraint_refused():
    mesh = fg.copies(1)
    V, L = (VectorFunctionSpace(mesh, "DG", 0, dim=d) for d in (2, 1))
    q = Function(V).interpolate(as_vector([1, 0]))
    system = fg.SecondOrderSystem(
        lambda q, v, a, t, w: dot(a, w) * dx,
        q,
        Function(V),
        constraint=lambda mult: mult[0] * (dot(q, q) - 1) * dx,
        multiplier=Function(L),
    )
    with pytest.raises(ValueError, match="takes no constraint; use GeneralizedAlpha"):
        H(system, 0.1)


def test_a_failed_step_leaves_the_state():
    """The force is a square root, and Newton's iteration meets a negative number."""
    V = FunctionSpace(fg.copies(1), "DG", 0)
    q, v = Function(V).assign(0.5), Function(V).assign(-3.0)
    system = fg.SecondOrderSystem(lambda q, v, a, t, w: (a + sqrt(q)) * w * dx, q, v)
    stepper = H(system, 0.02)
    with pytest.raises(fg.StepFailed, match="the SNES for the accelerations") as caught:
        stepper.advance(50)
    assert 4 < caught.value.step == stepper.steps < 10
    before = state(system)
    assert 0 < before[0, 0] < 0.1
    with pytest.raises(fg.StepFailed):
        stepper.advance()
    assert np.array_equal(state(system), before)
