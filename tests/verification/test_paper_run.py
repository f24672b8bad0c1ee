"""The run of Chen & Shi (2025): its numbers, and what each method keeps on it.

The reference numbers are those of independent C and NumPy programs with the full end weight.
"""

import numpy as np
import pytest
from verification.beams import along, papers_beam

import fdgeom as fg

S, M = fg.SymmetricPoissonIntegrator, fg.ImplicitMidpoint


def deviations(stepper, steps, every):
    """Least and largest change of the energy, largest of linear and angular momentum."""
    beam = stepper.system
    start = beam.energy(), beam.linear_momentum(), beam.angular_momentum()
    energy, linear, angular = [], [], []
    for _ in range(steps // every):
        stepper.advance(every)
        energy.append(beam.energy() - start[0])
        linear.append(np.abs(beam.linear_momentum() - start[1]).max())
        angular.append(np.abs(beam.angular_momentum() - start[2]).max())
    return min(energy), max(energy), max(linear), max(angular)


def test_start():
    beam = papers_beam()
    assert beam.energy() == pytest.approx(103.07914562278512, rel=1e-13)
    # Three decimals are given.
    assert beam.linear_momentum() == pytest.approx([13.332, 8.713, -15.090], abs=6e-4)
    # g₀ = I at the left end.
    assert np.array_equal(along(beam.position)[0], [0, 0, 0])
    assert np.array_equal(along(beam.orientation)[0], [1, 0, 0, 0])


@pytest.mark.parametrize("compiled", [True, False])
def test_after_a_thousand_steps(compiled):
    beam = papers_beam()
    stepper = fg.PoissonIntegrator(beam, 1e-4, compiled=compiled)
    assert stepper.is_compiled is compiled
    stepper.advance(1000)
    assert stepper.t == pytest.approx(0.1)
    # As many digits as are given.
    assert beam.energy() == pytest.approx(103.1861293696, rel=1e-12)
    assert along(beam.momentum)[50, 3] == pytest.approx(7.396420457, abs=6e-10)


@pytest.mark.parametrize(
    ("configuration", "linear", "angular"), [("old", 6.1e-3, 7.7e-3), ("mean", 3.9e-3, 4.0e-3)]
)
def test_published_deviations(configuration, linear, angular):
    """Sampled at every hundredth step; two digits of the momenta are given."""
    stepper = fg.PoissonIntegrator(papers_beam(), 1e-4, configuration=configuration)
    low, high, off_linear, off_angular = deviations(stepper, 1000, 100)
    assert low == pytest.approx(-0.0077, abs=1e-4)
    assert high == pytest.approx(0.2170, abs=1e-4)
    # Summed without the factor Δs, as the paper's figure 1 has it.
    assert (high - low) / (2 * np.pi / 300) == pytest.approx(10.73, abs=0.005)
    assert off_linear == pytest.approx(linear, abs=6e-5)
    assert off_angular == pytest.approx(angular, abs=6e-5)


# Largest deviations over 1000 steps, every tenth of them looked at: energy down and up, momenta.
BANDS = [
    (fg.PoissonIntegrator, "old", (-0.185, 0.425, 7.36e-3, 7.80e-3)),
    (fg.PoissonIntegrator, "new", (-0.185, 0.425, 1.34e-2, 1.34e-2)),
    (fg.PoissonIntegrator, "mean", (-0.185, 0.425, 4.04e-3, 4.01e-3)),
    (fg.HamelFieldIntegrator, "old", (-0.187, 0.423, 1.02e-2, 1.05e-2)),
    (fg.HamelFieldIntegrator, "new", (-0.187, 0.423, 9.25e-3, 9.23e-3)),
    (fg.HamelFieldIntegrator, "mean", (-0.187, 0.423, 4.63e-4, 6.94e-4)),
    (S, "old", (0.0389, 0.0629, 7.27e-3, 7.73e-3)),
    (S, "mean", (0.0389, 0.0629, 4.04e-3, 4.04e-3)),
    (M, "mean", (0.0, 0.0, 4.50e-4, 4.66e-4)),
    (fg.Composition(S, 4), "mean", (-4.75e-4, -2.85e-4, 4.71e-4, 4.86e-4)),
    (fg.Composition(S, 6), "mean", (1.18e-5, 3.02e-5, 4.42e-4, 4.58e-4)),
]


@pytest.mark.parametrize(
    ("cls", "configuration", "expected"), BANDS, ids=lambda v: getattr(v, "__name__", None)
)
def test_what_each_method_keeps(cls, configuration, expected):
    """No method keeps the momenta to round-off: 4.4e-4 is left when time is resolved."""
    stepper = cls(papers_beam(), 1e-4, configuration=configuration)
    seen = deviations(stepper, 1000, 10)
    # As recorded, to the digits written down; zero is round-off of a thousand solves.
    assert seen == pytest.approx(expected, rel=0.03, abs=2e-12)


def test_momenta_converge_with_the_mesh():
    """The momenta's error that remains is of second order in the cell's length."""
    seen = []
    for cells in (25, 50, 100):
        stepper = fg.Composition(S, 6)(papers_beam(cells), 1e-4 * 100 / cells)
        seen.append(deviations(stepper, 10 * cells, cells // 5)[2:])
    rates = np.log2(np.array(seen[:-1]) / np.array(seen[1:]))
    assert rates[-1] == pytest.approx(2, abs=0.1)
