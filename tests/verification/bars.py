"""Slender bars put together: the tests and the benchmark of compiled joined beams share them."""

import numpy as np
from firedrake import IntervalMesh, as_vector, cos, sin

import fdgeom as fg
from fdgeom.lie import arrays

STIFFNESS = np.diag([1.0, 1.2, 0.8, 1e3, 1e3, 1e3])
INERTIA = np.diag([1e-3, 8e-4, 1.2e-3, 1.0, 1.0, 1.0])


def bar(start, stop, cells, **options):
    """A straight beam between two points."""
    start, stop = np.array(start, dtype=float), np.array(stop, dtype=float)
    length = np.linalg.norm(stop - start)
    beam = fg.Beam(
        IntervalMesh(cells, length),
        fg.Section(STIFFNESS, INERTIA),
        strain_measure="directors",
        **options,
    )
    first = (stop - start) / length
    second = np.cross([0.1, 0.2, 1.0], first)
    second /= np.linalg.norm(second)
    frame = np.column_stack([first, second, np.cross(first, second)])
    beam.reconstruct(position=start, orientation=arrays.quaternion.from_matrix(frame))
    return beam


GRAVITY = fg.Gravity((0.0, 0.3, -9.81))


def double_pendulum(upper_cells=3, lower_cells=5):
    """Two beams on spherical joints, falling."""
    upper, lower = bar((0, 0, 0), (1, 0, 0), upper_cells), bar((1, 0, 0), (2.3, 0, 0), lower_cells)
    joints = [fg.Spherical(fg.ground, upper.left), fg.Spherical(upper.right, lower.left)]
    return fg.Assembly([upper, lower], joints, loads=GRAVITY)


def four_bar(cells=(4, 7, 6)):
    """A closed loop whose crank is turned."""
    crank = fg.GivenPose(
        position=lambda t: as_vector([0 * t, 0, 0]),
        orientation=lambda t: as_vector([cos(2 * t**2), 0, 0, sin(2 * t**2)]),
    )
    section = fg.Section(STIFFNESS, INERTIA)
    arm = fg.Beam(IntervalMesh(cells[0], 1.0), section, strain_measure="directors", left=crank)
    coupler, rocker = bar((1, 0, 0), (1, 2, 0), cells[1]), bar((1, 2, 0), (-0.5, 1.5, 0), cells[2])
    joints = [
        fg.Spherical(arm.right, coupler.left),
        fg.Revolute(coupler.right, rocker.left, axis=(0, 0, 1)),
        fg.Spherical(rocker.right, fg.ground),
    ]
    return fg.Assembly([arm, coupler, rocker], joints)


CORNERS = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0.5, 0.5, 0.4)]
BARS = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4)]


def net(loads=GRAVITY, *, held=False):
    """Eight bars welded to a pyramid, with a blow to one of them; ``held``: clamped at a corner."""
    beams = [
        bar(CORNERS[a], CORNERS[b], 6, left="clamped" if held and not k else "free")
        for k, (a, b) in enumerate(BARS)
    ]
    places, joints = {}, []
    for (a, b), beam in zip(BARS, beams, strict=True):
        for corner, place in ((a, beam.left), (b, beam.right)):
            if corner in places:
                joints.append(fg.Rigid(places[corner], place))
            places.setdefault(corner, place)
    beams[0].velocity.dat.data_wo[1:-1, 4] = 0.5 * np.sin(np.arange(1, 6) * np.pi / 6)
    return fg.Assembly(beams, joints, loads=loads)
