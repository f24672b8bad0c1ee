"""Beams whose data are unusual: what comes out is right, or is refused."""

import warnings

import numpy as np
import pytest
from firedrake import (
    Constant,
    IntervalMesh,
    SpatialCoordinate,
    as_vector,
    assemble,
    conditional,
    cos,
    dot,
    lt,
    sin,
)

import fdgeom as fg

MATERIAL = {"density": 1000.0, "youngs_modulus": 1e7, "poisson_ratio": 0.3}
SECTION = fg.Section.rectangle(0.02, 0.01, **MATERIAL)


def test_a_reference_strain_that_is_set_stays():
    """Its expression in the arc length changes with the mesh alone, which reading does not change."""
    beam = fg.Beam(
        IntervalMesh(8, 1.0), SECTION, left="clamped",
        reference_strain=lambda s: as_vector([0, 0, 3 * s, 0, 0, 0]),
    )  # fmt: skip
    beam.reference_strain.assign(0)
    stepper = fg.GeneralizedAlpha(beam, 1e-3)
    _ = beam.mesh.coordinates.dat.data
    stepper.advance(2)
    assert not beam.reference_strain.dat.data_ro.any()
    assert not beam.velocity.dat.data_ro.any()


@pytest.mark.parametrize(
    "method",
    [fg.PoissonIntegrator, fg.GeneralizedAlpha, fg.EnergyMomentum],
    ids=lambda m: m.__name__,
)
def test_weight_of_an_added_mass(method):
    """M v̇ = M g: all bodies fall alike, also where the mass depends on the direction."""
    with pytest.warns(UserWarning, match="inertia: a cross-section cannot have"):
        section = fg.Section(
            np.diag([1.0, 1, 1, 1e2, 1e2, 1e2]), np.diag([0.02, 0.01, 0.01, 1.0, 2.0, 2.0])
        )
    beam = fg.Beam(IntervalMesh(2, 1.0), section, loads=fg.Gravity((0, 0, -9.81)))
    method(beam, 1e-3).advance(10)
    assert beam.velocity.dat.data_ro[:, 5] == pytest.approx(-0.0981, rel=1e-10)


@pytest.mark.parametrize(
    ("method", "orientation"),
    [
        (fg.PoissonIntegrator, (0.5**0.5, 0, 0, 0.5**0.5)),
        (fg.PoissonIntegrator, (0, 0, 0, 1)),
        (fg.GeneralizedAlpha, (0.5**0.5, 0, 0, 0.5**0.5)),
        (fg.GeneralizedAlpha, (0, 0, 0, 1)),
    ],
)
def test_a_given_pose_elsewhere_than_the_beam(method, orientation):
    turned = fg.GivenPose(
        position=lambda t: as_vector([0.5 * t**2, 0 * t, 0]),
        orientation=lambda t: as_vector(orientation),
    )
    beam = fg.Beam(IntervalMesh(4, 1.0), SECTION, left=turned)
    with pytest.raises(ValueError, match="but (starts|is) elsewhere"):
        method(beam, 1e-5)


def test_a_given_pose_is_near_the_end_that_steps_have_moved():
    """A start is off by round-off, however small the angle is; steps leave their own error."""

    def beam(angle):
        turned = fg.GivenPose(
            position=lambda t: as_vector([0 * t, 0, 0]),
            orientation=lambda t: as_vector(
                [cos(angle + 1e4 * t**3), 0, 0, sin(angle + 1e4 * t**3)]
            ),
        )
        return fg.Beam(IntervalMesh(2, 1.0), SECTION, left=turned)

    with pytest.raises(ValueError, match="but starts elsewhere"):
        fg.PoissonIntegrator(beam(1e-6), 1e-5)
    moved = beam(0.0)
    stepper = fg.PoissonIntegrator(moved, 1e-4)
    stepper.advance(20)
    # The sum of the angular velocities before each step, where the given angle is 8e-5.
    angle = 3e4 * 1e-4 * np.sum((1e-4 * np.arange(20)) ** 2)
    assert moved.orientation.dat.data_ro[0, 3] == pytest.approx(angle, rel=1e-6)
    fg.PoissonIntegrator(moved, 1e-4, t0=stepper.t)
    moved.reconstruct()
    with pytest.raises(ValueError, match="but starts elsewhere"):
        fg.PoissonIntegrator(moved, 1e-4, t0=stepper.t)


