"""Joints: what they hold, what moves in them, and what they refuse."""

import itertools

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    as_vector,
    ds,
    dx,
    sin,
    sqrt,
)
from scipy.integrate import solve_ivp
from verification.joined import Z, at_nodes, quaternion, section, spin, straight

import fdgeom as fg
from fdgeom.beams.network.joints import Joint
from fdgeom.lie import arrays

GRAVITY = fg.Gravity((0.3, -9.81, 1.0))


def last(beam):
    return at_nodes(beam, beam.position)[-1]


def offset_section():
    """The centre of mass off the node's position."""
    body = fg.PointBody(straight((0, 0, 0), (1, 0, 0), 1).left, mass=2.0,
                        inertia=[0.05, 0.03, 0.04], offset=(0, 0.1, 0.05))  # fmt: skip
    return section(inertia=body.matrix)


@pytest.mark.parametrize("of", [section, offset_section])
def test_beams_welded_together_are_one_beam(of):
    """Half the mass of a cell at each of the two nodes of the joint: together those of one node."""
    of = of()
    loads = [
        fg.Load(force=lambda s, t: as_vector([0, sin(3 * s) * t, 1])),
        fg.Load(moment=(0, 0, 0.3), force=(0, 1, 0), at="right", frame="body"),
    ]
    whole = straight((0, 0, 0), (0, 1, 0), 6, of, left="clamped", loads=[*loads, GRAVITY])
    whole.reconstruct(orientation=quaternion((0, 1, 0)))
    lower = straight((0, 0, 0), (0, 0.5, 0), 3, of, left="clamped", loads=[loads[0]])
    upper_load = fg.Load(force=lambda s, t: as_vector([0, sin(3 * (s + 0.5)) * t, 1]))
    upper = straight((0, 0.5, 0), (0, 1, 0), 3, of, loads=[upper_load, loads[1]])
    both = fg.Assembly([lower, upper], [fg.Rigid(lower.right, upper.left)], loads=GRAVITY)
    energies = []
    for system in (whole, both):
        stepper = fg.GeneralizedAlpha(system, 0.01)
        stepper.advance(40)
        energies.append(stepper.system.energy())
    found = np.vstack([at_nodes(lower, lower.position), at_nodes(upper, upper.position)[1:]])
    expected = at_nodes(whole, whole.position)
    assert np.abs(expected - np.linspace(0, 1, 7)[:, None] * [0, 1, 0]).max() > 0.05
    # Ends of iterations to a relative 1e-9, whose next would be below round-off.
    assert found == pytest.approx(expected, abs=1e-9)
    speeds = np.vstack([at_nodes(lower, lower.velocity), at_nodes(upper, upper.velocity)[1:]])
    assert speeds == pytest.approx(at_nodes(whole, whole.velocity), abs=1e-7)
    # The dead part of the loads along the beams is in both energies.
    assert energies[1] == pytest.approx(energies[0], abs=1e-7)
    assert both.gap() < 1e-12


def various():
    """Beams of all kinds: tapered, damped, curved at rest, along another axis, held and loaded."""
    mesh = IntervalMesh(3, 1.0)
    (s,) = SpatialCoordinate(mesh)
    known = section()
    tapered = fg.Section((1 - 0.3 * s) * Constant(known.stiffness), Constant(known.inertia))
    first = fg.Beam(
        mesh,
        tapered,
        damping=0.05,
        end_weight=1.0,
        loads=[
            fg.Load(force=(0, 1, 0), at=mesh.coordinates.dat.data_ro[1]),
            fg.Load(moment=as_vector([0, s, 1 - s])),
            GRAVITY,
        ],
        left=fg.Sliding("y"),
    )
    along = section(stiffness=np.diag([5.0, 3, 8, 300, 500, 400]), axis=1)
    second = fg.Beam(
        IntervalMesh(4, 2.0), along, reference_strain=as_vector([0.3, 0.1, 0.5, 0, 0.02, 0])
    )
    second.reconstruct(position=(1, 2, 3))
    motor = fg.GivenPose(orientation=lambda t: as_vector([1, 0, 0, 0.2 * t**2]))
    third = straight((0, 0, 5), (0, 1, 5), 2)
    third = fg.Beam(third.mesh, section(), right=motor, loads=fg.Load(moment=(0, 1, 0), at="left"))
    return [first, second, third]


