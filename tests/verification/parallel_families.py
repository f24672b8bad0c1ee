"""One small case of each family on any number of ranks, from the scripts of the families.

As a script, ``parallel_families.py FILE`` writes them to FILE (.npz).
"""

from __future__ import annotations

import sys

import numpy as np
from firedrake import COMM_WORLD
from statics import parallel_statics
from verification import (
    parallel_beam,
    parallel_bodies,
    parallel_chain,
    parallel_gradients,
    parallel_rods,
)

import fdgeom as fg

#: Family: its results by name.
FAMILIES = {
    "bracket": lambda: parallel_beam.run("symmetric"),
    "energy-momentum": lambda: parallel_rods.run("energy-momentum"),
    "variational": lambda: parallel_rods.run("variational"),
    "joints": lambda: parallel_rods.joined(fg.EnergyMomentum),
    "constraints": lambda: parallel_chain.run(40, True, fg.SHAKE),
    "bodies, generalized-alpha": lambda: parallel_bodies.run("SE3", 1, True),
    "statics and modes": parallel_statics.bent,
    "gradients": parallel_gradients.local,
    "waves in the plane": parallel_gradients.in_the_plane,
}


def everything():
    return {
        f"{family} | {name}": np.asarray(value)
        for family, run in FAMILIES.items()
        for name, value in run().items()
    }


if __name__ == "__main__":
    results = everything()
    if COMM_WORLD.rank == 0:
        np.savez(sys.argv[1], **results)
