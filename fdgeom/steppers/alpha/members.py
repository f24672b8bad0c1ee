"""The named members of the generalized-α family."""

from fdgeom.messages import format_value
from fdgeom.steppers.alpha.scheme import ROUND_OFF, AlphaScheme, check_beta
from fdgeom.validation import number


def hamel_alpha(rho_inf: float) -> AlphaScheme:
    """Hamel generalized-α: of order two, unconditionally stable, all roots -ρ∞ in the limit.

    A = (3 - ρ)/(2(1 + ρ)), A₃ = 2(2 - 2ρ - ρ²)/(1 + ρ)², A₄ = -3(1 - ρ)(3 + ρ)/(1 + ρ)²,
    B₁ = -(1 - ρ)/(2 - ρ), B₂ = (1 - 2ρ)/(2 - ρ). At ρ = 1 it is the trapezoidal rule.

    Parameters
    ----------
    rho_inf : float
        Spectral radius ρ∞ at infinite frequency, in [0, 1]: 1 dissipates nothing, 0 annihilates the
        highest frequencies in one step.
    """
    r = _radius("rho_inf", rho_inf)
    return AlphaScheme(
        A=(3 - r) / (2 * (1 + r)),
        A3=2 * (2 - 2 * r - r**2) / (1 + r) ** 2,
        A4=-3 * (1 - r) * (3 + r) / (1 + r) ** 2,
        B1=-(1 - r) / (2 - r),
        B2=(1 - 2 * r) / (2 - r),
        name=f"hamel_alpha({r:g})",
    )


def newmark(beta: float = 0.25, gamma: float = 0.5) -> AlphaScheme:
    """Newmark's scheme; (¼, ½) is the trapezoidal rule, (⅙, ½) linear acceleration.

    Parameters
    ----------
    beta : float
        Greater than 0; unconditionally stable for 2β ≥ γ.
    gamma : float
        At least ½; order two for γ = ½ only.
    """
    b, g = number("beta", beta), number("gamma", gamma)
    if g < 0.5 - ROUND_OFF:
        raise ValueError(f"gamma must be at least 1/2, not {g:g}: below, every vibration grows")
    return _scheme(g, b, 0.0, 0.0, f"newmark({b:g}, {g:g})")


def hht_alpha(alpha: float) -> AlphaScheme:
    """HHT-α (Hilber, Hughes & Taylor 1977), -⅓ ≤ α ≤ 0; γ = ½ - α, β = (1 - α)²/4."""
    a = _between("alpha", alpha, -1 / 3, 0)
    return _scheme(0.5 - a, (1 - a) ** 2 / 4, a, 0.0, f"hht_alpha({a:g})")


def wbz_alpha(alpha: float) -> AlphaScheme:
    """WBZ-α (Wood, Bossak & Zienkiewicz 1981), -1 ≤ α ≤ 0; γ = ½ - α, β = (1 - α)²/4."""
    a = _between("alpha", alpha, -1, 0)
    return _scheme(0.5 - a, (1 - a) ** 2 / 4, a / (1 - a), -a / (1 - a), f"wbz_alpha({a:g})")


def chung_hulbert(rho_inf: float) -> AlphaScheme:
    """Generalized-α with the α's of Chung & Hulbert (1993) for a given ρ∞ in [0, 1].

    α_m = (2ρ - 1)/(ρ + 1), α_f = ρ/(ρ + 1), γ = ½ - α_m + α_f, β = (1 - α_m + α_f)²/4.
    """
    r = _radius("rho_inf", rho_inf)
    m, f = (2 * r - 1) / (r + 1), r / (r + 1)
    return general_alpha(m, f, (1 - m + f) ** 2 / 4, 0.5 - m + f, name=f"chung_hulbert({r:g})")


def general_alpha(
    alpha_m: float, alpha_f: float, beta: float, gamma: float, *, name: str = ""
) -> AlphaScheme:
    """The scheme of any α_m, α_f, β and γ: (1 - α_m) a¹ + α_m a⁰ = (1 - α_f) v̇¹ + α_f v̇⁰.

    Parameters
    ----------
    alpha_m : float
        At most ½.
    alpha_f : float
        Less than 1.
    beta, gamma : float
        As Newmark's; β > 0.
    name : str, optional
        Name of the scheme.
    """
    m, f = number("alpha_m", alpha_m), number("alpha_f", alpha_f)
    if m > 0.5 + ROUND_OFF:
        raise ValueError(f"alpha_m must not be above 1/2, not {m:g}: even free motion is unstable")
    if f >= 1:
        raise ValueError(f"alpha_f must be less than 1, not {f:g}")
    name = name or f"general_alpha({m:g}, {f:g}, {beta:g}, {gamma:g})"
    return _scheme(gamma, beta, (m - f) / (1 - m), -m / (1 - m), name)


def two_root(rho_b: float, rho_s: float) -> AlphaScheme:
    """Limit roots -ρ_b (twice) and -ρ_s, second order; ρ_s = 0 is WBZ, ρ_s = ρ_b Hamel-α."""
    b, s = _radius("rho_b", rho_b), _radius("rho_s", rho_s)
    D = 2 + s * (1 - b)
    B1, B2 = -(1 - b) * (1 + s) / D, (1 - b - 2 * b * s) / D
    return _scheme((3 - b) / (2 * (1 + b)), 1 / (1 + b) ** 2, B1, B2, f"two_root({b:g}, {s:g})")


def three_root(rho_1: float, rho_2: float, rho_3: float) -> AlphaScheme:
    """Limit roots -ρ₁, -ρ₂ and, spurious, -ρ₃; second order (the U0 family of GSSSS).

    Zhou & Tamma, Int. J. Numer. Meth. Engng 59, 597 (2004).
    """
    r1, r2, r3 = (_radius(f"rho_{k}", r) for k, r in enumerate((rho_1, rho_2, rho_3), start=1))
    beta = 1 / ((1 + r1) * (1 + r2))
    c = (1 - r1 * r2) * beta
    B2 = (c - r3 * (1 - c)) / (1 + c + r3 * c)
    return _scheme(0.5 + c, beta, -c * (1 - B2), B2, f"three_root({r1:g}, {r2:g}, {r3:g})")


def _scheme(gamma, beta, B1, B2, name: str) -> AlphaScheme:
    """The scheme with σ = -½ and these Newmark parameters: A₃ = 2(3β - 1), A₄ = -3(4β - 1)."""
    beta = check_beta(number("beta", beta))
    return AlphaScheme(
        number("gamma", gamma), 2 * (3 * beta - 1), -3 * (4 * beta - 1), B1, B2, name
    )


def _between(name: str, value, low: float, high: float) -> float:
    found = number(name, value)
    if not low - ROUND_OFF <= found <= high + ROUND_OFF:
        raise ValueError(f"{name} must lie in [{low:.4g}, {high:.4g}], not {format_value(value)}")
    return found


def _radius(name: str, value) -> float:
    """A spectral radius."""
    return _between(name, value, 0, 1)
