"""The energy–momentum method: what it keeps, its order, and another implementation in NumPy."""

import numpy as np
import pytest
from firedrake import SpatialCoordinate, UnitSquareMesh, as_vector, bessel_J, cos, sin
from verification.beams import STIFFNESS, along, papers_beam, set_smooth, uneven_mesh
from verification.rod_cases import (
    FORCE,
    GRAVITY,
    INERTIAS,
    SEPARATE,
    eccentric,
    forth_and_back,
    gap,
    moving,
    relative,
    state,
    twin,
)

import fdgeom as fg

EnergyMomentum, VariationalIntegrator = fg.EnergyMomentum, fg.VariationalIntegrator
DT = 0.05


@pytest.mark.parametrize(
    ("inertia", "left"), [("separate", "free"), ("separate", "pinned"), ("coupled", "clamped")]
)
def test_against_numpy(inertia, left):
    """A few steps of a loaded beam by Newton's method with rotation matrices."""
    gravity = GRAVITY if inertia == "separate" else None
    loads = [fg.Load(force=FORCE, at="right")]
    loads += [fg.Gravity(gravity)] if gravity else []
    beam = moving(INERTIAS[inertia], left=left, loads=loads)
    rod, expected = twin(beam, force=FORCE, gravity=gravity)
    EnergyMomentum(beam, DT).advance(2)
    for _ in range(2):
        expected = rod.energy_momentum_step(*expected, DT)
    # Both solve to round-off.
    assert gap(state(beam), expected) < 1e-13


def test_large_steps_of_a_free_beam(recorded):
    """A thousand steps a hundred times as long as a wave takes through a cell (2.1e-4)."""
    beam = papers_beam(100, end_weight=0.5)
    stepper = EnergyMomentum(beam, 2.1e-2)
    motion = stepper.system
    energy, linear, angular = motion.energy(), motion.linear_momentum(), motion.angular_momentum()
    # The beam's own numbers are those of the motion.
    assert beam.energy() == pytest.approx(energy, rel=1e-13)
    stepper.advance(1000)
    # Round-off of a thousand steps, each a sum over a hundred cells.
    assert motion.energy() == pytest.approx(energy, rel=1e-11)
    assert relative(motion.linear_momentum(), linear) < 1e-11
    assert relative(motion.angular_momentum(), angular) < 1e-11
    assert beam.energy() == pytest.approx(energy, rel=1e-11)
    assert relative(beam.linear_momentum(), linear) < 1e-11
    assert relative(beam.angular_momentum(), angular) < 1e-11
    assert np.abs(beam.position.dat.data_ro).max() > 10  # it has gone far
    for trait, off in (
        ("energy", abs(motion.energy() / energy - 1)),
        ("linear momentum", relative(motion.linear_momentum(), linear)),
        ("angular momentum", relative(motion.angular_momentum(), angular)),
    ):
        words = "a free beam of 100 cells, 1000 steps past the fastest wave"
        recorded.defect("EnergyMomentum", trait, words, claimed=True, measured=off, bound=1e-11)


def test_coupled_inertia():
    beam = moving(INERTIAS["coupled"], 8)
    stepper = EnergyMomentum(beam, 0.2)
    start = beam.energy(), beam.linear_momentum(), beam.angular_momentum()
    stepper.advance(200)
    assert beam.energy() == pytest.approx(start[0], rel=1e-12)
    assert relative(beam.linear_momentum(), start[1]) < 1e-12
    assert relative(beam.angular_momentum(), start[2]) < 1e-12


@pytest.mark.parametrize(("inertia", "left"), [(SEPARATE, "clamped"), (eccentric(), "pinned")])
def test_energy_with_gravity_and_a_dead_force(inertia, left):
    beam = moving(inertia, left=left, loads=[fg.Gravity(GRAVITY), fg.Load(force=FORCE, at="right")])
    stepper = EnergyMomentum(beam, 0.1)
    start, elastic = stepper.system.energy(), beam.energy()
    x, R, _ = state(beam)
    stepper.advance(200)
    assert stepper.system.energy() == pytest.approx(start, rel=1e-12)
    # The beam's own energy, without the loads, is not kept.
    assert abs(beam.energy() - elastic) > 0.01 * elastic
    x1, R1, _ = state(beam)
    assert x1[0] == pytest.approx(x[0], abs=1e-15)
    if left == "clamped":
        assert R1[0] == pytest.approx(R[0], abs=1e-15)