@pytest.mark.parametrize(
    "does",
    [
        lambda beam: fg.GeneralizedAlpha(beam, 1e-3),
        lambda beam: fg.PoissonIntegrator(beam, 1e-3),
        fg.StaticEquilibrium,
        fg.VibrationModes,
    ],
)
def test_a_mesh_that_moves(does):
    """Before it is used, and in between."""
    mesh = IntervalMesh(4, 1.0)
    beam = fg.Beam(mesh, SECTION, left="clamped")
    made = does(beam)
    mesh.coordinates.dat.data[:] *= 2
    again = made.advance if hasattr(made, "advance") else lambda: does(beam)
    for later in (again, lambda: does(beam)):
        with pytest.raises(ValueError, match="the mesh of a beam has moved"):
            later()
    other = fg.Beam(IntervalMesh(4, 1.0), SECTION, left="clamped")
    other.mesh.coordinates.dat.data[:] *= 2
    with pytest.raises(ValueError, match="the mesh of a beam has moved"):
        does(other)


def test_a_second_stepper_on_an_end_that_has_moved():
    """The steps of the first leave the end within their error of the given pose."""
    given = fg.GivenPose(
        position=lambda t: as_vector([0.1 * t**2, 0 * t, 0]),
        orientation=lambda t: as_vector([cos(t), 0, 0, sin(t)]),
    )
    beam = fg.Beam(IntervalMesh(4, 1.0), SECTION, left=given)
    beam.velocity.interpolate(as_vector([0, 0, 2.0, 0, 2 * SpatialCoordinate(beam.mesh)[0], 0]))
    beam.project()
    first = fg.PoissonIntegrator(beam, 1e-5)
    first.advance(50)
    second = fg.PoissonIntegrator(beam, 5e-6, t0=first.t)
    second.advance(2)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_quaternions_whose_sign_jumps(degree):
    """A circle of radius 1 has the curvature 1, whatever the signs of its quaternions."""
    mesh, half = IntervalMesh(8, 6.0), 0.375
    (s,) = SpatialCoordinate(mesh)
    turn = as_vector([cos(s / 2), 0, 0, sin(s / 2)])
    beam = fg.Beam(mesh, SECTION, degree=degree)
    beam.position.interpolate(as_vector([sin(s), 1 - cos(s), 0]))
    beam.orientation.interpolate(conditional(lt(s, np.pi), turn, -turn))
    beam.project()
    # An arc is a screw motion, whose strain is constant. Degree 1 measures turns by Cayley vectors.
    size = np.tan(half) / half if degree == 1 else 1.0
    expected = np.tile([0, 0, size, size - 1, 0, 0], (len(beam.strain.dat.data_ro), 1))
    np.testing.assert_allclose(beam.strain.dat.data_ro, expected, atol=1e-9)


def test_reactions_of_the_present_inertia():
    """Half a cell of mass at the end: R = h/2 ρ A a, with a = 10 at the start."""
    density = Constant(1000.0)
    section = fg.Section.rectangle(0.02, 0.01, **MATERIAL | {"density": density})
    beam = fg.Beam(
        IntervalMesh(4, 1.0), section, left=lambda t: as_vector([0, 0, 0, 0, 0, sin(10 * t)])
    )
    density.assign(2000.0)
    force = beam.reactions()["left"][1]
    assert force == pytest.approx([0, 0, 0.125 * 0.4 * 10], abs=1e-12)


def test_the_inertia_of_a_small_body():
    """Round-off is that of the numbers given, not that of 1."""
    beam = fg.Beam(IntervalMesh(2, 1.0), SECTION)
    skew = [[2e-9, 1.5e-9, 0], [0, 2e-9, 0], [0, 0, 2e-9]]
    with pytest.raises(ValueError, match="inertia must be a symmetric"):
        fg.PointBody(beam.right, mass=1e-3, inertia=skew)


class Wrong(fg.SectionLaw):
    """A law whose moment about the first transverse axis is not the derivative of its energy."""

    def energy(self, strain, stiffness):
        return 0.5 * dot(strain, stiffness * strain)

    def stress(self, strain, stiffness):
        right = stiffness * strain
        return as_vector([right[0], 2 * right[1], *(right[i] for i in range(2, 6))])


