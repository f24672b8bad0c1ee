"""Beams made of drawn sections, sections that change along the beam, tables of other programs."""

import numpy as np
import pytest
from firedrake import IntervalMesh
from sections.drawn import BECAS, flexibility, rectangle

import fdgeom as fg

LENGTH = 5.0


def drawn(axis):
    # Density high enough for a fundamental frequency of order 1, load small enough to be linear.
    return fg.Section.from_mesh(
        rectangle(1.0, 0.75, 4), fg.Ply(BECAS, 0.5, 0.4), origin="tension", axis=axis
    )


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_tip_of_a_cantilever(axis):
    """Small loads: the flexibility that the compliance gives, to the second order of the cells."""
    section = drawn(axis)
    size = 1e-5
    force = size * np.array([0.3, -0.5, 0.7])
    beam = fg.Beam(
        IntervalMesh(40, LENGTH), section, left="clamped", loads=fg.Load(force=force, at="right")
    )
    statics = fg.StaticEquilibrium(beam)
    statics.solve()
    start = LENGTH * np.eye(3)[axis]
    moved = beam.position.dat.data_ro[-1] - start
    expected = flexibility(section.compliance, axis, LENGTH)[3:, 3:] @ force
    assert moved == pytest.approx(expected, abs=4e-4 * np.abs(expected).max())
    # Resultants half way: the force, and its moment about that place.
    arm = (LENGTH / 2) * np.eye(3)[axis]
    there = np.concatenate([np.cross(arm, force), force])
    assert statics.stress_at(LENGTH / 2) == pytest.approx(there, abs=1e-3 * np.abs(there).max())
    beam.project()
    assert beam.stress_at(LENGTH / 2) == pytest.approx(there, abs=1e-3 * np.abs(there).max())
    assert beam.stress_at([0.0, LENGTH])[0, :3] == pytest.approx(
        np.cross(2 * arm, force), abs=1e-3 * np.abs(there).max()
    )
    with pytest.raises(ValueError, match="^s must lie on the beam"):
        beam.stress_at(LENGTH + 1)


def test_vibrates_as_its_matrices():
    section = drawn(0)
    by_hand = fg.Section(section.stiffness, section.inertia)
    found, same = (
        fg.VibrationModes(fg.Beam(IntervalMesh(10, LENGTH), s, left="clamped"), 4).frequencies
        for s in (section, by_hand)
    )
    assert found == pytest.approx(same, rel=1e-12)
    # Bending of a slender clamped beam, √(EI/m)(1.875/L)²/2π, by the softer axis; here L/h is 7.
    S = section.compliance
    softest = np.linalg.eigvalsh(S[1:3, 1:3]).max()
    rough = 1.875**2 / LENGTH**2 / np.sqrt(softest * 0.75) / (2 * np.pi)
    # Shear, which the formula leaves out, counts here.
    assert found[0] == pytest.approx(rough, rel=0.15)


def test_resultants_between_gauss_points():
    """Of order degree + 1 in the length of the cells."""
    section = fg.Section(np.eye(6), np.eye(6))

    def error(cells, degree):
        beam = fg.Beam(IntervalMesh(cells, 1.0), section, degree=degree)
        beam.strain.interpolate(_wave(beam.mesh))
        places = np.linspace(0, 1, 13)
        exact = np.sin(2 * places)[:, None] * np.arange(1, 7)
        return np.abs(beam.stress_at(places) - exact).max()

    for degree in (1, 2):
        errors = [error(cells, degree) for cells in (4, 8, 16)]
        assert np.all(np.log2(np.array(errors[:-1]) / errors[1:]) > degree + 0.6)


def _wave(mesh):
    from firedrake import SpatialCoordinate, as_vector, sin

    (s,) = SpatialCoordinate(mesh)
    return as_vector([k * sin(2 * s) for k in range(1, 7)])


