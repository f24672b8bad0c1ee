"""Limits and bifurcations on paths of equilibria, and branches, against formulas of columns."""

import numpy as np
import pytest
from firedrake import IntervalMesh, SpatialCoordinate, as_vector, cos, sin
from scipy.optimize import brentq
from scipy.special import ellipk
from statics.rod_cases import cantilever, section, tip
from verification.beams import along

import fdgeom as fg


def column(cells, EA=1e3, GA=400.0, second=3.0, loads=None):
    """Clamped below, EI = 1 and ``second`` about the two axes, pushed at the other end by 1."""
    return fg.Beam(
        IntervalMesh(cells, 1.0),
        section(EA, GA, 1.0, 1.0, second),
        left="clamped",
        loads=fg.Load(force=(-1.0, 0, 0), at="right") if loads is None else loads,
    )


def euler(EI, EA, GA, k=1):
    """Where P (1 - P/EA + P/GA) = EI ((2k - 1) π/2)²: stretch and shear of the straight column.

    Linearised about it, EI θ'' + P v' = 0 with v' = (1 - P/EA + P/GA) θ.
    """
    return brentq(lambda P: P * (1 - P / EA + P / GA) - EI * ((k - 0.5) * np.pi) ** 2, 0, 300)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_column_in_any_direction(compiled):
    """Round-off is not zero as it is along an axis; load, mode and branch are those of that column."""
    plain = fg.StaticEquilibrium(column(8))
    plain.follow(0.05)
    plain.switch(0.1)
    q = np.array([0.8, 0.3, -0.4, 0.2]) / np.linalg.norm([0.8, 0.3, -0.4, 0.2])
    axes = fg.lie.arrays.quaternion.matrix(q)
    turned = column(8, loads=fg.Load(force=tuple(-axes[:, 0]), at="right"))
    turned.reconstruct(position=(1.0, 2.0, 3.0), orientation=q)
    statics = fg.StaticEquilibrium(turned, compiled=compiled)
    statics.follow(0.05)
    (first,), (point,) = plain.points, statics.points
    assert (point.kind, point.multiplicity) == ("bifurcation", 1)
    assert point.load == pytest.approx(first.load, rel=1e-6)
    statics.switch(0.1)
    # To either side.
    found = axes.T @ (tip(turned)[0] - [1.0, 2.0, 3.0])
    expected = tip(plain.beam)[0]
    assert np.abs(expected[1:]).max() > 0.05
    assert np.abs(found) == pytest.approx(np.abs(expected), abs=1e-5)
    assert statics.load == pytest.approx(plain.load, rel=1e-5)


def test_hinged_semicircle_under_pressure():
    """It sways under p = 3 EI/R³, where p follows the arch (Timoshenko & Gere, section 7.6)."""
    loads, hinge = [], {"axis": (0, 1, 0)}
    for cells in (20, 40):
        mesh = IntervalMesh(cells, np.pi)
        (s,) = SpatialCoordinate(mesh)
        angle = s - np.pi / 2
        arch = fg.Beam(
            mesh,
            section(1e4, 1e4, 10.0, 1.0, 30.0),
            reference_shape=(
                as_vector([sin(angle), 0, cos(angle)]),
                as_vector([cos(angle / 2), 0, sin(angle / 2), 0]),
            ),
            loads=fg.Load(force=(0, 0, -1.0), frame="body"),
        )
        left, right = (fg.Revolute(fg.ground, end, **hinge) for end in (arch.left, arch.right))
        statics = fg.StaticEquilibrium(fg.Assembly([arch], [left, right]))
        while not statics.points:
            statics.follow(0.02, load_step=1.0)
        (point,) = statics.points
        assert (point.kind, point.multiplicity) == ("bifurcation", 1)
        loads.append(point.load)
    # Of second order in the cells; shear and stretch change it by some 1e-4.
    assert loads[1] + (loads[1] - loads[0]) / 3 == pytest.approx(3.0, rel=2e-3)


