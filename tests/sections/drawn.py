"""Meshes and materials that several tests of sections share, so that forms are compiled once."""

import numpy as np
from firedrake import (
    Function,
    FunctionSpace,
    RectangleMesh,
    RelabeledMesh,
    SpatialCoordinate,
    conditional,
    lt,
)

import fdgeom as fg

STEEL = fg.Isotropic(youngs_modulus=2.6, poisson_ratio=0.3, density=1.5)
#: That of the manual of BECAS, cases S3 (units are consistent).
BECAS = fg.Orthotropic(
    youngs_moduli=(480.0, 120.0, 120.0),
    shear_moduli=(60.0, 50.0, 60.0),
    poisson_ratios=(0.19, 0.26, 0.19),
    density=1.0,
)


def rectangle(width, height, cells, quadrilateral=True):
    """A rectangle with its corner at the origin; ``cells``: one number or two."""
    nx, ny = (cells, cells) if np.ndim(cells) == 0 else cells
    return RectangleMesh(nx, ny, width, height, quadrilateral=quadrilateral)


def halves(width, height, cells):
    """The same with the tag 1 on the left half and 2 on the right."""
    mesh = rectangle(width, height, cells)
    x, _ = SpatialCoordinate(mesh)
    left = Function(FunctionSpace(mesh, "DQ", 0)).interpolate(conditional(lt(x, width / 2), 1, 0))
    right = Function(left.function_space()).interpolate(1 - left)
    return RelabeledMesh(mesh, [left, right], [1, 2])


def flexibility(S, axis, length):
    """Displacements of the tip from loads there, both (rotation, translation): ∫ TᵀST ds."""
    arm = np.eye(3)[axis]
    hat = np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])
    nodes, weights = np.polynomial.legendre.leggauss(3)
    total = np.zeros((6, 6))
    for x, w in zip(nodes, weights, strict=True):
        distance = length * (1 + x) / 2
        T = np.eye(6)
        T[:3, 3:] = distance * hat
        total += length / 2 * w * T.T @ S @ T
    return total
