"""Is the derivative of a step a symplectic matrix? By differences from many copies, stepped at once."""

import numpy as np
import pytest
from verification.hamiltonian_systems import henon_heiles, mixed, rows

import fdgeom as fg

# Differences of order four: (1e-3)⁴/30 of a fifth derivative, and round-off of 1e-16/1e-3.
EPSILON = 1e-3
J = np.kron([[0.0, 1.0], [-1.0, 0.0]], np.eye(2))
V, E = fg.StormerVerlet, fg.SymplecticEuler


def defect(build, cls, dt, steps=1, **options):
    """‖DΦᵀJDΦ - J‖ of ``steps`` steps, the largest entry over some starts."""
    starts = np.random.default_rng(7).uniform(-0.4, 0.4, (6, 4))
    shifts = EPSILON * np.concatenate([k * np.eye(4) for k in (1, -1, 2, -2)])
    system = build((starts[:, None, :] + shifts).reshape(-1, 4))
    cls(system, dt, **options).advance(steps)
    ends = rows(system).reshape(len(starts), 4, 4, 4)
    D = (8 * (ends[:, 0] - ends[:, 1]) - (ends[:, 2] - ends[:, 3])) / (12 * EPSILON)
    D = D.swapaxes(1, 2)
    return np.abs(D.swapaxes(1, 2) @ J @ D - J).max()


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (E, {}),
        (E, {"first": "q"}),
        (fg.ImplicitMidpoint, {}),
        (fg.GeneratingFunction4, {}),
        *((fg.GaussLegendre(s), {}) for s in (1, 2, 3)),
        (fg.Composition(fg.ImplicitMidpoint, 4), {}),
    ],
)
def test_symplectic(cls, options, recorded):
    off = defect(mixed, cls, 0.2, steps=3, **options)
    assert off < 1e-9
    show(recorded, cls, options, "an energy that is not separable", True, off, 1e-9)


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (V, {}),
        (V, {"first": "q"}),
        (E, {}),
        (fg.GaussLegendre(4), {}),
        *((fg.Composition(V, p), {}) for p in (4, 6, 8)),
        (fg.Composition(V, 4, "blanes-moan"), {}),
    ],
)
def test_symplectic_where_separable(cls, options, recorded):
    off = defect(henon_heiles, cls, 0.2, steps=3, **options)
    assert off < 1e-9
    show(recorded, cls, options, "Hénon and Heiles", True, off, 1e-9)


@pytest.mark.parametrize("build", [mixed, henon_heiles])
def test_runge_kutta_is_not(build, recorded):
    off = defect(build, fg.RungeKutta4, 0.2, steps=3)
    assert off > 1e-5
    show(recorded, fg.RungeKutta4, {}, build.__name__.replace("_", " "), False, off, 1e-5)


def show(recorded, cls, options, system, claimed, measured, bound):
    """A row of the page of verification."""
    words = ", ".join(f"{name}={value!r}" for name, value in options.items())
    name = f"{cls.__name__}({words})" if words else cls.__name__
    recorded.defect(name, "symplectic", system, claimed=claimed, measured=measured, bound=bound)
