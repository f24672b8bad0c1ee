"""Equilibria in compiled code are those through PETSc SNES."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    IntervalMesh,
    SpatialCoordinate,
    as_vector,
    bessel_J,
    cos,
    dot,
    pi,
    sin,
)
from statics.frame_cases import bent_cantilever, lees_frame
from statics.rod_cases import arch, cantilever, section
from verification.bars import GRAVITY, bar
from verification.beams import along, uneven_mesh
from ways import check_way

import fdgeom as fg
from fdgeom.operations import Reason
from fdgeom.statics.compiled import CompiledNewton


class Stiffening(fg.SectionLaw):
    """½ ε·Kε + (ε·ε)²/4."""

    def energy(self, strain, stiffness):
        return 0.5 * dot(strain, stiffness * strain) + 0.25 * dot(strain, strain) ** 2


def loaded():
    """A law of its own, a section that varies, strain at rest, loads that turn with the beam."""
    mesh = uneven_mesh(9)
    (s,) = SpatialCoordinate(mesh)
    stiffness = (1 + 0.5 * s) * Constant(np.diag([1.0, 1.2, 0.8, 1e3, 1e3, 1e3]))
    loads = [
        fg.Load(force=lambda s, t: as_vector([0, s, 0.1]), frame="body"),
        fg.Load(moment=(0.1, 0.0, 0.2), at="right"),
    ]
    return fg.Beam(
        mesh,
        fg.Section(stiffness, np.eye(6)),
        left="clamped",
        law=Stiffening(),
        reference_strain=as_vector([0, 0.2 * s, 0, 0.1, 0, 0]),
        loads=loads,
    )


def turned():
    """Both ends are moved: one to the side, the other round."""
    end = uneven_mesh(9).coordinates.dat.data_ro.max()
    left = fg.GivenPose(
        position=lambda t: as_vector([0.1 * t * end, 0, 0]),
        orientation=lambda t: as_vector([cos(pi * t / 4), 0, 0, sin(pi * t / 4)]),
    )
    right = fg.GivenPose(position=lambda t: as_vector([(1 - 0.3 * t) * end, 0, 0.1 * t]))
    return fg.Beam(uneven_mesh(9), section(1e4, 1e4, 1.0, 2.0), left=left, right=right)


def joined():
    """A loop with a joint in the middle of a beam, and a hinge with a spring."""
    upper, lower = bar((0, 0, 0), (1, 0, 0), 4, left="clamped"), bar((1, 0, 0), (2, 0, 0), 9)
    arm = bar((0.5, 0, 0), (0.5, 1, 0.2), 2)
    tie = bar((0.5, 1, 0.2), (2, 0, 0), 3)
    joints = [
        fg.Revolute(upper.right, lower.left, axis=(0, 1, 0), stiffness=0.3, rest=0.2),
        fg.Rigid(arm.left, upper.at(0.5)),
        fg.Rigid(arm.right, tie.left),
        fg.Rigid(tie.right, lower.right),
    ]
    return fg.Assembly([upper, lower, arm, tie], joints, loads=fg.Gravity((0, 0.01, -0.1)))


CASES = {"loaded": loaded, "turned": turned, "joined": joined}


@pytest.mark.parametrize("kind", CASES)
def test_same_equilibria(kind):
    found, iterations = [], []
    for compiled in (True, False):
        beam = CASES[kind]()
        statics = fg.StaticEquilibrium(beam, compiled=compiled)
        statics.solve(0.5, time=0.5, steps=4)
        # Short enough for Newton's method: how long a step iterates that diverges, and is halved
        # then, depends on the last digits.
        statics.solve(time=1.0, steps=8)
        check_way(statics, compiled)
        beams = getattr(beam, "beams", [beam])
        poses = [
            np.concatenate([along(getattr(b, n)) for b in beams])
            for n in ("position", "orientation")
        ]
        forces = statics.reactions()
        forces = forces[0] if beams[0] is not beam else forces
        stress = statics.stress() if beams[0] is beam else statics.stress()[0]
        found.append([*poses, np.hstack(forces["left"]), along(stress)])
        stats = statics.solver_stats()
        assert stats["solves"] == 12
        iterations.append(stats["newton_iterations"])
    (x, q, f, stress), (y, p, g, other) = found
    # Newton's method ends at 1e-12 of the residual; the stiffest direction is ten thousand times as
    # stiff as the softest.
    np.testing.assert_allclose(x, y, atol=1e-12 * np.abs(y).max())
    np.testing.assert_allclose(q, p, atol=1e-12)
    np.testing.assert_allclose(f, g, atol=1e-9)
    np.testing.assert_allclose(stress, other, atol=1e-9)
    # With turned ends round-off decides about the last iteration of each solve.
    most = 12 if kind == "turned" else 0.1 * iterations[1]
    assert abs(iterations[0] - iterations[1]) <= most


class Hardening(fg.SectionLaw):
    """½ ε·Kε + 25 EA γ₁⁴, with the axial strain γ₁."""

    def energy(self, strain, stiffness):
        return 0.5 * dot(strain, stiffness * strain) + 25 * stiffness[3, 3] * strain[3] ** 4


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("length", [1.0, 1e-9])
def test_bars_in_any_unit(length, compiled):
    """A bar of a hardening material, pulled with 0.3 EA: its strain is a root of a cubic."""
    stiffness = np.diag([*[1e-4 * length**2] * 3, 1.0, 1.0, 1.0])
    pull = fg.Load(force=(0.3, 0, 0), at="right")
    beam = fg.Beam(
        IntervalMesh(8, length), fg.Section(stiffness, np.eye(6)), left="clamped",
        law=Hardening(), loads=pull,
    )  # fmt: skip
    statics = fg.StaticEquilibrium(beam, compiled=compiled)
    statics.solve()
    check_way(statics, compiled)
    (strain,) = (r.real for r in np.roots([100.0, 0.0, 1.0, -0.3]) if abs(r.imag) < 1e-9)
    end = beam.position.dat.data_ro[:, 0].max()
    # Newton's method ends at an update of 1e-12.
    assert end / length - 1 == pytest.approx(strain, rel=1e-11)


@pytest.mark.parametrize("compiled", [True, False])
def test_moved_ends_in_any_unit(compiled):
    """A wire of a centimetre whose end moves, in metres and in micrometres, takes the same iterations."""
    found = []
    for unit in (1.0, 1e6):
        length = 0.01 * unit
        stiffness = np.diag([8e-16 * unit**2] * 3 + [3e-3] * 3)
        end = fg.GivenPose(
            position=lambda t, length=length: as_vector(
                [length * (1 - 0.1 * t), 0 * t, 0.3 * length * t]
            )
        )
        beam = fg.Beam(
            IntervalMesh(8, length), fg.Section(stiffness, np.eye(6)), left="clamped", right=end
        )
        statics = fg.StaticEquilibrium(beam, compiled=compiled)
        statics.solve(time=1.0, steps=10)
        check_way(statics, compiled)
        iterations = statics.solver_stats()["newton_iterations"]
        found.append((beam.position.dat.data_ro / length, iterations))
    (x, iterations), (y, same) = found
    # Newton's method ends at 1e-12; the wire is a million times as stiff along as across.
    np.testing.assert_allclose(x, y, atol=1e-9)
    assert iterations == same


@pytest.mark.parametrize("compiled", [True, False])
def test_frames_in_any_unit(compiled):
    """A path of a frame is the same in metres and in nanometres."""
    found = []
    for length in (1.0, 1e-9):
        frame = lees_frame(5, length=length)
        statics = fg.StaticEquilibrium(frame, compiled=compiled)
        loads = [statics.follow(0.2) for _ in range(6)]
        check_way(statics, compiled)
        shape = np.concatenate(frame.shapes()) / length
        found.append((loads, shape, statics.solver_stats()["newton_iterations"]))
    (loads, x, iterations), (others, y, same) = found
    np.testing.assert_allclose(loads, others, rtol=1e-9)
    np.testing.assert_allclose(x, y, atol=1e-9 * np.abs(x).max())
    # Multipliers of rotations have a unit, so that the last iteration of some solves differs.
    assert abs(iterations - same) <= 0.1 * iterations


def test_same_paths_over_limits_and_bifurcations():
    """The deep arch: a limit, and before it the load at which it leaves its plane."""
    found, loads, iterations = [], [], []
    for compiled in (True, False):
        beam = arch(12)
        statics = fg.StaticEquilibrium(beam, compiled=compiled)
        loads.append([statics.follow(0.1) for _ in range(14)])
        check_way(statics, compiled)
        found.append((along(beam.position), statics.points))
        iterations.append(statics.solver_stats()["newton_iterations"])
    (x, points), (y, others) = found
    assert [p.kind for p in points] == [p.kind for p in others]
    assert {"limit", "bifurcation"} <= {p.kind for p in points}
    assert [p.multiplicity for p in points] == [p.multiplicity for p in others]
    # A last residual of 1e-12 of the first one may lie on either side of that by round-off.
    assert abs(iterations[0] - iterations[1]) <= 1
    # A point is found to 1e-6 of a step; of two that are so close the load differs by much less.
    for one, other in zip(points, others, strict=True):
        assert one.load == pytest.approx(other.load, rel=1e-7)
        for mode, same in zip(one.modes, other.modes, strict=True):
            size = np.abs(same.dat.data_ro).max()
            np.testing.assert_allclose(mode.dat.data_ro, same.dat.data_ro, atol=1e-5 * size)
    # Newton's method ends at 1e-12 of the first residual, which is that of an axial force: its
    # stiffness is a hundred times that of the bending.
    np.testing.assert_allclose(*loads, rtol=1e-9)
    np.testing.assert_allclose(x, y, atol=1e-9 * np.abs(y).max())


def test_same_branch_of_a_frame():
    """Joints: a right-angled frame leaves its plane, to the side of its mode, at the same load."""
    found = []
    for compiled in (True, False):
        assembly = bent_cantilever(5, (1.0, 0, 0))
        statics = fg.StaticEquilibrium(assembly, compiled=compiled)
        statics.follow(1.0, load_step=2.0)
        (point,) = statics.points
        assert (point.kind, point.multiplicity) == ("bifurcation", 1)
        statics.switch(0.02)
        statics.follow(0.05)
        check_way(statics, compiled)
        x = np.concatenate([along(beam.position) for beam in assembly.beams])
        found.append((point.load, x, statics.load))
    (critical, x, load), (other, y, same) = found
    assert critical == pytest.approx(other, rel=1e-7)
    # The strip is 2500 times as stiff in its plane, and stiffer still along itself: the branch is
    # that of the first guess at the point, which is known to 1e-6 of a step.
    assert load == pytest.approx(same, rel=1e-6)
    assert np.abs(y[:, 2]).max() > 1.0
    np.testing.assert_allclose(x, y, atol=1e-6 * np.abs(y).max())


def test_a_path_says_when_it_fails():
    """Through a load that is no number, and a branch that does not exist: all stays as it was."""
    force = Constant((0.0, 0.0, -5.0))
    beam = cantilever(10, 5.0)
    beam = fg.Beam(beam.mesh, section(1e9, 1e9, 1.0, 1.0), left="clamped",
                   loads=fg.Load(force=force, at="right"))  # fmt: skip
    statics = fg.StaticEquilibrium(beam, compiled=True)
    statics.follow(0.2)
    before, load = along(beam.position), statics.load
    force.assign((0.0, np.nan, 0.0))
    with pytest.raises(fg.LoadStepFailed):
        statics.follow(0.1)
    np.testing.assert_array_equal(along(beam.position), before)
    assert statics.load == load


def test_what_goes_through_petsc_says_why():
    pinned = fg.Beam(uneven_mesh(9), section(1e4, 1e4, 1.0, 2.0), left="pinned", loads=GRAVITY)
    statics = fg.StaticEquilibrium(pinned)
    with pytest.raises(
        fg.LoadStepFailed, match="can still move as a rigid body in 3 independent ways"
    ):
        statics.solve(halvings=0)
    assert "can still move as a rigid body in 3 independent ways" in statics.why_not_compiled
    wavy = fg.Load(force=lambda s, t: as_vector([0, 0, bessel_J(0, s)]))
    beam = fg.Beam(uneven_mesh(9), section(1e4, 1e4, 1.0, 2.0), left="clamped", loads=wavy)
    with pytest.raises(ValueError, match=r"compiled: this equilibrium cannot be compiled: .*chain"):
        fg.StaticEquilibrium(beam, compiled=True).solve()
    option = fg.StaticEquilibrium(cantilever(10, 1.0), solver_parameters={"fdgeom_compiled": 0})
    assert option.why_not_compiled == "compiled=False asks for PETSc SNES"


def test_a_step_that_fails_is_halved():
    """And a load that is no number leaves the beam as it was, as it is told through PETSc."""
    force = Constant((0.0, 0.0, -5.0))
    beam = cantilever(10, 5.0)
    beam = fg.Beam(beam.mesh, section(1e9, 1e9, 1.0, 1.0), left="clamped",
                   loads=fg.Load(force=force, at="right"))  # fmt: skip
    statics = fg.StaticEquilibrium(beam, compiled=True)
    statics.solve()
    before = along(beam.position)
    force.assign((0.0, np.nan, 0.0))
    with pytest.raises(fg.LoadStepFailed, match="values that are not finite, and compiled=True"):
        statics.solve(0.5)
    np.testing.assert_array_equal(along(beam.position), before)
    assert statics.load == 1.0


def unfinished(*arguments):
    """An iteration that does nothing, and says so."""
    return Reason.SINGULAR


def test_equilibria_that_fall_back_are_counted_and_said(monkeypatch):
    monkeypatch.setattr(CompiledNewton, "_iterate", unfinished)
    one, other = cantilever(10, 5.0), cantilever(10, 5.0)
    statics = fg.StaticEquilibrium(one)
    with pytest.warns(
        UserWarning, match="an equilibrium went through PETSc SNES.*singular"
    ) as said:
        statics.solve(steps=2)
    assert len(said) == 1
    assert statics.is_compiled
    assert statics.fallbacks == {"a singular Jacobian": 2}
    assert statics.solver_stats()["steps_through_petsc"] == 2
    plain = fg.StaticEquilibrium(other, compiled=False)
    plain.solve(steps=2)
    check_way(plain, False)
    np.testing.assert_array_equal(along(one.position), along(other.position))


def test_equilibria_that_must_be_compiled_do_not_fall_back(monkeypatch):
    beam = cantilever(10, 5.0)
    statics, before = fg.StaticEquilibrium(beam, compiled=True), along(beam.position)
    with monkeypatch.context() as changed:
        changed.setattr(CompiledNewton, "_iterate", unfinished)
        with pytest.raises(
            fg.LoadStepFailed, match="a singular Jacobian, and compiled=True excludes"
        ):
            statics.solve()
    np.testing.assert_array_equal(along(beam.position), before)
    assert statics.load == 0.0
    statics.solve()
    check_way(statics)


def test_a_path_that_falls_back_is_counted(monkeypatch):
    """Both the direction along the path and the iteration with its condition."""
    monkeypatch.setattr(CompiledNewton, "_iterate_along", unfinished)
    statics = fg.StaticEquilibrium(cantilever(10, 5.0))
    with pytest.warns(UserWarning, match="an equilibrium went through PETSc SNES"):
        statics.follow(0.1)
    assert set(statics.fallbacks) == {"a singular Jacobian"}
    monkeypatch.setattr(CompiledNewton, "direction", lambda *arguments: None)
    statics.follow(0.1)
    assert set(statics.fallbacks) == {"a singular Jacobian", "a singular Jacobian on the path"}
