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

import firedrake.adjoint as fda  # noqa: E402
import numpy as np  # noqa: E402
from firedrake import (  # noqa: E402
    Constant,
    DirichletBC,
    Function,
    FunctionSpace,
    Identity,
    IntervalMesh,
    SpatialCoordinate,
    TensorFunctionSpace,
    UnitSquareMesh,
    VectorFunctionSpace,
    as_vector,
    assemble,
    cos,
    div,
    dot,
    ds,
    dx,
    grad,
    inner,
    pi,
    sin,
    sym,
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
    # The results are those of the first samples, before rounding has grown.
    spent = min(spent, seconds(lambda: stepper.advance(number), clock, 12))
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


def clamped(method, cells: int, steps: int) -> Callable[[], Measurement]:
    """A clamped beam released from a bent shape: some nodes have prescribed values."""

    def measure() -> Measurement:
        mesh = IntervalMesh(cells, 2.0)
        beam = fg.Beam(mesh, fg.Section(STIFFNESS, INERTIA), left="clamped")
        beam.strain.interpolate(as_vector([0.1, 0.2, 0.3, 0, 0, 0]))
        beam.reconstruct()
        return steps_of(method(beam, 1e-3 / cells), steps, beam.position, beam.orientation)

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
        mesh = IntervalMesh(cells, 1.0)
        space = FunctionSpace(mesh, "CG", 1)
        (x,) = SpatialCoordinate(mesh)
        q, p = Function(space).interpolate(cos(2 * pi * x)), Function(space)
        system = fg.HamiltonianSystem(q, p, (0.5 * (p * p + inner(grad(q), grad(q))) - cos(q)) * dx)
        loose = {"snes_rtol": 1e-9}
        stepper = fg.GaussLegendre(stages)(system, 0.1 / cells, solver_parameters=loose)
        return steps_of(stepper, steps, q, p)

    return measure


SLENDER = np.diag([1.0, 1.2, 0.8, 1e3, 1e3, 1e3])
LIGHT = np.diag([1e-3, 8e-4, 1.2e-3, 1.0, 1.0, 1.0])
GRAVITY = (0.0, 0.3, -9.81)


def bar(start, stop, cells: int, stiffness=SLENDER, inertia=LIGHT, **options) -> fg.Beam:
    """A straight beam between two points, with the strain measure of mean directors."""
    start, stop = np.asarray(start, dtype=float), np.asarray(stop, dtype=float)
    length = np.linalg.norm(stop - start)
    section = fg.Section(stiffness, inertia)
    beam = fg.Beam(IntervalMesh(cells, length), section, strain_measure="directors", **options)
    first = (stop - start) / length
    # The rotation about the axis e1 x first that takes e1 to it; bars never point along -e1 here.
    turn = np.array([1 + first[0], *np.cross([1.0, 0, 0], first)])
    beam.reconstruct(position=start, orientation=turn / np.linalg.norm(turn))
    return beam


def pendulum(first: int, second: int) -> fg.Assembly:
    """Two flexible arms with ball joints, under gravity."""
    arms = [bar((0, 0, 0), (1, 0, 0), first), bar((1, 0, 0), (2.3, 0, 0), second)]
    joints = [fg.Spherical(fg.ground, arms[0].left), fg.Spherical(arms[0].right, arms[1].left)]
    return fg.Assembly(arms, joints=joints, loads=fg.Gravity(GRAVITY))


def four_bar() -> fg.Assembly:
    """A closed loop whose crank is turned."""
    crank = fg.GivenPose(
        position=lambda t: as_vector([0 * t, 0, 0]),
        orientation=lambda t: as_vector([cos(2 * t**2), 0, 0, sin(2 * t**2)]),
    )
    bars = [
        bar((0, 0, 0), (1, 0, 0), 20, left=crank),
        bar((1, 0, 0), (1, 2, 0), 30),
        bar((1, 2, 0), (0, 1.5, 0.5), 30),
    ]
    joints = [
        fg.Spherical(bars[0].right, bars[1].left),
        fg.Revolute(bars[1].right, bars[2].left, axis=(0, 0, 1)),
        fg.Spherical(bars[2].right, fg.ground),
    ]
    return fg.Assembly(bars, joints, loads=fg.Gravity(GRAVITY))


def net(*, held: bool = False) -> fg.Assembly:
    """Eight bars welded to a pyramid, with a blow to one of them; ``held``: clamped at a corner."""
    corners = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0.5, 0.5, 0.4)]
    edges = [(0, 1), (1, 2), (3, 2), (0, 3), (0, 4), (4, 1), (4, 2), (3, 4)]
    ends = ["clamped" if held and not k else "free" for k in range(len(edges))]
    bars = [
        bar(corners[a], corners[b], 6, left=end) for (a, b), end in zip(edges, ends, strict=True)
    ]
    places, joints = {}, []
    for edge, beam in zip(edges, bars, strict=True):
        for corner, place in zip(edge, (beam.left, beam.right), strict=True):
            if corner in places:
                joints.append(fg.Rigid(places[corner], place))
            places.setdefault(corner, place)
    bars[0].velocity.dat.data_wo[1:-1, 4] = 0.5 * np.sin(np.arange(1, 6) * np.pi / 6)
    load = fg.Gravity((0.0, 0.03, -0.98) if held else GRAVITY)
    return fg.Assembly(bars, joints, loads=load)


