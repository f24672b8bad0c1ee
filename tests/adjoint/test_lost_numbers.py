"""What would be lost on pyadjoint's tape is refused: numbers that become floats, moved meshes, reactions."""

import warnings

import numpy as np
import pytest
from checkpoint_schedules import Revolve, SingleMemoryStorageSchedule
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    VectorFunctionSpace,
    as_vector,
    assemble,
    dx,
    inner,
)
from firedrake.adjoint import (
    Control,
    ReducedFunctional,
    continue_annotation,
    pause_annotation,
    stop_annotating,
)
from pyadjoint import AdjFloat, Tape, get_working_tape, set_working_tape

import fdgeom as fg

MATERIAL = {"density": 1000.0, "youngs_modulus": 1e7, "poisson_ratio": 0.3}
SECTION = fg.Section.rectangle(0.02, 0.01, **MATERIAL)


def rod(**options):
    return fg.Beam(IntervalMesh(4, 1.0), SECTION, **options)


@pytest.fixture(scope="module")
def beam():
    return rod(left="clamped", loads=fg.Gravity((0, 0, -0.5)))


@pytest.fixture(scope="module")
def stepper():
    space = VectorFunctionSpace(fg.copies(1), "DG", 0, dim=1)
    q, v = Function(space), Function(space)
    system = fg.SecondOrderSystem(lambda q, v, a, t, w: inner(a + q, w) * dx, q, v)
    return fg.GeneralizedAlpha(system, 0.1)


@pytest.fixture(params=["AdjFloat", "Real"])
def number(request):
    """0.5, as pyadjoint follows it."""
    if request.param == "AdjFloat":
        return AdjFloat(0.5)
    return Function(FunctionSpace(fg.copies(1), "R", 0)).assign(0.5)


def refused(name, call, number):
    """While pyadjoint records, by its name; as a plain float it is taken."""
    continue_annotation()
    with pytest.raises(NotImplementedError, match=f"^{name} is a number that pyadjoint follows"):
        call(number)
    call(float(number))
    pause_annotation()


def test_the_clock(stepper, number):
    system = stepper.system
    refused("dt", lambda x: fg.GeneralizedAlpha(system, x), number)
    refused("dt", lambda x: fg.GeneralizedAlpha(system, dt=x), number)
    refused("t0", lambda x: fg.GeneralizedAlpha(system, 0.1, t0=x), number)
    refused("dt", lambda x: setattr(stepper, "dt", x), number)
    refused("t", lambda x: setattr(stepper, "t", x), number)
    stepper.dt, stepper.t = 0.1, 0.0
    with stop_annotating():
        refused("until", lambda x: stepper.run(until=x, progress=False), number)
    with stop_annotating():
        stepper.dt = number
    assert stepper.dt == 0.5
    stepper.dt = 0.1


def test_statics(beam):
    statics, half = fg.StaticEquilibrium(beam), AdjFloat(0.5)
    refused("load", statics.solve, half)
    refused("time", lambda x: statics.solve(time=x), half)
    refused("step", lambda x: statics.follow(x) if isinstance(x, AdjFloat) else None, half)


def given(value):
    """As a NumPy array of one such number."""
    return np.array([0, 0, value], dtype=object)


def mixed(value):
    """A matrix of numbers and a Constant."""
    rows = np.diag([1.0, 1, 1, 2, 2, 2]).astype(object)
    rows[0, 0], rows[1, 1] = value, Constant(0.5)
    return rows.tolist()


