"""Milliseconds a step of the integrators on the group, and of Exudyn where it can be imported.

    python tests/benchmarks/rods.py [--cells 100] [--seconds 0.5] [--json]

A free beam flies, turns and vibrates in a plane: length 2, EA = GA = 1e5, EI = 100, mass per length 1,
rotary inertia 1e-2. Each method runs the same time with its own step. Energy error: the largest
deviation from the start, sampled fifty times. Exudyn's energies are computed here from its
coordinates, with linear velocities and the strains of its elements of two nodes: the one in the plane
takes them at one point, the spatial one from the logarithm of the nodes' relative pose.
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


def ours(method, dt, **options):
    """Seconds of a whole run, the energy error of another one that is looked at, steps."""
    steps = round(args.seconds / dt / SAMPLES) * SAMPLES
    stepper = method(our_beam(), dt, **options)
    stepper.advance()  # compiles
    begin = time.perf_counter()
    stepper.advance(steps)
    spent = time.perf_counter() - begin
    stepper = method(our_beam(), dt, **options)
    first, worst = stepper.system.energy(), 0.0
    for _ in range(SAMPLES):
        stepper.advance(steps // SAMPLES)
        worst = max(worst, abs(stepper.system.energy() / first - 1))
    return spent, worst, steps


class PlaneElement:
    """Exudyn's geometrically exact element in the plane; a node has a place and an angle."""

    name = "in the plane"
    unknowns = (0, 1, 2)  # of a node: place along and across, angle

    def add_node(self, mbs, item, s, velocity):
        return mbs.AddNode(item.NodeRigidBody2D(referenceCoordinates=[s, 0, 0],
                                                initialVelocities=velocity))  # fmt: skip

    def add(self, mbs, exu, item, nodes, h):
        mbs.AddObject(item.ObjectBeamGeometricallyExact2D(
            nodeNumbers=nodes, physicsLength=h, physicsMassPerLength=1.0,
            physicsCrossSectionInertia=1e-2, physicsBendingStiffness=100.0,
            physicsAxialStiffness=1e5, physicsShearStiffness=1e5))  # fmt: skip

    def stretch(self, q, h):
        """Axial stretch and shear at the middle of each cell."""
        middle, slope = (q[:-1, 2] + q[1:, 2]) / 2, np.diff(q, axis=0) / h
        cos, sine = np.cos(middle), np.sin(middle)
        return cos * slope[:, 0] + sine * slope[:, 1], cos * slope[:, 1] - sine * slope[:, 0]


class SpatialElement:
    """Exudyn's spatial element, interpolated on SE(3); its nodes turn by rotation vectors."""

    name = "spatial"
    unknowns = (0, 1, 5)

    def add_node(self, mbs, item, s, velocity):
        along, across, turn = velocity
        return mbs.AddNode(item.NodeRigidBodyRotVecLG(
            referenceCoordinates=[s, 0, 0, 0, 0, 0],
            initialVelocities=[along, across, 0, 0, 0, turn]))  # fmt: skip

    def add(self, mbs, exu, item, nodes, h):
        section = exu.BeamSection()
        section.massPerLength, section.inertia = 1.0, 1e-2 * np.eye(3)
        section.stiffnessMatrix = np.diag([1e5, 1e5, 1e5, 100.0, 100.0, 100.0])
        element = item.ObjectBeamGeometricallyExact(
            nodeNumbers=nodes, length=h, sectionData=section
        )
        mbs.AddObject(element)

    def stretch(self, q, h):
        """The same from the logarithm of the relative pose, which is constant in a cell."""
        step, half = np.diff(q, axis=0) / h, np.diff(q[:, 2]) / 2
        cos, sine = np.cos(q[:-1, 2]), np.sin(q[:-1, 2])
        x, y = cos * step[:, 0] + sine * step[:, 1], cos * step[:, 1] - sine * step[:, 0]
        ratio = 1 / np.sinc(half / np.pi) * np.cos(half)
        return ratio * x + half * y, ratio * y - half * x


def exudyn_beam(element):
    """The same beam of Exudyn's elements."""
    import exudyn as exu
    from exudyn import itemInterface as item

    warnings.simplefilter("ignore", DeprecationWarning)  # its names change between versions
    mbs, h, nodes = exu.SystemContainer().AddSystem(), LENGTH / args.cells, []
    for s in np.linspace(0, LENGTH, args.cells + 1):
        speed = float(2.0 * (s - 1) + 1 + 3 * np.sin(3 * np.pi * s / LENGTH))
        nodes.append(element.add_node(mbs, item, s, [0.5, speed, 2.0]))
    for pair in pairwise(nodes):
        element.add(mbs, exu, item, list(pair), h)
    mbs.Assemble()
    return exu, mbs


def exudyn_energy(element, coordinates, velocities):
    """Kinetic energy of linear shapes, elastic energy of the element's strains."""
    h, n = LENGTH / args.cells, args.cells + 1
    q, v = (values.reshape(n, -1)[:, element.unknowns] for values in (coordinates, velocities))
    q = q + np.stack([np.linspace(0, LENGTH, n), *np.zeros((2, n))], 1)
    a, b, weights = v[:-1], v[1:], np.array([1.0, 1.0, 1e-2])
    kinetic = h / 6 * np.sum(weights * (a * a + a * b + b * b))
    axial, shear = element.stretch(q, h)
    turn = np.diff(q[:, 2]) / h
    return kinetic + h / 2 * np.sum(1e5 * ((axial - 1) ** 2 + shear**2) + 100 * turn**2)


def exudyn(element, dt, radius):
    """Its generalized-α (radius 1: damps least); its own timer excludes reading the model."""
    exu, mbs = exudyn_beam(element)
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
            now = state.GetODE2Coordinates(), state.GetODE2Coordinates_t()
            energies.append(exudyn_energy(element, *now))
        return True

    # The time without, the energies with the function that looks at them.
    begin = time.perf_counter()
    mbs.SolveDynamic(settings)
    spent = time.perf_counter() - begin
    exu, mbs = exudyn_beam(element)
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
        rows += [(f"Exudyn {element.name}, radius {r}", exudyn(element, dt, r))
                 for element in (PlaneElement(), SpatialElement())
                 for dt, r in ((1e-2, 1.0), (1e-3, 1.0), (1e-3, 0.8))]  # fmt: skip
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
