"""Constrained mechanical systems with known solutions, one a cell, and a chain."""

from __future__ import annotations

import numpy as np
from firedrake import (
    Constant,
    DirichletBC,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    VectorFunctionSpace,
    as_vector,
    cos,
    dot,
    dx,
    sin,
)

import fdgeom as fg

#: The start of Bai & Ge, at rest.
PAPER = ((2**0.5 / 4, 2**0.5 / 4, 3**0.5 / 2), (0.0, 0.0, 0.0))
#: A start with rotation, z up.
ROTATING = ((np.sin(1.0), 0.0, -np.cos(1.0)), (0.0, 0.8, 0.0))


def functions(q, p, constraints=1):
    """q, p and a multiplier in DG0 with the rows of arrays in their cells."""
    q, p = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, p))
    mesh = fg.copies(len(q))
    space = VectorFunctionSpace(mesh, "DG", 0, dim=q.shape[1])
    made = Function(space, name="q"), Function(space, name="p")
    for f, values in zip(made, (q, p), strict=True):
        f.dat.data_wo[...] = values.reshape(f.dat.data_ro.shape)
    if constraints == 1:
        return *made, Function(FunctionSpace(mesh, "DG", 0), name="multiplier")
    space = VectorFunctionSpace(mesh, "DG", 0, dim=constraints)
    return *made, Function(space, name="multiplier")


def sphere(q):
    return lambda mult: mult * (dot(q, q) - 1) * dx


def spherical_pendulum(start=PAPER, gravity=-9.8):
    """m = l = 1; potential gravity·z."""
    q, p, mult = functions(*start)
    return fg.ConstrainedSystem(q, p, 0.5 * dot(p, p) * dx, gravity * q[2] * dx, sphere(q), mult)


def lagrangian_pendulum(start=PAPER, gravity=-9.8):
    """The same by its Lagrangian."""
    q, v, mult = functions(*start)
    lagrangian = (0.5 * dot(v, v) - gravity * q[2]) * dx
    return fg.LagrangianSystem(q, v, lagrangian, constraint=sphere(q), multiplier=mult)


LENGTHS, MASSES, GRAVITY = (1.0, 0.7), (1.0, 0.5), 9.81
#: Positions and velocities of the two masses, on the constraints.
DOUBLE = (
    (0.6, 0.0, -0.8, 0.6, 0.42, -1.36),
    (0.0, 0.9, 0.0, 0.4, 0.9, 0.0),
)


def double_pendulum(start=DOUBLE, scale=1.0):
    """Two masses, the second hanging from the first: two constraints with one common mass."""
    q, v = (np.atleast_2d(x) for x in start)
    q, p, mult = functions(q, v * np.repeat(MASSES, 3), constraints=2)
    r1, r2 = as_vector([q[0], q[1], q[2]]), as_vector([q[3], q[4], q[5]])
    p1, p2 = as_vector([p[0], p[1], p[2]]), as_vector([p[3], p[4], p[5]])
    (l1, l2), (m1, m2) = LENGTHS, MASSES
    scale = Constant(scale)
    return fg.ConstrainedSystem(
        q,
        p,
        (0.5 / m1 * dot(p1, p1) + 0.5 / m2 * dot(p2, p2)) * dx,
        GRAVITY * (m1 * q[2] + m2 * q[5]) * dx,
        lambda mult: (
            (mult[0] * (dot(r1, r1) - l1**2) + scale * mult[1] * (dot(r2 - r1, r2 - r1) - l2**2))
            * dx
        ),
        mult,
    )


def chain(cells, angle=0.3, length=1.0, lumped=True):
    """An inextensible chain in a plane, held at one end, straight at an angle below the horizon."""
    mesh = IntervalMesh(cells, length)
    space = VectorFunctionSpace(mesh, "CG", 1, dim=2)
    mu = dx(scheme="KMV", degree=1) if lumped else dx
    (s,) = SpatialCoordinate(mesh)
    q, p = Function(space, name="q"), Function(space, name="p")
    mult = Function(FunctionSpace(mesh, "DG", 0), name="tension")
    q.interpolate(as_vector([s * cos(angle), -s * sin(angle)]))
    return fg.ConstrainedSystem(
        q,
        p,
        0.5 * dot(p, p) * mu,
        GRAVITY * q[1] * mu,
        lambda mult: 0.5 * mult * (dot(q.dx(0), q.dx(0)) - 1) * dx,
        mult,
        measure=mu,
        bcs=[DirichletBC(space, 0, 1)],
    )
