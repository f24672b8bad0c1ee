"""Orders of convergence of the steppers for canonical systems, on motions that are not linear."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from verification.hamiltonian_systems import (
    HENON_HEILES,
    HENON_HEILES_AT_10,
    MIXED,
    henon_heiles,
    henon_heiles_field,
    mixed,
    mixed_field,
    put,
    rows,
)
from verification.small_systems import lotka_volterra

import fdgeom as fg
from fdgeom.steppers.composition import SCHEMES, flow_fractions, pair_fractions, weights

E, V = fg.SymplecticEuler, fg.StormerVerlet

#: Method, numbers of steps to t = 10 (Hénon–Heiles) or to t = 4 (the energy that is not separable).
ON_HENON_HEILES = {
    "Euler": (E, {}, (200, 400, 800)),
    "Euler, q first": (E, {"first": "q"}, (200, 400, 800)),
    "Verlet": (V, {}, (50, 100, 200)),
    "Verlet, q first": (V, {"first": "q"}, (50, 100, 200)),
    "generating function": (fg.GeneratingFunction4, {}, (40, 60, 90)),
    "Runge-Kutta": (fg.RungeKutta4, {}, (80, 120, 180)),
    "Gauss 1": (fg.GaussLegendre(1), {}, (50, 100, 200)),
    "Gauss 2": (fg.GaussLegendre(2), {}, (40, 60, 90)),
    "Gauss 3": (fg.GaussLegendre(3), {}, (20, 30, 40)),
    "Gauss 4": (fg.GaussLegendre(4), {}, (10, 14, 20)),
    "suzuki 4": (fg.Composition(V, 4), {}, (30, 45, 60)),
    "yoshida 4": (fg.Composition(V, 4, "yoshida"), {}, (80, 120, 180)),
    "blanes-moan 4": (fg.Composition(V, 4, "blanes-moan"), {}, (40, 60, 90)),
    "kahan-li 6": (fg.Composition(V, 6), {}, (30, 40, 50)),
    "yoshida 6": (fg.Composition(V, 6, "yoshida"), {}, (50, 70, 90)),
    "suzuki 6": (fg.Composition(V, 6, "suzuki"), {}, (20, 28, 36)),
    "kahan-li 8": (fg.Composition(V, 8), {}, (20, 25, 30)),
    "suzuki-umeno 8": (fg.Composition(V, 8, "suzuki-umeno"), {}, (25, 32, 40)),
    "yoshida 8": (fg.Composition(V, 8, "yoshida"), {}, (100, 120, 140)),
}
ON_MIXED = {
    "Euler": (E, {}, (80, 160, 320)),
    "Euler, q first": (E, {"first": "q"}, (80, 160, 320)),
    "generating function": (fg.GeneratingFunction4, {}, (20, 40, 80)),
    "Runge-Kutta": (fg.RungeKutta4, {}, (40, 80, 160)),
    "Gauss 2": (fg.GaussLegendre(2), {}, (20, 40, 80)),
    "Gauss 3": (fg.GaussLegendre(3), {}, (16, 22, 30)),
}


def reference(field, start, end):
    return solve_ivp(field, (0, end), start, "DOP853", rtol=3e-14, atol=1e-15).y[:, -1]


def errors(stepper, start, end, numbers, exact):
    found = []
    for steps in numbers:
        put(stepper.system, start)
        stepper.dt = end / steps
        stepper.advance(steps)
        found.append(np.abs(rows(stepper.system)[0] - exact).max())
    return np.array(found)


def slope(values, numbers):
    """Of the straight line through all points."""
    return -np.polyfit(np.log(numbers), np.log(values), 1)[0]


@pytest.fixture(scope="module")
def exact():
    return {
        "henon_heiles": reference(henon_heiles_field, HENON_HEILES, 10),
        "mixed": reference(mixed_field, MIXED, 4),
    }


def test_reference(exact):
    assert henon_heiles().energy() == pytest.approx(0.13533333333333, abs=1e-13)
    assert exact["henon_heiles"][:2] == pytest.approx(HENON_HEILES_AT_10, abs=1e-9)


@pytest.mark.parametrize("name", ON_HENON_HEILES)
def test_on_henon_heiles(name, exact, recorded):
    cls, options, numbers = ON_HENON_HEILES[name]
    stepper = cls(henon_heiles(), 1.0, **options)
    found = errors(stepper, HENON_HEILES, 10, numbers, exact["henon_heiles"])
    assert slope(found, numbers) == pytest.approx(cls.order, abs=0.2), found
    measured = slope(found, numbers)
    recorded.order(
        name, "Hénon and Heiles", claimed=cls.order, measured=measured, steps=numbers, errors=found
    )


@pytest.mark.parametrize("name", ON_MIXED)
def test_on_an_energy_that_is_not_separable(name, exact):
    cls, options, numbers = ON_MIXED[name]
    stepper = cls(mixed(), 1.0, **options)
    found = errors(stepper, MIXED, 4, numbers, exact["mixed"])
    assert slope(found, numbers) == pytest.approx(cls.order, abs=0.2), found


def test_blanes_moan_with_flows_that_are_not_exact():
    """Lotka–Volterra, two energies, each flow by the midpoint rule: order four all the same."""
    system = lotka_volterra()
    u, v = system.state[0], system.state[1]
    from firedrake import dx, ln

    energies = [(u - ln(u)) * dx, (v - 2 * ln(v)) * dx]
    stepper = fg.Composition(fg.Splitting, 4, "blanes-moan")(system, 1.0, energies=energies)
    found, numbers = [], (100, 150, 200)
    for steps in numbers:
        system.state.dat.data_wo[...] = (4.0, 2.0)
        stepper.dt = 10 / steps
        stepper.advance(steps)
        found.append(np.abs(system.state.dat.data_ro[0] - (0.620627496, 5.561492615)).max())
    assert slope(found, numbers) == pytest.approx(4, abs=0.2), found


def test_one_stage_is_the_midpoint_rule():
    ends = []
    for cls in (fg.GaussLegendre(1), fg.ImplicitMidpoint):
        system = mixed()
        cls(system, 0.1).advance(10)
        ends.append(rows(system))
    assert ends[0] == pytest.approx(ends[1], abs=1e-13)


# --- coefficients ---------------------------------------------------------------------------------
def exponential(A):
    """e^A to round-off for small matrices."""
    scaled, term, total = A / 64, np.eye(len(A)), np.eye(len(A))
    for k in range(1, 16):
        term = term @ scaled / k
        total = total + term
    return np.linalg.matrix_power(total, 64)


A, B = np.random.default_rng(5).uniform(-1, 1, (2, 3, 3))


def order_of(step, scale):
    """Order of a product of exponentials of A and B as an approximation of e^{h(A+B)}."""
    hs = scale * np.array([0.5, 0.4, 0.3])
    found = [np.abs(step(h) - exponential(h * (A + B))).max() for h in hs]
    return np.polyfit(np.log(hs), np.log(found), 1)[0] - 1


@pytest.mark.parametrize(
    ("order", "scheme"),
    [(p, name) for p in (4, 6, 8) for name in SCHEMES[p] if (p, name) != (8, "suzuki")],
)
def test_schemes_on_matrices(order, scheme):
    """Strang's splitting of two matrices, composed; Suzuki's of order 8 is below round-off there."""

    def strang(h):
        return exponential(h / 2 * A) @ exponential(h * B) @ exponential(h / 2 * A)

    def composed(h):
        return np.linalg.multi_dot([strang(w * h) for w in weights(order, scheme)])

    def flows(h):
        a, b = flow_fractions()
        factors = [exponential(a[0] * h * A)]
        for x, y in zip(b, a[1:], strict=True):
            factors += [exponential(x * h * B), exponential(y * h * A)]
        return np.linalg.multi_dot(factors)

    # Yoshida's have long steps: smaller ones for the order to settle.
    seen = order_of(
        flows if scheme == "blanes-moan" else composed, 0.5 if scheme == "yoshida" else 1.0
    )
    assert seen == pytest.approx(order, abs=0.4)


def test_weights():
    for order in (4, 6, 8):
        for name in SCHEMES[order]:
            if name == "blanes-moan":
                continue
            w = weights(order, name)
            assert np.array_equal(w, w[::-1])
            assert w.sum() == pytest.approx(1, abs=1e-14)
            for power in range(3, order, 2):
                # Published to 15 digits.
                assert (w**power).sum() == pytest.approx(0, abs=1e-11)
    assert [len(weights(8, name)) for name in SCHEMES[8]] == [17, 125, 15, 15]


def test_pairs_are_the_flows_taken_apart():
    a, b = flow_fractions()
    assert a.sum() == pytest.approx(1, abs=1e-15)
    assert b.sum() == pytest.approx(1, abs=1e-15)
    alpha = pair_fractions()
    assert len(alpha) == 12
    assert alpha == pytest.approx(alpha[::-1], abs=1e-15)
    assert np.add.reduceat(alpha, range(0, 12, 2)) == pytest.approx(b, abs=1e-15)
    assert alpha.sum() == pytest.approx(1, abs=1e-15)
