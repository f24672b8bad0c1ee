"""Equilibria, paths and vibrations of assemblies, against programs of the tests: shot and linear frames."""

import numpy as np
import pytest
from firedrake import IntervalMesh
from scipy.optimize import brentq
from statics.frame_cases import (
    MEMBERS,
    PAVILION,
    POINTS,
    STRIP,
    bent_cantilever,
    lees_frame,
    node,
    pavilion,
)
from statics.rod_cases import section
from verification.beams import SOFT, along
from verification.joined import straight
from verification.linear_frame import LinearFrame
from verification.shot_frames import BentCantilever, LeesFrame

import fdgeom as fg
from fdgeom.lie.arrays import quaternion
from fdgeom.statics.linear_algebra import Conditions
from fdgeom.statics.rigid_motions import free_motion

SLENDER = fg.Section(section(1e7, 1e7, 1.0, 1.0, 2.0).stiffness, np.diag([1e-5] * 3 + [1.0] * 3))


# --- paths -------------------------------------------------------------------------------------------
def test_lees_frame(recorded):
    """Its snap-through: both limits of the load, and their order in the mesh."""
    exact, errors = LeesFrame(), []
    printed = [1.85567, -0.941443]
    for cells in (10, 20, 40):
        assembly = lees_frame(cells)
        statics = fg.StaticEquilibrium(assembly)
        statics.follow(0.2, steps=12)
        assert not statics.fallbacks
        first, last = statics.points
        assert (first.kind, last.kind) == ("limit", "limit")
        errors.append(np.array([first.load, last.load]) - printed)
        if cells == 10:
            # Where the shooting starts from: the first limit as the coarse frame has it.
            limits = [shot_limit(exact, assembly, point) for point in (first, last)]
            assert limits == pytest.approx(printed, rel=1e-5)
    errors = np.array(errors)
    for name, limit, off in zip(("first", "second"), printed, errors.T, strict=True):
        recorded.values(
            "Lee's frame, a corner that snaps through",
            f"{name} limit of the load",
            reference=limit,
            source="shooting, six digits",
            meshes=(10, 20, 40),
            values=limit + off,
            by="cells a leg",
        )
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.05)
    # A shear of 1e7 is worth EI/(GA L²) = 1e-8.
    assert errors[2] + (errors[2] - errors[1]) / 3 == pytest.approx(0, abs=2e-4)


def shot_limit(exact, assembly, point):
    """A limit of the load by shooting, from the turn of the foot and the force there."""
    for function, found in zip(
        assembly.configuration, (point.position, point.orientation), strict=False
    ):
        function.assign(found)
    assembly.consistency.write_poses()
    column = assembly.beams[0]
    turn = quaternion.matrix(node(column, 0.0)[1])[:, 0]
    # All the frame's horizontal force, and the vertical one of its first foot, by its first cell.
    tangent = node(column, 0.0)[1]
    stress = fg.StaticEquilibrium(assembly).stress_at(0.0, column)[3:]
    force = quaternion.rotate(tangent, stress)
    guess = [np.arctan2(turn[2], turn[0]), force[0], force[2], point.load]
    return exact.limit(guess)[3]


def test_lateral_buckling_of_a_right_angled_frame(recorded):
    """Pulled in its plane it leaves the plane: Argyris et al., CMAME 20 (1979), print 1.088."""
    exact = BentCantilever(240.0, STRIP).critical(np.array([1.0, 0, 0]), 0.9, 1.2)
    assert exact == pytest.approx(1.088, abs=1e-3)
    errors = []
    for cells in (5, 10, 20):
        statics = fg.StaticEquilibrium(bent_cantilever(cells, (1.0, 0, 0)))
        statics.follow(1.0, load_step=2.0)
        (point,) = statics.points
        assert (point.kind, point.multiplicity) == ("bifurcation", 1)
        mode = point.modes[0].dat.data_ro
        # Out of the plane alone: no turn about z, no shift along x and y.
        assert np.abs(mode[:, 2:5]).max() < 1e-6 * np.abs(mode).max()
        errors.append(point.load - exact)
    recorded.values(
        "Lateral buckling of a right-angled frame (Argyris et al. 1979)",
        "load at which it leaves its plane",
        reference=exact,
        source="shooting (printed by them: 1.088)",
        meshes=(5, 10, 20),
        values=np.array(errors) + exact,
        by="cells a leg",
    )
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.05)
    # Of the fourth order in the mesh, and round-off of a strip 2500 times as stiff in its plane.
    assert errors[2] + (errors[2] - errors[1]) / 3 == pytest.approx(0, abs=1e-4)
    # Behind the point the frame bends sideways, to either side.
    load = statics.load
    statics.switch(0.02)
    assert abs(node(statics.beam.beams[1], 240.0)[0][2]) > 1.0
    assert statics.load == pytest.approx(load, rel=0.02)


