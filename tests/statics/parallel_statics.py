"""Statics and modes on any number of ranks; as a script, writes them to the file given (.npz)."""

from __future__ import annotations

import sys

import numpy as np
from firedrake import COMM_WORLD, IntervalMesh, as_vector, pi, sin
from statics.rod_cases import arch, bend, cantilever, section
from verification.parallel_beam import gathered

import fdgeom as fg


def everything() -> dict:
    """All results by name, the same on every rank."""
    out = {}
    beam = bend(12)
    statics = fg.StaticEquilibrium(beam)
    statics.solve(steps=2)
    out["bend"], out["turned"] = gathered(beam.position), gathered(beam.orientation)
    out["stress"] = gathered(statics.stress())
    out["reaction"] = np.concatenate(statics.reactions()["left"])
    out["iterations"] = statics.solver_stats()["newton_iterations"]
    out["modes"] = fg.VibrationModes(beam, 5).eigenvalues

    beam = arch(12)
    statics = fg.StaticEquilibrium(beam)
    out["path"] = [statics.follow(0.1) for _ in range(12)]
    out["arch"] = gathered(beam.position)

    beam = cantilever(12, 1.0, EA=1e4)
    beam.loads = (fg.Load(force=(-1.0, 0, 0), at="right"),)
    statics = fg.StaticEquilibrium(beam)
    statics.follow(1e-3)
    out["buckling"] = [p.load for p in statics.points]
    out["multiplicity"] = [p.multiplicity for p in statics.points]

    beam = fg.Beam(
        IntervalMesh(9, 1.0),
        section(1e4, 1e4, 1.0, 1.0),
        left="clamped",
        right=fg.GivenPose(position=lambda t: as_vector([1 - 0.3 * t, 0.1 * sin(pi * t), 0.2 * t])),
        loads=fg.Gravity(lambda s, t: as_vector([0, 0, -s])),
    )
    statics = fg.StaticEquilibrium(beam)
    statics.solve(time=1.0, steps=10)
    out["given"] = gathered(beam.position)
    # A load that is too much for one step must fail on all ranks, and leave all as it was.
    beam.loads = ()
    strict = fg.StaticEquilibrium(beam, solver_parameters={"snes_max_it": 1})
    try:
        strict.solve(time=0.1)
        out["failed"] = 0
    except fg.StepFailed:
        out["failed"] = 1
    out["kept"] = gathered(beam.position)
    return out


if __name__ == "__main__":
    results = everything()
    if COMM_WORLD.rank == 0:
        np.savez(sys.argv[1], **results)
