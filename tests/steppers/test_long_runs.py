"""A hundred thousand compiled steps of each stepper of beams: what is kept, and no memory is used up.

A step rounds what it keeps by some 1e-16 of it; an implicit one leaves what its last iteration leaves,
1e-14 or so of a force. Where the signs of that change from step to step it walks as the root of the
number of steps, √N = 316 here; where a motion repeats itself it may go as N. Bars are some ten times
what such a walk comes to. What is not kept but bounded, as the energy of symplectic and symmetric
methods, has a bar of its band, in which it must stay without going one way.
"""

import gc
import os
from dataclasses import dataclass

import numpy as np
import pytest
from firedrake import IntervalMesh
from test_energy_momentum_joints import pendulum
from verification.rod_cases import SEPARATE, moving

import fdgeom as fg

#: Samples are taken every 5000 steps; memory counts from the fourth on.
STEPS, SAMPLES, WARM = 100_000, 20, 4


def free_beam():
    """Three cells of a beam that tumbles, swings and flies off: no load, no support."""
    return moving(SEPARATE, 3)


def rubber():
    """Forty cells of rubber in flight, soft in bending and stiff in stretch."""
    section = fg.Section.circle(
        5e-3, density=1100, youngs_modulus=5e6, poisson_ratio=0.5, shear_factor=1
    )
    beam = fg.Beam(IntervalMesh(40, 1.0), section)
    s = beam.mesh.coordinates.dat.data_ro
    beam.velocity.dat.data_wo[:, 2] = 0.5
    beam.velocity.dat.data_wo[:, 4] = 0.5 * s
    beam.velocity.dat.data_wo[:, 5] = 0.5 * np.cos(np.pi * s)
    return beam


@dataclass
class Samples:
    """What was measured after each five thousand steps, relative to the start."""

    energy: np.ndarray
    linear: np.ndarray
    angular: np.ndarray
    megabytes: float


def memory():
    """What this process holds now, in MB."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def long_run(stepper, momenta):
    """Take the steps, the last thousand one by one."""
    energy = stepper.system.energy
    first, before = energy(), [np.array(m()) for m in momenta]
    rows, held = [], None
    for k in range(SAMPLES):
        count = STEPS // SAMPLES
        one_by_one = 1000 if k in (0, SAMPLES - 1) else 0
        stepper.advance(count - one_by_one)
        for _ in range(one_by_one):
            stepper.advance(1)
        apart = [
            np.abs(np.array(m()) - b).max() / np.linalg.norm(b)
            for m, b in zip(momenta, before, strict=True)
        ]
        rows.append((energy() / first - 1, *apart))
        if k == WARM:
            held = memory()
    assert stepper.is_compiled
    assert stepper.solver_stats()["steps_through_petsc"] == 0
    assert stepper.steps == STEPS
    return Samples(*np.pad(np.array(rows), ((0, 0), (0, 2 - len(momenta)))).T, memory() - held)


def walk_of_rounding(motion):
    """How far the energy, over its size, walks if each step does no more than round the state.

    The state's values are changed by -1, 0 or 1 unit in the last place, whose standard deviation is
    √(2/3) units; rounding has √(1/12). The energy is linear in such changes.
    """
    fields = [motion.position, motion.orientation, motion.v]
    present = [np.array(f.dat.data_ro) for f in fields]
    energy, rng, changes = motion.energy(), np.random.default_rng(0), []
    for _ in range(40):
        for f, values in zip(fields, present, strict=True):
            f.dat.data_wo[...] = values + np.spacing(abs(values)) * rng.integers(
                -1, 2, values.shape
            )
        changes.append(motion.energy() / energy - 1)
    for f, values in zip(fields, present, strict=True):
        f.dat.data_wo[...] = values
    return np.std(changes) * np.sqrt(1 / 12) / np.sqrt(2 / 3) * np.sqrt(STEPS)


def assert_no_memory(found):
    """Eighty thousand steps: 2 MB would be 25 bytes a step, three numbers."""
    assert found.megabytes < 2


def assert_unit(*beams):
    """Quaternions are normalised in every step: to the rounding of one."""
    for beam in beams:
        assert np.abs(np.linalg.norm(beam.orientation.dat.data_ro, axis=1) - 1).max() < 1e-15


def assert_band(energy, bar):
    """It swings and does not go away: as a line it would differ by 1.1 of the first half's range."""
    first, second = np.split(energy, 2)
    assert np.abs(energy).max() < bar
    assert abs(second.mean() - first.mean()) < 0.75 * np.ptp(first)