# --- a frame in space ----------------------------------------------------------------------------------
GRAVITY, FORCE = np.array([0.3, -0.2, -1.0]), np.array([0.5, 1.0, 0.0])


SIZE = 1e-5


@pytest.fixture(scope="module")
def frame():
    """The linear frame by a program of its own, of two meshes."""
    members = [(a, b, quaternion.matrix(axes_of(POINTS[b] - POINTS[a]))) for a, b in MEMBERS]
    section = np.diag(PAVILION.stiffness), np.diag(PAVILION.inertia)
    return [LinearFrame(POINTS, members, *section, cells, fixed=range(4)) for cells in (8, 16)]


@pytest.fixture(scope="module")
def pavilions():
    """Three meshes, the second and third each twice as fine."""
    return [pavilion(cells, SIZE, GRAVITY, FORCE) for cells in (4, 8, 16)]


def axes_of(direction):
    d = direction / np.linalg.norm(direction)
    turn = np.array([1 + d[0], 0.0, -d[2], d[1]])
    return turn / np.linalg.norm(turn)


def test_frequencies_of_a_frame_of_twelve_beams(frame, pavilions):
    coarse, fine = (f.frequencies(10) for f in frame)
    assert coarse == pytest.approx(fine, rel=1e-3)
    # Of fourth order.
    expected = fine + (fine - coarse) / 15
    errors = []
    for assembly in pavilions:
        modes = fg.VibrationModes(assembly, 10, load=0.0)
        assert modes.rigid == 0
        errors.append(2 * np.pi * modes.frequencies / expected - 1)
    errors = np.array(errors)
    assert np.abs(errors[2]).max() < 1e-2
    assert np.linalg.norm(errors[0]) / np.linalg.norm(errors[1]) == pytest.approx(4, rel=0.15)
    assert np.linalg.norm(errors[1]) / np.linalg.norm(errors[2]) == pytest.approx(4, rel=0.1)
    assert np.abs(errors[2] + (errors[2] - errors[1]) / 3).max() < 5e-4


