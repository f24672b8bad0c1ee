"""Published static problems of beams, set up as their references have them."""

from __future__ import annotations

import numpy as np
from firedrake import IntervalMesh, SpatialCoordinate, as_vector, cos, pi, sin

import fdgeom as fg


def section(EA, GA, GJ, EI, second_EI=None):
    """A diagonal section, its axis the first; the inertia plays no part."""
    stiffness = np.diag([GJ, EI, second_EI or EI, EA, GA, GA])
    return fg.Section(stiffness, np.eye(6))


def tip(beam, boundary=2):
    """Position and unit quaternion of the right end (one rank)."""
    (node,) = beam.position.function_space().boundary_nodes(boundary)
    return beam.position.dat.data_ro[node].copy(), beam.orientation.dat.data_ro[node].copy()


def bend(cells, measure="simo-reissner"):
    """Bathe's 45° bend, radius 100 in the plane z = 0, force 600 along z."""
    R, mesh = 100.0, IntervalMesh(cells, 100 * np.pi / 4)
    (s,) = SpatialCoordinate(mesh)
    a = s / R
    return fg.Beam(
        mesh,
        section(1e7, 5e6 * 5 / 6, 8.3333e5, 8.3333e5),
        left="clamped",
        reference_shape=(
            as_vector([R * sin(a), R * (1 - cos(a)), 0]),
            as_vector([cos(a / 2), 0, 0, sin(a / 2)]),
        ),
        loads=fg.Load(force=(0, 0, 600.0), at="right"),
        strain_measure=measure,
    )


def strip(cells, measure="simo-reissner", loads=None):
    """A strip of length 10 and the moment at its end that makes a circle of it, or other loads."""
    return fg.Beam(
        IntervalMesh(cells, 10.0),
        section(1770e3, 1770e3, 8.16e3, 86.9e3, 215e3),
        left="clamped",
        loads=loads or fg.Load(moment=(0, -2 * pi * 86.9e3 / 10, 0), at="right"),
        strain_measure=measure,
    )


def cantilever(cells, load=0.0, *, EA=1e9, loads=None, **options):
    """Length 1, EI = 1, a dead force at the tip that bends it downwards, or other loads."""
    return fg.Beam(
        IntervalMesh(cells, 1.0),
        section(EA, EA, 1.0, 1.0),
        left="clamped",
        loads=loads or fg.Load(force=(0, 0, -load), at="right"),
        **options,
    )


def arch(cells):
    """DaDeppo & Schmidt's arch of 215°, clamped and hinged, radius 100, EI 1e6, load at the crown."""
    R, half = 100.0, np.deg2rad(215) / 2
    mesh = IntervalMesh(cells, 2 * half * R)
    (s,) = SpatialCoordinate(mesh)
    a = s / R - half
    return fg.Beam(
        mesh,
        section(1e8, 1e8, 1e6, 1e6),
        left="clamped",
        right="pinned",
        reference_shape=(
            as_vector([R * sin(a), 0, R * cos(a)]),
            as_vector([cos(a / 2), 0, sin(a / 2), 0]),
        ),
        loads=fg.Load(force=(0, 0, -1.0), at=half * R),
    )
