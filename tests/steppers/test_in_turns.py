"""Steppers that move one system in turns."""

import numpy as np
import pytest
from firedrake import IntervalMesh, SpatialCoordinate, as_vector

import fdgeom as fg

UNIT = fg.Section(np.eye(6), np.eye(6))
SIZE = 0.01


def test_a_method_without_accelerations_in_between():
    """A bar, one cell with half a mass at its end: ½ü = -u. An acceleration of long ago is none of now."""
    errors = []
    for n in (20, 40, 80):
        bar = fg.Beam(IntervalMesh(1, 1.0), UNIT, left="clamped", strain_measure="directors")
        (s,) = SpatialCoordinate(bar.mesh)
        bar.position.interpolate(as_vector([(1 + SIZE) * s, 0, 0]))
        alpha, other = (method(bar, 1 / n) for method in (fg.GeneralizedAlpha, fg.EnergyMomentum))
        alpha.advance(1)
        other.t = alpha.t
        other.advance(n - 1)
        alpha.t = other.t
        alpha.advance(n)
        moved = bar.position.dat.data_ro[:, 0].max() - 1
        errors.append(abs(moved - SIZE * np.cos(2 * np.sqrt(2))))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx([2, 2], abs=0.1)
