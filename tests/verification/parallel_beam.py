"""Runs of a clamped, tapered beam on any number of ranks; the results in order of the arc length.

As a script, ``parallel_beam.py FILE`` writes them to FILE (.npz).
"""

from __future__ import annotations

import sys

import numpy as np
from firedrake import (
    COMM_WORLD,
    Constant,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    assemble,
)
from firedrake import Function as F
from verification.beams import INERTIA, STIFFNESS, set_smooth, uneven_mesh

import fdgeom as fg

S = fg.SymmetricPoissonIntegrator
#: Name: stepper class, whether compiled, degree, how the left end is held.
CASES = {
    "poisson": (fg.PoissonIntegrator, True, 1, "clamped"),
    "poisson snes": (fg.PoissonIntegrator, False, 1, "clamped"),
    "symmetric": (S, True, 1, "clamped"),
    "symmetric degree 2": (S, True, 2, "free"),
    "composition snes": (fg.Composition(S), False, 1, "pinned"),
    "midpoint": (fg.ImplicitMidpoint, None, 1, "clamped"),
}


def gathered(function):
    """All values in order of the arc length, on every rank."""
    space = function.function_space()
    scalar = FunctionSpace(space.mesh(), space.ufl_element().sub_elements[0])
    (s,) = SpatialCoordinate(space.mesh())
    where = F(scalar).interpolate(s).dat.data_ro
    pieces = function.comm.allgather((np.array(where), np.array(function.dat.data_ro)))
    where, values = (np.concatenate(x) for x in zip(*pieces, strict=True))
    return values[np.argsort(where)]


def release(beam):
    """Turn the momentum of the left end off, as a held end asks."""
    nodes = beam.momentum.function_space().boundary_nodes(1)
    beam.momentum.dat.data_wo_with_halos[nodes] = 0.0


def run(name):
    cls, compiled, degree, left = CASES[name]
    mesh = uneven_mesh(12)
    (s,) = SpatialCoordinate(mesh)
    section = fg.Section((1 - 0.3 * s) * Constant(STIFFNESS), (1 - 0.2 * s) * Constant(INERTIA))
    beam = set_smooth(fg.Beam(mesh, section, degree=degree, left=left))
    release(beam)
    stepper = cls(beam, 2e-3, compiled=compiled)
    # Both layouts of the compiled steps: a few steps at once, and many.
    stepper.advance(3)
    stepper.advance(27)
    out = {
        "strain": gathered(beam.strain),
        "momentum": gathered(beam.momentum),
        "position": gathered(beam.position),
        "orientation": gathered(beam.orientation),
        "energies": np.array([beam.kinetic_energy(), beam.potential_energy(), beam.energy()]),
        "linear": beam.linear_momentum(),
        "angular": beam.angular_momentum(),
        "held energy form": np.array([assemble(beam.energy_form())]),
        "antisymmetry": np.array([beam.antisymmetry_defect() < 1e-13], dtype=float),
    }
    beam.project()
    out["projected"] = gathered(beam.strain)
    return {f"{name}: {key}": value for key, value in out.items()}


def long_beam():
    """So long that compiled steps go block by block, on every rank from its ghosts."""
    cells = 13000
    mesh = IntervalMesh(cells, 1.5)
    beam = set_smooth(fg.Beam(mesh, fg.Section(STIFFNESS, INERTIA), left="clamped"))
    release(beam)
    stepper = fg.PoissonIntegrator(beam, 5e-6, compiled=True)
    assert mesh.comm.size == 1 or stepper.ready_steps().unit.blocks
    stepper.advance(40)
    return {f"long: {f.name()}": gathered(f) for f in (beam.strain, beam.momentum, beam.position)}


def failing():
    """A step that fails on one rank's node only fails on all."""
    beam = set_smooth(fg.Beam(uneven_mesh(12), fg.Section(STIFFNESS, INERTIA)))
    reasons = []
    for compiled in (True, False):
        stepper = fg.PoissonIntegrator(beam, 50.0, compiled=compiled)
        try:
            stepper.advance()
        except fg.StepFailed as failure:
            reasons.append(failure.step)
    return {"failures": np.array(reasons, dtype=float), "left": gathered(beam.momentum)}


def everything():
    results = {}
    for name in CASES:
        results |= run(name)
    return results | long_beam() | failing()


if __name__ == "__main__":
    results = everything()
    if COMM_WORLD.rank == 0:
        np.savez(sys.argv[1], **results)
