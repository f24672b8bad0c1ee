"""Obstacles: distances against NumPy, slopes, velocities and drawn surfaces."""

import numpy as np
import pytest
from firedrake import Constant, as_vector, cos, dot, sqrt

import fdgeom as fg

PLACE, AXIS = np.array([0.3, -0.2, 0.5]), np.array([1.0, 2.0, -1.0])
UNIT = AXIS / np.linalg.norm(AXIS)
R, WIRE = 0.7, 0.2


def across(x):
    y = x - PLACE
    return y - UNIT * (UNIT @ y)


def in_the_plane(x):
    return UNIT @ (x - PLACE)


def ball(x):
    y = x - Constant(PLACE)
    return sqrt(dot(y, y)) - R


CASES = {
    "plane": (fg.Plane(PLACE, AXIS), in_the_plane),
    "sphere": (fg.Sphere(PLACE, R), lambda x: np.linalg.norm(x - PLACE) - R),
    "cylinder": (fg.Cylinder(PLACE, AXIS, R), lambda x: np.linalg.norm(across(x)) - R),
    "ring": (
        fg.Ring(PLACE, AXIS, R, WIRE),
        lambda x: np.hypot(np.linalg.norm(across(x)) - R, in_the_plane(x)) - WIRE / 2,
    ),
    "level set": (fg.LevelSet(ball), lambda x: np.linalg.norm(x - PLACE) - R),
    "inside": (fg.Cylinder(PLACE, AXIS, R, inside=True), lambda x: R - np.linalg.norm(across(x))),
}


def numbers(vector):
    return np.array([float(vector[k]) for k in range(3)])


def at(obstacle, x, t=0.0):
    return float(obstacle.distance(Constant(x), Constant(t)))


@pytest.mark.parametrize("name", CASES)
def test_distance_and_slope(name):
    obstacle, expected = CASES[name]
    for x in np.random.default_rng(3).normal(size=(20, 3)):
        assert at(obstacle, x) == pytest.approx(expected(x), abs=1e-14)
        slope = numbers(obstacle.slope(Constant(x), Constant(0.0)))
        assert np.linalg.norm(slope) == pytest.approx(1, abs=1e-14)
        steps = 1e-6 * np.eye(3)
        differences = [(expected(x + e) - expected(x - e)) / 2e-6 for e in steps]
        assert slope == pytest.approx(np.array(differences), abs=1e-8)


# Python takes a minute for the formula of a level set.
@pytest.mark.parametrize("name", [name for name in CASES if name != "level set"])
def test_the_mean_slope_makes_the_change(name):
    """Over any step, and for short ones it is the slope."""
    obstacle, expected = CASES[name]
    time = Constant(0.0)
    for x, y in np.random.default_rng(5).normal(size=(10, 2, 3)):
        mean = numbers(obstacle.mean_slope(Constant(x), Constant(y), time))
        assert mean @ (y - x) == pytest.approx(expected(y) - expected(x), abs=1e-13)
        near = numbers(obstacle.mean_slope(Constant(x), Constant(x + 1e-7), time))
        assert near == pytest.approx(numbers(obstacle.slope(Constant(x), time)), abs=1e-6)


def test_middles_have_slopes():
    """A rope on the axis of a ring or a pipe is far from it in no direction: the slope is finite."""
    for name in ("sphere", "ring", "inside"):
        slope = numbers(CASES[name][0].slope(Constant(PLACE), Constant(0.0)))
        assert np.all(np.isfinite(slope)), name
    assert at(CASES["inside"][0], PLACE) == pytest.approx(R, abs=1e-9)
    assert at(CASES["ring"][0], PLACE) == pytest.approx(R - WIRE / 2, abs=1e-9)


