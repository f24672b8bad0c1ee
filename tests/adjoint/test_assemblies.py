"""Gradients through steps of joined beams: the fields of the beams and those of their network."""

import numpy as np
import pytest
from derivable import Run, directions, objective
from firedrake import Function, FunctionSpace, UnitIntervalMesh, as_vector, assemble, dx, inner
from firedrake.adjoint import Control, ReducedFunctional, continue_annotation, pause_annotation
from verification.joined import double_pendulum, straight

import fdgeom as fg


@pytest.fixture(scope="module")
def run():
    """Of the network's motion, by what is set of its beams."""
    made = Run(fg.GeneralizedAlpha(double_pendulum(), 0.01))
    system = made.stepper.system
    made.objective = objective(system.functions().values())
    return made


def test_by_what_is_set_of_the_beams(run, rng):
    """Beam by beam, the momentum too, of which the velocity follows."""
    for names in (["velocity of beam 0", "velocity of beam 1"], ["momentum of beam 1"]):
        run.controls = [run.functions[name] for name in names]
        moved = directions(run.controls, rng)
        expected = run.difference(moved, (4,), 1e-3)
        value, found = fg.gradient(run.stepper, 4, run.objective, run.controls)
        terms = [g.dat.data_ro * d for g, d in zip(found, moved, strict=True)]
        scale = sum(abs(t).sum() for t in terms)
        # The error of the differences is about 1e-10.
        assert sum(t.sum() for t in terms) == pytest.approx(expected, abs=1e-7 * scale)
        assert value == pytest.approx(run.value([f.dat.data_ro for f in run.controls], (4,)))
        run.again()


def test_objectives_count_the_beams_alone(run):
    """The network has cells of joints too."""
    system = run.stepper.system
    whole, *of_beams = (
        inner(owner.position, owner.position) * dx(degree=2) for owner in (system, *system.beams)
    )
    control = run.functions["velocity of beam 1"]
    value, (found,) = fg.gradient(run.stepper, 2, whole, [control])
    values, slopes = zip(
        *(fg.gradient(run.stepper, 2, form, [control]) for form in of_beams), strict=True
    )
    assert value == pytest.approx(sum(values), rel=1e-13)
    slopes = sum(slope.dat.data_ro for (slope,) in slopes)
    assert found.dat.data_ro == pytest.approx(slopes, abs=1e-13 * abs(slopes).max())
    assert value < 0.99 * assemble(whole)


def test_what_is_set_of_a_beam_counts_and_not_what_the_network_held(run):
    network, beams = run.functions["velocity"], run.functions["velocity of beam 1"]
    _, (of_network, of_beam) = fg.gradient(run.stepper, 2, run.objective, [network, beams])
    assert abs(of_beam.dat.data_ro).max() > 0
    assert abs(of_network.dat.data_ro).max() == 0


def test_a_strain_does_not_say_where_a_beam_is(run):
    strain = run.functions["strain of beam 0"]
    with pytest.raises(NotImplementedError, match="take position, orientation and velocity"):
        fg.gradient(run.stepper, 1, run.objective, [strain])


@pytest.mark.parametrize("moves_before", [False, True])
def test_steps_after_an_equilibrium_on_a_tape(moves_before):
    """A replay by another load has the value of a run without a tape."""

    def run(value, record=False):
        force = Function(FunctionSpace(UnitIntervalMesh(1), "R", 0)).assign(value)
        section = fg.Section(np.diag([1.0, 2.0, 1.5, 90.0, 80.0, 70.0]), np.eye(6))
        first = straight((0, 0, 0), (1.0, 0, 0), 2, section, left="clamped")
        load = fg.Load(force=as_vector([0, 0.2, force]), at=0.5)
        second = straight((1.0, 0, 0), (1.0, 0, 1.0), 2, section, right="clamped", loads=load)
        hinge = fg.Revolute(first.right, second.left, axis=(0, 1, 0))
        assembly = fg.Assembly([first, second], [hinge])
        stepper, statics = fg.GeneralizedAlpha(assembly, 0.01), fg.StaticEquilibrium(assembly)
        if record:
            continue_annotation()
        if moves_before:
            stepper.advance(2)
        statics.solve()
        stepper.advance(2)
        value = assemble(inner(second.position, second.position) * dx(degree=2))
        if record:
            pause_annotation()
        return force, value

    force, value = run(0.5, record=True)
    assert value == pytest.approx(run(0.5)[1], rel=1e-12)
    replayed = ReducedFunctional(value, Control(force))
    other = force.copy(deepcopy=True).assign(0.8)
    # Newton's iterations of statics end at round-off.
    assert replayed(other) == pytest.approx(run(0.8)[1], rel=1e-11)
