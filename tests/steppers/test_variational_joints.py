"""The variational integrator on beams with joints: RATTLE on the group."""

import numpy as np
import pytest
from test_energy_momentum_joints import pendulum, straight, turning
from verification.bars import double_pendulum
from verification.beams import along, arc
from verification.rod_cases import SEPARATE, eccentric, relative
from ways import check_way

import fdgeom as fg


def flying():
    """Two beams with a sprung hinge between them and a body off the end: nothing is plane."""
    a = straight((0, 0, 0), (1, 0, 0), SEPARATE, measure="simo-reissner", cells=4)
    b = straight((1, 0, 0), (1, 1, 0.2), SEPARATE, measure="simo-reissner", cells=4)
    for beam in (a, b):
        turning(beam, (0.2, -0.1, 0.5), (1, 0, 0), (0.1, 0.2, 0.3))
    turning(b, (0.2, -0.1, 1.5), (1, 0, 0), (0.1, 0.2, 0.3))
    hinge = fg.Revolute(a.right, b.left, axis=(0, 0, 1), stiffness=2.0)
    body = fg.PointBody(b.right, mass=0.5, inertia=(0.1, 0.2, 0.3), offset=(0.1, 0, 0.05))
    return fg.Assembly(beams=[a, b], joints=[hinge], bodies=[body])


def branched():
    """All kinds of joints, three of them at one node, with springs; eccentric sections, a body."""
    a = straight((0, 0, 0), (1, 0, 0), eccentric(), measure="simo-reissner", cells=4)
    b = straight((1, 0, 0), (1, 1, 0.2), eccentric(), measure="simo-reissner", cells=3)
    c = straight((1, 0, 0), (2, 0, 0), eccentric(), measure="simo-reissner", cells=2)
    d = straight((1, 0, 0), (1, -1, 0), eccentric(), measure="simo-reissner", cells=2)
    joints = [
        fg.Revolute(fg.ground, a.left, axis=(0, 1, 0), stiffness=0.5, rest=0.3),
        fg.Spherical(a.right, b.left, stiffness=0.3),
        fg.Prismatic(c.left, a.right, axis=(1, 0, 0), stiffness=20.0, rest=0.02),
        fg.Rigid(d.left, c.left),
    ]
    body = fg.PointBody(b.right, mass=0.5, inertia=(0.1, 0.2, 0.3), offset=(0.1, 0, 0.05))
    turning(b, (0.5, 0.3, -0.4), (1, 0, 0))
    return fg.Assembly([a, b, c, d], joints, bodies=[body], loads=fg.Gravity((0.0, 1.0, -9.81)))


def state(motion):
    functions = (motion.position, motion.orientation, motion.v)
    return [np.array(f.dat.data_ro) for f in functions]


def gap(one, other):
    return max(np.abs(a - b).max() for a, b in zip(one, other, strict=True))


def test_what_is_kept():
    motion = flying()
    stepper = fg.VariationalIntegrator(motion, 4e-3)
    assert stepper.is_compiled
    energy, linear, angular = motion.energy(), motion.linear_momentum(), motion.angular_momentum()
    energies = []
    for _ in range(20):
        stepper.advance(25)
        energies.append(motion.energy() - energy)
    # Round-off of five hundred steps.
    assert relative(motion.linear_momentum(), linear) < 1e-12
    assert relative(motion.angular_momentum(), angular) < 1e-12
    assert motion.gap() < 1e-12
    assert motion.velocity_defect() < 1e-12
    # It swings by O(Δt²), here a hundred-thousandth; a first-order error would be a hundredth.
    assert 0 < np.abs(energies).max() < 1e-4 * energy


@pytest.mark.parametrize(
    ("make", "dt"), [(double_pendulum, 1e-3), (flying, 4e-3)], ids=["pendulum", "flying"]
)
def test_compiled_joints_are_those_of_petsc(make, dt):
    motion, other = make(), make()
    stepper = fg.VariationalIntegrator(motion, dt)
    through_petsc = fg.VariationalIntegrator(other, dt, compiled=False)
    start = state(motion)
    stepper.advance(50)
    through_petsc.advance(50)
    check_way(stepper)
    check_way(through_petsc, False)
    assert gap(state(motion)[:1], start[:1]) > 1e-2
    # Round-off of fifty steps; velocities have that of the stiff directions.
    assert gap(state(motion)[:2], state(other)[:2]) < 1e-13
    assert gap(state(motion)[2:], state(other)[2:]) < 1e-10
    assert motion.gap() < 1e-14
    assert motion.velocity_defect() < 1e-13
    forces = [m.force(m.joints.joints[0]) for m in (motion, other)]
    assert forces[0] == pytest.approx(forces[1], abs=1e-8 * np.abs(forces[1]).max())


