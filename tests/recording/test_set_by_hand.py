"""Values set by hand before a run, or between steps and a restart file: as the next step sees them."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    ExtrudedMesh,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    TestFunction,
    UnitIntervalMesh,
    VectorFunctionSpace,
    as_matrix,
    as_vector,
    conditional,
    dot,
    dx,
    lt,
)

import fdgeom as fg

SECTION = fg.Section.rectangle(0.02, 0.01, density=1000.0, youngs_modulus=1e7, poisson_ratio=0.3)
METHODS = [fg.PoissonIntegrator, fg.GeneralizedAlpha, fg.EnergyMomentum, fg.VariationalIntegrator]
#: Mass of the rod.
MASS = 0.2


def rod(section=SECTION, mesh=None, **arguments):
    return fg.Beam(mesh or IntervalMesh(8, 1.0), section, **arguments)


def kick(beam):
    """All of the rod moves along its third axis at 1 m/s."""
    beam.velocity.interpolate(as_vector([0, 0, 0, 0, 0, 1.0]))


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__name__)
def test_the_first_sample(method):
    """A free rod keeps ½ M v² and M v, from the first sample on."""
    beam = rod()
    stepper = method(beam, 1e-4)
    kick(beam)
    history = stepper.run(steps=3, monitors=[fg.Energy(), fg.Momentum()])
    # Round-off of a few steps.
    assert history["kinetic_energy"] == pytest.approx(0.5 * MASS, rel=1e-13)
    assert history["linear_momentum"][:, 2] == pytest.approx(MASS, rel=1e-13)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__name__)
def test_a_kick_before_a_restart_file(method, tmp_path):
    """The rod goes on at the speed of the kick, in the resumed run bit for bit."""
    ends = []
    beam = rod()
    stepper = method(beam, 1e-4)
    stepper.advance(5)
    kick(beam)
    fg.save(stepper, tmp_path / "kick.h5")
    stepper.advance(5)
    ends.append(beam.position.dat.data_ro.copy())
    again = rod()
    resumed = method(again, 1e-4)
    fg.resume(resumed, tmp_path / "kick.h5")
    resumed.advance(5)
    ends.append(again.position.dat.data_ro.copy())
    np.testing.assert_array_equal(*ends)
    assert ends[0][:, 2] == pytest.approx(5e-4, rel=1e-12)


def joined():
    """Two bars in a line, of half the mass each, with a joint between them."""
    beams = [fg.Beam(IntervalMesh(2, 0.5), SECTION) for _ in range(2)]
    beams[1].reconstruct(position=(0.5, 0, 0))
    return *beams, fg.Assembly(beams, fg.Spherical(beams[0].right, beams[1].left))


def test_a_kick_of_an_assembly_one_of_whose_beams_was_turned():
    """Both move at 1 m/s, from the first sample on."""
    a, b, system = joined()
    b.reconstruct(position=(0.5, 0, 0), orientation=(0.5**0.5, 0, 0, 0.5**0.5))
    system.v.interpolate(as_vector([0, 0, 0, 0, 0, 1.0]))
    speed = fg.Probe("speed", a.velocity, 0.25)
    history = fg.GeneralizedAlpha(system, 1e-3).run(steps=10, monitors=[speed])
    assert history["speed"][:, 5] == pytest.approx(1, rel=1e-12)
    assert system.kinetic_energy() == pytest.approx(0.5 * MASS, rel=1e-12)
    for beam in (a, b):
        assert beam.position.dat.data_ro[:, 2] == pytest.approx(0.01, rel=1e-12)
    assert np.ptp(b.position.dat.data_ro[:, 1]) == pytest.approx(0.5, rel=1e-12)


def test_fields_of_an_assembly_that_contradict_those_of_a_beam():
    a, b, system = joined()
    stepper = fg.GeneralizedAlpha(system, 1e-3)
    system.v.interpolate(as_vector([0, 0, 0, 0, 0, 2.0]))
    kick(a)
    kick(b)
    with pytest.raises(ValueError, match="were both set: set position, orientation and v of the"):
        stepper.advance()
    system.v.assign(0)
    stepper.advance()
    assert a.position.dat.data_ro[:, 2] == pytest.approx(1e-3, rel=1e-12)
    system.position.dat.data[:, 1] += 0.1
    a.position.dat.data[:, 1] += 0.1
    with pytest.raises(ValueError, match="were both set"):
        fg.StaticEquilibrium(system)


def test_an_equilibrium_from_a_configuration_of_an_assembly():
    """Without loads a clamped bar rests wherever its support is."""
    a = fg.Beam(IntervalMesh(2, 1.0), SECTION, left="clamped")
    system = fg.Assembly([a])
    equilibrium = fg.StaticEquilibrium(system)
    for shift in (0.1, 0.2):
        system.position.dat.data[:, 1] += 0.1
        equilibrium.solve()
        assert a.position.dat.data_ro[:, 1] == pytest.approx(shift, rel=1e-12)
    system.v.dat.data[:, 5] = 1.0
    assert system.kinetic_energy() == pytest.approx(0.5 * MASS, rel=1e-12)


def on_a_sphere():
    space = VectorFunctionSpace(fg.copies(1), "DG", 0, dim=3)
    q, p = Function(space), Function(space)
    q.dat.data_wo[:], p.dat.data_wo[:] = [1, 0, 0], [0, 1, 0]
    system = fg.ConstrainedSystem(
        q, p, 0.5 * dot(p, p) * dx, 1e-12 * q[2] * dx, lambda m: m * (dot(q, q) - 1) * dx,
        Function(FunctionSpace(space.mesh(), "DG", 0)),
    )  # fmt: skip
    return q, p, fg.SHAKE(system, 1e-2)


def test_a_kick_of_shake_before_a_restart_file(tmp_path):
    """The multiplier is solved for once, before the file is written."""
    q, p, stepper = on_a_sphere()
    stepper.advance(5)
    p.dat.data_wo[...] *= 2
    fg.save(stepper, tmp_path / "kick.h5")
    stepper.advance(5)
    again, _, resumed = on_a_sphere()
    fg.resume(resumed, tmp_path / "kick.h5")
    resumed.advance(5)
    np.testing.assert_array_equal(q.dat.data_ro, again.dat.data_ro)


def test_a_kick_after_a_jump_and_a_restart_file(tmp_path):
    """What is prepared for the file is known to be so: the kick is a kick, with or without the file."""
    ends = []
    for saves in (False, True):
        k = Constant(1.0)
        q, stepper = oscillator(k)
        stepper.advance(5)
        k.assign(9.0)
        if saves:
            fg.save(stepper, tmp_path / "jump.h5")
        stepper.system.v.dat.data_wo[...] += 1.0
        stepper.advance(5)
        ends.append(q.dat.data_ro.copy())
    # The accelerations are solved for once more.
    assert ends[0] == pytest.approx(ends[1], rel=1e-14)


def oscillator(stiffness, dt=0.05):
    space = VectorFunctionSpace(fg.copies(1), "DG", 0, dim=1)
    q, v = Function(space), Function(space)
    q.dat.data_wo[...] = 1.0
    system = fg.SecondOrderSystem(lambda q, v, a, t, w: dot(a + stiffness * q, w) * dx, q, v)
    return q, fg.GeneralizedAlpha(system, dt)


@pytest.mark.parametrize("between", [0, 1])
def test_a_jump_after_a_restart(between, tmp_path):
    """A coefficient that jumps after the restart jumps as in a run that is not interrupted."""
    ends = []
    for resumes in (False, True):
        k = Constant(1.0)
        q, stepper = oscillator(k)
        stepper.advance(20)
        if resumes:
            fg.save(stepper, tmp_path / "jump.h5")
            k = Constant(1.0)
            q, stepper = oscillator(k)
            fg.resume(stepper, tmp_path / "jump.h5")
        stepper.advance(between)
        k.assign(9.0)
        stepper.advance(20)
        ends.append(q.dat.data_ro.copy())
    np.testing.assert_array_equal(*ends)


@pytest.mark.filterwarnings("ignore:.*was made by something else:UserWarning")
def test_a_jump_before_a_restart(tmp_path):
    """q'' = -k q with k = 1 until t = 1, then k = 9 in the script that resumes: q(2) of order two."""
    exact = np.cos(1) * np.cos(3) - np.sin(1) * np.sin(3) / 3
    errors = []
    for n in (40, 80, 160):
        _, stepper = oscillator(Constant(1.0), 1 / n)
        stepper.advance(n)
        fg.save(stepper, tmp_path / "jump.h5")
        q, stepper = oscillator(Constant(9.0), 1 / n)
        fg.resume(stepper, tmp_path / "jump.h5")
        stepper.advance(n)
        errors.append(abs(q.dat.data_ro.item() - exact))
    # It was of order one, and the last error 31 times as large.
    assert np.log2(errors[0] / errors[2]) / 2 == pytest.approx(2, abs=0.1)
    assert errors[2] < 3e-5


@pytest.mark.filterwarnings("ignore:.*was made by something else:UserWarning")
@pytest.mark.parametrize("method", METHODS[1:], ids=lambda m: m.__name__)
def test_an_inertia_before_a_restart(method, tmp_path):
    """A rod whose inertia is twice as large in the script that resumes flies on at 1 m/s."""
    for factor in (1.0, 2.0):
        inertia = Constant(factor) * as_matrix(np.array(SECTION.inertia).tolist())
        beam = rod(fg.Section(SECTION.stiffness, inertia))
        stepper = method(beam, 1e-4)
        kick(beam)
        if factor == 2.0:
            fg.resume(stepper, tmp_path / "inertia.h5", strict=False)
        stepper.advance(3)
        if factor == 1.0:
            fg.save(stepper, tmp_path / "inertia.h5")
    # Round-off of a few steps.
    assert beam.position.dat.data_ro[:, 2] == pytest.approx(6e-4, rel=1e-12)


def test_a_sampled_force_over_a_restart(tmp_path):
    """A coefficient that changes before every step goes on as a function of time."""
    ends = []
    for resumes in (False, True):
        k = Constant(1.0)
        q, stepper = oscillator(k)
        for n in range(10):
            if resumes and n == 5:
                fg.save(stepper, tmp_path / "sampled.h5")
                q, stepper = oscillator(k)
                fg.resume(stepper, tmp_path / "sampled.h5")
            k.assign(1.0 + 0.1 * n)
            stepper.advance(1)
        ends.append(q.dat.data_ro.copy())
    np.testing.assert_array_equal(*ends)


def test_another_stepper_of_the_system_has_another_time():
    """The first sample is of the stepper's own time: the load is F = t there, so 0."""
    beam = rod(left="clamped", loads=fg.Load(force=lambda t: as_vector([0, 0, t]), at="right"))
    stepper = fg.GeneralizedAlpha(beam, 1e-3)
    fg.GeneralizedAlpha(beam, 1e-3, t0=5.0)
    history = stepper.run(steps=3, monitors=("drive", beam.time * dx(domain=beam.mesh)))
    assert history["drive"] == pytest.approx(history.t, abs=1e-15)


