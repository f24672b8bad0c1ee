"""The coefficients of the generalized-α family, as data."""

from dataclasses import dataclass, fields

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
    >>> from fdgeom.steppers.alpha.members import newmark
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
        check_beta(self.beta)

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

    def characteristic(self) -> tuple[tuple[float, float], ...]:
        """The characteristic polynomial of the step of q̈ = -ω²q, Ω = ω h.

        Returns
        -------
        tuple of pairs
            (p_k, r_k) with c_k = p_k + r_k Ω², for the coefficients c₃, c₂, c₁, c₀ of λ³, λ², λ, 1.
        """
        g, b, B1, B2 = self.gamma, self.beta, self.B1, self.B2
        return (
            (1.0, b * (1 + B1)),
            (-2 - B2, (0.5 + g) * (1 + B1) - 2 * b - 3 * b * B1 - b * B2),
            (
                1 + 2 * B2,
                0.5 - g + b + 3 * b * B1 - 2 * g * B1 + 2 * b * B2 - g * B2 - B2 / 2,
            ),
            (-B2, (g - b - 0.5) * (B1 + B2)),
        )

    @property
    def is_unconditionally_stable(self) -> bool:
        """Whether all eigenvalues lie in the unit disc for any frequency.

        By the criterion of Routh and Hurwitz for λ = (1 + z)/(1 - z): the coefficients of the cubic
        in z, and a₂a₁ - a₃a₀, must not be negative for any Ω² ≥ 0. For second-order schemes that is
        B₁ ≤ 0, 1 + 2B₁ + B₂ ≥ 0 and β ≥ γ/2 (in α's: α_m ≤ α_f ≤ ½).
        """
        c3, c2, c1, c0 = self.characteristic()
        a3, a2, a1, a0 = (
            tuple(sum(w * c[k] for w, c in zip(row, (c3, c2, c1, c0), strict=True)) for k in (0, 1))
            for row in ((1, -1, 1, -1), (3, -1, -1, 3), (3, 1, -1, -3), (1, 1, 1, 1))
        )
        # a₁ and a₀ vanish with Ω (the double root 1 of rigid motion), so a₂a₁ - a₃a₀ has two terms.
        products = (a2[0] * a1[1] - a3[0] * a0[1], a2[1] * a1[1] - a3[1] * a0[1])
        return min(*a3, *a2, *a1, *a0, *products) >= -ROUND_OFF


def check_beta(beta: float) -> float:
    """Return β if a step can be solved for the displacement; raise ``ValueError`` otherwise."""
    if beta <= ROUND_OFF:
        raise ValueError(
            f"beta (or A, A3, A4, which give it) must be positive, not {beta:.4g}: the step solves "
            "for the displacement (for explicit steps see StormerVerlet)"
        )
    return beta