def test_a_level_set_is_near_its_distance():
    """f = |x|² - R² is no distance; f/|∇f| is off by the square of the distance."""
    y = lambda x: x - Constant(PLACE)  # noqa: E731
    body = fg.LevelSet(lambda x: dot(y(x), y(x)) - R**2)
    errors = [at(body, PLACE + UNIT * (R + d)) - d for d in (1e-2, 5e-3)]
    assert errors[0] / errors[1] == pytest.approx(4, abs=0.1)
    assert abs(errors[0]) < 1e-4


def test_a_large_sphere_is_a_plane():
    size = 1e6
    sphere = fg.Sphere(PLACE - size * UNIT, size)
    for x in PLACE + 0.01 * np.random.default_rng(4).normal(size=(10, 3)):
        assert at(sphere, x) == pytest.approx(at(CASES["plane"][0], x), abs=1e-9)


def test_velocities_of_surfaces():
    moving = lambda t: as_vector([cos(2 * t), 0, 3 * t])  # noqa: E731
    time, x = Constant(0.4), Constant(PLACE + [0.1, 0, 0])
    speed = np.array([-2 * np.sin(0.8), 0, 3])
    for body in (fg.Sphere(moving, R), fg.Plane(moving, AXIS), fg.Ring(moving, AXIS, R, WIRE)):
        assert body.moves
        assert numbers(body.velocity(x, time)) == pytest.approx(speed, abs=1e-14)
    drum = fg.Cylinder(PLACE, AXIS, R, spin=lambda t: 5 * t)
    assert not drum.moves
    expected = 2.0 * np.cross(UNIT, [0.1, 0, 0])
    assert numbers(drum.velocity(x, time)) == pytest.approx(expected, abs=1e-14)
    sheet = fg.LevelSet(lambda x, t: x[2] - t, velocity=lambda x, t: as_vector([t, 0, 1]))
    assert sheet.moves
    assert at(sheet, np.array([0, 0, 1.0]), 0.4) == pytest.approx(0.6, abs=1e-15)
    assert numbers(sheet.velocity(x, time)) == pytest.approx([0.4, 0, 1], abs=1e-15)


def test_values_by_default_are_no_time():
    """As of functions that are made in a loop."""
    bodies = [fg.LevelSet(lambda x, r=r: dot(x, x) - r**2) for r in (0.5, 1.0)]
    for body, r in zip(bodies, (0.5, 1.0), strict=True):
        assert not body.moves
        assert at(body, np.array([r, 0, 0]), 7.0) == pytest.approx(0, abs=1e-15)


def test_level_sets_of_the_time_that_do_not_depend_on_it_stand_still():
    """Friction needs no velocity of them."""
    floor = fg.LevelSet(lambda x, t: x[2])
    assert not floor.moves
    assert at(floor, np.array([0, 0, 0.3]), 7.0) == pytest.approx(0.3, abs=1e-15)
    assert fg.Contact(floor, stiffness=1.0, friction=0.1, slip=0.1).has_friction


def test_directions_may_change():
    """A Constant given as normal or axis is read again, and so is the one made of numbers."""
    direction, x, time = Constant(AXIS), Constant([1.0, 1.0, 1.0]), Constant(0.4)
    plane, drum = fg.Plane(PLACE, AXIS), fg.Cylinder(PLACE, direction, R)
    for changed in (plane.normal, direction):
        changed.assign([0, 0, 2.0])
    assert float(plane.distance(x, time)) == pytest.approx(0.5, abs=1e-15)
    assert float(drum.distance(x, time)) == pytest.approx(np.hypot(0.7, 1.2) - R, abs=1e-15)


@pytest.mark.parametrize("name", [name for name in CASES if name != "level set"])
def test_drawn_surfaces_are_surfaces(name):
    obstacle, expected = CASES[name]
    points, triangles = obstacle.surface(centre=(1, 1, 1), size=2.0)
    assert [expected(x) for x in points] == pytest.approx(np.zeros(len(points)), abs=1e-14)
    assert triangles.min() == 0
    assert triangles.max() == len(points) - 1
    assert CASES["level set"][0].surface((0, 0, 0), 1.0) is None