# --- along a beam ----------------------------------------------------------------------------------------
def stations(*places):
    rng = np.random.default_rng(3)
    made = []
    for s in places:
        A = rng.normal(size=(6, 6))
        made.append((s, fg.Section(A @ A.T + 6 * np.eye(6), A.T @ A + 6 * np.eye(6), axis=2)))
    return made


def test_along():
    """Linear between stations, constant beyond; the beam sees the same matrices."""
    given = stations(2.0, 0.0, 5.0)
    section = fg.Section.along(given)
    (_, second), (s0, first), _ = given
    for s, part in ((0.5, 0.25), (-1.0, 0.0), (2.0, 1.0)):
        mixed = (1 - part) * first.stiffness + part * second.stiffness
        assert section.at(s).stiffness == pytest.approx(mixed, rel=1e-14)
    assert not section.is_constant
    assert section.axis == 2
    beam = fg.Beam(IntervalMesh(5, 5.0), section, degree=2)
    beam.strain.assign(1.0)
    there = 1.3
    # The strain is 1: the resultants are the row sums; linear inside [0, 2], away from the kink.
    assert beam.stress_at(there) == pytest.approx(
        section.at(there).stiffness.sum(axis=1), rel=1e-12
    )
    assert section.at(s0).tension_centre == pytest.approx(first.tension_centre)
    with pytest.raises(ValueError, match="^compliance: the section varies"):
        _ = section.compliance


def test_centres_along():
    """Two bars whose centres lie apart: EA and GJ weigh them, so the centres are rational in s."""
    one, two = (0.1, -0.2), (0.5, 0.3)
    bars = [
        fg.Section.rectangle(b, h, density=rho, youngs_modulus=E, poisson_ratio=0.25, axis=2)
        for b, h, rho, E in ((1.0, 0.5, 2.0, 3.0), (0.6, 0.6, 7.0, 11.0))
    ]

    def moved(bar, centre):
        """About a reference from which the bar's centre is at ``centre``: ε(c) = ε + κ×c."""
        X = np.eye(6)
        x, y, z = *centre, 0.0
        X[3:, :3] = -np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        return fg.Section(X.T @ bar.stiffness @ X, X.T @ bar.inertia @ X, axis=2)

    section = fg.Section.along([(1.0, moved(bars[0], one)), (3.0, moved(bars[1], two))])
    s = np.array([[0.0, 1.0, 1.5], [2.0, 2.7, 4.0]])
    found = section.centres_at(s)
    part = np.clip((s - 1) / 2, 0, 1)

    def mean(first, second):
        """The mean of the centres with these weights, one for each coordinate."""
        first, second = np.multiply.outer(1 - part, first), np.multiply.outer(part, second)
        return (first * one + second * two) / (first + second)

    for centres, matrices, diagonal in (
        (found.tension, [bar.stiffness for bar in bars], [5, 5]),
        (found.mass, [bar.inertia for bar in bars], [5, 5]),
        # Forces along y that do not twist fix x, and the other way round.
        (found.shear, [bar.stiffness for bar in bars], [4, 3]),
    ):
        weights = [np.diag(matrix)[diagonal] for matrix in matrices]
        assert centres == pytest.approx(mean(*weights), rel=1e-12)
    there = section.at(2.7)
    assert found.shear[1, 1] == pytest.approx(there.shear_centre, rel=1e-13)
    assert section.centres_at(2.7).tension == pytest.approx(there.tension_centre, rel=1e-13)
    assert moved(bars[0], one).centres_at([0.0, 1.0]).mass == pytest.approx(np.array([one, one]))
    with pytest.raises(ValueError, match="s must be finite"):
        section.centres_at(np.nan)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (stations(1.0), ValueError, "stations must be two or more"),
        (stations(1.0, 1.0), ValueError, "stations must be two or more"),
        ([(0.0, 1.0), (1.0, 2.0)], TypeError, "stations must be pairs (s, section), not 1.0 for a"),
        (3.0, TypeError, "stations must be pairs"),
        (
            [*stations(1.0), (0.0, fg.Section(np.eye(6), np.eye(6)))],
            ValueError,
            "stations: all sections must have the same axis",
        ),
    ],
)
def test_bad_stations(given, error, message):
    with pytest.raises(error) as caught:
        fg.Section.along(given)
    assert str(caught.value).startswith(message)