FACTORIES = {
    "kappa": lambda x: fg.FourthOrderAlpha(None, 0.1, kappa=x),
    "rho_inf": fg.hamel_alpha,
    "beta": lambda x: fg.newmark(x, 0.5),
    "width": lambda x: fg.Section.rectangle(x, 0.01, **MATERIAL),
    "density": lambda x: fg.Section.rectangle(0.1, 0.1, **(MATERIAL | {"density": x})),
    "poisson_ratio": lambda x: fg.Section.rectangle(0.1, 0.1, **(MATERIAL | {"poisson_ratio": x})),
    "inertia": lambda x: fg.Section(np.eye(6), mixed(x)),
    "end_weight": lambda x: rod(end_weight=x),
    "stiffness": lambda x: fg.Revolute(fg.ground, PLACE, axis=(0, 0, 1), stiffness=x),
    "rest": lambda x: fg.Revolute(fg.ground, PLACE, axis=(0, 0, 1), rest=x),
    "axis": lambda x: fg.Revolute(fg.ground, PLACE, axis=(0, 0, x)),
    "mass": lambda x: fg.PointBody(PLACE, mass=x),
    "force": lambda x: fg.Load(force=[0, 0, x]),
    "moment": lambda x: fg.Load(moment=given(x)),
}
PLACE = rod().right


@pytest.mark.parametrize("name", FACTORIES)
def test_what_things_are_made_of(name):
    continue_annotation()
    with pytest.raises(NotImplementedError, match=f"^{name} is a number that pyadjoint follows"):
        FACTORIES[name](AdjFloat(0.5))
    pause_annotation()
    if name != "kappa":
        FACTORIES[name](AdjFloat(0.5))


def test_damping(beam):
    damped = rod(damping=AdjFloat(0.01))
    continue_annotation()
    with pytest.raises(NotImplementedError, match="^damping is a number that pyadjoint follows"):
        fg.EnergyMomentum(rod(damping=AdjFloat(0.01)), 0.01)
    pause_annotation()
    fg.EnergyMomentum(damped, 0.01)


@pytest.mark.parametrize("statics", [True, False])
def test_coordinates_that_were_moved_on_the_tape(statics):
    """Values follow them; derivatives would not, and say so."""
    continue_annotation()
    mesh = IntervalMesh(4, 1.0)
    shift = Function(mesh.coordinates.function_space())
    other = Function(FunctionSpace(mesh, "R", 0)).assign(-0.5)
    mesh.coordinates.assign(mesh.coordinates + shift)
    load = fg.Load(force=as_vector([0, 0, other]))
    beam = fg.Beam(mesh, SECTION, left="clamped", loads=load)
    if statics:
        fg.StaticEquilibrium(beam).solve()
    else:
        fg.GeneralizedAlpha(beam, 0.01).advance(2)
    value = assemble(beam.position[2] ** 2 * dx)
    pause_annotation()
    with pytest.raises(NotImplementedError, match="^gradients by the coordinates of a mesh are"):
        ReducedFunctional(value, Control(shift)).derivative()
    found = ReducedFunctional(value, Control(other)).derivative()
    assert abs(found.dat.data_ro[0]) > 0


def test_coordinates_as_control():
    mesh = IntervalMesh(4, 1.0)
    beam = fg.Beam(mesh, SECTION, left="clamped", loads=fg.Gravity((0, 0, -0.5)))
    stepper = fg.GeneralizedAlpha(beam, 0.01)
    continue_annotation()
    stepper.advance(2)
    value = assemble(beam.position[2] ** 2 * dx)
    pause_annotation()
    with pytest.raises(NotImplementedError, match="^gradients by the coordinates of a mesh are"):
        ReducedFunctional(value, Control(mesh.coordinates)).derivative()
    with pytest.raises(NotImplementedError, match="^wrt: gradients by the coordinates of a mesh"):
        fg.gradient(stepper, 2, beam.position[2] ** 2 * dx, [mesh.coordinates])


