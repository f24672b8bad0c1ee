"""Steps in which a cell turns too far fail, compiled or not, and leave the state before them."""

import numpy as np
import pytest
from firedrake import IntervalMesh, as_vector, conditional, lt, pi, sin

import fdgeom as fg

#: A node at the end of a cell of length 1/2 has a quarter of it as its own: J = 0.25 · 4.
SOFT = fg.Section(np.diag([1e-9] * 3 + [1e-3] * 3), np.diag([4.0, 3.0, 3.0, 1.0, 1.0, 1.0]))
METHODS = {
    "generalized-alpha": fg.GeneralizedAlpha,
    "energy-momentum": fg.EnergyMomentum,
    "variational": fg.VariationalIntegrator,
    "poisson": fg.PoissonIntegrator,
    "hamel": fg.HamelFieldIntegrator,
    "symmetric": fg.SymmetricPoissonIntegrator,
    "midpoint": fg.ImplicitMidpoint,
    "composed": fg.Composition(fg.VariationalIntegrator, order=4),
}
METHOD = pytest.mark.parametrize("name", METHODS)
COMPILED = pytest.mark.parametrize("compiled", [True, False])
SENTENCE = (
    r"failed: the two ends of the cell between the node at 0.5 and the node at 1 turn against "
    r"one another by ([0-9.]+) degrees in a step, and 90 degrees at most are possible. The "
    r"state is the one before this step; take smaller steps, or refine the mesh there(; if "
    r"the highest frequencies have grown, .*)?\.$"
)


def twisted(spin, **options):
    """Two cells, of which the last node turns about the axis."""
    beam = fg.Beam(IntervalMesh(2, 1.0), SOFT, left="clamped", **options)
    velocity = np.zeros((3, 6))
    velocity[2, 0] = spin
    beam.velocity.dat.data_wo[:] = velocity
    return beam


def spin_for(name, vector):
    """The spin before a step of 1 that turns a node by a Cayley vector.

    It is that spin, or of a variational step the momentum is (1 + w²/4) w.
    """
    varies = name in ("variational", "composed")
    return vector * (1 + vector**2 / 4) if varies else vector


def fields(beam):
    functions = (beam.position, beam.orientation, beam.velocity, beam.strain, beam.momentum)
    return [np.array(f.dat.data_ro) for f in functions]


def unchanged(beam, before):
    for found, expected in zip(fields(beam), before, strict=True):
        np.testing.assert_array_equal(found, expected)


@METHOD
@COMPILED
def test_a_step_that_turns_a_cell_too_far(name, compiled):
    """Increments are Cayley vectors: one of w turns by 2 atan(w/2), whatever the method."""
    beam = twisted(spin_for(name, 3.0))
    stepper = METHODS[name](beam, 1.0, compiled=compiled)
    stepper.system.consistency.prepare()
    before = fields(beam)
    with pytest.raises(fg.StepFailed, match=SENTENCE) as caught:
        stepper.advance()
    angle = float(caught.value.reason.split("by ")[1].split(" degrees")[0])
    # The first step of a composition is 1.35 times as long.
    if name == "composed":
        assert 90 < angle < 360
    else:
        # The stiffness turns it back by much less.
        assert angle == pytest.approx(np.degrees(2 * np.arctan(1.5)), abs=0.05)
    assert stepper.steps == stepper.t == 0
    unchanged(beam, before)
    # 1.9 is less than 90 degrees.
    beam.velocity.dat.data[2, 0] = 1.2 if name == "composed" else spin_for(name, 1.9)
    stepper.advance()
    assert stepper.steps == 1


#: Of the moment that turns the last node, whose inertia is 1: so that the third step of 1 is too long.
MOMENTS = {name: 1.1 for name in METHODS if name != "composed"} | {"variational": 1.8}


@pytest.mark.parametrize("name", MOMENTS)
@COMPILED
def test_inside_many_steps(name, compiled):
    """A moment M turns the node by M/2, 3M/2, 5M/2 in three steps (0, M, 2M by the old velocities),
    as Cayley vectors, where 2 is a right angle. Of a variational step these are the momenta."""
    moment = fg.Load(moment=(MOMENTS[name], 0, 0), at="right", frame="body")
    limited = name == "energy-momentum"
    if limited:
        # Of which the sum of angles is 14, 55 and 119 degrees.
        moment = fg.Load(moment=(0.5, 0, 0), at="right", frame="body")

    def made():
        beam = twisted(0.0, loads=moment)
        return beam, METHODS[name](beam, 1.0, compiled=compiled)

    beam, stepper = made()
    sentence = r"by 119.* degrees, and strains by directors soften beyond 90 degrees"
    with pytest.raises(fg.StepFailed, match=sentence if limited else SENTENCE) as caught:
        stepper.advance(100)
    assert caught.value.step == stepper.steps == stepper.t == 2
    other, again = made()
    again.advance(2)
    unchanged(beam, fields(other))


