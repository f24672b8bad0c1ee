"""Gradients by what is set of beams between steps, also where something else has moved them."""

import numpy as np
import pytest
from derivable import Run, beam, directions, holding, objective
from firedrake import assemble
from firedrake.adjoint import Control, ReducedFunctional, continue_annotation, pause_annotation
from verification.joined import double_pendulum

import fdgeom as fg
from fdgeom.operations.dependent import MadeOnce

DT = 0.01


@pytest.fixture(autouse=True)
def off_joints():
    """Beams that are reconstructed one by one leave their joints, as only replays may."""
    with MadeOnce.replayed():
        yield


def joined():
    return double_pendulum(strain_measure="se3")


def joined_by_directors():
    return double_pendulum(strain_measure="directors")


def reconstructed(run):
    """Each beam, where its first node was at the start."""
    for one, pose in zip(run.beams, run.poses, strict=True):
        one.reconstruct(*pose)


def left(run):
    """As it is: the derivative before a replay was wrong."""


def moved_on(run):
    """By another stepper, which moves strain and momentum."""
    run.other.advance(1)


def made(method, build):
    """A run whose stepper was made first, with the beams that it moves."""
    system = build()
    run = Run(method(system, DT))
    run.beams = [system] if isinstance(system, fg.Beam) else system.beams
    run.poses = [
        [np.array(f.dat.data_ro[0]) for f in (one.position, one.orientation)] for one in run.beams
    ]
    run.other = fg.SymmetricPoissonIntegrator(run.beams[-1], DT)
    run.objective = objective(run.beams[-1].functions().values())
    return run


def differences(at, size=1e-3):
    """Of fourth order."""
    return (8 * (at(size) - at(-size)) - (at(2 * size) - at(-2 * size))) / (12 * size)


@pytest.mark.parametrize(
    ("method", "build", "move", "name"),
    [
        (fg.GeneralizedAlpha, beam, reconstructed, "momentum"),
        (fg.GeneralizedAlpha, beam, reconstructed, "strain"),
        (fg.GeneralizedAlpha, beam, moved_on, "momentum"),
        (fg.GeneralizedAlpha, joined, reconstructed, "momentum"),
        (fg.EnergyMomentum, beam, reconstructed, "momentum"),
        (fg.EnergyMomentum, beam, reconstructed, "strain"),
        (fg.EnergyMomentum, beam, left, "momentum"),
        (fg.EnergyMomentum, joined_by_directors, reconstructed, "momentum"),
    ],
)
def test_one_field_is_set(method, build, move, name, rng):
    """The other one of its pair follows, in derivatives too."""
    run = made(method, build)
    control = run.beams[-1].functions()[name]

    def moved():
        run.again()
        run.stepper.advance(2)
        move(run)

    def value(given):
        moved()
        control.assign(given)
        run.stepper.advance(2)
        return assemble(run.objective)

    moved()
    given = holding(control, 0.9 * control.dat.data_ro)
    (direction,) = directions([control], rng)
    expected = differences(lambda s: value(holding(control, given.dat.data_ro + s * direction)))

    def check(derivative):
        terms = derivative.dat.data_ro * direction
        assert terms.sum() == pytest.approx(expected, abs=1e-7 * abs(terms).sum())

    # Without a tape.
    moved()
    control.assign(given)
    found, (derivative,) = fg.gradient(run.stepper, 2, run.objective, [control])
    assert found == pytest.approx(value(given), rel=1e-13)
    check(derivative)
    # On a tape, from the first steps on and in replays.
    run.again()
    continue_annotation()
    run.stepper.advance(2)
    move(run)
    control.assign(given)
    run.stepper.advance(2)
    reduced = ReducedFunctional(assemble(run.objective), Control(given))
    pause_annotation()
    check(reduced.derivative())
    other = holding(control, given.dat.data_ro + 0.01 * direction)
    assert reduced(other) == pytest.approx(value(other), rel=1e-13)
    assert reduced(given) == pytest.approx(value(given), rel=1e-13)
    check(reduced.derivative())


@pytest.mark.parametrize("build", [beam, joined])
def test_the_start_before_a_reconstruction(build, rng):
    """Steps read velocities that the reconstruction has set."""
    run = made(fg.GeneralizedAlpha, build)
    control = run.beams[-1].momentum
    (direction,) = directions([control], rng)
    given = holding(control, control.dat.data_ro)

    def value(given, recorded=False):
        run.again()
        if recorded:
            continue_annotation()
        control.assign(given)
        run.stepper.advance(2)
        reconstructed(run)
        run.stepper.advance(2)
        return assemble(run.objective)

    expected = differences(lambda s: value(holding(control, given.dat.data_ro + s * direction)))
    reduced = ReducedFunctional(value(given, recorded=True), Control(given))
    pause_annotation()
    terms = reduced.derivative().dat.data_ro * direction
    assert np.sum(terms) == pytest.approx(expected, abs=1e-7 * abs(terms).sum())