def test_damping_takes_what_it_dissipates():
    """The energy falls by Σ Δε·(viscosity) Δε/Δt over the steps; the momenta stay."""
    beam = moving(SEPARATE, damping=0.02, strain_measure="directors")
    stepper = EnergyMomentum(beam, DT)
    energy, angular = beam.energy(), beam.angular_momentum()
    lengths = np.diff(np.sort(beam.mesh.coordinates.dat.data_ro))
    lost, strain = 0.0, along(beam.strain)
    for _ in range(10):
        stepper.advance()
        change = along(beam.strain) - strain
        strain += change
        lost += np.sum(lengths[:, None] * change * (change @ (0.02 * STIFFNESS))) / DT
    assert lost > 0.05 * energy
    assert beam.energy() == pytest.approx(energy - lost, rel=1e-12)
    assert relative(beam.angular_momentum(), angular) < 1e-13


def test_order(recorded):
    beam = moving(SEPARATE)
    x, q, v = (np.array(f.dat.data_ro) for f in (beam.position, beam.orientation, beam.velocity))
    ends = []
    for steps in (20, 40, 80, 640):
        for f, value in ((beam.position, x), (beam.orientation, q), (beam.velocity, v)):
            f.dat.data_wo[...] = value
        EnergyMomentum(beam, 0.8 / steps).advance(steps)
        ends.append(state(beam))
    errors = [gap(end, ends[-1]) for end in ends[:-1]]
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    # The reference is off by 1/64 of the last error.
    assert rates == pytest.approx([2, 2], abs=0.15)
    recorded.order(
        "EnergyMomentum", "free beam, pose", claimed=2, measured=rates[-1],
        steps=(20, 40, 80), errors=errors,
    )  # fmt: skip


@pytest.mark.parametrize("inertia", ["separate", "coupled"])
def test_symmetric(inertia, recorded):
    back, moved = forth_and_back(EnergyMomentum(moving(INERTIAS[inertia]), DT))
    assert moved > 0.01
    assert back < 1e-13  # round-off
    words = f"a beam, {inertia} inertia"
    recorded.defect("EnergyMomentum", "symmetric", words, claimed=True, measured=back, bound=1e-13)


def test_shape_at_rest():
    """A beam at rest in its curved and twisted shape stays there, in any measure of its own."""
    mesh = uneven_mesh(6)
    (s,) = SpatialCoordinate(mesh)
    half = 0.4 * s
    shape = (
        as_vector([sin(0.8 * s) / 0.8, (1 - cos(0.8 * s)) / 0.8, 0.0]),
        as_vector([cos(half), 0.0, 0.0, sin(half)]),
    )
    for measure in ("simo-reissner", "directors"):
        beam = fg.Beam(
            mesh, fg.Section(STIFFNESS, SEPARATE), reference_shape=shape, strain_measure=measure
        )
        start = state(beam)
        EnergyMomentum(beam, DT).advance(3)
        assert gap(state(beam), start) < 1e-13


def test_given_pose():
    """A turned end is where it should be, and moves with the given velocity."""
    beam = fg.Beam(
        uneven_mesh(5),
        fg.Section(STIFFNESS, SEPARATE),
        left=fg.GivenPose(
            position=lambda t: as_vector([0.0, 0.1 * sin(t) ** 2, 0.0]),
            orientation=lambda t: as_vector([cos(0.3 * t**2), 0.0, 0.0, sin(0.3 * t**2)]),
        ),
    )
    stepper = EnergyMomentum(beam, 0.1)
    stepper.advance(10)
    x, R, V = (values[0] for values in state(beam))
    assert x == pytest.approx([0.0, 0.1 * np.sin(1.0) ** 2, 0.0], abs=1e-14)
    assert R[:2, 0] == pytest.approx([np.cos(0.6), np.sin(0.6)], abs=1e-14)
    assert V[:3] == pytest.approx([0.0, 0.0, 1.2], abs=1e-14)
    assert R @ V[3:] == pytest.approx([0.0, 0.1 * np.sin(2.0), 0.0], abs=1e-14)
    assert beam.energy() > 1e-3


