"""Springs of unknown stiffness, one a cell: by fdgeom, and by a few lines of NumPy."""

from __future__ import annotations

import numpy as np
from firedrake import COMM_WORLD, Function, FunctionSpace, assemble, dx
from firedrake.adjoint import Control, ReducedFunctional, continue_annotation, pause_annotation

import fdgeom as fg

DT, STEPS = 0.1, 12
#: The stiffness of each spring, and where they are let go.
TRUE, START = np.array([1.5, 1.3, 1.1]), 0.4


def verlet(stiffness, start=START):
    """q and p after the steps of Störmer and Verlet's method."""
    q, p = start + 0 * stiffness, 0 * stiffness
    for _ in range(STEPS):
        p = p - DT / 2 * stiffness * q
        q = q + DT * p
        p = p - DT / 2 * stiffness * q
    return q, p


def misfit(stiffness, start=START):
    """∑ ½(q - q̂)² + ½(p - p̂)², the data being those of the true springs."""
    return sum(
        ((x - data) ** 2).sum() / 2
        for x, data in zip(verlet(stiffness, start), verlet(TRUE, start), strict=True)
    )


def slopes(stiffness, start=START):
    """Its derivatives, by complex steps."""
    moved = stiffness + 1e-30j * np.eye(len(stiffness))
    return np.array([misfit(row, start).imag / 1e-30 for row in moved])


def reduced_misfit(guess, start=START, comm=COMM_WORLD):
    """The same as pyadjoint's reduced functional of the stiffness, which is now ``guess``."""
    space = FunctionSpace(fg.copies(len(TRUE), comm), "DG", 0)
    q, p, stiffness = Function(space).assign(start), Function(space), Function(space)
    system = fg.HamiltonianSystem(q, p, (p**2 + stiffness * q**2) / 2 * dx)
    stepper = fg.StormerVerlet(system, DT)
    data = [Function(space), Function(space)]
    control = Function(space)
    for f, values in zip((*data, control), (*verlet(TRUE, start), guess), strict=True):
        f.dat.data_wo[...] = values
    continue_annotation()
    stiffness.assign(control)
    stepper.advance(STEPS)
    value = assemble(((q - data[0]) ** 2 + (p - data[1]) ** 2) / 2 * dx)
    pause_annotation()
    return ReducedFunctional(value, Control(control))
