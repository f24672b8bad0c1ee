"""Implicit steps of beams, compiled and through PETSc, beside the explicit scheme in scalar C.

    python tests/benchmarks/implicit.py [--quick] [--json]

Ratios of one run, on one core: a step of each method at 100 cells over a step of the explicit scheme
by the program in C; what a cell costs an iteration at 10,000 cells over that at 100; a step through
PETSc over a compiled one, for one beam, a double pendulum, eight welded bars and a four-bar linkage;
an explicit step of two beams with two joints over one without; a thousand rods of 20 cells in one
assembly: how long making it takes, and a step and what a cell costs an iteration beside one long beam;
equilibria of a bent cantilever and of the welded bars, from one load to another, and points of their
paths. Times are those of the process, the least of several samples.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="not the long beam")
parser.add_argument("--json", action="store_true", help="print the numbers alone, as JSON")
# PETSc reads the command line as well.
args, sys.argv[1:] = parser.parse_known_args()

import numpy as np  # noqa: E402
from c_beam import CBeam, compile_program  # noqa: E402
from firedrake import IntervalMesh, PETSc, SpatialCoordinate, as_vector, pi, sin  # noqa: E402
from verification.bars import GRAVITY, double_pendulum, four_bar, net  # noqa: E402

import fdgeom as fg  # noqa: E402

STIFFNESS = np.diag([100.0, 100.0, 100.0, 1e5, 1e5, 1e5])
INERTIA = np.diag([1e-2, 1e-2, 1e-2, 1.0, 1.0, 1.0])
LENGTH, SAMPLES = 2.0, 5
METHODS = {"EnergyMomentum": fg.EnergyMomentum, "GeneralizedAlpha": fg.GeneralizedAlpha}


def flying(cells: int):
    """A free beam that flies, turns and vibrates in space."""
    mesh = IntervalMesh(cells, LENGTH)
    beam = fg.Beam(mesh, fg.Section(STIFFNESS, INERTIA))
    (s,) = SpatialCoordinate(mesh)
    across = 2.0 * (s - 1) + 1 + 3 * sin(3 * pi * s / LENGTH)
    beam.velocity.interpolate(as_vector([0.3, 0.2 * s, 2.0, 0.5, across, sin(pi * s / LENGTH)]))
    return beam


def seconds(advance, steps: int) -> float:
    """Of a step: the least of some samples."""
    found = []
    for _ in range(SAMPLES):
        begin = time.process_time()
        advance(steps)
        found.append((time.process_time() - begin) / steps)
    return min(found)


def implicit(method, system, steps: int, compiled: bool = True) -> tuple[float, float]:
    """Seconds a step, and iterations a step."""
    stepper = method(system, 1e-3, compiled=compiled)
    stepper.advance(2)  # compiles
    before = stepper.solver_stats()["newton_iterations"]
    spent = seconds(stepper.advance, steps)
    return spent, (stepper.solver_stats()["newton_iterations"] - before) / (SAMPLES * steps)


JOINED = (
    ("double pendulum", lambda: double_pendulum(60, 100), 160),
    ("welded bars", net, 48),
    ("four-bar", lambda: four_bar((20, 30, 30)), 80),
)


def cantilever():
    """A clamped beam of 100 cells, bent by a force at its tip."""
    load = fg.Load(force=(0.0, 5.0, 10.0), at="right")
    section = fg.Section(STIFFNESS, INERTIA)
    return fg.Beam(IntervalMesh(100, LENGTH), section, left="clamped", loads=load)


def equilibrium(system, compiled: bool) -> tuple[float, float]:
    """Seconds and iterations of a solve, warm, from nine tenths of the loads to all and back."""
    statics = fg.StaticEquilibrium(system, compiled=compiled)
    statics.solve(steps=4)
    before = statics.solver_stats()["newton_iterations"]

    def solve(times: int) -> None:
        for k in range(times):
            statics.solve(1.0 - 0.1 * ((k + 1) % 2))

    spent = seconds(solve, 10)
    return spent, (statics.solver_stats()["newton_iterations"] - before) / (10 * SAMPLES)


def along_a_path(system, compiled: bool) -> tuple[float, float]:
    """Seconds and iterations of a point, warm, by the arc length."""
    statics = fg.StaticEquilibrium(system, compiled=compiled)
    statics.follow(0.02, steps=2)
    before = statics.solver_stats()["newton_iterations"]

    def follow(points: int) -> None:
        for _ in range(points):
            statics.follow(0.02)

    spent = seconds(follow, 10)
    return spent, (statics.solver_stats()["newton_iterations"] - before) / (10 * SAMPLES)


def many_rods(rods: int) -> tuple[dict[str, float], list[tuple]]:
    """Seconds of making rods of 20 cells, an assembly of them and its stepper; its steps and another's.

    Of each of the two, the rods and one beam as long as all of them: seconds a step, one at a time
    and ten at a time, and iterations a step.
    """
    section, made = fg.Section(STIFFNESS, INERTIA), {}

    def timed(what: str, make):
        begin = time.process_time()
        found = make()
        made[what] = time.process_time() - begin
        return found

    def stepper_of(system) -> fg.EnergyMomentum:
        stepper = fg.EnergyMomentum(system, 1e-3, compiled=True)
        stepper.advance(1)  # compiles
        return stepper

    def beam(mesh):
        found = fg.Beam(mesh, section, strain_measure="directors")
        s = found.position.dat.data_ro[:, :1]
        found.velocity.dat.data_wo[:, 3:] = np.sin(2 * np.pi * s + [0.0, 1.0, 2.0])
        return found

    meshes = timed("meshes", lambda: [IntervalMesh(20, 1.0) for _ in range(rods)])
    beams = timed("beams", lambda: [beam(mesh) for mesh in meshes])
    assembly = timed("assembly", lambda: fg.Assembly(beams))
    unit = timed("stepper and its first step", lambda: stepper_of(assembly))
    long = stepper_of(beam(IntervalMesh(20 * rods, float(rods))))
    found = []
    for what, stepper in ((f"{rods} rods", unit), ("one beam as long", long)):
        before = stepper.solver_stats()["newton_iterations"]
        many, one = seconds(stepper.advance, 10), seconds(stepper.advance, 1)
        iterations = stepper.solver_stats()["newton_iterations"] - before
        found.append((what, one, many, iterations / (11 * SAMPLES)))
    return made, found


def explicit_joined(joints: bool, compiled: bool = True) -> float:
    """Seconds a step of the variational integrator, of two beams with two joints or without."""
    pendulum = double_pendulum(100, 60)
    system = pendulum if joints else fg.Assembly(pendulum.beams, loads=GRAVITY)
    stepper = fg.VariationalIntegrator(system, 1e-5, compiled=compiled)
    stepper.advance(2)  # compiles
    return seconds(stepper.advance, 2000 if compiled else 20)


EXPLICIT = (
    ("two beams, VariationalIntegrator", False, True),
    ("two joints, VariationalIntegrator", True, True),
    ("two joints, VariationalIntegrator, PETSc", True, False),
)
STILL = (
    ("cantilever", cantilever, 100),
    ("welded bars", lambda: net(fg.Gravity((0.0, 0.03, -0.98)), held=True), 48),
)


def measure() -> list[tuple]:
    """(what, cells, microseconds a step, iterations a step, over a step of the program in C)."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        program = CBeam(compile_program(Path(folder)), 100)
        explicit = seconds(program.advance, 2000)
        rows.append(("explicit, in C", 100, 1e6 * explicit, 0.0, 1.0))
        for name, method in METHODS.items():
            for cells in (100,) if args.quick else (100, 10_000):
                spent, iterations = implicit(method, flying(cells), 200 if cells == 100 else 5)
                rows.append((name, cells, 1e6 * spent, iterations, spent / explicit))
            spent, iterations = implicit(method, flying(100), 20, compiled=False)
            rows.append((f"{name}, PETSc", 100, 1e6 * spent, iterations, spent / explicit))
            for what, make, cells in JOINED:
                for way, steps in (("", 100), (", PETSc", 10)):
                    spent, iterations = implicit(method, make(), steps, compiled=not way)
                    rows.append(
                        (f"{what}, {name}{way}", cells, 1e6 * spent, iterations, spent / explicit)
                    )
        for what, joints, compiled in EXPLICIT:
            spent = explicit_joined(joints, compiled)
            rows.append((what, 160, 1e6 * spent, 0.0, spent / explicit))
        for what, make, cells in STILL:
            for way in ("", ", PETSc"):
                spent, iterations = equilibrium(make(), compiled=not way)
                rows.append(
                    (f"{what} at rest{way}", cells, 1e6 * spent, iterations, spent / explicit)
                )
                spent, iterations = along_a_path(make(), compiled=not way)
                rows.append(
                    (f"{what}, a path{way}", cells, 1e6 * spent, iterations, spent / explicit)
                )
    return rows


