"""Compiled steps of joined beams are those through PETSc SNES, and keep what they should."""

import numpy as np
import pytest
from firedrake import Constant
from verification.bars import GRAVITY, bar, double_pendulum, four_bar, net
from verification.beams import along
from ways import check_way

import fdgeom as fg

DT, STEPS = 2e-3, 50


def sprung():
    """Joints of three kinds, one in the middle of a beam, springs and dampers, a body."""
    upper, lower, arm = (
        bar((0, 0, 0), (1, 0, 0), 4),
        bar((1, 0, 0), (2, 0, 0), 9),
        bar((0.5, 0, 0), (0.5, 1, 0.2), 2),
    )
    joints = [
        fg.Revolute(fg.ground, upper.left, axis=(0, 1, 0), stiffness=0.3, damping=0.05, rest=0.2),
        fg.Rigid(upper.right, lower.left),
        fg.Spherical(arm.left, upper.at(0.5), stiffness=0.2, damping=0.01),
    ]
    body = fg.PointBody(lower.right, mass=0.3, inertia=(0.01, 0.02, 0.03), offset=(0, 0.05, 0))
    return fg.Assembly([upper, lower, arm], joints, bodies=[body], loads=GRAVITY)


BOTH = (fg.EnergyMomentum, fg.GeneralizedAlpha)
CASES = [
    *((double_pendulum, method) for method in BOTH),
    (sprung, fg.GeneralizedAlpha),
    *((four_bar, method) for method in BOTH),
    *((net, method) for method in BOTH),
]


def fields(assembly):
    names = ("position", "orientation", "velocity")
    return [np.concatenate([along(getattr(b, n)) for b in assembly.beams]) for n in names]


@pytest.mark.parametrize(("make", "method"), CASES, ids=lambda value: value.__name__)
def test_same_steps(make, method):
    found, iterations = [], []
    for compiled in (True, False):
        assembly = make()
        stepper = method(assembly, DT, compiled=compiled)
        for steps in (1, 30, STEPS - 31):
            stepper.advance(steps)
        check_way(stepper, compiled)
        assert assembly.gap() < 1e-12
        found.append(fields(assembly))
        iterations.append(stepper.solver_stats()["newton_iterations"])
        forces = np.concatenate([np.hstack(f) for f in assembly.joint_forces()])
        found[-1].append(forces)
    (x, q, v, f), (y, p, w, g) = found
    # Both solve to round-off; velocities are differences by a step, forces of stiff ones by two.
    np.testing.assert_allclose(x, y, atol=1e-13 * np.abs(y).max())
    np.testing.assert_allclose(q, p, atol=1e-13)
    np.testing.assert_allclose(v, w, atol=1e-8 * np.abs(w).max())
    np.testing.assert_allclose(f, g, atol=1e-6 * np.abs(g).max())
    # An update by old factors takes less time than a new tangent; there are at most two more in a step.
    assert 0.9 * iterations[1] <= iterations[0] <= iterations[1] + 2 * STEPS


def test_a_net_keeps_energy_and_momenta():
    stepper = fg.EnergyMomentum(net(()), DT, compiled=True)
    motion = stepper.system
    start = motion.energy(), motion.linear_momentum(), motion.angular_momentum()
    stepper.advance(2000)
    check_way(stepper)
    assert motion.energy() == pytest.approx(start[0], rel=1e-12)
    now = motion.linear_momentum(), motion.angular_momentum()
    for value, before in zip(now, start[1:], strict=True):
        assert np.abs(value - before).max() < 1e-12 * np.linalg.norm(before)


def test_beams_that_nothing_joins():
    """More beams than lanes, of different lengths: each is a chain by itself."""
    beams = [bar((0, k, 0), (1, k, 0.1 * k), 1 + k) for k in range(11)]
    for k, beam in enumerate(beams):
        beam.velocity.dat.data_wo[0, 4] = 0.1 + 0.05 * k
    found = []
    for compiled in (True, False):
        start = [
            (b.position.copy(True), b.orientation.copy(True), b.velocity.copy(True)) for b in beams
        ]
        assembly = fg.Assembly(beams)
        stepper = fg.EnergyMomentum(assembly, DT, compiled=compiled)
        stepper.advance(20)
        check_way(stepper, compiled)
        found.append(fields(assembly))
        for beam, (x, q, v) in zip(beams, start, strict=True):
            beam.position.assign(x)
            beam.orientation.assign(q)
            beam.velocity.assign(v)
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-13 * 10)


def test_types_of_snes_and_pc_on_joined_beams():
    """fdgeom.ChainNewton, and fdgeom.ChainLU as an exact inverse under GMRES."""
    newton = {"snes_type": "python", "snes_python_type": "fdgeom.ChainNewton"}
    lu = {"ksp_type": "gmres", "ksp_rtol": 1e-13, "pc_type": "python",
          "pc_python_type": "fdgeom.ChainLU"}  # fmt: skip
    found = []
    for parameters in (newton, lu, {}):
        assembly = double_pendulum()
        stepper = fg.EnergyMomentum(assembly, DT, solver_parameters=parameters, compiled=False)
        stepper.advance(10)
        found.append(fields(assembly)[0])
        stats = stepper.solver_stats()
        assert parameters is newton or stats["krylov_iterations"] == stats["newton_iterations"]
    for positions in found[:2]:
        np.testing.assert_allclose(positions, found[2], atol=1e-13 * np.abs(found[2]).max())


def test_a_step_that_fails_names_a_node_and_the_joint_there():
    """After one update the conditions of the joint that turns fastest are the farthest from zero."""
    assembly = double_pendulum()
    upper, lower = assembly.beams
    lower.velocity.dat.data_wo[:, 1] = 30.0
    lower.velocity.dat.data_wo[:, 5] = -30.0 * lower.position.dat.data_ro[:, 0] + 30.0
    stepper = fg.EnergyMomentum(assembly, DT, solver_parameters={"snes_max_it": 1})
    with pytest.raises(fg.StepFailed, match=r"the node at 0 of beams\[1\] at joints\[1\]"):
        stepper.advance()
    assert upper.position.dat.data_ro[-1, 0] == 1.0
    # A load that is no number leaves nothing finite anywhere.
    force = Constant((0.0, 0.1, 0.0))
    beam = bar((0, 0, 0), (1, 0, 0), 3, loads=fg.Load(force=force, at="right"))
    stepper = fg.EnergyMomentum(beam, DT)
    stepper.advance()
    force.assign((0.0, np.nan, 0.0))
    with pytest.raises(fg.StepFailed) as caught:
        stepper.advance()
    assert "largest" not in str(caught.value)
