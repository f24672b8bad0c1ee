"""Which steps are symplectic on a constant bracket, and which are Poisson maps on so(3)*?

The Jacobian of a step comes from central differences over copies of the system.
"""

import numpy as np
import pytest
from claims import CLAIMS, make
from verification.numpy_beam import cross_matrix
from verification.small_systems import nonseparable, rigid_body

import fdgeom as fg

EPSILON = 3e-5


def jacobian(claim, build, start, dt):
    """∂z¹/∂z⁰ and z¹."""
    n = len(start)
    shifts = EPSILON * np.concatenate([np.eye(n), -np.eye(n), np.zeros((1, n))])
    system, pieces = build(start + shifts)
    make(claim, (system, pieces), dt).advance()
    end = np.concatenate([part.dat.data_ro for part in system.parts], axis=1)
    return (end[:n] - end[n : 2 * n]).T / (2 * EPSILON), end[-1]


@pytest.mark.parametrize("name", CLAIMS)
def test_symplectic_on_a_constant_bracket(name):
    """MᵀJM = J for a canonical system whose energy mixes q and p."""
    claim = CLAIMS[name]
    M, _ = jacobian(
        claim,
        lambda z: nonseparable((z[:, :2], z[:, 2:])),
        np.array([0.4, -0.3, 0.2, 0.5]),
        0.3,
    )
    J = np.kron([[0, 1], [-1, 0]], np.eye(2))
    defect = np.abs(M.T @ J @ M - J).max()
    # Differences are good to EPSILON² + round-off/EPSILON, some 1e-9. A method of order p that is
    # not symplectic misses by some dt^(p+1), which a high order makes small: 1.5e-6 was seen.
    assert defect < 3e-9 if claim.symplectic else defect > 3e-7


@pytest.mark.parametrize(("name", "poisson"), [("Splitting", True), ("ImplicitMidpoint", False)])
def test_poisson_map_on_so3(name, poisson):
    """M ŷ⁰ Mᵀ = ŷ¹: true for the splitting into rotations, not for the midpoint rule."""
    start = np.array([0.5, -0.4, 0.8])
    M, end = jacobian(CLAIMS[name], rigid_body, start, 0.3)
    defect = np.abs(M @ cross_matrix(start) @ M.T - cross_matrix(end)).max()
    assert defect < 3e-9 if poisson else defect > 1e-4


def test_verlet_is_a_symmetric_sweep():
    """Kepler, e = 0.6: Störmer–Verlet's energy errors, from the parts p and q in turn."""
    from verification.small_systems import kepler

    for steps, published in ((200, 3.676e-3), (400, 9.153e-4)):
        system = kepler()
        start = system.energy()
        assert start == pytest.approx(-0.5, abs=1e-15)
        stepper = fg.SymmetricPoissonIntegrator(system, 2 * np.pi / steps)
        worst = 0.0
        for _ in range(steps):
            stepper.advance()
            worst = max(worst, abs(system.energy() - start))
        # Four digits are given.
        assert worst == pytest.approx(published, rel=2e-4)