def rods(number: int) -> fg.Assembly:
    """Free rods of 20 cells, all with another start."""
    made = [bar((0, 0, 0), (1, 0, 0), 20, STIFFNESS, INERTIA) for _ in range(number)]
    for k, rod in enumerate(made):
        s = rod.position.dat.data_ro[:, :1]
        rod.velocity.dat.data_wo[:, 3:] = np.sin(2 * np.pi * s + k / number + np.arange(3.0))
    return fg.Assembly(made)


def joined(method, make, steps: int, dt: float = 1e-3) -> Callable[[], Measurement]:
    def measure() -> Measurement:
        assembly = make()
        shown = [beam.position for beam in assembly.beams]
        return steps_of(method(assembly, dt, compiled=True), steps, *shown)

    return measure


def equilibrium() -> Measurement:
    """Solves of a bent cantilever, warm, from nine tenths of the load to all of it and back."""
    load = fg.Load(force=(0.0, 5.0, 10.0), at="right")
    section = fg.Section(STIFFNESS, INERTIA)
    beam = fg.Beam(IntervalMesh(100, 2.0), section, left="clamped", loads=load)
    statics = fg.StaticEquilibrium(beam, compiled=True)
    statics.solve(steps=4)

    def solve() -> None:
        for k in range(20):
            statics.solve(1.0 - 0.1 * ((k + 1) % 2))

    spent = seconds(solve)
    return Measurement(spent, np.array([np.linalg.norm(beam.position.dat.data_ro)]), statics)


def lees_frame() -> Measurement:
    """Points of the path of Lee's frame by the arc length."""
    stiffness = np.diag([1.44e5, 1440.0, 1.44e5, 1e7, 1e7, 1e7])
    stiffness[3, 3] = 4320.0
    column = bar((0, 0, 0), (0, 0, 120.0), 10, stiffness, np.eye(6))
    load = fg.Load(force=(0, 0, -1.0), at=24.0)
    beam = bar((0, 0, 120.0), (120.0, 0, 120.0), 10, stiffness, np.eye(6), loads=load)
    joints = [
        fg.Revolute(fg.ground, column.left, axis=(0, 1, 0)),
        fg.Rigid(column.right, beam.left),
        fg.Revolute(beam.right, fg.ground, axis=(0, 1, 0)),
    ]
    statics = fg.StaticEquilibrium(fg.Assembly([column, beam], joints), compiled=True)
    statics.follow(0.1, steps=2)
    # Every sample goes on along the path: as many points in both versions.
    spent = seconds(lambda: statics.follow(0.05, steps=10))
    return Measurement(spent, np.array([np.linalg.norm(beam.position.dat.data_ro)]), statics)


