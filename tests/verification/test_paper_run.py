"""The run of Chen & Shi (2025), beside the NumPy program that takes the same steps.

The paper's own numbers, where it prints any, are asserted as such; everything else comes from the
program of ``numpy_beam``, which starts from the section's formulas and not from the package.
"""

from pathlib import Path

import numpy as np
import pytest
from benchmarks import kept
from verification.beams import along, papers_beam
from verification.numpy_beam import NumpyBeam
from ways import check_way

import fdgeom as fg

S, M = fg.SymmetricPoissonIntegrator, fg.ImplicitMidpoint
CELLS, LENGTH, DT = 100, 2 * np.pi / 3, 1e-4
# Weights of Suzuki's five and Kahan & Li's nine stages (Math. Comp. 66, 1997, table of order 6).
OUTER = 1 / (4 - 4 ** (1 / 3))
SUZUKI = [OUTER, OUTER, 1 - 4 * OUTER, OUTER, OUTER]
HALF = [
    0.39216144400731413928,
    0.33259913678935943860,
    -0.70624617255763935981,
    0.082213596293550800230,
]
KAHAN_LI = [*HALF, 1 - 2 * sum(HALF), *HALF[::-1]]  # fmt: skip


def plain_beam(cells=CELLS):
    """The paper's section (0.1 × 0.1, E = 1e7, ν = 0.35, ρ = 1000) and start, in NumPy."""
    area, second = 0.1**2, 0.1**4 / 12
    E, G, rho = 1e7, 1e7 / (2 * 1.35), 1000.0
    # Along E₂: torsion and stretch are the second of three components.
    stiffness = np.diag([E * second, 2 * G * second, E * second, G * area, E * area, G * area])
    inertia = rho * np.diag([second, 2 * second, second, area, area, area])
    nodes = np.linspace(0, LENGTH, cells + 1)
    plain = NumpyBeam(nodes, stiffness, inertia, axis=1, end_weight=1.0)
    plain.strain[:, 0] = -1.0
    plain.momentum[:, 3], plain.momentum[:, 4] = 10 * np.sin(1.5 * nodes), 10.0
    plain.reconstruct()
    return plain


