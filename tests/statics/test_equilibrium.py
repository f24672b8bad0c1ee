"""Static equilibrium against published and exact solutions."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    as_vector,
    cos,
    pi,
    sin,
)
from petsc4py import PETSc
from scipy.integrate import quad, solve_ivp
from scipy.linalg import expm
from scipy.optimize import brentq
from statics.rod_cases import arch, bend, cantilever, section, strip, tip
from verification.beams import INERTIA, SOFT, STIFFNESS, along, uneven_mesh
from verification.numpy_beam import hat
from verification.numpy_cells import Cells, frames

import fdgeom as fg

# Cantilever of the slender limit under a dead force PL²/EI = λ: u_x, u_y (over L) and angle of the tip.
ELASTICA = {
    1: (0.056433, 0.301721, 0.461352),
    2: (0.160642, 0.493457, 0.781750),
    5: (0.387628, 0.713792, 1.215368),
    10: (0.554996, 0.810609, 1.430286),
}
# A shooting solution of the rod equations to 1e-10.
BEND = np.array([-23.560653, -13.604671, 53.475541])


def solved(beam, **options):
    statics = fg.StaticEquilibrium(beam)
    statics.solve(**options)
    return statics


def shape_of_tip(beam):
    x, q = tip(beam)
    return np.array([1 - x[0], -x[2], 2 * np.arctan2(q[2], q[0])])


@pytest.mark.parametrize("load", ELASTICA)
def test_elastica(load, recorded):
    errors = []
    for cells in (8, 16, 32):
        beam = cantilever(cells, load)
        solved(beam, steps=2 if load == 10 else 1)
        errors.append(shape_of_tip(beam) - ELASTICA[load])
    errors = np.array(errors)
    # Second order in the mesh: a sixteenth of the first error is left, then the digits printed.
    assert np.abs(errors[-1]).max() < 4e-4
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.08)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.04)
    extrapolated = errors[2] + (errors[2] - errors[1]) / 3
    assert np.abs(extrapolated).max() < 1e-5
    recorded.values(
        f"Elastica: a slender cantilever under a dead force of {load} EI/L²",
        "deflection of the tip over L",
        reference=ELASTICA[load][1],
        source="elliptic integrals, six digits",
        meshes=(8, 16, 32),
        values=errors[:, 1] + ELASTICA[load][1],
    )


@pytest.mark.parametrize("measure", ["simo-reissner", "se3"])
def test_roll_up(measure):
    """A full circle in one load step of three iterations."""
    beam = strip(16, measure)
    statics = solved(beam)
    # The circle is exact up to the series of the logarithm, 2e-13 at 22.5 degrees, and round-off.
    assert np.abs(tip(beam)[0]).max() < 1e-9
    assert statics.solver_stats()["newton_iterations"] <= 3
    moment = 2 * np.pi * 86.9e3 / 10
    stress = statics.stress().dat.data_ro
    assert stress == pytest.approx(np.tile([0, -moment, 0, 0, 0, 0], (16, 1)), abs=1e-9 * moment)
    reactions = statics.reactions()
    assert reactions["left"][0] == pytest.approx([0, moment, 0], abs=1e-9 * moment)
    assert reactions["right"][0] == pytest.approx([0, 0, 0], abs=1e-9 * moment)


def bend_by_energy(cells, measure):
    """Displacement of the tip where the cells' energy is stationary, in NumPy: ``numpy_cells``."""
    angle = np.linspace(0, np.pi / 4, cells + 1)
    x = 100 * np.stack([np.sin(angle), 1 - np.cos(angle), 0 * angle], axis=1)
    c, s, z = np.cos(angle), np.sin(angle), 0 * angle
    R = np.moveaxis(np.array([[c, -s, z], [s, c, z], [z, z, z + 1]]), 2, 0)
    stiffness = np.diag([8.3333e5] * 3 + [1e7] + [5e6 * 5 / 6] * 2)
    forces = np.zeros((cells + 1, 3))
    forces[-1, 2] = 600
    rod = Cells(
        frames(x, R),
        [(k, k + 1) for k in range(cells)],
        [100 * np.pi / 4 / cells] * cells,
        stiffness,
        measure,
        held=[0],
        forces=forces,
    )
    return rod.solve()[-1, :3, 3] - x[-1]


