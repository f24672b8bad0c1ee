"""Sections drawn as meshes, by what their materials are made of: derivatives of the 6×6 and of a run."""

import numpy as np
import pytest
from derivable import directions, holding
from firedrake import (
    Function,
    FunctionSpace,
    Identity,
    IntervalMesh,
    RectangleMesh,
    RelabeledMesh,
    SpatialCoordinate,
    TensorFunctionSpace,
    UnitSquareMesh,
    assemble,
    conditional,
    dx,
    inner,
    lt,
    tr,
)
from firedrake.adjoint import (
    Control,
    ReducedFunctional,
    continue_annotation,
    pause_annotation,
    taylor_test,
)

import fdgeom as fg

CENTRE = (0.5, 0.4)


class Own:
    """A material that says its stress in UFL alone."""

    def __init__(self, modulus, density) -> None:
        self.modulus, self.density = modulus, density

    def stress(self, strain, frame):
        return self.modulus * strain + 1.5 * tr(strain) * Identity(3)


def field(mesh, scale, name):
    """A field that varies."""
    x, y = SpatialCoordinate(mesh)
    return Function(FunctionSpace(mesh, "CG", 1), name=name).interpolate(scale * (1 + x * x + y))


def number(mesh, value, name):
    return Function(FunctionSpace(mesh, "R", 0), name=name).assign(value)


def isotropic(mesh):
    data = field(mesh, 2.0, "modulus"), number(mesh, 1.2, "density")
    return fg.Isotropic(data[0], 0.3, data[1]), data


def cells(mesh):
    """Values of cells and a number: elasticity is constant in each cell."""
    modulus = Function(FunctionSpace(mesh, "DG", 0), name="modulus")
    modulus.dat.data_wo[...] = np.linspace(1, 2, modulus.dat.data_ro.size)
    data = modulus, number(mesh, 0.3, "ratio")
    return fg.Isotropic(modulus, data[1], 1.3), data


def two_regions(mesh):
    """A ply whose fibre turns, and one whose modulus and tangent depend on a field."""
    data = number(mesh, 0.4, "angle"), field(mesh, 1.0, "field")
    moduli = {"shear_moduli": (0.6, 0.5, 0.4), "poisson_ratios": (0.3, 0.3, 0.4)}
    first = fg.Orthotropic((9.0, 1.0, 1.1), density=1.0, **moduli)
    second = fg.Orthotropic((9.0, 1.0 + data[1], 1.1), density=1.0 + data[1] ** 2, **moduli)
    return {1: fg.Ply(first, data[0], 0.1), 2: fg.Ply(second, 0.2, data[1])}, data


def own(mesh):
    data = field(mesh, 2.0, "modulus"), number(mesh, 1.2, "density")
    return Own(*data), data


def drawing():
    """Quadrilaterals, the left ones with the tag 1, the right ones with the tag 2."""
    mesh = RectangleMesh(2, 2, 1.0, 0.75, quadrilateral=True)
    x, _ = SpatialCoordinate(mesh)
    left = Function(FunctionSpace(mesh, "DQ", 0)).interpolate(conditional(lt(x, 0.5), 1, 0))
    right = Function(left.function_space()).interpolate(1 - left)
    return RelabeledMesh(mesh, [left, right], [1, 2])


@pytest.mark.parametrize("make", [isotropic, cells, two_regions, own])
def test_matrices(make, rng):
    """Against differences of sections that are made anew, and of tangents and cotangents."""
    mesh = drawing()
    material, data = make(mesh)
    section = fg.Section.from_mesh(mesh, material, origin=CENTRE)
    beam = section.on(IntervalMesh(2, 1.0))
    assert section.on(beam.stiffness.function_space().mesh()).stiffness is beam.stiffness
    of_K, of_M = rng.uniform(-1, 1, (2, 6, 6))
    weights = TensorFunctionSpace(beam.stiffness.function_space().mesh(), "CG", 1, shape=(6, 6))
    of_K, of_M = (holding(Function(weights), np.tile(w, (3, 1, 1))) for w in (of_K, of_M))
    objective = (inner(of_K, beam.stiffness) + inner(of_M, beam.inertia)) * dx
    moved = directions(data, rng)

    def at(f, start, h, direction):
        f.dat.data_wo[...] = start + h * direction
        section.update()
        return assemble(objective)

    expected = []
    for f, direction in zip(data, moved, strict=True):
        start, h = np.array(f.dat.data_ro), 3e-3
        expected.append(
            8 * (at(f, start, h, direction) - at(f, start, -h, direction))
            - (at(f, start, 2 * h, direction) - at(f, start, -2 * h, direction))
        )
        expected[-1] /= 12 * h
        f.dat.data_wo[...] = start
    given = [holding(f, f.dat.data_ro) for f in data]
    continue_annotation()
    for f, x in zip(data, given, strict=True):
        f.assign(x)
    section.update()
    value = assemble(objective)
    pause_annotation()
    reduced = ReducedFunctional(value, [Control(x) for x in given])
    assert reduced(given) == value
    for g, d, e in zip(reduced.derivative(), moved, expected, strict=True):
        # Differences of fourth order are good to 1e-9 or so.
        assert np.sum(g.dat.data_ro * d) == pytest.approx(e, rel=1e-7)
    along = [holding(f, d) for f, d in zip(data, moved, strict=True)]
    pushed = reduced.tlm(along)
    pulled = sum(
        np.sum(g.dat.data_ro * d) for g, d in zip(reduced.derivative(), moved, strict=True)
    )
    assert pushed == pytest.approx(pulled, rel=1e-11)


