"""Many rods in one unit: each moves as it does alone, and all their fields are those of its motion."""

import numpy as np
import pytest
from firedrake import IntervalMesh, SpatialCoordinate, as_vector, pi, sin
from verification.beams import along
from ways import check_way

import fdgeom as fg
from fdgeom.lie.arrays import quaternion

# More than lanes, of as many lengths: pieces end everywhere.
CELLS = (*range(1, 20), 20, 20, 20)
DT, STEPS = 2e-3, 40
STIFFNESS = np.diag([2.0, 3.0, 4.0, 900.0, 1000.0, 1100.0])
INERTIA = np.diag([0.02, 0.03, 0.04, 1.0, 1.0, 1.0])
FIELDS = ("position", "orientation", "velocity", "strain", "momentum")
# A rod whose strain is not that of the unit's own forms.
SHAPED = 7


def rod(k, **options):
    """Rod k flies, turns and vibrates in its own way."""
    mesh = IntervalMesh(CELLS[k], 0.1 * CELLS[k])
    if k == SHAPED:
        (s,) = SpatialCoordinate(mesh)
        still = as_vector([1.0, 0.0, 0.0, 0.0])
        options["reference_shape"] = as_vector([s, 0.05 * sin(pi * s), 0.0]), still
    section = fg.Section(STIFFNESS, INERTIA)
    beam = fg.Beam(mesh, section, strain_measure="directors", **options)
    (s,) = SpatialCoordinate(mesh)
    wave = sin(pi * s * 10 / CELLS[k] + k)
    beam.velocity.interpolate(as_vector([0.3, -0.2 * wave, 0.5, 0.1 * k, wave, 0.4 * s]))
    beam.position.dat.data_wo[:, 2] = 0.3 * k
    return beam


def fields(beam):
    return {name: along(getattr(beam, name)) for name in FIELDS}


@pytest.fixture(scope="module")
def unit():
    assembly = fg.Assembly([rod(k) for k in range(len(CELLS))])
    stepper = fg.EnergyMomentum(assembly, DT, compiled=True)
    start = assembly.energy(), assembly.linear_momentum(), assembly.angular_momentum()
    centre = centre_of_mass(assembly)
    # Calls of one step and of many.
    for steps in (1, 1, STEPS - 2):
        stepper.advance(steps)
    check_way(stepper)
    return assembly, start, centre


def centre_of_mass(assembly):
    """By NumPy: the mass of a cell is at its two ends."""
    total, mass = np.zeros(3), 0.0
    for beam, cells in zip(assembly.beams, CELLS, strict=True):
        own = np.full(cells + 1, 0.1)
        own[[0, -1]] /= 2
        total, mass = total + own @ along(beam.position), mass + own.sum()
    return total / mass, mass


@pytest.mark.parametrize("k", [0, SHAPED, len(CELLS) - 1])
def test_each_moves_as_alone(unit, k):
    alone = rod(k)
    stepper = fg.EnergyMomentum(alone, DT, compiled=True)
    stepper.advance(STEPS)
    check_way(stepper)
    expected, found = fields(alone), fields(unit[0].beams[k])
    for name in FIELDS:
        size = max(1.0, np.abs(expected[name]).max())
        # Positions to round-off; velocities of stiff directions and strains are quotients of them, by a
        # step and by the length of a cell.
        allowed = {"position": 1e-13, "orientation": 1e-13, "strain": 1e-11}.get(name, 1e-9)
        np.testing.assert_allclose(found[name], expected[name], atol=allowed * size, err_msg=name)


def test_they_keep_energy_and_momenta(unit):
    assembly, (energy, linear, angular), (centre, mass) = unit
    assert assembly.energy() == pytest.approx(energy, rel=1e-12)
    for now, before in (
        (assembly.linear_momentum(), linear),
        (assembly.angular_momentum(), angular),
    ):
        assert np.abs(now - before).max() < 1e-12 * np.linalg.norm(before)
    moved, _ = centre_of_mass(assembly)
    # All of them together fly straight on.
    np.testing.assert_allclose(moved, centre + STEPS * DT * linear / mass, rtol=1e-12)


def check_fields(beam):
    """By NumPy: the momentum of the velocity, and stretch and shear by the mean directors of a cell."""
    now = fields(beam)
    np.testing.assert_allclose(now["momentum"], now["velocity"] @ INERTIA, rtol=1e-13)
    directors = quaternion.matrix(now["orientation"])
    mean = 0.5 * (directors[1:] + directors[:-1])
    slope = np.diff(now["position"], axis=0) / 0.1
    stretch = np.einsum("kij,ki->kj", mean, slope) - [1.0, 0.0, 0.0]
    # Round-off of positions of size 10 by the length of a cell.
    np.testing.assert_allclose(now["strain"][:, 3:], stretch, atol=1e-12)


def test_fields_of_all_are_those_of_the_motion(unit):
    for k, beam in enumerate(unit[0].beams):
        if k != SHAPED:  # its strain differs by that of the shape at rest in two measures
            check_fields(beam)


def test_heavy_ends():
    """The momentum is that per length, whatever an end weighs."""
    beams = [rod(3), rod(4, end_weight=1.0)]
    assembly = fg.Assembly(beams)
    assembly.consistency.settle()
    for beam in beams:
        check_fields(beam)


def test_what_is_set_by_hand_is_read(unit):
    assembly = unit[0]
    before = [fields(beam) for beam in assembly.beams]
    beam = assembly.beams[-1]
    kick = np.array([0.0, 0.1, 0.0, 0.0, 0.2, 0.0])
    beam.velocity.dat.data[...] += kick
    assembly.consistency.prepare()
    np.testing.assert_allclose(
        along(beam.momentum), before[-1]["momentum"] + INERTIA @ kick, rtol=1e-12, atol=1e-15
    )
    for other, was in zip(assembly.beams[:-1], before, strict=False):
        for name, values in fields(other).items():
            np.testing.assert_array_equal(values, was[name])
    assembly.consistency.settle()
    np.testing.assert_allclose(along(beam.velocity), before[-1]["velocity"] + kick, rtol=1e-12)