def tell_of_rods(rods: int, made: dict[str, float], steps: list[tuple]) -> None:
    """Print what :func:`many_rods` has found."""
    for what, spent in made.items():
        PETSc.Sys.Print(
            f"{rods} rods of 20 cells, {what}: {spent:.2f} s, {1e3 * spent / rods:.2f} ms each"
        )
    costs = []
    for what, one, many, iterations in steps:
        costs.append(many / iterations / (20 * rods))
        PETSc.Sys.Print(
            f"{what:40} {20 * rods:6} cells: {1e3 * one:9.2f} ms a step by itself, {1e3 * many:.2f} of "
            f"ten, {iterations:5.2f} iterations, {1e9 * costs[-1]:.0f} ns a cell and iteration"
        )
    PETSc.Sys.Print(
        f"a cell and iteration of the rods over that of the beam: {costs[0] / costs[1]:.2f}"
    )


def main() -> None:
    rods = 50 if args.quick else 1000
    made, steps = many_rods(rods)
    rows = measure()
    if args.json:
        PETSc.Sys.Print(json.dumps([*rows, *made.items(), *steps]))
        return
    found = {(name, cells): (spent, iterations) for name, cells, spent, iterations, _ in rows}
    for name, cells, spent, iterations, ratio in rows:
        PETSc.Sys.Print(
            f"{name:40} {cells:6} cells: {spent:9.1f} µs, {iterations:5.2f} iterations, "
            f"{ratio:6.2f} steps of the program in C"
        )
    for name in METHODS:
        spent, iterations = found[name, 100]
        PETSc.Sys.Print(
            f"{name}: through PETSc {found[f'{name}, PETSc', 100][0] / spent:.1f} times as long"
        )
        for what, _, cells in JOINED:
            one, other = (found[f"{what}, {name}{way}", cells][0] for way in ("", ", PETSc"))
            PETSc.Sys.Print(f"{what}, {name}: through PETSc {other / one:.1f} times as long")
        if (name, 10_000) in found:
            other, more = found[name, 10_000]
            ratio = other / more / 10_000 / (spent / iterations / 100)
            PETSc.Sys.Print(f"{name}: a cell and iteration at 10000 cells over 100: {ratio:.2f}")
    free, joined, petsc = (found[what, 160][0] for what, _, _ in EXPLICIT)
    PETSc.Sys.Print(
        f"VariationalIntegrator: with two joints {joined / free:.2f} times as long as without, "
        f"through PETSc {petsc / joined:.0f} times as long"
    )
    for what, _, cells in STILL:
        for how in (" at rest", ", a path"):
            one, other = (found[f"{what}{how}{way}", cells][0] for way in ("", ", PETSc"))
            PETSc.Sys.Print(f"{what}{how}: through PETSc {other / one:.1f} times as long")
    tell_of_rods(rods, made, steps)


if __name__ == "__main__":
    main()
