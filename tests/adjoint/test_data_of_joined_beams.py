"""Gradients by what one of two joined beams is made of: its modulus, its density, its tip load."""

from types import SimpleNamespace

import numpy as np
import pytest
from derivable import directions, holding, objective
from firedrake import Function, FunctionSpace, IntervalMesh, SpatialCoordinate, as_vector, assemble
from firedrake.adjoint import Control, ReducedFunctional, continue_annotation, pause_annotation
from verification.joined import section, straight

import fdgeom as fg

STEPS = 3


def joined(strain_measure="simo-reissner", **spring):
    """Two beams with a hinge, the first clamped; the second is made of Functions."""
    mesh = IntervalMesh(3, 1.0)
    (s,) = SpatialCoordinate(mesh)
    numbers = FunctionSpace(mesh, "R", 0)
    data = {
        "modulus": Function(FunctionSpace(mesh, "CG", 1)).interpolate(100 + 30 * s),
        "density": Function(numbers).assign(3.0),
        "tip": Function(numbers).assign(0.3),
    }
    made = fg.Section.rectangle(
        0.5, 0.6, density=data["density"], youngs_modulus=data["modulus"], poisson_ratio=0.3
    )
    options = {"strain_measure": strain_measure}
    first = straight((0, 0, 0), (1.0, 0, 0), 2, section(), left="clamped", **options)
    load = fg.Load(force=as_vector([0.1, 0, data["tip"]]), at="right")
    second = fg.Beam(mesh, made, loads=load, **options)
    second.reconstruct(position=(1.0, 0, 0))
    hinge = fg.Revolute(first.right, second.left, axis=(0, 1, 0), **spring)
    assembly = fg.Assembly([first, second], [hinge], loads=fg.Gravity((0, 0, -0.5)))
    return SimpleNamespace(assembly=assembly, beam=second, data=data)


class Motion:
    """A run from one start, again and again."""

    def __init__(self, stepper, **options) -> None:
        made = joined(**options)
        self.data, self.beam = made.data, made.beam
        self.stepper = stepper(made.assembly, 0.02)
        system = self.stepper.system
        self.moved = {
            **system.functions(),
            **system.consistency.followers(),
            **self.stepper.functions(),
        }
        self.start = [np.array(f.dat.data_ro) for f in self.moved.values()]
        self.clock = self.stepper.clock
        self.objective = objective([self.beam.position, self.beam.velocity])

    def begin(self) -> None:
        """Stand at the start."""
        for f, values in zip(self.moved.values(), self.start, strict=True):
            f.dat.data_wo[...] = values
        self.stepper.take_up(self.clock)

    def go(self) -> None:
        """Take the steps."""
        self.stepper.advance(STEPS)


@pytest.fixture(scope="module")
def alpha():
    return Motion(fg.GeneralizedAlpha)


@pytest.fixture(scope="module")
def statics():
    """The equilibrium of the same at full load, from one start."""
    # Without a spring the second beam would hang from nothing that keeps it from turning.
    made = joined(stiffness=4.0)
    solver = fg.StaticEquilibrium(made.assembly)
    poses = [f for b in made.assembly.beams for f in (b.position, b.orientation)]
    start = [np.array(f.dat.data_ro) for f in poses]

    def begin() -> None:
        for f, values in zip(poses, start, strict=True):
            f.dat.data_wo[...] = values

    def go() -> None:
        solver.solve(1.0)
        assert solver.why_not_compiled is None

    return SimpleNamespace(
        data=made.data, begin=begin, go=go, objective=objective([made.beam.position])
    )


def difference(run, name, direction):
    """By differences of fourth order of runs that nobody records."""
    f = run.data[name]
    here, h = np.array(f.dat.data_ro), 3e-3 * np.abs(f.dat.data_ro).max()

    def at(size):
        # Set after the start: accelerations belong to the data before, and follow.
        run.begin()
        f.dat.data_wo[...] = here + size * direction
        run.go()
        return assemble(run.objective)

    found = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    f.dat.data_wo[...] = here
    return found


def on_the_tape(run, names):
    """Derivatives of a recorded run."""
    run.begin()
    continue_annotation()
    given = {name: holding(run.data[name], run.data[name].dat.data_ro) for name in names}
    for name, x in given.items():
        run.data[name].assign(x)
    run.go()
    value = assemble(run.objective)
    pause_annotation()
    reduced = ReducedFunctional(value, [Control(x) for x in given.values()])
    return reduced.derivative()


def test_steps_of_alpha(alpha, rng):
    run, names = alpha, list(alpha.data)
    moved = directions(run.data.values(), rng)
    expected = [difference(run, n, d) for n, d in zip(names, moved, strict=True)]
    run.begin()
    run.go()
    value = assemble(run.objective)
    run.begin()
    again, found = fg.gradient(run.stepper, STEPS, run.objective, list(run.data.values()))
    assert run.stepper.replay.why_not_compiled is None
    assert again == pytest.approx(value, rel=1e-13)
    for g, d, e in zip(found, moved, expected, strict=True):
        assert abs(e) > 1e-8
        # The differences are good to 1e-8 or so.
        assert np.sum(g.dat.data_ro * d) == pytest.approx(e, rel=1e-7)


def test_equilibrium(statics, rng):
    names = ["modulus", "density", "tip"]
    moved = directions([statics.data[n] for n in names], rng)
    expected = [difference(statics, n, d) for n, d in zip(names, moved, strict=True)]
    for g, d, e in zip(on_the_tape(statics, names), moved, expected, strict=True):
        assert np.sum(g.dat.data_ro * d) == pytest.approx(e, rel=1e-7)


@pytest.mark.parametrize(
    ("method", "options", "names"),
    [
        (fg.EnergyMomentum, {"strain_measure": "directors"}, ["modulus", "tip"]),
        (fg.VariationalIntegrator, {}, ["modulus", "density", "tip"]),
    ],
    ids=lambda thing: getattr(thing, "__name__", ""),
)
def test_other_steps(method, options, names, rng):
    run = Motion(method, **options)
    moved = directions([run.data[n] for n in names], rng)
    expected = [difference(run, n, d) for n, d in zip(names, moved, strict=True)]
    for g, d, e in zip(on_the_tape(run, names), moved, expected, strict=True):
        assert np.sum(g.dat.data_ro * d) == pytest.approx(e, rel=1e-7)
