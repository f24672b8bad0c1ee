"""Beams put together for the tests of joints."""

import numpy as np
from firedrake import IntervalMesh, as_vector

import fdgeom as fg
from fdgeom.lie import arrays

Z = (0.0, 0.0, 1.0)
FIELD = np.array([0.3, -9.81, 1.0])
AXIS = np.array([1.0, 2.0, 2.0]) / 3
SPRING, DAMPER, REST = 60.0, 1.5, 0.1


def section(**changes):
    """A section of no symmetry, its centre of mass off the node's position unless told otherwise."""
    stiffness = np.diag([3.0, 5.0, 8.0, 500.0, 300.0, 400.0])
    inertia = np.diag([0.05, 0.02, 0.04, 2.0, 2.0, 2.0])
    return fg.Section(**{"stiffness": stiffness, "inertia": inertia, **changes})


def quaternion(direction):
    """Unit quaternion that turns the first axis of space into a direction."""
    d = np.array(direction, dtype=float)
    d /= np.linalg.norm(d)
    turn = np.array([1 + d[0], 0.0, -d[2], d[1]])
    return turn / np.linalg.norm(turn)


def straight(start, stop, cells, of=None, **options):
    """A straight beam between two points."""
    start, stop = np.array(start, dtype=float), np.array(stop, dtype=float)
    length = np.linalg.norm(stop - start)
    beam = fg.Beam(IntervalMesh(cells, length), of or section(), **options)
    beam.reconstruct(position=start, orientation=quaternion(stop - start))
    return beam


def at_nodes(beam, function):
    """Values at the nodes in the order of the arc length (one rank)."""
    (arc,) = (beam.mesh.coordinates.dat.data_ro,)
    return function.dat.data_ro[np.argsort(arc)]


def spin(beam, omega, drift=(0.0, 0.0, 0.0)):
    """Set the velocity of a rigid motion: angular velocity about the origin, and a drift."""
    q, x = beam.orientation.dat.data_ro, beam.position.dat.data_ro
    linear = np.cross(omega, x) + np.array(drift)
    beam.velocity.dat.data[:, :3] = arrays.quaternion.rotate_inverse(q, np.tile(omega, (len(q), 1)))
    beam.velocity.dat.data[:, 3:] = arrays.quaternion.rotate_inverse(q, linear)


def double_pendulum(**options):
    """Two beams on a hinge and a ball, swinging."""
    upper = straight((0, 0, 0), (0.8, 0, -0.6), 2, **options)
    lower = straight((0.8, 0, -0.6), (1.4, 0, 0.2), 2, **options)
    hinge = fg.Revolute(fg.ground, upper.left, axis=(0, 1, 0))
    for beam in (upper, lower):
        spin(beam, (0.0, 0.4, 0.0))
    ball = fg.Spherical(upper.right, lower.left)
    return fg.Assembly([upper, lower], [hinge, ball], loads=fg.Gravity((0, 0, -9.81)))


def sprung_chain():
    """A slide from the ground, a hinge and a ball, all with springs and dampers; a turned end."""
    turned = fg.GivenPose(orientation=lambda t: as_vector([1, 0, 0, 0.4 * t**2]))
    beams = [
        straight((0, 0, 0), (0, 1, 0), 2, damping=0.01),
        straight((0, 1, 0), (0, 1, 1), 2, damping=0.01),
        straight((0, 1, 1), (1, 1, 1), 2, right=turned, damping=0.01),
    ]
    joints = [
        fg.Prismatic(
            fg.ground, beams[0].left, axis=AXIS, stiffness=SPRING, damping=DAMPER, rest=REST
        ),
        # From the later beam to the earlier one: the numbers of their nodes the other way round.
        fg.Revolute(beams[1].left, beams[0].right, axis=(1, 1, 0), stiffness=5.0, damping=0.4),
        fg.Spherical(beams[1].right, beams[2].left, stiffness=4.0, damping=0.3),
    ]
    return fg.Assembly(beams, joints, loads=fg.Gravity(FIELD))


def four_bar(**springs):
    """A closed loop on two hinges, welded in one corner, with a ball and a body in the other."""
    corners = [(0, 0, 0), (0, 0, 1), (1.5, 0, 1.2), (1.5, 0, 0)]
    beams = [
        straight(a, b, cells, strain_measure="directors")
        for a, b, cells in zip(corners, corners[1:], (2, 3, 2), strict=False)
    ]
    joints = [
        fg.Revolute(fg.ground, beams[0].left, axis=(0, 1, 0), **springs),
        fg.Rigid(beams[1].left, beams[0].right),
        fg.Spherical(beams[1].right, beams[2].left),
        fg.Revolute(beams[2].right, fg.ground, axis=(0, 1, 0)),
    ]
    place = {"inertia": (0.1, 0.2, 0.3), "offset": (0.05, 0, 0.02)}
    body = fg.PointBody(beams[1].right, mass=0.7, **place)
    return fg.Assembly(beams, joints, bodies=[body], loads=fg.Gravity((0.1, 0.2, -9.81)))