def test_loads_that_change_or_follow():
    """Against the variational integrator: both of second order, so the gap falls by four."""
    loads = [
        fg.Load(force=lambda t: as_vector([0.0, sin(t), 0.0]), at="right"),
        fg.Load(moment=(0.1, 0.0, 0.2), at="right", frame="body"),
        fg.Load(force=(0.0, 0.0, 0.2), frame="body"),
        fg.Load(moment=(0.05, 0.1, 0.0), at="left"),
    ]
    gaps = []
    for steps in (40, 80, 160):
        ends = []
        for method in (EnergyMomentum, VariationalIntegrator):
            beam = moving(SEPARATE, 4, loads=loads, strain_measure="directors")
            method(beam, 0.8 / steps).advance(steps)
            ends.append(state(beam))
        gaps.append(gap(*ends))
    rates = np.log2(np.array(gaps[:-1]) / gaps[1:])
    # The coarsest step is half as long as the bound of the explicit method.
    assert rates == pytest.approx([2, 2], abs=0.25)


def test_momentum_set_by_hand_is_taken():
    beam = fg.Beam(uneven_mesh(4), fg.Section(STIFFNESS, SEPARATE))
    beam.momentum.dat.data_wo[:, 3] = 2.0
    stepper = EnergyMomentum(beam, DT)
    stepper.advance()
    assert along(beam.position)[:, 0] == pytest.approx(
        np.sort(beam.mesh.coordinates.dat.data_ro) + 2 * DT, abs=1e-14
    )
    beam.momentum.dat.data_wo[:, 3] = -2.0
    stepper.advance()
    assert along(beam.position)[:, 0] == pytest.approx(
        np.sort(beam.mesh.coordinates.dat.data_ro), abs=1e-14
    )
    beam.velocity.dat.data_wo[:, 3] = 1.0
    stepper.advance()
    assert beam.linear_momentum() == pytest.approx([1.5, 0, 0], abs=1e-13)


def test_step_too_large():
    beam = moving(SEPARATE)
    stepper = EnergyMomentum(beam, DT, solver_parameters={"snes_max_it": 8})
    stepper.advance(2)
    functions = stepper.system.functions().values()
    before = [np.array(f.dat.data_ro) for f in functions]
    stepper.dt = 50.0
    with pytest.raises(fg.StepFailed, match="the SNES for the motion stopped") as caught:
        stepper.advance()
    assert caught.value.step == stepper.steps == 2
    # To the last bit.
    assert all(np.array_equal(f.dat.data_ro, b) for f, b in zip(functions, before, strict=True))
    stepper.dt = DT
    stepper.advance()
    assert stepper.steps == 3


def a_beam(**options):
    return fg.Beam(uneven_mesh(3), fg.Section(STIFFNESS, SEPARATE), **options)


def turned_beam():
    beam = a_beam(strain_measure="directors")
    beam.orientation.dat.data_wo[1] *= -1
    return beam


def moving_clamp():
    return set_smooth(a_beam(left="clamped"))


def infinite():
    beam = a_beam(strain_measure="directors")
    beam.velocity.dat.data_wo[0, 0] = np.inf
    return beam


def sliding():
    section = fg.Section(STIFFNESS, INERTIAS["coupled"])
    return fg.Beam(uneven_mesh(3), section, left=fg.Sliding("x"))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: UnitSquareMesh(1, 1), TypeError, "needs a fdgeom.Beam"),
        (lambda: a_beam(degree=2), ValueError, "degree: the configuration form"),
        (lambda: a_beam(left=lambda t: as_vector([t, 0, 0, 0, 0, 0])), ValueError, "GivenPose"),
        (turned_beam, ValueError, "orientation: neighbouring nodes"),
        (moving_clamp, ValueError, "left end is clamped, but starts with another velocity"),
        (infinite, ValueError, "not finite"),
        (sliding, ValueError, "a Sliding end needs a section .* take GeneralizedAlpha"),
    ],
)
def test_wrong_start(make, error, message):
    with pytest.raises(error, match=message):
        EnergyMomentum(make(), DT)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="dt must be a positive number"):
        EnergyMomentum(a_beam(), -1.0)
    with pytest.raises(ValueError, match="snes_rtoll"):
        EnergyMomentum(a_beam(), DT, solver_parameters={"snes_rtoll": 1e-8})
    wavy = a_beam(loads=fg.Load(force=lambda s, t: [0, 0, bessel_J(0, s)]))
    with pytest.raises(ValueError, match="cannot be compiled"):
        EnergyMomentum(wavy, DT, compiled=True).advance()


def test_traits():
    assert (EnergyMomentum.order, EnergyMomentum.symmetric, EnergyMomentum.symplectic) == (
        2, True, False,
    )  # fmt: skip
    kept = ("energy", "linear momentum", "angular momentum", "constraint")
    assert EnergyMomentum.conserves == kept
