"""Sections whose data change after they were made: beams follow, or refuse in one sentence."""

import numpy as np
import pytest
from firedrake import (
    Constant,
    Function,
    FunctionSpace,
    IntervalMesh,
    SpatialCoordinate,
    as_vector,
    assemble,
    conditional,
    dx,
    inner,
    lt,
    sin,
)
from firedrake.adjoint import (
    Control,
    ReducedFunctional,
    continue_annotation,
    pause_annotation,
    stop_annotating,
)
from sections.drawn import rectangle

import fdgeom as fg
from fdgeom.execution import FunctionalAssembly
from fdgeom.recording import run

CHANGED = (
    "^the materials of a drawn section have changed since it was made: make it anew, as with "
    r"Section.from_mesh\(...\)$"
)
TWIST = [0.1, 0.05, 0.0, 0.02, 0.03, 0.0]


class Hooke:
    """σ = E ε, of a modulus that is no parameter: it is met in the stress alone."""

    density = 1.5

    def __init__(self, modulus):
        self._of = [modulus]

    def stress(self, strain, frame):
        return self._of[0] * strain


def materials():
    """Pairs of a material and what one of its values is changed by."""
    mesh = rectangle(0.6, 0.5, 2)
    y, _ = SpatialCoordinate(mesh)
    value = Constant(2.6)
    yield "modulus", mesh, fg.Isotropic(value, 0.3, 1.5), value
    value = Constant(1.5)
    yield "density", mesh, fg.Isotropic(2.6, 0.3, value), value
    value = Function(FunctionSpace(mesh, "DQ", 0)).interpolate(0.4 + y)
    carbon = fg.Orthotropic((90.0, 30.0, 30.0), (10.0, 12.0, 11.0), (0.3, 0.25, 0.2), 1.0)
    yield "angle", mesh, fg.Ply(carbon, angle=value), value
    value = Function(FunctionSpace(mesh, "R", 0)).assign(0.3)
    yield "ratio", mesh, {None: fg.Isotropic(conditional(lt(y, 0.3), 2.0, 1.0), value, 1.0)}, value
    value = Constant(2.6)
    yield "stress", mesh, Hooke(value), value


def twisted(section, mesh=None, **options):
    """A beam of three cells under an even strain."""
    beam = fg.Beam(IntervalMesh(3, 1.0) if mesh is None else mesh, section, **options)
    beam.strain.assign(Constant(TWIST))
    beam.reconstruct()
    return beam


def elastic(beam):
    """Elastic energy, as monitors find it."""
    return FunctionalAssembly(beam.energies()["potential_energy"]).assemble()


def refused(action):
    with pytest.raises(ValueError, match=CHANGED):
        action()


@pytest.mark.parametrize("case", list(materials()), ids=lambda case: case[0])
def test_every_kind_of_value(case):
    """Beams, stress and gradients refuse a change, and work again when it is taken back."""
    _, mesh, material, value = case
    section = fg.Section.from_mesh(mesh, material)
    beam = twisted(section)
    integrator = fg.PoissonIntegrator(beam, 1e-2)
    integrator.advance(1)
    loads, before = np.eye(6)[3], np.array(value.dat.data_ro)
    stress = section.recover(loads).dat.data_ro.copy()
    value.dat.data[...] = before * 1.1
    state = beam.state.dat.data_ro[0].copy(), integrator.t
    refused(lambda: integrator.advance(1))
    assert np.array_equal(beam.state.dat.data_ro[0], state[0])
    assert integrator.t == state[1]
    refused(lambda: fg.Beam(IntervalMesh(3, 1.0), section))
    refused(lambda: beam.stress_at(0.5))
    refused(lambda: section.recover(loads))
    refused(lambda: section.recover_strain(loads))
    refused(lambda: section.failure_index(loads, fg.VonMises(1.0)))
    refused(lambda: section.gradient(np.eye(6), [("density", None)]))
    refused(lambda: section.derivative("density"))
    # Made anew it is another one.
    made = fg.Section.from_mesh(mesh, material)
    both = (section.stiffness, made.stiffness), (section.inertia, made.inertia)
    assert max(np.abs(a / np.abs(a).max() - b / np.abs(a).max()).max() for a, b in both) > 1e-3
    twisted(made)
    value.dat.data[...] = before
    integrator.advance(1)
    assert np.array_equal(section.recover(loads).dat.data_ro, stress)


@pytest.fixture(scope="module")
def modulus():
    return Constant(2.6)


@pytest.fixture(scope="module")
def section(modulus):
    return fg.Section.from_mesh(rectangle(0.6, 0.5, 2), fg.Isotropic(modulus, 0.3, 1.5))


@pytest.fixture
def changes(modulus):
    """Changes the modulus, for the time of one test."""
    yield lambda: modulus.assign(5.2)
    modulus.assign(2.6)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "snes"])
