"""Compiled implicit steps on one rank and on all: mpiexec -n 2 python implicit_ranks.py [CELLS ...]"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]
SIZES = [int(n) for n in sys.argv[1:]] or [100_000]
sys.argv[1:] = []

from firedrake import (  # noqa: E402
    COMM_SELF,
    COMM_WORLD,
    IntervalMesh,
    PETSc,
    SpatialCoordinate,
    as_vector,
    pi,
    sin,
)
from mpi4py import MPI  # noqa: E402
from verification.beams import STIFFNESS  # noqa: E402
from verification.rod_cases import SEPARATE as INERTIA  # noqa: E402

import fdgeom as fg  # noqa: E402

STEPS, ROUNDS = 10, 5


def flying(cells: int, comm):
    """A free beam that flies, turns and vibrates in space."""
    mesh = IntervalMesh(cells, 2.0, comm=comm)
    beam = fg.Beam(mesh, fg.Section(STIFFNESS, INERTIA))
    (s,) = SpatialCoordinate(mesh)
    across = 2.0 * (s - 1) + 1 + 3 * sin(3 * pi * s / 2)
    beam.velocity.interpolate(as_vector([0.3, 0.2 * s, 2.0, 0.5, across, sin(pi * s / 2)]))
    return beam


def wait(comm) -> None:
    """A barrier that leaves the core to others."""
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(1e-3)


def compare(method, cells: int) -> None:
    """Seconds a step with one rank and with all, in turns: the least of some rounds."""
    world, first = COMM_WORLD, COMM_WORLD.rank == 0
    together = method(flying(cells, world), 1e-3)
    together.advance(2)
    alone = method(flying(cells, COMM_SELF), 1e-3) if first else None
    if first:
        alone.advance(2)
    best = [float("inf")] * 2
    for _ in range(ROUNDS):
        if first:
            begin = time.perf_counter()
            alone.advance(STEPS)
            best[0] = min(best[0], (time.perf_counter() - begin) / STEPS)
        wait(world)
        world.Barrier()
        begin = time.perf_counter()
        together.advance(STEPS)
        spent = world.allreduce(time.perf_counter() - begin, op=MPI.MAX)
        best[1] = min(best[1], spent / STEPS)
    energies = [together.system.energy(), alone.system.energy() if first else 0.0]
    PETSc.Sys.Print(
        f"{method.__name__}, {cells} cells: {1e3 * best[0]:.2f} ms a step on one rank, "
        f"{1e3 * best[1]:.2f} on {world.size}: {best[0] / best[1]:.2f}; energies {energies}"
    )


for size in SIZES:
    for stepper in (fg.EnergyMomentum, fg.GeneralizedAlpha):
        compare(stepper, size)
