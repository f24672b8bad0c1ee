"""Spectral radius, damping, period and overshoot against 60-digit roots and closed forms."""

import mpmath
import numpy as np
import pytest

import fdgeom as fg
from fdgeom.analysis import (
    amplification_matrix,
    damping_ratio,
    eigenvalues,
    overshoot,
    period_elongation,
    spectral_radius,
)

RHO = (0.0, 0.2, 0.5, 0.8, 1.0)
# Moduli of the largest of the 60-digit roots, for those ρ∞.
RADII = {
    0.01: (0.999999995002, 0.999999998519, 0.999999999815, 0.999999999993, 1),
    0.1: (0.999951917652, 0.999985463752, 0.999998160424, 0.999999931616, 1),
    1: (0.906563333305, 0.952079157396, 0.989312786016, 0.999474614014, 1),
    3: (0.561845001541, 0.691564074808, 0.876132882569, 0.987265818415, 1),
    10: (0.242535625036, 0.401407247861, 0.682528421486, 0.929791767153, 1),
    100: (0.047831281683, 0.233266501068, 0.537173623904, 0.834637608774, 1),
    1e4: (0.002157527397, 0.201364497726, 0.501682718759, 0.801674833413, 1),
    1e6: (0.000100006666, 0.200062918121, 0.500078007875, 0.800077874877, 1),
    1e9: (0.000001000001, 0.200000628980, 0.500000780032, 0.800000778814, 1),
}
# Damping ratio and period elongation for h = T/10.
ERRORS = {
    0.0: (5.4988e-2, 1.2321e-1),
    0.2: (2.2558e-2, 8.0910e-2),
    0.5: (3.7800e-3, 4.6715e-2),
    0.8: (1.5727e-4, 3.3828e-2),
}
SCHEMES = [
    fg.hamel_alpha(0.3),
    fg.newmark(0.3, 0.6),
    fg.hht_alpha(-0.2),
    fg.wbz_alpha(-0.4),
    fg.three_root(0.9, 0.5, 0.2),
    fg.general_alpha(0.1, 0.3, 0.4, 0.9),
]
each_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: s.name)


@pytest.mark.parametrize("column", range(len(RHO)))
def test_published_spectral_radius(column):
    frequencies = np.array(list(RADII))
    expected = np.array([row[column] for row in RADII.values()])
    # Half of the twelfth decimal: the roots are expanded about their limit and lose no digits.
    got = spectral_radius(fg.hamel_alpha(RHO[column]), frequencies)
    assert np.abs(got - expected).max() < 6e-13


@pytest.mark.parametrize("rho", np.linspace(0, 1, 11))
def test_radius_at_high_frequency(rho):
    # The distance from ρ∞ falls as Ω^(-2/3) (a triple root): 1e-4 at Ω = 1e6, where ρ∞ = 0.
    assert spectral_radius(fg.hamel_alpha(rho), 1e6) == pytest.approx(rho, abs=1.001e-4)
    assert spectral_radius(fg.hamel_alpha(rho), np.inf) == pytest.approx(rho, abs=1e-14)


@pytest.mark.parametrize(
    ("rho", "xi"), [(0.0, 0.0), (0.35, 0.0), (0.8, 0.1), (1.0, 0.0), (0.6, 2.0)]
)
@pytest.mark.parametrize("Omega", [0.003, 0.9, 40.0, 3e5])
def test_roots_against_sixty_digits(rho, xi, Omega):
    scheme = fg.hamel_alpha(rho)
    with mpmath.workdps(60):
        g, b, B1, B2, W, x = map(mpmath.mpf, (scheme.gamma, 0, scheme.B1, scheme.B2, Omega, xi))
        # β by its closed form, for the rounding of β alone parts the triple root by 1e-5.
        b = (g + mpmath.mpf(1) / 2) ** 2 / 4
        half = mpmath.mpf(1) / 2
        n, s, d = (b, half + g - 2 * b, half - g + b), (1 + B1, -B1 - B2), (g, 1 - 2 * g, g - 1)
        inner = [W**2 * n[k] + 2 * x * W * d[k] for k in range(3)]
        p = [1, -2 - B2, 1 + 2 * B2, -B2]
        for i in range(2):
            for k in range(3):
                p[i + k] += s[i] * inner[k]
        exact = mpmath.polyroots(p, maxsteps=500, extraprec=400)
        exact = np.array([complex(r) for r in exact])
    got = eigenvalues(scheme, Omega, xi)
    gaps = np.abs(got[:, None] - exact[None, :])
    # Round-off, magnified where the roots 1 of rigid motion split (1/Ω); ρ∞ and so the limit roots
    # themselves are rounded, which a triple root at distance Ω^(-2/3) feels to first order only.
    assert gaps.min(axis=1).max() < 1e-12
    assert gaps.min(axis=0).max() < 1e-12


