"""Beams put together for the tests of joints."""

import numpy as np
from firedrake import IntervalMesh

import fdgeom as fg
from fdgeom.lie import arrays

Z = (0.0, 0.0, 1.0)


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
