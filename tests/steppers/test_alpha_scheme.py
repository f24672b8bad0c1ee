"""The coefficients of the generalized-α family: values, computed properties, refusals."""

import numpy as np
import pytest

import fdgeom as fg

# ρ∞, A, A₃, A₄, B₁, B₂, β: printed with seven decimals.
TABLE = [
    (0.0, 1.5, 4.0, -9.0, -0.5, 0.5, 1.0),
    (0.2, 1.1666667, 2.1666667, -5.3333333, -0.4444444, 0.3333333, 0.6944444),
    (0.5, 0.8333333, 0.6666667, -2.3333333, -0.3333333, 0.0, 0.4444444),
    (0.8, 0.6111111, -0.1481481, -0.7037037, -0.1666667, -0.5, 0.3086420),
    (0.9, 0.5526316, -0.3379501, -0.3240997, -0.0909091, -0.7272727, 0.2770083),
    (1.0, 0.5, -0.5, 0.0, 0.0, -1.0, 0.25),
]
NAMED = [
    *(fg.hamel_alpha(r) for r in np.linspace(0, 1, 11)),
    *(fg.chung_hulbert(r) for r in np.linspace(0, 1, 11)),
    *(fg.hht_alpha(a) for a in (-1 / 3, -0.1, 0)),
    *(fg.wbz_alpha(a) for a in (-1, -0.3, 0)),
    *(fg.two_root(b, s) for b in (0.1, 0.6, 1.0) for s in (0.0, 0.05)),
    fg.three_root(0.9, 0.6, 0.3),
    fg.newmark(),
]


def numbers(scheme):
    return np.array([scheme.A, scheme.A3, scheme.A4, scheme.B1, scheme.B2, scheme.beta])


@pytest.mark.parametrize("row", TABLE)
def test_published_numbers(row):
    # Half a unit of the last printed digit.
    assert numbers(fg.hamel_alpha(row[0])) == pytest.approx(row[1:], abs=5.1e-8)


@pytest.mark.parametrize("rho", np.linspace(0, 1, 11))
def test_hamel_is_chung_hulbert(rho):
    # Two sets of formulas for the same numbers, apart by a few roundings of numbers up to 9.
    assert numbers(fg.hamel_alpha(rho)) == pytest.approx(numbers(fg.chung_hulbert(rho)), abs=2e-14)


def test_families_meet():
    """Each named family is the member of a larger one that its definition says."""
    pairs = [
        (fg.two_root(0.6, 0.6), fg.hamel_alpha(0.6)),
        (fg.two_root(2 / 3, 0.25), fg.hht_alpha(-0.2)),  # ρ_b = (1 + α)/(1 - α), ρ_s from it
        (fg.two_root(0.25, 0.0), fg.wbz_alpha(-0.6)),
        (fg.three_root(0.7, 0.7, 0.2), fg.two_root(0.7, 0.2)),
        (fg.general_alpha(0.0, 0.0, 0.3, 0.55), fg.newmark(0.3, 0.55)),
        (fg.hht_alpha(0.0), fg.newmark()),
    ]
    for one, other in pairs:
        assert numbers(one) == pytest.approx(numbers(other), abs=1e-13)  # a few roundings


def test_alphas_come_back():
    scheme = fg.general_alpha(0.15, 0.35, 0.4, 0.75)
    got = (scheme.alpha_m, scheme.alpha_f, scheme.beta, scheme.gamma, scheme.shift, scheme.sigma)
    assert got == pytest.approx((0.15, 0.35, 0.4, 0.75, -0.2, -0.5), abs=1e-15)  # a rounding or two


@pytest.mark.parametrize("rho", [0.0, 0.4, 0.9])
def test_freedom_of_the_test_functions(rho):
    """With A given, every A₃ with the A₄ of the highest dissipation makes the same step."""
    scheme = fg.hamel_alpha(rho)
    A, step = scheme.A, fg.analysis.amplification_matrix(scheme, 2.0)
    for A3 in (-1.5, 0.3, 5.0):
        A4 = 3 * (2 * A - 1) * (2 * A - 1 - 8 * A3) / (8 * (3 * A - 2))
        other = fg.AlphaScheme(A, A3, A4, scheme.B1, scheme.B2)
        assert other.beta == pytest.approx((A + 0.5) ** 2 / 4, abs=1e-13)  # A₄ reaches 75
        # Its sensitivity to β is of order one.
        assert fg.analysis.amplification_matrix(other, 2.0) == pytest.approx(step, abs=1e-12)


@pytest.mark.parametrize("scheme", NAMED, ids=lambda s: s.name)
def test_named_members_are_of_order_two_and_stable(scheme):
    assert scheme.is_second_order
    assert scheme.is_unconditionally_stable


