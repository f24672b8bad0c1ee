"""Contact in checkpoints, derivatives, several ranks and lanes."""

from pathlib import Path

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    as_vector,
    assemble,
    dot,
    dx,
)
from ranks import run_on
from verification.beams import along

import fdgeom as fg

TESTS = Path(__file__).parents[1]
VALUES = {"stiffness": 1e4, "radius": 0.02, "friction": 0.3}


def falling(cells=6, **changes):
    """A rope that falls onto a sloping floor and a bar, and slides; numbers are Functions."""
    mesh = IntervalMesh(cells, 1.0)
    numbers = {
        name: Function(FunctionSpace(mesh, "R", 0), name=name).assign(value)
        for name, value in (VALUES | changes).items()
    }
    section = fg.Section.circle(0.02, density=1000, youngs_modulus=1e6, poisson_ratio=0.3)
    bodies = fg.Plane((0, 0, 0), (0.1, 0, 1)), fg.Cylinder((0.8, 0, -0.1), (0, 1, 0), 0.1)
    loads = [fg.Contact(*bodies, slip=0.1, **numbers), fg.Gravity((0, 0, -9.81))]
    beam = fg.Beam(mesh, section, loads=loads, strain_measure="directors")
    beam.reconstruct(position=(0, 0, 0.04))
    (s,) = SpatialCoordinate(mesh)
    beam.velocity.interpolate(as_vector([0, 0.3 * s, 0, 0.5, 0.2, -0.6 + 0.3 * s]))
    return beam, numbers


def objective(beam):
    return dot(beam.position, beam.position) * dx + beam.velocity[3] * dx


@pytest.mark.parametrize(
    "method", [fg.EnergyMomentum, fg.GeneralizedAlpha], ids=lambda m: m.__name__
)
def test_gradients(method):
    """By stiffness, radius, friction and the first velocity, through touch and slip."""
    steps, dt = 80, 1e-3
    beam, numbers = falling()
    stepper = method(beam, dt)
    _, found = fg.gradient(stepper, steps, objective(beam), [*numbers.values(), beam.velocity])

    def run(change=None, **changes):
        other, _ = falling(**changes)
        if change is not None:
            other.velocity.dat.data_wo[...] += change
        method(other, dt).advance(steps)
        return assemble(objective(other))

    for slope, (name, value) in zip(found, VALUES.items(), strict=False):
        h = 1e-5 * value
        expected = (run(**{name: value + h}) - run(**{name: value - h})) / (2 * h)
        assert slope.dat.data_ro.item() == pytest.approx(expected, rel=1e-6)
    change = np.random.default_rng(1).normal(size=beam.velocity.dat.data_ro.shape)
    expected = (run(1e-6 * change) - run(-1e-6 * change)) / 2e-6
    assert np.sum(found[-1].dat.data_ro * change) == pytest.approx(expected, rel=1e-6)
    beam, _ = falling()
    method(beam, dt).advance(steps)
    assert beam.loads[0].depth(beam).max() > 0  # it is on the floor then


@pytest.mark.parametrize("name", ["stiffness", "radius", "friction"])
def test_numbers_that_are_no_longer_valid(name):
    """Friction of a negative coefficient would drive the rope; the next valid number is taken."""
    beam, numbers = falling()
    stepper = fg.EnergyMomentum(beam, 1e-3)
    stepper.advance(2)
    numbers[name].assign(-0.2)
    with pytest.raises(ValueError, match=f"^{name} must be a"):
        stepper.advance(1)
    assert stepper.steps == 2
    numbers[name].assign(VALUES[name])
    stepper.advance(1)


def test_numbers_of_contact_at_rest():
    beam = fg.Beam(
        IntervalMesh(6, 1.0),
        fg.Section.circle(0.02, density=1000, youngs_modulus=1e6, poisson_ratio=0.3),
        left="clamped",
        loads=[
            fg.Contact(fg.Plane((0, 0, -0.1), (0, 0, 1)), stiffness=(k := Constant(1e4))),
            fg.Gravity((0, 0, -9.81)),
        ],
    )
    statics = fg.StaticEquilibrium(beam)
    statics.solve()
    k.assign(-1e4)
    with pytest.raises(ValueError, match="^stiffness must be a positive number"):
        statics.solve()


