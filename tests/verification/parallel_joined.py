"""Beams with joints on any number of ranks: ``parallel_joined.py FILE`` writes results (.npz)."""

import sys

import numpy as np
from firedrake import COMM_WORLD
from verification.moving_beams import flexible_double_pendulum, spaghetti
from verification.parallel_beam import gathered

import fdgeom as fg


def main(path):
    out = {}
    system = flexible_double_pendulum(6, 10)
    start = system.energy()
    stepper = fg.GeneralizedAlpha(system, 1e-3, fg.hamel_alpha(0.8))
    stepper.advance(50)
    stepper.advance(150)
    for k, beam in enumerate(system.beams):
        for f in (beam.position, beam.orientation, beam.velocity, beam.strain):
            out[f"{f.name()} {k}"] = gathered(f)
    out["energies"] = np.array([start, system.energy(), system.gap(), system.kinetic_energy()])
    out["force"] = system.force(system.joints.joints[1])
    out["moment"] = system.moment(system.joints.joints[1], "first")
    beam = spaghetti(20)
    fg.GeneralizedAlpha(beam, 0.01, fg.hamel_alpha(0.9)).advance(200)
    out["spaghetti"] = gathered(beam.position)
    if COMM_WORLD.rank == 0:
        np.savez(path, **out)


if __name__ == "__main__":
    main(sys.argv[1])
