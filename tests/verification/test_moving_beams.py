"""Beams in configuration form moved by generalized-α: published motions, orders, held ends."""

import itertools

import numpy as np
import pytest
from firedrake import IntervalMesh, as_vector, sin
from verification.moving_beams import end, rubber_rod, spaghetti, spun_up
from verification.plane_rod import PlaneRod

import fdgeom as fg


def test_flying_spaghetti(recorded):
    """Published: Simo and Vu-Quoc 1986 and others, to two digits; the others by a program for the plane.

    ``plane_rod`` has the same cells, scheme and steps, and angles in place of rotations in space.
    """
    beam = spaghetti()
    stepper = fg.GeneralizedAlpha(beam, 0.01, fg.hamel_alpha(0.9))
    plane = PlaneRod(
        100, 10.0, (6, 0), np.arctan2(8, -6), EA=1e4, GA=1e4, EI=100.0, mass=1.0, inertia=10.0,
        load=lambda t: np.array([8.0, 0.0, -80.0]) * (t < 2.5 + 1e-9),
    )  # fmt: skip
    steps = plane.steps(0.01, 0.9)
    published = {2.5: (-1.04, 4.48), 5.0: (3.82, 8.21), 7.5: (10.23, -0.30), 10.0: (17.02, 6.39)}
    for t, (x, y) in published.items():
        count = round((t - stepper.t) / 0.01)
        stepper.advance(count)
        in_plane = next(itertools.islice(steps, count - 1, None))[0, :2] - [6, 0]
        found = end(beam, "left") - [6, 0, 0]
        # What published results differ by.
        assert found == pytest.approx([x, y, 0], abs=0.05)
        # Both end their iterations below 1e-12 of a step's motion; the free rod is unstable.
        assert found == pytest.approx([*in_plane, 0], abs=1e-7)
        recorded.values(
            "Flying spaghetti (Simo and Vu-Quoc 1986)",
            f"displacement in y of the pulled end at t = {t} s",
            reference=y,
            source=f"published, two digits; {in_plane[1]:.3f} by a program for the plane",
            meshes=(round(t / 0.01),),
            values=[found[1]],
            by="steps",
        )
        if t == 5:
            energy = stepper.system.energy()
    assert stepper.solver_stats()["newton_iterations"] <= 3.2 * stepper.steps
    # 8 N for 2.5 s, and half of the next step: the method takes means of the loads at its ends.
    assert stepper.system.linear_momentum() == pytest.approx([20.04, 0, 0], abs=1e-8)
    # Free flight: the scheme damps what the step does not resolve, and only that.
    assert 0 < energy - stepper.system.energy() < 1e-4 * energy


def test_order_two():
    """Position and velocity of a clamped beam with a smooth follower load and damping."""
    section = fg.Section(np.diag([3.0, 5, 8, 500, 300, 400]), np.diag([0.05, 0.02, 0.04, 2, 2, 2]))
    load = fg.Load(
        force=lambda t: as_vector([0, 3 * sin(t) ** 4, sin(2 * t) ** 4]), at="right", frame="body"
    )
    found = []
    for dt in (0.04, 0.02, 0.01, 0.005):
        beam = fg.Beam(IntervalMesh(4, 1.0), section, left="clamped", loads=load, damping=0.02)
        fg.GeneralizedAlpha(beam, dt, fg.hamel_alpha(0.8)).advance(round(1.2 / dt))
        found.append(np.hstack([beam.position.dat.data_ro, beam.velocity.dat.data_ro]))
    assert np.abs(found[-1][:, 1:3]).max() > 0.05
    changes = np.array([np.abs(b - a).max(axis=0) for a, b in itertools.pairwise(found)])
    for part in (slice(0, 3), slice(3, 9)):
        size = changes[:, part].max(axis=1)
        assert np.allclose(np.log2(size[:-1] / size[1:]), 2, atol=0.2), size


def test_rubber_rod():
    """Let go from the horizontal: a computed reference whose own error is 0.008."""
    rod = rubber_rod(60)
    stepper = fg.GeneralizedAlpha(rod, 0.002, fg.hamel_alpha(0.8))
    table = {
        0.2: (0.942, -0.199),
        0.4: (0.475, -0.844),
        0.6: (-0.655, -0.698),
        1.0: (-0.942, -0.093),
    }
    for t, place in table.items():
        stepper.advance(round((t - stepper.t) / 0.002))
        assert end(rod)[:2] == pytest.approx(place, abs=0.008)
        assert end(rod, "left") == pytest.approx(0, abs=1e-15)