def deviations(beam, advance, steps, every):
    """Least and largest change of the energy, largest of linear and angular momentum."""
    start = beam.energy(), beam.linear_momentum(), beam.angular_momentum()
    energy, linear, angular = [], [], []
    for _ in range(steps // every):
        advance(every)
        energy.append(beam.energy() - start[0])
        linear.append(np.abs(beam.linear_momentum() - start[1]).max())
        angular.append(np.abs(beam.angular_momentum() - start[2]).max())
    return min(energy), max(energy), max(linear), max(angular)


def repeated(step, *arguments):
    """``advance(n)`` of a program that has only single steps."""

    def advance(steps):
        for _ in range(steps):
            step(DT, *arguments)

    return advance


def test_start():
    beam, plain = papers_beam(), plain_beam()
    assert beam.energy() == pytest.approx(plain.energy(), rel=1e-13)
    # Three decimals are given.
    assert beam.linear_momentum() == pytest.approx([13.332, 8.713, -15.090], abs=6e-4)
    # g₀ = I at the left end.
    assert np.array_equal(along(beam.position)[0], [0, 0, 0])
    assert np.array_equal(along(beam.orientation)[0], [1, 0, 0, 0])


@pytest.fixture(scope="module")
def after_a_thousand():
    """The NumPy program after the paper's thousand steps."""
    plain = plain_beam()
    repeated(plain.step)(1000)
    return plain


@pytest.mark.parametrize("compiled", [True, False])
def test_after_a_thousand_steps(compiled, after_a_thousand):
    beam, plain = papers_beam(), after_a_thousand
    stepper = fg.PoissonIntegrator(beam, DT, compiled=compiled)
    stepper.advance(1000)
    check_way(stepper, compiled)
    assert stepper.t == pytest.approx(0.1)
    # A thousand solves to round-off.
    assert beam.energy() == pytest.approx(plain.energy(), rel=1e-12)
    momentum = along(beam.momentum)
    assert momentum == pytest.approx(plain.momentum, abs=1e-10 * np.abs(plain.momentum).max())
    assert along(beam.position) == pytest.approx(plain.pose[:, :3, 3], abs=1e-11)


@pytest.mark.parametrize(
    ("configuration", "linear", "angular"), [("old", 6.1e-3, 7.7e-3), ("mean", 3.9e-3, 4.0e-3)]
)
def test_deviations_of_the_specification(configuration, linear, angular):
    """Sampled at every hundredth step; two digits of the momenta are given."""
    stepper = fg.PoissonIntegrator(papers_beam(), DT, configuration=configuration)
    low, high, off_linear, off_angular = deviations(stepper.system, stepper.advance, 1000, 100)
    assert low == pytest.approx(-0.0077, abs=1e-4)
    assert high == pytest.approx(0.2170, abs=1e-4)
    # Summed without the factor Δs, as the paper's figure 1 has it.
    assert (high - low) / (2 * np.pi / 300) == pytest.approx(10.73, abs=0.005)
    assert off_linear == pytest.approx(linear, abs=6e-5)
    assert off_angular == pytest.approx(angular, abs=6e-5)


# Method, how it moves the poses, steps, and the same steps in NumPy.
RUNS = {
    "Poisson, old": (fg.PoissonIntegrator, "old", 1000, lambda p: (p.step, "poisson", "old")),
    "Poisson, new": (fg.PoissonIntegrator, "new", 200, lambda p: (p.step, "poisson", "new")),
    "Poisson, mean": (fg.PoissonIntegrator, "mean", 1000, lambda p: (p.step, "poisson", "mean")),
    "Hamel, old": (fg.HamelFieldIntegrator, "old", 1000, lambda p: (p.step, "hamel", "old")),
    "Hamel, new": (fg.HamelFieldIntegrator, "new", 200, lambda p: (p.step, "hamel", "new")),
    "Hamel, mean": (fg.HamelFieldIntegrator, "mean", 1000, lambda p: (p.step, "hamel", "mean")),
    "symmetric, old": (S, "old", 200, lambda p: (p.symmetric_step, "old")),
    "symmetric, mean": (S, "mean", 1000, lambda p: (p.symmetric_step, "mean")),
    "order 4": (fg.Composition(S, 4), "mean", 200, lambda p: (p.composed_step, SUZUKI)),
    "order 6": (fg.Composition(S, 6), "mean", 200, lambda p: (p.composed_step, KAHAN_LI)),
    "midpoint": (M, "mean", 200, lambda p: (p.midpoint_step,)),
}


@pytest.mark.parametrize("name", RUNS)
def test_what_each_method_keeps(name):
    """The bands of energy and momenta are those of the NumPy program, sampled every tenth step."""
    cls, configuration, steps, same = RUNS[name]
    stepper, plain = cls(papers_beam(), DT, configuration=configuration), plain_beam()
    seen = deviations(stepper.system, stepper.advance, steps, 10)
    expected = deviations(plain, repeated(*same(plain)), steps, 10)
    # Round-off of up to a thousand steps of nine solves, in an energy of 103 and momenta of 15.
    assert seen == pytest.approx(expected, rel=0, abs=1e-10)
    # The comparison means something: but for the midpoint rule's energy all of them are far above.
    assert max(np.abs(expected[:2])) > 1e-6 or cls is M
    assert min(expected[2:]) > 1e-6


def test_momenta_converge_with_the_mesh():
    """The momenta's error that remains is of second order in the cell's length."""
    seen = []
    for cells in (25, 50, 100):
        stepper = fg.Composition(S, 6)(papers_beam(cells), 1e-4 * 100 / cells)
        seen.append(deviations(stepper.system, stepper.advance, 10 * cells, cells // 5)[2:])
    rates = np.log2(np.array(seen[:-1]) / np.array(seen[1:]))
    assert rates[-1] == pytest.approx(2, abs=0.1)


#: The table of the site.
MEASURED = Path(__file__).parents[2] / "demos" / "site" / "measured" / "kept.md"


@pytest.mark.parametrize("method", kept.METHODS, ids=lambda m: m[0])
def test_the_site_says_what_is_kept(method):
    """Each row of the site's table, to its digits, is what the run gives."""
    assert kept.row(*method) in MEASURED.read_text().splitlines()


def test_the_site_says_how_it_starts():
    assert kept.start() in MEASURED.read_text()