def turn(beam):
    q = tip(beam)[1]
    return 2 * np.arctan2(np.linalg.norm(q[1:]), q[0])


def test_buckling_loads_of_a_column():
    """Steps that would go far past them end at each in turn: weak axis, stiff axis, weak again."""
    exact = [euler(1, 1e3, 400.0), euler(3, 1e3, 400.0), euler(1, 1e3, 400.0, 2)]
    errors = []
    for cells in (8, 16, 32):
        statics = fg.StaticEquilibrium(column(cells))
        # Straight down by a twentieth of its length, which takes a load of 50 and more.
        loads = [statics.follow(0.05) for _ in range(3)]
        assert [p.kind for p in statics.points] == ["bifurcation"] * 3
        assert [p.multiplicity for p in statics.points] == [1] * 3
        found = np.array([p.load for p in statics.points])
        # It ends just behind the point, and has not left the straight path.
        assert loads == pytest.approx(found, rel=5e-3)
        assert np.all(loads > found)
        assert np.abs(along(statics.beam.position)[:, 1:]).max() < 1e-6
        errors.append(found - exact)
    errors = np.array(errors)
    assert np.abs(errors[-1] / exact).max() < 2e-2
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.05)
    assert (errors[2] + (errors[2] - errors[1]) / 3) / exact == pytest.approx(0, abs=1e-3)


def test_branch_of_a_column():
    """Behind the buckling load the column is an elastica: PL²/EI = K(sin(α/2))² for the tip's α."""
    errors = []
    for cells in (16, 32):
        statics = fg.StaticEquilibrium(column(cells, EA=1e6, GA=1e6))
        with pytest.raises(ValueError, match="point: follow\\(\\) has found no bifurcation yet"):
            statics.switch(0.1)
        statics.follow(0.05)
        assert tip(statics.beam)[0][2] == pytest.approx(0, abs=1e-6)
        loads, off = [statics.switch(0.1)], []
        for _ in range(5):
            loads.append(statics.follow(0.2))
            off.append(statics.load / ellipk(np.sin(turn(statics.beam) / 2) ** 2) ** 2 - 1)
        # It buckles about the weak axis, the second, and carries more the further it bends.
        x, q = tip(statics.beam)
        assert abs(x[2]) > 0.5
        assert abs(x[1]) < 1e-6
        assert np.abs(q[[1, 3]]).max() < 1e-6
        assert np.all(np.diff(loads) > 0)
        errors.append(off)
        other = fg.StaticEquilibrium(column(cells, EA=1e6, GA=1e6))
        other.follow(0.05)
        other.switch(-0.1)
        other.follow(0.2, steps=5)
        # The mirror image, to the stopping criterion.
        assert tip(other.beam)[0] == pytest.approx(x * [1, 1, -1], abs=1e-8)
    assert np.abs(errors[1]).max() < 2e-3
    assert np.array(errors[0]) / errors[1] == pytest.approx(4, rel=0.1)


def test_round_column_has_two_modes():
    """It buckles to all sides at once: one point, two modes."""
    statics = fg.StaticEquilibrium(column(16, second=1.0))
    statics.follow(0.05)
    (point,) = statics.points
    assert point.multiplicity == 2
    assert point.load == pytest.approx(euler(1, 1e3, 400.0), rel=2e-3)


@pytest.mark.parametrize("other", [1.0001, 1.001, 1.003])
def test_a_nearly_round_column_has_two_points(other):
    """It buckles to one side and then, at a little more, to the other."""
    statics = fg.StaticEquilibrium(column(8, second=other))
    statics.follow(0.05, steps=2)
    assert [p.kind for p in statics.points] == ["bifurcation"] * 2
    assert [p.multiplicity for p in statics.points] == [1, 1]
    first, last = statics.points
    # Both have the same error of the mesh.
    ratio = euler(other, 1e3, 400.0) / euler(1, 1e3, 400.0)
    assert last.load / first.load == pytest.approx(ratio, abs=1e-5)