def test_spin_up():
    """The stretch in steady rotation is tan(αL)/α - L, and the tip lags behind only on the way."""
    beam = spun_up(10)
    stepper = fg.GeneralizedAlpha(beam, 0.02, fg.hamel_alpha(0.8))
    stepper.advance(900)
    stretches = []
    for _ in range(40):
        stepper.advance(5)
        angle = 6 * stepper.t - 45
        stretches.append(end(beam) @ [np.cos(angle), np.sin(angle), 0] - 10)
        assert end(beam, "left") == pytest.approx(0, abs=1e-15)
    # 1 %: the mesh of ten cells, and what is left of the vibrations averages out.
    assert np.mean(stretches) == pytest.approx(5.143e-4, rel=0.01)


def test_spin_up_with_too_little_damping():
    """Steps of 0.05 do not resolve the waves along the beam, which grow from 17 s on: that is said."""
    stepper = fg.GeneralizedAlpha(spun_up(10), 0.05)
    sentence = (
        r"; if the highest frequencies have grown, a scheme that damps them more helps, such as "
        r"hamel_alpha\(0.5\).$"
    )
    with pytest.raises(fg.StepFailed, match=sentence):
        stepper.advance(400)
    assert stepper.t > 17


def test_a_given_motion_is_followed():
    """Position and orientation of an end as functions of time: with velocity and acceleration."""
    section = fg.Section(np.diag([3.0, 5, 8, 500, 300, 400]), np.diag([0.05, 0.02, 0.04, 2, 2, 2]))
    given = fg.GivenPose(
        position=lambda t: as_vector([0.1 * sin(2 * t) ** 2, 0.2 * t**2, 0]),
        orientation=lambda t: as_vector([1, 0.3 * t**2, 0, 0.1 * sin(t) ** 2]),
    )
    beam = fg.Beam(IntervalMesh(4, 1.0), section, right=given)
    beam.reconstruct(position=(-1, 0, 0))
    stepper = fg.GeneralizedAlpha(beam, 0.01)
    stepper.advance(100)
    t, system = stepper.t, stepper.system
    node = np.argmax(beam.mesh.coordinates.dat.data_ro)
    place = [0.1 * np.sin(2 * t) ** 2, 0.2 * t**2, 0]
    assert end(beam) == pytest.approx(place, abs=1e-14)
    speed = system.v.dat.data_ro[node, 3:]
    assert speed == pytest.approx([0.2 * np.sin(4 * t), 0.4 * t, 0], abs=1e-13)
    rate = system.acceleration.dat.data_ro[node, 3:]
    assert rate == pytest.approx([0.8 * np.cos(4 * t), 0.4, 0], abs=1e-13)
    q = np.array([1, 0.3 * t**2, 0, 0.1 * np.sin(t) ** 2])
    assert beam.orientation.dat.data_ro[node] == pytest.approx(q / np.linalg.norm(q), abs=1e-14)
    # The other end trails behind.
    assert np.abs(end(beam, "left") - place + [1, 0, 0]).max() > 0.05


def test_sliding_and_refused_starts():
    section = fg.Section(np.diag([3.0, 5, 8, 500, 300, 400]), np.diag([0.05, 0.02, 0.04, 2, 2, 2]))
    beam = fg.Beam(
        IntervalMesh(3, 1.0), section, left=fg.Sliding("x"), loads=fg.Gravity((1, -9.81, 0))
    )
    stepper = fg.GeneralizedAlpha(beam, 0.01)
    stepper.advance(50)
    x, y, z = end(beam, "left")
    # The beam swings while its end slides; nothing pushes it up or sideways.
    assert x > 0.05
    assert [y, z] == pytest.approx([0, 0], abs=1e-15)
    # All the force along x is the weight's.
    assert stepper.system.linear_momentum()[0] == pytest.approx(2 * 0.5, rel=1e-9)
    beam.velocity.assign(1.0)
    with pytest.raises(ValueError, match="another velocity"):
        fg.GeneralizedAlpha(beam, 0.01)
    with pytest.raises(ValueError, match="degree"):
        fg.GeneralizedAlpha(fg.Beam(IntervalMesh(3, 1.0), section, degree=2), 0.01)
    moved = fg.Beam(
        IntervalMesh(3, 1.0), section, left=fg.GivenPose(position=lambda t: as_vector([t, 1, 0]))
    )
    with pytest.raises(ValueError, match="starts"):
        fg.GeneralizedAlpha(moved, 0.01)
    turned = fg.Beam(IntervalMesh(3, 1.0), section, left=lambda t: as_vector([t] * 6))
    with pytest.raises(ValueError, match="GivenPose"):
        fg.GeneralizedAlpha(turned, 0.01)
