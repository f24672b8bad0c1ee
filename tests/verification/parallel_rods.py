"""Runs of beams in configuration form on any number of ranks; results in order of the arc length.

As a script, ``parallel_rods.py FILE`` writes them to FILE (.npz).
"""

from __future__ import annotations

import sys

import numpy as np
from firedrake import COMM_WORLD, Constant, SpatialCoordinate
from verification.beams import STIFFNESS, set_smooth, uneven_mesh
from verification.parallel_beam import gathered
from verification.rod_cases import FORCE, GRAVITY, SEPARATE
from ways import check_way

import fdgeom as fg

#: Name: stepper class, whether compiled, how the left end is held, whether the section varies.
CASES = {
    "energy-momentum": (fg.EnergyMomentum, None, "clamped", False),
    "energy-momentum, varying": (fg.EnergyMomentum, None, "free", True),
    "generalized-alpha": (fg.GeneralizedAlpha, None, "clamped", False),
    "generalized-alpha, varying": (fg.GeneralizedAlpha, None, "free", True),
    "variational": (fg.VariationalIntegrator, True, "pinned", False),
    "variational snes": (fg.VariationalIntegrator, False, "pinned", False),
    "variational, varying": (fg.VariationalIntegrator, True, "free", True),
}


def run(name):
    cls, compiled, left, varying = CASES[name]
    mesh = uneven_mesh(12)
    (s,) = SpatialCoordinate(mesh)
    section, stiffness = fg.Section(STIFFNESS, SEPARATE), Constant(STIFFNESS)
    if varying:
        section = fg.Section((1 - 0.3 * s) * stiffness, (1 - 0.2 * s) * Constant(SEPARATE))
    loads = [fg.Gravity(GRAVITY), fg.Load(force=FORCE, at="right")]
    beam = set_smooth(fg.Beam(mesh, section, left=left, loads=loads))
    if left != "free":
        nodes = beam.velocity.function_space().boundary_nodes(1)
        beam.velocity.dat.data_wo_with_halos[nodes] = 0.0
    stepper, start = cls(beam, 1e-2, compiled=compiled), gathered(beam.position)
    stepper.advance(3)
    stiffness.assign(1.2 * STIFFNESS)  # of a section that varies: it follows
    stepper.advance(17)
    check_way(stepper, compiled is not False)
    assert np.abs(gathered(beam.position) - start).max() > 1e-2
    out = {
        "position": gathered(beam.position),
        "orientation": gathered(beam.orientation),
        "velocity": gathered(beam.velocity),
        "strain": gathered(beam.strain),
        "momentum": gathered(beam.momentum),
        "energy": np.array([stepper.system.energy(), beam.energy()]),
        "angular": beam.angular_momentum(),
    }
    return {f"{name}: {key}": value for key, value in out.items()}


def joined(cls):
    """Two beams, hinged; the upper one hangs on a ball joint."""
    section = fg.Section(STIFFNESS, SEPARATE)
    rest = Constant(np.zeros(6))
    upper, lower = (
        fg.Beam(uneven_mesh(6), section, strain_measure="directors", reference_strain=rest)
        for _ in range(2)
    )
    lower.reconstruct(position=(1.5, 0, 0))
    joints = [
        fg.Spherical(fg.ground, upper.left),
        fg.Revolute(upper.right, lower.left, axis=(0, 1, 0)),
    ]
    motion = fg.Assembly(beams=[upper, lower], joints=joints, loads=fg.Gravity((0, 0.2, -1.0)))
    stepper = cls(motion, 1e-2)
    stepper.advance(10)
    rest.assign([0, 0.3, 0, 0.01, 0, 0])  # bends and stretches both
    stepper.advance(10)
    check_way(stepper)
    found = {
        "upper": gathered(upper.position),
        "lower": gathered(lower.position),
        "velocity": gathered(lower.velocity),
        "energy": np.array([motion.energy(), motion.gap() < 1e-12]),
    }
    return {f"joined, {cls.__name__}: {key}": value for key, value in found.items()}


def failing():
    """A step that fails for one rank fails for all, and all keep their state."""
    steps = []
    for cls, dt in ((fg.EnergyMomentum, 1e3), (fg.VariationalIntegrator, 1.0)):
        beam = set_smooth(fg.Beam(uneven_mesh(12), fg.Section(STIFFNESS, SEPARATE)))
        try:
            cls(beam, dt).advance(3000)
        except fg.StepFailed as failure:
            steps.append(failure.step)
    # The last node turns its cell by more than 90 degrees.
    soft = fg.Section(np.diag([1e-9] * 3 + [1e-3] * 3), SEPARATE)
    for cls, compiled in ((fg.EnergyMomentum, True), (fg.VariationalIntegrator, False)):
        beam = fg.Beam(uneven_mesh(12), soft)
        last = beam.velocity.function_space().boundary_nodes(2)
        beam.velocity.dat.data_wo_with_halos[last, 0] = 100.0
        try:
            cls(beam, 1.0, compiled=compiled).advance(3)
        except fg.StepFailed as failure:
            steps.append(failure.step + float("turn against one another" in failure.reason) / 2)
    return {"failures": np.array(steps, dtype=float)}


def everything():
    results = {}
    for name in CASES:
        results |= run(name)
    for cls in (fg.EnergyMomentum, fg.VariationalIntegrator):
        results |= joined(cls)
    return results | failing()


if __name__ == "__main__":
    results = everything()
    if COMM_WORLD.rank == 0:
        np.savez(sys.argv[1], **results)
