"""Load steps in which a cell turns too far: they are halved, and fail at last."""

import numpy as np
import pytest
from firedrake import Function, IntervalMesh, VectorFunctionSpace, as_vector, cos, sin
from scipy.integrate import solve_bvp

import fdgeom as fg

STRIP = fg.Section.rectangle(0.02, 0.01, density=1000, youngs_modulus=1e7, poisson_ratio=0.3)
LENGTHS = (0.98, 0.985, 0.99, 0.995, 1.0, 1.005, 1.01, 1.015, 1.02)
#: E b h³/12 about the axis in which the strip is bent by a weight along z.
STIFFNESS = 1e7 * 0.01**3 * 0.02 / 12
#: Of one stiffness for bending and twisting.
PLAIN = fg.Section(np.diag([1.0] * 3 + [1e4] * 3), np.diag([1e-3] * 3 + [1.0] * 3))


def hanging(length, **options):
    loads = fg.Gravity((0, 0, -2.0))
    return fg.Beam(IntervalMesh(8, length), STRIP, left="clamped", loads=loads, **options)


def angles(beam):
    """Between the two ends of each cell, in degrees."""
    q = beam.orientation.dat.data_ro
    return 2 * np.degrees(np.arccos(np.clip((q[:-1] * q[1:]).sum(axis=1), -1, 1)))


def heavy_elastica(length):
    """The tip of the inextensible elastica, EI θ'' = -w (L - s) cos θ with θ(0) = θ'(L) = 0."""
    ratio = 1000 * 0.02 * 0.01 * 2.0 / STIFFNESS

    def slope(s, y):
        theta, rate = y[:2]
        return np.array([rate, -ratio * (length - s) * np.cos(theta), np.cos(theta), np.sin(theta)])

    def ends(a, b):
        return np.array([a[0], b[1], a[2], a[3]])

    s = np.linspace(0, length, 101)
    guess = np.array([np.pi / 2 * (1 - np.exp(-5 * s)), 0 * s, 0.2 + 0 * s, s])
    x, down = solve_bvp(slope, ends, s, guess, tol=1e-8).sol(length)[2:]
    return np.array([x, 0, -down])


def check_hanging(length, measure, compiled):
    beam = hanging(length, strain_measure=measure)
    statics = fg.StaticEquilibrium(beam, compiled=compiled)
    assert statics.is_compiled is compiled
    try:
        statics.solve()
    except fg.LoadStepFailed:
        # The softening of these cells makes the iteration fail; smaller steps lead to 80 degrees.
        assert measure == "directors"
        return None
    if measure == "directors":
        assert angles(beam).max() == pytest.approx(80, abs=1)
        return None
    # Eight cells, of which the first turns by 36 degrees.
    expected = heavy_elastica(length)
    assert beam.position.dat.data_ro[-1] == pytest.approx(expected, abs=0.02 * length)
    assert angles(beam).max() < 40
    return beam.position.dat.data_ro[-1]


def test_one_large_step_leads_to_the_equilibrium_that_small_ones_find():
    """Newton's iteration alone ends in folded meshes at five of these nine lengths."""
    for length in LENGTHS:
        found = check_hanging(length, "simo-reissner", True)
    beam = hanging(length)
    fg.StaticEquilibrium(beam).solve(steps=20)
    # Both end at round-off of positions that EA ε/h brings about.
    assert found == pytest.approx(beam.position.dat.data_ro[-1], abs=1e-9)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("measure", ["simo-reissner", "se3", "directors"])
def test_measures_and_ways(measure, compiled):
    for length in LENGTHS:
        check_hanging(length, measure, compiled)


@pytest.mark.parametrize("compiled", [True, False])
def test_failure_names_cell_and_angle(compiled):
    """At this length the iteration of the whole step ends in a folded mesh."""
    beam = hanging(0.995)
    statics = fg.StaticEquilibrium(beam, compiled=compiled)
    before = np.array(beam.position.dat.data_ro)
    sentence = (
        r"^load step 1 from the load factor 0 failed: the two ends of the cell between the "
        r"node at [0-9.]+ and the node at [0-9.]+ turn against one another by ([0-9.]+) "
        r"degrees in a step, and 90 degrees at most are possible. The configuration is the "
        r"one before this step; take smaller steps, or refine the mesh there.$"
    )
    with pytest.raises(fg.LoadStepFailed, match=sentence) as caught:
        statics.solve(halvings=0)
    angle = float(caught.value.reason.split("by ")[1].split(" degrees")[0])
    assert 90 < angle < 360
    assert statics.load == 0
    np.testing.assert_array_equal(beam.position.dat.data_ro, before)


def rolled(measure):
    """Two cells rolled up by 200 degrees in all."""
    angle = np.radians(200)
    load = fg.Load(moment=(0, 0, angle), at="right")
    return fg.Beam(IntervalMesh(2, 1.0), PLAIN, left="clamped", loads=load, strain_measure=measure)


@pytest.mark.parametrize("measure", ["simo-reissner", "se3"])
def test_small_steps_may_turn_a_cell_by_more_than_90_degrees(measure):
    """A moment bends to a circle, by M L/EI, also in cells of 100 degrees."""
    beam = rolled(measure)
    fg.StaticEquilibrium(beam).solve(steps=10)
    # A stiffness of 1e4 in stretching and shearing, and the series of the logarithm.
    assert angles(beam) == pytest.approx([100, 100], abs=0.02)


