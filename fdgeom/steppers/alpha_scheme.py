"""The coefficients of the generalized-α family, as data, and its named members."""

from dataclasses import dataclass, fields

import numpy as np

from fdgeom.messages import format_value
from fdgeom.validation import number, text

#: Round-off allowed where a property of a scheme is an equality or a bound that it may attain.
ROUND_OFF = 1e-12


@dataclass(frozen=True)
class AlphaScheme:
    """A one-step scheme for second-order systems, by the five numbers of Hamel generalized-α.

    With the true acceleration v̇ (from the balance at each node) and an algorithmic one a,

        q¹ = q⁰ + h v⁰ + h² ((½ - β) a⁰ + β a¹),    v¹ = v⁰ + h ((1 - A) a⁰ + A a¹),
        a¹ = (1 + B₁) v̇¹ - (B₁ + B₂) v̇⁰ + B₂ a⁰,
        β = A/2 + (A - ½) A₃ + (A/2 - ⅓) A₄,

    from the Hamilton–Pontryagin principle with the test functions (A₁ + A₂ s) δq + h (A₃ + A₄ s)
    M⁻¹δp and the control law τ¹ = B₂ τ⁰ + B₁ (F¹ - F⁰) for the force τ = M (a - v̇) (Gu, Liu, An &
    Shi, eqs. 26-35). A₁ and A₂ enter through A alone, and A₃ and A₄ through β alone: on vector spaces
    the family is that of (1 - α_m) a¹ + α_m a⁰ = (1 - α_f) v̇¹ + α_f v̇⁰ (Chung & Hulbert 1993).

    Parameters
    ----------
    A : float
        Weight of the new acceleration in the velocity; Newmark's γ.
    A3, A4 : float
        Coefficients of the second test function.
    B1, B2 : float
        Coefficients of the control law, with 1 + B₁ > 0 and -1 ≤ B₂ < 1; both 0 mean no control.
    name : str, optional
        Name of the scheme.

    Raises
    ------
    TypeError
        If a coefficient is not a number.
    ValueError
        If one is not finite, 1 + B₁ ≤ 0, B₂ lies outside [-1, 1), or β ≤ 0 (the step would be
        explicit in q).

    Examples
    --------
    >>> from fdgeom import newmark
    >>> newmark(beta=0.25, gamma=0.5).is_unconditionally_stable
    True
    """

    A: float
    A3: float
    A4: float
    B1: float
    B2: float
    name: str = ""

    def __post_init__(self) -> None:
        for field in fields(self)[:5]:
            object.__setattr__(self, field.name, number(field.name, getattr(self, field.name)))
        text("name", self.name)
        if 1 + self.B1 <= 0:
            raise ValueError(
                f"B1 must be greater than -1, not {self.B1:g}: 1 + B1 weighs the force"
            )
        if not -1 - ROUND_OFF <= self.B2 < 1:
            raise ValueError(
                f"B2 must lie in [-1, 1), not {self.B2:g}: the control force would grow by itself "
                "(alpha_m must not be above 1/2)"
            )
        _check_beta(self.beta)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{f.name}={getattr(self, f.name):.4g}" for f in fields(self)[:5])
        return f"AlphaScheme({self.name or numbers})"

    @property
    def gamma(self) -> float:
        """Newmark's γ, which is A."""
        return self.A

    @property
    def beta(self) -> float:
        """Newmark's β: weight of the new acceleration in the displacement."""
        return self.A / 2 + (self.A - 0.5) * self.A3 + (self.A / 2 - 1 / 3) * self.A4

    @property
    def sigma(self) -> float:
        """Mean of the second test function, A₃ + A₄/2; -1/2 in all named members."""
        return self.A3 + self.A4 / 2

    @property
    def alpha_m(self) -> float:
        """α_m: weight of the old algorithmic acceleration."""
        return -self.B2 / (1 - self.B2)

    @property
    def alpha_f(self) -> float:
        """α_f: weight of the old force."""
        return -(self.B1 + self.B2) / (1 - self.B2)

    @property
    def shift(self) -> float:
        """δ = B₁/(1 - B₂) = α_m - α_f: in smooth motion a⁰ ≈ v̇(t⁰ + δ h)."""
        return self.B1 / (1 - self.B2)

    @property
    def limit_roots(self) -> tuple[complex, complex, complex]:
        """The eigenvalues of the step of an oscillator as its frequency goes to infinity.

        Roots of ((1 + B₁) λ - (B₁ + B₂)) (β λ² + (½ + γ - 2β) λ + ½ - γ + β), the spurious one last.
        """
        beta, sum_ = self.beta, 0.5 + self.gamma
        # The discriminant, free of cancellation except in (½ + γ)² = 4β, where the roots coalesce:
        # round-off there would part them by its square root.
        discriminant = sum_**2 - 4 * beta
        if abs(discriminant) < ROUND_OFF * sum_**2:
            discriminant = 0.0
        root = complex(discriminant) ** 0.5
        middle = 2 * beta - sum_
        spurious = (self.B1 + self.B2) / (1 + self.B1)
        return (middle + root) / (2 * beta), (middle - root) / (2 * beta), complex(spurious)

    @property
    def rho_inf(self) -> float:
        """Spectral radius as the frequency goes to infinity."""
        return max(abs(root) for root in self.limit_roots)

    @property
    def is_second_order(self) -> bool:
        """Whether A = ½ - B₁/(1 - B₂), the condition of order two in time."""
        return abs(self.A - 0.5 + self.shift) < ROUND_OFF

    def characteristic(self) -> np.ndarray:
        """The characteristic polynomial of the step of q̈ = -ω²q, Ω = ω h.

        Returns
        -------
        numpy.ndarray
            Rows (p_k, r_k) with c_k = p_k + r_k Ω², for the coefficients c₃, c₂, c₁, c₀ of λ³, λ², λ, 1.
        """
        g, b, B1, B2 = self.gamma, self.beta, self.B1, self.B2
        p = np.poly([1, 1, B2])
        r = np.polymul([1 + B1, -B1 - B2], [b, 0.5 + g - 2 * b, 0.5 - g + b])
        return np.stack([p, r], axis=1)

    @property
    def is_unconditionally_stable(self) -> bool:
        """Whether all eigenvalues lie in the unit disc for any frequency.

        By the criterion of Routh and Hurwitz for λ = (1 + z)/(1 - z): the coefficients of the cubic
        in z, and a₂a₁ - a₃a₀, must not be negative for any Ω² ≥ 0. For second-order schemes that is
        B₁ ≤ 0, 1 + 2B₁ + B₂ ≥ 0 and β ≥ γ/2 (in α's: α_m ≤ α_f ≤ ½).
        """
        bilinear = np.array([[1, -1, 1, -1], [3, -1, -1, 3], [3, 1, -1, -3], [1, 1, 1, 1]])
        a3, a2, a1, a0 = bilinear @ self.characteristic()
        # a₁ and a₀ vanish with Ω (the double root 1 of rigid motion), so a₂a₁ - a₃a₀ has two terms.
        products = (a2[0] * a1[1] - a3[0] * a0[1], a2[1] * a1[1] - a3[1] * a0[1])
        return bool(min(*a3, *a2, *a1, *a0, *products) >= -ROUND_OFF)


