"""What PoissonSystem refuses, and whether the message names the argument."""

import numpy as np
import pytest
from firedrake import TestFunction, dx, inner
from verification.small_systems import canonical, pairing, states

import fdgeom as fg


def make(**changes):
    z = states((0.3, 0.4))
    arguments = {
        "state": z,
        "energy": 0.5 * inner(z, z) * dx,
        "bracket": canonical,
        "pairing": pairing,
        **{k: v(z) for k, v in changes.items()},
    }
    return fg.PoissonSystem(**arguments)


def not_finite(z):
    z.dat.data_wo[0, 1] = np.nan
    return z


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"state": lambda z: z.dat.data_ro}, TypeError, "state must be"),
        ({"state": not_finite}, ValueError, "state holds values that are not finite"),
        ({"energy": lambda z: 0.5 * inner(z, z)}, TypeError, "energy must be a UFL functional"),
        ({"energy": lambda z: lambda: 0}, TypeError, "energy must be a UFL functional"),
        (
            {"energy": lambda z: inner(z, TestFunction(z.function_space())) * dx},
            ValueError,
            "energy must have 0 arguments, this form has 1",
        ),
        ({"bracket": lambda z: inner(z, z) * dx}, TypeError, "bracket must be a callable"),
        ({"bracket": lambda z: lambda a: inner(a, a) * dx}, ValueError, "bracket"),
        ({"bracket": lambda z: lambda a, b: inner(a, z) * dx}, ValueError, "bracket"),
        ({"bracket": lambda z: lambda a, b: 3.0}, TypeError, "bracket must give a UFL form"),
        ({"bracket": lambda z: lambda a, b: a[5] * b[0] * dx}, ValueError, "bracket"),
        ({"pairing": lambda z: None}, TypeError, "pairing must be a callable"),
        ({"pairing": lambda z: lambda a, b: inner(z, z) * dx}, ValueError, "pairing"),
        ({"names": lambda z: ("q", "p")}, ValueError, "names must be 1 different names"),
        ({"casimirs": lambda z: {"C": 3}}, TypeError, "casimirs['C'] must be"),
    ],
)
def test_bad_argument(changes, error, message):
    with pytest.raises(error) as caught:
        make(**changes)
    assert str(caught.value).startswith(message)


def test_parts_of_wrong_shape():
    system = make()
    with pytest.raises(ValueError, match=r"^a must have parts of shapes"):
        system.pairing(1.0, system.state)
    with pytest.raises(ValueError, match=r"^at must have parts"):
        system.bracket(system.state, system.state, at=(system.state, system.state))


def test_samples():
    with pytest.raises(ValueError, match="samples"):
        make().jacobi_defect(samples=0)
