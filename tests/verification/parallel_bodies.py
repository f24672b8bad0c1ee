"""Heavy tops on any number of ranks, results in the order of their cells.

As a script, ``parallel_bodies.py FILE`` writes them to FILE (.npz).
"""

from __future__ import annotations

import sys

import numpy as np
from firedrake import COMM_WORLD, assemble
from verification.numpy_bodies import SPIN
from verification.rigid_body_systems import heavy_top, numbers
from ways import check_way

import fdgeom as fg


def in_order(function):
    """All values in the order of the cells, on every rank."""
    mine = numbers(function.function_space().mesh())
    pieces = function.comm.allgather((mine, np.array(function.dat.data_ro)))
    where, values = (np.concatenate(x) for x in zip(*pieces, strict=True))
    return values[np.argsort(where)]


def run(kind, count, compiled):
    spins = np.linspace(0.4, 1.0, count)[:, None] * SPIN
    top = heavy_top(kind, count, spin=spins)
    # Off the joint and back, the same on any number of ranks.
    top.v.dat.data_wo[:, 3:] += 0.1 * (1 + numbers(top.mesh)[:, None])
    top.project()
    stepper = fg.GeneralizedAlpha(top, 1e-3, start="consistent", compiled=compiled)
    stepper.advance(10)
    # Its square overflows. A step that is only too long may fail or not, by round-off.
    stepper.dt = 1e160
    before = top.energy()
    try:
        stepper.advance()
    except fg.StepFailed:
        assert top.energy() == before
    else:
        raise AssertionError("a step of an infinite length was taken")
    stepper.dt = 5e-4
    stepper.advance(5)
    check_way(stepper, compiled)
    found = {name: in_order(f) for name, f in top.functions().items()}
    found["energy"] = np.array(top.energy())
    found["momentum"] = np.array([assemble(f) for f in top.momenta()["angular_momentum"]])
    assert top.constraint_defect() < 1e-14
    label = f"{kind} {count} {'compiled' if compiled else 'SNES'}"
    return {f"{label}: {name}": values for name, values in found.items()}


def everything():
    cases = [(kind, n, way) for kind in ("R3xSO3", "SE3") for n, way in ((1, True), (7, False))]
    results = {}
    for case in cases:
        results |= run(*case)
    return results


if __name__ == "__main__":
    results = everything()
    if COMM_WORLD.rank == 0:
        np.savez(sys.argv[1], **results)