@pytest.mark.parametrize(
    ("modulus", "radius", "density", "length"),
    [(2e11, 1e-4, 7800.0, 0.1), (2e5, 0.1, 7.8e-9, 100.0)],
    ids=["metres", "millimetres"],
)
def test_a_wrong_law_of_a_thin_wire(modulus, radius, density, length):
    """Its bending stiffness is 10⁻⁹ of the axial one in metres, and 10⁻³ in millimetres."""
    section = fg.Section.circle(radius, density=density, youngs_modulus=modulus, poisson_ratio=0.3)
    with pytest.raises(ValueError, match="its stress is not the derivative of its energy"):
        fg.Beam(IntervalMesh(4, length), section, law=Wrong())


@pytest.mark.parametrize("speed", [1.0, 1.5])
def test_a_shape_that_is_not_at_the_arc_length(speed):
    """A circle of radius 1 whose points run ahead of the mesh is stretched by half without stress."""
    mesh = IntervalMesh(20, 1.0)
    (s,) = SpatialCoordinate(mesh)
    angle = speed * s
    # The axis x of the section turns from x to y.
    shape = (sin(angle), 1 - cos(angle), 0), (cos(angle / 2), 0, 0, sin(angle / 2))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fg.Beam(mesh, SECTION, reference_shape=shape)
    texts = [str(w.message) for w in found if "reference_shape" in str(w.message)]
    assert len(texts) == (speed != 1)
    if texts:
        assert "sheared against its mesh by 50%" in texts[0]


@pytest.mark.parametrize("off", ["nothing", "position", "velocity"])
def test_joints_of_small_beams(off):
    """Two beams of 10 μm that turn as one, their places or velocities a millionth off or not."""
    length, rate = 1e-5, 3.0
    section = fg.Section.rectangle(1e-6, 1e-6, **MATERIAL)
    a, b = (fg.Beam(IntervalMesh(2, length), section) for _ in range(2))
    b.reconstruct(position=(length, 0, 0))
    beams = fg.Assembly([a, b], fg.Spherical(a.right, b.left))
    for beam in (a, b):
        beam.velocity.dat.data[:, 2] = rate
        # ω × (x - x₀) in the body frame, whose axes are those of space.
        beam.velocity.dat.data[:, 4] = rate * (beam.position.dat.data_ro[:, 0] - 2 * length)
    if off == "nothing":
        fg.GeneralizedAlpha(beams, 1e-9)
        return
    if off == "position":
        b.position.dat.data[:, 1] += 1e-6 * length
    else:
        b.velocity.dat.data[:, 4] += 1e-6 * rate * length
    with pytest.raises(ValueError, match="does not fulfil"):
        fg.GeneralizedAlpha(beams, 1e-9)


def test_energies_of_present_data():
    """The elastic energy is proportional to the modulus, and ½ m v² = 0.1 J follows a velocity."""
    modulus = Constant(1e6)
    material = MATERIAL | {"youngs_modulus": modulus}
    beam = fg.Beam(IntervalMesh(4, 1.0), fg.Section.rectangle(0.02, 0.01, **material))
    beam.strain.interpolate(as_vector([0, 0.3, 0, 0, 0, 0]))
    before = assemble(beam.energies()["potential_energy"])
    modulus.assign(2e6)
    after = assemble(beam.energies()["potential_energy"])
    assert after == pytest.approx(2 * before, rel=1e-12)
    beam.velocity.interpolate(as_vector([0, 0, 0, 0, 0, 1]))
    assert beam.kinetic_energy() == pytest.approx(0.1, rel=1e-12)


def test_numbers_of_the_state_change_nothing():
    """Steps are the same to the last bit, though the inertia varies and a strain was set before."""
    mesh = IntervalMesh(4, 1.0)
    (s,) = SpatialCoordinate(mesh)
    section = fg.Section.rectangle(0.02 - 0.01 * s, 0.01, **MATERIAL)
    found = []
    for asks in (False, True):
        beam = fg.Beam(mesh, section, left="clamped")
        beam.strain.interpolate(as_vector([0, 0.5 * s, 0, 0, 0, 0]))
        if asks:
            assert beam.energy() > 0
        beam.reconstruct()
        stepper = fg.GeneralizedAlpha(beam, 1e-3)
        for _ in range(5):
            stepper.advance(1)
            if asks:
                beam.energy()
                beam.angular_momentum()
        found.append(np.array(beam.position.dat.data_ro))
    assert np.array_equal(*found)
