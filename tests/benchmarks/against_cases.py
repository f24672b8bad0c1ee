"""One case of the comparison of two versions, in a process of its own: python against_cases.py NAME

Prints JSON: the package's file, seconds, whether the steps are compiled, Newton iterations, and some
numbers of the result. It imports only Firedrake, pyadjoint and public names that both versions have.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

os.environ.setdefault("OMP_NUM_THREADS", "1")
NAME, sys.argv[1:] = (sys.argv[1:] or [""])[0], []

import numpy as np  # noqa: E402
from firedrake import (  # noqa: E402
    Function,
    FunctionSpace,
    IntervalMesh,
    PeriodicIntervalMesh,
    SpatialCoordinate,
    TensorFunctionSpace,
    VectorFunctionSpace,
    as_vector,
    dot,
    dx,
    grad,
    inner,
    pi,
    sin,
)

import fdgeom as fg  # noqa: E402

STIFFNESS = np.diag([100.0, 100.0, 100.0, 1e5, 1e5, 1e5])
INERTIA = np.diag([1e-2, 1e-2, 1e-2, 1.0, 1.0, 1.0])


@dataclass
class Measurement:
    """What a case has measured: seconds (or bytes), some numbers of its result, and its stepper."""

    amount: float
    result: np.ndarray
    stepper: object = None


@dataclass
class Case:
    """A case, the largest difference of the results of two versions, and the meter that it reads."""

    measure: Callable[[], Measurement]
    tolerance: float = 1e-9
    clock: str = "processor time"
    ranks: int = 1
    cold: bool = False


def seconds(work: Callable[[], object], clock=time.process_time, samples: int = 3) -> float:
    """The least of some samples."""
    found = []
    for _ in range(samples):
        begin = clock()
        work()
        found.append(clock() - begin)
    return min(found)


def steps_of(stepper, number: int, *results: Function, clock=time.process_time) -> Measurement:
    """The time of some steps, after two that compile."""
    stepper.advance(2)
    spent = seconds(lambda: stepper.advance(number), clock)
    norms = [np.linalg.norm(part.dat.data_ro) for f in results for part in f.subfunctions]
    return Measurement(spent, np.array(norms), stepper)


def papers_beam(cells: int, stiffness=STIFFNESS):
    """A free beam in bracket form, bent and moving."""
    mesh = IntervalMesh(cells, 2.0)
    (s,) = SpatialCoordinate(mesh)
    beam = fg.Beam(mesh, fg.Section(stiffness, INERTIA))
    beam.momentum.interpolate(as_vector([0, 0, 0.01 * sin(1.5 * s), 0.1, 0.1 * s, 0]))
    beam.reconstruct()
    return beam


def flying(cells: int):
    """A free beam in configuration form that flies, turns and vibrates."""
    mesh = IntervalMesh(cells, 2.0)
    (s,) = SpatialCoordinate(mesh)
    beam = fg.Beam(mesh, fg.Section(STIFFNESS, INERTIA))
    across = 2.0 * (s - 1) + 1 + 3 * sin(1.5 * pi * s)
    beam.velocity.interpolate(as_vector([0.3, 0.2 * s, 2.0, 0.5, across, sin(pi * s / 2)]))
    return beam


def explicit(method, cells: int, steps: int) -> Callable[[], Measurement]:
    def measure() -> Measurement:
        beam = papers_beam(cells)
        return steps_of(method(beam, 1e-3 / cells), steps, beam.strain, beam.momentum)

    return measure


def implicit(method, cells: int, steps: int) -> Callable[[], Measurement]:
    def measure() -> Measurement:
        beam = flying(cells)
        return steps_of(method(beam, 1e-3, compiled=True), steps, beam.position, beam.velocity)

    return measure


def small(copies: int, steps: int) -> Callable[[], Measurement]:
    def measure() -> Measurement:
        space = VectorFunctionSpace(fg.copies(copies), "DG", 0, dim=2)
        q, p = Function(space), Function(space)
        q.dat.data[:, 0] = np.linspace(1, 2, copies)
        energy = (0.5 * dot(p, p) + 0.5 * dot(q, q) + 0.25 * dot(q, q) ** 2) * dx
        return steps_of(fg.StormerVerlet(fg.HamiltonianSystem(q, p, energy), 1e-3), steps, q, p)

    return measure


def wave(stages: int, cells: int, steps: int) -> Callable[[], Measurement]:
    def measure() -> Measurement:
        mesh = PeriodicIntervalMesh(cells, 1.0)
        space = FunctionSpace(mesh, "CG", 1)
        (x,) = SpatialCoordinate(mesh)
        q, p = Function(space).interpolate(sin(2 * pi * x)), Function(space)
        system = fg.HamiltonianSystem(q, p, 0.5 * (p * p + inner(grad(q), grad(q))) * dx)
        loose = {"snes_rtol": 1e-9}
        stepper = fg.GaussLegendre(system, 0.1 / cells, stages=stages, solver_parameters=loose)
        return steps_of(stepper, steps, q, p)

    return measure


def pendulum() -> fg.Assembly:
    """Two flexible arms with ball joints, under gravity."""
    section, beams = fg.Section(STIFFNESS, INERTIA), []
    for k, cells in enumerate((60, 100)):
        beam = fg.Beam(IntervalMesh(cells, 1.0), section)
        beam.position.dat.data[:, 0] += k
        beams.append(beam)
    joints = [fg.Spherical(fg.ground, beams[0].left), fg.Spherical(beams[0].right, beams[1].left)]
    return fg.Assembly(beams, joints=joints, loads=fg.Gravity((0.0, 0.0, -9.81)))


def joined(method, steps: int) -> Callable[[], Measurement]:
    def measure() -> Measurement:
        assembly = pendulum()
        shown = [beam.position for beam in assembly.beams]
        return steps_of(method(assembly, 1e-3, compiled=True), steps, *shown)

    return measure


def gradient(stepper, functional, controls, steps: int) -> Measurement:
    """The time of a gradient of some steps."""
    # The first one compiles; afterwards the stepper stands where it stood.
    value, derivatives = fg.gradient(stepper, steps, functional, controls)
    spent = seconds(lambda: fg.gradient(stepper, steps, functional, controls))
    norms = [np.linalg.norm(derivative.dat.data_ro) for derivative in derivatives]
    return Measurement(spent, np.array([value, *norms]), stepper)


def gradient_by_start(method, make, dt: float, steps: int) -> Callable[[], Measurement]:
    def measure() -> Measurement:
        beam = make(100)
        distance = inner(beam.position, beam.position) * dx(degree=2)
        return gradient(method(beam, dt), distance, [beam.momentum], steps)

    return measure


def gradient_by_stiffness() -> Measurement:
    mesh = IntervalMesh(100, 2.0)
    field = Function(TensorFunctionSpace(mesh, "DG", 0, shape=(6, 6)))
    field.dat.data_wo[...] = STIFFNESS
    (s,) = SpatialCoordinate(mesh)
    beam = fg.Beam(mesh, fg.Section(field, INERTIA))
    beam.momentum.interpolate(as_vector([0, 0, 0.01 * sin(1.5 * s), 0.1, 0.1 * s, 0]))
    distance = inner(beam.position, beam.position) * dx(degree=2)
    return gradient(fg.PoissonIntegrator(beam, 1e-5), distance, [field], 1000)


def first_step(method, make) -> Callable[[], Measurement]:
    def measure() -> Measurement:
        begin = time.perf_counter()
        system = make()
        stepper = method(system, 1e-4)
        stepper.advance(1)
        spent = time.perf_counter() - begin
        beam = getattr(system, "beams", [system])[0]
        return Measurement(spent, np.array([np.linalg.norm(beam.momentum.dat.data_ro)]), stepper)

    return measure


def many_beams(number: int) -> Callable[[], Measurement]:
    def measure() -> Measurement:
        section = fg.Section(STIFFNESS, INERTIA)
        beams = [fg.Beam(IntervalMesh(4, 1.0), section) for _ in range(number)]
        begin = time.process_time()
        assembly = fg.Assembly(beams)
        return Measurement(time.process_time() - begin, np.array([float(len(assembly.beams))]))

    return measure


def memory() -> Measurement:
    beam = papers_beam(1000)
    stepper = fg.PoissonIntegrator(beam, 1e-6)
    distance = inner(beam.position, beam.position) * dx(degree=2)
    peaks = []
    for steps in (10, 200, 1200):
        fg.gradient(stepper, steps, distance, [beam.momentum])
        peaks.append(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return Measurement(float(peaks[2] - peaks[1]), np.zeros(1), stepper)


METHODS = {"EnergyMomentum": fg.EnergyMomentum, "GeneralizedAlpha": fg.GeneralizedAlpha}
CASES: dict[str, Case] = {}
for cells_, steps_ in ((100, 5000), (10_000, 50), (100_000, 5)):
    CASES[f"PoissonIntegrator {cells_}"] = Case(explicit(fg.PoissonIntegrator, cells_, steps_))
    CASES[f"SymmetricPoissonIntegrator {cells_}"] = Case(
        explicit(fg.SymmetricPoissonIntegrator, cells_, steps_)
    )
for copies_, steps_ in ((1, 100_000), (1000, 5000)):
    CASES[f"StormerVerlet {copies_}"] = Case(small(copies_, steps_))
for name_, method_ in METHODS.items():
    for cells_, steps_ in ((20, 1000), (100, 300), (1000, 30), (10_000, 5)):
        CASES[f"{name_} {cells_}"] = Case(implicit(method_, cells_, steps_))
    CASES[f"{name_} two beams"] = Case(joined(method_, 100))
    CASES[f"first step {name_}"] = Case(first_step(method_, lambda: flying(100)), clock="time")
    CASES[f"first step {name_} cold"] = Case(
        first_step(method_, lambda: flying(100)), clock="time", cold=True
    )
CASES["first step PoissonIntegrator cold"] = Case(
    first_step(fg.PoissonIntegrator, lambda: papers_beam(100)), clock="time", cold=True
)
for stages_ in (1, 2, 3, 4):
    for cells_, steps_ in ((100, 200), (1000, 20), (10_000, 3)):
        # Solves end at 1e-9 of a residual.
        CASES[f"GaussLegendre {stages_} {cells_}"] = Case(
            wave(stages_, cells_, steps_), tolerance=1e-7
        )
CASES |= {
    "gradient PoissonIntegrator": Case(
        gradient_by_start(fg.PoissonIntegrator, papers_beam, 1e-5, 1000)
    ),
    "gradient EnergyMomentum": Case(gradient_by_start(fg.EnergyMomentum, flying, 1e-3, 200)),
    "gradient by a stiffness": Case(gradient_by_stiffness),
    "memory of a gradient": Case(memory, clock="memory"),
    "assembly of 1000 beams": Case(many_beams(1000)),
    "PoissonIntegrator 100000, two ranks": Case(
        explicit(fg.PoissonIntegrator, 100_000, 20), clock="time", ranks=2
    ),
    "EnergyMomentum 10000, two ranks": Case(
        implicit(fg.EnergyMomentum, 10_000, 10), clock="time", ranks=2
    ),
}


def main() -> None:
    """Measure one case."""
    found = CASES[NAME].measure()
    stepper = found.stepper
    numbers = {
        "file": fg.__file__,
        "amount": found.amount,
        "compiled": stepper is None or stepper.is_compiled,
        "iterations": 0 if stepper is None else stepper.solver_stats()["newton_iterations"],
        "result": found.result.tolist(),
    }
    if not int(os.environ.get("OMPI_COMM_WORLD_RANK", "0")):
        print(json.dumps(numbers))


if __name__ == "__main__":
    main()
