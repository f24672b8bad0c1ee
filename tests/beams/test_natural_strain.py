"""Natural strain that changes: by assignment, by Constants and Functions, as a function of time."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    as_vector,
    cos,
    sin,
)
from verification.beams import along
from ways import check_way

import fdgeom as fg

UNIT = fg.Section(np.eye(6), np.eye(6))
SIZE = 0.01


def actuated(**options):
    """One cell, clamped on the left, whose natural length breathes: an oscillator with a force.

    With all numbers one, half a mass at the free end and the natural stretch γ₀ = a sin t:
    ½ü = -(u - γ₀).
    """
    return fg.Beam(
        IntervalMesh(1, 1.0),
        UNIT,
        left="clamped",
        reference_strain=lambda t: SIZE * as_vector([0, 0, 0, sin(t), 0, 0]),
        **options,
    )


def exact(t):
    """u and u̇ of ü + 2u = 2a sin t from rest."""
    w = np.sqrt(2.0)
    return 2 * SIZE * np.array([np.sin(t) - np.sin(w * t) / w, np.cos(t) - np.cos(w * t)])


S2 = fg.SymmetricPoissonIntegrator
BRACKET = {
    "poisson": (fg.PoissonIntegrator, 1),
    "symmetric": (S2, 2),
    "composed": (fg.Composition(S2, 4), 4),
    "blanes-moan": (fg.Composition(S2, 4, scheme="blanes-moan"), 4),
    "midpoint": (fg.ImplicitMidpoint, 2),
    "discrete gradient": (fg.DiscreteGradient, 2),
}
IN_SPACE = {
    "energy-momentum": (fg.EnergyMomentum, 2),
    "variational": (fg.VariationalIntegrator, 2),
    "alpha": (fg.GeneralizedAlpha, 2),
}


def errors(stepper, order, assembled):
    end, found = 1.6, []
    for steps in (8, 16, 32):
        beam = actuated(strain_measure="directors")
        made = stepper(fg.Assembly([beam]) if assembled else beam, end / steps)
        # Chains of one beam are told the strain of every step.
        chained = stepper in (fg.EnergyMomentum, fg.GeneralizedAlpha)
        made.advance(steps)
        check_way(made, chained)
        place, speed = along(beam.position)[-1, 0] - 1, along(beam.velocity)[-1, 3]
        found.append(np.abs([place, speed] - exact(end)).max() / SIZE)
        # What is seen after a step is of its end.
        stretch = along(beam.strain)[0, 3] - SIZE * np.sin(end)
        assert beam.potential_energy() == pytest.approx(0.5 * stretch**2, abs=1e-15)
    rates = np.log2(np.array(found[:-1]) / np.array(found[1:]))
    assert rates[-1] == pytest.approx(order, abs=0.25)
    return found


@pytest.mark.parametrize("name", BRACKET)
def test_strain_and_momentum_keep_their_order(name):
    stepper, order = BRACKET[name]
    assert errors(stepper, order, False)[-1] < {1: 0.1, 2: 1e-2, 4: 1e-4}[order]


@pytest.mark.parametrize("assembled", [False, True])
@pytest.mark.parametrize("name", IN_SPACE)
def test_configuration_form_keeps_its_order(name, assembled):
    stepper, order = IN_SPACE[name]
    assert errors(stepper, order, assembled)[-1] < 1e-2


def test_why_such_steps_are_not_compiled():
    stepper = S2(actuated(), 0.1)
    assert "function of the time" in stepper.why_not_compiled
    with pytest.raises(ValueError, match="function of the time"):
        S2(actuated(), 0.1, compiled=True)


def tip_angle(beam):
    return 2 * np.arccos(along(beam.orientation)[-1, 0])


@pytest.mark.parametrize("measure", ["simo-reissner", "se3"])
def test_statics_follow(measure):
    """A clamped beam of natural curvature κ is an arc of the angle κL, whatever κ was before."""
    curvature = Constant(0.3)
    shape = Function(FunctionSpace(mesh := IntervalMesh(4, 2.0), "CG", 1)).assign(1.0)
    beam = fg.Beam(
        mesh,
        UNIT,
        left="clamped",
        reference_strain=as_vector([0, 0, curvature * shape, 0, 0, 0]),
        strain_measure=measure,
    )
    statics = fg.StaticEquilibrium(beam)
    changes = [
        (0.6, lambda: None),
        (1.0, lambda: curvature.assign(0.5)),
        (1.5, lambda: shape.assign(1.5)),
        # Assigned by hand, until something else changes again.
        (0.4, lambda: beam.reference_strain.assign(Constant([0, 0, 0.2, 0, 0, 0]))),
        (3.0, lambda: shape.assign(3.0)),
    ]
    for angle, change in changes:
        change()
        statics.solve()
        # The logarithm of the measures is right to 6e-14 for so small pieces.
        assert tip_angle(beam) == pytest.approx(angle, abs=1e-9)


@pytest.mark.parametrize("bracket", [True, False])
def test_a_shape_at_rest_follows(bracket):
    """The stress-free arc of a beam opens: at rest in the new shape there is no energy."""
    k = Constant(1.0)
    mesh = IntervalMesh(4, 1.0)
    (s,) = SpatialCoordinate(mesh)
    shape = (
        as_vector([sin(k * s) / k, (1 - cos(k * s)) / k, 0]),
        as_vector([cos(k * s / 2), 0, 0, sin(k * s / 2)]),
    )
    beam = fg.Beam(mesh, UNIT, reference_shape=shape)
    energy = beam.energy if bracket else beam.motion.energy
    assert energy() == pytest.approx(0, abs=1e-24)
    k.assign(0.5)
    # Curvatures differ by a half, stretches by the chords of the arcs.
    assert energy() == pytest.approx(0.5 * 0.5**2, rel=0.02)
    beam.position.interpolate(shape[0])
    beam.orientation.interpolate(shape[1])
    beam.project()
    assert energy() == pytest.approx(0, abs=1e-24)


def test_assigned_values_act_in_an_assembly():
    """On a beam by itself and in an assembly the same, after any assignment."""
    ends = []
    for assembled in (False, True):
        beam = fg.Beam(
            IntervalMesh(1, 1.0), UNIT, left="clamped", reference_strain=[0] * 6,
            strain_measure="directors",
        )  # fmt: skip
        stepper = fg.EnergyMomentum(fg.Assembly([beam]) if assembled else beam, 0.1)
        values = beam.reference_strain.dat.data
        for k in range(4):
            values[0, 2:4] = 0.1 * k, 0.05
            stepper.advance(2)
        ends.append(along(beam.orientation))
    assert 2 * np.arccos(ends[0][-1, 0]) > 0.01
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-12)


def test_an_assigned_jump_is_that_of_a_constant():
    """The accelerations of the method belong to the new shape at rest in both cases."""
    ends = []
    for assigned in (False, True):
        stretch = Constant(0.0)
        shape = [0] * 6 if assigned else as_vector([0, 0, 0, stretch, 0, 0])
        beam = fg.Beam(IntervalMesh(1, 1.0), UNIT, left="clamped", reference_strain=shape)
        stepper = fg.GeneralizedAlpha(beam, 0.1)
        stepper.advance(4)
        if assigned:
            beam.reference_strain.dat.data[:, 3] = SIZE
        else:
            stretch.assign(SIZE)
        stepper.advance(4)
        ends.append(along(beam.velocity))
    assert np.abs(ends[0]).max() > 0.1 * SIZE
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-14)


def test_a_function_that_is_no_strain_is_refused():
    mesh = IntervalMesh(1, 1.0)
    with pytest.raises(ValueError, match="vector of 6"):
        fg.Beam(mesh, UNIT, reference_strain=lambda t: t)
    with pytest.raises(ValueError, match=r"must take \(t\), \(s\) or \(s, t\)"):
        fg.Beam(mesh, UNIT, reference_strain=lambda: 0)


@pytest.mark.parametrize("assembled", [False, True])
def test_reactions_over_a_step(assembled):
    """With a natural stretch γ₀ the wall pulls by γ₀ - ū: both in the middle of the step."""
    beam = actuated(strain_measure="directors")
    stepper = fg.EnergyMomentum(fg.Assembly([beam]) if assembled else beam, 0.1)
    ends = []
    for steps in (4, 1):
        stepper.advance(steps)
        ends.append(np.ptp(beam.position.dat.data_ro[:, 0]) - 1)
    found = stepper.system.reactions()
    (found, *_) = found if assembled else (found,)
    expected = SIZE * np.sin(0.45) - np.mean(ends)
    assert found["left"][1] == pytest.approx([expected, 0, 0], abs=1e-14)
