"""Contact of rods with obstacles: energy, order, readings, and rods that touch nothing."""

import numpy as np
import pytest
from firedrake import IntervalMesh, SpatialCoordinate, as_vector
from verification.beams import STIFFNESS, along, arc, set_smooth, uneven_mesh
from verification.rod_cases import SEPARATE

import fdgeom as fg

SECTION = fg.Section(STIFFNESS, SEPARATE)
MASS, STIFF, RADIUS, HEIGHT, SPEED = 1.0, 40.0, 0.05, 0.1, 0.6


def thrown(loads, cells=4, height=0.2, **options):
    """A beam that bends and turns in the air."""
    beam = fg.Beam(uneven_mesh(cells), SECTION, loads=loads, strain_measure="directors", **options)
    set_smooth(beam)
    beam.reconstruct(position=(0, 0, height))
    return beam


def pushing(depth, stiffness, rounding):
    """N and V in NumPy, from the formulas of the class."""
    soft = np.clip(depth, 0, rounding)
    force = np.where(depth < rounding, soft**2 / (2 * rounding), depth - rounding / 2)
    energy = np.where(
        depth < rounding,
        soft**3 / (6 * rounding),
        0.5 * (depth - rounding / 2) ** 2 + rounding**2 / 24,
    )
    return stiffness * force, stiffness * energy


@pytest.mark.parametrize(
    "method", [fg.EnergyMomentum, fg.DiscreteGradient], ids=lambda m: m.__name__
)
def test_energy(method):
    """A beam hits a floor, a ball and a bar: all parts of its energy, to round-off."""
    bodies = (
        fg.Plane((0, 0, 0), (0.1, 0, 1)),
        fg.Sphere((0.5, 0.1, -0.35), 0.4),
        fg.Cylinder((1, 0, -0.3), (0, 1, 0), 0.35),
    )
    touch = fg.Contact(*bodies, stiffness=400.0, radius=RADIUS)
    beam = thrown([touch, fg.Gravity((0, 0, -2.0))], height=0.3)
    stepper = method(beam, 0.02)
    stepper.advance()
    energy, touched = beam.energy(), 0
    for _ in range(100):
        stepper.advance()
        assert beam.energy() == pytest.approx(energy, rel=1e-11)
        touched += touch.depth(beam).max() > 0
    assert touched > 10
    # The potential and the forces, in NumPy.
    x = along(beam.position)
    normal = np.array([0.1, 0, 1]) / np.hypot(0.1, 1)
    arms = [x - [0.5, 0.1, -0.35], (x - [1, 0, -0.3]) * [1, 0, 1]]
    lengths = [np.linalg.norm(arm, axis=1) for arm in arms]
    depths = RADIUS - np.array([x @ normal, lengths[0] - 0.4, lengths[1] - 0.35])
    force, potential = pushing(depths, 400.0, 0.05 * RADIUS)
    widths = np.diff(arc(beam.momentum))
    weights = 0.5 * (np.append(widths, 0) + np.append(0, widths))
    expected = weights @ (potential.sum(axis=0) + 2 * MASS * x[:, 2])
    assert beam.load_potential() == pytest.approx(expected, rel=1e-11)
    assert touch.depth(beam) == pytest.approx(depths.max(axis=0), abs=1e-14)
    normals = [
        np.tile(normal, (len(x), 1)),
        *(a / d[:, None] for a, d in zip(arms, lengths, strict=True)),
    ]
    total = sum(weights[:, None] * f[:, None] * n for f, n in zip(force, normals, strict=True))
    assert touch.forces(beam) == pytest.approx(total, abs=1e-11)


def test_energy_over_a_thousand_steps():
    """A rod falls onto a floor, bounces, bends and turns: the largest deviation of all steps."""
    section = fg.Section.circle(0.02, density=1e3, youngs_modulus=1e7, poisson_ratio=0.3)
    touch = fg.Contact(fg.Plane((0, 0, 0), (0, 0, 1)), stiffness=1e5)
    mesh = IntervalMesh(4, 0.5)
    loads = [touch, fg.Gravity((0, 0, -9.81))]
    beam = fg.Beam(mesh, section, loads=loads, strain_measure="directors")
    beam.reconstruct(position=(0, 0, 0.1))
    (s,) = SpatialCoordinate(mesh)
    beam.velocity.interpolate(as_vector([0, 0.5, 0, 0.2, 0, 0.5 * s]))
    beam.project()
    stepper = fg.EnergyMomentum(beam, 1e-3, compiled=True)
    initial = beam.energy()
    largest = touched = 0
    for _ in range(1000):
        stepper.advance()
        largest = max(largest, abs(beam.energy() - initial))
        touched += touch.depth(beam).max() > 0
    assert largest <= 1e-12 * initial
    assert 50 < touched < 500


