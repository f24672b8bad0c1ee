"""Generalized-α on small vector-space systems: published numbers, other codes, orders."""

import numpy as np
import pytest
from firedrake import DirichletBC, Function, FunctionSpace, IntervalMesh, dx, split
from verification import alpha_references as references
from verification.spring_systems import follow, linear, matrices, oscillator, pendulum, state

import fdgeom as fg

RHO = (0.0, 0.2, 0.5, 0.8, 1.0)
# |q error| at t = 1 of the oscillator ω = π, q = v = 1, after 1/h steps.
DISPLACEMENT = {
    10: (6.151038e-2, 3.190105e-2, 1.381265e-2, 8.953444e-3, 8.428295e-3),
    20: (1.476225e-2, 7.371839e-3, 3.270871e-3, 2.191264e-3, 2.069287e-3),
    40: (3.354653e-3, 1.709110e-3, 7.941057e-4, 5.443302e-4, 5.148681e-4),
    80: (7.781060e-4, 4.072764e-4, 1.956149e-4, 1.358103e-4, 1.285622e-4),
    160: (1.859137e-4, 9.914894e-5, 4.854521e-5, 3.392902e-5, 3.213085e-5),
    1280: (2.779423e-6, 1.511459e-6, 7.536776e-7, 5.299089e-7, 5.019948e-7),
}
VELOCITY_1280 = (2.417930e-5, 1.350751e-5, 7.094896e-6, 5.192461e-6, 4.954477e-6)
# (ρ∞, step): q, v, a and the control force τ = a - v̇, for h = 0.1.
TRACE = {
    (0.0, 1): (
        1.048269951372044,
        -2.269083944657813e-2,
        -1.010780706334030e1,
        2.382026622509459e-1,
    ),
    (0.5, 1): (
        1.049212833698089,
        -1.394439566764361e-2,
        -1.019341186779385e1,
        1.619037333522453e-1,
    ),
    (0.8, 1): (
        1.049398019881318,
        -1.178881075098825e-2,
        -1.027588682977749e1,
        8.125648573762677e-2,
    ),
    (0.8, 2): (0.9977739823168501, -1.020878796070283, -9.973180868093699, -1.255463809268599e-1),
    (0.8, 10): (-0.9910465557996270, -1.083223762933263, 9.644875253227083, -1.363621955773670e-1),
    (1.0, 1): (1.049432285244540, -1.135429510920649e-2, -1.035748150109477e1, 0.0),
}
# The pendulum q̈ = -sin q from q = v = 1 at t = 4, and the errors of q after 64 and 128 steps.
PENDULUM = (-1.2782114313080, -0.7044514481875)
PENDULUM_ERRORS = {
    0.0: (3.659799e-3, 8.860510e-4),
    0.5: (9.724232e-4, 2.417705e-4),
    0.8: (6.905007e-4, 1.725154e-4),
    1.0: (6.560915e-4, 1.639650e-4),
}


def run(system, steps, until, scheme):
    fg.GeneralizedAlpha(system, until / steps, scheme).advance(steps)
    return state(system)


@pytest.mark.parametrize("column", range(5))
def test_published_errors(column):
    for steps, errors in DISPLACEMENT.items():
        q, v, _ = run(oscillator(), steps, 1.0, fg.hamel_alpha(RHO[column]))
        # Half of the seventh printed digit, and round-off of states of size one over up to 1280 steps.
        assert abs(q[0] + 1) == pytest.approx(errors[column], rel=5e-7, abs=2e-12)
    assert abs(v[0] + 1) == pytest.approx(VELOCITY_1280[column], rel=3e-7)


@pytest.mark.parametrize(("rho", "steps"), TRACE)
def test_state_trace(rho, steps):
    system = oscillator()
    fg.GeneralizedAlpha(system, 0.1, fg.hamel_alpha(rho)).advance(steps)
    a, true = system.algorithmic.dat.data_ro[0], system.acceleration.dat.data_ro[0]
    got = (system.q.dat.data_ro[0], system.v.dat.data_ro[0], a, a - true)
    # Sixteen digits are printed; a is a difference of displacements over βh², here 400 roundings.
    assert got == pytest.approx(TRACE[rho, steps], abs=5e-13)
    assert true == pytest.approx(
        -(np.pi**2) * got[0], abs=5e-13
    )  # the reported one is the true one


@pytest.mark.parametrize("rho", PENDULUM_ERRORS)
def test_pendulum(rho):
    for steps, expected in zip((64, 128), PENDULUM_ERRORS[rho], strict=True):
        q, _, a = run(pendulum(), steps, 4.0, fg.hamel_alpha(rho))
        # Seven digits of the error; the reference has thirteen decimals.
        assert abs(q[0] - PENDULUM[0]) == pytest.approx(expected, rel=2e-7)
        assert a[0] == pytest.approx(-np.sin(q[0]), abs=1e-12)  # a division by βh² rounds


