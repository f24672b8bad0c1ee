"""Springs let go elsewhere on each rank: ``ensemble_gradients.py FILE`` writes results (.npz)."""

import sys

import numpy as np
from firedrake import COMM_WORLD, Ensemble, Function
from firedrake.adjoint import EnsembleReducedFunctional
from verification.springs import reduced_misfit

#: The start on each rank, and what all take for the stiffness.
STARTS = (0.4, 0.7)
GUESS, OTHER = np.array([1.2, 1.0, 1.7]), np.array([1.4, 1.2, 1.0])


def main(path):
    ensemble = Ensemble(COMM_WORLD, 1)
    start = STARTS[ensemble.ensemble_rank]
    own = reduced_misfit(GUESS, start, ensemble.comm)
    reduced = EnsembleReducedFunctional(own.functional, own.controls, ensemble)
    elsewhere = Function(own.controls[0].control)
    elsewhere.dat.data_wo[...] = OTHER
    out = {"value": reduced(elsewhere)}
    (bar,) = reduced.derivative()
    out["slopes"] = np.array(bar.dat.data_ro)
    if COMM_WORLD.rank == 0:
        np.savez(path, **out)


if __name__ == "__main__":
    main(sys.argv[1])