def elastic_square() -> Measurement:
    """Linear elastodynamics in a square, quadratic triangles."""
    mesh = UnitSquareMesh(24, 24)
    space = VectorFunctionSpace(mesh, "CG", 2)
    q, v = Function(space), Function(space)
    drag = Constant(0.1)

    def residual(u, v, a, t, w):
        stress = 2 * sym(grad(u)) + 1.5 * div(u) * Identity(2)
        return (dot(a + drag * v, w) + inner(stress, grad(w))) * dx - sin(3 * t) * w[1] * ds(2)

    system = fg.SecondOrderSystem(residual, q, v, bcs=[DirichletBC(space, 0, 1)])
    found = steps_of(fg.GeneralizedAlpha(system, 0.02, fg.hamel_alpha(0.8)), 50, q, v)
    found.stepper = None  # its coupled solves go through PETSc
    return found


def waves_in_the_plane() -> Measurement:
    """Explicit steps of nonlinear waves on triangles: kernels in cells, and lumped masses at nodes."""
    mesh = UnitSquareMesh(60, 60)
    space = VectorFunctionSpace(mesh, "CG", 1)
    x, y = SpatialCoordinate(mesh)
    q, p = Function(space), Function(space)
    q.interpolate(as_vector([sin(pi * x) * sin(pi * y), x * y]))
    nodes, square = dx(scheme="KMV", degree=1), inner(q, q)
    energy = (0.5 * inner(p, p) + 0.25 * square**2) * nodes
    energy += 0.5 * inner(grad(q), grad(q)) * (1 + square) * dx
    system = fg.HamiltonianSystem(q, p, energy, measure=nodes)
    return steps_of(fg.StormerVerlet(system, 1e-3), 500, q, p)


def quadratic_beam() -> Measurement:
    """A beam of degree 2: unknowns of whole cells."""
    mesh = IntervalMesh(100, 2.0)
    (s,) = SpatialCoordinate(mesh)
    beam = fg.Beam(mesh, fg.Section(STIFFNESS, INERTIA), degree=2)
    beam.momentum.interpolate(as_vector([0, 0, 0.01 * sin(1.5 * s), 0.1, 0.1 * s, 0]))
    beam.reconstruct()
    return steps_of(SPI(beam, 1e-5), 2000, beam.strain, beam.momentum)


def small_fields(*shapes: int) -> list[Function]:
    """Functions of some numbers of components on one cell."""
    mesh = fg.copies(1)
    return [Function(VectorFunctionSpace(mesh, "DG", 0, dim=n)) for n in shapes]


def oscillator() -> fg.HamiltonianSystem:
    q, p = small_fields(2, 2)
    q.dat.data_wo[...] = 1.0, 0.5
    energy = (0.5 * dot(p, p) + 0.5 * dot(q, q) + 0.25 * dot(q, q) ** 2) * dx
    return fg.HamiltonianSystem(q, p, energy)


def ball_on_a_rod() -> fg.ConstrainedSystem:
    q, p, multiplier = small_fields(3, 3, 1)
    q.dat.data_wo[...], p.dat.data_wo[...] = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    constraint = 0.5 * (dot(q, q) - 1)
    return fg.ConstrainedSystem(
        q,
        p,
        0.5 * dot(p, p) * dx,
        9.8 * q[2] * dx,
        lambda mult: mult[0] * constraint * dx,
        multiplier,
    )


def one_by_one(method, make, dt: float, steps: int) -> Callable[[], Measurement]:
    """Steps by as many calls of ``advance(1)``."""

    def measure() -> Measurement:
        stepper = method(make(), dt)
        stepper.advance(2)

        def advance() -> None:
            for _ in range(steps):
                stepper.advance(1)

        spent = seconds(advance)
        parts = [part for f in stepper.system.functions().values() for part in f.subfunctions]
        return Measurement(spent, np.array([np.linalg.norm(p.dat.data_ro) for p in parts]), stepper)

    return measure


def gradient(stepper, functional, controls, steps: int) -> Measurement:
    """The time of a gradient of some steps."""
    # The first one compiles; afterwards the stepper stands where it stood.
    value, derivatives = fg.gradient(stepper, steps, functional, controls)
    spent = seconds(lambda: fg.gradient(stepper, steps, functional, controls), samples=10)
    norms = [np.linalg.norm(derivative.dat.data_ro) for derivative in derivatives]
    return Measurement(spent, np.array([value, *norms]), stepper)