@pytest.mark.parametrize("measure", ["simo-reissner", "se3", "directors"])
def test_bend(measure, recorded):
    errors, depths = [], []
    for cells in (8, 16, 32):
        beam = bend(cells, measure)
        start = tip(beam)[0]
        statics = solved(beam)
        errors.append(np.linalg.norm(tip(beam)[0] - start - BEND))
        if cells < 32:
            # Energies to round-off, equilibria to the residual of the last iteration over 600.
            expected = bend_by_energy(cells, measure)
            assert tip(beam)[0] - start == pytest.approx(expected, abs=1e-7)
        depths.append((tip(beam)[0] - start)[2])
        force = statics.reactions()["left"][1]
        # The residual left by the last iteration.
        assert force == pytest.approx([0, 0, -600], abs=1e-6)
        # In one load step, none of them halved.
        assert statics.solver_stats()["solves"] == 1
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.05)
    recorded.values(
        f"Bathe and Bolourchi's 45° bend, strains {measure}",
        "displacement of the tip along the force of 600",
        reference=BEND[2],
        source="shooting, to 1e-10",
        meshes=(8, 16, 32),
        values=depths,
    )
    if measure == "simo-reissner":
        assert errors[1] <= 0.04


def plane_cantilever(length, EA, GA, EI, load):
    """Tip (x, z, angle) of a cantilever under a dead force downwards, by shooting to 1e-12."""

    def slope(s, y):
        (_x, _z, angle, moment) = y
        along_beam = np.array([np.cos(angle), -np.sin(angle)])
        across = np.array([np.sin(angle), np.cos(angle)])
        force = np.array([0.0, -load])
        tangent = (1 + force @ along_beam / EA) * along_beam + force @ across / GA * across
        # Positive angles turn the beam downwards.
        return [*tangent, moment / EI, tangent[0] * force[1] - tangent[1] * force[0]]

    def end(moment):
        run = solve_ivp(slope, (0, length), [0, 0, 0, moment], "DOP853", rtol=1e-12, atol=1e-14)
        return run.y[:, -1]

    root = brentq(lambda m: end(m)[3], 0, 2 * load * length, xtol=1e-12, rtol=1e-13)
    return end(root)[:3]


def test_geradins_cantilever(recorded):
    """Thick: shear and stretch matter."""
    exact = plane_cantilever(5.0, 4.8e8, 3.231e8, 9.346e6, 6e5)
    errors = []
    for cells in (16, 32, 64):
        beam = fg.Beam(
            IntervalMesh(cells, 5.0),
            section(4.8e8, 3.231e8, 1e6, 9.346e6),
            left="clamped",
            loads=fg.Load(force=(0, 0, -6e5), at="right"),
        )
        solved(beam)
        x, q = tip(beam)
        found = np.array([x[0], x[2], 2 * np.arctan2(q[2], q[0])])
        errors.append(found - exact)
        if cells == 32:
            # The digits that Géradin and Cardona print hold at 32 cells alone: the deflection converges
            # to 2.1597, which would print as -2.160.
            printed = [round(number, 3) for number in (found[1], 5 - found[0], found[2])]
            assert printed == [-2.159, 0.596, 0.672]
    recorded.values(
        "Géradin and Cardona's thick cantilever",
        "height of the tip",
        reference=exact[1],
        source="shooting, to 1e-12 (printed by them: -2.159, at 32 cells)",
        meshes=(16, 32, 64),
        values=np.array(errors)[:, 1] + exact[1],
    )
    assert exact[1] == pytest.approx(-2.1597, abs=5e-5)
    assert np.abs(errors[-1]).max() < 1e-4
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.02)


def test_no_locking():
    """The bending does not depend on stiffnesses that hardly move."""
    tips = []
    for EA in (1e6, 1e8, 1e10):
        beam = cantilever(16, 2.0, EA=EA)
        solved(beam)
        tips.append(shape_of_tip(beam))
    # The shear of EA = 1e6 is worth 2e-6.
    assert tips[0] == pytest.approx(tips[2], abs=1e-5)
    assert tips[1] == pytest.approx(tips[2], abs=1e-7)


def test_order_of_loads_and_steps_do_not_matter():
    """One step or five, there and back."""
    beam = cantilever(10, 5.0)
    statics = solved(beam)
    once = along(beam.position)
    statics.solve(0.0, steps=2)
    assert statics.load == 0.0
    # Left by the stopping criterion, 1e-12 of the size, and the next quadratic step.
    assert np.abs(along(beam.position)[:, 2]).max() < 1e-10
    statics.solve(1.0, steps=5)
    assert along(beam.position) == pytest.approx(once, abs=1e-10)


