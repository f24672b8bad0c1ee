"""Milliseconds a step of the integrators on the group, and of Exudyn where it can be imported.

    python tests/benchmarks/rods.py [--cells 100] [--seconds 0.5] [--json]

A free beam flies, turns and vibrates in a plane: length 2, EA = GA = 1e5, EI = 100, mass per length 1,
rotary inertia 1e-2. Each method runs the same time with its own step. Energy error: the largest
deviation from the start, sampled fifty times. Exudyn's energy is computed here from its coordinates,
with the mass matrix and the strains of its own element (two nodes, one point).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
import warnings
from itertools import pairwise
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--cells", type=int, default=100)
parser.add_argument("--seconds", type=float, default=0.5, help="time to simulate")
parser.add_argument("--json", action="store_true", help="print the numbers alone, as JSON")
# PETSc reads the command line as well.
args, sys.argv[1:] = parser.parse_known_args()
if args.seconds < 0.5:
    parser.error("--seconds must be 0.5 at least: fifty samples of steps of 0.01")

import numpy as np  # noqa: E402
from firedrake import IntervalMesh, PETSc, SpatialCoordinate, as_vector, pi, sin  # noqa: E402

import fdgeom as fg  # noqa: E402

LENGTH, SAMPLES = 2.0, 50
STIFFNESS = np.diag([100.0, 100.0, 100.0, 1e5, 1e5, 1e5])
INERTIA = np.diag([1e-2, 1e-2, 1e-2, 1.0, 1.0, 1.0])


def start(s):
    """Velocity in the plane at rest: across the beam, a turn, a drift and a vibration."""
    return 2.0 * (s - LENGTH / 2) + 1.0 + 3.0 * sin(3 * pi * s / LENGTH)


def our_beam():
    mesh = IntervalMesh(args.cells, LENGTH)
    beam = fg.Beam(mesh, fg.Section(STIFFNESS, INERTIA))
    (s,) = SpatialCoordinate(mesh)
    beam.velocity.interpolate(as_vector([0, 0, 2.0, 0.5, start(s), 0]))
    return beam


def timed(advance, energy, steps):
    """Seconds of all steps, and the largest deviation of the energy."""
    first, spent, worst = energy(), 0.0, 0.0
    for _ in range(SAMPLES):
        begin = time.perf_counter()
        advance(steps // SAMPLES)
        spent += time.perf_counter() - begin
        worst = max(worst, abs(energy() / first - 1))
    return spent, worst


def ours(method, dt, **options):
    stepper = method(our_beam(), dt, **options)
    stepper.advance()  # compiles
    steps = round(args.seconds / dt / SAMPLES) * SAMPLES
    return (*timed(stepper.advance, stepper.system.energy, steps), steps)


def exudyn_beam():
    """The same beam of geometrically exact elements in the plane."""
    import exudyn as exu
    from exudyn import itemInterface as item

    warnings.simplefilter("ignore", DeprecationWarning)  # its names change between versions
    system = exu.SystemContainer()
    mbs, h, nodes = system.AddSystem(), LENGTH / args.cells, []
    for s in np.linspace(0, LENGTH, args.cells + 1):
        speed = float(2.0 * (s - 1) + 1 + 3 * np.sin(3 * np.pi * s / LENGTH))
        nodes.append(
            mbs.AddNode(item.NodeRigidBody2D(referenceCoordinates=[s, 0, 0],
                                             initialVelocities=[0.5, speed, 2.0]))
        )  # fmt: skip
    for pair in pairwise(nodes):
        mbs.AddObject(item.ObjectBeamGeometricallyExact2D(
            nodeNumbers=list(pair), physicsLength=h, physicsMassPerLength=1.0,
            physicsCrossSectionInertia=1e-2, physicsBendingStiffness=100.0,
            physicsAxialStiffness=1e5, physicsShearStiffness=1e5))  # fmt: skip
    mbs.Assemble()
    return exu, mbs


def exudyn_energy(coordinates, velocities):
    """Kinetic energy of linear shapes, elastic energy of one point."""
    h = LENGTH / args.cells
    q, v = coordinates.reshape(-1, 3), velocities.reshape(-1, 3)
    q = q + np.stack([np.linspace(0, LENGTH, args.cells + 1), *np.zeros((2, args.cells + 1))], 1)
    a, b, weights = v[:-1], v[1:], np.array([1.0, 1.0, 1e-2])
    kinetic = h / 6 * np.sum(weights * (a * a + a * b + b * b))
    middle, slope = (q[:-1, 2] + q[1:, 2]) / 2, np.diff(q, axis=0) / h
    axial = np.cos(middle) * slope[:, 0] + np.sin(middle) * slope[:, 1] - 1
    shear = -np.sin(middle) * slope[:, 0] + np.cos(middle) * slope[:, 1]
    elastic = h / 2 * np.sum(1e5 * (axial**2 + shear**2) + 100 * slope[:, 2] ** 2)
    return kinetic + elastic


def exudyn(dt, radius):
    """Its generalized-α (radius 1: damps least); its own timer excludes reading the model."""
    exu, mbs = exudyn_beam()
    settings = exu.SimulationSettings()
    steps = round(args.seconds / dt / SAMPLES) * SAMPLES
    integration = settings.timeIntegration
    integration.numberOfSteps, integration.endTime = steps, steps * dt
    integration.generalizedAlpha.spectralRadius = radius
    integration.newton.useModifiedNewton = True
    integration.verboseMode = 0
    settings.solutionSettings.writeSolutionToFile = False
    settings.linearSolver.solverType = exu.LinearSolverType.EigenSparse
    energies = []

    def watch(mbs, t):
        if round(t / dt) % (steps // SAMPLES) == 0:
            state = mbs.systemData
            energies.append(exudyn_energy(state.GetODE2Coordinates(), state.GetODE2Coordinates_t()))
        return True

    # The time without, the energies with the function that looks at them.
    begin = time.perf_counter()
    mbs.SolveDynamic(settings)
    spent = time.perf_counter() - begin
    exu, mbs = exudyn_beam()
    mbs.SetPreStepUserFunction(watch)
    mbs.SolveDynamic(settings)
    return spent, np.abs(np.array(energies) / energies[0] - 1).max(), steps


def measure() -> list[tuple]:
    """For each method: its name, step, milliseconds a step, seconds a second, energy error."""
    rows = [
        ("VariationalIntegrator, compiled", ours(fg.VariationalIntegrator, 5e-5)),
        ("VariationalIntegrator, SNES", ours(fg.VariationalIntegrator, 5e-5, compiled=False)),
        ("EnergyMomentum", ours(fg.EnergyMomentum, 1e-3)),
        ("EnergyMomentum", ours(fg.EnergyMomentum, 1e-2)),
        ("GeneralizedAlpha", ours(fg.GeneralizedAlpha, 1e-3)),
    ]
    with contextlib.suppress(ImportError):
        rows += [(f"Exudyn, radius {r}", exudyn(dt, r)) for dt, r in
                 ((1e-2, 1.0), (1e-3, 1.0), (1e-3, 0.8))]  # fmt: skip
    return [
        (name, args.seconds / steps, 1e3 * spent / steps, spent / args.seconds, float(error))
        for name, (spent, error, steps) in rows
    ]


def main() -> None:
    rows = measure()
    if args.json:
        PETSc.Sys.Print(json.dumps(rows))
        return
    if not any(name.startswith("Exudyn") for name, *_ in rows):
        PETSc.Sys.Print("Exudyn is not installed")
    for name, dt, step, second, error in rows:
        PETSc.Sys.Print(
            f"{name:34} dt = {dt:7.1e}: {step:8.4f} ms a step, "
            f"{second:8.3f} s a second, energy error {error:.1e}"
        )


if __name__ == "__main__":
    main()
