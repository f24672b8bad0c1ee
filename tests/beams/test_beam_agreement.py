"""The two descriptions of a beam: what was set last is taken, and contradictions are said."""

import numpy as np
import pytest
from firedrake import Constant, SpatialCoordinate, as_vector
from verification.beams import INERTIA, SOFT, STIFFNESS, along, set_smooth, uneven_mesh
from verification.rod_cases import SEPARATE

import fdgeom as fg

BRACKET = (fg.SymmetricPoissonIntegrator, fg.ImplicitMidpoint)
CONFIGURATION = (fg.EnergyMomentum, fg.VariationalIntegrator, fg.GeneralizedAlpha)
DT = 1e-3


MESH = uneven_mesh(5)


def beam(**options):
    return fg.Beam(MESH, fg.Section(STIFFNESS, SEPARATE), **options)


def bend(beam, size=0.4):
    """A strain set without a configuration, and the configuration that it has."""
    twin = fg.Beam(beam.mesh, SOFT)
    (s,) = SpatialCoordinate(beam.mesh)
    strain = Constant(size) * as_vector([0, 0.3 * s, 1, 0, 0, 0.1])
    for each in (twin, beam):
        each.strain.interpolate(strain)
    twin.reconstruct()
    return along(twin.position)


@pytest.mark.parametrize("cls", [*BRACKET, *CONFIGURATION])
def test_strain_set_without_reconstruct(cls):
    made = beam()
    shape, strain = bend(made), along(made.strain)
    stepper = cls(made, 1e-5)
    stepper.advance()
    # A step is short; the measures differ by the square of a cell's length.
    assert along(made.position) == pytest.approx(shape, abs=1e-6)
    assert along(made.strain) == pytest.approx(strain, abs=1e-2)
    # Also between steps; the left end stays where it is.
    left = along(made.position)[0]
    shape = bend(made, -0.2)
    stepper.advance()
    assert along(made.position) - left == pytest.approx(shape, abs=1e-4)


@pytest.mark.parametrize("cls", [fg.SymmetricPoissonIntegrator, fg.EnergyMomentum])
def test_held_right_end_stays(cls):
    made = beam(right="clamped")
    shape = bend(made)
    cls(made, 1e-6).advance()
    there = along(made.position)
    assert there[-1] == pytest.approx([1.5, 0, 0], abs=1e-14)
    assert along(made.orientation)[-1] == pytest.approx([1, 0, 0, 0], abs=1e-14)
    # The same shape, turned.
    sizes = np.linalg.norm(np.diff(shape, axis=0), axis=1)
    assert np.linalg.norm(np.diff(there, axis=0), axis=1) == pytest.approx(sizes, abs=1e-6)
    assert np.linalg.norm(there[0] - there[-1]) == pytest.approx(
        np.linalg.norm(shape[0] - shape[-1]), abs=1e-6
    )


@pytest.mark.parametrize("cls", [*BRACKET, *CONFIGURATION])
def test_velocity_or_momentum_set_by_hand(cls):
    """A straight beam flies on with either, and the other one is that of it."""
    made = fg.Beam(uneven_mesh(5), SOFT)
    made.velocity.dat.data_wo[:, 3] = 2.0
    stepper = cls(made, DT)
    stepper.advance()
    assert along(made.velocity)[:, 3] == pytest.approx(2.0, rel=1e-2)
    assert along(made.momentum) == pytest.approx(along(made.velocity) @ INERTIA, abs=1e-12)
    # In a thousandth of a second nothing turns much.
    assert made.linear_momentum() == pytest.approx(1.5 * 2 * INERTIA[3, 3:], abs=1e-3)
    made.momentum.assign(0.0)
    stepper.advance()
    assert np.abs(along(made.velocity)).max() < 0.05
    # Both, if they say the same.
    made.velocity.dat.data_wo[...] = np.arange(6.0)
    made.momentum.dat.data_wo[...] = np.arange(6.0) @ INERTIA
    stepper.advance()
    assert made.linear_momentum() == pytest.approx(1.5 * (np.arange(6.0) @ INERTIA)[3:], rel=0.05)


@pytest.mark.parametrize("cls", [fg.SymmetricPoissonIntegrator, *CONFIGURATION])
def test_velocity_and_momentum_that_contradict(cls):
    made = set_smooth(beam())
    stepper = cls(made, DT)
    stepper.advance()
    made.velocity.assign(1.0)
    made.momentum.assign(2.0)
    with pytest.raises(ValueError, match="momentum and velocity .* contradict .* project()"):
        stepper.advance()
    assert stepper.steps == 1
    assert np.array_equal(along(made.velocity), np.ones((6, 6)))
    assert np.array_equal(along(made.momentum), np.full((6, 6), 2.0))
    with pytest.raises(ValueError, match="contradict"):
        cls(made, DT)
    made.reconstruct()
    stepper.advance()
    expected = 2 * 1.5 * np.ones(3)
    assert np.linalg.norm(made.linear_momentum()) < 2 * np.linalg.norm(expected)
    made.velocity.assign(1.0)
    made.momentum.assign(2.0)
    made.project()
    assert along(made.momentum) == pytest.approx(np.ones((6, 6)) @ SEPARATE, abs=1e-14)


@pytest.mark.parametrize("cls", CONFIGURATION)
def test_strain_and_configuration_that_contradict(cls):
    made = beam()
    bend(made)
    strain = along(made.strain)
    made.position.interpolate(2 * made.position)
    with pytest.raises(ValueError, match="strain and configuration .* contradict .* reconstruct()"):
        cls(made, DT)
    assert np.array_equal(along(made.strain), strain)
    made.reconstruct()
    cls(made, DT)
    assert along(made.strain) == pytest.approx(strain, abs=1e-2)
    # Both, if they say the same: a state put back.
    copy = [np.array(f.dat.data_ro) for f in made.functions().values()]
    stepper = cls(made, DT)
    stepper.advance(3)
    for f, values in zip(made.functions().values(), copy, strict=True):
        f.dat.data_wo[...] = values
    stepper.advance()


def test_configuration_set_without_project():
    """Steps of the strain start from the shape that the nodes were put into."""
    made, twin = beam(), beam()
    shape = bend(twin)
    twin.reconstruct()
    for name in ("position", "orientation"):
        getattr(made, name).assign(getattr(twin, name))
    fg.SymmetricPoissonIntegrator(made, DT).advance()
    fg.SymmetricPoissonIntegrator(twin, DT).advance()
    # Round-off of differences of positions.
    assert along(made.strain) == pytest.approx(along(twin.strain), abs=1e-13)
    assert along(made.position) == pytest.approx(along(twin.position), abs=1e-13)
    assert np.abs(shape[-1] - [1.5, 0, 0]).max() > 0.1


def test_strain_of_a_beam_in_a_network():
    made = [beam(), beam()]
    made[1].reconstruct(position=(1.5, 0, 0))
    bend(made[1])
    joint = fg.Spherical(made[0].right, made[1].left)
    with pytest.raises(ValueError, match=r"network was set, .* reconstruct\(position"):
        fg.Assembly(made, joint)
    made[1].reconstruct(position=(1.5, 0, 0))
    fg.Assembly(made, joint)


def test_steps_of_one_kind_after_the_other():
    """What steps have written is no contradiction."""
    made = set_smooth(beam())
    for cls in (fg.SymmetricPoissonIntegrator, fg.EnergyMomentum, fg.PoissonIntegrator):
        cls(made, DT).advance(2)
        cls(made, DT).advance(2)
    assert np.abs(along(made.position)[:, 1:]).max() > 0.05