def test_until_with_a_step_that_changes():
    """Of 0.1 first, then of 0.05: 1 + 18 steps to the time 1."""

    class Halving:
        def bind(self, system):
            pass

        def sample(self):
            return {"dt": float(dt)}

        def step(self):
            dt.assign(0.05)

    dt = Constant(0.1)
    _, stepper = oscillator(Constant(1.0), dt)
    history = stepper.run(until=1.0, monitors=Halving())
    assert (stepper.t, stepper.steps) == (pytest.approx(1.0, abs=1e-12), 19)
    assert len(history) == 20


def test_until_with_an_output_that_enlarges_the_step():
    """Of 0.2 from the start on: 5 steps to the time 1."""

    class Doubling:
        every = 10

        def open(self, stepper):
            pass

        def write(self, stepper):
            dt.assign(0.2)

        def close(self):
            pass

    dt = Constant(0.1)
    _, stepper = oscillator(Constant(1.0), dt)
    stepper.run(until=1.0, output=Doubling())
    assert (stepper.t, stepper.steps) == (pytest.approx(1.0, abs=1e-12), 5)


def test_a_table_outlives_a_bad_output(tmp_path):
    """Outputs are refused before the table is emptied."""
    table = tmp_path / "table.csv"
    stepper = fg.GeneralizedAlpha(rod(), 1e-3)
    stepper.run(steps=5, monitors=fg.Energy(), csv=table)
    bad = fg.VTKOutput(tmp_path / "rod.pvd", fields=["velocty"])
    with pytest.raises(ValueError, match="unknown 'velocty'"):
        stepper.run(steps=5, monitors=fg.Energy(), csv=table, output=bad)
    assert len(fg.History.from_csv(table)) == 6