def test_steps_that_fail_are_halved():
    """Back from a strongly bent shape: too far for one step."""
    # The fifth update fails, before round-off decides: under a load of 5 Newton's iteration is chaotic.
    beam = cantilever(20, 4.0)
    statics = solved(beam)
    bent = along(beam.position)
    with pytest.raises(fg.LoadStepFailed):
        statics.solve(0.0, halvings=0)
    assert statics.load == 1.0
    assert np.array_equal(along(beam.position), bent)
    statics.solve(0.0)
    assert statics.load == 0.0
    assert np.abs(along(beam.position)[:, 2]).max() < 1e-10


def test_limit_point_of_an_arch(recorded):
    """The arc length goes over the limit load, 897 of the inextensible arch, and down again."""
    limits = []
    for cells in (20, 40, 80):
        statics = fg.StaticEquilibrium(arch(cells))
        loads = [statics.follow(0.05) for _ in range(35)]
        k = int(np.argmax(loads))
        assert 15 < k < 30
        assert loads[-1] < 0.7 * loads[k]
        # A parabola through the three highest.
        a, b, c = np.polyfit([-1, 0, 1], loads[k - 1 : k + 2], 2)
        limits.append(c - b**2 / (4 * a))
        # What the path says of itself: where the parabola has it, to its third order. Before that
        # the arch could leave its plane.
        side = statics.points[0]
        (limit,) = (p for p in statics.points if p.kind == "limit")
        assert limit.multiplicity == 1
        assert limit.load == pytest.approx(limits[-1], rel=1e-3)
        assert limit.load >= loads[k] * (1 - 1e-9)
        assert side.kind == "bifurcation"
        mode = along(side.modes[0])
        assert np.abs(mode[:, [1, 3, 5]]).max() < 1e-6 * np.abs(mode[:, [0, 2, 4]]).max()
    assert (limits[0] - limits[1]) / (limits[1] - limits[2]) == pytest.approx(4, rel=0.1)
    extrapolated = limits[2] + (limits[2] - limits[1]) / 3
    recorded.values(
        "Deep circular arch, clamped and hinged",
        "limit load over EI/R²",
        reference=897,
        source="printed, of the inextensible arch, three digits",
        meshes=(20, 40, 80),
        values=limits,
    )
    # Printed to three digits; EA = 100 EI/R² costs nothing there.
    assert extrapolated == pytest.approx(897, abs=1.5)


def test_path_turns_round():
    beam = cantilever(10, 5.0)
    statics = fg.StaticEquilibrium(beam)
    # The tip moves by less than the length: the mean over the beam of what it turns and moves.
    assert 0 < statics.follow(0.2) < statics.follow(0.2)
    there = along(beam.position)
    load = statics.load
    statics.follow(0.1, steps=2)
    assert statics.load > load
    statics.solve(load)
    assert along(beam.position) == pytest.approx(there, abs=1e-10)
    statics.solve(0.0)
    assert statics.follow(-0.1) < 0


def test_arc_length_is_that_of_the_step():
    """A tiny step moves by that much in the norm of the documentation."""
    beam = cantilever(20, 1.0)
    statics = fg.StaticEquilibrium(beam)
    statics.follow(1e-4)
    x, q = along(beam.position), along(beam.orientation)
    turn, shift = 2 * q[:, 1:], x - np.linspace(0, 1, 21)[:, None] * [1, 0, 0]
    weights = np.full(21, 1 / 20)
    weights[[0, -1]] /= 2
    length = np.sqrt(weights @ ((turn**2).sum(axis=1) + (shift**2).sum(axis=1)))
    # Of second order in the step.
    assert length == pytest.approx(1e-4, rel=1e-6)


