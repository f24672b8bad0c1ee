"""How long steps of sweeps may be: the bound that the guide gives, from linear theory."""

import numpy as np
import pytest
from firedrake import IntervalMesh

import fdgeom as fg

#: Radii of a rod with cells of 0.05, whose sections turn faster than waves cross a cell, about as fast and
#: slower; and a part of the bound beyond which steps grow. Where both are as fast, not at one wavelength, the
#: bound is below the sharp one, by less than the root of two.
RADII = ((0.01, 1.15), (0.03, 1.5), (0.2, 1.15))


def longest(section, h):
    """Waves along the rod at two nodes a wavelength, and the turning of its sections against their shear."""
    stiffness, inertia = section.stiffness, section.inertia
    wave = np.sqrt(np.linalg.eigvals(np.linalg.solve(inertia, stiffness)).real.max())
    turning = np.sqrt(stiffness[4, 4] / inertia[2, 2])
    return 1 / np.hypot(wave / h, turning / 2)


@pytest.mark.parametrize("method", [fg.SymmetricPoissonIntegrator, fg.VariationalIntegrator])
@pytest.mark.parametrize(("radius", "beyond"), RADII)
def test_longest_step(method, radius, beyond, rng):
    """A small disturbance of all frequencies stays small below the bound and grows above it."""
    section = fg.Section.circle(radius, density=1000, youngs_modulus=1e6, poisson_ratio=0.4)

    def growth(part):
        rod = fg.Beam(IntervalMesh(20, 1.0), section)
        rod.velocity.dat.data[:] = 1e-3 * rng.standard_normal((21, 6))
        rod.project()
        start = rod.energy()
        stepper = method(rod, part * longest(section, 0.05))
        try:
            stepper.advance(1500)
        except fg.StepFailed:
            return np.inf
        return rod.energy() / start

    # The energy that is kept differs from the energy by the square of Δt times a frequency, 4 at the bound.
    assert growth(0.9) < 10
    assert growth(beyond) > 1e3