def _check_beta(beta: float) -> float:
    """Return β if a step can be solved for the displacement; raise ``ValueError`` otherwise."""
    if beta <= ROUND_OFF:
        raise ValueError(
            f"beta (or A, A3, A4, which give it) must be positive, not {beta:.4g}: the step solves "
            "for the displacement (for explicit steps see StormerVerlet)"
        )
    return beta


def hamel_alpha(rho_inf: float) -> AlphaScheme:
    """Hamel generalized-α: of order two, unconditionally stable, all roots -ρ∞ in the limit.

    A = (3 - ρ)/(2(1 + ρ)), A₃ = 2(2 - 2ρ - ρ²)/(1 + ρ)², A₄ = -3(1 - ρ)(3 + ρ)/(1 + ρ)²,
    B₁ = -(1 - ρ)/(2 - ρ), B₂ = (1 - 2ρ)/(2 - ρ). At ρ = 1 it is the trapezoidal rule.

    Parameters
    ----------
    rho_inf : float
        Spectral radius ρ∞ at infinite frequency, in [0, 1] (``ValueError`` otherwise): 1 dissipates
        nothing, 0 annihilates the highest frequencies in one step.
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
        Greater than 0, ``ValueError`` otherwise; unconditionally stable for 2β ≥ γ.
    gamma : float
        At least ½, ``ValueError`` otherwise; order two for γ = ½ only.
    """
    b, g = number("beta", beta), number("gamma", gamma)
    if g < 0.5 - ROUND_OFF:
        raise ValueError(f"gamma must be at least 1/2, not {g:g}: below, every vibration grows")
    return _scheme(g, b, 0.0, 0.0, f"newmark({b:g}, {g:g})")