def test_the_same_values_at_other_places(tmp_path):
    """A rod whose soft half is the other one is another rod."""

    def made(first, second):
        mesh = IntervalMesh(4, 1.0)
        (s,) = SpatialCoordinate(mesh)
        modulus = Function(FunctionSpace(mesh, "DG", 0))
        modulus.interpolate(conditional(lt(s, 0.5), first, second))
        section = fg.Section.rectangle(
            0.02, 0.01, density=1000.0, youngs_modulus=modulus, poisson_ratio=0.3
        )
        return fg.GeneralizedAlpha(rod(section, mesh, left="clamped"), 1e-3)

    fg.save(made(1e7, 2e7), tmp_path / "soft.h5")
    fg.resume(made(1e7, 2e7), tmp_path / "soft.h5")
    with pytest.raises(ValueError, match="section stiffness of the system"):
        fg.resume(made(2e7, 1e7), tmp_path / "soft.h5")


def test_extruded_meshes_are_refused(tmp_path):
    mesh = ExtrudedMesh(UnitIntervalMesh(2), 3)
    space = FunctionSpace(mesh, "CG", 1)
    system = fg.SecondOrderSystem(
        lambda q, v, a, t, w: (a + q) * w * dx, Function(space), Function(space)
    )
    with pytest.raises(ValueError, match="restart files of extruded meshes"):
        fg.save(fg.GeneralizedAlpha(system, 0.1), tmp_path / "extruded.h5")


