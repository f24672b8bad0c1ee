"""Analysis of one-step schemes on an oscillator: eigenvalues, damping, period, overshoot.

The oscillator is q̈ + 2ξω q̇ + ω²q = 0 with steps h; all results are functions of Ω = ω h, for one
Ω or an array.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fdgeom.messages import format_value
from fdgeom.steppers.alpha_scheme import AlphaScheme
from fdgeom.validation import instance, number, real_array, whole

Method = AlphaScheme | Callable[[np.ndarray], np.ndarray]


def amplification_matrix(method: Method, Omega: ArrayLike, damping: float = 0.0) -> np.ndarray:
    """The matrix of one step of the oscillator, from the old state to the new one.

    Parameters
    ----------
    method : AlphaScheme or callable
        A scheme of the generalized-α family, whose state is (q, h v, h² a) with the algorithmic
        acceleration a; or any linear recursion: a function of an array of Ω that returns its
        matrices, shape Ω.shape + (n, n).
    Omega : array_like
        ω h, finite and not negative.
    damping : float, optional
        Damping ratio ξ of the oscillator (for an AlphaScheme; a callable has its own).

    Returns
    -------
    ndarray
        Shape Ω.shape + (n, n); n = 3 for an AlphaScheme.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong kind or out of range.
    """
    W, xi = _frequencies(Omega), _damping(method, damping)
    if not np.isfinite(W).all():
        raise ValueError(
            "Omega must be finite for a matrix and for a callable; eigenvalues and radii of an "
            "AlphaScheme take infinity"
        )
    if callable(method):
        matrix = np.asarray(method(W))
        if matrix.shape[:-2] != W.shape or matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
            raise ValueError(
                f"method must return square matrices, shape {W.shape} + (n, n), not {matrix.shape}"
            )
        return matrix
    g, b, B1, B2 = method.gamma, method.beta, method.B1, method.B2
    one, zero, stiffness, drag = np.ones_like(W), np.zeros_like(W), W**2, 2 * xi * W
    # q¹ = rows[0] + β α¹ and w¹ = rows[1] + γ α¹, with w = h v and α = h² a.
    rows = np.stack([one, one, (0.5 - b) * one]), np.stack([zero, one, (1 - g) * one])
    force = np.stack([stiffness, drag, zero])
    new = B2 * np.stack([zero, zero, one]) + (B1 + B2) * force
    new -= (1 + B1) * (stiffness * rows[0] + drag * rows[1])
    new /= 1 + (1 + B1) * (b * stiffness + g * drag)
    return np.moveaxis(np.stack([rows[0] + b * new, rows[1] + g * new, new]), (0, 1), (-2, -1))


def eigenvalues(method: Method, Omega: ArrayLike, damping: float = 0.0) -> np.ndarray:
    """The eigenvalues of the amplification matrix, shape Ω.shape + (n,).

    Ω may be infinite for an AlphaScheme. For an AlphaScheme they are the roots of

        (λ - 1)²(λ - B₂) + S(λ) (Ω² N(λ) + 2ξΩ (λ - 1) G(λ)),
        S = (1 + B₁) λ - B₁ - B₂,  N = β λ² + (½ + γ - 2β) λ + ½ - γ + β,  G = γ λ + 1 - γ,

    which is expanded about λ = 1 for small Ω and about the mean of the roots of S N for large Ω. A
    triple root, as of the optimal schemes in the limit, has only a third of the digits as the
    eigenvalue of a matrix; this expansion keeps all digits.
    """
    W, xi = _frequencies(Omega), _damping(method, damping)
    if callable(method):
        return np.linalg.eigvals(amplification_matrix(method, W))
    roots, centres = _roots(method, np.where(np.isinf(W), 1.0, W), xi)
    limits = np.array(method.limit_roots)
    return np.where(np.isinf(W)[..., None], limits, centres[..., None] + roots)


def spectral_radius(method: Method, Omega: ArrayLike, damping: float = 0.0) -> np.ndarray | float:
    """The largest modulus of the eigenvalues, shape of Ω; infinity is allowed for an AlphaScheme."""
    return np.abs(eigenvalues(method, Omega, damping)).max(axis=-1)[()]


def damping_ratio(method: Method, Omega: ArrayLike, damping: float = 0.0) -> np.ndarray | float:
    """Numerical damping ratio -ln|λ|/arg λ of the principal root λ, shape of Ω.

    Zero for a scheme that conserves an undamped oscillation; ξ/√(1 - ξ²) for the exact solution
    with ξ > 0. Not a number if all roots are real, since the numerical solution does not oscillate.
    """
    root = _principal(method, Omega, damping)
    return (-np.log(np.abs(root)) / np.angle(root))[()]


def period_elongation(method: Method, Omega: ArrayLike, damping: float = 0.0) -> np.ndarray | float:
    """Relative error √(1 - ξ²) Ω/arg λ - 1 of the numerical period, shape of Ω.

    Not a number if the numerical solution does not oscillate.
    """
    number("damping", damping, least=0, below=1)
    root = _principal(method, Omega, damping)
    exact = np.sqrt(1 - damping**2) * _frequencies(Omega)
    return (exact / np.angle(root) - 1)[()]


class Overshoot(NamedTuple):
    """Largest displacement and velocity of a run, over the amplitudes of the exact solution."""

    displacement: np.ndarray | float
    velocity: np.ndarray | float


def overshoot(
    scheme: AlphaScheme,
    Omega: ArrayLike,
    *,
    displacement: float = 1.0,
    velocity: float = 0.0,
    steps: int = 20,
    damping: float = 0.0,
) -> Overshoot:
    """The overshoot of the first steps of a run.

    Parameters
    ----------
    scheme : AlphaScheme
        The scheme; its run starts with the true acceleration, a⁰ = v̇⁰.
    Omega : array_like
        ω h, greater than 0.
    displacement, velocity : float
        q⁰, and v⁰/ω in the same unit.
    steps : int
        Number of steps.
    damping : float
        Damping ratio ξ of the oscillator.

    Returns
    -------
    Overshoot
        Largest |q| and |v|/ω after the start, each over √(q⁰² + (v⁰/ω)²), shape of Ω: at most 1
        without overshoot.
    """
    instance("scheme", scheme, AlphaScheme, "an AlphaScheme")
    whole("steps", steps, least=1)
    amplitude = float(np.hypot(displacement, velocity))
    if not (np.isfinite(amplitude) and amplitude > 0):
        raise ValueError("displacement and velocity must be finite and not both 0")
    W = _frequencies(Omega)
    if not (W > 0).all():
        raise ValueError("Omega must be greater than 0")
    matrix = amplification_matrix(scheme, W, damping)
    q, w = displacement * np.ones_like(W), velocity * W
    state = np.stack([q, w, -(W**2) * q - 2 * damping * W * w], axis=-1)
    largest = np.zeros((2, *W.shape))
    for _ in range(steps):
        state = np.einsum("...ij,...j->...i", matrix, state)
        now = np.abs(np.stack([state[..., 0], state[..., 1] / W])) / amplitude
        largest = np.maximum(largest, now)
    return Overshoot(largest[0][()], largest[1][()])


def _roots(scheme: AlphaScheme, W: np.ndarray, xi: float) -> tuple[np.ndarray, np.ndarray]:
    """The distances of the eigenvalues from a centre, and that centre, for each Ω."""
    g, b, spurious = scheme.gamma, scheme.beta, scheme.limit_roots[2]
    one, two, three = scheme.limit_roots
    leading = (1 + scheme.B1) * b * W**2
    centre = np.where(leading < 1, 1.0, np.mean([one, two, three]).real)
    # Each product of linear factors slope·μ + value, about the centre.
    rigid = _product((1, centre - 1), (1, centre - 1), (1, centre - scheme.B2))
    elastic = _product((1, centre - one), (1, centre - two), (1, centre - three)).real
    drag = _product((1, centre - spurious), (1, centre - 1), (g, g * centre + 1 - g)).real
    c = rigid + leading * elastic + 2 * xi * W * (1 + scheme.B1) * drag
    companion = np.zeros((*W.shape, 3, 3))
    companion[..., 0, :] = np.moveaxis(-c[1:] / c[0], 0, -1)
    companion[..., 1, 0] = companion[..., 2, 1] = 1
    return np.linalg.eigvals(companion), centre


def _product(*factors) -> np.ndarray:
    """Coefficients, highest first, of the product of linear factors (slope, values)."""
    found = [1.0]
    for slope, values in factors:
        found = [slope * a + values * b for a, b in zip([*found, 0], [0, *found], strict=True)]
    return np.stack(np.broadcast_arrays(*found))


def _principal(method: Method, Omega: ArrayLike, damping: float) -> np.ndarray:
    """The root of largest modulus among those with a positive imaginary part."""
    roots = eigenvalues(method, Omega, damping)
    oscillating = roots.imag > 0
    size = np.where(oscillating, np.abs(roots), -1.0)
    chosen = np.take_along_axis(roots, size.argmax(axis=-1)[..., None], axis=-1)[..., 0]
    return np.where(oscillating.any(axis=-1), chosen, np.nan)


def _frequencies(Omega: ArrayLike) -> np.ndarray:
    W = real_array("Omega", Omega, "a number or an array of numbers")
    if not (W >= 0).all():
        raise ValueError("Omega must not be negative or NaN")
    return W


def _damping(method: Method, damping: float) -> float:
    if not isinstance(method, AlphaScheme) and not callable(method):
        raise TypeError(f"method must be an AlphaScheme or a callable, not {format_value(method)}")
    damping = number("damping", damping, least=0)
    if damping and not isinstance(method, AlphaScheme):
        raise ValueError("damping: a callable has its own damping; leave this out")
    return damping