def test_beams_without_joints_move_by_themselves():
    """Side by side in one network, or each alone: the same equations."""
    alone, together = various(), various()
    for beam in alone:
        fg.GeneralizedAlpha(beam, 0.02).advance(25)
    fg.GeneralizedAlpha(fg.Assembly(together), 0.02).advance(25)
    for beam, other in zip(alone, together, strict=True):
        moved = np.abs(beam.velocity.dat.data_ro).max()
        assert moved > 0.05
        # Iterations end by the size of updates of all beams, whose next are below round-off.
        assert at_nodes(other, other.position) == pytest.approx(
            at_nodes(beam, beam.position), abs=1e-10
        )
        assert at_nodes(other, other.velocity) == pytest.approx(
            at_nodes(beam, beam.velocity), abs=1e-8
        )


def test_beams_welded_at_an_angle():
    """A weld keeps the angle that it starts with, whatever the signs of the quaternions."""
    one = straight((0, 0, 0), (1, 0, 0), 2)
    other = straight((1, 0, 0), (1, 1, 1), 2)
    other.orientation.assign(-1 * other.orientation)
    system = fg.Assembly([one, other], fg.Rigid(other.left, one.right), loads=GRAVITY)

    def relative():
        p, q = at_nodes(one, one.orientation)[-1], at_nodes(other, other.orientation)[0]
        return arrays.quaternion.matrix(p).T @ arrays.quaternion.matrix(q)

    before = relative()
    spin(one, (1.0, 2.0, 0.0))
    spin(other, (1.0, 2.0, 0.0))
    fg.GeneralizedAlpha(system, 0.01).advance(50)
    assert np.abs(at_nodes(one, one.orientation)[-1, 1:]).max() > 0.1
    assert relative() == pytest.approx(before, abs=1e-12)  # round-off
    assert system.gap() < 1e-12


def damped(k, c, rest, inertia):
    """Where I ÿ = -k (y - r) - c ẏ is at t = 2, from rest at zero."""

    def slope(t, y):
        return [y[1], (-k * (y[0] - rest) - c * y[1]) / inertia]

    return solve_ivp(slope, (0, 2), [0, 0], rtol=1e-10, atol=1e-12).y[0, -1]


def test_springs_and_dampers():
    """Stiff beams on hinges and slides with springs, from both sides, and one on a ball joint."""
    stiff = section(stiffness=1e6 * np.eye(6))
    k, c, rest = 6.0, 0.5, 0.4
    axis = np.array([1.0, 2.0, 2.0]) / 3
    across = np.cross(axis, Z) / np.linalg.norm(np.cross(axis, Z))
    beams, joints = [], []
    for kind in (fg.Revolute, fg.Prismatic):
        for order in (1, -1):
            beams.append(straight((0, 0, 0), across, 2, stiff))
            places = (fg.ground, beams[-1].left)[::order]
            spring = {"stiffness": k, "damping": c, "rest": order * rest}
            joints.append(kind(*places, axis=axis, **spring))
    ball = straight((0, 0, 0), (1, 0, 0), 2, stiff)
    joints.append(fg.Spherical(fg.ground, ball.left, stiffness=3.0, damping=0.2))
    system = fg.Assembly([*beams, ball], joints)
    spin(ball, (0.0, 1.5, 2.0))
    stepper = fg.GeneralizedAlpha(system, 0.01)
    # The ball's omega and cos φ after every step.
    omegas, cosines = [np.array([0.0, 1.5, 2.0])], []
    for _ in range(200):
        stepper.advance()
        omegas.append(at_nodes(ball, ball.velocity)[0, :3])
        R = arrays.quaternion.matrix(at_nodes(ball, ball.orientation)[0])
        cosines.append((np.trace(R) - 1) / 2)
    assert system.gap() < 1e-12

    # The springs let go at once and the step is second order: vibrations, and 1e-4 of phase.
    close = {"abs": 1e-3}
    q = at_nodes(beams[0], beams[0].orientation)[0]
    seen = arrays.quaternion.rotate_inverse(quaternion(across), axis)
    inertia = 2 * (0.5 * 0.25 + 0.25) + seen**2 @ [0.05, 0.02, 0.04]
    assert abs(q[0]) < 0.999
    for beam in beams[:2]:
        tip = last(beam)
        angle = np.arctan2(np.cross(across, tip) @ axis, across @ tip)
        assert angle == pytest.approx(damped(k, c, rest, inertia), **close)
        assert abs(tip @ axis) < 1e-4
    for beam in beams[2:4]:
        x = at_nodes(beam, beam.position)[0]
        assert x @ axis == pytest.approx(damped(k, c, rest, 2.0), **close)
        assert x == pytest.approx(axis * (x @ axis), abs=1e-12)  # round-off
    # About the ball: kinetic plus k (1 - cos φ) sinks by c |ω|² a time.
    J = 2 * 0.375 * np.diag([0, 1, 1]) + np.diag([0.05, 0.02, 0.04])

    def energy(omega):
        return 0.5 * omega @ J @ omega

    lost = 0.01 * 0.2 * sum(0.5 * (a @ a + b @ b) for a, b in itertools.pairwise(omegas))
    now = energy(omegas[-1]) + 3 * (1 - cosines[-1])
    assert min(cosines) < 0.7
    assert lost > 0.1 * energy(omegas[0])
    assert now == pytest.approx(energy(omegas[0]) - lost, rel=2e-3)