def gradient_by_start(method, make, dt: float, steps: int) -> Callable[[], Measurement]:
    def measure() -> Measurement:
        beam = make(100)
        distance = inner(beam.position, beam.position) * dx(degree=2)
        return gradient(method(beam, dt), distance, [beam.momentum], steps)

    return measure


def over_forward(method, make, dt: float, steps: int) -> Callable[[], Measurement]:
    """A gradient by the start over the run itself."""

    def measure() -> Measurement:
        beam = make(100)
        stepper = method(beam, dt)
        distance = inner(beam.position, beam.position) * dx(degree=2)
        found = gradient(stepper, distance, [beam.momentum], steps)
        found.amount /= seconds(lambda: stepper.advance(steps), samples=10)
        return found

    return measure


def hessian_over_gradient(method, make, dt: float, steps: int) -> Callable[[], Measurement]:
    """A Hessian times a vector over a gradient, by pyadjoint's tape."""

    def measure() -> Measurement:
        beam = make(100)
        stepper = method(beam, dt)
        fda.continue_annotation()
        start = beam.momentum.copy(deepcopy=True)
        beam.momentum.assign(start)
        stepper.advance(steps)
        value = assemble(inner(beam.position, beam.position) * dx(degree=2))
        fda.pause_annotation()
        reduced = fda.ReducedFunctional(value, fda.Control(start))
        along = start.copy(deepcopy=True)
        first = reduced.derivative()
        second = reduced.hessian(along)
        by_gradient = seconds(reduced.derivative)
        by_hessian = seconds(lambda: reduced.hessian(along))
        norms = [np.linalg.norm(f.dat.data_ro) for f in (first, second)]
        return Measurement(by_hessian / by_gradient, np.array(norms), stepper)

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


EM, GA, VI = fg.EnergyMomentum, fg.GeneralizedAlpha, fg.VariationalIntegrator
PI, SPI = fg.PoissonIntegrator, fg.SymmetricPoissonIntegrator
METHODS = {"EnergyMomentum": EM, "GeneralizedAlpha": GA}
CASES: dict[str, Case] = {}
for cells_, steps_ in ((100, 5000), (10_000, 50), (100_000, 5)):
    CASES[f"PoissonIntegrator {cells_}"] = Case(explicit(PI, cells_, steps_))
    CASES[f"SymmetricPoissonIntegrator {cells_}"] = Case(explicit(SPI, cells_, steps_))
CASES["SymmetricPoissonIntegrator 20, clamped"] = Case(clamped(SPI, 20, 20_000))
CASES["VariationalIntegrator 20, clamped"] = Case(clamped(fg.VariationalIntegrator, 20, 20_000))
for copies_, steps_ in ((1, 100_000), (1000, 5000)):
    CASES[f"StormerVerlet {copies_}"] = Case(small(copies_, steps_))
for name_, method_ in METHODS.items():
    for cells_, steps_ in ((20, 1000), (100, 300), (1000, 30), (10_000, 5)):
        CASES[f"{name_} {cells_}"] = Case(implicit(method_, cells_, steps_))
    for (one_, two_), steps_ in (((31, 52), 200), ((73, 123), 100), ((301, 502), 20)):
        CASES[f"double pendulum {one_ + two_}, {name_}"] = Case(
            joined(method_, lambda n=(one_, two_): pendulum(*n), steps_)
        )
    CASES[f"welded bars, {name_}"] = Case(joined(method_, net, 100))
    CASES[f"four-bar, {name_}"] = Case(joined(method_, four_bar, 100))
    CASES[f"1000 rods, {name_}"] = Case(joined(method_, lambda: rods(1000), 3))
    CASES[f"{name_} 100000, two ranks"] = Case(implicit(method_, 100_000, 2), clock="time", ranks=2)
    for temperature_ in ("", " cold"):
        options_ = {"clock": "time", "cold": bool(temperature_)}
        CASES[f"first step {name_}{temperature_}"] = Case(
            first_step(method_, lambda: flying(100)), **options_
        )
        CASES[f"first step double pendulum, {name_}{temperature_}"] = Case(
            first_step(method_, lambda: pendulum(31, 52)), **options_
        )
