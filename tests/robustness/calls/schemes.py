"""Schemes of the generalized-α family, and their analysis."""

import numpy as np

import fdgeom as fg

REFUSALS = [
    ("rho_inf", lambda: fg.hamel_alpha(1.5), ValueError, "rho_inf must lie in [0, 1], not 1.5"),
    ("rho_inf", lambda: fg.hamel_alpha(-0.1), ValueError, "rho_inf must lie in [0, 1], not -0.1"),
    ("rho_inf", lambda: fg.hamel_alpha("0.8"), TypeError, "rho_inf must be a number, not '0.8'"),
    (
        "rho_inf",
        lambda: fg.hamel_alpha(np.nan),
        ValueError,
        "rho_inf must be a finite number, not nan",
    ),
    (
        "rho_inf",
        lambda: fg.hamel_alpha(),
        TypeError,
        "hamel_alpha() missing 1 required positional argument: 'rho_inf'",
    ),
    ("rho_inf", lambda: fg.chung_hulbert(2), ValueError, "rho_inf must lie in [0, 1], not 2"),
    (
        "beta",
        lambda: fg.newmark(0.0),
        ValueError,
        (
            "beta (or A, A3, A4, which give it) must be positive, not 0: the step solves "
            "for the displacement (for explicit steps see StormerVerlet)"
        ),
    ),
    ("beta", lambda: fg.newmark(beta=None), TypeError, "beta must be a number, not None"),
    (
        "gamma",
        lambda: fg.newmark(0.25, np.inf),
        ValueError,
        "gamma must be a finite number, not inf",
    ),
    ("alpha", lambda: fg.hht_alpha(0.1), ValueError, "alpha must lie in [-0.3333, 0], not 0.1"),
    ("alpha", lambda: fg.wbz_alpha(-2), ValueError, "alpha must lie in [-1, 0], not -2"),
    ("rho_s", lambda: fg.two_root(0.5, 1.5), ValueError, "rho_s must lie in [0, 1], not 1.5"),
    ("rho_3", lambda: fg.three_root(0.5, 0.5, "x"), TypeError, "rho_3 must be a number, not 'x'"),
    (
        "alpha_m",
        lambda: fg.general_alpha(0.6, 0.0, 0.25, 0.5),
        ValueError,
        "alpha_m must not be above 1/2, not 0.6: even free motion is unstable",
    ),
    (
        "alpha_f",
        lambda: fg.general_alpha(0.0, 1.0, 0.25, 0.5),
        ValueError,
        "alpha_f must be less than 1, not 1",
    ),
    (
        "B1",
        lambda: fg.AlphaScheme(0.5, -0.5, 0.0, -1.0, 0.0),
        ValueError,
        "B1 must be greater than -1, not -1: 1 + B1 weighs the force",
    ),
    (
        "B2",
        lambda: fg.AlphaScheme(0.5, -0.5, 0.0, 0.0, 1.0),
        ValueError,
        (
            "B2 must lie in [-1, 1), not 1: the control force would grow by itself (alpha_m"
            " must not be above 1/2)"
        ),
    ),
    (
        "name",
        lambda: fg.AlphaScheme(0.5, -0.5, 0.0, 0.0, 0.0, name=3),
        TypeError,
        "name must be a string, not 3",
    ),
    (
        "method",
        lambda: fg.analysis.spectral_radius("newmark", 1.0),
        TypeError,
        "method must be an AlphaScheme or a callable, not 'newmark'",
    ),
    (
        "Omega",
        lambda: fg.analysis.spectral_radius(fg.newmark(), -1.0),
        ValueError,
        "Omega must not be negative or NaN",
    ),
    (
        "Omega",
        lambda: fg.analysis.spectral_radius(fg.newmark(), "high"),
        TypeError,
        "Omega must be a number or an array of numbers, not 'high'",
    ),
    (
        "Omega",
        lambda: fg.analysis.amplification_matrix(fg.newmark(), np.inf),
        ValueError,
        "Omega must be finite for a matrix and for a callable; eigenvalues and radii of an "
        "AlphaScheme take infinity",
    ),
    (
        "damping",
        lambda: fg.analysis.spectral_radius(fg.newmark(), 1.0, damping=-0.1),
        ValueError,
        "damping must be a number that is not negative, not -0.1",
    ),
    (
        "damping",
        lambda: fg.analysis.period_elongation(fg.newmark(), 1.0, damping=1.0),
        ValueError,
        "damping must lie in [0, 1), not 1.0",
    ),
    (
        "scheme",
        lambda: fg.analysis.overshoot("newmark", 1.0),
        TypeError,
        "scheme must be an AlphaScheme, not 'newmark'",
    ),
    (
        "steps",
        lambda: fg.analysis.overshoot(fg.newmark(), 1.0, steps=0),
        ValueError,
        "steps must be a positive whole number, not 0",
    ),
    (
        "gamma",
        lambda: fg.newmark(0.25, 0.4),
        ValueError,
        "gamma must be at least 1/2, not 0.4: below, every vibration grows",
    ),
]