@COMPILED
def test_energy_momentum_does_not_break_its_cells(compiled):
    """A cell that turns by half a turn has no stiffness left, and the beam would be torn to 60 times
    its length with its energy kept."""
    section = fg.Section(np.diag([1.0, 1, 1, 1e4, 1e4, 1e4]), np.diag([1e-3] * 3 + [1.0] * 3))

    def pulse(t):
        return as_vector([0, 0, conditional(lt(t, 0.5), 6 * sin(2 * pi * t) ** 2, 0.0)])

    load = fg.Load(moment=pulse, at="right", frame="body")
    beam = fg.Beam(IntervalMesh(8, 1.0), section, left="clamped", loads=load)
    stepper = fg.EnergyMomentum(beam, 2e-3, compiled=compiled)
    with pytest.raises(fg.StepFailed, match=r"are turned against one another by 9\d\.?\d* degrees"):
        stepper.advance(1500)
    x = beam.position.dat.data_ro
    assert 0.1 < stepper.t < 0.5
    # What is right has at most 1.05.
    assert np.linalg.norm(np.diff(x, axis=0), axis=1).sum() < 1.06
    q = beam.orientation.dat.data_ro
    assert (q[:-1] * q[1:]).sum(axis=1).min() >= np.sqrt(0.5)


@pytest.mark.parametrize("measure", ["simo-reissner", "se3", "directors"])
def test_which_measures_have_a_largest_turn(measure):
    """From 100 degrees in a cell: refused at once where strains are those of directors."""
    beam = fg.Beam(IntervalMesh(2, 1.0), SOFT, strain_measure=measure)
    # The Cayley vector of 100 degrees, as reconstruct has it.
    beam.strain.dat.data_wo[:, 0] = 4 * np.tan(np.radians(50))
    beam.reconstruct()
    sentence = "orientation: the two ends of the cell .* are turned against one another by 100 deg"
    with pytest.raises(ValueError, match=sentence):
        fg.EnergyMomentum(beam, 0.01)
    for cls in (fg.GeneralizedAlpha, fg.VariationalIntegrator):
        if measure == "directors":
            with pytest.raises(ValueError, match=sentence):
                cls(beam, 0.01)
        else:
            cls(beam, 0.01).advance(2)


@COMPILED
def test_rigid_turns_and_free_joints_are_no_turns_of_cells(compiled):
    """Two stiff beams turn about their hinges by more than 90 degrees in a step, in two directions."""
    stiff = fg.Section(np.diag([1e3] * 3 + [1e5] * 3), np.diag([0.1] * 3 + [1.0] * 3))
    for cls in (fg.GeneralizedAlpha, fg.VariationalIntegrator, fg.EnergyMomentum):
        beams = [fg.Beam(IntervalMesh(3, 1.0), stiff, strain_measure="directors") for _ in "ab"]
        beams[1].reconstruct(position=(1, 0, 0))
        for beam, spin in zip(beams, (5.0, -5.0), strict=True):
            velocity = np.zeros((4, 6))
            velocity[:, 0] = spin
            beam.velocity.dat.data_wo[:] = velocity
        joints = [
            fg.Revolute(fg.ground, beams[0].left, axis=(1, 0, 0)),
            fg.Revolute(beams[0].right, beams[1].left, axis=(1, 0, 0)),
        ]
        stepper = cls(fg.Assembly(beams, joints), 1.0, compiled=compiled)
        assert stepper.is_compiled is compiled
        before = [np.array(beam.orientation.dat.data_ro[0]) for beam in beams]
        stepper.advance(1)
        for beam, q in zip(beams, before, strict=True):
            assert abs(beam.orientation.dat.data_ro[0] @ q) < 0.7


def test_halvings_are_those_that_were_asked_for():
    stepper = fg.GeneralizedAlpha(twisted(3.0), 1.0, halvings=1)
    stepper.advance()
    assert stepper.t == 1
    with pytest.raises(fg.StepFailed, match="degrees"):
        fg.GeneralizedAlpha(twisted(5.0), 1.0, halvings=1).advance()


def test_while_pyadjoint_records():
    """Steps that leave a trail are checked too."""
    from firedrake.adjoint import continue_annotation, pause_annotation

    for name in ("generalized-alpha", "variational"):
        stepper = METHODS[name](twisted(spin_for(name, 3.0)), 1.0)
        continue_annotation()
        try:
            with pytest.raises(fg.StepFailed, match="degrees"):
                stepper.advance(3)
        finally:
            pause_annotation()
