"""Compositions keep their order with held and moved ends, loads and joints, or are refused."""

from functools import cache

import numpy as np
import pytest
from firedrake import IntervalMesh, as_vector, cos, sin
from verification.beams import INERTIA, SOFT, STIFFNESS, along, arc, order, set_smooth, uneven_mesh
from verification.numpy_beam import NumpyBeam, rotation
from verification.rod_cases import FORCE, GRAVITY, INERTIAS, SEPARATE, gap, moving, state

import fdgeom as fg

S, M = fg.SymmetricPoissonIntegrator, fg.ImplicitMidpoint
V, E = fg.VariationalIntegrator, fg.EnergyMomentum


def rates(errors, steps):
    return np.log(errors[:-1] / errors[1:]) / np.log(np.array(steps[1:]) / steps[:-1])


# --- strain and momentum -------------------------------------------------------------------------
def motion(t, sin=sin, cos=cos):
    """Body velocity of a moved end, which starts at rest."""
    return [0.3 * sin(2 * t), 0.1 * t, 0.2 * t, t**2, 0.2 * (cos(t) - 1), 0.4 * sin(t)]


def turned(t, sin=np.sin, cos=np.cos):
    """Body velocity of an end at (0, 0.3 sin²t, 0), turned by 0.3 t² about the third axis."""
    angle, speed = 0.3 * t**2, 0.3 * sin(2 * t)
    return [0, 0, 0.6 * t, speed * sin(angle), speed * cos(angle), 0]


POSE = fg.GivenPose(
    position=lambda t: as_vector([0 * t, 0.3 * sin(t) ** 2, 0]),
    orientation=lambda t: as_vector([cos(0.15 * t**2), 0, 0, sin(0.15 * t**2)]),
)
MOMENT = (0.1, 0.0, 0.2)
LOADS = (
    fg.Load(force=FORCE, at="right"),
    fg.Load(moment=MOMENT, at="right", frame="body"),
    fg.Gravity(GRAVITY),
)
#: How the left end is held, what acts, and the left end's velocity as numbers.
HELD = {
    "given velocity": ({"left": lambda t: as_vector(motion(t))}, motion),
    "given pose": ({"left": POSE}, turned),
    "pinned, with loads": ({"left": "pinned", "loads": LOADS}, None),
}


def held_beam(options):
    """A smooth start, at rest at the left end."""
    beam = set_smooth(fg.Beam(uneven_mesh(8), SOFT, **options))
    beam.momentum.dat.data_wo[order(beam.momentum)[0]] = 0.0
    return beam


@pytest.fixture(scope="module")
def solution():
    """Strain, momentum, position and rotation at t = 1 by DOP853, for each kind of end."""
    return cache(lambda name: exact(*HELD[name]))


def exact(options, velocity):
    beam = held_beam(options)
    plain = NumpyBeam(arc(beam.momentum), STIFFNESS, INERTIA)
    plain.strain, plain.momentum = along(beam.strain), along(beam.momentum)
    plain.reconstruct()

    def rates(t, strain, momentum, pose):
        strain_rate, momentum_rate, pose_rate = plain.rates(strain, momentum, pose)
        if "loads" in options:
            R = pose[:, :3, :3]
            field = np.concatenate([np.zeros((9, 3)), GRAVITY @ R], axis=1)
            momentum_rate = momentum_rate + field @ INERTIA
            end = np.concatenate([MOMENT, FORCE @ R[-1]]) / plain.weights[-1]
            momentum_rate[-1] += end
        if velocity is None:
            # Free to turn: M_rr ω' = the moment; the reaction makes up for the rest.
            momentum_rate[0] = np.linalg.solve(INERTIA[:3, :3], momentum_rate[0, :3]) @ INERTIA[:3]
        else:
            step = np.array(velocity(t + 1e-30j, np.sin, np.cos)).imag / 1e-30
            momentum_rate[0] = INERTIA @ step
        return strain_rate, momentum_rate, pose_rate

    return plain.solution(1, rates)


STEPS = {
    (S, 4, "suzuki"): (32, 48, 64),
    (S, 4, "yoshida"): (60, 80, 120),
    (S, 4, "blanes-moan"): (16, 24, 32),
    (S, 6, "kahan-li"): (24, 32, 40),
    (M, 4, "suzuki"): (24, 32, 48),
}


