"""States that are set between steps: off a constraint they are refused, else taken as they are."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    VectorFunctionSpace,
    as_vector,
    cos,
    dot,
    dx,
    inner,
    sin,
)

import fdgeom as fg


def functions(dim):
    mesh = fg.copies(1)
    space = VectorFunctionSpace(mesh, "DG", 0, dim=dim)
    return Function(space), Function(space), Function(FunctionSpace(mesh, "DG", 0))


def alpha_on_a_circle():
    q, v, multiplier = functions(2)
    q.dat.data_wo[:] = [1, 0]
    system = fg.SecondOrderSystem(
        lambda q, v, a, t, w: inner(a, w) * dx,
        q,
        v,
        constraint=lambda m: m * (dot(q, q) - 1) / 2 * dx,
        multiplier=multiplier,
    )
    return q, fg.GeneralizedAlpha(system, 1e-3)


def on_a_sphere(method):
    q, p, multiplier = functions(3)
    q.dat.data_wo[:], p.dat.data_wo[:] = [1, 0, 0], [0, 1, 0]
    system = fg.ConstrainedSystem(
        q, p, 0.5 * dot(p, p) * dx, 1e-12 * q[2] * dx, lambda m: m * (dot(q, q) - 1) * dx,
        multiplier,
    )  # fmt: skip
    return q, method(system, 1e-3)


def lagrangian_on_a_circle():
    q, v, multiplier = functions(2)
    q.dat.data_wo[:] = [1, 0]
    system = fg.LagrangianSystem(
        q, v, 0.5 * dot(v, v) * dx, constraint=lambda m: m * (dot(q, q) - 1) * dx,
        multiplier=multiplier,
    )  # fmt: skip
    return q, fg.DiscreteLagrangian(system, 1e-3)


@pytest.mark.parametrize(
    "make",
    [
        alpha_on_a_circle,
        lambda: on_a_sphere(fg.RATTLE),
        lambda: on_a_sphere(fg.SHAKE),
        lagrangian_on_a_circle,
    ],
    ids=["GeneralizedAlpha", "RATTLE", "SHAKE", "DiscreteLagrangian"],
)
def test_off_the_constraint(make):
    """It would jump back within a step, with a velocity of the size of the jump over the step."""
    q, stepper = make()
    stepper.advance(1)
    q.dat.data[0, 0] += 1e-3
    before = q.dat.data_ro.copy()
    with pytest.raises(ValueError, match="does not fulfil g\\(q\\) = 0"):
        stepper.advance(1)
    np.testing.assert_array_equal(q.dat.data_ro, before)
    q.dat.data_wo[0] /= np.linalg.norm(before)
    stepper.advance(1)


def test_a_quaternion_that_is_no_rotation():
    mesh = fg.copies(1)
    turn, spin = (Function(VectorFunctionSpace(mesh, "DG", 0, dim=n)) for n in (4, 3))
    turn.dat.data_wo[:] = [1, 0, 0, 0]
    stepper = fg.GeneralizedAlpha(fg.RigidBodies(turn, spin, inertia=[1, 2, 3]), 0.1)
    turn.dat.data_wo[:] = [1, 0.1, 0, 0]
    with pytest.raises(ValueError, match="orientation must hold unit quaternions"):
        stepper.advance(1)


@pytest.mark.parametrize("turn", [0.01, 5e-7, 1e-10])
def test_a_constraint_that_moves_by_a_constant(turn):
    """A bead on a turning wire: RATTLE has no ∂g/∂t, so that the wire's turn is refused."""
    q, p, multiplier = functions(2)
    q.dat.data_wo[:] = [1, 0]
    angle = Constant(0.0)
    system = fg.ConstrainedSystem(
        q, p, 0.5 * dot(p, p) * dx, 1e-12 * q[0] * dx,
        lambda m: m * (cos(angle) * q[1] - sin(angle) * q[0]) * dx, multiplier,
    )  # fmt: skip
    stepper = fg.RATTLE(system, 0.01)
    stepper.advance(1)
    angle.assign(turn)
    with pytest.raises(
        ValueError, match="does not fulfil g\\(q\\) = 0 any more, and RATTLE has no"
    ):
        stepper.advance(1)
    q.dat.data_wo[:] = [np.cos(turn), np.sin(turn)]
    stepper.advance(1)


