"""The coefficient functions, with three derivatives, against 50-digit hypergeometric series."""

import mpmath as mp
import numpy as np
import pytest

from fdgeom.lie import arrays
from fdgeom.lie.rotation_coefficients import ARCTANGENT, SWITCH, polynomial
from fdgeom.lie.ufl_operations import coefficients as ufl_coefficients

NAMES = [
    "sine",
    "cosine",
    "cubic",
    "cotangent",
    "cosine_slope",
    "cubic_slope",
    "cotangent_slope",
]
# zero, tiny, both sides of the switch (one ulp and 1e-9), and as far as an angle of 1.9 pi
SAMPLES = np.array(
    [0, 1e-300, 1e-12, 1e-3, 1, 3.9, SWITCH - 1e-9, np.nextafter(SWITCH, 0), SWITCH]
    + [SWITCH + 1e-9, 4.1, 9, 9.8, 20, 35]
)


def hypergeometric(name, s):
    if name == "sine":
        return mp.hyp0f1(1.5, -s / 4)
    if name == "cosine":
        return mp.hyper([1], [1.5, 2], -s / 4) / 2
    if name == "cubic":
        return mp.hyper([1], [2, 2.5], -s / 4) / 6
    # (θ/2) cot(θ/2) = (θ/2) J_{-1/2} / J_{1/2} at θ/2, each Bessel function divided by its power
    return (1 - mp.hyp0f1(0.5, -s / 16) / mp.hyp0f1(1.5, -s / 16)) / s


def reference(name, s):
    """Value and three derivatives."""
    function, shift = name.removesuffix("_slope"), int(name.endswith("_slope"))
    with mp.workdps(90):
        if function == "cotangent" and s < 1e-6:
            # the removable zero: fourteen terms of the Bernoulli series leave (1e-6/40)^14
            taylor = [abs(mp.bernoulli(2 * k + 2)) / mp.factorial(2 * k + 2) for k in range(14)]
            derivatives = []
            for _ in range(5):
                derivatives.append(mp.fsum(c * mp.mpf(s) ** k for k, c in enumerate(taylor)))
                taylor = [k * c for k, c in enumerate(taylor)][1:]
        else:
            derivatives = list(mp.diffs(lambda z: hypergeometric(function, z), mp.mpf(s), 4))
        return [float(d) for d in derivatives[shift : shift + 4]]


@pytest.fixture(scope="module")
def references():
    return np.array([[reference(name, s) for name in NAMES] for s in SAMPLES])


def test_values_and_three_derivatives_in_ufl(evaluate, references):
    from ufl import diff, variable

    def build(function):
        s = variable(function)
        columns = []
        for name in NAMES:
            value = getattr(ufl_coefficients, name)(s)
            for _ in range(4):
                columns.append(value)
                value = diff(value, s)
        return columns

    values = np.stack(evaluate(build, SAMPLES), axis=-1).reshape(references.shape)
    error = np.abs(values / references - 1)
    # the closed forms lose digits with each derivative: most in the third one of a slope, which
    # is the fourth of its function, at the switch
    for order, tolerance in enumerate([2e-14, 2e-13, 4e-12, 4e-11]):
        print(order, error[..., order].max(axis=0))
        assert error[..., order].max() < tolerance
    # the polynomials lose none
    below = error[SAMPLES < SWITCH]
    assert below.max() < 2e-14


def test_values_in_numpy(references):
    from fdgeom.lie.numpy_operations import coefficients

    for i, name in enumerate(NAMES):
        with np.errstate(divide="raise", invalid="raise", over="raise"):
            values = getattr(coefficients, name)(SAMPLES)
        # 1e-14: the slopes cancel two digits above the switch
        assert np.abs(values / references[:, i, 0] - 1).max() < 2e-14, name


def test_arctangent_series_reaches_two_turns():
    # the argument is tan(θ/16)², up to θ = 2 pi; 19 terms leave 1e-17 there
    x = np.tan(np.linspace(0.01, 2 * np.pi, 50) / 16) ** 2
    assert np.abs(polynomial(ARCTANGENT, x) - np.arctan(np.sqrt(x)) / np.sqrt(x)).max() < 4e-16


def test_slopes_are_infinite_only_where_said():
    angles = np.linspace(0, 2 * np.pi - 1e-3, 400)
    assert np.isfinite(arrays.so3.dexp_inverse(angles[:, None] * [0, 0, 1.0])).all()