def test_follower_moment_and_force():
    """A follower force at the tip, against the rod equations: solved by quadrature from the tip.

    In the frame of the tip the load is dead: an elastica clamped at the tip. With the angle φ from
    the tip, EI φ'' = P cos φ seen along the tip's normal: the angle of the root follows.
    """
    force, cells = 3.0, 64
    beam = fg.Beam(
        IntervalMesh(cells, 1.0),
        section(1e9, 1e9, 1.0, 1.0),
        left="clamped",
        loads=fg.Load(force=(0, 0, -force), at="right", frame="body"),
    )
    statics = solved(beam)
    angle = shape_of_tip(beam)[2]

    # φ'² = 2P sin φ from the tip (no moment there), φ the angle to the tip: length up to φ is 1.
    def length(end):
        # φ = u² takes the root's singularity away.
        def f(u):
            return 2 * u / np.sqrt(2 * force * np.sin(u * u)) if u else 2 / np.sqrt(2 * force)

        return quad(f, 0, np.sqrt(end), epsabs=1e-12)[0]

    low, high = 0.1, 3.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if length(middle) < 1 else (low, middle)
    # Second order in the mesh.
    assert angle == pytest.approx(low, abs=3e-4)
    q = tip(beam)[1]
    assert 2 * np.arctan2(q[2], q[0]) == pytest.approx(angle)
    # The reaction is minus the load turned with the tip.
    expected = force * np.array([np.sin(angle), 0, np.cos(angle)])
    # Left by the last iteration, with an axial stiffness of 1e9.
    assert statics.reactions()["left"][1] == pytest.approx(expected, abs=1e-6)

    # A follower moment about the transverse axis of a plane is the dead one.
    moment = (0, -2 * np.pi * 86.9e3 / 10, 0)
    follower = strip(8, loads=fg.Load(moment=moment, at="right", frame="body"))
    solved(follower)
    dead = strip(8)
    solved(dead)
    assert along(follower.position) == pytest.approx(along(dead.position), abs=1e-9)


def test_given_pose_bends_to_a_half_circle():
    """An end turned by half a turn and set on the circle: constant curvature, no force."""
    L, cells = 2.0, 12

    def position(t):
        return as_vector([L * sin(pi * t) / (pi * t), 0, L * (1 - cos(pi * t)) / (pi * t)])

    def orientation(t):
        return as_vector([cos(pi * t / 2), 0, -sin(pi * t / 2), 0])

    beam = fg.Beam(
        IntervalMesh(cells, L),
        section(1e4, 1e4, 1.0, 2.0),
        left="clamped",
        right=fg.GivenPose(position=position, orientation=orientation),
        strain_measure="se3",
    )
    beam.time.assign(1e-3)
    statics = fg.StaticEquilibrium(beam)
    statics.solve(time=1.0, steps=4)
    moment = 2.0 * np.pi / L
    # The SE(3) element has this exactly; round-off of EA.
    stress = statics.stress().dat.data_ro
    assert stress == pytest.approx(np.tile([0, -moment, 0, 0, 0, 0], (cells, 1)), abs=1e-8)
    reactions = statics.reactions()
    assert reactions["right"][0] == pytest.approx([0, -moment, 0], abs=1e-8)
    assert reactions["left"][0] == pytest.approx([0, moment, 0], abs=1e-8)


@pytest.mark.parametrize("turns", [0.75, 2.0, 4.0])
def test_a_given_pose_turns_the_way_it_is_given(turns):
    """Torsion by most of a turn or some in one load step: the moment is GJ times the whole angle."""

    def orientation(t):
        return as_vector([cos(turns * pi * t), sin(turns * pi * t), 0, 0])

    beam = fg.Beam(
        IntervalMesh(40, 1.0),
        section(1e7, 1e7, 2.0, 1.0),
        left="clamped",
        right=fg.GivenPose(orientation=orientation),
    )
    statics = fg.StaticEquilibrium(beam)
    statics.solve(time=1.0)
    assert statics.reactions()["right"][0][0] == pytest.approx(4 * np.pi * turns, rel=1e-9)


def test_a_given_pose_that_changes_at_one_time():
    """A Constant turns it, in parts that have one way to go; solve() and follow() refuse others."""
    c = Constant(0.0)
    beam = fg.Beam(
        IntervalMesh(20, 1.0),
        section(1e7, 1e7, 2.0, 1.0),
        left="clamped",
        right=fg.GivenPose(orientation=lambda t: as_vector([cos(c / 2), sin(c / 2), 0, 0])),
        loads=fg.Load(force=(1.0, 0, 0), at="right"),
    )
    statics = fg.StaticEquilibrium(beam)

    def moment():
        statics.solve()
        return statics.reactions()["right"][0][0]

    # The same orientation as the quaternion of the other sign.
    c.assign(2 * np.pi)
    assert moment() == pytest.approx(0, abs=1e-9)
    for turn in np.array([1.0, 1.5, 1.8, 2.0]) * np.pi:
        c.assign(2 * np.pi + turn)
        for call in (statics.solve, lambda: statics.follow(0.1)):
            with pytest.raises(fg.LoadStepFailed, match="of a GivenPose turns by more than 90 deg"):
                call()
    for turn in np.arange(1, 5) * 0.4 * np.pi:
        c.assign(2 * np.pi + turn)
        assert moment() == pytest.approx(2 * turn, rel=1e-9)