@pytest.mark.parametrize("taken", [0, 1])
def test_multiplier_of_shake_after_a_new_start(taken):
    """λ of q̈ = 2 λ q on the unit sphere is -|v|²/2, whatever motion came before."""
    q, stepper = on_a_sphere(fg.SHAKE)
    system = stepper.system
    stepper.advance(taken)
    q.dat.data_wo[:], system.p.dat.data_wo[:] = [1, 0, 0], [0, 10, 0]
    stepper.advance(1)
    # The discrete multiplier differs by (|v| Δt)²/4 of it.
    assert system.multiplier.dat.data_ro[0] == pytest.approx(-50.0, rel=1e-4)
    assert system.velocity_defect() < 1e-4


def hanging(k, compiled=None):
    """A pendulum at rest under the weight k, and SHAKE."""
    q, p, multiplier = functions(3)
    q.dat.data_wo[:] = [0, 0, -1]
    system = fg.ConstrainedSystem(
        q, p, 0.5 * dot(p, p) * dx, k * q[2] * dx, lambda m: m * (dot(q, q) - 1) / 2 * dx,
        multiplier,
    )  # fmt: skip
    return system, fg.SHAKE(system, 0.01, compiled=compiled)


@pytest.mark.parametrize("compiled", [True, False])
def test_multiplier_of_shake_after_a_jump(compiled):
    """It hangs from its rod with λ = -k, at once, and stays at rest; a λ that is set is of no effect."""
    k = Constant(9.8)
    system, stepper = hanging(k, compiled)
    stepper.advance(5)
    for weight, guess in ((9.8, 3.0), (0.0, None), (2.0, None)):
        k.assign(weight)
        if guess is not None:
            system.multiplier.assign(guess)
        stepper.advance(1)
        assert system.multiplier.dat.data_ro[0] == pytest.approx(-weight, abs=1e-12)
        assert system.velocity_defect() < 1e-13


def test_pendulums_by_their_displacements():
    """Zero at the start, where the round-off of the constraint is that of the positions."""
    mesh, angles = fg.copies(8), np.linspace(0.1, 1.5, 8)
    space = VectorFunctionSpace(mesh, "DG", 0, dim=2)
    places, u, v = Function(space), Function(space), Function(space)
    places.dat.data_wo[...] = np.column_stack([np.sin(angles), -np.cos(angles)])
    system = fg.SecondOrderSystem(
        lambda u, v, a, t, w: (dot(a, w) + 9.81 * w[1]) * dx,
        u,
        v,
        constraint=lambda k: k * (dot(places + u, places + u) - 1) * dx,
        multiplier=Function(FunctionSpace(mesh, "DG", 0)),
    )
    fg.GeneralizedAlpha(system, 0.01)
    along = np.column_stack([np.cos(angles), np.sin(angles)])
    expected = -9.81 * np.sin(angles)[:, None] * along
    assert system.acceleration.dat.data_ro == pytest.approx(expected, abs=1e-12)
    u.dat.data_wo[0] = 1e-6
    with pytest.raises(ValueError, match=r"g\(q\) = 0: it is off by .* Set a consistent start$"):
        fg.GeneralizedAlpha(system, 0.01)


SECTION = fg.Section.rectangle(0.02, 0.02, density=1000, youngs_modulus=1e7, poisson_ratio=0.3)


def pendulum():
    beam = fg.Beam(IntervalMesh(2, 1.0), SECTION, strain_measure="directors")
    return beam, fg.Assembly([beam], fg.Spherical(fg.ground, beam.left))


@pytest.mark.parametrize("method", [fg.EnergyMomentum, fg.VariationalIntegrator])
def test_a_beam_off_its_joint(method):
    beam, system = pendulum()
    stepper = method(system, 1e-4)
    stepper.advance(1)
    start = beam.position.copy(deepcopy=True)
    beam.position.dat.data[:, 1] += 1e-3
    with pytest.raises(ValueError, match="does not fulfil the conditions of the joints"):
        stepper.advance(1)
    beam.position.assign(start)
    beam.orientation.dat.data[:] *= 1.05
    with pytest.raises(ValueError, match="orientation must hold unit quaternions"):
        stepper.advance(1)


def test_a_beam_away_from_its_given_pose():
    """The step would put the held node alone where it belongs."""
    pose = fg.GivenPose(position=lambda t: as_vector([0, 0, t**2]))
    beam = fg.Beam(IntervalMesh(2, 1.0), SECTION, left=pose)
    stepper = fg.GeneralizedAlpha(beam, 1e-4)
    stepper.advance(1)
    beam.position.dat.data[:, 1] += 0.05
    with pytest.raises(ValueError, match="left end is .*, but starts elsewhere"):
        stepper.advance(1)
