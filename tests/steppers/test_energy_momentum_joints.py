"""The energy–momentum method on beams with joints: nothing is lost in them, and they stay together."""

from itertools import pairwise

import numpy as np
import pytest
from firedrake import IntervalMesh, as_vector, cos, sin
from verification.rod_cases import SEPARATE, eccentric, relative

import fdgeom as fg
from fdgeom.lie import arrays

STIFFNESS = np.diag([3.0, 5.0, 8.0, 500.0, 300.0, 400.0])


def straight(start, stop, inertia, scale=1.0, measure="directors", cells=6):
    """A straight beam between two points of space."""
    start, stop = np.array(start, dtype=float), np.array(stop, dtype=float)
    along = (stop - start) / np.linalg.norm(stop - start)
    turn = np.array([1 + along[0], 0.0, -along[2], along[1]])
    beam = fg.Beam(
        IntervalMesh(cells, np.linalg.norm(stop - start)),
        fg.Section(scale * STIFFNESS, inertia),
        strain_measure=measure,
    )
    beam.reconstruct(position=start, orientation=turn / np.linalg.norm(turn))
    return beam


def turning(beam, omega, about, drift=(0.0, 0.0, 0.0)):
    """Set the velocity of a rigid motion."""
    q, x = beam.orientation.dat.data_ro, beam.position.dat.data_ro
    linear = np.cross(omega, x - np.array(about)) + np.array(drift)
    beam.velocity.dat.data[:, :3] = arrays.quaternion.rotate_inverse(q, np.tile(omega, (len(q), 1)))
    beam.velocity.dat.data[:, 3:] = arrays.quaternion.rotate_inverse(q, linear)


