"""Inertia that no body and no cross-section has, weights that are added twice, stations that end early."""

import warnings

import numpy as np
import pytest
from firedrake import Constant, IntervalMesh, SpatialCoordinate
from verification.joined import straight

import fdgeom as fg
from fdgeom.sections.matrices import CONVENTIONS, to_convention

STEEL = {"density": 7850.0, "youngs_modulus": 2.1e11, "poisson_ratio": 0.3}


@pytest.fixture(autouse=True)
def warnings_are_errors():
    """What is sound must not be warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def sections(axis):
    """Thin, thick, hollow and eccentric ones."""
    shift = np.eye(6)
    shift[3:, :3] = 0.4 * np.array([[0, -1, 2], [1, 0, -3], [-2, 3, 0]])
    across = np.delete(np.arange(3), axis)
    x, y = across
    eccentric = np.zeros(3)
    eccentric[x], eccentric[y] = 0.4, -0.3
    a, b, c = eccentric
    shift[3:, :3] = -np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]])
    strip = fg.Section.rectangle(1.0, 1e-4, axis=axis, **STEEL)
    return [
        strip,
        fg.Section.rectangle(0.3, 0.2, axis=axis, **STEEL),
        fg.Section.circle(0.1, axis=axis, **STEEL),
        fg.Section.tube(0.1, 0.09, axis=axis, **STEEL),
        fg.Section(shift.T @ strip.stiffness @ shift, shift.T @ strip.inertia @ shift, axis=axis),
    ]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sections_that_are_sound(axis):
    """As they are, rounded to three digits, and through the tables of all programs."""
    for section in sections(axis):
        K, M = section.stiffness, section.inertia
        rounded = [
            np.array([[float(f"{x:.2e}") for x in row] for row in (m + m.T) / 2]) for m in (K, M)
        ]
        rounded[1] = np.where(np.eye(6) > 0, rounded[1], M)
        for matrices in ((K, M), (K, rounded[1])):
            fg.Section(*matrices, axis=axis)
            for name in CONVENTIONS:
                tables = [to_convention(m, name, axis) for m in matrices]
                fg.Section.from_table(*tables, convention=name, axis=axis)


@pytest.mark.parametrize(
    "diagonal",
    [[1.0] * 6, [0.05, 0.02, 0.04, 2, 2, 2], [1e-3] * 3 + [1.0] * 3, [1, 1, 1e-9, 2, 2, 2]],
    ids=str,
)
def test_bodies_in_a_row(diagonal):
    """Beams of thick bodies have moments that are no sums."""
    fg.Section(np.eye(6), np.diag(diagonal))


def test_order_of_rows():
    """A table with the momentum first taken as one with rotation first, and the other way round."""
    section = fg.Section.rectangle(0.3, 0.2, axis=2, **STEEL)
    K, M = section.to_table("beamdyn")
    with pytest.raises(ValueError, match="^inertia: its first three rows are those of a mass"):
        fg.Section(K, M, axis=2)
    with pytest.raises(ValueError, match="^inertia: its first three rows are those of a mass"):
        fg.Section.from_table(section.stiffness, section.inertia, convention="beamdyn")
    mesh = IntervalMesh(2, 1.0)
    (s,) = SpatialCoordinate(mesh)
    for axis, matrix in ((2, M), (0, np.diag([2.0, 2.0, 2.0, 0.02, 0.01, 0.01]))):
        tapered = fg.Section(np.eye(6), (1 + 0.1 * s) * Constant(matrix), axis=axis)
        with pytest.raises(ValueError, match="^inertia: its first three rows are those of a mass"):
            fg.Beam(mesh, tapered)


@pytest.mark.parametrize("name", list(CONVENTIONS))
@pytest.mark.parametrize("wrong", list(CONVENTIONS))
def test_axis_of_tables(name, wrong):
    """The programs have x or z along the beam."""
    section = fg.Section.rectangle(0.3, 0.2, axis=CONVENTIONS[name], **STEEL)
    tables = section.to_table(name)
    if CONVENTIONS[name] == CONVENTIONS[wrong]:
        read = fg.Section.from_table(*tables, convention=wrong)
        assert np.array_equal(read.inertia, section.inertia)
        return
    with pytest.raises(ValueError, match="^inertia: the moment of inertia about axis"):
        fg.Section.from_table(*tables, convention=wrong)


@pytest.mark.parametrize(
    ("diagonal", "sentence"),
    [
        (
            [0.1, 0.2, 0.3, 1, 1, 1],
            "the moment of inertia about axis 2 is the sum of the other two",
        ),
        ([0.1, 0.2, 0.5, 1, 1, 1], "no moment of inertia can be larger than the sum"),
        ([0.2, 0.1, 0.1, 1, 1, 2], "rows and columns of translation must be m I"),
    ],
    ids=["axis", "triangle", "mass"],
)
def test_warnings(diagonal, sentence):
    with pytest.warns(
        UserWarning, match=f"^inertia: a cross-section cannot have this one: {sentence}"
    ):
        fg.Section(np.eye(6), np.diag(diagonal))


def test_tables_of_no_section_are_warned_of():
    with pytest.warns(UserWarning, match="^inertia: a table cannot have this one: the moment"):
        fg.Section.from_table(np.eye(6), np.eye(6), convention="becas")


def test_principal_moments_of_bodies():
    """Of a plate the largest is the sum of the others; turned axes do not matter."""
    place = straight((0, 0, 0), (1.0, 0, 0), 1).right
    for inertia in ([1, 2, 3], [0, 1, 1], [0, 0, 0], np.diag([0.1, 0.1, 0.2])):
        fg.PointBody(place, mass=1.0, inertia=inertia)
    with pytest.warns(UserWarning, match="^inertia: each principal moment must be at most"):
        fg.PointBody(place, mass=1.0, inertia=[0.33, 0.33, 0.67])
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    fg.PointBody(place, mass=1.0, inertia=turn @ np.diag([1, 2, 3]) @ turn.T)
    with pytest.raises(ValueError, match="^inertia: each principal moment must be at most"):
        fg.PointBody(place, mass=1.0, inertia=turn @ np.diag([1, 1, 5]) @ turn.T)


def test_weight_twice():
    gravity = fg.Gravity((0, 0, -9.81))
    heavy = straight((0, 0, 0), (1.0, 0, 0), 2, loads=gravity)
    light = straight((1.0, 0, 0), (2.0, 0, 0), 2)
    joints = [fg.Rigid(heavy.right, light.left)]
    with pytest.warns(
        UserWarning, match=r"^loads: gravity acts twice on beams\[0\], as a load of"
    ) as w:
        fg.Assembly([heavy, light], joints, loads=gravity)
    assert w[0].filename == __file__
    fg.Assembly([heavy, light], joints)
    fg.Assembly([straight((0, 0, 0), (1.0, 0, 0), 2), light], loads=gravity)


@pytest.mark.parametrize(("ends", "warned"), [((0, 1), True), ((0, 60), False), ((-1, 61), False)])
def test_stations_that_end_inside(ends, warned):
    """Fractions of the length, as BeamDyn has them, on a beam of 60."""
    one, other = (fg.Section.rectangle(b, 0.1, **STEEL) for b in (0.4, 0.2))
    section = fg.Section.along([(ends[0], one), (ends[1], other)])
    mesh = IntervalMesh(3, 60.0)
    if not warned:
        fg.Beam(mesh, section)
        return
    sentence = "^section: the stations reach from s = 0 to 1, the beam from 0 to 60: beyond"
    with pytest.warns(UserWarning, match=sentence) as found:
        fg.Beam(mesh, section)
    assert len(found) == 1
    assert found[0].filename == __file__
