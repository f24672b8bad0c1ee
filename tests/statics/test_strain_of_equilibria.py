"""The strain of beams after statics, and reactions of what is no equilibrium."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
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
)
from verification.joined import straight

import fdgeom as fg

LENGTH, RADIUS, MODULUS, DENSITY = 1.0, 0.01, 2e11, 7800.0
BENDING = MODULUS * np.pi * RADIUS**4 / 4
#: The moment that bends the bar by 1 rad.
MOMENT = BENDING / LENGTH
#: Newton's method leaves round-off of EA = 6e7 N; the forces beside are 0.
ROUND_OFF = 1e-6


def bar(cells=10, *, modulus=MODULUS, loads=None, **options):
    section = fg.Section.circle(RADIUS, density=DENSITY, youngs_modulus=modulus, poisson_ratio=0.3)
    loads = fg.Load(moment=(0, 0, MOMENT), at="right") if loads is None else loads
    return fg.Beam(IntervalMesh(cells, LENGTH), section, left="clamped", loads=loads, **options)


def expected(cells):
    """Moment and force of pure bending, which cells of any length have to round-off."""
    return np.tile([0, 0, MOMENT, 0, 0, 0], (cells, 1))


@pytest.mark.parametrize("compiled", [True, False])
def test_pure_bending(compiled):
    """Strain, stress, energy and snapshots of the beam are those of the equilibrium."""
    beam, snapshots = bar(), fg.Snapshots(fields=["moment"])
    momentum = np.array(beam.momentum.dat.data_ro)
    fg.StaticEquilibrium(beam, compiled=compiled).solve(steps=2)
    curvature = beam.strain.dat.data_ro[:, 2]
    assert curvature == pytest.approx(np.full(10, MOMENT / BENDING), rel=1e-9)
    at = np.linspace(0.05, 0.95, 10)
    assert beam.stress_at(at) == pytest.approx(expected(10), abs=ROUND_OFF)
    assert beam.potential_energy() == pytest.approx(MOMENT**2 / BENDING / 2, rel=1e-9)
    snapshots.take(beam, 0.0)
    assert snapshots.values["moment"][0] == pytest.approx(np.full(10, MOMENT), rel=1e-9)
    assert np.array_equal(beam.momentum.dat.data_ro, momentum)


def test_forces_of_snapshots_are_those_of_the_load():
    """The load factor scales all forces but those of contact."""
    beam = bar()
    floor = fg.Plane((0, 0, -0.01), normal=(0, 0, 1))
    touch = fg.Contact(floor, stiffness=1.0, radius=0.02)
    loaded = fg.Beam(
        beam.mesh, beam.section, left="clamped", loads=[fg.Load(force=(0, 0, 3), at="right"), touch]
    )
    shapes = fg.Snapshots()
    for load in (0.5, 1.0):
        shapes.take(loaded, load, load=load)
    half, whole = (forces[:, 2] for forces in shapes.forces)
    assert (half[0], whole[0]) == pytest.approx((1.5, 3), rel=1e-12)
    assert whole[1:].min() > 0
    assert np.array_equal(half[1:], whole[1:])


def test_steps_begin_with_that_strain():
    """Steps in strain and momentum take the strain as it is; a velocity that was set stays set."""
    beam = bar()
    beam.velocity.interpolate(Constant((0.0, 0.0, 0.0, 0.1, 0.0, 0.0)) * beam.mesh.coordinates[0])
    velocity = np.array(beam.velocity.dat.data_ro)
    fg.StaticEquilibrium(beam).solve()
    fg.PoissonIntegrator(beam, 1e-12).advance(1)
    at = np.linspace(0.05, 0.95, 10)
    # In 1e-12 s the velocity stretches the bar by 1e-13, times EA.
    assert beam.stress_at(at) == pytest.approx(expected(10), abs=1e-4)
    mass = DENSITY * np.pi * RADIUS**2
    assert beam.momentum.dat.data_ro[:, 3] == pytest.approx(mass * velocity[:, 3], abs=1e-4)


@pytest.mark.parametrize("options", [{}, {"end_weight": 1.0}])
def test_beams_of_an_assembly(options):
    """A bar in two parts, welded; with other weights at the ends each part is computed by itself."""
    section = fg.Section.circle(RADIUS, density=DENSITY, youngs_modulus=MODULUS, poisson_ratio=0.3)
    load = fg.Load(moment=(0, 0, MOMENT), at="right")
    first = straight((0, 0, 0), (0.4, 0, 0), 4, section, left="clamped", **options)
    second = straight((0.4, 0, 0), (1.0, 0, 0), 6, section, loads=load)
    assembly = fg.Assembly([first, second], [fg.Rigid(first.right, second.left)])
    fg.StaticEquilibrium(assembly).solve(steps=2)
    # The axis z of the body is that of space in the plane; `straight` may turn the other two.
    for beam, cells in ((first, 4), (second, 6)):
        stress = beam.stress_at(np.linspace(0.01, 0.39, cells))
        assert np.linalg.norm(stress[:, :3], axis=1) == pytest.approx(np.full(cells, MOMENT))
        assert stress[:, 3:] == pytest.approx(np.zeros((cells, 3)), abs=ROUND_OFF)
    whole = first.potential_energy() + second.potential_energy()
    assert whole == pytest.approx(MOMENT**2 / BENDING / 2, rel=1e-8)
    assert assembly.potential_energy() == pytest.approx(whole, rel=1e-12)


def test_gradient_by_a_modulus():
    """The mean curvature of the equilibrium is M/EI, with derivative -M/(E² I)."""
    modulus = Function(FunctionSpace(IntervalMesh(10, LENGTH), "R", 0)).assign(MODULUS)
    mesh = modulus.function_space().mesh()
    section = fg.Section.circle(RADIUS, density=DENSITY, youngs_modulus=modulus, poisson_ratio=0.3)
    load = fg.Load(moment=(0, 0, MOMENT), at="right")
    beam = fg.Beam(mesh, section, left="clamped", loads=load)
    statics = fg.StaticEquilibrium(beam)
    continue_annotation()
    statics.solve()
    value = assemble(beam.strain[2] * dx)
    pause_annotation()
    reduced = ReducedFunctional(value, Control(modulus))
    curvature = MOMENT / BENDING
    assert value == pytest.approx(curvature, rel=1e-9)
    slope = reduced.derivative().dat.data_ro[0]
    assert slope == pytest.approx(-curvature / MODULUS, rel=1e-7)
    larger = Function(modulus.function_space()).assign(2 * MODULUS)
    assert reduced(larger) == pytest.approx(curvature / 2, rel=1e-9)
    # A replay leaves the equilibrium as it was.
    moment, _ = statics.reactions()["left"]
    assert moment == pytest.approx([0, 0, -MOMENT], rel=1e-9, abs=ROUND_OFF)
    assert beam.strain.dat.data_ro[:, 2] == pytest.approx(np.full(10, curvature), rel=1e-9)


def test_a_strain_set_before_a_solve_on_a_tape():
    """The tape would miss that statics moves the beam to its strain."""
    beam = bar()
    beam.strain.interpolate(Constant((0.0, 0.0, 0.5, 0.0, 0.0, 0.0)))
    statics = fg.StaticEquilibrium(beam)
    beam.strain.interpolate(Constant((0.0, 0.0, 0.6, 0.0, 0.0, 0.0)))
    continue_annotation()
    with pytest.raises(NotImplementedError, match=r"call its reconstruct\(\) before solve"):
        statics.solve()
    beam.reconstruct()
    statics.solve()
    pause_annotation()


@pytest.mark.parametrize("method", [fg.PoissonIntegrator, fg.GeneralizedAlpha])
@pytest.mark.parametrize("name", ["velocity", "momentum", "read"])
def test_gradients_of_steps_after_statics(name, method):
    """By a value set after, or before, an equilibrium on the tape: against differences of runs."""
    beam = bar(4)
    field = beam.velocity if name == "velocity" else beam.momentum
    rate = as_vector([0.0, 0.0, 0.0, 0.0, 1.0, 0.0]) * beam.mesh.coordinates[0]
    given = Function(field.function_space()).interpolate(rate)
    statics, stepper = fg.StaticEquilibrium(beam), None

    def end(value):
        nonlocal stepper
        beam.strain.assign(0)
        beam.momentum.assign(0)
        beam.reconstruct()
        if name != "velocity":
            field.assign(value)
        statics.solve(0.5)
        if name == "velocity":
            field.assign(value)
        if name == "read":
            assemble(inner(beam.momentum, beam.momentum) * dx)
        stepper = stepper or method(beam, 1e-6)
        stepper.advance(3)
        return assemble(inner(beam.momentum, beam.momentum) * dx + beam.strain[2] ** 2 * dx)

    end(given)
    h = 1e-3
    # Of second order in h, of a function of second degree but for 1e-6 of it.
    sides = [end(Function(given).assign((1 + sign * h) * given)) for sign in (1, -1)]
    slope = (sides[0] - sides[1]) / (2 * h)
    continue_annotation()
    value = end(given)
    pause_annotation()
    found = ReducedFunctional(value, Control(given)).derivative()
    assert slope > 0
    assert np.vdot(found.dat.data_ro, given.dat.data_ro) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("change", ["new", "load", "pose", "strain", "steps"])
def test_reactions_of_no_equilibrium(change):
    """Reactions are those of an equilibrium that was found, or an error."""
    moment = Constant((0.0, 0.0, MOMENT))
    beam = bar(loads=fg.Load(moment=moment, at="right"))
    statics = fg.StaticEquilibrium(beam)
    if change != "new":
        statics.solve()
        assert statics.reactions()["left"][0][2] == pytest.approx(-MOMENT, rel=1e-9)
    if change == "load":
        moment.assign((0.0, 0.0, 2 * MOMENT))
    elif change == "pose":
        beam.position.dat.data_wo[-1] += 0.01
    elif change == "strain":
        beam.strain.assign(0)
    elif change == "steps":
        moment.assign((0.0, 0.0, 1.01 * MOMENT))
        fg.GeneralizedAlpha(beam, 1e-3).advance(1)
    with pytest.raises(ValueError, match=r"reactions: .* call solve\(\) first"):
        statics.reactions()
    statics.solve()
    torque = MOMENT * {"steps": 1.01, "load": 2.0}.get(change, 1.0)
    assert statics.reactions()["left"][0][2] == pytest.approx(-torque, rel=1e-9, abs=ROUND_OFF)


def test_reactions_after_a_change_of_data():
    """Of a modulus that a section samples, and of a Constant in a given pose."""
    modulus = Function(FunctionSpace(IntervalMesh(4, LENGTH), "R", 0)).assign(MODULUS)
    end = Constant(0.0)

    held = fg.GivenPose(position=lambda t: as_vector([LENGTH + end, 0, 0]))
    section = fg.Section.circle(RADIUS, density=DENSITY, youngs_modulus=modulus, poisson_ratio=0.3)
    mesh = modulus.function_space().mesh()
    beam = fg.Beam(mesh, section, left="clamped", right=held)
    statics = fg.StaticEquilibrium(beam)
    statics.solve()
    for change in (lambda: modulus.assign(2 * MODULUS), lambda: end.assign(1e-3)):
        change()
        with pytest.raises(ValueError, match="call solve"):
            statics.reactions()
        statics.solve()
    _, force = statics.reactions()["right"]
    pull = 2 * MODULUS * np.pi * RADIUS**2 * 1e-3
    assert force == pytest.approx([pull, 0, 0], rel=1e-9, abs=1e-3)


@pytest.mark.parametrize("method", [fg.PoissonIntegrator, fg.GeneralizedAlpha])
@pytest.mark.parametrize("name", ["velocity", "momentum", "state"])
def test_values_that_are_set_to_what_they_were(name, method):
    """A control of zero before an equilibrium: the momentum of steps follows it one to one."""
    beam = bar(4)
    field = getattr(beam, name)
    given = Function(field.function_space())
    if name == "state":
        given.assign(field)
    statics = fg.StaticEquilibrium(beam)
    stepper = method(beam, 1e-9)
    continue_annotation()
    field.assign(given)
    statics.solve(0.5)
    stepper.advance(1)
    value = assemble(beam.momentum[4] * dx)
    pause_annotation()
    reduced = ReducedFunctional(value, Control(given))
    change = Function(given.function_space())
    part = change.subfunctions[-1] if name == "state" else change
    part.interpolate(as_vector([0.0, 0.0, 0.0, 0.0, 1.0, 0.0]) * beam.mesh.coordinates[0])
    expected = LENGTH**2 / 2 * (DENSITY * np.pi * RADIUS**2 if name == "velocity" else 1.0)
    found = reduced.derivative()
    slope = sum(
        np.vdot(a.dat.data_ro, b.dat.data_ro)
        for a, b in zip(found.subfunctions, change.subfunctions, strict=True)
    )
    # In 1e-9 s forces change the momentum by 1e-6 of it.
    assert slope == pytest.approx(expected, rel=1e-4)
    later = Function(given.function_space())
    later.assign(given + change)
    assert reduced(later) - value == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("method", [fg.PoissonIntegrator, fg.GeneralizedAlpha])
def test_steps_after_statics_with_a_momentum_of_before(method):
    """A momentum that was set before the tape does not make the strain count as set by hand."""
    mesh = IntervalMesh(4, LENGTH)
    size = Function(FunctionSpace(mesh, "R", 0)).assign(MOMENT)
    section = fg.Section.circle(RADIUS, density=DENSITY, youngs_modulus=MODULUS, poisson_ratio=0.3)
    load = fg.Load(moment=as_vector([0, 0, size]), at="right")
    beam = fg.Beam(mesh, section, left="clamped", loads=load)
    statics, stepper = fg.StaticEquilibrium(beam), None
    moving = Function(beam.momentum.function_space()).interpolate(
        as_vector([0.0, 0.0, 0.0, 0.0, 1.0, 0.0]) * mesh.coordinates[0]
    )

    def end(*, recorded=False):
        nonlocal stepper
        beam.momentum.assign(moving)
        if recorded:
            continue_annotation()
        statics.solve(0.5)
        stepper = stepper or method(beam, 1e-6)
        stepper.advance(3)
        value = assemble((beam.strain[2] ** 2 + beam.position[0]) * dx)
        pause_annotation()
        return value

    values = []
    for factor in (1.001, 0.999):
        size.assign(factor * MOMENT)
        values.append(end())
    slope = (values[0] - values[1]) / (0.002 * MOMENT)
    size.assign(MOMENT)
    reduced = ReducedFunctional(end(recorded=True), Control(size))
    # Differences of second order in 1e-3.
    assert reduced.derivative().dat.data_ro[0] == pytest.approx(slope, rel=1e-5)
    again = Function(size.function_space()).assign(1.001 * MOMENT)
    assert reduced(again) == pytest.approx(values[0], rel=1e-9)