@each_scheme
@pytest.mark.parametrize("xi", [0.0, 0.2])
def test_matrix_and_roots_agree(scheme, xi):
    frequencies = np.geomspace(0.05, 50, 7)
    matrix = np.linalg.eigvals(amplification_matrix(scheme, frequencies, xi))
    roots = eigenvalues(scheme, frequencies, xi)
    gaps = np.abs(matrix[:, :, None] - roots[:, None, :])
    # Entries of the matrix reach Ω² = 2500 and its nearby eigenvalues magnify round-off as well.
    assert max(gaps.min(axis=1).max(), gaps.min(axis=2).max()) < 1e-9


@each_scheme
def test_matrix_is_the_step_with_a_control_force(scheme):
    """The matrix against the scheme in its other form: τ¹ = B₂ τ⁰ + B₁ (F¹ - F⁰), M a = F + τ."""
    m, h, omega, xi = 1.7, 0.31, 4.0, 0.15
    k, c = m * omega**2, 2 * xi * omega * m
    q, v, a = 0.4, -1.1, 2.3
    F = -k * q - c * v
    tau = m * a - F
    b, g, B1, B2 = scheme.beta, scheme.gamma, scheme.B1, scheme.B2
    # Unknowns q¹, v¹, a¹, F¹, τ¹.
    A = np.array(
        [
            [1, 0, -b * h**2, 0, 0],
            [0, 1, -g * h, 0, 0],
            [0, 0, m, -1, -1],
            [k, c, 0, 1, 0],
            [0, 0, 0, -B1, 1],
        ]
    )
    right = [q + h * v + h**2 * (0.5 - b) * a, v + h * (1 - g) * a, 0, 0, B2 * tau - B1 * F]
    q1, v1, a1, _, _ = np.linalg.solve(A, right)
    got = amplification_matrix(scheme, omega * h, xi) @ [q, h * v, h**2 * a]
    assert got == pytest.approx([q1, h * v1, h**2 * a1], rel=1e-13)  # round-off of one step


def test_unconditional_stability():
    frequencies = np.concatenate([[0.0], np.geomspace(1e-3, 1e6, 2000)])
    for rho in np.linspace(0, 1, 51):
        # Round-off of a modulus; at ρ∞ = 1 every root has modulus 1.
        assert spectral_radius(fg.hamel_alpha(rho), frequencies).max() < 1 + 1e-12


def test_the_stability_criterion_against_scans(rng):
    """`is_unconditionally_stable` of random members says what a scan over Ω finds."""
    frequencies = np.geomspace(1e-2, 1e4, 400)
    found = []
    for _ in range(300):
        B1, B2, A, b = rng.uniform([-0.9, -1, 0.3, 0.05], [0.3, 0.9, 1.5, 1.2])
        if rng.random() < 0.5:
            A = 0.5 - B1 / (1 - B2)
        scheme = fg.AlphaScheme(A, 2 * (3 * b - 1), -3 * (4 * b - 1), B1, B2)
        scan = spectral_radius(scheme, frequencies).max() < 1 + 1e-9  # above round-off
        # A criterion exceeded beyond the scan shows in the limit Ω → ∞.
        assert scheme.is_unconditionally_stable == (scan and scheme.rho_inf < 1 + 1e-9)
        found.append(scheme.is_unconditionally_stable)
    assert 20 < sum(found) < 280  # both kinds were among them


@pytest.mark.parametrize("rho", ERRORS)
def test_published_damping_and_period(rho):
    got = (
        damping_ratio(fg.hamel_alpha(rho), 0.2 * np.pi),
        period_elongation(fg.hamel_alpha(rho), 0.2 * np.pi),
    )
    assert got == pytest.approx(ERRORS[rho], rel=1.1e-4)  # five printed digits


def test_trapezoidal_rule_exactly():
    frequencies = np.geomspace(1e-3, 1e3, 13)
    scheme = fg.hamel_alpha(1.0)
    assert np.abs(damping_ratio(scheme, frequencies)).max() < 1e-12  # ln|λ| / arg λ, both rounded
    exact = frequencies / (2 * np.arctan(frequencies / 2)) - 1
    # A root near -1 or 1 is rounded, its angle as well, then divided by the smallest Ω.
    assert period_elongation(scheme, frequencies) == pytest.approx(exact, rel=1e-9, abs=1e-12)
    assert period_elongation(scheme, 0.2 * np.pi) == pytest.approx(3.2075e-2, rel=1e-4)


@pytest.mark.parametrize("rho", [0.0, 0.25, 0.5, 0.75, 0.9])
def test_leading_errors(rho):
    """ξ̄ = c³Ω³/2 + ..., elongation (1/12 + 3c²/8) Ω² + ..., the remainders two orders smaller."""
    c, W = (1 - rho) / (1 + rho), np.array([0.03, 0.06, 0.12])
    scheme = fg.hamel_alpha(rho)
    damping = damping_ratio(scheme, W) / (c**3 * W**3 / 2) - 1
    period = period_elongation(scheme, W) / ((1 / 12 + 3 * c**2 / 8) * W**2) - 1
    for error in (damping, period):
        orders = np.log2(error[1:] / error[:-1])
        assert orders == pytest.approx([2, 2], abs=0.1)