class Stiffening(fg.Revolute):
    """A hinge whose spring has the energy ½ k θ² (1 + θ²)."""

    @classmethod
    def potential(cls, a, b, stiffness, rest):
        angle = cls.coordinate(a, b) - rest
        return 0.5 * stiffness * angle**2 * (1 + angle**2)


def test_a_joint_derived_from_another_is_a_joint_of_its_own():
    """Beside a joint of its base class, whose conditions and spring it does not have too."""
    lower, upper = straight((0, 0, 0), (1, 0, 0), 2), straight((1, 0, 0), (2, 0, 0), 2)
    joints = [
        fg.Revolute(fg.ground, lower.left, axis=Z, stiffness=2.0, rest=0.5),
        Stiffening(lower.right, upper.left, axis=Z, stiffness=2.0, rest=0.5),
    ]
    assembly = fg.Assembly([lower, upper], joints)
    assert assembly.potential_energy() == pytest.approx(0.25 + 0.25 * 1.25)
    assert assembly.gap() < 1e-14


class Leaning(fg.Spherical):
    """A ball whose spring and damper feel how far the third axes of both sides lean along the first."""

    @staticmethod
    def coordinate(a, b):
        return sum(a[1][k, 0] * b[1][k, 2] for k in range(3))

    @classmethod
    def potential(cls, a, b, stiffness, rest):
        return 0.5 * stiffness * cls.coordinate(a, b) ** 2


@pytest.mark.parametrize(
    ("kind", "omega", "moment"),
    [
        (fg.Spherical, (2, 0, 0), (-0.6, 0, 0)),
        (fg.Spherical, (0, 2, 0), (0, -0.6, 0)),
        (Leaning, (2, 0, 0), (0, 0, 0)),
        (Leaning, (0, 2, 0), (0, -0.6, 0)),
    ],
)
def test_dampers_of_balls(kind, omega, moment):
    """By the relative angular velocity, or by the coordinate that a derived class has."""
    beam = straight((0, 0, 0), (1, 0, 0), 2)
    ball = kind(fg.ground, beam.left, damping=0.3)
    assembly = fg.Assembly(beam, ball)
    spin(beam, omega)
    fg.GeneralizedAlpha(assembly, 0.01)
    assert assembly.moment(ball) == pytest.approx(moment, abs=1e-12)


def test_bodies_and_forces():
    """At rest under gravity the ground carries the weight, at the lever that statics says."""
    beam = straight((0, 0, 0), (0, -1, 0), 3, section(stiffness=1e5 * np.eye(6)))
    body = fg.PointBody(beam.right, mass=1.5, inertia=[0.1, 0.1, 0.2], offset=(0.5, 0, 0))
    pin = fg.Spherical(beam.left, fg.ground)
    system = fg.Assembly([beam], pin, bodies=body, loads=fg.Gravity((0, -10.0, 0)))
    fg.GeneralizedAlpha(system, 0.01)
    # The beam hangs straight: released, only its length vibrates, so look at the moment of release.
    released = system.force(pin)
    # The unit of round-off times the stiffness 1e5 over the length of a cell.
    assert released[[0, 2]] == pytest.approx(0, abs=1e-9)
    assert system.linear_momentum() == pytest.approx(0, abs=1e-14)
    # Potential of the beam's mass at -1/2, of the body's at -3/2.
    assert system.load_potential() == pytest.approx(-10 * (2 * 0.5 + 1.5 * 1.5), rel=1e-12)
    spin(beam, (0, 0, 2.0))
    system.consistency.prepare()
    momentum = 2 * (1 / 3) * (1 + 1 / 18) + 0.04 + 1.5 * 1.5**2 + 0.2
    assert system.angular_momentum()[2] == pytest.approx(2 * momentum, rel=1e-12)