@pytest.mark.parametrize(
    "method", [fg.GeneralizedAlpha, fg.VariationalIntegrator, fg.EnergyMomentum, fg.DiscreteGradient],
    ids=lambda m: m.__name__,
)  # fmt: skip
def test_bouncing_as_a_whole(method):
    """Down, a half oscillation of √(k/m) in the floor, and up with the same speed: of order 2."""
    # With so large a depth the rounding does not matter, which makes the floor a little softer.
    rounding = 1e-6 * RADIUS
    touch = fg.Contact(
        fg.Plane((0, 0, 0), (0, 0, 1)), stiffness=STIFF, radius=RADIUS, rounding=rounding
    )
    until = HEIGHT / SPEED + np.pi / np.sqrt(STIFF / MASS) + 0.2
    errors = []
    for steps in (32, 64, 128):
        beam = fg.Beam(uneven_mesh(2), SECTION, loads=touch, strain_measure="directors")
        beam.reconstruct(position=(0, 0, HEIGHT + RADIUS))
        beam.velocity.interpolate(as_vector([0, 0, 0, 0.2, 0, -SPEED]))
        method(beam, until / steps).advance(steps)
        x, v = along(beam.position), along(beam.velocity)
        expected = RADIUS + 0.2 * SPEED
        errors.append(max(np.abs(x[:, 2] - expected).max(), np.abs(v[:, 5] - SPEED).max()))
        assert v[:, 3] == pytest.approx(0.2, abs=1e-10)
    assert 0.5 * np.log2(errors[0] / errors[-1]) == pytest.approx(2, abs=0.6)
    assert errors[-1] < 1e-2


@pytest.mark.parametrize(
    "method", [fg.GeneralizedAlpha, fg.EnergyMomentum], ids=lambda m: m.__name__
)
def test_untouched(method):
    """A rod that touches nothing moves as one without contact."""
    far = fg.Contact(
        fg.Plane((0, 0, -50), (0, 0, 1)), fg.Cylinder((0, 0, 0), (1, 0, 0), 60.0, inside=True),
        stiffness=1e6, radius=RADIUS, friction=0.3, slip=1e-3,
    )  # fmt: skip
    free, near = thrown([]), thrown(far)
    for beam in (free, near):
        method(beam, 0.01).advance(100)
    for name in ("position", "orientation", "velocity"):
        gap = along(getattr(near, name)) - along(getattr(free, name))
        assert np.abs(gap).max() < 1e-12


def test_the_section_gives_the_radius():
    for section in (
        fg.Section.circle(0.02, density=1e3, youngs_modulus=1e7, poisson_ratio=0.3),
        fg.Section.tube(0.02, 0.01, density=1e3, youngs_modulus=1e7, poisson_ratio=0.3),
    ):
        touch = fg.Contact(fg.Plane((0, 0, 0), (0, 0, 1)), stiffness=1e3)
        beam = fg.Beam(IntervalMesh(2, 1.0), section, loads=touch)
        beam.reconstruct(position=(0, 0, 0.015))
        assert touch.depth(beam) == pytest.approx(0.005, abs=1e-15)


def test_in_an_assembly():
    """Half of the contact on each of two joined beams and half on all: as on one beam."""

    def floor(share):
        return fg.Contact(
            fg.Plane((0, 0, 0), (0.05, 0, 1)), stiffness=share * 400.0, radius=RADIUS,
            friction=0.3, slip=0.1,
        )  # fmt: skip

    def fly(beam):
        beam.velocity.interpolate(as_vector([0, 0, 0, 0.3, 0.1, -0.5]))

    beams = [fg.Beam(IntervalMesh(2, 1.0), SECTION, loads=floor(0.5)) for _ in range(2)]
    for k, beam in enumerate(beams):
        beam.reconstruct(position=(k, 0, 0.1))
        fly(beam)
    common = floor(0.5)
    assembly = fg.Assembly(beams, [fg.Rigid(beams[0].right, beams[1].left)], loads=common)
    alone = fg.Beam(IntervalMesh(4, 2.0), SECTION, loads=floor(1.0))
    alone.reconstruct(position=(0, 0, 0.1))
    fly(alone)
    histories = [
        fg.GeneralizedAlpha(system, 0.01).run(steps=60, monitors=fg.ContactMonitor())
        for system in (assembly, alone)
    ]
    parts = np.vstack([along(beam.position) for beam in beams])
    assert np.delete(parts, 3, axis=0) == pytest.approx(along(alone.position), abs=1e-8)
    for name in ("contact_depth", "normal_force", "dissipated"):
        assert histories[0][name] == pytest.approx(histories[1][name], rel=1e-6, abs=1e-9)
    assert histories[1]["dissipated"][-1] > 1e-4
    forces = sum(common.forces(beam).sum(axis=0) for beam in beams)
    assert 2 * forces == pytest.approx(alone.loads[0].forces(alone).sum(axis=0), abs=1e-6)
