"""Runs of elastic bodies and springs whose results must not depend on the number of ranks."""

from __future__ import annotations

import sys

import numpy as np
from firedrake import (
    UnitCubeMesh,
    VectorFunctionSpace,
    assemble,
    dot,
    dx,
)
from mpi4py import MPI
from verification.elastic_bodies import Swaying, linear_body

import fdgeom as fg


def moments(system) -> np.ndarray:
    """∫ |f|² and ∫ f·q of q, v and the acceleration: they depend on all values."""
    fields = (system.q, system.v, system.acceleration)
    return np.array([assemble(dot(f, g) * dx) for f in fields for g in (f, system.q)])


def swaying(make) -> np.ndarray:
    """A nonlinear body, part of whose boundary moves."""
    system = Swaying(cells=3).system()
    make(system, 0.05).advance(10)
    return moments(system)


def block() -> np.ndarray:
    """A linear body in three dimensions, with a step that changes."""
    mesh = UnitCubeMesh(3, 3, 3)
    system = linear_body(mesh, VectorFunctionSpace(mesh, "CG", 1))
    stepper = fg.GeneralizedAlpha(system, 0.1, fg.hamel_alpha(0.6))
    stepper.advance(5)
    stepper.dt = 0.15
    stepper.advance(5)
    return moments(system)


def undamped() -> np.ndarray:
    """A linear body without damping, by a method for such bodies."""
    mesh = UnitCubeMesh(3, 3, 3)
    system = linear_body(mesh, VectorFunctionSpace(mesh, "CG", 1), drag=None)
    fg.FourthOrderAlpha(system, 0.05).advance(10)
    return moments(system)


def failure() -> np.ndarray:
    """A body set to a state with infinite forces: all ranks raise and all keep that state."""
    system = Swaying(cells=3).system()
    stepper = fg.GeneralizedAlpha(
        system, 0.05, solver_parameters={"snes_max_it": 1, "snes_rtol": 1e-15}
    )
    try:
        stepper.advance(1)
    except fg.StepFailed as failed:
        return np.array([failed.step, stepper.steps, *moments(system)])
    return np.array([-1.0])


def everything() -> dict[str, np.ndarray]:
    return {
        "swaying": swaying(fg.GeneralizedAlpha),
        "swaying, fourth order": swaying(fg.HermiteSimpson),
        "block": block(),
        "undamped": undamped(),
        "failure": failure(),
    }


if __name__ == "__main__":
    results = everything()
    if MPI.COMM_WORLD.rank == 0:
        np.savez(sys.argv[1], **results)
