"""Seconds from the construction of a stepper to its first step done: python startup.py WAY (JSON).

The caches are those of the environment: with empty ones everything is compiled first.
"""

from __future__ import annotations

import json
import sys
import time

from case import start, step
from fdgeom_beam import LOCAL_NEWTON, Values, make_beam

import fdgeom as fg

CELLS = 100
#: Arguments of the stepper, and steps of the first call.
WAYS = {
    "advance(n)": ({}, 8),
    "SNES LocalNewton": ({"compiled": False, "solver_parameters": LOCAL_NEWTON}, 1),
    "SNES": ({"compiled": False}, 1),
}

if __name__ == "__main__":
    options, steps = WAYS[sys.argv[1]]
    zero = time.perf_counter()
    beam = make_beam(CELLS)
    Values(beam, CELLS).put(start(CELLS))
    first = time.perf_counter()
    fg.PoissonIntegrator(beam, step(CELLS), **options).advance(steps)
    last = time.perf_counter()
    print(json.dumps({"beam": first - zero, "stepper": last - first}))