def test_a_given_pose_that_is_reached_already():
    """A bar twisted by 0.9 of a turn by hand, as its end is held at the end of the load step."""
    angle = 1.8 * np.pi
    beam = fg.Beam(
        IntervalMesh(20, 1.0),
        section(1e7, 1e7, 2.0, 1.0),
        left="clamped",
        right=fg.GivenPose(
            orientation=lambda t: as_vector([cos(angle / 2 * t), sin(angle / 2 * t), 0, 0])
        ),
        strain_measure="se3",
    )
    beam.strain.dat.data_wo[:, 0] = angle
    s = np.linspace(0, 1, 21)[:, None]
    zero = 0 * s
    half = angle / 2 * s
    beam.orientation.dat.data_wo[:] = np.hstack([np.cos(half), np.sin(half), zero, zero])
    statics = fg.StaticEquilibrium(beam)
    statics.solve(time=1.0)
    assert statics.reactions()["right"][0][0] == pytest.approx(2 * angle, rel=1e-9)


def test_sliding_and_pinned_ends():
    """A simply supported beam under its weight: the end slides, reactions carry half of it."""
    weight, cells = 3.0, 20
    stiffness = section(1e8, 1e8, 1.0, 1.0).stiffness
    beam = fg.Beam(
        IntervalMesh(cells, 1.0),
        fg.Section(stiffness, np.diag([1e-3] * 3 + [1.0] * 3)),
        left=fg.Sliding("y", turning=False),
        loads=[fg.Gravity((0, 0, -weight)), fg.Load(force=(0, 0.1, 0), at="left")],
    )
    # It would fly away along y.
    with pytest.raises(fg.LoadStepFailed):
        fg.StaticEquilibrium(beam).solve()
    beam = fg.Beam(
        IntervalMesh(cells, 1.0),
        fg.Section(stiffness, np.diag([1e-3] * 3 + [1.0] * 3)),
        left="clamped",
        right=fg.Sliding("x", turning=False),
        loads=fg.Gravity(Constant([0.0, 0.0, -weight])),
    )
    statics = solved(beam)
    reactions = statics.reactions()
    # Left by the last iteration, with an axial stiffness of 1e8.
    assert reactions["left"][1] == pytest.approx([0, 0, weight / 2], abs=1e-6)
    assert reactions["right"][1] == pytest.approx([0, 0, weight / 2], abs=1e-6)
    # It comes nearer by half the integral of the slope squared, and stays on the line.
    x, q = tip(beam)
    assert x[0] < 1 - 1e-6
    assert x[1:] == pytest.approx([0, 0], abs=1e-15)
    assert q == pytest.approx([1, 0, 0, 0], abs=1e-15)
    # wL⁴/384EI, small enough to be linear to 1e-3; second order in the mesh.
    middle = along(beam.position)[cells // 2, 2]
    assert middle == pytest.approx(-weight / 384, rel=0.02)
    turning = fg.Beam(
        IntervalMesh(cells, 1.0),
        fg.Section(stiffness, np.diag([1e-3] * 3 + [1.0] * 3)),
        left="clamped",
        right=fg.Sliding("x"),
        loads=fg.Gravity((0, 0, -weight)),
    )
    # Propped cantilever: 3/8 of the weight at the prop.
    force = solved(turning).reactions()["right"][1]
    assert force == pytest.approx([0, 0, 3 / 8 * weight], rel=0.01, abs=1e-6)


def test_full_section_that_varies():
    """A coupled, tapered section under a small load: the linear solution by quadrature, in NumPy."""
    mesh = uneven_mesh(40)
    (s,) = SpatialCoordinate(mesh)
    load = 1e-7 * np.array([1.0, -2.0, 3.0])
    beam = fg.Beam(
        mesh,
        fg.Section((2 - s) * Constant(STIFFNESS), INERTIA),
        left="clamped",
        loads=fg.Load(force=load, at="right"),
    )
    solved(beam)
    # Small strains: ε = C⁻¹ (moment, force), then rotation and displacement by integration.
    compliance = np.linalg.inv(STIFFNESS)

    def strain(s):
        moment = np.cross([1.5 - s, 0, 0], load)
        return compliance @ np.concatenate([moment, load]) / (2 - s)

    shift = np.array(
        [
            # A curvature at s turns the rest of the beam.
            quad(
                lambda s, k=k: (strain(s)[3:] + np.cross(strain(s)[:3], [1.5 - s, 0, 0]))[k], 0, 1.5
            )[0]
            for k in range(3)
        ]
    )
    # Second order in the mesh.
    assert tip(beam)[0] - [1.5, 0, 0] == pytest.approx(shift, rel=3e-3)


def test_spring_back_to_a_helix():
    """Curved and twisted at rest: the equilibrium without loads is exp(s (γ+e)).

    `reconstruct` starts near it, by Cayley maps instead of exponentials.
    """
    rest = np.array([0.4, -1.2, 0.7, 0.0, 0.05, -0.1])
    beam = fg.Beam(
        uneven_mesh(8), SOFT, left="clamped", reference_strain=rest, strain_measure="se3"
    )
    beam.strain.assign(beam.reference_strain)
    beam.reconstruct()
    exact = expm(1.5 * hat(rest + np.eye(6)[3]))[:3, 3]
    assert np.abs(tip(beam)[0] - exact).max() > 1e-3
    statics = solved(beam)
    # The logarithm's series ends with 1e-11 for cells that turn by 0.4; round-off.
    assert np.abs(statics.stress().dat.data_ro).max() < 1e-10
    assert tip(beam)[0] == pytest.approx(exact, abs=1e-9)


def test_failure_keeps_the_state():
    beam = cantilever(8, 1.0)
    statics = solved(beam)
    before = along(beam.position), along(beam.orientation)
    strict = fg.StaticEquilibrium(beam, solver_parameters={"snes_max_it": 1})
    strict.solve(0.9999999999999)
    with pytest.raises(
        fg.LoadStepFailed, match=r"^load step 1 from the load factor 1 failed: SNES s"
    ):
        strict.solve(8.0)
    assert strict.load == pytest.approx(1.0)
    assert along(beam.position) == pytest.approx(before[0], abs=1e-12)
    nan = Constant(1.0)
    beam = cantilever(8, loads=fg.Load(force=as_vector([0, 0, 1 / nan]), at="right"))
    statics = solved(beam)
    nan.assign(0.0)
    before = along(beam.position), along(beam.orientation)
    for fail in (lambda: statics.solve(1.5, steps=2), lambda: statics.follow(0.1)):
        with pytest.raises(fg.StepFailed) as caught:
            fail()
        assert (caught.value.step, caught.value.load) == (0, 1.0)
        assert statics.load == 1.0
        assert np.array_equal(along(beam.position), before[0])
        assert np.array_equal(along(beam.orientation), before[1])


@pytest.mark.parametrize("compiled", [True, False])
def test_an_interrupted_step_keeps_the_state(compiled, monkeypatch):
    beam = cantilever(8, 1.0)
    statics = fg.StaticEquilibrium(beam, compiled=compiled)
    statics.solve(0.5)
    before = along(beam.position)

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(statics._problem, "check_turned", interrupt)
    with pytest.raises(KeyboardInterrupt):
        statics.solve(8.0, time=1.0)
    assert (statics.load, float(beam.time)) == (0.5, 0.0)
    assert np.array_equal(along(beam.position), before)


@pytest.mark.parametrize("name", ["residual", "tangent"])
def test_solves_after_an_interrupted_one(name, monkeypatch):
    """An exception leaves vectors of PETSc locked: the next solve takes other ones."""
    beam = cantilever(8, 1.0, EA=1e3)
    statics = fg.StaticEquilibrium(beam, compiled=False)
    for go in (lambda: statics.solve(0.5), lambda: statics.follow(0.01)):
        go()
        before, calls, load = along(beam.position), [], statics.load
        with monkeypatch.context() as changed:
            usual = getattr(statics._problem, name)

            def interrupted(*arguments, usual=usual, calls=calls):
                calls.append(arguments)
                if len(calls) == 3:
                    raise KeyboardInterrupt
                return usual(*arguments)

            changed.setattr(statics._problem, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                statics.solve(2.0) if load == 0.5 else go()
        assert statics.load == load
        assert np.array_equal(along(beam.position), before)
        go()


def test_options():
    beam = cantilever(8, 1.0)
    monitored = fg.StaticEquilibrium(
        beam, solver_parameters={"ksp_type": "gmres", "pc_type": "ilu", "ksp_rtol": 1e-10}
    )
    monitored.solve()
    stats = monitored.solver_stats()
    assert stats["solves"] == 1
    assert stats["krylov_iterations"] >= stats["newton_iterations"] > 1
    # The command line wins over the dict.
    PETSc.Options()["bent_snes_max_it"] = 1
    strict = fg.StaticEquilibrium(
        cantilever(8, 1.0), options_prefix="bent", solver_parameters={"snes_max_it": 99}
    )
    try:
        with pytest.raises(fg.LoadStepFailed, match="DIVERGED_MAX_IT after 1 iterations"):
            strict.solve(halvings=0)
    finally:
        PETSc.Options().delValue("bent_snes_max_it")
    with pytest.raises(ValueError, match=r"PETSc does not know the option 'snes_rtoll'"):
        fg.StaticEquilibrium(beam, solver_parameters={"snes_rtoll": 1e-3})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fg.StaticEquilibrium("beam"), TypeError, "beam must be a fdgeom.Beam, not str"),
        (
            lambda: fg.StaticEquilibrium(fg.Beam(uneven_mesh(3), SOFT)),
            ValueError,
            "left, right: nothing holds the beam",
        ),
        (
            lambda: fg.StaticEquilibrium(
                fg.Beam(uneven_mesh(3), SOFT, left=lambda t: as_vector([0, 0, t, 0, 0, 0]))
            ),
            ValueError,
            "left: methods in configuration form need the pose of this end",
        ),
        (
            lambda: fg.StaticEquilibrium(fg.Beam(uneven_mesh(3), SOFT, degree=2, left="clamped")),
            ValueError,
            "degree: the conf",
        ),
        (
            lambda: fg.StaticEquilibrium(cantilever(4, 1), options_prefix=3),
            TypeError,
            "options_pre",
        ),
        (
            lambda: fg.StaticEquilibrium(cantilever(4, 1)).solve(np.inf),
            ValueError,
            "load must be a finite number",
        ),
        (
            lambda: fg.StaticEquilibrium(cantilever(4, 1)).solve(1.0, steps=0),
            ValueError,
            "steps must be a positive whole number",
        ),
        (
            lambda: fg.StaticEquilibrium(cantilever(4, 1)).solve(1.0, halvings=-1),
            ValueError,
            "halvings must be a whole number that is not negative",
        ),
        (
            lambda: fg.StaticEquilibrium(cantilever(4, 1)).follow(0.0),
            ValueError,
            "step must not be zero",
        ),
        (
            lambda: fg.StaticEquilibrium(fg.Beam(uneven_mesh(3), SOFT, left="clamped")).follow(1.0),
            ValueError,
            "loads: a beam without loads has no path to follow; give it loads",
        ),
    ],
)
def test_bad_calls(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_load_of_place_on_an_expression():
    """A hat-shaped line load by an expression of the mesh coordinate that holds its own Constant."""
    mesh = IntervalMesh(20, 1.0)
    (s,) = SpatialCoordinate(mesh)
    size = Constant(2.0)
    beam = fg.Beam(
        mesh,
        section(1e8, 1e8, 1.0, 1.0),
        left="clamped",
        loads=fg.Load(force=as_vector([0, 0, -size * s])),
    )
    statics = solved(beam)
    nodes = Function(FunctionSpace(mesh, "CG", 1)).interpolate(s).dat.data_ro
    weights = np.full(21, 1 / 20)
    weights[[0, -1]] /= 2
    total = 2.0 * weights @ np.sort(nodes)
    # A force is 1e8 times a strain, which is what a measure of size one differs from one by: the
    # difference of two positions, turned and over a length, eight operations of half an ε each.
    round_off = 1e8 * 8 * np.finfo(float).eps / 2
    assert statics.reactions()["left"][1] == pytest.approx([0, 0, total], abs=round_off)
    size.assign(4.0)
    statics.solve()
    assert statics.reactions()["left"][1] == pytest.approx([0, 0, 2 * total], abs=round_off)