@pytest.mark.parametrize(
    ("base", "p", "scheme", "held"),
    [
        (S, 4, "suzuki", "given velocity"),
        (S, 4, "suzuki", "pinned, with loads"),
        (S, 4, "yoshida", "given pose"),
        (S, 4, "blanes-moan", "given velocity"),
        (S, 4, "blanes-moan", "given pose"),
        (S, 4, "blanes-moan", "pinned, with loads"),
        (S, 6, "kahan-li", "given velocity"),
        (M, 4, "suzuki", "given pose"),
        (M, 4, "suzuki", "pinned, with loads"),
    ],
)
def test_order_of_bracket_methods(solution, base, p, scheme, held):
    (options, velocity), steps, errors = HELD[held], STEPS[base, p, scheme], []
    for n in steps:
        beam = held_beam(options)
        fg.Composition(base, p, scheme)(beam, 1 / n).advance(n)
        found = (
            along(beam.strain),
            along(beam.momentum),
            along(beam.position),
            rotation(along(beam.orientation)),
        )
        errors.append([np.abs(a - b).max() for a, b in zip(found, solution(held), strict=True)])
        if velocity is not None:
            # What is given at the end is met there.
            given = velocity(1.0, np.sin, np.cos)
            assert along(beam.velocity)[0] == pytest.approx(given, abs=1e-14)
    for k, field in enumerate(("strain", "momentum", "position", "orientation")):
        seen = rates(np.array(errors)[:, k], steps)
        # The limit is approached from below and from above; a lost order is off by one or more.
        assert seen[-1] == pytest.approx(p, abs=0.3), (field, seen)


@pytest.mark.parametrize("configuration", ["old", "new"])
def test_poses_of_order_one_are_refused(configuration):
    with pytest.raises(ValueError, match="^configuration: with .* the poses are of order 1"):
        fg.Composition(S)(fg.Beam(uneven_mesh(8), SOFT), 0.1, configuration=configuration)


# --- configuration form --------------------------------------------------------------------------
IN_TIME = (
    fg.Load(force=lambda t: as_vector([0.0, sin(3 * t), 0.0]), at="right"),
    fg.Load(moment=MOMENT, at="right", frame="body"),
    fg.Load(force=FORCE, at="right"),
)
PLACE = fg.GivenPose(position=lambda t: as_vector([0 * t, 0.3 * sin(t) ** 2, 0]))
RODS = {
    "loads in time": {"inertia": SEPARATE, "loads": IN_TIME},
    "pinned, coupled inertia": {"inertia": INERTIAS["coupled"], "left": "pinned"},
    "clamped, damped": {"inertia": SEPARATE, "left": "clamped", "damping": 0.02},
    "given pose": {"inertia": SEPARATE, "left": POSE},
    "given position, coupled inertia": {"inertia": INERTIAS["coupled"], "left": PLACE},
}


def rod(inertia, **options):
    """Both methods by one strain measure."""
    return moving(inertia, 4, strain_measure="directors", **options)


@pytest.fixture(scope="module")
def limits():
    """The state at t = 0.8 by a method of order 6: of the other kind, where both are possible."""

    @cache
    def limit(case, base):
        beam, n = rod(**RODS[case]), 320 if base is V else 80
        fg.Composition(base, 6)(beam, 0.8 / n).advance(n)
        return state(beam)

    return limit


@pytest.mark.parametrize(
    ("case", "base", "scheme", "other"),
    [
        ("loads in time", V, "suzuki", E),
        ("loads in time", V, "blanes-moan", E),
        ("loads in time", E, "suzuki", V),
        ("pinned, coupled inertia", V, "suzuki", E),
        ("pinned, coupled inertia", V, "blanes-moan", E),
        ("pinned, coupled inertia", E, "suzuki", V),
        ("clamped, damped", E, "suzuki", E),
        ("given pose", E, "suzuki", E),
        ("given position, coupled inertia", E, "suzuki", E),
    ],
)
def test_order_of_rods(limits, case, base, scheme, other):
    """Positions, orientations and velocities."""
    steps, errors = (20, 30, 40), []
    for n in steps:
        beam = rod(**RODS[case])
        start = state(beam)
        fg.Composition(base, 4, scheme)(beam, 0.8 / n).advance(n)
        errors.append(
            [np.abs(a - b).max() for a, b in zip(state(beam), limits(case, other), strict=True)]
        )
        # All of it moves.
        assert min(np.abs(a - b).max() for a, b in zip(state(beam), start, strict=True)) > 0.05
    for k, field in enumerate(("position", "orientation", "velocity")):
        seen = rates(np.array(errors)[:, k], steps)
        assert seen[-1] == pytest.approx(4, abs=0.25), (field, seen)