# --- other codes -----------------------------------------------------------------------------------
H, STEPS = 1 / 16, 1000  # a step that the time is an exact multiple of
CODES = {
    "newmark": (fg.newmark(0.3, 0.55), lambda s: references.newmark(s, H, STEPS, 0.3, 0.55)),
    "trapezoidal": (fg.newmark(), lambda s: references.newmark(s, H, STEPS, 0.25, 0.5)),
    "hht": (fg.hht_alpha(-0.2), lambda s: references.hht(s, H, STEPS, -0.2)),
    "wbz": (fg.wbz_alpha(-0.3), lambda s: references.wbz(s, H, STEPS, -0.3)),
    **{
        f"chung_hulbert {rho}": (
            make(rho),
            lambda s, r=rho: references.chung_hulbert(s, H, STEPS, r),
        )
        for make, rho in (
            (fg.chung_hulbert, 0.0),
            (fg.hamel_alpha, 0.4),
            (fg.chung_hulbert, 0.8),
            (fg.hamel_alpha, 1.0),
        )
    },
    "any": (
        fg.general_alpha(0.12, 0.31, 0.45, 0.8),
        lambda s: references.generalized_alpha(s, H, STEPS, 0.12, 0.31, 0.45, 0.8),
    ),
}


@pytest.mark.parametrize("name", CODES)
def test_reductions(name):
    """A damped, forced system of four masses, 1000 steps, beside a code of its own for each method."""
    scheme, reference = CODES[name]
    four = references.four_masses()
    expected = reference(four)
    got = follow(fg.GeneralizedAlpha(linear(four), H, scheme), STEPS)[1:]
    gap = np.abs(got - expected).max(axis=(0, 2)) / np.abs(expected).max(axis=(0, 2))
    # Round-off of a thousand steps, with matrices of condition 1e3.
    assert gap.max() < 1e-12


# --- order ----------------------------------------------------------------------------------------
def orders(errors):
    return np.log2(errors[:-1] / errors[1:])