def test_taylor_remainder():
    """By stiffness, radius, friction and first velocity together: of second order in the change."""
    steps, dt = 80, 1e-3
    beam, numbers = falling()
    stepper = fg.EnergyMomentum(beam, dt)
    value, slopes = fg.gradient(stepper, steps, objective(beam), [*numbers.values(), beam.velocity])
    turn = np.random.default_rng(2).normal(size=beam.velocity.dat.data_ro.shape)
    slope_along = np.sum(slopes[-1].dat.data_ro * turn) + sum(
        found.dat.data_ro.item() * number
        for found, number in zip(slopes, VALUES.values(), strict=False)
    )

    def remainder(h):
        other, _ = falling(**{name: (1 + h) * number for name, number in VALUES.items()})
        other.velocity.dat.data_wo[...] += h * turn
        fg.EnergyMomentum(other, dt).advance(steps)
        return abs(assemble(objective(other)) - value - h * slope_along)

    assert slopes[2].dat.data_ro.item() != 0  # friction acts
    remainders = [remainder(h) for h in (4e-4, 2e-4, 1e-4)]
    orders = np.log2(np.array(remainders[:-1]) / remainders[1:])
    assert orders == pytest.approx([2, 2], abs=0.1)


def test_restart(tmp_path):
    """Bit by bit; another obstacle, coefficient or slip is refused by name."""
    beam, _ = falling()
    stepper = fg.EnergyMomentum(beam, 1e-3)
    stepper.advance(40)
    fg.save(stepper, tmp_path / "half.h5")
    stepper.advance(40)
    again, _ = falling()
    resumed = fg.EnergyMomentum(again, 1e-3)
    fg.resume(resumed, tmp_path / "half.h5")
    resumed.advance(40)
    for name in ("position", "orientation", "velocity"):
        assert np.array_equal(getattr(again, name).dat.data_ro, getattr(beam, name).dat.data_ro)
    other, _ = falling(friction=0.4)
    with pytest.raises(ValueError, match="loads"):
        fg.resume(fg.EnergyMomentum(other, 1e-3), tmp_path / "half.h5")


def test_lanes_and_paths():
    """Two ropes side by side in one assembly, and one through PETSc, move as one by itself."""
    alone, _ = falling()
    fg.GeneralizedAlpha(alone, 1e-3).advance(60)
    expected = along(alone.position)
    pair = [falling()[0] for _ in range(2)]
    stepper = fg.GeneralizedAlpha(fg.Assembly(pair), 1e-3)
    stepper.advance(60)
    assert stepper.is_compiled
    petsc, _ = falling()
    fg.GeneralizedAlpha(petsc, 1e-3, compiled=False).advance(60)
    for beam in (*pair, petsc):
        assert along(beam.position) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "method", [fg.EnergyMomentum, fg.GeneralizedAlpha], ids=lambda m: m.__name__
)
def test_order_two(method):
    """A rod slides on a floor so soft that it stays in touch: errors fall with the square of dt."""
    ends = []
    for steps in (20, 40, 80, 320):
        section = fg.Section.circle(0.02, density=1000, youngs_modulus=1e4, poisson_ratio=0.3)
        touch = fg.Contact(
            fg.Plane((0, 0, 0), (0.1, 0, 1)), stiffness=1e4, rounding=0.05, friction=0.3, slip=2.0
        )
        loads = [touch, fg.Gravity((0, 0, -9.81))]
        beam = fg.Beam(IntervalMesh(2, 0.1), section, loads=loads, strain_measure="directors")
        beam.reconstruct(position=(0, 0, 0.008))
        beam.velocity.interpolate(as_vector([0, 0, 0, 0.5, 0.3, 0]))
        method(beam, 0.02 / steps).advance(steps)
        assert touch.depth(beam).min() > 0
        ends.append(along(beam.position))
    errors = [np.abs(end - ends[-1]).max() for end in ends[:-1]]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx([2, 2], abs=0.15)


PROGRAM = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from beams.test_contact_data import falling
import fdgeom as fg
beam, _ = falling(12)
history = fg.EnergyMomentum(beam, 1e-3).run(steps=60, monitors=[fg.Energy(), fg.ContactMonitor()])
touch = beam.loads[0]
if beam.comm.rank == 0:
    print([history[n][-1] for n in history.names])
depths, forces = touch.depth(beam), touch.forces(beam)
if beam.comm.rank == 0:
    print(depths.tolist(), forces.ravel().tolist())
"""


@pytest.mark.parallel
def test_several_ranks(tmp_path, several):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found = []
    for ranks in (1, several):
        done = run_on(ranks, program, TESTS)
        assert done.returncode == 0, done.stderr[-2000:]
        numbers = done.stdout.replace("[", " ").replace("]", " ").replace(",", " ").split()
        found.append([float(word.removeprefix("np.float64(").rstrip(")")) for word in numbers])
    assert len(found[0]) > 40
    assert found[1] == pytest.approx(found[0], rel=1e-8, abs=1e-10)