@pytest.mark.parametrize(
    "method",
    [fg.PoissonIntegrator, fg.EnergyMomentum, fg.GeneralizedAlpha, fg.VariationalIntegrator],
)
def test_steppers(section, changes, method, compiled):
    begun, fresh = (method(twisted(section), 1e-2, compiled=compiled) for _ in range(2))
    begun.advance(1)
    changes()
    for stepper in (begun, fresh):
        refused(lambda stepper=stepper: stepper.advance(1))
        refused(lambda stepper=stepper: stepper.advance(3))
        refused(lambda stepper=stepper: run(stepper, steps=2, monitors=fg.Energy()))
    refused(lambda: method(twisted(section), 1e-2, compiled=compiled))


def test_statics_and_modes(section, changes):
    load = fg.Load(force=(0.0, 0.0, 1e-3), at="right")
    beam = fg.Beam(IntervalMesh(3, 1.0), section, left="clamped", loads=load)
    statics = fg.StaticEquilibrium(beam)
    statics.solve()
    changes()
    refused(statics.solve)
    refused(lambda: statics.stress_at(0.5))
    refused(lambda: fg.VibrationModes(beam, 2))


def test_assemblies(section, changes):
    """Beams of numbers are gathered in an assembly by their values."""
    first, second = (
        fg.Beam(IntervalMesh(3, 1.0), section, strain_measure="directors") for _ in range(2)
    )
    second.reconstruct(position=(1.0, 0.0, 0.0))
    assembly = fg.Assembly([first, second], [fg.Rigid(first.right, second.left)])
    steppers = [method(assembly, 1e-2) for method in (fg.GeneralizedAlpha, fg.EnergyMomentum)]
    for stepper in steppers:
        stepper.advance(1)
    changes()
    for stepper in steppers:
        refused(lambda stepper=stepper: stepper.advance(1))


def test_stations(section, changes):
    """Sections between drawn ones are made of the same materials."""
    other = fg.Section.from_mesh(rectangle(0.6, 0.5, 2), fg.Isotropic(1.0, 0.3, 1.0))
    stations = [(0.0, section), (1.0, other)]
    along = fg.Section.along(stations)
    stepper = fg.PoissonIntegrator(twisted(along), 1e-2)
    stepper.advance(1)
    changes()
    refused(lambda: stepper.advance(1))
    refused(lambda: twisted(along))
    refused(lambda: twisted(along.at(0.5)))
    refused(lambda: fg.Section.along(stations))


def test_a_mesh_that_moves():
    """Its stress would be that of neither mesh; beams of the former matrices can be made."""
    mesh = rectangle(0.6, 0.5, 2)
    section = fg.Section.from_mesh(mesh, fg.Isotropic(2.6, 0.3, 1.5))
    mesh.coordinates.assign(2 * mesh.coordinates)
    twisted(section)
    for call in (
        lambda: section.recover([0, 0, 0, 1, 0, 0]),
        lambda: section.derivative("youngs_modulus"),
        lambda: section.gradient(np.eye(6), [("youngs_modulus", None)]),
    ):
        with pytest.raises(ValueError, match="^the mesh's coordinates of a drawn section have"):
            call()


def test_matrices_and_materials_cannot_be_replaced():
    """Compliances and beams that were made before would not follow."""
    section = fg.Section.circle(0.3, **STEEL)
    along = fg.Section.along([(0.0, section), (1.0, section)])
    for matrix in (section.stiffness, section.inertia, along.stiffness.matrices):
        with pytest.raises(ValueError, match="read-only"):
            matrix *= 2.0
    steel = fg.Isotropic(2.6, 0.3, 1.5)
    drawn = fg.Section.from_mesh(rectangle(0.6, 0.5, 2), steel)
    with pytest.raises(TypeError, match="does not support item assignment"):
        drawn.materials[None] = fg.Isotropic(5.2, 0.3, 1.5)