# --- tables -----------------------------------------------------------------------------------------------
def test_tables_of_other_programs():
    """Each entry by its meaning: EA and GJ, EI about the other axes, GA along them."""
    shear_x, shear_y, stretch, bend_x, bend_y, twist = 2.0, 3.0, 10.0, 4.0, 5.0, 1.0
    beamdyn = np.diag([shear_x, shear_y, stretch, bend_x, bend_y, twist])
    beamdyn[2, 4] = beamdyn[4, 2] = -0.5  # axial force with bending about y
    section = fg.Section.from_table(beamdyn, np.eye(6), convention="beamdyn")
    assert section.axis == 2
    assert np.diag(section.stiffness) == pytest.approx(
        [bend_x, bend_y, twist, shear_x, shear_y, stretch]
    )
    assert section.stiffness[1, 5] == -0.5
    # EA x = 0.5 is the first moment: the tension centre is at x = .5/10 (ε = ε₀ - κ_y x).
    assert section.tension_centre == pytest.approx([0.05, 0])
    turned = fg.Section.from_table(beamdyn, np.eye(6), convention="beamdyn", axis=0)
    assert np.diag(turned.stiffness) == pytest.approx(
        [twist, bend_x, bend_y, stretch, shear_x, shear_y]
    )
    assert turned.tension_centre == pytest.approx([0.05, 0])
    # GXBeam and VABS: x along the beam; extension, two shears, twist, two bendings.
    vabs = np.diag([stretch, shear_x, shear_y, twist, bend_x, bend_y])
    section = fg.Section.from_table(vabs, np.eye(6), convention="vabs")
    assert section.axis == 0
    assert np.diag(section.stiffness) == pytest.approx(
        [twist, bend_x, bend_y, stretch, shear_x, shear_y]
    )


@pytest.mark.parametrize("convention", ["gxbeam", "vabs", "anba", "becas", "beamdyn"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_tables_there_and_back(convention, axis, rng):
    A = rng.normal(size=(6, 6))
    K, M = A @ A.T + np.eye(6), A.T @ A + np.eye(6)
    section = fg.Section.from_table(K, M, convention=convention, axis=axis)
    for back, given in zip(section.to_table(convention), (K, M), strict=True):
        assert back == pytest.approx(given, rel=1e-14)


def test_bad_tables():
    with pytest.raises(ValueError, match=r"^convention must be one of 'gxbeam', 'vabs'"):
        fg.Section.from_table(np.eye(6), np.eye(6), convention="ansys")
    with pytest.raises(ValueError, match="^stiffness must be a 6×6 array"):
        fg.Section.from_table(np.eye(3), np.eye(6), convention="becas")
    with pytest.raises(TypeError, match=r"^inertia must be a 6×6 array"):
        fg.Section.from_table(np.eye(6), "heavy", convention="becas")


def test_json(tmp_path, rng):
    """To the last digit; sections along a beam too."""
    A = rng.normal(size=(6, 6))
    section = fg.Section(A @ A.T + np.eye(6), A.T @ A + np.eye(6), axis=1)
    section.save(tmp_path / "one.json")
    read = fg.Section.load(tmp_path / "one.json")
    assert np.array_equal(read.stiffness, section.stiffness)
    assert np.array_equal(read.inertia, section.inertia)
    assert read.axis == 1
    section = fg.Section.along(stations(0.0, 1.0, 3.0))
    section.save(tmp_path / "some.json")
    read = fg.Section.load(tmp_path / "some.json")
    assert np.array_equal(read.stiffness(0.7), section.stiffness(0.7))
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(ValueError, match="is not a section written by fdgeom"):
        fg.Section.load(tmp_path / "no.json")
