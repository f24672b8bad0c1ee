"""Forces and moments of joints and supports: against Newton's and Euler's laws of each beam."""

import numpy as np
import pytest
from firedrake import as_vector
from verification.joined import (
    AXIS,
    DAMPER,
    FIELD,
    REST,
    SPRING,
    Z,
    at_nodes,
    spin,
    sprung_chain,
    straight,
)

import fdgeom as fg
from fdgeom.lie import arrays

INERTIA, MASS = np.array([0.05, 0.02, 0.04]), 2.0


def nodal(beam):
    """Masses and rotary inertias of the nodes, from the section and the lengths of the cells."""
    arcs = np.sort(beam.mesh.coordinates.dat.data_ro)
    lengths = np.zeros(len(arcs))
    lengths[1:] += np.diff(arcs) / 2
    lengths[:-1] += np.diff(arcs) / 2
    return MASS * lengths, INERTIA * lengths[:, None]


def rates(assembly, k):
    """Rates of a beam's linear momentum and angular momentum about the origin, less the weight's."""
    beam, network = assembly.beams[k], assembly.network
    piece = slice(network.starts[k], network.starts[k + 1])
    a = network.numbering.gather(assembly.acceleration)[piece]
    x, q = at_nodes(beam, beam.position), at_nodes(beam, beam.orientation)
    omega = at_nodes(beam, beam.velocity)[:, :3]
    masses, J = nodal(beam)
    push = masses[:, None] * (a[:, 3:] - FIELD)
    torque = arrays.quaternion.rotate(q, J * a[:, :3] + np.cross(omega, J * omega))
    return push.sum(axis=0), (torque + np.cross(x, push)).sum(axis=0)


def place(assembly, where):
    """Beam and position of a place; None for the ground."""
    if where is fg.ground:
        return None, None
    k = assembly.beams.index(where.beam)
    return k, at_nodes(where.beam, where.beam.position)[0 if where.at == "left" else -1]


def exerted(assembly):
    """What joints and supports exert on each beam: forces, and moments about the origin."""
    forces, moments = np.zeros((2, len(assembly.beams), 3))
    for joint in assembly.joints.joints:
        for side in ("first", "second"):
            k, x = place(assembly, getattr(joint, side))
            if k is not None:
                force = assembly.force(joint, side)
                forces[k] += force
                moments[k] += assembly.moment(joint, side) + np.cross(x, force)
    for k, ends in enumerate(assembly.reactions()):
        for end, (moment, force) in ends.items():
            x = at_nodes(assembly.beams[k], assembly.beams[k].position)[0 if end == "left" else -1]
            forces[k] += force
            moments[k] += moment + np.cross(x, force)
    return forces, moments


def check_laws(assembly, tolerance):
    forces, moments = exerted(assembly)
    assert np.abs(forces).max() > 1
    for k in range(len(assembly.beams)):
        push, torque = rates(assembly, k)
        assert forces[k] == pytest.approx(push, abs=tolerance)
        assert moments[k] == pytest.approx(torque, abs=tolerance)
    for joint in assembly.joints.joints:
        assert assembly.force(joint, "first") == pytest.approx(-assembly.force(joint), abs=1e-12)


def test_laws_of_each_beam_at_the_start_and_in_motion():
    assembly = sprung_chain()
    stepper = fg.GeneralizedAlpha(assembly, 0.01)
    # The solve of the start is linear: round-off of stiffness 500 over cells of 1/2.
    check_laws(assembly, 1e-9)
    stepper.advance(30)
    assert np.abs(assembly.reactions()[2]["right"][0]).max() > 0.01
    # Newton ends when the next update would be below round-off of the positions.
    check_laws(assembly, 1e-7)

    slide = assembly.joints.joints[0]
    beam = assembly.beams[0]
    q, v = (at_nodes(beam, f)[0] for f in (beam.orientation, beam.velocity))
    shift = AXIS @ at_nodes(beam, beam.position)[0]
    speed = AXIS @ arrays.quaternion.rotate(q, v[3:])
    expected = -SPRING * (shift - REST) - DAMPER * speed
    assert abs(expected) > 1
    assert assembly.force(slide) @ AXIS == pytest.approx(expected, rel=1e-9)


def test_forces_of_a_state_that_was_set():
    """No step knows them: they are solved for, and leave no trace in what is carried."""
    assembly, other = sprung_chain(), sprung_chain()
    steppers = [fg.GeneralizedAlpha(system, 0.01) for system in (assembly, other)]
    for stepper in steppers:
        stepper.advance(3)
    assembly.force(assembly.joints.joints[0])
    for stepper in steppers:
        stepper.advance(2)
    assert np.array_equal(assembly.v.dat.data_ro, other.v.dat.data_ro)
    released = sprung_chain()
    before = [released.force(joint) for joint in released.joints.joints]
    fg.GeneralizedAlpha(released, 0.01)
    after = [released.force(joint) for joint in released.joints.joints]
    assert np.array(before) == pytest.approx(np.array(after), abs=1e-9)
    assert abs(before[0]).max() > 1


