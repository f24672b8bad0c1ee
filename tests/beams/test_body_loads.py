"""Loads of the user's own: drag, a floor and a cable, in every method; against closed forms."""

import numpy as np
import pytest
from firedrake import Constant, IntervalMesh, as_vector, cos, cross, dot, max_value, sqrt
from verification.beams import STIFFNESS, along, arc, set_smooth, uneven_mesh
from verification.rod_cases import SEPARATE

import fdgeom as fg

MASS, DRAG, FALL = 1.0, 0.7, 2.5
SECTION = fg.Section(STIFFNESS, SEPARATE)


class Drag(fg.BodyLoad):
    """A force against the velocity, per length."""

    def __init__(self, c=DRAG):
        self.c = Constant(c)

    def work(self, rod, g, v, t, virtual):
        return -self.c * dot(fg.lie.halves(v)[1], fg.lie.halves(virtual)[1])


class Floor(fg.BodyLoad):
    """A penalty that pushes back what is below z = 0, per length."""

    def __init__(self, k):
        self.k = Constant(k)

    def potential(self, rod, g, t):
        return 0.5 * self.k * max_value(-g[0][2], 0) ** 2


class Cable(fg.BodyLoad):
    """A constant tension from the right end to a point in space."""

    def __init__(self, tension, anchor):
        self.tension, self.anchor = Constant(tension), Constant(anchor)

    def potential(self, rod, g, t):
        reach = g[0] - self.anchor
        return rod.place("right") * self.tension * sqrt(dot(reach, reach))


class Tendon(fg.BodyLoad):
    """A tension along the section's axis at its right end, off the node: it turns with the section."""

    def __init__(self, tension, offset):
        self.force, self.offset = Constant([-tension, 0, 0]), Constant(offset)

    def work(self, rod, g, v, t, virtual):
        rotation, translation = fg.lie.halves(virtual)
        push = dot(fg.lie.quaternion.rotate(g[1], self.force), translation)
        return rod.place("right") * (push + dot(cross(self.offset, self.force), rotation))


def weights(beam):
    """Lengths that belong to the nodes."""
    lengths = np.diff(arc(beam.momentum))
    return 0.5 * (np.append(lengths, 0) + np.append(0, lengths))


# --- drag ------------------------------------------------------------------------------------------
PUSH = (0.3, -0.2, 0.5)


def gliding(loads, **options):
    """A free beam that moves as a whole, without turning."""
    beam = fg.Beam(uneven_mesh(3), SECTION, loads=loads, strain_measure="directors", **options)
    beam.velocity.interpolate(as_vector([0, 0, 0, *PUSH]))
    return beam


METHODS = [
    fg.EnergyMomentum,
    fg.ImplicitMidpoint,
    fg.SymmetricPoissonIntegrator,
    fg.DiscreteGradient,
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__name__)
def test_drag_at_the_mean(method):
    """Each step multiplies the velocity by (1 - a)/(1 + a), a = cΔt/2m, and weight falls in."""
    beam = gliding([Drag(), fg.Gravity((0, 0, -FALL))])
    dt, steps = 0.2, 10
    method(beam, dt).advance(steps)
    a = 0.5 * DRAG * dt / MASS
    terminal = np.array([0, 0, -FALL * MASS / DRAG])
    expected = terminal + (np.array(PUSH) - terminal) * ((1 - a) / (1 + a)) ** steps
    # Round-off of the solves.
    assert along(beam.velocity)[:, 3:] == pytest.approx(np.tile(expected, (4, 1)), abs=1e-11)


def test_drag_in_generalized_alpha():
    """Decay to the terminal velocity; of second order."""
    terminal = np.array([0, 0, -FALL * MASS / DRAG])
    expected = terminal + (np.array(PUSH) - terminal) * np.exp(-DRAG / MASS)
    errors = []
    for steps in (5, 10, 20):
        beam = gliding([Drag(), fg.Gravity((0, 0, -FALL))])
        fg.GeneralizedAlpha(beam, 1 / steps).advance(steps)
        v = along(beam.velocity)[:, 3:]
        assert np.ptp(v, axis=0) == pytest.approx(0, abs=1e-10)
        errors.append(np.abs(v[0] - expected).max())
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx(2, abs=0.2)
    assert errors[-1] < 1e-2