@pytest.mark.parametrize("base", [V, E])
def test_what_is_set_by_hand_is_taken(base):
    """A straight beam flies on with the velocity that it is given, and its numbers are those of it."""
    beam = fg.Beam(uneven_mesh(4), fg.Section(STIFFNESS, SEPARATE))
    stepper = fg.Composition(base)(beam, 0.05)
    start, mass = along(beam.position)[:, 0], 1.5
    beam.velocity.dat.data_wo[:, 3] = 2.0
    stepper.advance()
    assert along(beam.position)[:, 0] == pytest.approx(start + 0.1, abs=1e-13)
    assert beam.linear_momentum() == pytest.approx([2 * mass, 0, 0], abs=1e-13)
    assert beam.energy() == pytest.approx(2 * mass, rel=1e-13)
    beam.momentum.dat.data_wo[:, 3] = -2.0
    stepper.advance()
    assert along(beam.position)[:, 0] == pytest.approx(start, abs=1e-13)
    assert along(beam.velocity)[:, 3] == pytest.approx(-2.0, abs=1e-13)
    assert stepper.t == pytest.approx(0.1)


def test_energy_and_momenta_of_composed_energy_momentum():
    beam = rod(SEPARATE)
    stepper = fg.Composition(E)(beam, 0.1)
    kept = beam.energy(), beam.linear_momentum(), beam.angular_momentum()
    before = state(beam)
    stepper.advance(20)
    assert gap(state(beam), before) > 0.1
    # Round-off of a hundred solves.
    assert beam.energy() == pytest.approx(kept[0], rel=1e-12)
    assert beam.linear_momentum() == pytest.approx(kept[1], abs=1e-12)
    assert beam.angular_momentum() == pytest.approx(kept[2], abs=1e-12)


def joined():
    """Two beams at a right angle that swing on a ball joint and a hinge."""
    section = fg.Section(
        np.diag([3.0, 5.0, 8.0, 500.0, 300.0, 400.0]), np.diag([0.05, 0.02, 0.04, 2.0, 2.0, 2.0])
    )
    upper, lower = (
        fg.Beam(IntervalMesh(3, length), section, strain_measure="directors")
        for length in (1.0, 0.8)
    )
    half = np.sqrt(0.5)
    lower.reconstruct(position=(1, 0, 0), orientation=(half, 0, 0, half))
    joints = [
        fg.Spherical(fg.ground, upper.left),
        fg.Revolute(upper.right, lower.left, axis=(0, 0, 1)),
    ]
    return fg.Assembly([upper, lower], joints, loads=fg.Gravity((1.0, 2.0, -9.81)))


@pytest.mark.parametrize("base", [V, E])
def test_order_of_joined_beams(base):
    """Composed to order 4, against order 6 of the variational integrator, which jointed beams go by too."""
    steps, ends = (30, 40, 60), []
    for cls, n in [(fg.Composition(V, 6), 120), *((fg.Composition(base), n) for n in steps)]:
        system = joined()
        cls(system, 0.2 / n).advance(n)
        ends.append([np.array(f.dat.data_ro) for f in (system.position, system.v)])
    for k in range(2):
        errors = np.array([np.abs(end[k] - ends[0][k]).max() for end in ends[1:]])
        assert rates(errors, steps)[-1] == pytest.approx(4, abs=0.3), errors


def test_flows_with_joints_are_refused():
    with pytest.raises(ValueError, match="^scheme: 'blanes-moan' needs a method of two flows"):
        fg.Composition(V, 4, "blanes-moan")(joined(), 0.1)