def test_a_part_that_is_read_between_time_steps():
    """A schedule with which Firedrake by itself gives other gradients after a replay; others do not."""

    def steps(schedule):
        beam = fg.Beam(IntervalMesh(4, 0.5), SECTION, left="clamped")
        stepper = fg.PoissonIntegrator(beam, dt=1e-4)
        set_working_tape(Tape())
        continue_annotation()
        tape = get_working_tape()
        tape.enable_checkpointing(schedule)
        control, total = Control(beam.momentum), 0.0
        for _ in tape.timestepper(iter(range(3))):
            stepper.advance(2)
            total += assemble(inner(beam.momentum, beam.momentum) * dx)
        pause_annotation()
        return control

    with pytest.warns(UserWarning, match="^momentum, a part of a mixed Function") as w:
        steps(SingleMemoryStorageSchedule())
    assert w[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steps(Revolve(3, 2))


def test_reactions_are_not_recorded(beam):
    statics = fg.StaticEquilibrium(beam)
    continue_annotation()
    statics.solve()
    with pytest.raises(
        NotImplementedError, match=r"^StaticEquilibrium.reactions\(\) is not recorded"
    ):
        statics.reactions()
    with pytest.raises(NotImplementedError, match=r"^Beam.reactions\(\) is not recorded"):
        beam.reactions()
    with pytest.raises(NotImplementedError, match=r"^StaticEquilibrium.stress_at\(\) is not rec"):
        statics.stress_at(0.5)
    with stop_annotating():
        _, force = statics.reactions()["left"]
    pause_annotation()
    # The weight, ρ A L g.
    assert force[2] == pytest.approx(0.5 * 1000 * 2e-4, rel=1e-8)


def soft(value):
    """A bent beam whose modulus is a Function, the modulus, and a stepper."""
    mesh = IntervalMesh(4, 1.0)
    modulus = Function(FunctionSpace(mesh, "R", 0)).assign(value)
    material = MATERIAL | {"youngs_modulus": modulus}
    beam = fg.Beam(mesh, fg.Section.rectangle(0.02, 0.01, **material))
    beam.strain.interpolate(as_vector([0, 0.3, 0, 0, 0, 0]))
    beam.reconstruct()
    return beam, modulus, fg.PoissonIntegrator(beam, 1e-5)


@pytest.mark.parametrize("sample", ["a monitor", "a form"])
def test_samples_before_steps(sample):
    """The elastic energy is proportional to the modulus, also in samples that come before any step."""
    beam, modulus, stepper = soft(1e6)
    continue_annotation()
    if sample == "a monitor":
        value = fg.Energy()(beam)["potential_energy"]
    else:
        value = assemble(beam.energies()["potential_energy"])
    stepper.advance(2)
    pause_annotation()
    reduced = ReducedFunctional(value, Control(modulus))
    twice = Function(modulus.function_space()).assign(2e6)
    assert reduced(twice) == pytest.approx(2 * value, rel=1e-12)
    assert reduced.derivative().dat.data_ro[0] == pytest.approx(value / 1e6, rel=1e-12)


def test_samples_at_several_times():
    """A load in time counts in each sample with the time of that; the potential is of degree two in m."""
    mesh = IntervalMesh(4, 1.0)
    m = Function(FunctionSpace(mesh, "R", 0)).assign(0.01)
    load = fg.Load(force=lambda t: as_vector([0, 0, m * t]), at="right")
    beam = fg.Beam(mesh, SECTION, left="clamped", loads=load)
    stepper, total = fg.GeneralizedAlpha(beam, 1e-2), 0.0
    continue_annotation()
    for _ in range(3):
        stepper.advance(2)
        total += fg.Energy()(beam)["load_potential"]
    pause_annotation()
    reduced = ReducedFunctional(total, Control(m))
    assert reduced(m) == pytest.approx(float(total), rel=1e-12)
    # Deflections are so small that the beam is linear to 1e-6.
    assert reduced.derivative().dat.data_ro[0] * 0.01 == pytest.approx(2 * float(total), rel=1e-4)


def test_numbers_of_the_state(beam):
    """What is no longer on the tape is refused; what samples it is named."""
    beam.energy()
    continue_annotation()
    with pytest.raises(NotImplementedError, match=r"energy\(\) is not .* take fdgeom.Energy\(\)"):
        beam.energy()
    with pytest.raises(NotImplementedError, match=r"momentum\(\) .* take fdgeom.Momentum\(\)"):
        beam.linear_momentum()
    with stop_annotating():
        assert beam.kinetic_energy() == 0.0
    pause_annotation()
