"""Do the classes say of themselves what the tests show, and is none without a test?"""

import pathlib

import pytest
from claims import CLAIMS, TESTED_ELSEWHERE

import fdgeom.steppers
from fdgeom.steppers.composition import SCHEMES, weights

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("name", fdgeom.steppers.__all__)
def test_no_stepper_without_an_entry(name):
    if name in TESTED_ELSEWHERE:
        assert (ROOT / TESTED_ELSEWHERE[name]).is_file()
    else:
        assert any(entry.split()[0] == name for entry in CLAIMS)


@pytest.mark.parametrize("name", CLAIMS)
def test_class_attributes(name):
    claim = CLAIMS[name]
    cls = claim.stepper
    assert cls.order == claim.order
    assert cls.symmetric is claim.symmetric
    assert cls.symplectic is claim.symplectic
    assert cls.conserves == claim.conserves


@pytest.mark.parametrize("order", [4, 6])
def test_weights_of_compositions(order):
    """Order conditions that any symmetric composition of a second-order method must meet."""
    w = weights(order, SCHEMES[order][0])
    assert w == pytest.approx(w[::-1], abs=0)
    assert w.sum() == pytest.approx(1, abs=1e-15)
    assert (w**3).sum() == pytest.approx(0, abs=1e-15)
    if order == 6:
        assert (w**5).sum() == pytest.approx(0, abs=1e-15)