def test_exact_damping_of_a_damped_oscillator():
    W = np.array([1e-2, 2e-2, 4e-2])
    error = damping_ratio(fg.hamel_alpha(0.6), W, 0.3) - 0.3 / np.sqrt(1 - 0.3**2)
    assert np.log2(error[1:] / error[:-1]) == pytest.approx([2, 2], abs=0.1)  # order of the scheme
    error = period_elongation(fg.hamel_alpha(0.6), W, 0.3)
    assert np.log2(error[1:] / error[:-1]) == pytest.approx([2, 2], abs=0.1)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8, 1.0])
def test_overshoot(rho):
    """Displacements do not overshoot, the velocity of the first step by (1 - ρ∞)²Ω/4."""
    W = np.array([1e3, 1e4])
    got = overshoot(fg.hamel_alpha(rho), W, steps=50)
    assert got.displacement.max() <= 1 + 1e-9  # with ρ∞ = 1 the amplitude is kept, to round-off
    first = overshoot(fg.hamel_alpha(rho), W, steps=1)
    if rho < 1:
        # The next term is O(1/Ω), here less than 5/Ω.
        assert np.abs(first.velocity - (1 - rho) ** 2 * W / 4).max() < 5e-3
    else:
        assert got.velocity.max() < 0.2


def test_conditional_stability():
    """Linear acceleration is stable up to Ω = √12 (Newmark 1959)."""
    scheme, limit = fg.newmark(1 / 6, 0.5), np.sqrt(12)
    assert spectral_radius(scheme, 0.9999 * limit) == pytest.approx(1, abs=1e-12)  # round-off
    assert spectral_radius(scheme, 1.0001 * limit) > 1.01
    assert np.isnan(period_elongation(scheme, 1.0001 * limit))  # it no longer oscillates


def test_any_linear_recursion():
    """Backward Euler, λ = 1/(1 ∓ iΩ): radius (1 + Ω²)^(-1/2), angle arctan Ω."""

    def euler(W):
        rows = np.array([[np.ones_like(W), W], [-W, np.ones_like(W)]]) / (1 + W**2)
        return np.moveaxis(rows, (0, 1), (-2, -1))

    W = np.array([[0.1, 1.0], [3.0, 20.0]])
    radius, angle = 1 / np.sqrt(1 + W**2), np.arctan(W)
    assert amplification_matrix(euler, W).shape == (2, 2, 2, 2)
    assert spectral_radius(euler, W) == pytest.approx(radius, rel=1e-14)  # a rounding or two
    assert damping_ratio(euler, W) == pytest.approx(-np.log(radius) / angle, rel=1e-12)
    assert period_elongation(euler, W) == pytest.approx(W / angle - 1, rel=1e-12)


def test_one_or_many():
    scheme = fg.hamel_alpha(0.7)
    for measure in (spectral_radius, damping_ratio, period_elongation):
        assert isinstance(measure(scheme, 1.5), float)
        many = measure(scheme, [[0.5, 1.5], [2.5, 3.5]])
        assert many.shape == (2, 2)
        assert many[0, 1] == measure(scheme, 1.5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: spectral_radius(3, 1.0), TypeError, "method must be an AlphaScheme"),
        (lambda s: spectral_radius(s, -1.0), ValueError, "Omega must not be negative"),
        (lambda s: spectral_radius(s, np.nan), ValueError, "Omega must not be negative or NaN"),
        (lambda s: spectral_radius(s, "fast"), TypeError, "Omega must be a number"),
        (lambda s: amplification_matrix(s, np.inf), ValueError, "Omega must be finite"),
        (
            lambda s: spectral_radius(np.diag, np.inf),
            ValueError,
            "Omega must be finite for a matrix and for a callable",
        ),
        (lambda s: amplification_matrix(s, 1.0, -0.1), ValueError, "damping must be a number"),
        (lambda s: amplification_matrix(np.cos, 1.0), ValueError, "method must return square"),
        (lambda s: spectral_radius(np.eye, 1.0, 0.1), ValueError, "a callable has its own damp"),
        (lambda s: period_elongation(s, 1.0, 1.0), ValueError, "damping must lie in [0, 1)"),
        (lambda s: overshoot(np.eye, 1.0), TypeError, "scheme must be an AlphaScheme"),
        (lambda s: overshoot(s, 0.0), ValueError, "Omega must be greater than 0"),
        (lambda s: overshoot(s, 1.0, steps=0), ValueError, "steps must be a positive whole"),
        (lambda s: overshoot(s, 1.0, displacement=0.0), ValueError, "not both 0"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error) as caught:
        call(fg.hamel_alpha(0.5))
    assert message in str(caught.value)
