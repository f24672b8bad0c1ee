"""Rigid bodies with known motions: the free body and the heavy top on three groups."""

from __future__ import annotations

import numpy as np
from firedrake import (
    Function,
    FunctionSpace,
    SpatialCoordinate,
    VectorFunctionSpace,
    as_vector,
    dot,
    dx,
)
from verification.numpy_bodies import ARM, FREE, GRAVITY, INERTIA, MASS, SPIN

import fdgeom as fg
from fdgeom.lie import groups, quaternion

STILL = (1.0, 0.0, 0.0, 0.0)


def rows(mesh, values, name):
    """A function of DG0 with an array's rows in its cells, or one row in all of them.

    Each rank takes the rows of its cells, whose numbers are the whole parts of their middles.
    """
    values = np.atleast_2d(np.asarray(values, dtype=float))
    made = Function(VectorFunctionSpace(mesh, "DG", 0, dim=values.shape[1]), name=name)
    made.dat.data_wo[...] = values[numbers(mesh)] if len(values) > 1 else values
    return made


def numbers(mesh):
    """Numbers of the cells that this rank owns."""
    middle = Function(FunctionSpace(mesh, "DG", 0)).interpolate(SpatialCoordinate(mesh)[0])
    return np.floor(middle.dat.data_ro).astype(int)


def free_body(n=1, spin=(1.0, 1.0, 1.0), inertia=FREE, **more):
    mesh = fg.copies(n)
    q, v = rows(mesh, STILL, "orientation"), rows(mesh, spin, "velocity")
    return fg.RigidBodies(q, v, inertia=inertia, **more)


def heavy_top(kind="R3xSO3", n=1, *, spin=SPIN, retraction="exp", **more):
    """The heavy top of mass 15: ``kind`` is "SO3" (no constraint), "R3xSO3" or "SE3"."""
    mesh = fg.copies(n)
    spin = np.broadcast_to(np.asarray(spin, dtype=float), (n, 3))
    group = {"SO3": groups.SO3, "R3xSO3": groups.R3xSO3, "SE3": groups.SE3}[kind].by(retraction)
    q, arm = rows(mesh, STILL, "orientation"), as_vector(ARM)
    if kind == "SO3":
        height = quaternion.rotate(q, arm)[2]
        return fg.RigidBodies(
            q,
            rows(mesh, spin, "velocity"),
            inertia=INERTIA + MASS * (np.eye(3) - np.outer(ARM, ARM)),
            group=group,
            potential=-MASS * GRAVITY[2] * height * dx,
            **more,
        )
    # Where R is the identity, the drift is the same in both frames.
    x = rows(mesh, ARM, "position")
    v = rows(mesh, np.hstack([spin, np.cross(spin, ARM)]), "velocity")
    gap = quaternion.rotate(q, arm) - x
    sign = 1 if kind == "R3xSO3" else -1
    arguments = {
        "inertia": np.diag(INERTIA),
        "mass": MASS,
        "group": group,
        "potential": -MASS * GRAVITY[2] * x[2] * dx,
        "constraint": lambda mult: sign * dot(mult, gap) * dx,
        "multiplier": rows(mesh, np.zeros(3), "multiplier"),
    }
    return fg.RigidBodies(q, v, x, **(arguments | more))


def matrices(system):
    """Rotation matrices (n, 3, 3)."""
    return np.array(fg.lie.arrays.quaternion.matrix(system.orientation.dat.data_ro))
