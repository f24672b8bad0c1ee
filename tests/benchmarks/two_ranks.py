"""One rank against two in one run: mpiexec -n 2 python two_ranks.py CELLS... (prints JSON)."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from case import State, difference
from fdgeom_beam import CompiledBeam, SharedBeam
from firedrake import COMM_SELF, COMM_WORLD
from measure import seconds_per_step, slice_of
from mpi4py import MPI
from numpy_beam import developed


def wait(comm) -> None:
    """A barrier that leaves the core to others."""
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(1e-3)


def whole(shared: SharedBeam) -> State:
    """The state from the parts of all ranks."""
    comm, parts = shared.beam.mesh.comm, vars(shared.values.take())
    return State(**{name: comm.allreduce(np.nan_to_num(x)) for name, x in parts.items()})


def compare(cells: int, rounds: int, seconds: float) -> dict:
    """Seconds per step with one rank and with two, in turns."""
    world, first = COMM_WORLD, COMM_WORLD.rank == 0
    together = SharedBeam(cells, world)
    compiled = {"two": CompiledBeam(together)}
    alone = SharedBeam(cells, COMM_SELF) if first else None
    if first:
        compiled["one"] = CompiledBeam(alone)
    wait(world)
    steps = max(1, round(seconds / seconds_per_step(compiled["one"], seconds))) if first else 0
    steps = world.bcast(steps)
    state = developed(cells)
    for program in compiled.values():
        program.restart(state)
    times: dict[str, list[float]] = {"one": [], "two": []}
    for _ in range(rounds):
        if first:
            times["one"].append(slice_of(compiled["one"], steps, time.perf_counter)[0] / steps)
        wait(world)
        world.Barrier()
        own = slice_of(compiled["two"], steps, time.perf_counter)[0] / steps
        times["two"].append(world.allreduce(own, op=MPI.MAX))
    result = {"cells": cells, "two": min(times["two"])}
    seen = whole(together)
    if first:
        result |= {"one": min(times["one"]), "difference": difference(seen, whole(alone))}
    return result


if __name__ == "__main__":
    rounds, seconds, *sizes = sys.argv[1:]
    results = [compare(int(n), int(rounds), float(seconds)) for n in sizes]
    if COMM_WORLD.rank == 0:
        print(json.dumps(results))