def test_sag_of_a_frame_of_twelve_beams(frame, pavilions):
    """In the limit of small loads: of the apex and of the middles of the ring."""
    fine = frame[1]
    sag = fine.sag(GRAVITY, {8: FORCE})
    expected = np.array(
        [sag[8], *(sag[fine.nodes[k][len(fine.nodes[k]) // 2]] for k in range(4, 8))]
    )[:, 3:]
    errors = []
    for assembly in pavilions:
        start = places(assembly)
        statics = fg.StaticEquilibrium(assembly)
        statics.solve()
        moved = (places(assembly) - start) / SIZE
        errors.append(np.abs(moved - expected).max() / np.abs(expected).max())
        # What the feet bear is what acts; small loads have fewer digits.
        total = sum(held["left"][1] for held in statics.reactions() if held) / SIZE
        length = sum(np.linalg.norm(POINTS[b] - POINTS[a]) for a, b in MEMBERS)
        assert total == pytest.approx(-(length * GRAVITY + FORCE), rel=1e-5)
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.1)
    assert errors[2] < 1e-2


def places(assembly):
    ring = [shape[len(shape) // 2] for shape in assembly.shapes()[4:8]]
    return np.array([assembly.shapes()[11][-1], *ring])


# --- joints in spectra -----------------------------------------------------------------------------------
def test_spectrum_of_two_hinged_beams():
    """Clamped outside: about the hinge each is a cantilever or propped; across it one clamped beam."""
    beta = [1.875104068712, 3.926602312048, 4.694091132974]
    across = [4.730040744863 / 2, 7.853204624096 / 2]
    # Three times as stiff about the third axis, which the hinge holds.
    of = fg.Section(section(1e7, 1e7, 1.0, 1.0, 3.0).stiffness, SLENDER.inertia)
    expected = np.sort([b**2 for b in beta] + [np.sqrt(3) * b**2 for b in across])
    errors = []
    for cells in (10, 20, 40):
        beams = [
            straight((0, 0, 0), (1, 0, 0), cells, of, left="clamped"),
            straight((1, 0, 0), (2, 0, 0), cells, of, right="clamped"),
        ]
        hinge = fg.Revolute(beams[0].right, beams[1].left, axis=(0, 1, 0))
        modes = fg.VibrationModes(fg.Assembly(beams, [hinge]), 5)
        assert modes.rigid == 0
        errors.append(2 * np.pi * modes.frequencies / expected - 1)
    errors = np.array(errors)
    # The fourth passes through zero: rotary inertia, 1e-5 of (βπ)²/2 and less, is as large there.
    plain = [0, 1, 2, 4]
    assert errors[0, plain] / errors[1, plain] == pytest.approx(4, rel=0.15)
    assert errors[1, plain] / errors[2, plain] == pytest.approx(4, rel=0.1)
    assert np.abs(errors[2] + (errors[2] - errors[1]) / 3).max() < 1e-3


@pytest.mark.parametrize(("kind", "free"), [(fg.Spherical, 9), (fg.Revolute, 7), (fg.Rigid, 6)])
def test_rigid_motions_of_free_assemblies(kind, free):
    """Six, and those of the joint."""
    beams = [straight((0, 0, 0), (1, 0, 0), 4), straight((1, 0, 0), (1, 1, 0), 4)]
    axis = {"axis": (0, 0, 1)} if kind is fg.Revolute else {}
    assembly = fg.Assembly(beams, [kind(beams[0].right, beams[1].left, **axis)])
    modes = fg.VibrationModes(assembly, 12)
    assert modes.rigid == free
    assert not modes.frequencies[:free].any()
    assert modes.frequencies[free] > 0.1


def test_a_body_at_the_tip():
    """A light cantilever with a heavy body: ω² = 3 EI/(m L³)."""
    beam = straight((0, 0, 0), (1, 0, 0), 20, SLENDER, left="clamped")
    body = fg.PointBody(beam.right, mass=1e3)
    modes = fg.VibrationModes(fg.Assembly([beam], bodies=[body]), 2)
    # The beam's own mass counts for 33/140 of it; second order in the mesh.
    assert modes.eigenvalues == pytest.approx(3 * np.array([1, 2]) / (1e3 + 33 / 140), rel=1e-3)


# --- a beam cut in two -----------------------------------------------------------------------------------
def test_a_beam_cut_in_two():
    """Welded together it is the beam: bent far, its reactions, stress and spectrum."""
    loads = [fg.Load(force=(0, 0.1, -0.3), at="right"), fg.Load(moment=(0.1, 0, 0.1), at="right")]
    options = {"left": "clamped"}
    whole = fg.Beam(IntervalMesh(8, 2.0), SOFT, loads=loads, **options)
    parts = [
        fg.Beam(IntervalMesh(4, 1.0), SOFT, **options),
        fg.Beam(IntervalMesh(4, 1.0), SOFT, loads=loads),
    ]
    parts[1].reconstruct(position=node(parts[0], 1.0)[0])
    weld = fg.Rigid(parts[0].right, parts[1].left)
    assembly = fg.Assembly(parts, [weld])
    alone, joined = fg.StaticEquilibrium(whole), fg.StaticEquilibrium(assembly)
    for statics in (alone, joined):
        statics.solve(steps=2)
    # Both end at 1e-12 of the size; forces are the stiffness times that.
    expected = along(whole.position)
    assert np.linalg.norm(expected[-1] - [2, 0, 0]) > 0.3
    assert along(parts[0].position) == pytest.approx(expected[:5], abs=1e-10)
    assert along(parts[1].position) == pytest.approx(expected[4:], abs=1e-10)
    stress = np.concatenate([along(part) for part in joined.stress()])
    assert stress == pytest.approx(along(alone.stress()), abs=1e-8)
    assert joined.stress_at(0.4, parts[1]) == pytest.approx(alone.stress_at(1.4), abs=1e-8)
    for name, both in zip(
        ("moment", "force"), zip(*joined_and(alone, joined), strict=False), strict=True
    ):
        assert both[1] == pytest.approx(both[0], abs=1e-8), name
    # What the weld exerts on the second part holds its load; on the first part it is the opposite.
    assert joined.force(weld) == pytest.approx([0, -0.1, 0.3], abs=1e-9)
    assert joined.force(weld, "first") == pytest.approx([0, 0.1, -0.3], abs=1e-9)
    both = [fg.VibrationModes(system, 12).eigenvalues for system in (whole, assembly)]
    assert both[1] == pytest.approx(both[0], rel=1e-8)


def joined_and(alone, joined):
    return alone.reactions()["left"], joined.reactions()[0]["left"]


@pytest.mark.parametrize("radius", [1e-5, 1e-3])
def test_a_wire_cut_in_two(radius):
    """Slender as it is, it keeps its digits: six rigid motions, and the frequencies of the wire."""
    steel = {"density": 7850.0, "youngs_modulus": 2.1e11, "poisson_ratio": 0.3}
    of = fg.Section.circle(radius, **steel)
    whole = fg.Beam(IntervalMesh(20, 1.0), of)
    parts = [straight((0, 0, 0), (0.4, 0, 0), 8, of), straight((0.4, 0, 0), (1, 0, 0), 12, of)]
    assembly = fg.Assembly(parts, [fg.Rigid(parts[0].right, parts[1].left)])
    alone, joined = (fg.VibrationModes(system, 12) for system in (whole, assembly))
    assert joined.rigid == alone.rigid == 6
    # 0.4 is no binary number: its round-off is seen at 1e-9.
    assert joined.frequencies == pytest.approx(alone.frequencies, rel=1e-8)
    root = np.sqrt(2.1e11 / 7850.0) * radius / 2
    exact = root * 4.730040744863**2
    assert 2 * np.pi * joined.frequencies[6] == pytest.approx(exact, rel=0.3 * (4.73 / 20) ** 2)


# --- closed loops and springs ------------------------------------------------------------------------------
def linkage(spring=5.0, **options):
    """A four-bar with parallel pins, in space: bars are elastic, so its forces are determined."""
    beams = [
        straight((0, 0, 0), (0, 0, 1), 4, loads=fg.Load(force=(0.2, 0.1, 0), at="right")),
        straight((0, 0, 1), (1.5, 0, 1.2), 4),
        straight((1.5, 0, 1.2), (1.5, 0, 0), 4),
    ]
    axis = {"axis": (0, 1, 0)}
    joints = [
        fg.Revolute(fg.ground, beams[0].left, stiffness=spring, rest=0.1, **axis),
        fg.Revolute(beams[0].right, beams[1].left, **axis),
        fg.Revolute(beams[1].right, beams[2].left, **axis),
        fg.Revolute(beams[2].right, fg.ground, **axis),
    ]
    return fg.Assembly(beams, joints, loads=fg.Gravity((0, 0, -0.1)), **options)


def test_closed_loop_with_parallel_pins():
    """Twelve conditions more than a rigid linkage bears: the forces balance on every bar.

    The equations of motion say the same forces of that state, without accelerations.
    """
    assembly = linkage()
    statics = fg.StaticEquilibrium(assembly)
    statics.solve()
    assert not statics.fallbacks
    joints, beams = assembly.joints.joints, assembly.beams
    weights = [2.0 * np.ptp(b.mesh.coordinates.dat.data_ro) * np.array([0, 0, -0.1]) for b in beams]
    for k, weight in enumerate(weights):
        total = statics.force(joints[k]) + statics.force(joints[k + 1], "first") + weight
        load = [0.2, 0.1, 0] if k == 0 else [0, 0, 0]
        assert total == pytest.approx(-np.array(load), abs=1e-9)
    # A pin takes no moment about itself, where it is now, but for the spring.
    then = quaternion.matrix(axes_of(np.array([0, 0, -1.0])))
    pin = quaternion.matrix(node(beams[2], 0.0)[1]) @ then.T @ [0, 1.0, 0]
    assert statics.moment(joints[2]) @ pin == pytest.approx(0, abs=1e-9)
    assert abs(statics.moment(joints[0])[1]) > 1e-3
    # 1e-12 of the size, times the stiffness over a cell.
    for joint in joints:
        assert assembly.force(joint) == pytest.approx(statics.force(joint), abs=1e-8)
        assert assembly.moment(joint) == pytest.approx(statics.moment(joint), abs=1e-8)
    modes = fg.VibrationModes(assembly, 3)
    assert modes.rigid == 0


def test_spring_in_a_hinge():
    """A stiff bar on a spring: k φ = P L cos φ for the load P at its end."""
    stiff = section(1e7, 1e7, 1e6, 1e6)
    bar = straight((0, 0, 0), (1, 0, 0), 2, stiff, loads=fg.Load(force=(0, 0, -4.0), at="right"))
    hinge = fg.Revolute(fg.ground, bar.left, axis=(0, 1, 0), stiffness=3.0)
    statics = fg.StaticEquilibrium(fg.Assembly([bar], [hinge]))
    angles = []
    for load in (0.5, 1.0):
        statics.solve(load)
        x, _ = node(bar, 1.0)
        angles.append(np.arctan2(-x[2], x[0]))
    exact = [brentq(lambda a, P=P: 3 * a - P * np.cos(a), 0, 2) for P in (2.0, 4.0)]
    # The bar gives by P L³/(3 EI).
    assert angles == pytest.approx(exact, abs=3e-6)
    assert statics.moment(hinge)[1] == pytest.approx(-3 * angles[1], abs=1e-5)


# --- with the steppers -----------------------------------------------------------------------------------
@pytest.mark.parametrize("method", [fg.GeneralizedAlpha, fg.EnergyMomentum])
def test_an_equilibrium_stays(method):
    """One step from it leaves it at rest."""
    options = {"strain_measure": "directors"}
    load = fg.Load(force=(0.2, 0.3, -0.5), at="right")
    beams = [
        straight((0, 0, 0), (1, 0, 0), 4, left="clamped", **options),
        straight((1, 0, 0), (1, 1, 0), 4, loads=load, **options),
    ]
    hinge = fg.Revolute(beams[0].right, beams[1].left, axis=(0, 0, 1))
    brace = straight((0, 1, 0), (1, 1, 0), 4, **options)
    joints = [hinge, fg.Rigid(beams[1].right, brace.right), fg.Spherical(fg.ground, brace.left)]
    assembly = fg.Assembly([*beams, brace], joints, loads=fg.Gravity((0, 0, -0.1)))
    statics = fg.StaticEquilibrium(assembly)
    start = assembly.shapes()
    statics.solve()
    rest = assembly.shapes()
    assert max(np.abs(b - a).max() for a, b in zip(start, rest, strict=False)) > 1e-2
    force = statics.force(hinge)
    method(assembly, 0.05).advance(1)
    # Statics ends at 1e-12 of the size, whose forces the step balances.
    assert np.concatenate(assembly.shapes()) == pytest.approx(np.concatenate(rest), abs=1e-9)
    assert np.abs(assembly.v.dat.data_ro).max() < 1e-7
    assert assembly.force(hinge) == pytest.approx(force, abs=1e-7)


# --- what is free -----------------------------------------------------------------------------------
def hinged(kind, **options):
    beams = [
        straight((0, 0, 0), (1, 0, 0), 2, left="clamped"),
        straight((1, 0, 0), (1, 2, 0), 2, loads=fg.Load(force=(0, 0, -1), at="right")),
    ]
    return fg.Assembly(beams, [kind(beams[0].right, beams[1].left, **options)])


def test_free_motions_of_assemblies():
    """In words, against what is known by hand."""
    assert free_motion(hinged(fg.Rigid)) == ""
    for kind, options, ways in (
        (fg.Revolute, {"axis": (1, 0, 0)}, "one way"),
        (fg.Spherical, {}, "3 independent ways"),
        (fg.Prismatic, {"axis": (0, 0, 1)}, "one way"),
    ):
        assert free_motion(hinged(kind, **options)) == (
            f"beams[1] can still move as a rigid body in {ways}, in joints[0]"
        )
    # The spring holds a linkage.
    assert free_motion(linkage()) == ""
    assert free_motion(linkage(0.0)) == (
        "the assembly can still move as rigid bodies in one way, in joints[0], joints[1], joints[2] "
        "and joints[3]"
    )


def test_a_mechanism_is_refused():
    statics = fg.StaticEquilibrium(hinged(fg.Revolute, axis=(1, 0, 0)))
    with pytest.raises(fg.LoadStepFailed, match="body in one way, in joints.0.: hold that too"):
        statics.solve()
    assert statics.load == 0.0


def test_conditions_of_lower_rank():
    """The null space, and the least forces, of conditions that say one thing twice."""
    rng = np.random.default_rng(0)
    C = np.zeros((4, 9))
    C[:2, :4], C[2, :4] = rng.normal(size=(2, 4)), 0.0
    C[2] = C[0] - 2 * C[1]
    C[3, 6:8] = 1.0
    conditions = Conditions(C)
    basis = conditions.basis.toarray()
    assert basis.shape == (9, 6)
    assert basis.T @ basis == pytest.approx(np.eye(6), abs=1e-14)
    assert C @ basis == pytest.approx(0, abs=1e-14)
    force = rng.normal(size=4)
    found = conditions.forces(-C.T @ force)
    assert C.T @ found == pytest.approx(C.T @ force, abs=1e-13)