def test_a_body_moves_as_its_mass_in_the_section():
    """A body at the end, or a section at that end with the same inertia."""
    load = fg.Load(force=(0, 1, 0.5), moment=(0.1, 0, 0), at="right")
    beams = [straight((0, 0, 0), (1, 0, 0), 1, left="clamped", loads=load) for _ in range(2)]
    heavy = section(inertia=2 * np.diag([0.05, 0.02, 0.04, 2, 2, 2]))
    doubled = straight((0, 0, 0), (1, 0, 0), 1, heavy, left="clamped", loads=load)
    # One cell: its right half belongs to the node at the right.
    body = fg.PointBody(beams[0].right, mass=1.0, inertia=[0.025, 0.01, 0.02])
    fg.GeneralizedAlpha(fg.Assembly(beams[0], bodies=body), 0.02).advance(25)
    fg.GeneralizedAlpha(fg.Assembly(doubled), 0.02).advance(25)
    fg.GeneralizedAlpha(beams[1], 0.02).advance(25)
    assert last(beams[0]) == pytest.approx(last(doubled), abs=1e-10)  # as above: same equations
    assert np.abs(last(beams[0]) - last(beams[1])).max() > 1e-2


def test_common_loads_see_the_arc_length_of_each_beam():
    """Not the coordinate of the network, in which one beam comes after the other."""

    def beams(**options):
        first = straight((0, 0, 0), (1, 0, 0), 3, **options)
        return first, straight((0, 0, 5), (2, 0, 5), 4, **options)

    load = fg.Gravity(lambda s, t: as_vector([0, 0, -(1 + s) * t]))
    common, own = fg.Assembly(beams(), loads=load), fg.Assembly(beams(loads=load))
    for system in (common, own):
        fg.GeneralizedAlpha(system, 0.01).advance(2)
    assert own.load_potential() > 0.1
    assert common.load_potential() == pytest.approx(own.load_potential(), rel=1e-13)
    for a, b in zip(common.beams, own.beams, strict=True):
        assert at_nodes(a, a.velocity) == pytest.approx(at_nodes(b, b.velocity), abs=1e-14)


def test_common_loads_of_the_coordinate_of_the_beams():
    """V = z ∫ m (1 + s) ds = 3 m z/2 for each of two beams whose mesh has it as coordinate."""
    mesh = IntervalMesh(4, 1.0)
    (s,) = SpatialCoordinate(mesh)
    load, of = fg.Gravity(as_vector([0, 0, -(1 + s)])), section()
    beams = [fg.Beam(mesh, of) for _ in range(2)]
    for k, beam in enumerate(beams):
        beam.reconstruct(position=(0, k, 1))
    found = fg.Assembly(beams, loads=load).load_potential()
    assert found == pytest.approx(3 * of.inertia[3, 3], rel=1e-13)
    other = fg.Beam(IntervalMesh(4, 1.0), of)
    with pytest.raises(ValueError, match="the coordinate of another mesh"):
        fg.Assembly([beams[0], other], loads=load)
    beam = fg.Beam(IntervalMesh(4, 1.0), of, loads=load)
    with pytest.raises(ValueError, match="of several meshes"):
        fg.Assembly([beam])


def test_a_load_that_is_no_number_beyond_its_beam():
    """The lift √(1 - s²) of a wing with a longer tip; by the trapezoidal rule, at a height of 1."""
    lift = fg.Load(force=lambda s: as_vector([0, 0, sqrt(1 - s**2)]))
    wing = straight((0, 0, 1), (1, 0, 1), 4, loads=lift)
    tip = straight((1, 0, 1), (3, 0, 1), 2)
    system = fg.Assembly([wing, tip], fg.Rigid(wing.right, tip.left))
    places = np.linspace(0, 1, 5)
    assert system.load_potential() == pytest.approx(-np.trapezoid(np.sqrt(1 - places**2), places))