@pytest.mark.parametrize(
    ("scheme", "order"),
    [
        (fg.hamel_alpha(0.7), 2),
        (fg.hht_alpha(-0.3), 2),
        (fg.wbz_alpha(-0.5), 2),
        (fg.three_root(0.9, 0.5, 0.3), 2),
        (fg.newmark(0.3, 0.6), 1),
        (fg.general_alpha(0.1, 0.3, 0.5, 0.9), 1),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_order(scheme, order, recorded):
    errors = []
    for steps in (40, 80, 160, 320):
        system = pendulum()
        stepper = fg.GeneralizedAlpha(system, 4.0 / steps, scheme)
        assert stepper.order == order
        stepper.advance(steps)
        got = state(system)
        exact = np.array([*PENDULUM, -np.sin(PENDULUM[0])])
        errors.append(np.abs(got[:, 0] - exact))
    # q, v and the true acceleration alike.
    assert orders(np.array(errors))[-1] == pytest.approx([order] * 3, abs=0.15)
    errors = np.array(errors)
    for k, field in enumerate(("q", "v", "v̇")):
        recorded.order(
            "GeneralizedAlpha", f"pendulum, {field}, {scheme.name}", claimed=order,
            measured=orders(errors)[-1][k], steps=(40, 80, 160, 320), errors=errors[:, k],
        )  # fmt: skip


def varying(steps, rescale=True):
    """Errors of a run with steps h, 2h, h, 2h, ..."""
    system = pendulum()
    h = 4.0 / (3 * steps)
    stepper = fg.GeneralizedAlpha(system, h, fg.hamel_alpha(0.2))
    for n in range(2 * steps):
        stepper.dt = h if n % 2 == 0 else 2 * h
        if not rescale:
            stepper.clock = stepper.clock.begun()
        stepper.advance()
    assert stepper.t == pytest.approx(4.0)
    return np.abs(state(system)[:2, 0] - PENDULUM)


def test_order_two_with_alternating_steps():
    errors = np.array([varying(n) for n in (20, 40, 80, 160)])
    assert orders(errors)[-1] == pytest.approx([2, 2], abs=0.1)


def test_without_rescaling_the_order_would_be_one():
    errors = np.array([varying(n, rescale=False) for n in (160, 320, 640)])
    assert orders(errors)[-1] == pytest.approx([1, 1], abs=0.2)


def test_trapezoidal_rule_keeps_the_energy_of_a_linear_system():
    four = references.four_masses()
    system = matrices(four.M, four.K, four.q, four.v)
    rows = follow(fg.GeneralizedAlpha(system, H, fg.hamel_alpha(1.0)), STEPS)
    q, v = rows[:, 0], rows[:, 1]
    energy = 0.5 * (np.einsum("ti,ij,tj->t", v, four.M, v) + np.einsum("ti,ij,tj->t", q, four.K, q))
    assert np.abs(energy / energy[0] - 1).max() < 1e-12  # round-off over a thousand steps


def test_consistent_start_removes_the_transient():
    """a_n follows v̇(t_n + δh) from the first step on, where the default start is off by O(h)."""
    gaps = {}
    for start in ("default", "consistent"):
        gaps[start] = []
        for steps in (20, 40, 80, 160):
            system, scheme = oscillator(), fg.hamel_alpha(0.8)
            h = 1.0 / steps
            stepper = fg.GeneralizedAlpha(system, h, scheme, start=start)
            stepper.advance()
            t = h + scheme.shift * h
            exact = -(np.pi**2) * (np.cos(np.pi * t) + np.sin(np.pi * t) / np.pi)
            gaps[start].append(abs(system.algorithmic.dat.data_ro[0] - exact))
    assert orders(np.array(gaps["default"]))[-1] == pytest.approx(1, abs=0.15)
    assert orders(np.array(gaps["consistent"]))[-1] == pytest.approx(2, abs=0.15)


def test_consistent_start_beside_a_given_motion():
    """Two nodes with M = [[2, 1], [1, 2]]/6 and g = t³: a = -g̈/2 and so σ h (-g⃛/2) at the start."""
    space = FunctionSpace(IntervalMesh(1, 1.0), "CG", 1)
    q, v = Function(space), Function(space)
    system = fg.SecondOrderSystem(
        lambda q, v, a, t, w: a * w * dx, q, v, bcs=lambda t: DirichletBC(space, t**3, 1)
    )
    stepper = fg.GeneralizedAlpha(system, 0.1, start="consistent")
    (given,) = space.boundary_nodes(1)
    expected = np.full(2, stepper.scheme.shift * 0.1 * -3)
    expected[given] = 0.0
    assert system.algorithmic.dat.data_ro == pytest.approx(expected, abs=1e-13)
    stepper.advance(1)
    # v = -g'/2 at t = h: where a is linear in time, the scheme is exact.
    assert v.dat.data_ro[1 - given] == pytest.approx(-0.5 * 3 * 0.1**2, abs=1e-13)


def test_resumed_run_is_the_same(tmp_path):
    """All that a step needs is in the checkpoint, the algorithmic acceleration too."""
    path = tmp_path / "pendulum.h5"

    def stepper():
        return fg.GeneralizedAlpha(pendulum(), 0.1, fg.hamel_alpha(0.3))

    whole = stepper()
    whole.run(steps=10, checkpoint=fg.Checkpoint(path), progress=False)
    whole.advance(10)
    resumed = stepper()
    fg.resume(resumed, path)
    resumed.advance(10)
    assert np.array_equal(state(resumed.system), state(whole.system))
    assert resumed.t == whole.t


def test_a_state_set_between_two_steps():
    """The accelerations are those of the new state."""
    stepper = fg.GeneralizedAlpha(pendulum(), 0.1)
    stepper.advance(3)
    stepper.system.q.assign(-0.4)
    stepper.system.v.assign(0.9)
    stepper.advance(3)
    other = fg.GeneralizedAlpha(pendulum(q=-0.4, v=0.9), 0.1)
    other.advance(3)
    assert np.array_equal(state(stepper.system), state(other.system))


@pytest.mark.parametrize(("method", "order"), [(fg.GeneralizedAlpha, 2), (fg.HermiteSimpson, 4)])
def test_a_residual_of_split_functions(method, order):
    """q₁'' = -q₁ and q₂'' = -4 q₂ from (1, 1): cos t and cos 2t at t = 1, by ``split`` in the residual."""
    space = FunctionSpace(fg.copies(1), "DG", 0)

    def residual(q, v, a, t, test):
        (q1, q2), (a1, a2), (w1, w2) = split(q), split(a), split(test)
        return ((a1 + q1) * w1 + (a2 + 4 * q2) * w2) * dx

    errors = []
    for steps in (10, 20, 40):
        q, v = Function(space * space), Function(space * space)
        for part in q.subfunctions:
            part.assign(1.0)
        method(fg.SecondOrderSystem(residual, q, v), 1 / steps).advance(steps)
        ends = [part.dat.data_ro.item() for part in q.subfunctions]
        errors.append(np.abs(ends - np.cos([1.0, 2.0])).max())
    # Of the asymptotic order, to 5 % at the longest step.
    assert orders(np.array(errors)) == pytest.approx([order, order], abs=0.2)
