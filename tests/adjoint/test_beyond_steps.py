"""What else than steps is on pyadjoint's tape: whole runs, monitors, the two descriptions of a beam."""

import numpy as np
import pytest
from derivable import beam, directions, holding, objective
from firedrake import Function, assemble, dot, ds, dx
from firedrake.adjoint import Control, ReducedFunctional, continue_annotation, pause_annotation
from pyadjoint import get_working_tape
from verification import hamiltonian_systems
from verification.joined import straight

import fdgeom as fg

STEPS = 5


@pytest.fixture(scope="module")
def made():
    """A beam, and what it begins with."""
    one = beam()
    return one, {name: np.array(f.dat.data_ro) for name, f in one.functions().items()}


def set_to(one, values):
    for name, f in one.functions().items():
        f.dat.data_wo[...] = values[name]
    one.consistency.settle()


def difference(at, h=1e-3):
    """Of fourth order."""
    return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)


@pytest.mark.parametrize(
    ("method", "sources", "targets"),
    [
        ("reconstruct", ("strain", "momentum"), ("position", "orientation", "velocity")),
        ("project", ("position", "velocity"), ("strain", "momentum")),
    ],
)
def test_one_description_from_the_other(made, method, sources, targets, rng):
    one, start = made
    controls = [one.functions()[name] for name in sources]
    functional = objective([one.functions()[name] for name in targets])
    moved = directions(controls, rng)

    def at(size):
        set_to(one, start)
        for name, f, d in zip(sources, controls, moved, strict=True):
            f.dat.data_wo[...] = start[name] + size * d
        getattr(one, method)()
        return assemble(functional)

    expected, plain, elsewhere = difference(at), at(0.0), at(0.01)
    set_to(one, start)
    given = [holding(f, f.dat.data_ro) for f in controls]
    continue_annotation()
    for f, x in zip(controls, given, strict=True):
        f.assign(x)
    getattr(one, method)()
    value = assemble(functional)
    pause_annotation()
    assert value == pytest.approx(plain, rel=1e-14)
    reduced = ReducedFunctional(value, [Control(x) for x in given])
    there = [holding(x, x.dat.data_ro + 0.01 * d) for x, d in zip(given, moved, strict=True)]
    assert reduced(there) == pytest.approx(elsewhere, rel=1e-14)
    assert reduced(given) == pytest.approx(plain, rel=1e-14)
    terms = [g.dat.data_ro * d for g, d in zip(reduced.derivative(), moved, strict=True)]
    along, scale = sum(t.sum() for t in terms), sum(abs(t).sum() for t in terms)
    assert along == pytest.approx(expected, abs=1e-8 * scale)
    tangent = reduced.tlm([holding(x, d) for x, d in zip(given, moved, strict=True)])
    assert tangent == pytest.approx(along, abs=1e-12 * scale)

    def slope(size):
        """The derivative along the directions, some way along them."""
        reduced([holding(x, x.dat.data_ro + size * d) for x, d in zip(given, moved, strict=True)])
        return sum(
            (g.dat.data_ro * d).sum() for g, d in zip(reduced.derivative(), moved, strict=True)
        )

    bent = difference(slope)
    slope(0.0)
    reduced.tlm([holding(x, d) for x, d in zip(given, moved, strict=True)])
    found = reduced.hessian([holding(x, d) for x, d in zip(given, moved, strict=True)])
    terms = [g.dat.data_ro * d for g, d in zip(found, moved, strict=True)]
    assert sum(t.sum() for t in terms) == pytest.approx(bent, abs=1e-7 * scale)


def test_monitors_are_functionals(made, rng):
    """Their numbers are those of a run, and have its derivatives."""
    one, start = made
    set_to(one, start)
    stepper = fg.PoissonIntegrator(one, 0.01)
    (direction,) = directions([one.momentum], rng)

    def at(size):
        set_to(one, start)
        one.momentum.dat.data_wo[...] = start["momentum"] + size * direction
        stepper.t = 0.0
        stepper.advance(STEPS)
        return fg.Energy()(one)["potential_energy"] + fg.Momentum()(one)["angular_momentum"][2]

    expected, plain = difference(at), at(0.0)
    set_to(one, start)
    stepper.t = 0.0
    given = holding(one.momentum, one.momentum.dat.data_ro)
    continue_annotation()
    one.momentum.assign(given)
    stepper.advance(STEPS)
    value = fg.Energy()(one)["potential_energy"] + fg.Momentum()(one)["angular_momentum"][2]
    pause_annotation()
    assert value == pytest.approx(plain, rel=1e-14)
    found = ReducedFunctional(value, Control(given)).derivative().dat.data_ro * direction
    assert found.sum() == pytest.approx(expected, abs=1e-7 * abs(found).sum())