@pytest.mark.parametrize(
    ("scheme", "second_order", "stable"),
    [
        (fg.newmark(1 / 6, 0.5), True, False),  # linear acceleration: Ω ≤ √12
        (fg.newmark(0.3025, 0.6), False, True),  # 2β ≥ γ ≥ ½
        (fg.newmark(0.29, 0.6), False, False),
        (fg.general_alpha(0.0, 0.0, 0.25, 0.4), False, False),  # γ < ½
        (fg.general_alpha(0.1, 0.3, 0.4, 0.7), True, True),
        (fg.general_alpha(0.4, 0.3, 0.4, 0.4), True, False),  # α_m > α_f
        (fg.general_alpha(0.1, 0.6, 0.6, 1.0), True, False),  # α_f > ½
        (fg.AlphaScheme(0.5, -1.0, 1.0, 0.0, 0.0), True, False),  # β = 1/6
    ],
    ids=lambda x: x.name or "A" if isinstance(x, fg.AlphaScheme) else None,
)
def test_properties_are_computed(scheme, second_order, stable):
    assert scheme.is_second_order is second_order
    assert scheme.is_unconditionally_stable is stable


@pytest.mark.parametrize("rho", np.linspace(0, 1, 11))
def test_limit_radius(rho):
    for scheme in (fg.hamel_alpha(rho), fg.chung_hulbert(rho), fg.two_root(rho, 0.0)):
        assert scheme.rho_inf == pytest.approx(rho, abs=1e-13)  # no cancellation: a few roundings
    assert fg.three_root(rho, 0.4, 0.1).rho_inf == pytest.approx(max(rho, 0.4), abs=1e-7)
    # (a nearly double root ρ₁ ≈ ρ₂ moves by the square root of round-off)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: fg.hamel_alpha(1.1), ValueError, "rho_inf must lie in [0, 1]"),
        (lambda: fg.hamel_alpha(-0.1), ValueError, "rho_inf must lie in [0, 1]"),
        (lambda: fg.chung_hulbert(2), ValueError, "rho_inf must lie in [0, 1]"),
        (lambda: fg.hamel_alpha("0.8"), TypeError, "rho_inf must be a number"),
        (lambda: fg.hamel_alpha(True), TypeError, "rho_inf must be a number"),
        (lambda: fg.hamel_alpha(np.nan), ValueError, "rho_inf must be a finite number"),
        (
            lambda: fg.newmark(0.0, 0.5),
            ValueError,
            "beta (or A, A3, A4, which give it) must be positive",
        ),
        (lambda: fg.newmark(-0.1, 0.5), ValueError, "must be positive, not -0.1"),
        (
            lambda: fg.AlphaScheme(0.5, 0, 3, 0, 0),
            ValueError,
            "A3, A4, which give it) must be positive",
        ),
        (lambda: fg.newmark(np.inf, 0.5), ValueError, "beta must be a finite number"),
        (lambda: fg.newmark(0.25, None), TypeError, "gamma must be a number"),
        (lambda: fg.hht_alpha(0.1), ValueError, "alpha must lie in [-0.3333, 0]"),
        (lambda: fg.hht_alpha(-0.5), ValueError, "alpha must lie in [-0.3333, 0]"),
        (lambda: fg.wbz_alpha(-1.5), ValueError, "alpha must lie in [-1, 0]"),
        (lambda: fg.two_root(0.5, 1.2), ValueError, "rho_s must lie in [0, 1]"),
        (lambda: fg.three_root(0.5, 0.5, -1), ValueError, "rho_3 must lie in [0, 1]"),
        (lambda: fg.general_alpha(0.6, 0.3, 0.3, 0.5), ValueError, "alpha_m must not be above 1/2"),
        (lambda: fg.general_alpha(0.2, 1.0, 0.3, 0.5), ValueError, "alpha_f must be less than 1"),
        (lambda: fg.AlphaScheme(0.5, -0.5, 0, -1, 0), ValueError, "B1 must be greater than -1"),
        (lambda: fg.AlphaScheme(0.5, -0.5, 0, 0, 1), ValueError, "B2 must lie in [-1, 1)"),
        (lambda: fg.AlphaScheme(0.5, -0.5, 0, 0, -2), ValueError, "B2 must lie in [-1, 1)"),
        (lambda: fg.AlphaScheme(0.5, 1j, 0, 0, 0), TypeError, "A3 must be a number"),
        (lambda: fg.AlphaScheme(0.5, 0, 0, 0, 0, name=3), TypeError, "name must be a string"),
    ],
)
def test_refusals(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)


def test_a_scheme_is_data():
    scheme = fg.hamel_alpha(0.8)
    assert scheme == fg.hamel_alpha(0.8)
    assert hash(scheme) == hash(fg.hamel_alpha(0.8))
    with pytest.raises(AttributeError):
        scheme.A = 0.5