def test_stress_is_probed_as_of_now():
    """The moment at the root of a cantilever at rest under a force F at its end is F L."""
    load = fg.Load(force=(0, 0, 1e-5), at="right")
    beam = rod(left="clamped", loads=load)
    stepper = fg.GeneralizedAlpha(beam, 1e-3)
    moment = stepper.system.output.fields()["moment"]
    fg.StaticEquilibrium(beam).solve()
    history = stepper.run(steps=1, monitors=fg.Probe("moment", moment, 1 / 16))
    # In the middle of the first cell: the rest of the length is the arm.
    assert abs(history["moment"][:, 1]) == pytest.approx(1e-5 * (1 - 1 / 16), rel=1e-4)


def test_numbers_before_a_step():
    """½ M v² and M v of a kick, and the gap of a beam that was moved off its joint."""
    beam = rod()
    kick(beam)
    assert fg.Energy()(beam)["kinetic_energy"] == pytest.approx(0.5 * MASS, rel=1e-13)
    assert fg.Momentum()(beam)["linear_momentum"][2] == pytest.approx(MASS, rel=1e-13)
    first, second = rod(), rod()
    second.reconstruct(position=(1, 0, 0))
    assembly = fg.Assembly([first, second], [fg.Spherical(first.right, second.left)])
    second.reconstruct(position=(1.1, 0, 0))
    assert assembly.gap() == pytest.approx(0.1, rel=1e-12)
    kick(second)
    assert assembly.velocity_defect() == pytest.approx(1.0, rel=1e-12)
    assert not second.momentum.dat.data_ro.any()


def test_shapes_before_a_step():
    """A stretched rod is drawn and touches a wall by its new length, with the force k (q - δ/2)."""
    wall = fg.Contact(
        fg.Plane((1.4, 0, 0), (-1, 0, 0)), stiffness=50.0, radius=0.01, rounding=0.001
    )
    beam = rod(loads=wall)
    beam.strain.interpolate(as_vector([0, 0, 0, 0.5, 0, 0]))
    shapes = fg.Snapshots()
    shapes.take(beam, 0.0)
    assert shapes.positions[0][-1] == pytest.approx([1.5, 0, 0], abs=1e-14)
    assert wall.depth(beam)[-1] == pytest.approx(0.11, rel=1e-12)
    # The last node has half a cell of the rod at rest.
    force = -50.0 * (0.11 - 0.0005) / 16
    assert wall.forces(beam)[-1] == pytest.approx([force, 0, 0], rel=1e-12)


def test_the_first_sample_of_an_auxiliary_function():
    """ψ = z₀ in the first sample and the first frame."""
    space = VectorFunctionSpace(fg.copies(1), "DG", 0, dim=2)
    numbers = FunctionSpace(space.mesh(), "DG", 0)
    z, psi = Function(space), Function(numbers, name="psi")
    z.dat.data_wo[:] = [1, 0]
    system = fg.PoissonSystem(
        z, 0.5 * (psi**2 + z[1] ** 2) * dx, lambda a, b: (a[0] * b[1] - a[1] * b[0]) * dx,
        lambda a, b: dot(a, b) * dx, auxiliary={psi: (psi - z[0]) * TestFunction(numbers) * dx},
    )  # fmt: skip
    stepper = fg.ImplicitMidpoint(system, 0.1)
    stepper.advance(1)
    z.dat.data_wo[:] = [3, 0]
    history = stepper.run(steps=1, monitors=[("psi", psi * dx)], progress=False)
    # The second is that of the midpoint rule, a rotation by 2 atan(h/2).
    expected = [3.0, 3 * np.cos(2 * np.arctan(0.05))]
    assert history["psi"] == pytest.approx(expected, rel=1e-13)
    psi.assign(0.0)
    stepper.prepare()
    assert psi.dat.data_ro[0] == pytest.approx(expected[1], rel=1e-13)
    z.dat.data_wo[:] = [7, 0]
    assert fg.Functional("psi", psi * dx)(system)["psi"] == pytest.approx(7.0, rel=1e-13)