def test_drag_takes_what_it_dissipates():
    """A beam that bends and spins: the energy falls by Δt c|v̄|² at each node, to round-off."""
    beam = fg.Beam(uneven_mesh(5), SECTION, loads=Drag(), strain_measure="directors")
    set_smooth(beam)
    dt, w = 0.1, weights(beam)
    stepper = fg.EnergyMomentum(beam, dt)
    beam.motion.consistency.prepare()
    stepper.advance()
    for _ in range(20):
        energy, before = beam.energy(), along(beam.position)
        stepper.advance()
        mean = (along(beam.position) - before) / dt
        lost = dt * DRAG * w @ (mean**2).sum(axis=1)
        assert lost > 1e-4
        assert energy - beam.energy() == pytest.approx(lost, abs=1e-11)


def test_drag_in_an_assembly():
    """Half of it on the beams of an assembly, each by itself, and half on all: as on one beam."""
    half = Drag(DRAG / 2)
    first, second = (fg.Beam(IntervalMesh(2, 1.0), SECTION, loads=half) for _ in range(2))
    second.reconstruct(position=(1, 0, 0))
    for beam in (first, second):
        beam.velocity.interpolate(as_vector([0, 0, 0, *PUSH]))
    assembly = fg.Assembly([first, second], [fg.Rigid(first.right, second.left)], loads=half)
    fg.GeneralizedAlpha(assembly, 0.1).advance(5)
    found = np.vstack([along(b.position) for b in (first, second)])
    alone = gliding([Drag()])
    fg.GeneralizedAlpha(alone, 0.1).advance(5)
    moved = along(alone.position)[0]
    s = np.array([0, 0.5, 1, 1, 1.5, 2])[:, None] * np.array([1, 0, 0])
    # The joint is held to the solver's tolerance.
    assert found - s == pytest.approx(np.tile(moved, (6, 1)), abs=1e-9)


def test_a_load_of_the_velocity_has_no_place_in_a_variational_step():
    with pytest.raises(ValueError, match="depends on the velocity has no place in Variational"):
        fg.VariationalIntegrator(gliding(Drag()), 0.1)


# --- a floor ---------------------------------------------------------------------------------------
STIFF, HEIGHT, SPEED = 40.0, 0.1, 0.6


def falling():
    beam = fg.Beam(uneven_mesh(2), SECTION, loads=Floor(STIFF), strain_measure="directors")
    beam.reconstruct(position=(0, 0, HEIGHT))
    beam.velocity.interpolate(as_vector([0, 0, 0, 0.2, 0, -SPEED]))
    return beam


@pytest.mark.parametrize(
    "method", [fg.GeneralizedAlpha, fg.VariationalIntegrator, fg.EnergyMomentum, fg.DiscreteGradient],
    ids=lambda m: m.__name__,
)  # fmt: skip
def test_bouncing_as_a_whole(method):
    """Down, half an oscillation of √(k/m) in the floor, and up with the same speed."""
    contact = np.pi / np.sqrt(STIFF / MASS)
    until = HEIGHT / SPEED + contact + 0.2
    height = 0.2 * SPEED
    errors = []
    for steps in (32, 64, 128):
        beam = falling()
        stepper = method(beam, until / steps)
        stepper.advance(steps)
        x, v = along(beam.position), along(beam.velocity)
        errors.append(max(np.abs(x[:, 2] - height).max(), np.abs(v[:, 5] - SPEED).max()))
        # The floor is smooth, and so is what it does along itself.
        assert v[:, 3] == pytest.approx(0.2, abs=1e-10)
    # The force has a kink in time: of second order as a mean.
    assert 0.5 * np.log2(errors[0] / errors[-1]) == pytest.approx(2, abs=0.6)
    assert errors[-1] < 1e-2


