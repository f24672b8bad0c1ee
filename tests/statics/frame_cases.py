"""Frames of several beams for the tests of statics and modes of assemblies."""

from __future__ import annotations

import numpy as np
from statics.rod_cases import section
from verification.joined import straight

import fdgeom as fg


def lees_frame(cells, of=None, *, length=1.0):
    """Two legs of 120, hinged at both feet, in the plane y = 0; a load of 1 at 24 from the corner.

    EI = 1440, EA = 4320; ten million for the shear, and a hundred times EI for what would leave the
    plane. ``length`` is that of the unit.
    """
    moments = length**2 * np.array([1.44e5, 1440.0, 1.44e5])
    of = of or section(4320.0, 1e7, *moments)
    leg = 120.0 * length
    column = straight((0, 0, 0), (0, 0, leg), cells, of)
    load = fg.Load(force=(0, 0, -1.0), at=24.0 * length)
    beam = straight((0, 0, leg), (leg, 0, leg), cells, of, loads=load)
    joints = [
        fg.Revolute(fg.ground, column.left, axis=(0, 1, 0)),
        fg.Rigid(column.right, beam.left),
        fg.Revolute(beam.right, fg.ground, axis=(0, 1, 0)),
    ]
    return fg.Assembly([column, beam], joints)


def node(beam, at):
    """Position and orientation of the node at an arc length (one rank)."""
    k = np.argmin(np.abs(beam.mesh.coordinates.dat.data_ro - at))
    return beam.position.dat.data_ro[k].copy(), beam.orientation.dat.data_ro[k].copy()


#: Of the right-angled frame: a strip of 30 by 0.6, its stiff direction in the plane.
STRIP = np.array(
    [27190.84 * 2.16, 71240 * 0.54, 71240 * 1350.0, 71240 * 18.0, *[27190.84 * 18] * 2]
)


def bent_cantilever(cells, force):
    """Legs of 240 along x and then along y, clamped at the start, a dead force at the free end."""
    of = fg.Section(np.diag(STRIP), np.eye(6))
    first = straight((0, 0, 0), (240.0, 0, 0), cells, of, left="clamped")
    load = fg.Load(force=force, at="right")
    second = straight((240.0, 0, 0), (240.0, 240.0, 0), cells, of, loads=load)
    return fg.Assembly([first, second], [fg.Rigid(first.right, second.left)])


# Four feet, a ring of four corners, an apex.
_SQUARE = [(0, 0), (2, 0), (2, 1.5), (0.1, 1.7)]
POINTS = np.array([(*xy, 0) for xy in _SQUARE] + [(*xy, 1.2) for xy in _SQUARE] + [(0.8, 0.6, 1.9)])
MEMBERS = [
    *((k, 4 + k) for k in range(4)),
    *((4 + k, 4 + (k + 1) % 4) for k in range(4)),
    *((4 + k, 8) for k in range(4)),
]
PAVILION = fg.Section(
    np.diag([30.0, 40.0, 70.0, 9e3, 4e3, 3e3]), np.diag([3e-3, 1e-3, 2e-3, 1.0, 1.0, 1.0])
)


def pavilion(cells, size=0.0, gravity=(0, 0, 0), force=(0, 0, 0)):
    """Twelve beams: clamped columns, a ring and rafters to an apex; ``size`` times the loads."""
    beams = []
    for first, last in MEMBERS:
        options = {"left": "clamped"} if first < 4 else {}
        loads = [fg.Gravity(size * np.array(gravity))] if size else []
        if size and (first, last) == (4, 8):
            loads.append(fg.Load(force=size * np.array(force), at="right"))
        ends = POINTS[first], POINTS[last]
        beams.append(straight(*ends, cells, PAVILION, loads=loads, **options))
    first_end, joints = {}, []
    for beam, ends in zip(beams, MEMBERS, strict=True):
        for corner, place in zip(ends, (beam.left, beam.right), strict=True):
            if corner in first_end:
                joints.append(fg.Rigid(first_end[corner], place))
            first_end.setdefault(corner, place)
    return fg.Assembly(beams, joints)
