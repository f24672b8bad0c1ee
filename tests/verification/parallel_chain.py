"""Runs of an inextensible chain on any number of ranks, results in order along the chain.

As a script, ``parallel_chain.py FILE`` writes them to FILE (.npz).
"""

from __future__ import annotations

import sys

import numpy as np
from firedrake import COMM_WORLD, Function, FunctionSpace, SpatialCoordinate
from verification.constrained_systems import chain

import fdgeom as fg


def along(function):
    """All values in the order of the chain, on every rank."""
    space = function.function_space()
    element = space.ufl_element()
    scalar = FunctionSpace(space.mesh(), element.sub_elements[0] if space.value_shape else element)
    where = Function(scalar).interpolate(SpatialCoordinate(space.mesh())[0]).dat.data_ro
    pieces = function.comm.allgather((np.array(where), np.array(function.dat.data_ro)))
    where, values = (np.concatenate(x) for x in zip(*pieces, strict=True))
    return values[np.argsort(where)]


def run(cells, lumped, cls):
    system = chain(cells, lumped=lumped)
    stepper = cls(system, 0.2 / cells)
    stepper.advance(5)
    # A projection from a place off the constraint.
    out = {"q": along(system.q), "p": along(system.p), "tension": along(system.multiplier)}
    # Not the Newton iterations: one rank runs compiled steps, several PETSc, which pivots.
    out["energy"] = np.array([system.energy()])
    defects = [system.constraint_defect()]
    if cls is fg.RATTLE:
        defects.append(system.velocity_defect())
    out["defects are round-off"] = np.array([d < 1e-14 * cells for d in defects], dtype=float)
    system.q.dat.data_wo[...] *= 1.01
    system.project()
    out["projected"] = along(system.q)
    return {f"{cls.__name__} {cells} {lumped}: {key}": value for key, value in out.items()}


def everything():
    # On several ranks 40 cells by an LU, 400 by a Schur complement, a full mass matrix by MUMPS.
    cases = ((40, True, fg.SHAKE), (400, True, fg.RATTLE), (40, False, fg.RATTLE))
    results = {}
    for case in cases:
        results |= run(*case)
    return results


if __name__ == "__main__":
    results = everything()
    if COMM_WORLD.rank == 0:
        np.savez(sys.argv[1], **results)