def total_momenta(system):
    return np.concatenate([system.linear_momentum(), system.angular_momentum()])


def test_impulses_of_the_energy_momentum_method():
    """Forces are means over a step: times Δt they are the change of the momenta."""
    beams = [
        straight((0, 0, 0), (0, 1, 0), 2, strain_measure="directors"),
        straight((0, 1, 0), (1, 1, 0), 2, strain_measure="directors"),
    ]
    slide = fg.Prismatic(fg.ground, beams[0].left, axis=AXIS)
    hinge = fg.Revolute(beams[0].right, beams[1].left, axis=Z)
    assembly = fg.Assembly(beams, [slide, hinge], loads=fg.Gravity(FIELD))

    def axis_of_hinge():
        q = at_nodes(beams[0], beams[0].orientation)[-1]
        return arrays.quaternion.rotate(q, arrays.quaternion.rotate_inverse(first, Z))

    first, dt = at_nodes(beams[0], beams[0].orientation)[-1], 0.02
    stepper = fg.EnergyMomentum(assembly, dt)
    stepper.advance(10)
    for _ in range(3):
        start, x0 = total_momenta(assembly), [at_nodes(b, b.position) for b in beams]
        axis = axis_of_hinge()
        stepper.advance()
        change = (total_momenta(assembly) - start) / dt
        middle = [0.5 * (a + at_nodes(b, b.position)) for a, b in zip(x0, beams, strict=True)]
        weights = [nodal(b)[0][:, None] * FIELD for b in beams]
        force = assembly.force(slide)
        moment = assembly.moment(slide) + np.cross(middle[0][0], force)
        for x, w in zip(middle, weights, strict=True):
            force, moment = force + w.sum(axis=0), moment + np.cross(x, w).sum(axis=0)
        assert np.concatenate([force, moment]) == pytest.approx(change, abs=1e-8)
        # It turns freely about the mean of the axis.
        assert assembly.moment(hinge) @ (axis + axis_of_hinge()) == pytest.approx(0, abs=1e-9)
    assert np.abs(assembly.moment(hinge)).max() > 0.1


@pytest.mark.parametrize("method", [fg.GeneralizedAlpha, fg.EnergyMomentum])
def test_torque_of_a_driven_end(method):
    """What drives an end gives the beam its momenta: in each step, or at its end."""
    motor = fg.GivenPose(
        position=lambda t: as_vector([0.1 * t**2, 0, 0]),
        orientation=lambda t: as_vector([1, 0, 0, 0.4 * t**2]),
    )
    beam = straight((0, 0, 0), (1, 0, 0), 4, left=motor, loads=fg.Gravity(FIELD))
    dt = 0.01
    stepper = method(beam, dt)
    system = stepper.system
    stepper.advance(20)
    start, x0 = total_momenta(system), at_nodes(beam, beam.position)
    stepper.advance()
    moment, force = system.reactions()["left"]
    assert set(system.reactions()) == {"left"}
    x, weight = at_nodes(beam, beam.position), nodal(beam)[0][:, None] * FIELD
    if method is fg.EnergyMomentum:
        x = 0.5 * (x + x0)
        rate = (total_momenta(system) - start) / dt
    else:
        order = np.argsort(beam.mesh.coordinates.dat.data_ro)
        a, q = (f.dat.data_ro[order] for f in (system.acceleration, beam.orientation))
        omega = at_nodes(beam, beam.velocity)[:, :3]
        masses, J = nodal(beam)
        push = masses[:, None] * a[:, 3:]
        torque = arrays.quaternion.rotate(q, J * a[:, :3] + np.cross(omega, J * omega))
        rate = np.concatenate([push.sum(axis=0), (torque + np.cross(x, push)).sum(axis=0)])
    total = np.concatenate(
        [force + weight.sum(axis=0), moment + np.cross(x[0], force) + np.cross(x, weight).sum(0)]
    )
    assert np.abs(moment[2]) > 0.5
    assert total == pytest.approx(rate, abs=1e-7)