def test_all_joints_at_branches():
    motion = branched()
    stepper = fg.VariationalIntegrator(motion, 2e-3)
    assert stepper.is_compiled
    start, energy = state(motion), motion.energy()
    stepper.advance(100)
    assert gap(state(motion), start) > 1
    assert motion.gap() < 1e-13
    assert motion.velocity_defect() < 1e-13
    # It swings by O(Δt²), here some millionths.
    assert abs(motion.energy() - energy) < 1e-4 * energy
    stepper.clock = stepper.clock.with_dt(-stepper.dt)
    stepper.advance(100)
    assert gap(state(motion), start) < 1e-11  # round-off


def test_what_fails_names_the_node():
    motion = double_pendulum()
    start = state(motion)
    # PETSc tries after the compiled solve, and its failure counts.
    options = {"increment_snes_max_it": 1}
    stepper = fg.VariationalIntegrator(motion, 1e-3, solver_parameters=options)
    where = r"increment stopped with DIVERGED_MAX_IT .*largest at the node at .* of beams\["
    with pytest.raises(fg.StepFailed, match=where):
        stepper.advance(3)
    assert gap(state(motion), start) == 0
    assert stepper.steps == 0


def test_symmetric():
    motion = flying()
    stepper = fg.VariationalIntegrator(motion, 4e-3)
    start = state(motion)
    stepper.advance(3)
    assert gap(state(motion), start) > 1e-2
    stepper.clock = stepper.clock.with_dt(-stepper.dt)  # which the public attribute refuses
    stepper.advance(3)
    assert gap(state(motion), start) < 1e-12  # round-off


def test_order():
    ends = []
    for steps in (20, 40, 80, 640):
        motion = flying()
        fg.VariationalIntegrator(motion, 0.1 / steps).advance(steps)
        ends.append(state(motion))
    errors = [gap(end, ends[-1]) for end in ends[:-1]]
    # The reference is off by 1/64 of the last error.
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx([2, 2], abs=0.15)


def centre(motion):
    """Mass times centre of mass, of lumped nodes: what the linear momentum is the rate of."""
    total = 0.0
    for beam in motion.beams:
        h = np.diff(arc(beam.momentum))
        weights = (np.append(h, 0) + np.append(0, h)) / 2
        total = total + beam.section.inertia[5, 5] * weights @ along(beam.position)
    return total


def test_reactions_of_a_pendulum():
    """The force in the upper joint, and the weight, accelerate the centre of mass as the steps have it.

    Between two nodes of time the momentum is M (x¹ - x⁰)/Δt, and at a node it changes by Δt times all
    forces: discrete Hamilton's principle for a translation of the whole.
    """
    motion, dt = pendulum("simo-reissner", scale=1.0), 1e-3
    stepper = fg.VariationalIntegrator(motion, dt)
    stepper.advance(49)
    centres, forces = [], []
    for _ in range(3):
        stepper.advance()
        centres.append(centre(motion))
        forces.append(motion.force(motion.joints.joints[0]))
    weight = 2.0 * np.array([0, 0, -9.81])
    force = (centres[2] - 2 * centres[1] + centres[0]) / dt**2 - weight
    # Positions of size one round by 1e-16, a second difference over Δt² by some 1e-10.
    assert forces[1] == pytest.approx(force, abs=1e-9)
    # Neither small nor the same at every step.
    assert np.abs(force).max() > 5
    assert np.abs(forces[2] - forces[1]).max() > 1e-3


def test_damper_is_refused():
    a = straight((0, 0, 0), (1, 0, 0), SEPARATE)
    b = straight((1, 0, 0), (2, 0, 0), SEPARATE)
    joint = fg.Revolute(a.right, b.left, axis=(0, 1, 0), damping=0.1)
    with pytest.raises(ValueError, match="does not treat the damper of"):
        fg.VariationalIntegrator(fg.Assembly(beams=[a, b], joints=[joint]), 1e-3)