def test_load_that_turns_with_the_tip():
    """A quarter of the load is a follower: cos(√P) = -η/(1 - η) (Bolotin), K is not symmetric."""
    eta = 0.25
    exact = np.arccos(-eta / (1 - eta)) ** 2
    errors = []
    for cells in (8, 16, 32):
        loads = [
            fg.Load(force=(eta - 1, 0, 0), at="right"),
            fg.Load(force=(-eta, 0, 0), at="right", frame="body"),
        ]
        statics = fg.StaticEquilibrium(column(cells, EA=1e6, GA=1e6, loads=loads))
        statics.follow(1e-5)
        (point,) = statics.points
        assert point.kind == "bifurcation"
        errors.append(point.load / exact - 1)
    assert abs(errors[-1]) < 2e-3
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.05)
    # Beck's column, all follower, has no equilibrium beside the straight one.
    beck = fg.Load(force=(-1, 0, 0), at="right", frame="body")
    statics = fg.StaticEquilibrium(column(8, EA=1e6, GA=1e6, loads=beck))
    assert statics.follow(3e-5) > 30
    assert statics.points == ()


def test_long_steps_stay_on_the_path():
    """A column with a little force aside: it turns sharply near the buckling load."""
    aside = fg.Load(force=(-1, 0, 1e-3), at="right")
    short, long = (fg.StaticEquilibrium(column(16, EA=1e6, GA=1e6, loads=aside)) for _ in range(2))
    short.follow(0.05, steps=12)
    long.follow(0.3, steps=2)
    assert short.points == long.points == ()
    # Both are equilibria of the same branch, at places a little apart along it.
    assert long.load == pytest.approx(short.load, rel=0.02)
    assert turn(long.beam) == pytest.approx(turn(short.beam), rel=0.1)
    there = along(short.beam.position)
    long.solve(short.load, steps=2)
    # The stopping criterion, near the load where the column is soft.
    assert along(long.beam.position) == pytest.approx(there, abs=1e-6)


def test_bound_of_the_load():
    statics = fg.StaticEquilibrium(cantilever(10, 5.0))
    loads = [0.0, *(statics.follow(1.0, load_step=0.1) for _ in range(3))]
    # Where the bound is reached the load itself is given.
    assert loads == pytest.approx([0, 0.1, 0.2, 0.3], rel=1e-12)
    statics.follow(1e-3, load_step=0.1)
    assert 0 < statics.load - loads[-1] < 0.1


def test_a_branch_is_at_the_time_of_its_point():
    """The load doubles in time: the branch leaves at the load at which it was found."""
    load = fg.Load(force=lambda t: as_vector([-(1 + t), 0, 0]), at="right")
    beam = column(8, loads=load)
    statics = fg.StaticEquilibrium(beam)
    statics.follow(0.05)
    (point,) = statics.points
    statics.solve(0.0, time=1.0)
    assert statics.switch(0.01) == pytest.approx(point.load, rel=1e-3)
    assert float(beam.time) == point.time == 0.0
    assert tip(beam)[0] == pytest.approx(point.position.dat.data_ro[-1], abs=0.05)


def test_points_of_other_beams_are_refused():
    statics = fg.StaticEquilibrium(column(8))
    statics.follow(0.05)
    other = fg.StaticEquilibrium(column(8))
    with pytest.raises(ValueError, match="^point must be a bifurcation of this path"):
        other.switch(0.01, point=statics.points[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.follow(0.1, load_step=0.0), "load_step must be a positive number"),
        (lambda s: s.follow(0.1, load_step=np.inf), "load_step must be a positive number"),
        (lambda s: s.switch(0.0), "step must not be zero"),
        (lambda s: s.switch(0.1), "point: follow\\(\\) has found no bifurcation"),
        (lambda s: s.switch(0.1, point=3), "point must be a bifurcation of this path"),
    ],
)
def test_bad_calls_of_paths(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call(fg.StaticEquilibrium(cantilever(4, 1)))
