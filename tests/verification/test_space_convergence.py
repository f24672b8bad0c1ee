"""Convergence with the mesh for the degrees 1 to 4, against one element of degree 56."""

import numpy as np
import pytest
from firedrake import IntervalMesh, SpatialCoordinate, as_vector, cos, pi, sin
from verification.beams import along, arc, spd
from verification.spectral_beam import SpectralBeam

import fdgeom as fg

LENGTH, END = 1.5, 0.3
# Waves of similar speeds, so that few cells resolve them all.
STIFFNESS = spd(1, [1.0, 1.2, 0.8, 3.0, 2.5, 2.0])
INERTIA = spd(2, [0.8, 0.9, 0.7, 1.0, 1.0, 1.0])
STRAIN = [0.6, -0.4, 0.8, 0.2, -0.3, 0.1]
MOMENTUM = [0.3, -0.2, 0.4, 0.5, -0.6, 0.2]


def start(s, sin, cos):
    """Vanishes at the ends to sixth order, so that free ends start no kinks."""
    bump = sin(pi * s / LENGTH) ** 6
    return bump, bump * (1 + 0.5 * cos(pi * s / LENGTH))


@pytest.fixture(scope="module")
def reference():
    spectral = SpectralBeam(56, LENGTH, STIFFNESS, INERTIA)
    strain = start(spectral.points, np.sin, np.cos)[0][:, None] * STRAIN
    momentum = start(spectral.nodes, np.sin, np.cos)[1][:, None] * MOMENTUM
    return spectral, *spectral.solve(strain, momentum, END)


def errors(degree, cells, reference):
    """Root mean square of strain and momentum, and the error of the left end's position."""
    spectral, strain, momentum, pose = reference
    mesh = IntervalMesh(cells, LENGTH)
    beam = fg.Beam(mesh, fg.Section(STIFFNESS, INERTIA), degree=degree)
    (s,) = SpatialCoordinate(mesh)
    first, second = start(s, sin, cos)
    beam.strain.interpolate(first * as_vector(STRAIN))
    beam.momentum.interpolate(second * as_vector(MOMENTUM))
    beam.reconstruct()
    # Sixth order in time, with steps well below the bound: what is seen is the mesh.
    steps = {1: 2, 2: 4, 3: 8, 4: 12}[degree] * cells
    fg.Composition(fg.SymmetricPoissonIntegrator, 6)(beam, END / steps).advance(steps)
    off = (
        along(beam.strain) - spectral.strain_at(strain, arc(beam.strain)),
        along(beam.momentum) - spectral.momentum_at(momentum, arc(beam.momentum)),
    )
    return *(np.sqrt((e**2).mean()) for e in off), np.abs(
        along(beam.position)[0] - pose[:3, 3]
    ).max()


@pytest.mark.parametrize(
    ("degree", "cells", "end_order"),
    [(1, (32, 64, 128), 2), (2, (24, 48, 96), 4), (3, (8, 16, 32), 6), (4, (6, 12, 24), 6)],
)
def test_orders(degree, cells, end_order, reference):
    """Strain and momentum at the nodes: order p+1. The motion of the end: order 2p, up to 6."""
    e = np.array([errors(degree, n, reference) for n in cells])
    # Mean rate over a factor of four; the higher degrees are still above their order.
    strain, momentum, end = np.log(e[0] / e[-1]) / np.log(cells[-1] / cells[0])
    assert degree + 0.75 < strain < degree + 2
    assert degree + 0.75 < momentum < degree + 2
    assert end > end_order - 0.2