def assert_velocity_and_momentum_agree(beam):
    momentum = np.einsum("ij,nj->ni", beam.section.inertia, beam.velocity.dat.data_ro)
    size = np.abs(momentum).max()
    assert beam.momentum.dat.data_ro == pytest.approx(momentum, abs=1e-14 * size)


@pytest.mark.parametrize("cls", [fg.EnergyMomentum, fg.VariationalIntegrator])
def test_momenta_of_a_free_beam(cls):
    beam = free_beam()
    stepper = cls(beam, 5e-3 if cls is fg.EnergyMomentum else 4e-3)
    start = np.array(beam.position.dat.data_ro)
    found = long_run(stepper, (beam.linear_momentum, beam.angular_momentum))
    assert found.linear.max() < 1e-12
    # The beam is hundreds of lengths away in the end: what its place rounds counts in the moment.
    away = np.abs(beam.position.dat.data_ro - start).max()
    assert away > 30
    assert found.angular.max() < 1e-12 * away
    if cls is fg.EnergyMomentum:
        # A step rounds more than once, and such a walk goes twice as far at times.
        assert np.abs(found.energy).max() < 5 * walk_of_rounding(stepper.system)
    else:
        assert_band(found.energy, 2e-4)
    assert_no_memory(found)
    assert_unit(beam)
    assert_velocity_and_momentum_agree(beam)


def test_energy_of_rubber():
    """Stretch is stiffer than bending by 1e5, and still the energy moves as rounding moves it."""
    beam = rubber()
    stepper = fg.EnergyMomentum(beam, 2e-3)
    found = long_run(stepper, (beam.linear_momentum,))
    assert np.abs(found.energy).max() < 5 * walk_of_rounding(stepper.system)
    assert found.linear.max() < 1e-11
    assert_no_memory(found)
    assert_unit(beam)


def test_generalized_alpha():
    """It damps a little, never drives, and keeps the linear momentum to what iterations leave."""
    beam = free_beam()
    found = long_run(fg.GeneralizedAlpha(beam, 5e-3), (beam.linear_momentum, beam.angular_momentum))
    # ρ∞ = 0.8 takes from oscillations that the step resolves by its third power: 5e-9 a step at most.
    assert found.energy.min() > -1e-3
    assert found.energy.max() < 1e-5
    assert found.energy[-1] < found.energy[0]
    assert found.linear.max() < 1e-10
    # Of second order in the step, (5e-3)² times the spins' squares.
    assert found.angular.max() < 1e-3
    assert_no_memory(found)
    assert_unit(beam)
    assert_velocity_and_momentum_agree(beam)


COMPOSED = fg.Composition(fg.SymmetricPoissonIntegrator, order=4)


@pytest.mark.parametrize(
    ("cls", "dt", "bar"),
    [
        # Of first order: the band is Δt wide, and may breathe.
        (fg.PoissonIntegrator, 2e-3, 1e-2),
        (fg.HamelFieldIntegrator, 2e-3, 1e-2),
        # Of orders two and four.
        (fg.SymmetricPoissonIntegrator, 4e-3, 3e-4),
        (COMPOSED, 4e-3, 3e-8),
        # A quadratic energy, kept to round-off.
        (fg.ImplicitMidpoint, 5e-3, 1e-11),
        (fg.DiscreteGradient, 5e-3, 1e-11),
    ],
)
def test_bracket(cls, dt, bar):
    """Steps of strain and momentum; momenta are kept as well as three cells can, of second order."""
    beam = free_beam()
    found = long_run(cls(beam, dt), (beam.linear_momentum,))
    assert np.abs(found.energy).max() < bar
    if cls in (fg.SymmetricPoissonIntegrator, COMPOSED):
        assert_band(found.energy, bar)
    assert found.linear.max() < 0.2
    assert_no_memory(found)
    assert_unit(beam)
    assert_velocity_and_momentum_agree(beam)


@pytest.mark.parametrize(
    ("cls", "measure", "dt"),
    [
        (fg.EnergyMomentum, "directors", 5e-3),
        (fg.GeneralizedAlpha, "directors", 5e-3),
        (fg.VariationalIntegrator, "simo-reissner", 1e-3),
    ],
)
def test_joints_do_not_drift(cls, measure, dt):
    """A double pendulum: the gaps of its joints are those of one step, not of all that went before."""
    motion = pendulum(measure, scale=1.0)
    stepper = cls(motion, dt)
    found = long_run(stepper, ())
    size = np.abs(motion.position.dat.data_ro).max()
    assert motion.gap() < 1e-12 * max(size, 1)
    if cls is fg.EnergyMomentum:
        assert np.abs(found.energy).max() < 1e-9
    assert_no_memory(found)
    assert_unit(*motion.beams)
