"""The angle of a hinge with a spring stays within half a turn: steps beyond it fail."""

import numpy as np
import pytest
from firedrake import IntervalMesh

import fdgeom as fg

STIFF = fg.Section.rectangle(0.02, 0.01, density=1000.0, youngs_modulus=1e7, poisson_ratio=0.3)


def swinging(spin, stiffness=0.02):
    """A beam that turns about its hinged left end, and its assembly."""
    beam = fg.Beam(IntervalMesh(4, 0.5), STIFF)
    velocity = np.zeros((5, 6))
    velocity[:, 2], velocity[:, 4] = spin, spin * beam.position.dat.data_ro[:, 0]
    beam.velocity.dat.data[:] = velocity
    hinge = fg.Revolute(fg.ground, beam.left, axis=(0, 0, 1), stiffness=stiffness)
    return beam, fg.Assembly([beam], joints=[hinge])


def turned(beam):
    """The angle of its left end."""
    q = beam.orientation.dat.data_ro[0]
    return 2 * np.arctan2(q[3], q[0])


@pytest.mark.parametrize(
    ("cls", "dt", "compiled"),
    [
        (fg.GeneralizedAlpha, 2e-3, True),
        (fg.GeneralizedAlpha, 2e-2, False),
        (fg.VariationalIntegrator, 5e-5, True),
    ],
)
def test_a_step_past_half_a_turn_fails(cls, dt, compiled):
    """Of the energy of the start the spring takes k θ²/2, all of it at 3.9 > π."""
    beam, assembly = swinging(6.0)
    stepper = cls(assembly, dt, compiled=compiled)
    sentence = (
        r"failed: the angle of joints\[0\], <Revolute joint of the ground and the left end>, passes "
        r"half a turn \(pi\), where the moment of its spring would change its sign. The state "
        r"is the one before this step; end the run before, or take a stiffer spring"
    )
    with pytest.raises(fg.StepFailed, match=sentence) as caught:
        stepper.advance(40000)
    assert caught.value.step == stepper.steps > 20
    # Within two steps of at most 6 rad/s.
    assert np.pi - 12 * dt < turned(beam) < np.pi


def test_below_half_a_turn_it_swings():
    """It turns back where the spring has all the energy: J ω²/2 = k θ²/2 about the hinge."""
    beam, assembly = swinging(4.5)
    inertia = 1000 * 0.02 * 0.01 * 0.5**3 / 3 + 0.5 * STIFF.inertia[2, 2]
    stepper = fg.GeneralizedAlpha(assembly, 5e-3)
    angles = []
    for _ in range(300):
        stepper.advance(1)
        angles.append(turned(beam))
    assert max(angles) == pytest.approx(4.5 * np.sqrt(inertia / 0.02), rel=0.02)
    assert angles[-1] < max(angles)


def test_statics_stay_within_half_a_turn():
    """A moment that the spring balances at 4 rad."""
    beam = fg.Beam(IntervalMesh(2, 0.5), STIFF, loads=fg.Load(moment=(0, 0, 0.08), at="right"))
    hinge = fg.Revolute(fg.ground, beam.left, axis=(0, 0, 1), stiffness=0.02)
    statics = fg.StaticEquilibrium(fg.Assembly([beam], joints=[hinge]))
    statics.solve(0.75, steps=3)
    assert turned(beam) == pytest.approx(3, abs=1e-9)
    with pytest.raises(fg.LoadStepFailed):
        statics.solve(1.0)
    assert turned(beam) == pytest.approx(3, abs=1e-9)
