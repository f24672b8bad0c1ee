"""The variational integrator on beams with joints: RATTLE on the group."""

import numpy as np
import pytest
from test_energy_momentum_joints import pendulum, straight, turning
from verification.rod_cases import SEPARATE, relative

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


def state(motion):
    functions = (motion.position, motion.orientation, motion.v)
    return [np.array(f.dat.data_ro) for f in functions]


def gap(one, other):
    return max(np.abs(a - b).max() for a, b in zip(one, other, strict=True))


def test_what_is_kept():
    motion = flying()
    stepper = fg.VariationalIntegrator(motion, 4e-3)
    assert not stepper.is_compiled
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


def test_symmetric():
    motion = flying()
    stepper = fg.VariationalIntegrator(motion, 4e-3)
    start = state(motion)
    stepper.advance(3)
    assert gap(state(motion), start) > 1e-2
    stepper._dt = -stepper._dt  # which the public attribute refuses
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


def test_reactions_of_a_pendulum():
    """The force in the upper joint: what the momentum of the arms and gravity ask for."""
    motion = pendulum("simo-reissner", scale=1.0)
    stepper = fg.VariationalIntegrator(motion, 1e-3)
    stepper.advance(50)
    momenta, forces = [], []
    for _ in range(2):
        momenta.append(motion.linear_momentum())
        forces.append(motion.force(motion.joints.joints[0]))
        stepper.advance()
    momenta.append(motion.linear_momentum())
    force = (momenta[2] - momenta[0]) / 2e-3 - 2.0 * np.array([0, 0, -9.81])
    # The central difference of the momentum over two steps; an error of O(Δt²).
    assert forces[1] == pytest.approx(force, abs=2e-2 * np.abs(force).max())


def test_damper_is_refused():
    a = straight((0, 0, 0), (1, 0, 0), SEPARATE)
    b = straight((1, 0, 0), (2, 0, 0), SEPARATE)
    joint = fg.Revolute(a.right, b.left, axis=(0, 1, 0), damping=0.1)
    with pytest.raises(ValueError, match="does not treat the damper of"):
        fg.VariationalIntegrator(fg.Assembly(beams=[a, b], joints=[joint]), 1e-3)