@pytest.mark.parametrize(
    ("recorded", "joined"), [("velocity", False), ("position", False), ("velocity", True)]
)
def test_monitors_of_fields_that_were_set(recorded, joined):
    """Momentum and strain follow a velocity and positions that are set on the tape."""

    def value(size, *, on_tape=False):
        section = fg.Section(np.eye(6), np.eye(6))
        beam = system = straight((0, 0, 0), (0, 0, 1), 2, section, left="clamped")
        if joined:
            other = straight((0, 0, 1), (0, 0, 2), 2, section)
            system = fg.Assembly([beam, other], fg.Rigid(beam.right, other.left))
        stepper, field = fg.GeneralizedAlpha(system, 0.01), getattr(beam, recorded)
        given = holding(field, field.dat.data_ro)
        given.dat.data_wo[1, 0] += size
        if on_tape:
            continue_annotation()
        field.assign(given)
        found = fg.Energy()(system)["energy"]
        squares = dot(beam.momentum, beam.momentum) + dot(beam.strain, beam.strain)
        found += fg.Functional("squares", squares * dx)(system)["squares"]
        stepper.advance(2)
        # A monitor may be made where pyadjoint records.
        monitor = fg.Functional("moved", (1 + beam.time) * dot(beam.position, beam.position) * dx)
        found += monitor(system)["moved"]
        pause_annotation()
        return found, given

    found, given = value(0.1, on_tape=True)
    assert found == value(0.1)[0]
    reduced, h = ReducedFunctional(found, Control(given)), 1e-3
    elsewhere = holding(given, value(0.2)[1].dat.data_ro)
    assert reduced(elsewhere) == pytest.approx(value(0.2)[0], rel=1e-14)
    at = [value(0.2 + k * h)[0] for k in (-2, -1, 1, 2)]
    expected = (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * h)
    assert reduced.derivative().dat.data_ro[1, 0] == pytest.approx(expected, rel=1e-7)


def test_a_run_is_a_block_between_two_samples(tmp_path):
    """Its pieces are the same however fast it goes; samples, tables and outputs leave no trace."""
    system = hamiltonian_systems.pendulum()
    stepper = fg.StormerVerlet(system, 0.1)
    given = Function(system.q.function_space()).assign(system.q)
    plain = Function(system.q.function_space()).assign(system.q)
    continue_annotation()
    system.q.assign(given)
    history = stepper.run(
        steps=7, every=3, monitors=fg.Energy(), csv=tmp_path / "run.csv", progress="always"
    )
    value = assemble(objective([system.q]))
    pause_annotation()
    blocks = [str(b) for b in get_working_tape().get_blocks() if "steps of" in str(b)]
    assert blocks == [f"{n} steps of StormerVerlet" for n in (3, 3, 1)]
    assert len(history.t) == 4
    reduced = ReducedFunctional(value, Control(given))
    assert reduced(given) == pytest.approx(value, rel=1e-15)
    found = reduced.derivative().dat.data_ro.sum()

    def at(size):
        fresh = hamiltonian_systems.pendulum()
        fresh.q.dat.data_wo[...] = plain.dat.data_ro + size
        fg.StormerVerlet(fresh, 0.1).advance(7)
        return assemble(objective([fresh.q]))

    assert found == pytest.approx(difference(at), rel=1e-7)


def test_a_strain_that_steps_have_left_is_no_control():
    """It is that of the steps' own measure: the beam would jump, by O(h²), if the same were set again."""
    one = beam()
    stepper = fg.EnergyMomentum(one, 1e-3)
    tip = one.position[0] * ds(2)
    one.strain.dat.data[...] *= 0.9
    fg.gradient(stepper, 2, tip, [one.strain])
    stepper.advance(2)
    with pytest.raises(NotImplementedError, match="take position, orientation and velocity"):
        fg.gradient(stepper, 2, tip, [one.strain])
    fg.gradient(stepper, 2, tip, [one.position])