@pytest.fixture(scope="module")
def swung():
    """A beam whose section is drawn, and its stepper."""
    drawn = RectangleMesh(3, 2, 0.1, 0.06)
    x, y = SpatialCoordinate(drawn)
    modulus = Function(FunctionSpace(drawn, "CG", 1)).interpolate(1e7 * (1 + 3 * x + y))
    data = modulus, number(drawn, 1e3, "density")
    material = fg.Isotropic(modulus, 0.3, data[1])
    section = fg.Section.from_mesh(drawn, material, origin=(0.05, 0.03))
    mesh, load = IntervalMesh(3, 1.0), fg.Load(force=(0, 5.0, 10.0), at="right")
    options = {"left": "clamped", "loads": load, "strain_measure": "directors"}
    beam = fg.Beam(mesh, section.on(mesh), **options)
    return section, data, beam, fg.EnergyMomentum(beam, 0.02)


def test_a_run(swung, rng):
    """By modulus and density, against differences of runs that nobody records; orders of remainders."""
    section, data, beam, stepper = swung
    system = stepper.system
    moved = {**system.functions(), **system.followers(), **stepper.functions()}.values()
    start, clock = [np.array(f.dat.data_ro) for f in moved], stepper.clock
    objective = inner(beam.position, beam.position) + 0.1 * inner(beam.velocity, beam.velocity)
    objective = objective * dx(degree=2)

    def begin():
        for f, values in zip(moved, start, strict=True):
            f.dat.data_wo[...] = values
        stepper.take_up(clock)

    def at(f, values):
        f.dat.data_wo[...] = values
        begin()
        section.update()
        stepper.advance(10)
        return assemble(objective)

    ways = [
        np.array(f.dat.data_ro) * (1 + 0.5 * d)
        for f, d in zip(data, directions(data, rng), strict=True)
    ]
    expected = []
    for f, way in zip(data, ways, strict=True):
        here, h = np.array(f.dat.data_ro), 2e-3
        near, far = (at(f, here + k * h * way) - at(f, here - k * h * way) for k in (1, 2))
        expected.append((8 * near - far) / (12 * h))
        f.dat.data_wo[...] = here
    section.update()
    begin()
    given = [holding(f, f.dat.data_ro) for f in data]
    continue_annotation()
    for f, x in zip(data, given, strict=True):
        f.assign(x)
    section.update()
    stepper.advance(10)
    value = assemble(objective)
    pause_annotation()
    reduced = ReducedFunctional(value, [Control(x) for x in given])
    assert reduced(given) == value
    for g, way, e in zip(reduced.derivative(), ways, expected, strict=True):
        assert np.sum(g.dat.data_ro * way) == pytest.approx(e, rel=1e-7)
    along = [holding(f, 0.3 * way) for f, way in zip(data, ways, strict=True)]
    assert taylor_test(reduced, given, along) > 1.95


def test_what_is_refused():
    """A section that is made while pyadjoint records, and an origin that moves with the materials."""
    mesh = UnitSquareMesh(1, 1)
    field = Function(FunctionSpace(mesh, "DG", 0)).assign(2.0)
    material = fg.Isotropic(1.0, 0.3, field)
    section = fg.Section.from_mesh(mesh, material, origin="mass")
    continue_annotation()
    with pytest.raises(NotImplementedError, match=r"Section\.from_mesh\(\) with materials.*update"):
        fg.Section.from_mesh(mesh, material)
    with pytest.raises(NotImplementedError, match="origin: gradients keep it"):
        section.update()


def test_nothing_changes_where_it_fails():
    mesh = UnitSquareMesh(1, 1)
    density = number(mesh, 1.0, "density")
    section = fg.Section.from_mesh(mesh, fg.Isotropic(1.0, 0.3, density))
    beam = section.on(IntervalMesh(2, 1.0))
    before = section.inertia, np.array(beam.inertia.dat.data_ro)
    density.assign(-1.0)
    with pytest.raises(ValueError, match="density is not positive"):
        section.update()
    assert section.inertia is before[0]
    assert np.array_equal(beam.inertia.dat.data_ro, before[1])
    density.assign(2.0)
    section.update()
    # The inertia is linear in the density; a product by 2 has no rounding.
    assert np.array_equal(section.inertia, 2 * before[0])
    assert np.array_equal(beam.inertia.dat.data_ro, 2 * before[1])