def test_at_rest():
    """Joints and ends of a loaded cantilever in equilibrium carry what statics says."""
    load = fg.Load(force=(0, 0.5, 0.2), moment=(0, 0.1, 0), at="right")
    beams = [
        straight((0, 0, 0), (1, 0, 0), 4, left="clamped", loads=[load, fg.Gravity(FIELD / 50)])
    ]
    beams.append(straight((0, 0, 0), (1, 0, 0), 4, loads=[load, fg.Gravity(FIELD / 50)]))
    held, joined = beams
    statics = fg.StaticEquilibrium(held)
    statics.solve()
    moment, force = statics.reactions()["left"]
    # The whole beam: the load, the weight, and their moments about the clamp.
    x, weight = at_nodes(held, held.position), nodal(held)[0][:, None] * FIELD / 50
    assert force == pytest.approx(-np.array([0, 0.5, 0.2]) - weight.sum(axis=0), abs=1e-9)
    lever = np.cross(x, weight).sum(axis=0) + np.cross(x[-1], [0, 0.5, 0.2])
    assert moment == pytest.approx(-lever - [0, 0.1, 0], abs=1e-9)
    for name in ("position", "orientation"):
        getattr(joined, name).dat.data[:] = getattr(held, name).dat.data_ro
    weld = fg.Rigid(fg.ground, joined.left)
    assembly = fg.Assembly([joined], [weld])
    # The equilibrium is right to 1e-12 of positions, times the stiffness 500 over a cell.
    assert assembly.force(weld) == pytest.approx(force, abs=1e-7)
    assert assembly.moment(weld) == pytest.approx(moment, abs=1e-7)
    found = held.motion.reactions()["left"]
    assert np.array(found) == pytest.approx(np.array([moment, force]), abs=1e-7)


def test_ends_of_a_beam_moved_by_its_momentum():
    """A clamp holds the moment of a curved beam, a motor turns the inertia of its node."""
    curved = straight((0, 0, 0), (1, 0, 0), 4, left="clamped", right="pinned")
    curved.strain.assign(0)
    curved.strain.dat.data[:, 2] = 0.3
    curved.reconstruct()
    reactions = curved.reactions()
    # EI κ = 8 · 0.3 about the axis of the curve; the pinned end holds no moment.
    moment, force = reactions["left"]
    assert moment == pytest.approx([0, 0, -2.4], abs=1e-12)
    assert force == pytest.approx(0, abs=1e-12)
    assert reactions["right"][0] == pytest.approx(0, abs=1e-12)

    def velocity(t):
        return as_vector([0.0, 0.0, 3.0 * t, 0.0, 0.5 * t, 0.0])

    driven = straight((0, 0, 0), (0, 1, 0), 4, left=velocity)
    moment, force = driven.reactions()["left"]
    # The node has an eighth of the length; nothing is strained yet.
    assert moment == pytest.approx([0, 0, 3.0 * 0.04 / 8], abs=1e-12)
    # Half of the axis across, in space.
    assert force == pytest.approx([-0.5 * MASS / 8, 0, 0], abs=1e-12)


def test_monitor_of_reactions():
    assembly = sprung_chain()
    stepper = fg.GeneralizedAlpha(assembly, 0.01)
    history = stepper.run(steps=2, monitors=fg.Reactions(), progress=False)
    names = {"beam2_right_moment", "beam2_right_force"}
    names |= {f"joint{k}_{what}" for k in range(3) for what in ("moment", "force")}
    assert set(history.names) == names
    joint = assembly.joints.joints[1]
    assert history["joint1_force"][-1] == pytest.approx(assembly.force(joint), rel=1e-14)
    with pytest.raises(TypeError, match="a beam or an assembly"):
        fg.Reactions().bind(object())


def test_what_is_refused():
    assembly = sprung_chain()
    with pytest.raises(ValueError, match=r"side must be one of"):
        assembly.force(assembly.joints.joints[0], "left")
    with pytest.raises(ValueError, match="must be a joint of this assembly"):
        assembly.force(sprung_chain().joints.joints[0])
    assembly.beams[1].position.dat.data[:] += 0.1
    with pytest.raises(ValueError, match="the state does not fulfil the conditions of the joints"):
        assembly.force(assembly.joints.joints[0])


def test_velocity_of_a_point():
    """In space and in the body: of a rigid turn about the origin."""
    beam = straight((0, 1, 0), (0, 1, 2), 2)
    spin(beam, (1.0, 2.0, 3.0), (0.1, 0.0, 0.0))
    stepper = fg.GeneralizedAlpha(beam, 1e-3)
    probes = [
        fg.Probe("in space", beam.velocity_in_space(), 2.0),
        fg.Probe("in the body", beam.velocity, 2.0),
    ]
    history = stepper.run(steps=1, monitors=probes, progress=False)
    linear = np.cross([1, 2, 3], [0, 1, 2]) + [0.1, 0, 0]
    assert history["in space"][0] == pytest.approx([1, 2, 3, *linear], abs=1e-12)
    q = at_nodes(beam, beam.orientation)[-1]
    now = history["in the body"][1]
    turned = arrays.quaternion.rotate(q, now[3:])
    assert history["in space"][1][3:] == pytest.approx(turned, abs=1e-12)