def test_directors_stay_below_90_degrees():
    """Their curvature is sin(θ)/h: its moment is EI sin(θ) cos(θ)/h, and of the wrong sign past 90."""
    beam = rolled("directors")
    fg.StaticEquilibrium(beam).solve(0.25)
    bent = np.degrees(np.arcsin(0.25 * np.radians(200)) / 2)
    # A stiffness of 1e4 shortens the chord a little.
    assert angles(beam) == pytest.approx([bent, bent], abs=0.01)

    def turned(t):
        return as_vector([cos(t / 2), 0, 0, sin(t / 2)])

    beam = fg.Beam(
        IntervalMesh(1, 1.0), PLAIN, left="clamped", right=fg.GivenPose(orientation=turned),
        strain_measure="directors",
    )  # fmt: skip
    statics = fg.StaticEquilibrium(beam)
    statics.solve(time=np.radians(88), steps=4)
    assert angles(beam) == pytest.approx([88])
    sentence = (
        r"are turned against one another by 9\d.* degrees, and strains by directors soften beyond 90 "
        r"degrees. .*; refine the mesh there.$"
    )
    with pytest.raises(fg.LoadStepFailed, match=sentence):
        statics.solve(time=np.radians(120), steps=1)
    assert angles(beam) == pytest.approx([88])


def test_a_start_that_is_turned_too_far_is_refused():
    for measure in ("simo-reissner", "se3", "directors"):
        beam = fg.Beam(IntervalMesh(2, 1.0), PLAIN, left="clamped", strain_measure=measure)
        # Cells are turned by Cayley vectors.
        beam.strain.dat.data_wo[:] = [0, 0, 4 * np.tan(np.radians(50)), 0, 0, 0]
        beam.reconstruct()
        assert angles(beam) == pytest.approx([100, 100])
        if measure != "directors":
            fg.StaticEquilibrium(beam)
            continue
        sentence = (
            r"orientation: the two ends of the cell between the node at 0 and the node at 0.5 are "
            r"turned against one another by 100 degrees, and strains by directors soften beyond 90 "
            r"degrees; refine the mesh there"
        )
        for make in (fg.StaticEquilibrium, fg.VibrationModes):
            with pytest.raises(ValueError, match=sentence):
                make(beam)


def test_halving_helps_where_load_or_time_changes():
    """A natural curvature that is set at once is not reached by parts of a load that is there."""
    mesh = IntervalMesh(6, 1.0)
    curvature = Function(VectorFunctionSpace(mesh, "R", 0, dim=6))
    beam = fg.Beam(mesh, STRIP, left="clamped", reference_strain=curvature)
    statics = fg.StaticEquilibrium(beam)
    statics.solve()
    curvature.dat.data_wo[:] = [0, 30.0, 5.0, 0, 0, 0]
    sentence = (
        r"steps scale loads and time, and neither changes here: bring what else has changed, such as a "
        r"natural curvature or a load's numbers, to its value in parts, with a solve\(\) after each"
    )
    before = statics.solver_stats()["solves"]
    with pytest.raises(fg.LoadStepFailed, match=sentence):
        statics.solve()
    # In compiled code and through PETSc, once.
    assert statics.solver_stats()["solves"] <= before + 2


def test_given_poses_that_are_not_finite():
    singular = fg.GivenPose(position=lambda t: as_vector([0, 0, 1 / t]))
    beam = fg.Beam(IntervalMesh(2, 1.0), STRIP, left=singular)
    sentence = (
        r"left end is <given position>, but the given values are not finite at t = 0; give "
        r"finite positions, and quaternions that are not zero"
    )
    with pytest.raises(ValueError, match=sentence):
        fg.EnergyMomentum(beam, 0.01)

    def vanishing(t):
        return as_vector([1 - 64 * t, 0, 0, 0])

    for cls in (fg.EnergyMomentum, fg.GeneralizedAlpha):
        beam = fg.Beam(IntervalMesh(2, 1.0), STRIP, left=fg.GivenPose(orientation=vanishing))
        stepper = cls(beam, 1 / 256)
        with pytest.raises(
            fg.StepFailed, match=r"<given orientation>, but .* not finite at t = 0.0156"
        ):
            stepper.advance(10)
        assert stepper.steps == 3


def test_a_joint_may_turn_by_any_angle():
    """A hinge with a soft spring gives way by M/k, in one step; the stiff beam beside it does not."""
    stiff = fg.Section(np.diag([1e4] * 3 + [1e6] * 3), np.diag([1e-3] * 3 + [1.0] * 3))
    angle = np.radians(120)
    load = fg.Load(moment=(0, 0, 0.5 * angle), at="right")
    beam = fg.Beam(IntervalMesh(2, 1.0), stiff, loads=load)
    hinge = fg.Revolute(fg.ground, beam.left, axis=(0, 0, 1), stiffness=0.5)
    for compiled in (True, False):
        beam.strain.assign(0)
        beam.reconstruct(position=(0, 0, 0))
        statics = fg.StaticEquilibrium(fg.Assembly([beam], joints=[hinge]), compiled=compiled)
        statics.solve(halvings=0)
        q = beam.orientation.dat.data_ro[0]
        assert 2 * np.arctan2(q[3], q[0]) == pytest.approx(angle, abs=1e-9)