def test_a_second_stepper_takes_the_rates_that_steps_have_left():
    """Steps keep Φ = 0, and leave a rate of O(Δt²) at a hinge; a velocity set by hand has none."""
    first, second = straight((0, 0, 0), (1, 0, 0), 2), straight((1, 0, 0), (2, 0, 0), 2)
    joints = [
        fg.Spherical(fg.ground, first.left),
        fg.Revolute(first.right, second.left, axis=(0, 1, 0)),
    ]
    system = fg.Assembly([first, second], joints, loads=fg.Gravity((0, 5, -9.81)))
    stepper = fg.GeneralizedAlpha(system, 0.01, compiled=False)
    stepper.advance(20)
    assert 1e-7 < system.joints.rate(system.v) < 1e-2
    fg.GeneralizedAlpha(system, 0.01, t0=stepper.t, compiled=False)
    first.velocity.dat.data[:, 5] += 1e-3
    with pytest.raises(ValueError, match="the rates of the joints"):
        fg.GeneralizedAlpha(system, 0.01, t0=stepper.t, compiled=False)


def test_a_branch_in_the_middle():
    """Three beams at one point, one of them at an inner node: linear momentum of a free tree."""
    trunk = straight((0, 0, 0), (0, 0, 2), 4)
    left = straight((0, 0, 1), (1, 0, 1), 2)
    right = straight((0, 0, 1), (0, 1, 1.5), 2)
    joints = [
        fg.Spherical(trunk.at(1.0), left.left),
        fg.Revolute(left.left, right.left, axis=(1, 0, 0), damping=0.1),
    ]
    tree = fg.Assembly([trunk, left, right], joints)
    for beam in tree.beams:
        spin(beam, (0.5, 0.0, 1.0), (0.1, 0.2, 0.3))
    spin(right, (0.5, 0.0, 1.0), (0.1, 0.2, 0.3))
    stepper = fg.GeneralizedAlpha(tree, 0.02)
    before = tree.linear_momentum()
    stepper.advance(50)
    assert np.linalg.norm(before) > 1
    # All forces are inner ones; each step ends at round-off.
    assert tree.linear_momentum() == pytest.approx(before, abs=1e-9)
    assert tree.gap() < 1e-12
    assert tree.velocity_defect() < 1e-2
    middle = at_nodes(trunk, trunk.position)[2]
    for branch in (left, right):
        assert at_nodes(branch, branch.position)[0] == pytest.approx(middle, abs=1e-12)


def test_state_is_that_of_the_beams():
    """Velocities come back in the body frame, strain and momentum with them; a new start is read."""
    beams = [straight((0, 0, 0), (1, 0, 0), 2), straight((1, 0, 0), (1, 1, 0), 2)]
    system = fg.Assembly(beams, fg.Spherical(beams[0].right, beams[1].left), loads=GRAVITY)
    stepper = fg.GeneralizedAlpha(system, 0.01)
    stepper.advance(10)
    body = [at_nodes(b, b.velocity)[:, 3:] for b in beams]
    turns = [at_nodes(b, b.orientation) for b in beams]
    meet = [arrays.quaternion.rotate(q, v) for q, v in zip(turns, body, strict=True)]
    assert np.abs(meet[0]).max() > 0.5
    assert meet[0][-1] == pytest.approx(meet[1][0], abs=1e-3)  # the rate of Φ is O(h²)
    momenta = sum(beam.linear_momentum() for beam in beams)
    assert momenta == pytest.approx(system.linear_momentum(), rel=1e-12)
    for beam in beams:
        beam.velocity.assign(0)
    before = [last(b) for b in beams]
    stepper.advance()
    # From rest again: half the weight's acceleration times the step squared.
    moved = [np.abs(last(b) - x).max() for b, x in zip(beams, before, strict=True)]
    assert max(moved) < 2e-3