def test_flying_chain():
    """All kinds of joints in one chain, eccentric sections, a body: energy and momenta stay."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0.2], [2, 1, 0.2], [2, 2, 0], [3, 2, 0]])
    beams = [straight(a, b, eccentric()) for a, b in pairwise(corners)]
    a, b, c, d, e = beams
    joints = [
        fg.Spherical(a.right, b.left),
        fg.Revolute(b.right, c.left, axis=(0, 0, 1)),
        fg.Prismatic(c.right, d.left, axis=(1, 0, 0)),
        fg.Rigid(d.right, e.left),
    ]
    for beam in beams:
        turning(beam, (0.2, -0.1, 0.5), (1, 1, 0), (0.1, 0.2, 0.3))
    turning(
        a, (1.0, 0.5, -1.0), (1, 0, 0), np.cross((0.2, -0.1, 0.5), (0, -1, 0)) + [0.1, 0.2, 0.3]
    )
    body = fg.PointBody(e.right, mass=0.5, inertia=(0.1, 0.2, 0.3), offset=(0.1, 0, 0))
    chain = fg.Assembly(beams=beams, joints=joints, bodies=[body])
    stepper = fg.EnergyMomentum(chain, 0.05)
    start = chain.energy(), chain.linear_momentum(), chain.angular_momentum()
    energies = [beam.energy() for beam in beams]
    stepper.advance(200)
    # Round-off of some hundred steps.
    assert chain.energy() == pytest.approx(start[0], rel=1e-12)
    assert relative(chain.linear_momentum(), start[1]) < 1e-12
    assert relative(chain.angular_momentum(), start[2]) < 1e-12
    assert chain.gap() < 1e-12
    assert abs(energies[0] - beams[0].energy()) > 0.1 * energies[0]


def pendulum(measure="directors", scale=1e4):
    """Two stiff arms under gravity, the upper on a ball joint."""
    upper = straight((0, 0, 0), (1, 0, 0), SEPARATE, scale, measure)
    lower = straight((1, 0, 0), (2, 0, 0), SEPARATE, scale, measure)
    turning(lower, (0.0, 1.0, 0.0), (1, 0, 0))
    joints = [
        fg.Spherical(fg.ground, upper.left),
        fg.Revolute(upper.right, lower.left, axis=(0, 1, 0)),
    ]
    return fg.Assembly(beams=[upper, lower], joints=joints, loads=fg.Gravity((0, 0, -9.81)))


def test_double_pendulum():
    """A thousand steps, each a hundred times the bound of an explicit method."""
    motion = pendulum()
    # Fastest: an axial wave from node to node, and the sections' rotation against shear.
    fastest = np.hypot(2 * 6 * np.sqrt(5e6), np.sqrt(4e6 / 0.3))
    stepper = fg.EnergyMomentum(motion, 100 * 2 / fastest)
    assert 5e-3 < stepper.dt < 1e-2
    kinetic, energy = motion.kinetic_energy(), motion.energy()
    angular = motion.angular_momentum()
    stepper.advance(1000)
    size = np.abs(motion.kinetic_energy()) + np.abs(energy) + kinetic
    assert abs(motion.energy() - energy) < 1e-11 * size
    # About the vertical through the ball.
    assert abs(motion.angular_momentum()[2] - angular[2]) < 1e-11 * np.linalg.norm(angular)
    assert motion.gap() < 1e-12
    assert abs(motion.kinetic_energy() - kinetic) > kinetic


def test_same_as_generalized_alpha():
    """Both of second order: the gap between them falls by four."""
    gaps = []
    for steps in (80, 160, 320):
        ends = []
        for method in (fg.EnergyMomentum, fg.GeneralizedAlpha):
            motion = pendulum(scale=1.0)
            method(motion, 0.4 / steps).advance(steps)
            ends.append(np.array(motion.beams[1].position.dat.data_ro))
        gaps.append(np.abs(ends[0] - ends[1]).max())
    # Over both halvings: the vibrations that the other method damps blur a single one.
    assert np.log2(gaps[0] / gaps[2]) / 2 == pytest.approx(2, abs=0.25)
    assert gaps[-1] < 1e-3


def test_reactions_of_a_support_on_a_curve():
    """Their impulses are the changes of the momenta, with a body off its node on another node."""
    pose = fg.GivenPose(
        position=lambda t: as_vector([0.3 * t**2, 0.2 * t**3, 0]),
        orientation=lambda t: as_vector([cos(t**2), 0, sin(t**2), 0]),
    )
    section = fg.Section(STIFFNESS, SEPARATE)
    beam = fg.Beam(IntervalMesh(3, 1.0), section, strain_measure="directors", left=pose)
    body = fg.PointBody(beam.right, mass=2.0, inertia=[0.05, 0.03, 0.04], offset=(0, 0.1, 0.05))
    assembly, dt = fg.Assembly([beam], bodies=[body]), 0.05
    stepper = fg.EnergyMomentum(assembly, dt)
    for _ in range(4):
        linear, angular = assembly.linear_momentum(), assembly.angular_momentum()
        before = fg.nodal_values(beam.position)[1][0]
        stepper.advance()
        middle = (before + fg.nodal_values(beam.position)[1][0]) / 2
        moment, force = assembly.reactions()[0]["left"]
        assert (assembly.linear_momentum() - linear) / dt == pytest.approx(force, abs=1e-11)
        total = moment + np.cross(middle, force)
        assert (assembly.angular_momentum() - angular) / dt == pytest.approx(total, abs=1e-11)


def test_refusals():
    with pytest.raises(ValueError, match='strain_measure="directors"'):
        fg.EnergyMomentum(pendulum("simo-reissner"), 0.01)
    a, b = straight((0, 0, 0), (1, 0, 0), SEPARATE), straight((1, 0, 0), (2, 0, 0), SEPARATE)
    sprung = fg.Assembly(
        beams=[a, b], joints=[fg.Revolute(a.right, b.left, axis=(0, 1, 0), stiffness=2.0)]
    )
    with pytest.raises(ValueError, match="does not treat the spring or damper of"):
        fg.EnergyMomentum(sprung, 0.01)
