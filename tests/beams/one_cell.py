"""Beams of one cell, of which one of two ranks owns nothing; as a script, writes numbers to a file.

Usage: ``one_cell.py FILE``.
"""

import sys

import numpy as np
from firedrake import COMM_WORLD, Function, FunctionSpace, IntervalMesh, SpatialCoordinate

import fdgeom as fg


def beam(**options):
    """Of a density by cell and a width that grows along it."""
    mesh = IntervalMesh(1, 1.0)
    (s,) = SpatialCoordinate(mesh)
    density = Function(FunctionSpace(mesh, "DG", 0)).assign(1000.0)
    section = fg.Section.rectangle(
        0.02 * (1 + 0.1 * s), 0.01, density=density, youngs_modulus=1e7, poisson_ratio=0.3
    )
    return fg.Beam(mesh, section, left="clamped", **options)


def everything():
    hanging = beam(loads=fg.Gravity((0, 0, -0.01)))
    statics = fg.StaticEquilibrium(hanging)
    statics.solve()
    return np.concatenate(
        [*statics.reactions()["left"], statics.stress_at(0.5), [hanging.potential_energy()]]
    )


if __name__ == "__main__":
    found = everything()
    if COMM_WORLD.rank == 0:
        np.save(sys.argv[1], found)
