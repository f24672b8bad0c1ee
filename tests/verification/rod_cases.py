"""Beams in configuration form to test with, and their NumPy twins."""

from __future__ import annotations

import numpy as np
from firedrake import dot
from verification.beams import INERTIA, STIFFNESS, along, arc, set_smooth, uneven_mesh
from verification.numpy_rods import NumpyRod, rotation

import fdgeom as fg

#: Inertia about the centre of mass.
SEPARATE = np.diag([0.5, 0.3, 0.4, 1.0, 1.0, 1.0])
FORCE, GRAVITY = (0.1, 0.2, -0.3), (0.3, 0.0, -1.0)


def eccentric(offset=(0.1, -0.2, 0.15), mass=1.1):
    """The inertia of a mass whose centre is off the node."""
    c = np.array(
        [[0, -offset[2], offset[1]], [offset[2], 0, -offset[0]], [-offset[1], offset[0], 0]]
    )
    matrix = np.diag([0.5, 0.3, 0.4, mass, mass, mass])
    matrix[:3, :3] += mass * c @ c.T
    matrix[:3, 3:], matrix[3:, :3] = mass * c, mass * c.T
    return matrix


INERTIAS = {"separate": SEPARATE, "eccentric": eccentric(), "coupled": INERTIA}


def moving(inertia, cells=5, *, left="free", loads=(), **options):
    """A smooth start; at rest where it is held."""
    beam = fg.Beam(uneven_mesh(cells), fg.Section(STIFFNESS, inertia), left=left, loads=loads,
                   **options)  # fmt: skip
    set_smooth(beam)
    if left != "free":
        nodes = beam.velocity.function_space().boundary_nodes(1)
        beam.velocity.dat.data_wo_with_halos[nodes] = 0.0
        beam.momentum.interpolate(dot(beam.inertia, beam.velocity))
    return beam


def twin(beam, **options):
    """The same rod in NumPy, with its start."""
    nodes = arc(beam.momentum)
    held = np.zeros((len(nodes), 6), dtype=bool)
    held[
        0, {"free": slice(0), "clamped": slice(0, 6), "pinned": slice(3, 6)}[beam.ends[0].kind]
    ] = 1
    rod = NumpyRod(nodes, STIFFNESS, beam.section.inertia, held=held, **options)
    return rod, state(beam)


def state(beam):
    """Positions, rotation matrices and body velocities in the order of the arc length."""
    return along(beam.position), rotation(along(beam.orientation)), along(beam.velocity)


def gap(one, other):
    """Largest difference of two states."""
    return max(np.abs(a - b).max() for a, b in zip(one, other, strict=True))


def forth_and_back(stepper, steps=2):
    """Largest change of the configuration and velocity over some steps and as many with -dt."""
    beam = stepper.system.beam
    start = state(beam)
    stepper.advance(steps)
    moved = gap(state(beam), start)
    stepper.clock = stepper.clock.with_dt(-stepper.dt)  # which the public attribute refuses
    stepper.advance(steps)
    return gap(state(beam), start), moved


def relative(value, start):
    """Largest change, relative to the length of the start."""
    return np.abs(value - start).max() / np.linalg.norm(start)
