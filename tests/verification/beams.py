"""Beams to test with, and their values in the order of the arc length."""

from __future__ import annotations

import numpy as np
from firedrake import (
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    as_vector,
    cos,
    pi,
    sin,
)

import fdgeom as fg


def spd(seed, diagonal, coupling=0.2):
    """A full symmetric positive definite matrix with about that diagonal."""
    root = np.diag(np.sqrt(diagonal))
    A = np.random.default_rng(seed).uniform(-1, 1, (6, 6))
    return root @ (np.eye(6) + coupling * (A + A.T) / 2) @ root


# Coupled in all six components; the fastest wave goes at about 4 lengths per time.
STIFFNESS = spd(1, [1.0, 1.2, 0.8, 12.0, 9.0, 8.0])
INERTIA = spd(2, [0.5, 0.3, 0.4, 1.0, 1.0, 1.0])
SOFT = fg.Section(STIFFNESS, INERTIA, axis=0)


def uneven_mesh(cells, length=1.5):
    """Cells of different lengths, up to a factor of about two."""
    mesh = IntervalMesh(cells, length)
    x = mesh.coordinates.dat.data_wo
    x[...] = x + 0.05 * length * np.sin(2 * np.pi * x / length)
    return mesh


def order(function) -> np.ndarray:
    """The order of a function's nodes along the beam (one rank)."""
    space = function.function_space()
    scalar = FunctionSpace(space.mesh(), space.ufl_element().sub_elements[0])
    (s,) = SpatialCoordinate(space.mesh())
    return np.argsort(Function(scalar).interpolate(s).dat.data_ro)


def along(function) -> np.ndarray:
    """Values in the order of the arc length (one rank)."""
    return np.array(function.dat.data_ro[order(function)])


def arc(function) -> np.ndarray:
    """The arc length of a function's nodes, in order (one rank)."""
    space = function.function_space()
    scalar = FunctionSpace(space.mesh(), space.ufl_element().sub_elements[0])
    (s,) = SpatialCoordinate(space.mesh())
    return np.sort(Function(scalar).interpolate(s).dat.data_ro)


def set_smooth(beam, length=1.5, size=0.3):
    """A smooth state with all components, bending a quarter turn or so; free ends."""
    (s,) = SpatialCoordinate(beam.mesh)
    x = pi * s / length
    # The strain vanishes at the free ends, as the stress has to.
    beam.strain.interpolate(
        size * sin(x) * as_vector([sin(x), cos(x), 1.0, 0.3 * cos(x), 0.2 * sin(x), -0.3])
    )
    beam.momentum.interpolate(
        size * as_vector([cos(x), 0.5, cos(2 * x), cos(x), -cos(2 * x), 0.4 + 0.2 * cos(x)])
    )
    beam.reconstruct()
    return beam


def set_random(beam, seed=3, size=0.5):
    """Random strain and momentum at every node."""
    rng = np.random.default_rng(seed)
    for part in (beam.strain, beam.momentum):
        part.dat.data_wo[...] = rng.uniform(-size, size, part.dat.data_ro.shape)
    beam.reconstruct()
    return beam


def papers_beam(cells=100, end_weight=1.0, **options):
    """The run of Chen & Shi (2025)."""
    length = 2 * np.pi / 3
    mesh = IntervalMesh(cells, length)
    section = fg.Section.rectangle(
        0.1,
        0.1,
        density=1000.0,
        youngs_modulus=1e7,
        poisson_ratio=0.35,
        torsion_constant=0.1**4 / 6,
        shear_factor=1.0,
        axis=1,
    )
    beam = fg.Beam(mesh, section, end_weight=end_weight, **options)
    (s,) = SpatialCoordinate(mesh)
    beam.strain.interpolate(as_vector([-1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    beam.momentum.interpolate(as_vector([0.0, 0.0, 0.0, 10.0 * sin(1.5 * s), 10.0, 0.0]))
    beam.reconstruct()
    return beam