def hht_alpha(alpha: float) -> AlphaScheme:
    """HHT-α (Hilber, Hughes & Taylor 1977): γ = ½ - α, β = (1 - α)²/4.

    Parameters
    ----------
    alpha : float
        α in [-⅓, 0], ``ValueError`` otherwise; 0 is the trapezoidal rule.
    """
    a = _between("alpha", alpha, -1 / 3, 0)
    return _scheme(0.5 - a, (1 - a) ** 2 / 4, a, 0.0, f"hht_alpha({a:g})")


def wbz_alpha(alpha: float) -> AlphaScheme:
    """WBZ-α (Wood, Bossak & Zienkiewicz 1981): γ = ½ - α, β = (1 - α)²/4.

    Parameters
    ----------
    alpha : float
        α in [-1, 0], ``ValueError`` otherwise; 0 is the trapezoidal rule.
    """
    a = _between("alpha", alpha, -1, 0)
    return _scheme(0.5 - a, (1 - a) ** 2 / 4, a / (1 - a), -a / (1 - a), f"wbz_alpha({a:g})")


def chung_hulbert(rho_inf: float) -> AlphaScheme:
    """Generalized-α with the α's of Chung & Hulbert (1993) for a given ρ∞.

    α_m = (2ρ - 1)/(ρ + 1), α_f = ρ/(ρ + 1), γ = ½ - α_m + α_f, β = (1 - α_m + α_f)²/4.

    Parameters
    ----------
    rho_inf : float
        As for :func:`hamel_alpha`.
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
        At most ½, ``ValueError`` otherwise.
    alpha_f : float
        Less than 1, ``ValueError`` otherwise.
    beta, gamma : float
        As Newmark's; ``ValueError`` unless β > 0.
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
    """Limit roots -ρ_b (twice) and, spurious, -ρ_s; second order; ρ_s = 0 is WBZ, ρ_s = ρ_b Hamel-α.

    Parameters
    ----------
    rho_b, rho_s : float
        ρ_b and ρ_s, each in [0, 1]; ``ValueError`` otherwise.
    """
    b, s = _radius("rho_b", rho_b), _radius("rho_s", rho_s)
    D = 2 + s * (1 - b)
    B1, B2 = -(1 - b) * (1 + s) / D, (1 - b - 2 * b * s) / D
    return _scheme((3 - b) / (2 * (1 + b)), 1 / (1 + b) ** 2, B1, B2, f"two_root({b:g}, {s:g})")


def three_root(rho_1: float, rho_2: float, rho_3: float) -> AlphaScheme:
    """Limit roots -ρ₁, -ρ₂ and, spurious, -ρ₃; second order (the U0 family of GSSSS).

    Zhou & Tamma, Int. J. Numer. Meth. Engng 59, 597 (2004).

    Parameters
    ----------
    rho_1, rho_2, rho_3 : float
        ρ₁, ρ₂ and ρ₃, each in [0, 1]; ``ValueError`` otherwise.
    """
    r1, r2, r3 = (_radius(f"rho_{k}", r) for k, r in enumerate((rho_1, rho_2, rho_3), start=1))
    beta = 1 / ((1 + r1) * (1 + r2))
    c = (1 - r1 * r2) * beta
    B2 = (c - r3 * (1 - c)) / (1 + c + r3 * c)
    return _scheme(0.5 + c, beta, -c * (1 - B2), B2, f"three_root({r1:g}, {r2:g}, {r3:g})")


def _scheme(gamma, beta, B1, B2, name: str) -> AlphaScheme:
    """The scheme with σ = -½ and these Newmark parameters: A₃ = 2(3β - 1), A₄ = -3(4β - 1)."""
    beta = _check_beta(number("beta", beta))
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