def test_pieces_and_restart(tmp_path):
    """Steps do not depend on how many are taken at once, nor on a stop between them."""

    def fresh():
        beams = [straight((0, 0, 0), (1, 0, 0), 2), straight((1, 0, 0), (1, 1, 0), 2)]
        system = fg.Assembly(beams, fg.Spherical(beams[0].right, beams[1].left), loads=GRAVITY)
        return system, fg.GeneralizedAlpha(system, 0.01)

    systems = []
    for pieces in ([10], [1] * 10, [5]):
        system, stepper = fresh()
        for piece in pieces:
            stepper.advance(piece)
        systems.append(system)
    fg.save(stepper, tmp_path / "state.h5")
    system, stepper = fresh()
    fg.resume(stepper, tmp_path / "state.h5")
    stepper.advance(5)
    systems[2] = system
    for other in systems[1:]:
        for f, g in zip(systems[0].functions().values(), other.functions().values(), strict=True):
            assert np.array_equal(f.dat.data_ro, g.dat.data_ro), f.name()
        for a, b in zip(systems[0].beams, other.beams, strict=True):
            assert np.array_equal(a.velocity.dat.data_ro, b.velocity.dat.data_ro)


# --- what is refused -----------------------------------------------------------------------------


def pair():
    return straight((0, 0, 0), (1, 0, 0), 2), straight((1, 0, 0), (1, 1, 0), 2)


def loaded_by_a_function():
    mesh = IntervalMesh(2, 1)
    density = Function(FunctionSpace(mesh, "CG", 1))
    return fg.Beam(mesh, section(), loads=fg.Load(force=as_vector([0, density, 0])))