@pytest.mark.parametrize("on_tape", [True, False])
def test_replays_have_values_of_their_own(on_tape):
    """A tape is replayed by what it holds, whatever the materials are outside; steps refuse."""
    mesh = rectangle(0.6, 0.5, 2)
    modulus = Function(FunctionSpace(mesh, "R", 0)).assign(2.6)

    def value(at, stiff):
        """The square of the momentum after two steps from a strain of so much."""
        modulus.assign(stiff)
        section = fg.Section.from_mesh(mesh, fg.Isotropic(modulus, 0.3, 1.5))
        beam = twisted(section, IntervalMesh(2, 1.0))
        beam.strain.assign(at * Function(beam.strain).assign(Constant(TWIST)))
        beam.reconstruct()
        fg.PoissonIntegrator(beam, 1e-2).advance(2)
        return assemble(inner(beam.momentum, beam.momentum) * dx)

    expected = value(1.0, 2.6), value(1.0, 2.8)
    modulus.assign(2.6)
    control = Function(modulus)
    if not on_tape:
        section = fg.Section.from_mesh(mesh, fg.Isotropic(modulus, 0.3, 1.5))
    continue_annotation()
    if on_tape:
        modulus.assign(control)
        section = fg.Section.from_mesh(mesh, fg.Isotropic(modulus, 0.3, 1.5))
    assert (section.on_tape is not None) is on_tape
    with stop_annotating():
        beam = twisted(section, IntervalMesh(2, 1.0))
        start = Function(beam.strain)
    beam.strain.assign(start)
    stepper = fg.PoissonIntegrator(beam, 1e-2)
    stepper.advance(2)
    found = assemble(inner(beam.momentum, beam.momentum) * dx)
    with stop_annotating():
        modulus.assign(5.2)
    refused(lambda: stepper.advance(1))
    with stop_annotating():
        modulus.assign(2.6)
    pause_annotation()
    reduced = ReducedFunctional(found, Control(control if on_tape else start))
    gradient = reduced.derivative()
    given = Function(control if on_tape else start)
    # Steps outside of the tape see the change, and replays do not.
    modulus.assign(5.2)
    refused(lambda: stepper.advance(1))
    refused(lambda: section.recover(np.eye(6)[3]))
    assert found == pytest.approx(expected[0], rel=1e-12)
    assert reduced(given) == pytest.approx(found, rel=1e-13)
    assert np.array_equal(reduced.derivative().dat.data_ro, gradient.dat.data_ro)
    if on_tape:
        assert reduced(given.assign(2.8)) == pytest.approx(expected[1], rel=1e-12)
    refused(lambda: stepper.advance(1))


STEEL = {"density": 1.5, "youngs_modulus": 2.6, "poisson_ratio": 0.3}


def numbers(c):
    """A matrix of rows that hold a Constant."""
    rows = np.diag([2.0, 1.0, 1.0, 3.0, 3.0, 3.0]).tolist()
    rows[0][0] = c
    return fg.Section(rows, np.diag([2.0, 1.0, 1.0, 3.0, 3.0, 3.0]))


FOLLOWING = {
    "rectangle": lambda c: fg.Section.rectangle(c, 0.2, **STEEL),
    "tube": lambda c: fg.Section.tube(2.0, c, **STEEL),
    "shear factor": lambda c: fg.Section.rectangle(0.3, 0.2, shear_factor=(c, c), **STEEL),
    "density": lambda c: fg.Section.circle(0.3, **{**STEEL, "density": c}),
    "area": lambda c: fg.Section.from_properties(area=c, second_moments=[c, 2 * c], **STEEL),
    "rows": numbers,
}


@pytest.mark.parametrize("make", FOLLOWING.values(), ids=FOLLOWING)
def test_other_sections_follow(make):
    """Energy and a step after a change are those of a beam that is made after it."""
    value = Constant(0.7)
    beam = twisted(make(value))
    stepper = fg.PoissonIntegrator(beam, 1e-2)
    before = elastic(beam)
    value.assign(0.9)
    other = twisted(make(Constant(0.9)))
    assert elastic(beam) == pytest.approx(elastic(other), rel=1e-14)
    stepper.advance(1)
    fg.PoissonIntegrator(other, 1e-2).advance(1)
    for name in ("strain", "momentum", "velocity"):
        found, wanted = (getattr(b, name).dat.data_ro for b in (beam, other))
        assert found == pytest.approx(wanted, abs=1e-13 * np.abs(wanted).max())
    # It was a change: of the energy, or of the velocity that belongs to the momentum.
    unchanged = twisted(make(Constant(0.7)))
    fg.PoissonIntegrator(unchanged, 1e-2).advance(1)
    was, now = (np.abs(b.velocity.dat.data_ro).max() for b in (unchanged, beam))
    assert max(abs(before / elastic(other) - 1), abs(was / now - 1)) > 0.01


def test_given_ends_follow():
    """An end whose velocity holds a Constant moves as that of a beam that is made after the change."""
    section = fg.Section.circle(0.3, **STEEL)
    size = Constant(0.1)

    def moved(size):
        def velocity(t):
            return as_vector([0, 0, 0, 0, size * sin(5 * t), 0])

        return fg.Beam(IntervalMesh(3, 1.0), section, left=velocity)

    beam = moved(size)
    stepper = fg.PoissonIntegrator(beam, 1e-2)
    size.assign(0.3)
    other = moved(Constant(0.3))
    stepper.advance(2)
    fg.PoissonIntegrator(other, 1e-2).advance(2)
    # Midpoints and steps: the velocity of the end is met exactly.
    assert beam.velocity.dat.data_ro[0, 4] == pytest.approx(0.3 * np.sin(0.1), rel=1e-12)
    found, wanted = beam.momentum.dat.data_ro, other.momentum.dat.data_ro
    assert found == pytest.approx(wanted, abs=1e-14)


def test_places_of_stations_are_numbers():
    sections = [fg.Section.circle(r, **STEEL) for r in (0.3, 0.2)]
    with pytest.raises(
        TypeError, match="^stations: an arc length is read once: give a number, not"
    ):
        fg.Section.along([(Constant(0.0), sections[0]), (1.0, sections[1])])