CASES["double pendulum 160, VariationalIntegrator"] = Case(
    joined(VI, lambda: pendulum(60, 100), 2000, 1e-5)
)
CASES["first step PoissonIntegrator cold"] = Case(
    first_step(PI, lambda: papers_beam(100)), clock="time", cold=True
)
for stages_ in (1, 2, 3, 4):
    for cells_, steps_ in ((100, 2000), (1000, 200), (10_000, 20)):
        # Solves end at 1e-9 of a residual.
        CASES[f"GaussLegendre {stages_} {cells_}"] = Case(
            wave(stages_, cells_, steps_), tolerance=1e-7
        )
ONE_BY_ONE = {
    "PoissonIntegrator": (PI, lambda: papers_beam(20), 1e-4, 500),
    "SymmetricPoissonIntegrator": (SPI, lambda: papers_beam(20), 1e-4, 500),
    "Composition": (fg.Composition(SPI), lambda: papers_beam(20), 1e-4, 200),
    "EnergyMomentum": (EM, lambda: flying(20), 1e-3, 300),
    "GeneralizedAlpha": (GA, lambda: flying(20), 1e-3, 300),
    "VariationalIntegrator": (VI, lambda: flying(20), 1e-4, 300),
    "EnergyMomentum, joints": (EM, lambda: pendulum(10, 10), 1e-3, 200),
    "StormerVerlet": (fg.StormerVerlet, oscillator, 1e-2, 1000),
    "SymplecticEuler": (fg.SymplecticEuler, oscillator, 1e-2, 1000),
    "RungeKutta4": (fg.RungeKutta4, oscillator, 1e-2, 1000),
    "GaussLegendre": (fg.GaussLegendre(2), oscillator, 1e-2, 1000),
    "ImplicitMidpoint": (fg.ImplicitMidpoint, oscillator, 1e-2, 1000),
    "DiscreteGradient": (fg.DiscreteGradient, oscillator, 1e-2, 1000),
    "GeneratingFunction4": (fg.GeneratingFunction4, oscillator, 1e-2, 1000),
    "RATTLE": (fg.RATTLE, ball_on_a_rod, 1e-2, 1000),
    "SHAKE": (fg.SHAKE, ball_on_a_rod, 1e-2, 1000),
}
for name_, (method_, make_, dt_, steps_) in ONE_BY_ONE.items():
    CASES[f"advance(1) {name_}"] = Case(one_by_one(method_, make_, dt_, steps_))
for name_, method_, make_, dt_, steps_ in (
    ("PoissonIntegrator", PI, papers_beam, 1e-5, 1000),
    ("EnergyMomentum", EM, flying, 1e-3, 200),
):
    start_ = (method_, make_, dt_, steps_)
    CASES[f"gradient {name_}"] = Case(gradient_by_start(*start_))
    CASES[f"gradient over run, {name_}"] = Case(over_forward(*start_), clock="ratio")
    CASES[f"Hessian over gradient, {name_}"] = Case(
        hessian_over_gradient(*start_[:3], 50), clock="ratio", tolerance=1e-7
    )
CASES |= {
    "gradient by a stiffness": Case(gradient_by_stiffness),
    "memory of a gradient": Case(memory, clock="memory"),
    "assembly of 1000 beams": Case(many_beams(1000)),
    "StaticEquilibrium 100": Case(equilibrium),
    "path of Lee's frame": Case(lees_frame, tolerance=1e-6),
    "elastodynamics in the plane": Case(elastic_square),
    "waves in the plane": Case(waves_in_the_plane),
    "SymmetricPoissonIntegrator, degree 2": Case(quadratic_beam),
    "PoissonIntegrator 100000, two ranks": Case(explicit(PI, 100_000, 20), clock="time", ranks=2),
    "EnergyMomentum 10000, two ranks": Case(implicit(EM, 10_000, 10), clock="time", ranks=2),
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