REFUSED = {
    "apart": (lambda a, b: fg.Assembly([a, b], fg.Spherical(a.left, b.right)), "do not meet"),
    "itself": (lambda a, b: fg.Spherical(a.left, a.left), "to itself"),
    "ground": (lambda a, b: fg.Rigid(fg.ground, fg.ground), "to itself"),
    "one node": (lambda a, b: fg.Assembly([a], fg.Rigid(a.left, a.at(0.0))), "a node to itself"),
    "end": (lambda a, b: fg.Spherical(a.left, "right"), "second must be a place"),
    "node": (lambda a, b: fg.Assembly([a, b], fg.Spherical(a.at(0.3), b.left)), "no node at 0.3"),
    "name": (lambda a, b: fg.Spherical(a.at("middle"), b.left), "at must be"),
    "stranger": (lambda a, b: fg.Assembly([a], fg.Spherical(a.right, b.left)), "not in the assem"),
    "twice": (
        lambda a, b: fg.Assembly(
            [a, b], [fg.Spherical(a.right, b.left), fg.Revolute(b.left, a.right, axis=Z)]
        ),
        "over-constrained",
    ),
    "held": (
        lambda a, b: fg.Assembly(
            [c := straight((0, 0, 0), (1, 0, 0), 2, left="pinned")],
            fg.Spherical(fg.ground, c.left),
        ),
        "over-constrained",
    ),
    "axis": (lambda a, b: fg.Revolute(a.right, b.left), "axis is missing"),
    "no axis": (lambda a, b: fg.Revolute(a.right, b.left, axis=(0, 0, 0)), "not all zero"),
    "off line": (
        lambda a, b: fg.Assembly([a, b], fg.Prismatic(a.left, b.right, axis=(1, 0, 0))),
        "not on one line",
    ),
    "spring": (lambda a, b: fg.Spherical(a.right, b.left, stiffness=-1.0), "stiffness"),
    "damper": (lambda a, b: fg.Spherical(a.right, b.left, damping="much"), "damping"),
    "rest": (lambda a, b: fg.Revolute(a.right, b.left, axis=Z, rest=np.inf), "rest"),
    "same beam": (lambda a, b: fg.Assembly([a, a]), "different from one another"),
    "none": (lambda a, b: fg.Assembly([]), "empty"),
    "no beam": (lambda a, b: fg.Assembly([a, IntervalMesh(2, 1)]), "beams must be"),
    "no joint": (lambda a, b: fg.Assembly([a, b], [(a.right, b.left)]), "joints must be"),
    "load": (lambda a, b: fg.Assembly([a], loads=fg.Load(force=(0, 0, 1))), "acts on one beam"),
    "frame": (lambda a, b: fg.Load(force=(0, 0, 1), frame="world"), "frame"),
    "measure": (
        lambda a, b: fg.Assembly([a, straight((0, 0, 0), (1, 0, 0), 2, strain_measure="se3")]),
        "one strain measure",
    ),
    "degree": (
        lambda a, b: fg.Assembly([fg.Beam(IntervalMesh(2, 1), section(), degree=2)]),
        "degree 1",
    ),
    "velocity": (
        lambda a, b: fg.Assembly(
            [fg.Beam(IntervalMesh(2, 1), section(), left=lambda t: as_vector([t, 0, 0, 0, 0, 0]))]
        ),
        "GivenPose",
    ),
    "mesh of a beam": (
        lambda a, b: fg.Assembly([loaded_by_a_function()]),
        "Function on the mesh of a beam",
    ),
    "mass": (lambda a, b: fg.PointBody(a.right, mass=-1.0), "mass"),
    "inertia": (lambda a, b: fg.PointBody(a.right, mass=1.0, inertia=[1, -1, 1]), "semidefinite"),
    "body": (lambda a, b: fg.PointBody(fg.ground, mass=1.0), "does not move"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    make, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=message):
        make(*pair())


def test_joints_around_a_point_are_refused():
    """Three beams at a point need two joints: one of the three, whichever, is too many."""
    a, b = pair()
    c = straight((1, 0, 0), (1, 1, 0), 2)
    joints = [fg.Spherical(*places) for places in ((a.right, b.left), (b.left, c.left))]
    joints.append(fg.Spherical(c.left, a.right))
    named = "^joints: <Spherical joint of the (left|right) end and the .*> is over-constrained"
    with pytest.raises(ValueError, match=named):
        fg.Assembly([a, b, c], joints)


class Doubled(Joint):
    """A joint of one's own that says one of its conditions twice."""

    size = 4

    @staticmethod
    def constraints(a, b):
        gap = [b[0][k] - a[0][k] for k in range(3)]
        return [*gap, gap[0] + gap[2]]


@pytest.mark.parametrize("method", [fg.GeneralizedAlpha, fg.VariationalIntegrator])
def test_conditions_that_follow_from_others_are_refused(method):
    """The rank of all conditions counts, not the number of joints at a node; four of three."""
    a, b = pair()
    system = fg.Assembly([a, b], Doubled(a.right, b.left))
    with pytest.raises(
        ValueError, match="over-constrained: 1 of their conditions follow from the others"
    ):
        method(system, 0.01)


def test_refused_starts():
    """Velocities that do not agree in a joint, nodes that have been moved apart, an undamped scheme."""
    a, b = pair()
    system = fg.Assembly([a, b], fg.Spherical(a.right, b.left))
    with pytest.raises(ValueError, match="rho_inf"):
        fg.GeneralizedAlpha(system, 0.01, fg.newmark(0.25, 0.5))
    with pytest.raises(ValueError, match="'default'"):
        fg.GeneralizedAlpha(system, 0.01, start="consistent")
    with pytest.raises(ValueError, match="must be a joint of this assembly"):
        system.force(fg.Spherical(a.left, b.right))
    a.velocity.dat.data[:, 4] = 1.0
    with pytest.raises(ValueError, match="the rates of the joints"):
        fg.GeneralizedAlpha(system, 0.01)
    a.velocity.assign(0)
    a.position.dat.data[:, 1] += 0.1
    with pytest.raises(ValueError, match="conditions of the joints"):
        fg.GeneralizedAlpha(system, 0.01)
    a.orientation.dat.data[:] *= 1.1
    with pytest.raises(ValueError, match="unit quaternions"):
        fg.GeneralizedAlpha(system, 0.01)


def test_a_step_too_large_keeps_the_state():
    a, b = pair()
    system = fg.Assembly([a, b], fg.Spherical(a.right, b.left), loads=GRAVITY)
    spin(a, (0.0, 0.0, 30.0))
    spin(b, (0.0, 0.0, 30.0))
    stepper = fg.GeneralizedAlpha(system, 0.001, solver_parameters={"snes_max_it": 5})
    stepper.advance(3)
    known = [f.dat.data_ro.copy() for f in system.functions().values()]
    stepper.dt = 50.0
    with pytest.raises(fg.StepFailed):
        stepper.advance()
    for before, f in zip(known, system.functions().values(), strict=True):
        assert np.array_equal(before, f.dat.data_ro)
    stepper.dt = 0.001
    stepper.advance()
    assert system.gap() < 1e-12


def test_integrals_and_points_of_an_assembly():
    """Two beams of length 1 rise at the speed 1; the joint between them has a cell and a spring."""
    first, second = straight((0, 0, 0), (1, 0, 0), 2), straight((1, 0, 0), (2, 0, 0), 2)
    for beam in (first, second):
        spin(beam, (0, 0, 0), (0, 0, 1.0))
    hinge = fg.Revolute(first.right, second.left, axis=Z)
    assembly = fg.Assembly([first, second], [hinge])
    length = fg.Functional("length", Constant(1.0) * dx(domain=assembly.mesh))
    assert length(assembly)["length"] == pytest.approx(2.0, rel=1e-14)
    stepper, height = fg.GeneralizedAlpha(assembly, 1e-3), assembly.position[2]
    history = stepper.run(
        steps=10,
        monitors=[("all", height * dx), ("second", second.position[2] * dx)],
        every=5,
        progress=False,
    )
    assert history["all"] == pytest.approx([0, 0.01, 0.02], abs=1e-12)
    assert history["second"] == pytest.approx([0, 0.005, 0.01], abs=1e-12)
    with pytest.raises(ValueError, match="ds and dS on the mesh of an assembly"):
        stepper.run(steps=1, monitors=height * ds)
    with pytest.raises(ValueError, match=r"Probe\('middle'\): cells of joints lie over those"):
        stepper.run(steps=1, monitors=fg.Probe("middle", assembly.position, 0.5))
    # The energy of the spring is an integral over the cell of the joint.
    bent = fg.Assembly(
        [first, second], [fg.Revolute(first.right, second.left, axis=Z, stiffness=3.0, rest=0.2)]
    )
    potential = fg.Functional("energy", bent.energies()["potential_energy"])
    assert potential(bent)["energy"] == pytest.approx(0.5 * 3.0 * 0.2**2, rel=1e-12)


@pytest.mark.parametrize("joint", [fg.Rigid, fg.Prismatic, fg.Revolute])
def test_a_joint_that_is_turned_over(joint):
    """Its conditions hold there, too; a hinge may turn by any angle about its own axis."""
    a = straight((0, 0, 0), (1, 0, 0), 2, left="clamped")
    b = straight((1, 0, 0), (2, 0, 0), 2)
    options = {} if joint is fg.Rigid else {"axis": Z}
    system = fg.Assembly([a, b], joint(a.right, b.left, **options))
    # Of the others the axes of the triads are not those of space.
    third = (0.5, 0.5, 0.5, 0.5) if joint is fg.Rigid else (0.5, 0.5, -0.5, 0.5)
    statics = fg.StaticEquilibrium(system) if joint is fg.Rigid else None
    for turn in ((0, 0, 1, 0), third, (0, 0, 0, 1)):
        b.reconstruct(position=(1, 0, 0), orientation=turn)
        if joint is fg.Revolute and turn is third:
            with pytest.raises(ValueError, match="does not fulfil the conditions"):
                fg.GeneralizedAlpha(system, 1e-3)
        elif joint is fg.Revolute and turn[3]:
            fg.GeneralizedAlpha(system, 1e-3)
        else:
            with pytest.raises(ValueError, match="its two sides share are reversed or exchanged"):
                fg.GeneralizedAlpha(system, 1e-3)
    if statics is not None:
        with pytest.raises(fg.LoadStepFailed, match="reversed or exchanged"):
            statics.solve()
    # As an assembly finds its beams, they stand.
    fg.Assembly([a, b], joint(a.right, b.left, **options)).check_configuration()


class Cardan(fg.Revolute):
    """The axis of the first side stays perpendicular to one axis of the second, not to two."""

    size = 4

    @staticmethod
    def constraints(a, b):
        return fg.Revolute.constraints(a, b)[:4]


def test_conditions_of_your_own_share_no_axes():
    """A half turn about the axis of the second side reverses that of the first, which is allowed."""
    a = straight((0, 0, 0), (1, 0, 0), 2, left="clamped")
    b = straight((1, 0, 0), (2, 0, 0), 2)
    system = fg.Assembly([a, b], Cardan(a.right, b.left, axis=Z))
    first = np.cross((1, 0, 0), Z)  # of the triad of the joint
    b.reconstruct(position=(1, 0, 0), orientation=(0, *first))
    with system.consistency.prepared():
        system.joints.check_configuration()
        assert system.joints.defect() == pytest.approx(0, abs=1e-14)