@pytest.mark.parametrize(
    "method", [fg.EnergyMomentum, fg.DiscreteGradient], ids=lambda m: m.__name__
)
def test_energy_with_a_floor_and_a_cable(method):
    """Of a beam that bends, hits the floor and swings on a cable: all its parts, to round-off."""
    loads = [Floor(STIFF), Cable(0.5, (1.0, 0.5, 1.0)), fg.Gravity((0, 0, -1.0))]
    beam = fg.Beam(uneven_mesh(4), SECTION, loads=loads, strain_measure="directors")
    set_smooth(beam)
    beam.reconstruct(position=(0, 0, 0.2))
    stepper = method(beam, 0.05)
    stepper.advance()
    energy, parts = beam.energy(), []
    for _ in range(40):
        stepper.advance()
        # The solves' tolerance, of 40 steps.
        assert beam.energy() == pytest.approx(energy, rel=1e-10)
        parts.append(beam.load_potential())
    assert along(beam.position)[:, 2].min() < 0
    assert np.ptp(parts) > 0.1
    # The potentials, in NumPy.
    x = along(beam.position)
    below = 0.5 * STIFF * np.maximum(-x[:, 2], 0) ** 2
    cable = 0.5 * np.linalg.norm(x[-1] - [1.0, 0.5, 1.0])
    expected = weights(beam) @ (below + MASS * x[:, 2]) + cable
    assert parts[-1] == pytest.approx(expected, rel=1e-12)


# --- at rest ---------------------------------------------------------------------------------------
def at_rest(loads):
    beam = fg.Beam(uneven_mesh(4), SECTION, left="clamped", loads=loads)
    statics = fg.StaticEquilibrium(beam)
    statics.solve(steps=2)
    return beam, statics


def test_cable_at_rest():
    """Held by what a dead force of the cable's direction holds; a drag does nothing."""
    anchor, tension = np.array([1.0, 0.8, 0.5]), 0.3
    beam, statics = at_rest([Cable(tension, anchor), Drag()])
    tip = along(beam.position)[-1]
    force = tension * (anchor - tip) / np.linalg.norm(anchor - tip)
    moment, reaction = statics.reactions()["left"]
    assert reaction == pytest.approx(-force, abs=1e-10)
    assert moment == pytest.approx(-np.cross(tip, force), abs=1e-10)
    dead, _ = at_rest(fg.Load(force=force, at="right"))
    assert along(dead.position)[-1] == pytest.approx(tip, abs=1e-10)
    assert np.abs(tip - [1.5, 0, 0]).max() > 0.1


def test_tendon_at_rest():
    """A follower force and its moment about the node."""
    tension, offset = 0.2, np.array([0, 0.5, 0.1])
    beam, statics = at_rest(Tendon(tension, offset))
    force = np.array([-tension, 0, 0])
    same, _ = at_rest(
        fg.Load(force=force, moment=np.cross(offset, force), at="right", frame="body")
    )
    assert along(beam.position) == pytest.approx(along(same.position), abs=1e-10)
    # Balance of the whole beam, by hand.
    q, tip = along(beam.orientation)[-1], along(beam.position)[-1]
    pull = fg.lie.arrays.quaternion.rotate(q, force)
    arm = tip + fg.lie.arrays.quaternion.rotate(q, offset)
    moment, reaction = statics.reactions()["left"]
    assert reaction == pytest.approx(-pull, abs=1e-10)
    assert moment == pytest.approx(-np.cross(arm, pull), abs=1e-10)


# --- time ------------------------------------------------------------------------------------------
class Shaking(fg.BodyLoad):
    """A force in time, per length."""

    def work(self, rod, g, v, t, virtual):
        return MASS * cos(3 * t) * fg.lie.halves(virtual)[1][0]


def test_a_load_of_time():
    beam = gliding(Shaking())
    fg.EnergyMomentum(beam, 0.1).advance(5)
    middles = 0.1 * (np.arange(5) + 0.5)
    gained = 0.1 * np.cos(3 * middles).sum()
    assert along(beam.velocity)[:, 3] == pytest.approx(PUSH[0] + gained, abs=1e-11)
    with pytest.raises(ValueError, match="depends on the time, and steppers on strain"):
        fg.ImplicitMidpoint(gliding(Shaking()), 0.1)
